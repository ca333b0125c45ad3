//! Nodes: what a program is in a system.
//!
//! What it does not do: make endpoints and find them ([`crate::over::Endpoint`]), connect them ([`crate::over::Opening`]).
//!
//! ```
//! # use std::sync::Arc;
//! # use std::time::Duration;
//! # use musubi_mcapi::{Deadline, DeadlineExt, Error, Node, Topology};
//! # fn main() -> Result<(), Error> {
//! # let mut system = Topology::single_machine();
//! # system.system = format!("doc-node-{}", std::process::id());
//! # let system = Arc::new(system);
//! let one = Node::initialize(&system, 0, 1)?;
//! let two = Node::initialize(&system, 0, 2)?;
//! let trip = one.ping((0, 2), 56, Deadline::after(Duration::from_secs(5)))?;
//! println!("{:?}", trip.time);
//! # drop(two);
//! # Ok(())
//! # }
//! ```

use alloc::vec::Vec;
use core::time::Duration;

use crate::engine::{Outcome, RequestId};
use crate::running::Running;
use musubi_transport::running::{self, Ways as _};

use crate::request::{Came, Request};
use crate::{Error, NodeId};

pub(crate) type Engine<R> = crate::engine::Engine<<R as running::Running>::Block>;

/// A running node. Clones are handles of the same; it ends when all, and all that was made with them, are dropped.
#[derive(Clone, Debug)]
pub struct Node<R> {
    pub(crate) runtime: R,
}

/// What a ping came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RoundTrip {
    /// There and back.
    pub time: Duration,
}

impl<R: Running> Node<R> {
    /// A handle of a node that was started otherwise.
    pub fn of(runtime: R) -> Node<R> {
        Node { runtime }
    }

    /// Domain and number.
    pub fn id(&self) -> NodeId {
        self.runtime.id()
    }

    /// Ends it now, whatever handles there are: their calls fail from now on, threads that wait come back.
    ///
    /// # Errors
    /// [`Error::NodeNotInitialized`] if it had ended.
    pub fn finalize(&self) -> Result<(), Error> {
        Ok(self.runtime.finish()?)
    }

    /// Sends so many bytes to a node and back.
    ///
    /// # Errors
    /// [`Error::DomainInvalid`], [`Error::NodeInvalid`], [`Error::MessageSize`], [`Error::Timeout`].
    pub fn ping(&self, (domain, node): (u32, u32), bytes: usize, deadline: R::Deadline) -> Result<RoundTrip, Error> {
        let node = NodeId::new(domain, node).ok_or(Error::NodeInvalid)?;
        let mut request: Request<RoundTrip, R> = self.request(
            |engine, links| {
                let now_ns = links.now_ns();
                engine.ping(now_ns, node, bytes, links)
            },
            |outcome| match outcome {
                Outcome::Pong(ns) => Ok(RoundTrip { time: Duration::from_nanos(ns) }),
                _ => Err(Error::General),
            },
        )?;
        request.wait(deadline)
    }

    /// Part `part` of the picture that a node gives of itself, in the bytes of the wire.
    ///
    /// # Errors
    /// [`Error::NodeInvalid`], [`Error::Timeout`].
    pub fn inspect(&self, (domain, node): (u32, u32), part: u32, deadline: R::Deadline) -> Result<Vec<u8>, Error> {
        let node = NodeId::new(domain, node).ok_or(Error::NodeInvalid)?;
        let mut request: Request<Vec<u8>, R> = self.request(
            |engine, links| engine.inspect(node, part, links),
            |outcome| match outcome {
                Outcome::Picture(bytes) => Ok(bytes),
                _ => Err(Error::General),
            },
        )?;
        request.wait(deadline)
    }

    pub(crate) fn request<T, F>(
        &self,
        begin: impl FnOnce(&mut Engine<R>, &mut R::Ways) -> Result<RequestId, Error>,
        finish: F,
    ) -> Result<Request<T, R>, Error>
    where
        F: FnOnce(Came<R>) -> Result<T, Error> + Send + 'static,
    {
        let id = self.runtime.with(begin)??;
        Ok(Request::new(&self.runtime, id, finish))
    }
}

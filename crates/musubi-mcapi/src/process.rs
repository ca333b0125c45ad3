//! Nodes in processes of Linux: what is not the same everywhere.

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use musubi_transport::runtime::{self, Block, Deadline, Options};
use musubi_transport::topology::Topology;

use crate::engine::Engine;
use crate::{Awaited, Error, NodeId};

/// A running node of MCAPI in a process of Linux.
pub type Running = runtime::Node<Engine<Block>>;

/// A running node. Clones are handles of the same; it ends when all, and all that was made with them, are dropped.
pub type Node = crate::over::Node<Running>;
/// An endpoint of this node. Clones are handles of the same; it is deleted when the last handle, and any end of a
/// channel opened on it, is dropped.
pub type Endpoint = crate::over::Endpoint<Running>;
/// An endpoint of some node that this node has found. Dropping it gives the find back.
pub type Remote = crate::over::Remote<Running>;
/// A message that was received. Its memory goes back when it is dropped.
pub type Message = crate::over::Message<Running>;
/// A packet in hand. Dropping it gives its buffer back to the channel.
pub type Packet = crate::over::Packet<Running>;
/// The sending end of a packet channel.
pub type PacketSender = crate::over::PacketSender<Running>;
/// The receiving end of a packet channel.
pub type PacketReceiver = crate::over::PacketReceiver<Running>;
/// The sending end of a scalar channel.
pub type ScalarSender<T> = crate::over::ScalarSender<T, Running>;
/// The receiving end of a scalar channel.
pub type ScalarReceiver<T> = crate::over::ScalarReceiver<T, Running>;
/// An operation that has begun and will give a `T`.
pub type Request<T> = crate::over::Request<T, Running>;
/// An end that is being opened: complete once both sides are open and connected.
pub type Opening<T> = Request<T>;
/// A channel that is being closed: complete once both sides have closed.
pub type Closing = Request<()>;

/// Waits until one of several requests of one node has completed; gives its place. It is still to be taken, and fails
/// then if it failed.
///
/// # Errors
/// [`Error::Timeout`]; [`Error::Parameter`] if there are none or they are of several nodes; [`Error::RequestInvalid`]
/// if the result of one was taken before.
pub fn wait_any(requests: &[&dyn Awaited<Running>], deadline: Deadline) -> Result<usize, Error> {
    crate::over::wait_any(requests, deadline)
}

impl AsFd for Node {
    /// See [`Node::arm`]; only to be watched.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.runtime.as_fd()
    }
}

impl Node {
    /// Starts a node of a system.
    ///
    /// # Errors
    /// [`Error::NodeInitialized`] if it runs already, [`Error::DomainInvalid`], [`Error::NodeInvalid`] if the system has
    /// it not, [`Error::NodeInitFailed`].
    pub fn initialize(system: &Arc<Topology>, domain: u32, node: u32) -> Result<Node, Error> {
        Node::initialize_with(system, domain, node, Options::default())
    }

    /// The same with options.
    ///
    /// # Errors
    /// As [`Node::initialize`].
    pub fn initialize_with(system: &Arc<Topology>, domain: u32, node: u32, options: Options) -> Result<Node, Error> {
        let id = match NodeId::new(domain, node) {
            Some(id) => id,
            None if domain > crate::limits::DOMAIN_MAX => return Err(Error::DomainInvalid),
            None => return Err(Error::NodeInvalid),
        };
        Ok(Node::of(Running::start(Arc::clone(system), id, options)?))
    }

    /// The system it is of.
    pub fn system(&self) -> &Arc<Topology> {
        self.runtime.topology()
    }

    /// For a program's own event loop: looks at the links, and lets whatever comes from now on make this node's descriptor
    /// ([`AsFd`]) readable. `None` if something has changed since the last time: try everything, then arm again.
    /// Otherwise the nanoseconds after which to arm again at the latest; `u64::MAX` for none. Other threads may
    /// call and wait meanwhile; one thread at a time is the loop.
    ///
    /// # Errors
    /// [`Error::NodeNotInitialized`].
    pub fn arm(&self) -> Result<Option<u64>, Error> {
        let until_ns = self.runtime.arm()?;
        Ok(until_ns.map(|ns| if ns == u64::MAX { ns } else { ns.saturating_sub(self.runtime.now_ns()) }))
    }
}

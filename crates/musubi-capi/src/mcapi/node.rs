//! A node of this program, and what each function does with it.
//!
//! What you may rely on: where the node runs, in a process or over mapped memory, is the port's; everything here and in the
//! functions is the same.
//!
//! How it works: the engine is under the node's own lock. The requests and the packets in the program's hands have locks of
//! their own, which are held for a step at a time. Lock order: the node's own, then these.

use musubi_mcapi::Error;
use musubi_transport::running::Running;
use musubi_transport::{LinkError, NodeId};

use super::packets_in_hand::PacketsInHand;
pub(crate) use super::port::{Block, Node, NodeEngine, NodeLinks, bound};
use super::port::{Guard, Life, Lock, deadline};
use super::requests::Requests;
use super::sent_buffers::SentBuffers;
use super::status::Status;

/// A node of this program, and what the C interface keeps for it.
#[derive(Debug)]
pub(crate) struct ThreadNode {
    pub(crate) node: Node,
    requests: Lock<Requests>,
    held: Lock<PacketsInHand>,
    pub(crate) sent: SentBuffers,
    /// What the port keeps of it.
    #[cfg_attr(feature = "mapped", expect(dead_code, reason = "that port keeps nothing"))]
    pub(super) life: Life,
}

impl ThreadNode {
    pub(super) fn new(node: Node, life: Life) -> ThreadNode {
        let (requests, held) = (Lock::new(Requests::default()), Lock::new(PacketsInHand::default()));
        ThreadNode { node, requests, held, sent: SentBuffers::default(), life }
    }

    /// Its number.
    pub(crate) fn id(&self) -> NodeId {
        Running::id(&self.node)
    }

    pub(crate) fn requests(&self) -> Guard<'_, Requests> {
        self.requests.lock()
    }

    pub(crate) fn held(&self) -> Guard<'_, PacketsInHand> {
        self.held.lock()
    }

    /// Does something with the engine.
    #[inline]
    pub(crate) fn with<R>(
        &self,
        by: impl FnOnce(&mut NodeEngine, &mut NodeLinks) -> Result<R, Error>,
    ) -> Result<R, Status> {
        Ok(Running::with(&self.node, by)??)
    }

    /// Does something with the engine once all that has arrived is taken in: for what programs count.
    pub(crate) fn count<R>(
        &self,
        by: impl FnOnce(&mut NodeEngine, &mut NodeLinks) -> Result<R, Error>,
    ) -> Result<R, Status> {
        Ok(Running::with_arrivals(&self.node, by)??)
    }

    /// Does something with the engine once the links have been looked at: for what programs poll.
    #[inline]
    pub(crate) fn look<R>(
        &self,
        mut by: impl FnMut(&mut NodeEngine, &mut NodeLinks) -> Result<R, Error>,
    ) -> Result<R, Status> {
        let mut looks = 0;
        let looked = Running::wait_for(&self.node, Node::POLL, |engine, links| {
            looks += 1;
            (looks > 1).then(|| by(engine, links))
        });
        match looked {
            Err(LinkError::Timeout) => self.with(by),
            result => Ok(result??),
        }
    }

    /// Waits until `ready` gives something, at most `timeout_ms`.
    pub(crate) fn wait<R>(
        &self,
        timeout_ms: u32,
        ready: impl FnMut(&mut NodeEngine, &mut NodeLinks) -> Option<Result<R, Status>>,
    ) -> Result<R, Status> {
        Running::wait_for(&self.node, deadline(&self.node, timeout_ms), ready)?
    }
}

//! What an interface asks of a running node, wherever that runs: in a process of Linux ([`runtime`](crate::runtime)), or on a
//! core or in a task over memory that all nodes map ([`mapped`](crate::mapped)).
//!
//! What you may rely on: an operation has the engine and the links for itself while it runs; what it sent goes out when it ends.
//! A wait with [`Running::POLL`] does not wait. Dropping the last handle ends the node.
//!
//! What it does not do: say how a node begins. Each place has its own way.

use core::task::Waker;

use crate::links::{Block, Links, Payload};
use crate::protocol::Protocol;
use crate::{LinkError, NodeId};

/// The links of a running node, as an interface needs them besides the engine.
pub trait Ways: Links {
    /// The time now, in nanoseconds of the clock that deadlines are on.
    fn now_ns(&mut self) -> u64;

    /// Takes back the memory of a payload that is no longer needed.
    fn recycle(&mut self, payload: Payload<Self::Block>);
}

/// A handle of a running node; the last one that is dropped ends it.
pub trait Running: Clone + Send + Sync + Unpin + 'static {
    /// Payload in place.
    type Block: Block;
    /// What its frames mean.
    type Protocol: Protocol<Block = Self::Block>;
    /// The links.
    type Ways: Ways<Block = Self::Block>;
    /// How long a call may wait.
    type Deadline: Copy + PartialEq + Send;
    /// Not at all.
    const POLL: Self::Deadline;

    /// This node.
    fn id(&self) -> NodeId;

    /// Gives the engine what the links have, in an operation of [`Running::with`] or another: before taking the most urgent
    /// message, say, as a more urgent one may lie right behind the first. Links and engine do not call each other for it.
    fn take_in(engine: &mut Self::Protocol, links: &mut Self::Ways);

    /// Does something with the engine, and flushes what it sent.
    ///
    /// # Errors
    /// Here and below [`LinkError::Ended`] if the node has ended.
    fn with<R>(&self, operation: impl FnOnce(&mut Self::Protocol, &mut Self::Ways) -> R) -> Result<R, LinkError>;

    /// As [`Running::with`], once everything that has arrived is taken in.
    ///
    /// # Errors
    /// As [`Running::with`].
    fn with_arrivals<R>(
        &self,
        operation: impl FnOnce(&mut Self::Protocol, &mut Self::Ways) -> R,
    ) -> Result<R, LinkError>;

    /// As [`Running::with`], for a future's task or something that is dropped.
    ///
    /// # Errors
    /// As [`Running::with`].
    fn with_aside<R>(&self, operation: impl FnOnce(&mut Self::Protocol, &mut Self::Ways) -> R) -> Result<R, LinkError>;

    /// Waits until `ready` gives something.
    ///
    /// # Errors
    /// [`LinkError::Timeout`], and as [`Running::with`], also while waiting.
    fn wait_for<R>(
        &self,
        deadline: Self::Deadline,
        ready: impl FnMut(&mut Self::Protocol, &mut Self::Ways) -> Option<R>,
    ) -> Result<R, LinkError>;

    /// Wakes `waker` once the request has completed or is no more. If that is so already, wakes nobody and says true.
    ///
    /// # Errors
    /// As [`Running::with`].
    fn wake_when_complete(
        &self,
        request: <Self::Protocol as Protocol>::Request,
        waker: &Waker,
    ) -> Result<bool, LinkError>;

    /// Wakes `waker` at the next change of anything.
    ///
    /// # Errors
    /// As [`Running::with`].
    fn wake_when_changed(&self, waker: &Waker) -> Result<(), LinkError>;

    /// Ends the node.
    ///
    /// # Errors
    /// As [`Running::with`], if it had ended.
    fn finish(&self) -> Result<(), LinkError>;
}

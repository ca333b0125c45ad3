//! The running node: one engine, its links, and the threads that call.
//!
//! What you may rely on: a thread that waits drives the links itself, so no other thread stands between a peer and it.
//! A call that finds its condition true takes and gives back one lock and makes no system call. Every wait has a
//! deadline. Before a call returns, what it sent has been handed to the kernel or lies in the peer's memory. Ending a
//! node wakes everybody who waits, joins its thread, and closes its descriptors with the last handle.
//!
//! How it works: *leader and followers* (Schmidt et al., "Leader/Followers", 2000). Of the threads that wait, one leads:
//! it pulls reports from the links into the engine, spins for [`Options::spin_ns`], then announces sleep to the peers and
//! sleeps in `epoll_wait`, without the lock. The others sleep until the leader sees that something has changed, or
//! leaves and makes one of them the leader. A real-time thread takes the lead from a less urgent one (`urgency`).
//!
//! Where nobody waits, the node's *background thread* sees to heartbeats, new links, acknowledgements and answers. While
//! the program calls now and then it only looks every `background::TICK_NS`, so an answer to a peer (to "is this endpoint
//! there yet?", say), the acknowledgement of a message too, may wait for one tick while a program computes, and no longer. After a tick without a call, or as soon as a future
//! waits, it sleeps in the kernel on the links itself; the next call that could wait sends it back to ticking, once.
//!
//! What it does not do: read descriptions; serve a child made by `fork`, which has no part in
//! the node: every call there says [`LinkError::Ended`].

mod background;
mod bells;
mod event_loop;
mod events;
mod exit;
mod future;
mod intake;
mod kernel_events;
mod node_links;
mod rounds;
mod shared;
mod state;
mod urgency;
mod wait;
mod wiring;

pub mod switchboard;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Waker;

pub use background::TICK_NS;
pub use musubi_linux::{Deadline, DeadlineExt};
pub use node_links::{Block, NodeLinks};
pub use wiring::Wiring;

use crate::carrier::Carrier;
use crate::links::{NoBlock, Payload};
use crate::notifier::WakeCounts;
use crate::protocol::Protocol;
use crate::running::{Running, Ways};
use crate::topology::Topology;
use crate::{LinkError, NodeId, Priority};
use shared::Shared;

/// Most looks at the links of one [`Node::with_arrivals`].
const ARRIVALS_MAX: u32 = 16;

/// How a node behaves.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Options {
    /// How long a waiting thread looks before it sleeps, nanoseconds; `u64::MAX`: it never sleeps. Nothing where the
    /// process has one processor only.
    pub spin_ns: u64,
    /// That the node runs already is nothing to be said: the program tries another one.
    pub is_one_of_several: bool,
}

impl Default for Options {
    fn default() -> Options {
        Options { spin_ns: 10_000, is_one_of_several: false }
    }
}

/// A running node; clones are handles of the same one. The last handle that is dropped ends it.
#[derive(Debug)]
pub struct Node<P: Protocol<Block = Block>> {
    shared: Arc<Shared<P>>,
}

impl<P: Protocol<Block = Block>> Node<P> {
    /// Starts a node of a system with the links that the system says it has. What is in the way is also said on the
    /// standard error ([`crate::notices`]).
    ///
    /// # Errors
    /// [`LinkError::NodeRuns`] if a living process has it; [`LinkError::DomainUnknown`] or [`LinkError::NodeUnknown`] if the
    /// system has not; [`LinkError::Unavailable`] if links or threads cannot be had.
    pub fn start(topology: Arc<Topology>, me: NodeId, options: Options) -> Result<Node<P>, LinkError> {
        let is_one_of_several = options.is_one_of_several;
        Node::begin(topology, me, options, |wiring| NodeLinks::of_system(wiring, is_one_of_several))
    }

    /// Starts a node all of whose links are what `network` makes, wherever the system says that the others are.
    ///
    /// # Errors
    /// As [`Node::start`], and what `network` gives.
    pub fn start_with<F>(
        topology: Arc<Topology>,
        me: NodeId,
        options: Options,
        network: F,
    ) -> Result<Node<P>, LinkError>
    where
        F: FnOnce(&Wiring) -> Result<Box<dyn Carrier<Block = NoBlock>>, LinkError>,
    {
        Node::begin(topology, me, options, |wiring| Ok(NodeLinks::of_network(wiring, network(wiring)?)))
    }

    fn begin<F>(topology: Arc<Topology>, me: NodeId, options: Options, links: F) -> Result<Node<P>, LinkError>
    where
        F: FnOnce(&Wiring) -> Result<NodeLinks, LinkError>,
    {
        if !topology.has(me) {
            node_links::says_why_not(me, &"the description has no such node");
            let in_domain = |id: &NodeId| id.domain() == me.domain();
            return Err(if topology.nodes.keys().any(in_domain) {
                LinkError::NodeUnknown
            } else {
                LinkError::DomainUnknown
            });
        }
        // The links say themselves what is in their way.
        let refused = |_: &LinkError| node_links::says_why_not(me, &"the system refuses a descriptor or a thread");
        let wiring = Wiring::new(topology, me, P::KINDS).inspect_err(refused)?;
        let links = links(&wiring)?;
        let node = Node { shared: Arc::new(Shared::new(wiring, links, options).inspect_err(refused)?) };
        background::start(&node.shared).inspect_err(refused)?;
        Ok(node)
    }

    /// This node.
    pub fn id(&self) -> NodeId {
        self.shared.wiring.me
    }

    /// The system that it is a node of.
    pub fn topology(&self) -> &Arc<Topology> {
        &self.shared.wiring.topology
    }

    /// Nanoseconds of the clock that deadlines are on.
    pub fn now_ns(&self) -> u64 {
        musubi_linux::clock::now_ns()
    }

    /// Whether it has been ended.
    pub fn has_finished(&self) -> bool {
        self.shared.lock().is_err()
    }

    /// Does something with the engine, and flushes what it sent. Nothing that arrived meanwhile is looked at.
    ///
    /// # Errors
    /// [`LinkError::Ended`] if the node has ended.
    #[inline(always)]
    pub fn with<R>(&self, operation: impl FnOnce(&mut P, &mut NodeLinks) -> R) -> Result<R, LinkError> {
        let mut state = self.shared.enter()?;
        let state_now = &mut *state;
        let result = operation(&mut state_now.engine, &mut state_now.links);
        self.shared.unlock(state);
        Ok(result)
    }

    /// As [`Node::with`], once everything that has arrived is taken in: for counting it. Looks at the links at most
    /// `ARRIVALS_MAX` times, as peers may go on sending.
    ///
    /// # Errors
    /// [`LinkError::Ended`] if the node has ended.
    pub fn with_arrivals<R>(&self, operation: impl FnOnce(&mut P, &mut NodeLinks) -> R) -> Result<R, LinkError> {
        let mut state = self.shared.enter()?;
        for _ in 0..ARRIVALS_MAX {
            let before = state.engine.changes();
            self.shared.first_round(&mut state, Deadline::Poll, &mut |_, _| false);
            if state.engine.changes() == before {
                break;
            }
        }
        let state_now = &mut *state;
        let result = operation(&mut state_now.engine, &mut state_now.links);
        self.shared.unlock(state);
        Ok(result)
    }

    /// Waits until `ready` gives something. It is tried first as things are, then after looking at the links, then
    /// whenever something has changed; with [`Deadline::Poll`] the first two.
    ///
    /// # Errors
    /// [`LinkError::Timeout`]; [`LinkError::Ended`] if the node has ended, also while waiting.
    #[inline(always)]
    pub fn wait_for<R>(
        &self,
        deadline: Deadline,
        mut ready: impl FnMut(&mut P, &mut NodeLinks) -> Option<R>,
    ) -> Result<R, LinkError> {
        // What it gives stays here: those who wait hand on only whether there is something.
        let mut found = None;
        let mut is_ready = |engine: &mut P, links: &mut NodeLinks| {
            found = ready(engine, links);
            found.is_some()
        };
        let mut state = self.shared.enter()?;
        let before = state.engine.changes();
        let state_now = &mut *state;
        if is_ready(&mut state_now.engine, &mut state_now.links) {
            if state.links.owes_look() {
                self.shared.glance(&mut state);
            }
            self.shared.unlock(state);
        } else {
            wait::in_vain(&self.shared, state, before, deadline, &mut is_ready)?;
        }
        found.ok_or(LinkError::Timeout)
    }

    /// As [`Node::with`] for a future's task, which never waits itself: the background thread stays with the links.
    ///
    /// # Errors
    /// [`LinkError::Ended`] if the node has ended.
    pub fn with_aside<R>(&self, operation: impl FnOnce(&mut P, &mut NodeLinks) -> R) -> Result<R, LinkError> {
        let mut state = self.shared.lock()?;
        let state_now = &mut *state;
        let result = operation(&mut state_now.engine, &mut state_now.links);
        self.shared.unlock_aside(state);
        Ok(result)
    }

    /// Wakes `waker` once the request has completed or is no more; one waker a request, the last one counts. If that is
    /// so already, wakes nobody and says true.
    ///
    /// # Errors
    /// [`LinkError::Ended`] if the node has ended.
    pub fn wake_when_complete(&self, request: P::Request, waker: &Waker) -> Result<bool, LinkError> {
        let mut state = self.shared.lock()?;
        let complete = state.register(request, waker);
        self.shared.unlock_aside(state);
        Ok(complete)
    }

    /// Wakes `waker` at the next change of anything: for operations that are tried again instead of being requests.
    ///
    /// # Errors
    /// [`LinkError::Ended`] if the node has ended.
    pub fn wake_when_changed(&self, waker: &Waker) -> Result<(), LinkError> {
        let mut state = self.shared.lock()?;
        state.register_for_change(waker);
        self.shared.unlock_aside(state);
        Ok(())
    }

    /// What became of the wake-ups that arriving frames of a class asked for; zeros if the class has no filter.
    ///
    /// # Errors
    /// [`LinkError::Ended`].
    pub fn wake_counts(&self, class: Priority) -> Result<WakeCounts, LinkError> {
        Ok(self.shared.lock()?.wake_counts(class))
    }

    /// Times that threads of the program which slept in a call were woken to look again, by whomever.
    ///
    /// # Errors
    /// [`LinkError::Ended`].
    pub fn times_woken(&self) -> Result<u64, LinkError> {
        Ok(self.shared.lock()?.links.wakes.woken)
    }

    /// Ends the node: peers are told, everybody who waits gets [`LinkError::Ended`], the name is free again.
    ///
    /// # Errors
    /// [`LinkError::Ended`] if it had ended.
    pub fn finish(&self) -> Result<(), LinkError> {
        self.shared.finish()
    }
}

impl<P: Protocol<Block = Block>> Clone for Node<P> {
    fn clone(&self) -> Node<P> {
        self.shared.handles.fetch_add(1, Ordering::Relaxed);
        Node { shared: Arc::clone(&self.shared) }
    }
}

impl<P: Protocol<Block = Block>> Drop for Node<P> {
    fn drop(&mut self) {
        if !self.shared.is_ours() {
            // In a forked child neither thread nor links are there to be ended: what is left of them is kept unused.
            std::mem::forget(Arc::clone(&self.shared));
            return;
        }
        if self.shared.handles.fetch_sub(1, Ordering::AcqRel) == 1 {
            // It may have been ended already.
            let _ = self.shared.finish();
        }
    }
}

// ---- what interfaces are written for ----

impl Ways for NodeLinks {
    #[inline]
    fn now_ns(&mut self) -> u64 {
        NodeLinks::now_ns(self)
    }

    #[inline]
    fn recycle(&mut self, payload: Payload<Block>) {
        NodeLinks::recycle(self, payload);
    }
}

impl<P: Protocol<Block = Block>> Running for Node<P> {
    type Block = Block;
    type Protocol = P;
    type Ways = NodeLinks;
    type Deadline = Deadline;
    const POLL: Deadline = Deadline::Poll;

    #[inline]
    fn id(&self) -> NodeId {
        Node::id(self)
    }

    #[inline]
    fn take_in(engine: &mut P, links: &mut NodeLinks) {
        intake::all(engine, links);
    }

    #[inline(always)]
    fn with<R>(&self, operation: impl FnOnce(&mut P, &mut NodeLinks) -> R) -> Result<R, LinkError> {
        Node::with(self, operation)
    }

    #[inline]
    fn with_arrivals<R>(&self, operation: impl FnOnce(&mut P, &mut NodeLinks) -> R) -> Result<R, LinkError> {
        Node::with_arrivals(self, operation)
    }

    #[inline]
    fn with_aside<R>(&self, operation: impl FnOnce(&mut P, &mut NodeLinks) -> R) -> Result<R, LinkError> {
        Node::with_aside(self, operation)
    }

    #[inline(always)]
    fn wait_for<R>(
        &self,
        deadline: Deadline,
        ready: impl FnMut(&mut P, &mut NodeLinks) -> Option<R>,
    ) -> Result<R, LinkError> {
        Node::wait_for(self, deadline, ready)
    }

    fn wake_when_complete(&self, request: P::Request, waker: &Waker) -> Result<bool, LinkError> {
        Node::wake_when_complete(self, request, waker)
    }

    fn wake_when_changed(&self, waker: &Waker) -> Result<(), LinkError> {
        Node::wake_when_changed(self, waker)
    }

    fn finish(&self) -> Result<(), LinkError> {
        Node::finish(self)
    }
}

#[cfg(test)]
mod tests;

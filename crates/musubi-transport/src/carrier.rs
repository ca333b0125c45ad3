//! One kind of links of a node: shared memory, TCP. The runtime owns one of each and asks them in turn.
//!
//! What you may rely on: every call is made under the node's lock, and none waits. A carrier registers its descriptors
//! with the epoll instance of the node, under tokens whose highest byte is the carrier's own number.
//!
//! How it works: a thread that calls (or, while nobody does, the node's own thread) pulls reports one by one until there
//! are none and gives each to the engine; flushes; and either returns to the program, goes round again (spinning), or
//! sleeps: `prepare_sleep` on all carriers, `epoll_wait` without the lock, `finish_sleep`, then `ready` for each token.

use alloc::vec::Vec;

use crate::NodeId;
use crate::frame::Header;
use crate::links::{Block, Report, Sent, SharedBytes};
use crate::status::{AcceptorStatus, LinkStatus, LoggedEvent};

/// Frames to peers and from them.
pub trait Frames {
    /// What lies in place.
    type Block: Block;

    /// See [`crate::links::Links::send`]. Small frames may be held back until [`Drive::flush`].
    fn send(&mut self, now_ns: u64, peer: NodeId, header: &Header, payload: &[u8]) -> Sent;

    /// See [`crate::links::Links::send_shared`].
    fn send_shared(&mut self, now_ns: u64, peer: NodeId, header: &Header, payload: &SharedBytes) -> Sent {
        self.send(now_ns, peer, header, payload)
    }

    /// See [`crate::links::Links::hold`].
    fn hold(&mut self) {}

    /// See [`crate::links::Links::release`].
    fn release(&mut self, _now_ns: u64) {}

    /// The next thing to report; `None` if nothing more is at hand without a system call that is likely in vain: see
    /// [`Drive::poll`].
    fn next_report(&mut self, now_ns: u64) -> Option<Report<Self::Block>>;

    /// Takes the memory of a [`crate::links::Payload::Owned`] that a program has released, to use it for what comes next.
    /// Bounded: what is too much is freed.
    fn recycle(&mut self, buffer: Vec<u8>) {
        drop(buffer);
    }
}

/// What keeps links alive and awake: descriptors, sleeps, deadlines.
pub trait Drive {
    /// See [`crate::links::Links::want`].
    fn want(&mut self, now_ns: u64, peer: NodeId, wanted: bool);

    /// Looks actively: what a spinning caller does before each round of [`Frames::next_report`] (memory: nothing more;
    /// sockets in use: a read that does not wait).
    fn poll(&mut self, now_ns: u64);

    /// A descriptor of ours is ready.
    fn ready(&mut self, now_ns: u64, token: u64);

    /// Sends what was held back, acknowledgements included. Called before a program gets its thread back after
    /// sending, and before sleeping.
    fn flush(&mut self, now_ns: u64);

    /// From the next [`Drive::prepare_sleep`] on frames of these classes, a bit each, are rung for. What is there of others does not
    /// keep anybody from sleeping any more: it is to be taken in once after that. Nothing where the kernel rings for all.
    fn ring_for(&mut self, _classes: u8) {}

    /// Whether [`Drive::prepare_sleep`] found frames that may be of a class that is not rung for: how many there are at most.
    fn left_unseen(&self) -> u32 {
        0
    }

    /// Announces that this node is about to sleep, so that peers ring. True if something came meanwhile: do not sleep.
    fn prepare_sleep(&mut self) -> bool;

    /// Takes that back.
    fn finish_sleep(&mut self);

    /// Whether [`Frames::next_report`] has something that no descriptor tells of any more: who sleeps on them must be told.
    fn holds_reports(&self) -> bool;

    /// Whether peers that can be reached have confirmed what was sent, and were told what has come as far as
    /// [`Drive::flush`] tells.
    fn has_delivered(&self) -> bool {
        true
    }

    /// When [`Drive::tick`] wants to be called next; `u64::MAX` if never.
    fn deadline_ns(&self) -> u64;

    /// Does what is due: heartbeats, attempts to link, giving up.
    fn tick(&mut self, now_ns: u64);

    /// Ends all links in an orderly way: peers are told that this node leaves.
    fn leave(&mut self, now_ns: u64);
}

/// How links do, for tools.
pub trait Describe {
    /// How the link with `peer` does, for tools.
    fn link(&self, _peer: NodeId) -> Option<LinkStatus> {
        None
    }

    /// Adds what became of connections, for tools.
    fn describe_acceptor(&self, _door: &mut AcceptorStatus) {}

    /// What happened to connections, oldest first, for tools.
    fn log(&self) -> Vec<LoggedEvent> {
        Vec::new()
    }
}

/// Links of one kind.
pub trait Carrier: Frames + Drive + Describe + Send {}

impl<C: Frames + Drive + Describe + Send> Carrier for C {}

//! A node in the hands of a task that is inside the monitor.
//!
//! What you may rely on: whoever has one is inside, so it may use what the monitor guards.
//!
//! How it works: the node with the proof; ends that it gives are used by this folder only, whose calls are all inside, and
//! which forgets them before it closes the node.

use musubi_core::channel::{ReceivingEnd, SendingEnd};
use musubi_core::plan::Plan;

use super::{Addressed, Inside, Node};
use crate::mdcom::contract::status::Status;

/// See above.
#[derive(Clone, Copy)]
pub(super) struct Entered<'m> {
    node: &'static dyn Node,
    inside: Inside<'m>,
}

impl<'m> Entered<'m> {
    pub(super) fn new(node: &'static dyn Node, inside: Inside<'m>) -> Self {
        Entered { node, inside }
    }

    /// The proof.
    pub(super) fn inside(self) -> Inside<'m> {
        self.inside
    }

    pub(super) fn plan(self) -> &'static Plan<'static> {
        self.node.plan()
    }

    pub(super) fn domain(self) -> u16 {
        self.node.domain(self.inside)
    }

    pub(super) fn now_ns(self) -> u64 {
        self.node.now_ns(self.inside)
    }

    pub(super) fn attached(self, domain: u16) -> u16 {
        self.node.attached(self.inside, domain)
    }

    pub(super) fn sending(self, fifo: u16) -> Result<&'static dyn SendingEnd, Status> {
        // SAFETY: calls of `fifo` are inside whenever they run, and none rests or holds a block when the node is closed.
        unsafe { self.node.sending(self.inside, fifo) }
    }

    pub(super) fn receiving(self, fifo: u16) -> Result<&'static dyn ReceivingEnd, Status> {
        // SAFETY: as above.
        unsafe { self.node.receiving(self.inside, fifo) }
    }

    pub(super) fn segment(self, smem: u16) -> Result<&'static dyn Addressed, Status> {
        // SAFETY: as above, for calls of `smem`.
        unsafe { self.node.segment(self.inside, smem) }
    }
}

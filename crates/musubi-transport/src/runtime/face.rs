//! This runtime as [`Running`]: what interfaces are written for.

use std::task::Waker;

use super::{Block, Deadline, Hub, Node};
use crate::engine::{Engine, RequestId};
use crate::links::Payload;
use crate::running::{Running, Ways};
use crate::{Error, NodeId};

impl Ways for Hub {
    #[inline]
    fn now_ns(&mut self) -> u64 {
        Hub::now_ns(self)
    }

    #[inline]
    fn take_in(&mut self, engine: &mut Engine<Block>) {
        Hub::take_in(self, engine);
    }

    #[inline]
    fn recycle(&mut self, payload: Payload<Block>) {
        Hub::recycle(self, payload);
    }
}

impl Running for Node {
    type Block = Block;
    type Ways = Hub;
    type Deadline = Deadline;
    const POLL: Deadline = Deadline::Poll;

    #[inline]
    fn id(&self) -> NodeId {
        Node::id(self)
    }

    #[inline(always)]
    fn with<R>(&self, operation: impl FnOnce(&mut Engine<Block>, &mut Hub) -> R) -> Result<R, Error> {
        Node::with(self, operation)
    }

    #[inline]
    fn with_arrivals<R>(&self, operation: impl FnOnce(&mut Engine<Block>, &mut Hub) -> R) -> Result<R, Error> {
        Node::with_arrivals(self, operation)
    }

    #[inline]
    fn with_aside<R>(&self, operation: impl FnOnce(&mut Engine<Block>, &mut Hub) -> R) -> Result<R, Error> {
        Node::with_aside(self, operation)
    }

    #[inline(always)]
    fn wait_for<R>(
        &self,
        deadline: Deadline,
        ready: impl FnMut(&mut Engine<Block>, &mut Hub) -> Option<R>,
    ) -> Result<R, Error> {
        Node::wait_for(self, deadline, ready)
    }

    fn wake_when_complete(&self, request: RequestId, waker: &Waker) -> Result<bool, Error> {
        Node::wake_when_complete(self, request, waker)
    }

    fn wake_when_changed(&self, waker: &Waker) -> Result<(), Error> {
        Node::wake_when_changed(self, waker)
    }

    fn finish(&self) -> Result<(), Error> {
        Node::finish(self)
    }
}

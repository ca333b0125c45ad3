//! This runtime as [`Running`]: what interfaces are written for.

use std::task::Waker;

use super::{Block, Deadline, Hub, Node, intake};
use crate::links::Payload;
use crate::protocol::Protocol;
use crate::running::{Running, Ways};
use crate::{LinkError, NodeId};

impl Ways for Hub {
    #[inline]
    fn now_ns(&mut self) -> u64 {
        Hub::now_ns(self)
    }

    #[inline]
    fn take_in<P: Protocol<Block = Block>>(&mut self, engine: &mut P) {
        intake::all(engine, self);
    }

    #[inline]
    fn recycle(&mut self, payload: Payload<Block>) {
        Hub::recycle(self, payload);
    }
}

impl<P: Protocol<Block = Block>> Running for Node<P> {
    type Block = Block;
    type Protocol = P;
    type Ways = Hub;
    type Deadline = Deadline;
    const POLL: Deadline = Deadline::Poll;

    #[inline]
    fn id(&self) -> NodeId {
        Node::id(self)
    }

    #[inline(always)]
    fn with<R>(&self, operation: impl FnOnce(&mut P, &mut Hub) -> R) -> Result<R, LinkError> {
        Node::with(self, operation)
    }

    #[inline]
    fn with_arrivals<R>(&self, operation: impl FnOnce(&mut P, &mut Hub) -> R) -> Result<R, LinkError> {
        Node::with_arrivals(self, operation)
    }

    #[inline]
    fn with_aside<R>(&self, operation: impl FnOnce(&mut P, &mut Hub) -> R) -> Result<R, LinkError> {
        Node::with_aside(self, operation)
    }

    #[inline(always)]
    fn wait_for<R>(
        &self,
        deadline: Deadline,
        ready: impl FnMut(&mut P, &mut Hub) -> Option<R>,
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

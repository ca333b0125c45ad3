//! Futures that wait for requests, or for any change, on this runtime.

use std::task::Waker;

use super::Block;
use super::state::State;
use crate::protocol::Protocol;

impl<P: Protocol<Block = Block>> State<P> {
    /// See [`super::Node::wake_when_complete`].
    pub fn register(&mut self, request: P::Request, waker: &Waker) -> bool {
        self.wakers.register(&self.engine, request, waker)
    }

    /// See [`super::Node::wake_when_changed`].
    pub fn register_for_change(&mut self, waker: &Waker) {
        self.wakers.register_for_change(waker);
    }
}

//! Before a process ends that leaves its nodes as they are.
//!
//! What you may rely on: once [`Node::deliver`] has come back in time, peers have what they were sent over the network and
//! know what they sent was received; so no connection that the system ends with the process takes any of it along.
//!
//! How it works: writes, reads and looks, with pauses. Never waits for the lock: a process may end out of a signal handler
//! that has interrupted a call, and then the lock never comes free.
//!
//! What it does not do: end the node, as other threads may still be using it.

use std::time::Duration;

use super::shared::Shared;
use super::{Block, Deadline, DeadlineExt, Node};
use crate::protocol::Protocol;

/// Between two looks.
const PAUSE: Duration = Duration::from_micros(200);

impl<P: Protocol<Block = Block>> Node<P> {
    /// Waits until nothing is under way to or from peers that the end of this process could lose.
    pub fn deliver(&self, deadline: Deadline) {
        while self.shared.is_ours() && !self.shared.has_delivered() && !deadline.passed() {
            std::thread::sleep(PAUSE);
        }
    }
}

impl<P: Protocol<Block = Block>> Shared<P> {
    /// One look; true also of a node that has ended.
    fn has_delivered(&self) -> bool {
        let Some(mut state) = self.try_lock() else { return false };
        if state.has_finished() {
            return true;
        }
        state.links.now_ns();
        state.links.flush_all();
        self.serve(&mut state);
        let delivered = state.links.has_delivered();
        self.unlock(state);
        delivered
    }
}

//! A node in a program's own event loop, without a thread of ours in between.
//!
//! What you may rely on: from [`Node::arm`] until the loop arms again, whatever changes makes the descriptor readable, also
//! while other threads call or wait: what they take in, the loop is told of. It may be readable in vain. Arming is
//! never needed for correctness of other calls; they take the links back by themselves. One thread at a time is the loop.
//!
//! How it works: arming is what a waiting thread does before it sleeps; only the sleeping is the program's own. If another
//! thread has the links, or takes them, the loop only stays listed, and whoever sees a change rings a bell of the loop's
//! own. The descriptor is an epoll instance of two: the links', and that bell. Other threads, who sleep on the links',
//! so neither take the loop's wake-ups nor are woken by them.
//!
//! ```no_run
//! # use std::os::fd::AsFd;
//! # use musubi_transport::{LinkError, protocol::Protocol, runtime::{Block, Node}};
//! # fn wait_for_readable(_: std::os::fd::BorrowedFd<'_>, _until_ns: u64) {}
//! # fn event_loop<P: Protocol<Block = Block>>(node: &Node<P>) -> Result<(), LinkError> {
//! loop {
//!     // Try everything that is of interest: receive, test requests.
//!     if let Some(until_ns) = node.arm()? {
//!         wait_for_readable(node.as_fd(), until_ns);
//!     }
//! }
//! # }
//! ```

use std::os::fd::{AsFd, BorrowedFd};

use super::bells::silence;
use super::state::{Driver, State};
use super::{Block, Node};
use crate::LinkError;
use crate::protocol::Protocol;

impl<P: Protocol<Block = Block>> AsFd for Node<P> {
    /// Readable once something has come, while the node is armed ([`Node::arm`]). Only to be watched, not read.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.shared.event_loop.descriptor.as_fd()
    }
}

impl<P: Protocol<Block = Block>> Node<P> {
    /// Looks at the links, and lets peers make the descriptor readable from now on. `None` if something has changed since
    /// the last time: look first, then arm again. Otherwise the instant (nanoseconds of [`Node::now_ns`], `u64::MAX` for
    /// none) at which to arm again at the latest.
    ///
    /// # Errors
    /// [`LinkError::Ended`].
    pub fn arm(&self) -> Result<Option<u64>, LinkError> {
        let mut state = self.shared.enter()?;
        silence(&self.shared.event_loop.bell);
        let has_links = state.driver != Driver::Caller;
        if has_links {
            self.shared.serve(&mut state);
        }
        let changes = state.engine.changes();
        let seen = std::mem::replace(&mut state.armed_at, changes);
        let mut armed = None;
        if seen != changes {
            // It looks first.
        } else if !has_links {
            armed = Some(u64::MAX);
        } else {
            armed = sleep_prepared(&mut state);
        }
        state.armed_by = armed.map(|_| std::thread::current().id());
        self.shared.unlock(state);
        Ok(armed)
    }
}

/// Lets peers ring from now on; until when the loop may sleep, unless something came meanwhile.
fn sleep_prepared<P: Protocol<Block = Block>>(state: &mut State<P>) -> Option<u64> {
    let due_ns = state.due_ns();
    if state.prepare_sleep() {
        state.links.finish_sleep();
        return None;
    }
    let until_ns = due_ns.min(state.put_off_ns());
    state.driver = Driver::Loop;
    state.asleep = true;
    state.sleeps += 1;
    state.links.wakes.woken += 1;
    state.sleep_until_ns = until_ns;
    Some(until_ns)
}

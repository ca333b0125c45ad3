//! Threads that wait for what seldom comes: callers, and ends of connections.
//!
//! What you may rely on: such a thread does not sleep on the links, so that a program which polls is not rung for with every frame.
//!
//! How it works: it parks, and whoever looks at the links next, the program or the node's own thread, unparks it.

use std::sync::Arc;
use std::task::{Wake, Waker};
use std::thread::Thread;
use std::time::Duration;

use musubi_vipl::nic::Awaited;
use musubi_vipl::process::Nic;

/// After which time it looks whether it is still wanted.
const LOOK: Duration = Duration::from_millis(200);

struct Unparker(Thread);

impl Wake for Unparker {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Waits until something has come; false if nobody wants it any more, or the NIC is closed.
pub(crate) fn await_that(nic: &Nic, awaited: Awaited, is_wanted: impl Fn() -> bool) -> bool {
    let waker = Waker::from(Arc::new(Unparker(std::thread::current())));
    while is_wanted() {
        match nic.node().wake_when_complete(awaited, &waker) {
            Ok(true) => return true,
            Ok(false) => std::thread::park_timeout(LOOK),
            Err(_) => return false,
        }
    }
    false
}

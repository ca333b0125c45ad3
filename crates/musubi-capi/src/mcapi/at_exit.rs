//! Programs that exit without ending their nodes.
//!
//! What you may rely on: what a program has sent with success arrives also if it exits at once, and whoever sent it
//! something that it has received hears so; as long as it exits by `exit` or by returning from `main`.
//!
//! How it works: a handler of `atexit` lets every node deliver, for at most [`EXIT_TIME`] in all. The nodes stay as they are:
//! other threads may be using them, and handlers that the program registered earlier run later.
//!
//! What it does not do: anything for a process that is killed or calls `_exit`.

use std::sync::Once;
use std::time::Duration;

use musubi_transport::runtime::{Deadline, DeadlineExt};

use super::cancellation::uncancelled;
use super::threads::living;

/// Longest that exiting waits for peers.
const EXIT_TIME: Duration = Duration::from_millis(250);

/// Has the nodes deliver when the program exits; once a program.
pub(crate) fn deliver_at_exit() {
    extern "C" fn at_exit() {
        let deadline = Deadline::after(EXIT_TIME);
        uncancelled(|| living().iter().for_each(|bound| bound.node.deliver(deadline)));
    }
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: the handler is a plain function that lives as long as this library; where the library is unloaded, the
        // system calls it then.
        let _ = unsafe { libc::atexit(at_exit) };
    });
}

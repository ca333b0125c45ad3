//! One lock for tasks that share the ends of a participant, given up while its holder waits for a channel.
//!
//! What you may rely on: at most one task is inside; a holder of low priority inherits that of who waits; a task inside
//! that waits for a channel lets others in meanwhile. So several tasks may use one end: whatever one did before it rests
//! is whole when the next enters (a monitor with one condition, after Hoare, "Monitors", CACM 17(10), 1974).
//!
//! How it works: a mutex of the kernel. [`outside`] is what [`crate::TaskHost`] rests in.
//!
//! What it does not do: guard tasks in Rust that have ends of their own; they do not enter.

use crate::kernel;

/// Enters, waiting for who is inside. Not from inside, where it would wait for itself.
pub fn enter() {
    kernel::musubi_freertos_monitor_enter();
}

/// Leaves. Only from inside.
pub fn leave() {
    kernel::musubi_freertos_monitor_leave();
}

/// Calls `by` outside, wherever the calling task is, and brings it back to where it was.
pub fn outside(by: impl FnOnce()) {
    let is_inside = kernel::musubi_freertos_monitor_is_mine() != 0;
    if is_inside {
        leave();
    }
    by();
    if is_inside {
        enter();
    }
}

//! The scheduler as the C interface sees it (`include/mdcom.h` for C tasks).
//!
//! What you may rely on: any number of C tasks may call, also on one channel; one that waits is blocked in the kernel.
//!
//! How it works: the interface's monitor is [`crate::monitor`], which [`crate::TaskHost`] leaves while a task rests.

use musubi::mdcom::metal::{Inside, Node, System};
use musubi::mdcom::status::Status;

use crate::{Machine, monitor, sleepers, task};

/// The kernel's tasks as callers of the C interface. An image installs one with `musubi::mdcom::metal::install`.
pub struct CTasks {
    /// The machine whose clock the participant's board has.
    pub machine: &'static dyn Machine,
    /// Attaches as a new incarnation, for `mdcom_init`.
    pub attach: fn(Inside<'_>) -> Result<&'static dyn Node, Status>,
}

// SAFETY: the monitor is a mutex of the kernel, which orders what its holders do; `outside`, in which the boards rest, takes
// it again before it returns. A task is its control block's address.
unsafe impl System for CTasks {
    fn attach(&self, inside: Inside<'_>) -> Result<&'static dyn Node, Status> {
        (self.attach)(inside)
    }

    fn enter(&self) {
        monitor::enter();
    }

    fn leave(&self) {
        monitor::leave();
    }

    fn task(&self) -> usize {
        task::current() as usize
    }

    fn wake(&self) {
        sleepers::wake_all();
    }

    fn sleep_until(&self, at_ns: u64) {
        let ns = at_ns.saturating_sub(self.machine.now_ns());
        task::delay(ns.div_ceil(task::TICK_NS).clamp(1, u64::from(sleepers::SLEEP_TICKS_MAX)) as u32);
    }
}

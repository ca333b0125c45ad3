//! The core's waiting in mapped memory, as this scheduler does it.
//!
//! What you may rely on: a task that waits is blocked in the kernel, whatever the others do; it is woken by the doorbell's
//! interrupt, or where there is none by the idle task's look; its deadline is kept within a tick.
//!
//! How it works: [`Host::rest`] is [`sleep`] with the monitor given up meanwhile.
//!
//! What it does not do: tell the participants of a ring. The image gives [`crate::on_ring`] their `wake`; without it a ring
//! between a task's last look and its sleep is found at the next look only.

use musubi_core::mapped::Host;
use musubi_core::port::Coherence;

use crate::{Machine, monitor, sleep, sleepers, task};

/// The host of a participant, whose threads are tasks of this kernel. Memory is coherent or uncached.
#[derive(Clone, Copy)]
pub struct TaskHost {
    /// The machine that the kernel is started with.
    pub machine: &'static dyn Machine,
    /// Whether all participants read the machine's clock.
    pub has_common_clock: bool,
    /// Rings a participant, by its number in the plan; never waits.
    pub ring: fn(u16),
}

impl Coherence for TaskHost {}

impl Host for TaskHost {
    fn now_ns(&self) -> u64 {
        self.machine.now_ns()
    }

    fn has_common_clock(&self) -> bool {
        self.has_common_clock
    }

    fn ring(&self, participant: u16) {
        (self.ring)(participant);
    }

    fn can_be_woken(&self) -> bool {
        self.machine.has_interrupts()
    }

    fn rest(&self, until_ns: u64, still_needed: &dyn Fn() -> bool) {
        let ns = until_ns.saturating_sub(self.now_ns());
        if ns == 0 {
            return;
        }
        if task::is_running() {
            monitor::outside(|| sleep(ns, still_needed));
        } else {
            core::hint::spin_loop();
        }
    }

    fn rouse(&self) {
        if task::is_running() {
            sleepers::wake_all();
        }
    }
}

//! Tasks that sleep until a doorbell rings or a time has passed: the core's waiting as this scheduler does it.
//!
//! What you may rely on: a doorbell that rings after the caller's last look ends the sleep; several tasks sleep at once;
//! no sleep is longer than [`SLEEP_TICKS_MAX`], so even a doorbell that hardware lost costs no more than that.
//!
//! How it works: a task enters itself in a table, looks whether what it waits for is still missing, and blocks on its
//! notification 1, which counts: a ring between look and block ends the block at once. The doorbell's interrupt notifies
//! every task in the table, and each looks for itself. On a core without interrupts the idle task notifies them each
//! time round: it runs only when all others are blocked, so the looks cost nobody time.
//!
//! What it does not do: know which channel a doorbell was for. A board rings one line for all of them.

use core::cell::UnsafeCell;

use crate::kernel::{self, Handle};
use crate::{critical, task};

/// Most tasks that sleep at once. One more sleeps tick by tick.
pub const SLEEPERS_MAX: usize = 16;
/// Longest sleep before the next look, in ticks.
pub const SLEEP_TICKS_MAX: u32 = 1_000;

/// The tasks. Written by tasks in critical sections, read in interrupts and in critical sections.
struct Table(UnsafeCell<[Option<Handle>; SLEEPERS_MAX]>);

// SAFETY: one core; tasks change it with interrupts masked, so nobody sees half a change.
unsafe impl Sync for Table {}

static TABLE: Table = Table(UnsafeCell::new([None; SLEEPERS_MAX]));

/// Blocks the calling task until a doorbell, at most `ns` nanoseconds and one tick, unless `look` says at the beginning
/// that nothing is missing. May return early; the caller looks again.
pub fn sleep(ns: u64, look: &dyn Fn() -> bool) {
    let entry = enter(task::current());
    // What came before the entry is seen by the look; what comes after it notifies.
    kernel::musubi_freertos_forget();
    if look() {
        let ticks = if entry.is_some() { ns.div_ceil(task::TICK_NS).clamp(1, u64::from(SLEEP_TICKS_MAX)) } else { 1 };
        kernel::musubi_freertos_sleep(ticks as u32);
    }
    leave(entry);
}

fn enter(task: Handle) -> Option<usize> {
    critical::section(|| {
        let table = TABLE.0.get();
        // SAFETY: interrupts are masked, so nobody else has the table.
        let entries = unsafe { &mut *table };
        let free = entries.iter().position(Option::is_none)?;
        entries[free] = Some(task);
        Some(free)
    })
}

fn leave(entry: Option<usize>) {
    critical::section(|| {
        let table = TABLE.0.get();
        // SAFETY: interrupts are masked, so nobody else has the table.
        let entries = unsafe { &mut *table };
        if let Some(place) = entry.and_then(|index| entries.get_mut(index)) {
            *place = None;
        }
    });
}

/// The task at this place.
fn at(index: usize) -> Option<Handle> {
    let table = TABLE.0.get();
    // SAFETY: in an interrupt or a critical section: no change is under way.
    let entries = unsafe { &*table };
    entries.get(index).copied().flatten()
}

/// Wakes every sleeper, from a task: for what other tasks of this core did.
pub fn wake_all() {
    for index in 0..SLEEPERS_MAX {
        if let Some(task) = critical::section(|| at(index)) {
            // SAFETY: a task that sleeps is alive. One that has left the table meanwhile only looks once more.
            unsafe { kernel::musubi_freertos_wake(task) };
        }
    }
}

/// A doorbell rang: wakes every sleeper. In an interrupt only.
pub(crate) fn wake_all_from_interrupt() {
    let mut switches = false;
    for task in (0..SLEEPERS_MAX).filter_map(at) {
        // SAFETY: a task in the table is alive, as it takes itself out.
        switches |= unsafe { kernel::musubi_freertos_wake_from_interrupt(task) } != 0;
    }
    if switches {
        // SAFETY: we are in an interrupt.
        unsafe { kernel::musubi_freertos_switch_from_interrupt() };
    }
}

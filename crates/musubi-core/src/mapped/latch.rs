//! A latch for state that a participant's threads and its beat share.
//!
//! What you may rely on: [`Latch::try_lock`] never waits, so a handler may use it; it is held for a bounded number of
//! steps and never across a wait.
//!
//! What it does not do: fairness. There are two that want it: the one thread that uses an end, and the beat, which only
//! tries. Nor does it lend priority: a thread that finds it held rests [`REST_NS`] at a time (where a scheduler counts in
//! ticks, a tick). So where priorities preempt, the beat belongs in a tick's handler or in a task that no busy one preempts.

use core::cell::UnsafeCell;
use core::ops::{Deref, DerefMut};

use super::Host;
use crate::sync::{AtomicU32, Ordering};

/// Looks before a thread that found the latch held lets others run.
const LOOKS: u32 = 64;
/// How long it then rests, in nanoseconds.
const REST_NS: u64 = 20_000;

/// A value that one at a time may use.
#[derive(Debug)]
pub struct Latch<T> {
    taken: AtomicU32,
    value: UnsafeCell<T>,
}

// SAFETY: the value is reached through a guard only, of which there is one at a time.
unsafe impl<T: Send> Sync for Latch<T> {}

/// The right to use the value.
#[derive(Debug)]
pub struct Guard<'l, T>(&'l Latch<T>);

impl<T> Latch<T> {
    /// The value, with nobody using it.
    pub fn new(value: T) -> Self {
        Latch { taken: AtomicU32::new(0), value: UnsafeCell::new(value) }
    }

    /// Takes the latch if nobody has it.
    pub fn try_lock(&self) -> Option<Guard<'_, T>> {
        (self.taken.swap(1, Ordering::Acquire) == 0).then(|| Guard(self))
    }

    /// Takes the latch; whoever has it lets go soon, once it runs.
    pub fn lock<B: Host>(&self, host: &B) -> Guard<'_, T> {
        loop {
            for _ in 0..LOOKS {
                if let Some(guard) = self.try_lock() {
                    return guard;
                }
                core::hint::spin_loop();
            }
            let until_ns = host.now_ns().saturating_add(REST_NS);
            host.rest(until_ns, &|| self.taken.load(Ordering::Relaxed) != 0);
        }
    }
}

impl<T> Deref for Guard<'_, T> {
    type Target = T;
    fn deref(&self) -> &T {
        // SAFETY: there is one guard, and it is borrowed.
        unsafe { &*self.0.value.get() }
    }
}

impl<T> DerefMut for Guard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: there is one guard, and it is borrowed mutably.
        unsafe { &mut *self.0.value.get() }
    }
}

impl<T> Drop for Guard<'_, T> {
    fn drop(&mut self) {
        self.0.taken.store(0, Ordering::Release);
    }
}

//! Waiting without an operating system: a loop that sleeps until an interrupt.
//!
//! What you may rely on: a core that waits for a message executes WFI and nothing else; a ring or the deadline ends it, and
//! a ring that comes just before the sleep is not lost. The deadline is kept by the core's alarm.
//!
//! How it works: [`Host::rest`] masks interrupts, looks whether a ring has come since the last rest and whether the wait
//! is still needed, and sleeps; a pending interrupt ends WFI while it is masked, and is handled when the mask opens. The
//! program's handler of rings calls [`BareHost::heard`], and where it uses futures, also
//! [`Participant::wake`](musubi_core::mapped::Participant::wake).
//!
//! What it does not do: leave the alarm to the program. Who rests here finds it set or silent afterwards.

use core::marker::PhantomData;
use core::sync::atomic::{AtomicU32, Ordering};

use musubi_core::mapped::Host;
use musubi_core::port::Coherence;

use crate::arch;
use crate::board::Board as _;
use crate::machine::Program;

/// A core of the program `P` as the carrier of a participant. One for each core that carries some.
#[derive(Debug)]
pub struct BareHost<P> {
    ring: fn(u16),
    has_common_clock: bool,
    /// Whether a ring has come since the last rest. Writers: the handler of rings to 1, the rest to 0.
    heard: AtomicU32,
    program: PhantomData<fn() -> P>,
}

impl<P> BareHost<P> {
    /// A core that rings participants by `ring` (their numbers in the plan), which must not wait; `has_common_clock` says
    /// whether all participants read this board's clock.
    pub const fn new(ring: fn(u16), has_common_clock: bool) -> Self {
        Self { ring, has_common_clock, heard: AtomicU32::new(0), program: PhantomData }
    }

    /// A ring for a participant of this core has come. For the interrupt's handler, on this core.
    pub fn heard(&self) {
        self.heard.store(1, Ordering::Relaxed);
    }
}

impl<P> Coherence for BareHost<P> {}

impl<P: Program> Host for BareHost<P> {
    fn now_ns(&self) -> u64 {
        P::Board::now_ns()
    }

    fn has_common_clock(&self) -> bool {
        self.has_common_clock
    }

    fn ring(&self, participant: u16) {
        (self.ring)(participant);
    }

    fn can_be_woken(&self) -> bool {
        true
    }

    fn rest(&self, until_ns: u64, still_needed: &dyn Fn() -> bool) {
        let before = arch::mask();
        let was_heard = self.heard.swap(0, Ordering::Relaxed) != 0;
        if !was_heard && still_needed() && P::Board::now_ns() < until_ns {
            P::Board::set_alarm(until_ns);
            arch::wait_for_interrupt();
        }
        arch::restore(before);
    }
}

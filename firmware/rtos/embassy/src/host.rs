//! The participant's host: one core with nothing but its interrupts.
//!
//! What you may rely on: a doorbell that rings after the caller's look ends the rest, as interrupts are masked from before
//! the look until the core sleeps, which a pending interrupt ends masked or not.

use core::marker::PhantomData;

use musubi_core::mapped::Host;
use musubi_core::port::Coherence;
use musubi_metal::arch;
use musubi_metal::board::Board;

use crate::clock;

/// A core of the board `B`. Memory is coherent or uncached.
pub struct CoreHost<B> {
    has_common_clock: bool,
    can_be_woken: fn() -> bool,
    ring: fn(u16),
    board: PhantomData<fn() -> B>,
}

impl<B: Board> CoreHost<B> {
    /// With a clock that all participants read or not; whether interrupts reach this core; and what rings a participant.
    pub const fn new(has_common_clock: bool, can_be_woken: fn() -> bool, ring: fn(u16)) -> Self {
        CoreHost { has_common_clock, can_be_woken, ring, board: PhantomData }
    }
}

impl<B: Board> Coherence for CoreHost<B> {}

impl<B: Board> Host for CoreHost<B> {
    fn now_ns(&self) -> u64 {
        B::now_ns()
    }

    fn has_common_clock(&self) -> bool {
        self.has_common_clock
    }

    fn ring(&self, participant: u16) {
        (self.ring)(participant);
    }

    fn can_be_woken(&self) -> bool {
        (self.can_be_woken)()
    }

    fn rest(&self, until_ns: u64, still_needed: &dyn Fn() -> bool) {
        rest::<B>(until_ns.min(clock::next_ns()), still_needed);
    }
}

/// Sleeps until an interrupt or this instant, if it is still needed. A core that polls looks once at what there is.
pub(crate) fn rest<B: Board>(until_ns: u64, still_needed: &dyn Fn() -> bool) {
    let before = arch::mask();
    if still_needed() {
        B::set_alarm(until_ns);
        arch::wait_for_interrupt();
    }
    arch::restore(before);
}

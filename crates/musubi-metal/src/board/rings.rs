//! Rings and alarms by an Arm generic interrupt controller: what boards with one have in common.
//!
//! What you may rely on: what is accepted is completed; an alarm that went off is silent until it is set again. An interrupt of
//! the alarm that is not due, an edge that the controller has kept from an earlier one, is no event.
//!
//! What it does not do: find out which bit of the controller a core has. Here it is the core's number, which is not so for
//! cores that share a controller with others.

use super::Event;
use crate::dispatch;
use crate::interrupt::gic::Gic;
use crate::registers::Window;

/// The software generated interrupt of rings.
const RING: u32 = 0;
/// Interrupts that one call of [`accept`] looks at before it gives up: stale alarms are no events.
const LOOKS_MAX: usize = 4;

/// Rings a core.
pub(super) fn ring(gic: &Gic<Window>, hardware: usize) {
    // The number is below 16, so it is never refused.
    let _ = gic.send(RING, 1 << hardware);
}

/// A device's interrupt was taken: what its source needs to be silent comes first.
pub(super) fn device(number: u32) -> Event {
    dispatch::SILENCE.call(number);
    Event::Device(number)
}

/// Accepts this core's most urgent interrupt. That of number `alarm` is its alarm, which `take_alarm` silences if it is due.
pub(super) fn accept(gic: &Gic<Window>, alarm: u32, take_alarm: impl Fn() -> bool) -> Option<Event> {
    for _ in 0..LOOKS_MAX {
        let taken = gic.take()?;
        let event = match taken.number() {
            RING => Some(Event::Ring),
            number if number == alarm => take_alarm().then_some(Event::Alarm),
            number => Some(device(number)),
        };
        gic.complete(taken);
        if event.is_some() {
            return event;
        }
    }
    None
}

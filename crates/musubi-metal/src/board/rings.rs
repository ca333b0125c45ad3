//! Rings and alarms by an Arm generic interrupt controller: what boards with one have in common.
//!
//! What you may rely on: what is accepted is completed; an alarm that went off is silent until it is set again.
//!
//! What it does not do: find out which bit of the controller a core has. Here it is the core's number, which is not so for
//! cores that share a controller with others.

use super::Event;
use crate::interrupt::gic::Gic;
use crate::registers::Window;

/// The software generated interrupt of rings.
const RING: u32 = 0;

/// Rings a core.
pub(super) fn ring(gic: &Gic<Window>, hardware: usize) {
    // The number is below 16, so it is never refused.
    let _ = gic.send(RING, 1 << hardware);
}

/// Accepts this core's most urgent interrupt. That of number `alarm` is its alarm, which `silence` silences.
pub(super) fn accept(gic: &Gic<Window>, alarm: u32, silence: impl FnOnce()) -> Option<Event> {
    let taken = gic.take()?;
    let event = match taken.number() {
        RING => Event::Ring,
        number if number == alarm => {
            silence();
            Event::Alarm
        }
        number => Event::Device(number),
    };
    gic.complete(taken);
    Some(event)
}

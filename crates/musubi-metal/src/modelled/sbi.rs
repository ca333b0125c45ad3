//! Rings between harts through the firmware of RISC-V.
//!
//! How it works: RISC-V Supervisor Binary Interface specification 1.0, chapter 7: `send_ipi` (extension "sPI") makes the
//! supervisor software interrupt of a hart pending; the hart takes it back by clearing `sip.SSIP` and lets it interrupt by
//! `sie.SSIE` (privileged specification, 12.1.3).
//!
//! What it does not do: tell ringers apart; there is one bit a hart.

use crate::doorbell::DoorbellDevice;
use crate::registers::before_device;

/// The firmware and the registers of this hart, as the bell needs them.
pub trait Firmware {
    /// Asks for a software interrupt of a hart. Gives the firmware's answer: whether there is such a hart.
    fn send_ipi(&self, hart: u32) -> bool;
    /// Whether this hart's software interrupt is pending.
    fn is_pending(&self) -> bool;
    /// Takes a pending one back.
    fn clear(&self);
    /// Lets the software interrupt reach this hart, or not.
    fn enable(&self, enabled: bool);
}

/// This hart's end.
#[derive(Debug)]
pub struct SbiIpi<F>(F);

impl<F: Firmware> SbiIpi<F> {
    /// The end over this firmware; disarmed.
    pub fn new(firmware: F) -> Self {
        firmware.enable(false);
        Self(firmware)
    }
}

impl<F: Firmware> DoorbellDevice for SbiIpi<F> {
    /// `target` is the hart's number.
    fn ring(&self, target: u32) -> bool {
        before_device();
        self.0.send_ipi(target)
    }

    fn take(&self) -> u32 {
        let rung = self.0.is_pending();
        if rung {
            self.0.clear();
        }
        before_device();
        u32::from(rung)
    }

    fn arm(&self) {
        self.0.enable(true);
    }

    fn disarm(&self) {
        self.0.enable(false);
    }
}

#[cfg(test)]
mod tests {
    use core::cell::Cell;

    use super::*;
    use crate::doorbell::conformance::{Pair, check};

    #[derive(Default)]
    struct Hart {
        pending: Cell<bool>,
        enabled: Cell<bool>,
    }

    /// The firmware as hart `own` sees it.
    struct Model<'m> {
        harts: &'m [Hart; 2],
        own: usize,
    }

    impl Firmware for Model<'_> {
        fn send_ipi(&self, hart: u32) -> bool {
            self.harts.get(hart as usize).map(|hart| hart.pending.set(true)).is_some()
        }
        fn is_pending(&self) -> bool {
            self.harts[self.own].pending.get()
        }
        fn clear(&self) {
            self.harts[self.own].pending.set(false);
        }
        fn enable(&self, enabled: bool) {
            self.harts[self.own].enabled.set(enabled);
        }
    }

    #[test]
    fn it_is_a_bell() {
        let harts = [Hart::default(), Hart::default()];
        check(&Pair {
            ringer: SbiIpi::new(Model { harts: &harts, own: 0 }),
            rung: SbiIpi::new(Model { harts: &harts, own: 1 }),
            target: 1,
            told: 1,
            interrupted: &|| harts[1].pending.get() && harts[1].enabled.get(),
        });
    }

    #[test]
    fn an_absent_hart_is_reported() {
        let harts = [Hart::default(), Hart::default()];
        assert!(!SbiIpi::new(Model { harts: &harts, own: 0 }).ring(2));
    }
}

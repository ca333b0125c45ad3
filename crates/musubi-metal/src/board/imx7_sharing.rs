//! What the Cortex-A7 and the Cortex-M4 of an i.MX 7Dual need before either touches the Messaging Unit or the semaphores: clocks, and
//! the right to.
//!
//! What you may rely on: a register of a device whose clock is off hangs the bus, and one that the resource domain controller keeps
//! from a processor is an abort; after [`open`] gave true, neither happens. A permission that somebody has locked is not written.
//!
//! How it works: each clock gate is a register with two bits a domain, set by writing ones at an offset of 4 (IMX7DRM, chapter
//! CCM; U-Boot, `arch/arm/mach-imx/mx7/clock_slice.c`). Gates 38, 39 and 40 are those of the resource domain controller, the
//! Messaging Unit and SEMA4; the peripherals' entries are 74, 75 and 76 (NXP's FreeRTOS BSP for i.MX7D 1.0.1, `ccm_imx7d.h` and
//! `rdc_defs_imx7d.h`). The semaphores of this chapter lie at 0x30AC_0000; those at 0x303B_0000 and 0x303C_0000 are the RDC's own.
//!
//! What it does not do: assign the Cortex-M4 to a domain. It is in domain 0 after reset, as NXP's demos for U-Boot expect it in
//! domain 1; entries here allow both. On i.MX 6SoloX the entries are 72 (SEMA4), 73 and 75 (MU), at another address; no board here
//! has that chip.

use crate::registers::Registers;

/// First gate, and bytes from one to the next; what is written at `SET` is set.
const GATES: usize = 0x4000;
const GATE_BYTES: usize = 0x10;
const SET: usize = 4;
/// Clocks needed always, for each of four domains.
const ALWAYS: u32 = 0x3333;
/// Gates: resource domain controller, Messaging Unit, SEMA4.
const RDC_GATE: usize = 38;
const GATES_USED: [usize; 3] = [RDC_GATE, 39, 40];

/// First peripheral's permission, four bytes each.
const PERMISSIONS: usize = 0x400;
/// A permission that nobody can change until reset.
const LOCKED: u32 = 1 << 31;
/// Domains 0 and 1 may write and read.
const BOTH: u32 = 0b1111;
/// Peripherals: both sides of the Messaging Unit, SEMA4.
const SHARED: [usize; 3] = [74, 75, 76];

/// Switches the clocks on and lets domains 0 and 1 use the devices. Gives whether they may.
pub fn open(ccm: &impl Registers, rdc: &impl Registers) -> bool {
    for gate in GATES_USED {
        ccm.write_u32(GATES + gate * GATE_BYTES + SET, ALWAYS);
    }
    let allowed = SHARED.iter().filter(|peripheral| allow(rdc, PERMISSIONS + 4 * **peripheral));
    allowed.count() == SHARED.len()
}

fn allow(rdc: &impl Registers, register: usize) -> bool {
    let before = rdc.read_u32(register);
    if before & BOTH != BOTH && before & LOCKED == 0 {
        rdc.write_u32(register, before | BOTH);
    }
    rdc.read_u32(register) & BOTH == BOTH
}

#[cfg(test)]
mod tests {
    use core::cell::{Cell, RefCell};
    use std::collections::BTreeMap;

    use super::*;

    /// The chip: gates by number, and permissions that can be read and written only while the controller's clock runs.
    #[derive(Default)]
    struct Chip {
        gates: RefCell<BTreeMap<usize, u32>>,
        permissions: RefCell<BTreeMap<usize, u32>>,
        hung: Cell<bool>,
    }

    struct Ccm<'c>(&'c Chip);
    struct Rdc<'c>(&'c Chip);

    impl Chip {
        fn runs(&self, gate: usize) -> bool {
            self.gates.borrow().get(&gate).is_some_and(|value| value & 0x3333 == 0x3333)
        }
        fn may(&self, peripheral: usize, domain: usize) -> bool {
            self.permissions.borrow()[&peripheral] >> (2 * domain) & 0b11 == 0b11
        }
    }

    impl Registers for Ccm<'_> {
        fn write_u32(&self, offset: usize, value: u32) {
            assert_eq!(offset % 16, 4, "the register that sets");
            *self.0.gates.borrow_mut().entry((offset - 0x4000) / 16).or_default() |= value;
        }
        fn read_u32(&self, _: usize) -> u32 {
            panic!("nothing is read")
        }
    }

    impl Registers for Rdc<'_> {
        fn read_u32(&self, offset: usize) -> u32 {
            self.0.hung.set(self.0.hung.get() || !self.0.runs(38));
            self.0.permissions.borrow().get(&((offset - 0x400) / 4)).copied().unwrap_or(0)
        }
        fn write_u32(&self, offset: usize, value: u32) {
            self.0.hung.set(self.0.hung.get() || !self.0.runs(38));
            let mut permissions = self.0.permissions.borrow_mut();
            let entry = permissions.entry((offset - 0x400) / 4).or_default();
            if *entry & LOCKED == 0 {
                *entry = value;
            }
        }
    }

    #[test]
    fn clocks_run_before_the_controller_is_touched_and_both_domains_may() {
        let chip = Chip::default();
        assert!(open(&Ccm(&chip), &Rdc(&chip)));
        assert!(!chip.hung.get() && chip.runs(39) && chip.runs(40));
        for peripheral in [74, 75, 76] {
            assert!(chip.may(peripheral, 0) && chip.may(peripheral, 1));
        }
    }

    #[test]
    fn what_somebody_locked_is_said_and_not_fought() {
        let chip = Chip::default();
        chip.permissions.borrow_mut().insert(75, LOCKED | 0b11);
        assert!(!open(&Ccm(&chip), &Rdc(&chip)));
        assert!(chip.may(74, 1) && !chip.may(75, 1) && chip.may(76, 1));
    }
}

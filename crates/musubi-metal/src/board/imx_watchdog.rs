//! The watchdog of i.MX6 as the way to reset the chip.
//!
//! How it works: erratum ERR004346 (IMX6DQCE): the request of a reset (WCR.SRS, active low) is taken only if it is written twice
//! within one period of the 32 kHz clock. Three writes in a row leave two of them in one period wherever its edge falls; Linux does
//! the same (`drivers/watchdog/imx2_wdt.c`). After a reset of the chip a counter of the watchdog switches the board off after 16 s
//! unless WMCR is cleared (i.MX 6Dual/6Quad reference manual, chapter WDOG), which a boot loader does, and so does [`hold`].

use crate::registers::Registers;

/// Control register, miscellaneous control register.
const WCR: usize = 0x00;
const WMCR: usize = 0x08;
/// WCR: the watchdog is on, its external line idle (active low); SRS, at bit 4, is low: reset now.
const RESET_NOW: u16 = 1 << 5 | 1 << 2;
/// Writes of the request.
const WRITES: u32 = 3;

/// Keeps the watchdog from switching the board off.
pub fn hold(watchdog: &impl Registers) {
    watchdog.write_u16(WMCR, 0);
}

/// Resets the chip.
pub fn reset(watchdog: &impl Registers) {
    (0..WRITES).for_each(|_| watchdog.write_u16(WCR, RESET_NOW));
}

#[cfg(test)]
mod tests {
    use core::cell::Cell;

    use super::*;

    /// The watchdog of the erratum: the clock's edge falls before the write number `edge`.
    struct Model {
        edge: u32,
        writes: Cell<u32>,
        in_period: Cell<u32>,
        is_reset: Cell<bool>,
    }

    impl Registers for Model {
        fn write_u16(&self, offset: usize, value: u16) {
            assert!(offset == WCR && value & 1 << 4 == 0, "a request of a reset");
            self.writes.set(self.writes.get() + 1);
            self.in_period.set(if self.writes.get() == self.edge { 1 } else { self.in_period.get() + 1 });
            self.is_reset.set(self.is_reset.get() || self.in_period.get() >= 2);
        }
        fn read_u16(&self, _: usize) -> u16 {
            panic!("nothing is read")
        }
        fn read_u8(&self, _: usize) -> u8 {
            panic!("half-words only")
        }
        fn read_u32(&self, _: usize) -> u32 {
            panic!("half-words only")
        }
        fn write_u8(&self, _: usize, _: u8) {
            panic!("half-words only")
        }
        fn write_u32(&self, _: usize, _: u32) {
            panic!("half-words only")
        }
    }

    #[test]
    fn it_resets_wherever_the_edge_of_its_clock_falls() {
        for edge in 0..=3 {
            let (writes, in_period, is_reset) = (Cell::new(0), Cell::new(0), Cell::new(false));
            let model = Model { edge, writes, in_period, is_reset };
            reset(&model);
            assert!(model.is_reset.get(), "edge before write {edge}");
        }
    }
}

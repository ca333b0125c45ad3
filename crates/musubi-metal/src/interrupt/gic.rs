//! The ARM Generic Interrupt Controller, architecture version 2, and version 1 as far as it is the same.
//!
//! What you may rely on: every function is a bounded number of register accesses. A number of an interrupt that the
//! controller does not have is refused by `false` or `None`, and nothing is written. Nothing here masks the core's own
//! interrupts.
//!
//! How it works: names and offsets are those of the architecture specification (ARM IHI 0048B): chapter 4.3 for the
//! distributor, 4.4 for the interface of a core. Interrupts 0 to 15 are software generated (SGI) and 16 to 31 private
//! to a core (PPI); their registers are banked, each core sees its own. From 32 on they are shared (SPI). Registers in
//! which a one sets and a zero does nothing need no lock between cores. Those that are read, changed and written
//! (`edge`) belong to whoever opens the controller; priority and target are byte-wide by clause 4.3.11 and 4.3.12.
//!
//! What it does not do: groups and the Security Extensions. Every interrupt stays in the group of reset and is signalled
//! as IRQ. Virtual interrupts and version 3 are not covered.

use crate::registers::{Registers, before_device};

#[cfg(test)]
pub(crate) mod model;
#[cfg(test)]
mod tests;

/// Bytes of the distributor's registers.
pub const DISTRIBUTOR_BYTES: usize = 0x1000;
/// Bytes of the registers of a core's interface that this driver touches.
pub const INTERFACE_BYTES: usize = 0x100;
/// Software generated interrupts of a core.
pub const SGIS: u32 = 16;
/// Number of the first shared interrupt. The shared interrupt that a board's manual calls n is `FIRST_SHARED + n`.
pub const FIRST_SHARED: u32 = 32;
/// Most interrupts that the architecture can number; the four above are special.
pub const INTERRUPTS_MAX: u32 = 1020;
/// Most cores that one controller serves.
pub const CORES_MAX: usize = 8;
/// Priority that lets every interrupt through when it is a core's threshold.
pub const PRIORITY_LOWEST: u8 = 0xFF;
/// Priority that an interrupt has after [`Gic::open`]: the middle of what the architecture promises (16 levels).
pub const PRIORITY_USUAL: u8 = 0x80;

/// Offsets in the distributor.
mod gicd {
    pub const CTLR: usize = 0x000;
    pub const TYPER: usize = 0x004;
    pub const ISENABLER: usize = 0x100;
    pub const ICENABLER: usize = 0x180;
    pub const ISPENDR: usize = 0x200;
    pub const ICPENDR: usize = 0x280;
    pub const ICACTIVER: usize = 0x380;
    pub const IPRIORITYR: usize = 0x400;
    pub const ITARGETSR: usize = 0x800;
    pub const ICFGR: usize = 0xC00;
    pub const SGIR: usize = 0xF00;
}

/// Offsets in a core's interface.
mod gicc {
    pub const CTLR: usize = 0x00;
    pub const PMR: usize = 0x04;
    pub const BPR: usize = 0x08;
    pub const IAR: usize = 0x0C;
    pub const EOIR: usize = 0x10;
}

/// Bit of both control registers that lets interrupts pass.
const ENABLE: u32 = 1;
/// SGIR's filter "all cores but the one that writes".
const ALL_OTHERS: u32 = 0b01 << 24;
/// Bits of IAR that number the interrupt.
const NUMBER: u32 = 0x3FF;
/// Place in IAR of the core that sent an SGI, and its bits.
const SOURCE_AT: u32 = 10;
const SOURCE: u32 = 0b111;
/// Binary point 3: the four levels that every implementation has are all preemption levels.
const BINARY_POINT: u32 = 3;

/// An interrupt that a core has taken and must [`complete`](Gic::complete).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use = "an interrupt that is not completed blocks all of its priority and below"]
pub struct Taken {
    word: u32,
}

impl Taken {
    /// Number of the interrupt, 0 to 1019.
    pub fn number(self) -> u32 {
        self.word & NUMBER
    }

    /// The controller's number of the core that sent it, for a software generated interrupt.
    pub fn source(self) -> Option<usize> {
        (self.number() < SGIS).then_some((self.word >> SOURCE_AT & SOURCE) as usize)
    }
}

/// A controller: its distributor, and the interface of the core that uses this value (banked at one address).
#[derive(Clone, Copy, Debug)]
pub struct Gic<R> {
    distributor: R,
    interface: R,
}

impl<R: Registers> Gic<R> {
    /// The controller with these registers. Touches nothing.
    pub const fn new(distributor: R, interface: R) -> Self {
        Gic { distributor, interface }
    }

    /// Whether there is a controller at all: an address space without one reads as zero, and a controller with no shared
    /// line and one core is of no use to us.
    pub fn is_present(&self) -> bool {
        self.distributor.read_u32(gicd::TYPER) != 0
    }

    /// One more than the largest number of an interrupt (clause 4.3.2, ITLinesNumber).
    pub fn interrupts(&self) -> u32 {
        let lines = (self.distributor.read_u32(gicd::TYPER) & 0x1F) + 1;
        (lines * 32).min(INTERRUPTS_MAX)
    }

    /// Cores that the controller serves (clause 4.3.2, CPUNumber).
    pub fn cores(&self) -> usize {
        (self.distributor.read_u32(gicd::TYPER) >> 5 & 0b111) as usize + 1
    }

    /// Resets the shared interrupts (off, not pending, usual priority, no target) and lets the distributor forward. Once, by the
    /// core that boots the others; a program that shares the controller with another system calls [`Gic::join`].
    pub fn open(&self) {
        self.distributor.write_u32(gicd::CTLR, 0);
        for word in 1..self.interrupts().div_ceil(32) as usize {
            self.distributor.write_u32(gicd::ICENABLER + 4 * word, !0);
            self.distributor.write_u32(gicd::ICPENDR + 4 * word, !0);
            self.distributor.write_u32(gicd::ICACTIVER + 4 * word, !0);
        }
        for number in FIRST_SHARED..self.interrupts() {
            self.distributor.write_u8(gicd::IPRIORITYR + number as usize, PRIORITY_USUAL);
            self.distributor.write_u8(gicd::ITARGETSR + number as usize, 0);
        }
        self.distributor.write_u32(gicd::CTLR, ENABLE);
    }

    /// Lets the distributor forward, without touching what another system may have set.
    pub fn join(&self) {
        let control = self.distributor.read_u32(gicd::CTLR);
        self.distributor.write_u32(gicd::CTLR, control | ENABLE);
    }

    /// Opens the interface of the core that calls: private interrupts reset, software generated ones enabled, everything
    /// passes. Each core calls it for itself, with its interrupts masked.
    pub fn open_interface(&self) {
        self.interface.write_u32(gicc::CTLR, 0);
        self.distributor.write_u32(gicd::ICENABLER, !0);
        self.distributor.write_u32(gicd::ICPENDR, !0);
        self.distributor.write_u32(gicd::ICACTIVER, !0);
        for number in 0..FIRST_SHARED as usize {
            self.distributor.write_u8(gicd::IPRIORITYR + number, PRIORITY_USUAL);
        }
        self.distributor.write_u32(gicd::ISENABLER, (1 << SGIS) - 1);
        self.interface.write_u32(gicc::PMR, PRIORITY_LOWEST.into());
        self.interface.write_u32(gicc::BPR, BINARY_POINT);
        self.interface.write_u32(gicc::CTLR, ENABLE);
    }

    /// Whether the interface that this core sees is open. A core that finds it so before it has opened it itself has none of its
    /// own: some models give every core that of the first.
    pub fn is_interface_open(&self) -> bool {
        self.interface.read_u32(gicc::CTLR) & ENABLE != 0
    }

    /// Closes the interface of the core that calls: nothing interrupts it any more.
    pub fn close_interface(&self) {
        self.interface.write_u32(gicc::CTLR, 0);
    }

    /// The bit of the core that calls, as targets are given (clause 4.3.12: the banked bytes read as the reader's own bit).
    /// Bytes of interrupts that a controller does not have read zero, so all eight words are looked at, as Linux does
    /// (`drivers/irqchip/irq-gic.c`, gic_get_cpumask). A controller of one core reads zero everywhere.
    pub fn own_bit(&self) -> u8 {
        let words = (0..FIRST_SHARED as usize / 4).map(|word| self.distributor.read_u32(gicd::ITARGETSR + 4 * word));
        match words.fold(0, |bits, word| bits | word) {
            0 => 1,
            bits => bits.to_le_bytes().iter().fold(0, |bits, byte| bits | byte),
        }
    }

    /// Lets an interrupt through. Private ones: for the core that calls.
    pub fn enable(&self, number: u32) -> bool {
        self.set_bit(gicd::ISENABLER, number)
    }

    /// Holds an interrupt back. It can still become pending.
    pub fn disable(&self, number: u32) -> bool {
        self.set_bit(gicd::ICENABLER, number)
    }

    /// Makes a shared or private interrupt pending, as if its source had raised it. What was written to memory before is
    /// visible to whoever takes it. Software generated ones are sent by [`Gic::send`] and refused here.
    pub fn set_pending(&self, number: u32) -> bool {
        before_device();
        number >= SGIS && self.set_bit(gicd::ISPENDR, number)
    }

    /// Takes back that an interrupt is pending.
    pub fn clear_pending(&self, number: u32) -> bool {
        number >= SGIS && self.set_bit(gicd::ICPENDR, number)
    }

    /// Whether an interrupt waits to be taken, enabled or not. How a core without interrupts sees a doorbell.
    pub fn is_pending(&self, number: u32) -> bool {
        let word = number as usize / 32 * 4;
        self.has(number) && self.distributor.read_u32(gicd::ISPENDR + word) & 1 << (number % 32) != 0
    }

    /// Sets an interrupt's priority: smaller is more urgent, and the low four bits may not exist.
    pub fn prioritise(&self, number: u32, priority: u8) -> bool {
        let known = self.has(number);
        if known {
            self.distributor.write_u8(gicd::IPRIORITYR + number as usize, priority);
        }
        known
    }

    /// Sends a shared interrupt to these cores, a bit each (as [`Gic::own_bit`] gives them).
    pub fn target(&self, number: u32, cores: u8) -> bool {
        let known = number >= FIRST_SHARED && self.has(number);
        if known {
            self.distributor.write_u8(gicd::ITARGETSR + number as usize, cores);
        }
        known
    }

    /// Sets whether a shared interrupt is taken at its edge or at its level. While it is disabled; by one core at a time.
    pub fn edge(&self, number: u32, edge: bool) -> bool {
        let known = number >= FIRST_SHARED && self.has(number);
        if known {
            let (at, bit) = (gicd::ICFGR + number as usize / 16 * 4, 0b10 << (number % 16 * 2));
            let word = self.distributor.read_u32(at);
            self.distributor.write_u32(at, if edge { word | bit } else { word & !bit });
        }
        known
    }

    /// Sends a software generated interrupt to these cores, a bit each. What was written to memory before is visible to
    /// whoever takes it. Cores that have it pending from this core already take it once.
    pub fn send(&self, number: u32, cores: u8) -> bool {
        before_device();
        let known = number < SGIS;
        if known {
            self.distributor.write_u32(gicd::SGIR, u32::from(cores) << 16 | number);
        }
        known
    }

    /// Sends a software generated interrupt to all cores but the one that calls, also to those that we do not know.
    pub fn send_to_others(&self, number: u32) -> bool {
        before_device();
        let known = number < SGIS;
        if known {
            self.distributor.write_u32(gicd::SGIR, ALL_OTHERS | number);
        }
        known
    }

    /// Takes the most urgent pending interrupt of this core; `None` if there is none (the spurious number, 1023) or it is
    /// not for us (1022, of the other group).
    pub fn take(&self) -> Option<Taken> {
        let word = self.interface.read_u32(gicc::IAR);
        (word & NUMBER < INTERRUPTS_MAX).then_some(Taken { word })
    }

    /// Completes what [`Gic::take`] gave, in the reverse order of taking.
    pub fn complete(&self, taken: Taken) {
        self.interface.write_u32(gicc::EOIR, taken.word);
    }

    fn has(&self, number: u32) -> bool {
        number < self.interrupts()
    }

    fn set_bit(&self, array: usize, number: u32) -> bool {
        let known = self.has(number);
        if known {
            self.distributor.write_u32(array + number as usize / 32 * 4, 1 << (number % 32));
        }
        known
    }
}

//! Who reaches what on a Zynq UltraScale+: an address is not the same thing to every master.
//!
//! What you may rely on: known from manuals, not tried on a chip. QEMU's model lets every core reach everything.
//!
//! How it works: the Cortex-R5Fs' interrupt controller sits on their own low-latency port; to anybody else its page belongs to
//! something else or to nobody (UG1085, chapter Real-time Processing Unit; AM011, which describes the same subsystem, says "only
//! accessible to the RPU"). The tightly coupled memories are at 0 for their own core only, and at 0xFFE0_0000 for all.

use core::ops::Range;

/// A group of masters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Master {
    /// The Cortex-A53s.
    Apu,
    /// The Cortex-R5Fs.
    Rpu,
}

/// The Cortex-R5Fs' interrupt controller.
const RPU_GIC: Range<u64> = 0xF900_0000..0xF900_2000;
/// Their tightly coupled memories, as each of them sees its own; DDR begins for them behind this.
const OWN_TCM: Range<u64> = 0..0x0010_0000;

const fn holds(range: &Range<u64>, address: u64) -> bool {
    range.start <= address && address < range.end
}

/// Whether a store by `master` to this register reaches the device that the address map names.
pub const fn reaches(master: Master, register: u64) -> bool {
    match master {
        Master::Apu => !holds(&RPU_GIC, register),
        Master::Rpu => !holds(&OWN_TCM, register),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn linux_cannot_ring_at_the_cortex_r5fs_interrupt_controller() {
        assert!(!reaches(Master::Apu, 0xF900_020C));
        assert!(reaches(Master::Rpu, 0xF900_020C) && reaches(Master::Rpu, 0xF901_020C));
    }

    #[test]
    fn both_reach_the_inter_processor_interrupts() {
        for channel in [0xFF30_0000, 0xFF31_0000, 0xFF32_0000, 0xFF34_0000] {
            assert!(reaches(Master::Apu, channel) && reaches(Master::Rpu, channel));
        }
    }
}

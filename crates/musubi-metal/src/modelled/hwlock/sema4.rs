//! The SEMA4 block of i.MX 7Dual and i.MX 6SoloX: sixteen gates between two processors.
//!
//! How it works: i.MX 7Dual Applications Processor Reference Manual, chapter "Semaphores (SEMA4)" (i.MX 6SoloX Reference
//! Manual likewise): a gate is a byte with a state machine of three states, 0 free, 1 locked by processor 0, 2 locked by
//! processor 1. A processor locks by writing its own number plus one and succeeds if the gate then reads so; only the one
//! that locked can free it, by writing 0; every other write is ignored. The block knows the writer by its bus master.
//! A gate whose holder has died is reset by writing `0xE2` and then `0x1D` with the gate's number to `RSTGT`.
//!
//! To be tried first on a board: a header for Vybrid, whose block is alike, numbers the gates 3, 2, 1, 0 in each word. Lock gate 5 and
//! read the bytes 4 to 7, then reset gate 5: if byte 6 answers, gates here are to be numbered `n ^ 3`.
//!
//! What it does not do: switch the block's clock on or let both processors use it ([`crate::board::imx7_sharing`]; the block is the one
//! at 0x30AC_0000). Use the block's interrupts on release (`CPnINE`); sections here are shorter than an interrupt.
//! Tested against a model only: QEMU does not model the block.

use super::HardwareLock;
use crate::registers::{Registers, before_device};

/// Reset gate register.
const RSTGT: usize = 0x100;
/// First and second word of the reset sequence.
const RESET_BEGIN: u16 = 0xE2;
const RESET_END: u16 = 0x1D;
/// The reset state machine, as read: 0 when no sequence is under way.
const RESET_STATE: u16 = 0x30;

/// Gates of a block.
pub const GATES: usize = 16;
/// The two processors: 0 is the Cortex-A, 1 the Cortex-M.
pub const PROCESSORS: u32 = 2;
/// How often the reset is begun anew if another sequence comes in between.
const RESET_TRIES: u32 = 3;

/// One gate, as one processor sees it. Writer of the gate: whoever holds it; the block sees to that.
#[derive(Debug)]
pub struct Gate<R> {
    registers: R,
    gate: usize,
    processor: u32,
}

impl<R: Registers> Gate<R> {
    /// Gate `gate` of the block with these registers, for `processor`, on which this program must run; `None` if there is
    /// no such gate or processor.
    pub fn new(registers: R, gate: usize, processor: u32) -> Option<Self> {
        (gate < GATES && processor < PROCESSORS).then_some(Self { registers, gate, processor })
    }

    /// The gate's state for a holder.
    fn locked_by(processor: u32) -> u8 {
        processor as u8 + 1
    }

    fn state(&self) -> u8 {
        self.registers.read_u8(self.gate) & 0b11
    }

    /// One reset sequence; gives whether the gate is free afterwards.
    fn reset_once(&self) -> bool {
        if self.registers.read_u16(RSTGT) & RESET_STATE != 0 {
            return false;
        }
        self.registers.write_u16(RSTGT, RESET_BEGIN);
        self.registers.write_u16(RSTGT, (self.gate as u16) << 8 | RESET_END);
        self.state() == 0
    }
}

impl<R: Registers> HardwareLock for Gate<R> {
    fn try_lock(&mut self) -> bool {
        // Looking first tells a gate that this processor holds already from one that it gets.
        if self.state() != 0 {
            return false;
        }
        let mine = Self::locked_by(self.processor);
        self.registers.write_u8(self.gate, mine);
        let locked = self.state() == mine;
        before_device();
        locked
    }

    fn unlock(&mut self) -> bool {
        let holds = self.state() == Self::locked_by(self.processor);
        if holds {
            // What was written inside is visible before the gate opens.
            before_device();
            self.registers.write_u8(self.gate, 0);
        }
        holds
    }

    fn holder(&self) -> Option<u32> {
        match self.state() {
            state @ 1..=2 => Some(u32::from(state) - 1),
            _ => None,
        }
    }

    fn free_from_dead(&mut self, party: u32) -> bool {
        self.holder() == Some(party) && party != self.processor && (0..RESET_TRIES).any(|_| self.reset_once())
    }
}

#[cfg(test)]
mod tests {
    use core::cell::Cell;

    use super::*;

    /// The block, from the manual.
    struct Model {
        gates: [Cell<u8>; GATES],
        /// The reset's state machine: 0 idle, 1 first word seen, with the master that wrote it.
        reset: Cell<(u16, u32)>,
    }

    /// The block as a bus master sees it.
    struct View<'m> {
        model: &'m Model,
        master: u32,
    }

    impl Model {
        fn new() -> Self {
            Model { gates: core::array::from_fn(|_| Cell::new(0)), reset: Cell::new((0, 0)) }
        }
        fn gate(&self, gate: usize, processor: u32) -> Gate<View<'_>> {
            Gate::new(View { model: self, master: processor }, gate, processor).unwrap()
        }
    }

    impl Registers for View<'_> {
        fn read_u8(&self, offset: usize) -> u8 {
            self.model.gates[offset].get()
        }
        fn write_u8(&self, offset: usize, value: u8) {
            let (gate, mine) = (&self.model.gates[offset], self.master as u8 + 1);
            match (gate.get(), value) {
                (0, value) if value == mine => gate.set(mine),
                (held, 0) if held == mine => gate.set(0),
                _ => {}
            }
        }
        fn read_u16(&self, offset: usize) -> u16 {
            assert_eq!(offset, RSTGT);
            let (state, master) = self.model.reset.get();
            state << 4 | master as u16
        }
        fn write_u16(&self, offset: usize, value: u16) {
            assert_eq!(offset, RSTGT);
            match (self.model.reset.get(), value & 0xFF) {
                ((0, _), 0xE2) => self.model.reset.set((1, self.master)),
                ((1, master), 0x1D) if master == self.master => {
                    let number = usize::from(value >> 8);
                    let all = number >= 64;
                    let gates = self.model.gates.iter().enumerate();
                    gates.filter(|(n, _)| all || *n == number).for_each(|(_, gate)| gate.set(0));
                    self.model.reset.set((0, 0));
                }
                _ => self.model.reset.set((0, 0)),
            }
        }
        fn read_u32(&self, _: usize) -> u32 {
            panic!("gates are bytes")
        }
        fn write_u32(&self, _: usize, _: u32) {
            panic!("gates are bytes")
        }
    }

    #[test]
    fn one_at_a_time_and_only_the_holder_frees() {
        let model = Model::new();
        let (mut a, mut m) = (model.gate(5, 0), model.gate(5, 1));
        assert!(a.try_lock() && !m.try_lock() && !a.try_lock());
        assert_eq!((a.holder(), m.holder()), (Some(0), Some(0)));
        assert!(!m.unlock() && a.unlock() && !a.unlock());
        assert!(m.try_lock() && !a.try_lock() && m.unlock());
        assert_eq!(a.holder(), None);
    }

    #[test]
    fn gates_are_independent() {
        let model = Model::new();
        assert!(model.gate(0, 0).try_lock() && model.gate(1, 1).try_lock());
        assert_eq!((model.gate(0, 1).holder(), model.gate(1, 0).holder()), (Some(0), Some(1)));
    }

    #[test]
    fn a_gate_that_the_dead_left_locked_is_reset_and_no_other() {
        let model = Model::new();
        let (mut a, mut m) = (model.gate(5, 0), model.gate(5, 1));
        assert!(m.try_lock() && model.gate(6, 1).try_lock());
        assert!(!a.free_from_dead(0), "the living do not hold it");
        assert!(a.free_from_dead(1) && a.try_lock());
        assert_eq!(model.gate(6, 0).holder(), Some(1), "the other gate keeps its holder");
        assert!(!m.free_from_dead(1), "not from ourselves");
    }

    #[test]
    fn a_reset_sequence_of_the_other_is_not_disturbed() {
        let model = Model::new();
        let mut a = model.gate(5, 0);
        assert!(model.gate(5, 1).try_lock());
        model.reset.set((1, 1));
        assert!(!a.free_from_dead(1), "under way; try again later");
        assert_eq!(model.reset.get(), (1, 1));
        model.reset.set((0, 0));
        assert!(a.free_from_dead(1));
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let model = Model::new();
        let view = || View { model: &model, master: 0 };
        assert!(Gate::new(view(), GATES, 0).is_none() && Gate::new(view(), 0, PROCESSORS).is_none());
    }
}

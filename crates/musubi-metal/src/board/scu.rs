//! The snoop control unit of a Cortex-A9 MPCore: what keeps the first-level caches of its cores alike.
//!
//! What you may rely on: [`open`] may be called again, by a program that begins anew with the unit on; its tags are emptied
//! only while it is off.
//!
//! Source: Cortex-A9 MPCore manual (DDI 0407), chapter 2.2. Bit 0 of the register at 0x30 works around erratum 764369 (a
//! maintenance operation that another core's fetch overtakes), set before the unit is on, as Linux does
//! (`arch/arm/kernel/smp_scu.c`).

use crate::registers::Registers;

/// Control, configuration, invalidation of all tags, auxiliary control.
const CONTROL: usize = 0x00;
const CONFIGURATION: usize = 0x04;
const INVALIDATE_ALL: usize = 0x0C;
const AUXILIARY: usize = 0x30;
/// CONTROL: on.
const ENABLE: u32 = 1;
/// INVALIDATE_ALL: every way of every core.
const ALL_WAYS: u32 = 0xFFFF;
/// AUXILIARY: the work-around.
const ERRATUM_764369: u32 = 1;

/// Empties the tags and switches the unit on, if it is off.
pub fn open(scu: &impl Registers) {
    let auxiliary = scu.read_u32(AUXILIARY);
    if auxiliary & ERRATUM_764369 == 0 {
        scu.write_u32(AUXILIARY, auxiliary | ERRATUM_764369);
    }
    let control = scu.read_u32(CONTROL);
    if control & ENABLE == 0 {
        scu.write_u32(INVALIDATE_ALL, ALL_WAYS);
        scu.write_u32(CONTROL, control | ENABLE);
    }
}

/// Cores of the cluster.
pub fn cores(scu: &impl Registers) -> usize {
    (scu.read_u32(CONFIGURATION) & 0b11) as usize + 1
}

#[cfg(test)]
mod tests {
    use core::cell::Cell;

    use super::*;

    /// The unit with four cores: tags are undefined after reset, and kept while it is on.
    #[derive(Default)]
    struct Model {
        control: Cell<u32>,
        auxiliary: Cell<u32>,
        tags_are_clean: Cell<bool>,
        emptied_while_on: Cell<bool>,
        on_without_work_around: Cell<bool>,
    }

    impl Registers for Model {
        fn read_u32(&self, offset: usize) -> u32 {
            match offset {
                0x00 => self.control.get(),
                0x04 => 0xF3,
                0x30 => self.auxiliary.get(),
                _ => panic!("read {offset:#x}"),
            }
        }
        fn write_u32(&self, offset: usize, value: u32) {
            match offset {
                0x00 => {
                    self.on_without_work_around.set(value & 1 != 0 && self.auxiliary.get() & 1 == 0);
                    self.control.set(value);
                }
                0x0C => {
                    self.emptied_while_on.set(self.control.get() & 1 != 0);
                    self.tags_are_clean.set(value == 0xFFFF);
                }
                0x30 => self.auxiliary.set(value),
                _ => panic!("write {offset:#x}"),
            }
        }
    }

    #[test]
    fn it_is_emptied_worked_around_and_then_switched_on_once() {
        let model = Model::default();
        open(&model);
        assert!(model.tags_are_clean.get() && model.control.get() & 1 == 1 && !model.on_without_work_around.get());
        model.tags_are_clean.set(false);
        open(&model);
        assert!(!model.emptied_while_on.get() && !model.tags_are_clean.get(), "a unit that is on keeps its tags");
        assert_eq!(cores(&model), 4);
    }
}

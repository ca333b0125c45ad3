//! The second-level cache controller of Cortex-A9 chips (PL310, L2C-310), as far as memory that is not cached is concerned.
//!
//! What you may rely on: memory that the map calls [`Shared`](super::MemoryKind::Shared) is in no second-level cache: the
//! controller is off, as here, or it is told to believe the map.
//!
//! How it works: unless bit 22 of its auxiliary control register (shared attribute override) is set, the controller treats
//! Normal shareable non-cacheable accesses as cacheable without allocation (L2C-310 manual, DDI 0246, clause 2.3.2): an
//! access that finds the line in the cache gets the cache's copy, which no other master sees. Linux sets the bit too
//! (`arch/arm/mm/cache-l2x0.c`, `arm,shared-override`). The register may be written only while the controller is off.
//!
//! What it does not do: switch the cache on.

use crate::registers::Registers;

const CONTROL: usize = 0x100;
const AUXILIARY: usize = 0x104;
/// CONTROL: on.
const ENABLE: u32 = 1;
/// AUXILIARY: the attributes of shared memory are taken as they are.
const SHARED_OVERRIDE: u32 = 1 << 22;

/// Tells the controller to believe the map, if it is off. Gives whether memory that is not cached is safe from it.
pub fn respect_shared(controller: &impl Registers) -> bool {
    let auxiliary = controller.read_u32(AUXILIARY);
    if controller.read_u32(CONTROL) & ENABLE != 0 {
        return auxiliary & SHARED_OVERRIDE != 0;
    }
    controller.write_u32(AUXILIARY, auxiliary | SHARED_OVERRIDE);
    true
}

#[cfg(test)]
mod tests {
    use core::cell::Cell;

    use super::*;

    /// The controller: one memory word that another master has changed behind a line that the cache holds.
    struct Model {
        on: bool,
        auxiliary: Cell<u32>,
        cached: u32,
        memory: u32,
    }

    impl Model {
        fn new(on: bool) -> Self {
            Model { on, auxiliary: Cell::new(0x0207_0000), cached: 1, memory: 2 }
        }
        /// A read with the attributes Normal, shareable, not cacheable.
        fn read_shared(&self, on: bool) -> u32 {
            if on && self.auxiliary.get() & 1 << 22 == 0 { self.cached } else { self.memory }
        }
    }

    impl Registers for Model {
        fn read_u32(&self, offset: usize) -> u32 {
            match offset {
                0x100 => self.on.into(),
                0x104 => self.auxiliary.get(),
                _ => panic!("read {offset:#x}"),
            }
        }
        fn write_u32(&self, offset: usize, value: u32) {
            assert!(offset == 0x104 && !self.on, "the register is written while the controller is off");
            self.auxiliary.set(value);
        }
    }

    #[test]
    fn what_another_master_wrote_is_seen_once_the_cache_is_switched_on() {
        let model = Model::new(false);
        assert!(respect_shared(&model));
        assert_eq!(model.read_shared(true), 2);
        assert_eq!(model.auxiliary.get() & !(1 << 22), 0x0207_0000, "the other bits stay");
    }

    #[test]
    fn a_cache_that_somebody_else_switched_on_is_told_of_and_not_touched() {
        let model = Model::new(true);
        assert!(!respect_shared(&model));
        assert_eq!(model.read_shared(true), 1);
        model.auxiliary.set(1 << 22);
        assert!(respect_shared(&model));
    }
}

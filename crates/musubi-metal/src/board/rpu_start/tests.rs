//! The list against a model of the chip, and every other order of it.

use core::cell::{Cell, RefCell};
use std::string::String;
use std::vec::Vec;

use super::*;

/// What a core is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Core {
    /// In reset.
    Reset,
    /// Out of reset and halted: its memories answer.
    Halted,
    /// It fetches from 0.
    Runs,
}

/// The low-power domain as far as the Cortex-R5Fs go (UG1087), and what goes wrong on a chip in the wrong order.
struct Chip {
    power: Cell<u32>,
    requested: Cell<u32>,
    enabled: Cell<u32>,
    global: Cell<u32>,
    config: [Cell<u32>; 2],
    clock: Cell<u32>,
    settled: Cell<bool>,
    reset: Cell<u32>,
    core: [Cell<Core>; 2],
    faults: RefCell<Vec<String>>,
    /// Reads of the status until the power is up.
    slowness: Cell<u32>,
}

impl Chip {
    fn new() -> Self {
        Chip {
            power: Cell::new(0),
            requested: Cell::new(0),
            enabled: Cell::new(0),
            // Values of reset: clamped, in lock step, not halted, high vectors, all in reset, no clock.
            global: Cell::new(1 << 4 | 1 << 6),
            config: [const { Cell::new(1 << 2 | 1) }; 2],
            clock: Cell::new(0),
            settled: Cell::new(false),
            reset: Cell::new(0b111),
            core: [const { Cell::new(Core::Reset) }; 2],
            faults: RefCell::default(),
            slowness: Cell::new(3),
        }
    }

    fn fault(&self, what: &str) {
        self.faults.borrow_mut().push(what.into());
    }

    fn leaves_reset(&self, core: usize) {
        let memories = 0b11 << (12 + 2 * core);
        let expect = |holds: bool, what: &str| {
            if !holds {
                self.fault(what)
            }
        };
        expect(self.power.get() & 1 << 10 != 0, "released from reset without power");
        expect(self.power.get() & memories == memories, "its memories have no power");
        expect(self.clock.get() & 1 << 24 != 0, "released from reset without a clock");
        expect(self.settled.get(), "the clock has not settled");
        expect(self.global.get() & (1 << 3 | 1 << 4 | 1 << 6) == 1 << 3, "in lock step");
        expect(self.config[core].get() & 1 << 2 == 0, "it would begin at 0xffff0000");
        let runs = self.config[core].get() & 1 != 0;
        expect(!runs, "runs before its memory was loaded");
        self.core[core].set(if runs { Core::Runs } else { Core::Halted });
    }

    fn write(&self, block: Block, at: usize, value: u32) {
        match (block, at) {
            (Block::Pmu, REQ_PWRUP_INT_EN) => self.enabled.set(self.enabled.get() | value),
            (Block::Pmu, REQ_PWRUP_TRIG) => self.requested.set(self.requested.get() | value & self.enabled.get()),
            (Block::Rpu, RPU_GLBL_CNTL) => self.global.set(value),
            (Block::Rpu, 0x100 | 0x200) => {
                let core = at / 0x100 - 1;
                if self.power.get() & 1 << 10 == 0 {
                    self.fault("configured without power");
                }
                let starts = value & 1 != 0 && self.core[core].get() == Core::Halted;
                self.config[core].set(value);
                if starts {
                    self.core[core].set(Core::Runs);
                }
            }
            (Block::Crl, CPU_R5_CTRL) => self.clock.set(value),
            (Block::Crl, RST_LPD_TOP) => {
                let (before, after) = (self.reset.replace(value), value);
                let is_out = |word: u32, core: usize| word & (1 << core | 1 << 2) == 0;
                (0..2)
                    .filter(|&core| !is_out(before, core) && is_out(after, core))
                    .for_each(|core| self.leaves_reset(core));
            }
            _ => panic!("write of {block:?} {at:#x}"),
        }
    }

    fn read(&self, block: Block, at: usize) -> u32 {
        match (block, at) {
            (Block::Pmu, REQ_PWRUP_STATUS) => {
                if self.slowness.get() > 0 {
                    self.slowness.set(self.slowness.get() - 1);
                } else {
                    self.power.set(self.power.get() | self.requested.replace(0));
                }
                self.requested.get()
            }
            (Block::Rpu, RPU_GLBL_CNTL) => self.global.get(),
            (Block::Rpu, 0x100 | 0x200) => self.config[at / 0x100 - 1].get(),
            (Block::Crl, CPU_R5_CTRL) => self.clock.get(),
            (Block::Crl, RST_LPD_TOP) => self.reset.get(),
            _ => panic!("read of {block:?} {at:#x}"),
        }
    }

    fn run(&self, steps: &[Step]) -> Result<(), Step> {
        let blocks = [Block::Rpu, Block::Crl, Block::Pmu].map(|block| View { chip: self, block });
        let of = |block| blocks.iter().find(|view| view.block == block).expect("each block is there");
        run(steps, of, || self.settled.set(self.clock.get() & 1 << 24 != 0))
    }
}

struct View<'c> {
    chip: &'c Chip,
    block: Block,
}

impl Registers for View<'_> {
    fn read_u32(&self, offset: usize) -> u32 {
        self.chip.read(self.block, offset)
    }
    fn write_u32(&self, offset: usize, value: u32) {
        self.chip.write(self.block, offset, value);
    }
}

#[test]
fn each_core_halts_for_its_loader_and_runs_then() {
    for core in 0..2 {
        let chip = Chip::new();
        assert_eq!(chip.run(steps(core, Stage::Memory)), Ok(()));
        assert_eq!((chip.core[core].get(), chip.core[1 - core].get()), (Core::Halted, Core::Reset));
        assert_eq!(chip.run(steps(core, Stage::Go)), Ok(()));
        assert_eq!((chip.core[core].get(), chip.faults.borrow().as_slice()), (Core::Runs, [].as_slice()));
    }
}

#[test]
fn the_second_core_does_not_disturb_the_first() {
    let chip = Chip::new();
    for stage in [Stage::Memory, Stage::Go] {
        assert_eq!(chip.run(steps(0, stage)), Ok(()));
    }
    for stage in [Stage::Memory, Stage::Go] {
        assert_eq!(chip.run(steps(1, stage)), Ok(()));
    }
    assert_eq!(chip.core.each_ref().map(Cell::get), [Core::Runs; 2]);
    assert!(chip.faults.borrow().is_empty(), "{:?}", chip.faults);
}

/// Whether both stages as one list leave the core running with nothing wrong on the way.
fn starts(list: &[Step]) -> bool {
    let chip = Chip::new();
    chip.run(list).is_ok() && chip.core[0].get() == Core::Runs && chip.faults.borrow().is_empty()
}

#[test]
fn a_list_that_lacks_a_step_does_not_start_a_core() {
    let whole: Vec<Step> = [Stage::Memory, Stage::Go].iter().flat_map(|stage| steps(0, *stage)).copied().collect();
    assert!(starts(&whole));
    for left_out in 0..whole.len() {
        let mut list = whole.clone();
        let step = list.remove(left_out);
        assert!(!starts(&list), "without {step:?}");
    }
}

#[test]
fn another_order_of_power_halt_clock_and_reset_is_refused() {
    let whole: Vec<Step> = [Stage::Memory, Stage::Go].iter().flat_map(|stage| steps(0, *stage)).copied().collect();
    let place = |wanted: fn(&Step) -> bool| whole.iter().position(wanted).expect("the step is in the list");
    let power = place(|step| matches!(step, Step::UntilClear(..)));
    let halt = place(|step| matches!(step, Step::Change(Block::Rpu, RPU_0_CFG, _, 0)));
    let clock = place(|step| matches!(step, Step::Change(Block::Crl, CPU_R5_CTRL, ..)));
    let reset = place(|step| matches!(step, Step::Change(Block::Crl, RST_LPD_TOP, ..)));
    let go = whole.len() - 1;
    for (a, b) in [(power, halt), (power, reset), (halt, reset), (clock, reset), (halt, go), (reset, go)] {
        let mut list = whole.clone();
        list.swap(a, b);
        assert!(!starts(&list), "{:?} and {:?} change places", whole[a], whole[b]);
    }
}

#[test]
fn power_that_never_comes_ends_the_wait() {
    let chip = Chip::new();
    chip.slowness.set(u32::MAX);
    assert!(matches!(chip.run(steps(0, Stage::Memory)), Err(Step::UntilClear(Block::Pmu, ..))));
    assert_eq!(chip.core[0].get(), Core::Reset);
}

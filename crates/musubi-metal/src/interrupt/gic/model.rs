//! A model of the controller, written from the architecture specification (ARM IHI 0048B) and from nothing of the driver.
//!
//! How it works: clause 3.2.4 (states inactive, pending, active, active and pending), 3.3 (preemption: a pending interrupt
//! is signalled if its priority is above the threshold and above the group priority of what runs), 4.4.4 and 4.4.5
//! (acknowledge and end of interrupt), 1.4.2 (an edge is latched until the interrupt is taken; a level is pending as long as its
//! line is high, so an interrupt whose device is not told to be silent comes again at once). Priorities have four bits, the fewest that an implementation may have.

use core::cell::RefCell;

use crate::registers::Registers;

pub const CORES: usize = 4;
const INTERRUPTS: usize = 96;
const SPURIOUS: u32 = 1023;
const IDLE: u8 = 0xFF;

/// An interrupt as one core sees it; shared ones use the entry of core 0 only.
#[derive(Clone, Copy, Default)]
struct Line {
    enabled: bool,
    pending: bool,
    active: bool,
    priority: u8,
    /// Cores that sent it, a bit each (SGI).
    sources: u8,
    /// The device holds its line high.
    high: bool,
}

#[derive(Clone, Copy)]
struct Interface {
    enabled: bool,
    threshold: u8,
    binary_point: u32,
    /// What runs, innermost last: acknowledge words, with the priority.
    running: [(u32, u8); 8],
    depth: usize,
}

struct State {
    forwarding: bool,
    lines: [[Line; INTERRUPTS]; CORES],
    targets: [u8; INTERRUPTS],
    config: [u32; INTERRUPTS / 16],
    interfaces: [Interface; CORES],
    /// Interrupts below are not implemented: their bytes and bits read as zero.
    first: usize,
    /// Ends of interrupts that did not match what ran innermost: unpredictable on hardware, an error of the driver.
    bad_ends: usize,
}

pub struct Model(RefCell<State>);

/// Distributor as one core sees it.
#[derive(Clone, Copy)]
pub struct View<'a> {
    model: &'a Model,
    core: usize,
    distributor: bool,
}

impl Model {
    pub fn new() -> Self {
        let interface =
            Interface { enabled: false, threshold: 0, binary_point: 0, running: [(SPURIOUS, IDLE); 8], depth: 0 };
        Model(RefCell::new(State {
            forwarding: false,
            lines: [[Line::default(); INTERRUPTS]; CORES],
            targets: [0; INTERRUPTS],
            config: [0; INTERRUPTS / 16],
            interfaces: [interface; CORES],
            first: 0,
            bad_ends: 0,
        }))
    }

    pub fn distributor(&self, core: usize) -> View<'_> {
        View { model: self, core, distributor: true }
    }

    pub fn interface(&self, core: usize) -> View<'_> {
        View { model: self, core, distributor: false }
    }

    /// A controller whose first private interrupts do not exist.
    pub fn without_first(first: usize) -> Self {
        let model = Model::new();
        model.0.borrow_mut().first = first;
        model
    }

    /// A device drives the line of a shared interrupt.
    pub fn drive(&self, number: usize, high: bool) {
        let mut state = self.0.borrow_mut();
        let rises = high && !state.line(0, number).high;
        let by_edge = state.config[number / 16] >> (number % 16 * 2 + 1) & 1 != 0;
        let line = state.line(0, number);
        line.high = high;
        line.pending |= rises && by_edge;
    }

    pub fn bad_ends(&self) -> usize {
        self.0.borrow().bad_ends
    }
}

impl State {
    fn line(&mut self, core: usize, number: usize) -> &mut Line {
        &mut self.lines[if number < 32 { core } else { 0 }][number]
    }

    fn bits(&mut self, core: usize, word: usize, of: impl Fn(&Line) -> bool) -> u32 {
        (0..32).filter(|bit| of(self.line(core, 32 * word + bit))).map(|bit| 1 << bit).sum()
    }

    /// Whether a shared interrupt is pending because its line is high and it is taken by its level.
    fn by_level(&self, number: usize) -> bool {
        number >= 32 && self.lines[0][number].high && self.config[number / 16] >> (number % 16 * 2 + 1) & 1 == 0
    }

    fn levels(&self, word: usize) -> u32 {
        (0..32).filter(|bit| self.by_level(32 * word + bit)).map(|bit| 1 << bit).sum()
    }

    fn change(&mut self, core: usize, word: usize, value: u32, to: impl Fn(&mut Line, usize)) {
        for bit in (0..32).filter(|bit| value & 1 << bit != 0) {
            let number = 32 * word + bit;
            to(self.line(core, number), number);
        }
    }

    fn distributor_read(&mut self, core: usize, offset: usize) -> u32 {
        match offset {
            0x000 => self.forwarding.into(),
            0x004 => (CORES as u32 - 1) << 5 | (INTERRUPTS as u32 / 32 - 1),
            0x100..0x10C => self.bits(core, (offset - 0x100) / 4, |line| line.enabled),
            0x200..0x20C => {
                let word = (offset - 0x200) / 4;
                let levels = self.levels(word);
                levels | self.bits(core, word, |line| line.pending || line.sources != 0)
            }
            0x800..0x820 => {
                let own = |byte: usize| if offset - 0x800 + byte < self.first { 0 } else { 1 << core };
                u32::from_le_bytes(core::array::from_fn(own))
            }
            0x300..0x30C => self.bits(core, (offset - 0x300) / 4, |line| line.active),
            0xC00..0xC18 => self.config[(offset - 0xC00) / 4],
            _ => panic!("read of distributor {offset:#x}"),
        }
    }

    fn distributor_write(&mut self, core: usize, offset: usize, value: u32) {
        let shared_or_private = |number: usize| number >= 16;
        match offset {
            0x000 => self.forwarding = value & 1 != 0,
            0x100..0x10C => self.change(core, (offset - 0x100) / 4, value, |line, _| line.enabled = true),
            0x180..0x18C => self.change(core, (offset - 0x180) / 4, value, |line, _| line.enabled = false),
            // Clause 4.3.7: SGI bits are read-only here.
            0x200..0x20C => self.change(core, (offset - 0x200) / 4, value, |line, number| {
                line.pending |= shared_or_private(number);
            }),
            0x280..0x28C => self.change(core, (offset - 0x280) / 4, value, |line, number| {
                line.pending &= !shared_or_private(number);
            }),
            0x380..0x38C => self.change(core, (offset - 0x380) / 4, value, |line, _| line.active = false),
            0xC00..0xC04 => {}
            0xC04..0xC18 => self.config[(offset - 0xC00) / 4] = value,
            0xF00 => self.send(core, value),
            _ => panic!("write of distributor {offset:#x}"),
        }
    }

    fn send(&mut self, from: usize, value: u32) {
        let list = match value >> 24 & 0b11 {
            0 => value >> 16 & 0xFF,
            1 => !(1 << from),
            2 => 1 << from,
            _ => panic!("reserved filter"),
        };
        for core in (0..CORES).filter(|core| list & 1 << core != 0) {
            self.lines[core][value as usize & 0xF].sources |= 1 << from;
        }
    }

    /// Group priority: the bits above the binary point.
    fn group(interface: &Interface, priority: u8) -> u8 {
        priority & (0xFF_u32 << (interface.binary_point + 1)) as u8
    }

    /// Priority of an interrupt that this core could take.
    fn waiting(&self, core: usize, number: usize) -> Option<u8> {
        let private = number < 32;
        let line = &self.lines[if private { core } else { 0 }][number];
        let here = private || self.targets[number] & 1 << core != 0;
        let waits = line.pending || line.sources != 0 || self.by_level(number);
        (here && waits && line.enabled && !line.active).then_some(line.priority)
    }

    fn acknowledge(&mut self, core: usize) -> u32 {
        let interface = self.interfaces[core];
        let running = if interface.depth == 0 { 0x100 } else { interface.running[interface.depth - 1].1.into() };
        let best = (0..INTERRUPTS).filter_map(|number| Some((self.waiting(core, number)?, number))).min();
        let best = best.map(|(_, number)| number);
        let Some(number) = best.filter(|_| self.forwarding && interface.enabled) else { return SPURIOUS };
        let line = self.line(core, number);
        let group = Self::group(&interface, line.priority);
        if line.priority >= interface.threshold || u16::from(group) >= running {
            return SPURIOUS;
        }
        let source = line.sources.trailing_zeros();
        let word = if number < 16 { source << 10 | number as u32 } else { number as u32 };
        line.active = true;
        line.pending = false;
        if number < 16 {
            line.sources &= !(1 << source);
        }
        let interface = &mut self.interfaces[core];
        interface.running[interface.depth] = (word, group);
        interface.depth += 1;
        word
    }

    fn end(&mut self, core: usize, word: u32) {
        let interface = &mut self.interfaces[core];
        if interface.depth == 0 || interface.running[interface.depth - 1].0 != word {
            self.bad_ends += 1;
            return;
        }
        interface.depth -= 1;
        self.line(core, word as usize & 0x3FF).active = false;
    }

    fn interface_write(&mut self, core: usize, offset: usize, value: u32) {
        match offset {
            0x00 => self.interfaces[core].enabled = value & 1 != 0,
            0x04 => self.interfaces[core].threshold = value as u8 & 0xF0,
            0x08 => self.interfaces[core].binary_point = value.max(3),
            0x10 => self.end(core, value),
            _ => panic!("write of interface {offset:#x}"),
        }
    }
}

impl Registers for View<'_> {
    fn read_u8(&self, offset: usize) -> u8 {
        let mut state = self.model.0.borrow_mut();
        match offset {
            0x400..0x460 => state.line(self.core, offset - 0x400).priority,
            0x800..0x820 => {
                if offset - 0x800 < state.first {
                    0
                } else {
                    1 << self.core
                }
            }
            0x820..0x860 => state.targets[offset - 0x800],
            _ => panic!("byte read {offset:#x}"),
        }
    }

    fn write_u8(&self, offset: usize, value: u8) {
        let mut state = self.model.0.borrow_mut();
        match offset {
            0x400..0x460 => state.line(self.core, offset - 0x400).priority = value & 0xF0,
            0x800..0x820 => {}
            0x820..0x860 => state.targets[offset - 0x800] = value,
            _ => panic!("byte write {offset:#x}"),
        }
    }

    fn read_u32(&self, offset: usize) -> u32 {
        let mut state = self.model.0.borrow_mut();
        match (self.distributor, offset) {
            (true, _) => state.distributor_read(self.core, offset),
            (false, 0x00) => state.interfaces[self.core].enabled.into(),
            (false, 0x0C) => state.acknowledge(self.core),
            (false, _) => panic!("read of interface {offset:#x}"),
        }
    }

    fn write_u32(&self, offset: usize, value: u32) {
        let mut state = self.model.0.borrow_mut();
        match self.distributor {
            true => state.distributor_write(self.core, offset, value),
            false => state.interface_write(self.core, offset, value),
        }
    }

    fn read_u16(&self, offset: usize) -> u16 {
        panic!("no register is 16 bits wide: {offset:#x}")
    }

    fn write_u16(&self, offset: usize, _: u16) {
        panic!("no register is 16 bits wide: {offset:#x}")
    }
}

//! A model of the block, from UG1085 and UG1087: all masked after reset, a level each, cleared by writing ones.

use core::cell::RefCell;
use std::collections::BTreeMap;

use super::{AGENTS, Agent, IDR, IER, IMR, ISR, OBS, TRIG};
use crate::registers::Registers;

/// The block, from UG1085 and UG1087: `ISR` and mask of each agent, by the number of its bit.
#[derive(Default)]
pub struct Model {
    pub isr: RefCell<BTreeMap<u32, u32>>,
    unmasked: RefCell<BTreeMap<u32, u32>>,
}

/// The registers of one agent.
pub struct View<'m> {
    model: &'m Model,
    agent: u32,
}

impl Model {
    pub fn of(&self, agent: Agent) -> View<'_> {
        View { model: self, agent: agent as u32 }
    }

    pub fn interrupts(&self, agent: Agent) -> bool {
        let isr = self.isr.borrow().get(&(agent as u32)).copied().unwrap_or(0);
        isr & self.unmasked.borrow().get(&(agent as u32)).copied().unwrap_or(0) != 0
    }
}

impl Registers for View<'_> {
    fn read_u32(&self, offset: usize) -> u32 {
        let isr = self.model.isr.borrow();
        let own = |map: &BTreeMap<u32, u32>| map.get(&self.agent).copied().unwrap_or(0);
        match offset {
            OBS => isr.iter().filter(|(_, v)| **v & 1 << self.agent != 0).map(|(k, _)| 1 << k).sum(),
            ISR => own(&isr),
            IMR => !own(&self.model.unmasked.borrow()) & AGENTS,
            _ => panic!("reading {offset:#x} is not defined"),
        }
    }
    fn write_u32(&self, offset: usize, value: u32) {
        assert_eq!(value & !AGENTS, 0, "reserved bits are written as zero");
        let mut isr = self.model.isr.borrow_mut();
        let mut unmasked = self.model.unmasked.borrow_mut();
        match offset {
            TRIG => {
                for agent in (0..32).filter(|agent| value & 1 << agent != 0) {
                    *isr.entry(agent).or_default() |= 1 << self.agent;
                }
            }
            ISR => *isr.entry(self.agent).or_default() &= !value,
            IER => *unmasked.entry(self.agent).or_default() |= value,
            IDR => *unmasked.entry(self.agent).or_default() &= !value,
            _ => panic!("writing {offset:#x} is not defined"),
        }
    }
}

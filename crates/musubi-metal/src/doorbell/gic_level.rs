//! Rings by a mailbox block whose interrupt is a level of a GICv2, such as ZynqMP's inter-processor interrupts: the bell between
//! cores under different controllers of which neither reaches the other's.
//!
//! What you may rely on: the block is acknowledged in [`GicLevel::note`], which the handler calls before it unmasks interrupts, so a level
//! interrupts once a ring and not again and again.
//!
//! How it works: a level is pending as long as its line is high (ARM IHI 0048B, 1.4.2), so a ring that was not acknowledged, whatever
//! came in between, interrupts again; as an edge it would be lost until somebody looks. The mailbox is any [`DoorbellDevice`] that is
//! taken by reading and clearing its registers.

use core::sync::atomic::{AtomicU32, Ordering};

use super::DoorbellDevice;
use crate::interrupt::gic::{FIRST_SHARED, Gic};
use crate::registers::Registers;

/// One core's end: the mailbox that it rings with and is rung by, and the controller that its interrupt goes to.
#[derive(Debug)]
pub struct GicLevel<'g, M, R> {
    mailbox: M,
    gic: &'g Gic<R>,
    number: u32,
    /// Who rang, as the mailbox says, and was acknowledged but not taken yet. Writers: this core's handler and whoever takes on it.
    rung: AtomicU32,
}

impl<'g, M: DoorbellDevice, R: Registers> GicLevel<'g, M, R> {
    /// The end over a mailbox whose level is interrupt `number` of `gic`; `None` if that is not a shared one. The controller
    /// delivers it where [`Gic::target`] says. Disarmed.
    pub fn new(mailbox: M, gic: &'g Gic<R>, number: u32) -> Option<Self> {
        let is_shared = number >= FIRST_SHARED && gic.disable(number) && gic.edge(number, false);
        is_shared.then(|| {
            mailbox.disarm();
            Self { mailbox, gic, number, rung: AtomicU32::new(0) }
        })
    }

    /// The handler has been interrupted by a device of this number. Gives whether it was this bell, which is acknowledged then.
    pub fn note(&self, number: u32) -> bool {
        let ours = number == self.number;
        if ours {
            self.rung.fetch_or(self.mailbox.take(), Ordering::Release);
        }
        ours
    }
}

impl<M: DoorbellDevice, R: Registers> DoorbellDevice for GicLevel<'_, M, R> {
    fn ring(&self, target: u32) -> bool {
        self.mailbox.ring(target)
    }

    fn take(&self) -> u32 {
        self.rung.swap(0, Ordering::AcqRel) | self.mailbox.take()
    }

    fn arm(&self) {
        self.gic.enable(self.number);
        self.mailbox.arm();
    }

    fn disarm(&self) {
        self.mailbox.disarm();
        self.gic.disable(self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doorbell::conformance::{Pair, check};
    use crate::doorbell::zynqmp_ipi::model::Model as Block;
    use crate::doorbell::zynqmp_ipi::{Agent, ZynqmpIpi};
    use crate::interrupt::gic::model::{Model, View};

    /// Interrupt of the first Cortex-R5F's mailbox.
    const RPU0: u32 = 65;

    fn opened(model: &Model) -> Gic<View<'_>> {
        let gic = Gic::new(model.distributor(0), model.interface(0));
        gic.open();
        gic.open_interface();
        gic.target(RPU0, 1);
        gic
    }

    #[test]
    fn a_mailbox_is_a_bell_through_the_controller() {
        let (block, model) = (Block::default(), Model::new());
        let gic = opened(&model);
        let linux = ZynqmpIpi::new(block.of(Agent::Pl0), Agent::Rpu0.bit());
        let r5 = GicLevel::new(ZynqmpIpi::new(block.of(Agent::Rpu0), Agent::Pl0.bit()), &gic, RPU0).unwrap();
        let interrupted = || {
            model.drive(RPU0 as usize, block.interrupts(Agent::Rpu0));
            let Some(taken) = gic.take() else { return false };
            gic.complete(taken);
            let ours = r5.note(taken.number());
            model.drive(RPU0 as usize, block.interrupts(Agent::Rpu0));
            ours
        };
        check(&Pair {
            ringer: linux,
            rung: &r5,
            target: Agent::Rpu0 as u32,
            told: Agent::Pl0.bit(),
            interrupted: &interrupted,
        });
        assert_eq!(model.bad_ends(), 0);
    }

    #[test]
    fn nothing_comes_until_it_is_armed_and_no_storm_then() {
        let (block, model) = (Block::default(), Model::new());
        let gic = opened(&model);
        let linux = ZynqmpIpi::new(block.of(Agent::Pl0), Agent::Rpu0.bit());
        let r5 = GicLevel::new(ZynqmpIpi::new(block.of(Agent::Rpu0), Agent::Pl0.bit()), &gic, RPU0).unwrap();
        assert!(linux.ring(Agent::Rpu0 as u32));
        model.drive(RPU0 as usize, block.interrupts(Agent::Rpu0));
        assert!(gic.take().is_none(), "masked after reset, at the block and at the controller");
        r5.arm();
        let storm = (0..10).take_while(|_| {
            model.drive(RPU0 as usize, block.interrupts(Agent::Rpu0));
            let taken = gic.take();
            if let Some(taken) = taken {
                gic.complete(taken);
                r5.note(taken.number());
            }
            taken.is_some()
        });
        assert_eq!((storm.count(), r5.take()), (1, Agent::Pl0.bit()));
    }

    #[test]
    fn a_ring_whose_handler_did_not_acknowledge_it_interrupts_again() {
        let (block, model) = (Block::default(), Model::new());
        let gic = opened(&model);
        let linux = ZynqmpIpi::new(block.of(Agent::Pl0), Agent::Rpu0.bit());
        let r5 = GicLevel::new(ZynqmpIpi::new(block.of(Agent::Rpu0), Agent::Pl0.bit()), &gic, RPU0).unwrap();
        r5.arm();
        assert!(linux.ring(Agent::Rpu0 as u32));
        model.drive(RPU0 as usize, block.interrupts(Agent::Rpu0));
        let first = gic.take().expect("rung");
        gic.complete(first);
        let again = gic.take().expect("the line is still high");
        gic.complete(again);
        assert!(r5.note(again.number()) && r5.take() == Agent::Pl0.bit());
    }

    #[test]
    fn what_is_no_shared_interrupt_is_refused_and_others_are_not_ours() {
        let (block, model) = (Block::default(), Model::new());
        let gic = opened(&model);
        let mailbox = || ZynqmpIpi::new(block.of(Agent::Rpu0), Agent::Pl0.bit());
        assert!(GicLevel::new(mailbox(), &gic, 31).is_none() && GicLevel::new(mailbox(), &gic, 96).is_none());
        assert!(!GicLevel::new(mailbox(), &gic, RPU0).unwrap().note(66));
    }
}

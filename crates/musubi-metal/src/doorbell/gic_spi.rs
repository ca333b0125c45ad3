//! Rings by making an unused shared interrupt of a GICv2 pending: the bell between cores under different controllers, or
//! towards Linux, which takes it as an ordinary interrupt of a device.
//!
//! How it works: ARM IHI 0048B, 4.3.7 and 4.3.8: a set-pending bit can be written by software; the interrupt then comes as
//! if a device had raised an edge. The ringer needs the distributor of the rung core's controller in its memory map (on
//! QEMU's ZynqMP: APU at 0xF901_0000, RPU at 0xF900_0000; on the chip nobody but the RPU reaches the latter, see
//! [`crate::board::zynqmp_map`]). A core that polls clears the pending bit itself.
//!
//! What it does not do: tell ringers apart; each direction has a number of its own.

use core::sync::atomic::{AtomicU32, Ordering};

use super::DoorbellDevice;
use crate::interrupt::gic::{FIRST_SHARED, Gic};
use crate::registers::{Registers, before_device};

/// One core's end: the controller that it rings at, and the one that it is rung by.
#[derive(Debug)]
pub struct GicSpi<'g, R> {
    theirs: &'g Gic<R>,
    /// The controller that rings us, and the number there; none for an end that only rings.
    ours: Option<(&'g Gic<R>, u32)>,
    /// 1 once the handler has taken a ring. Writers: this core's handler and whoever takes on it.
    noted: AtomicU32,
}

impl<'g, R: Registers> GicSpi<'g, R> {
    /// Rings shared interrupts of `theirs`, is rung by interrupt `number` of `ours`; `None` if that is not a shared one.
    /// The controller delivers it where [`Gic::target`] says. Disarmed.
    pub fn new(theirs: &'g Gic<R>, ours: &'g Gic<R>, number: u32) -> Option<Self> {
        let is_shared = number >= FIRST_SHARED && ours.edge(number, true);
        is_shared.then(|| {
            ours.disable(number);
            Self { theirs, ours: Some((ours, number)), noted: AtomicU32::new(0) }
        })
    }

    /// Rings shared interrupts of `theirs` and is rung by nothing: the end of a core that polls memory.
    pub fn that_only_rings(theirs: &'g Gic<R>) -> Self {
        Self { theirs, ours: None, noted: AtomicU32::new(0) }
    }

    /// The handler has taken an interrupt of this number. Gives whether it was this bell.
    pub fn note(&self, number: u32) -> bool {
        let ours = self.ours.is_some_and(|(_, own)| own == number);
        if ours {
            self.noted.store(1, Ordering::Release);
        }
        ours
    }
}

impl<R: Registers> DoorbellDevice for GicSpi<'_, R> {
    /// `target` is the interrupt's number at the other controller, 32 or more.
    fn ring(&self, target: u32) -> bool {
        target >= FIRST_SHARED && self.theirs.set_pending(target)
    }

    fn take(&self) -> u32 {
        let mut rung = self.noted.swap(0, Ordering::AcqRel);
        if let Some((gic, number)) = self.ours
            && gic.is_pending(number)
        {
            gic.clear_pending(number);
            rung = 1;
        }
        before_device();
        rung
    }

    fn arm(&self) {
        self.ours.inspect(|(gic, number)| {
            gic.enable(*number);
        });
    }

    fn disarm(&self) {
        self.ours.inspect(|(gic, number)| {
            gic.disable(*number);
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doorbell::conformance::{Pair, check};
    use crate::interrupt::gic::model::{Model, View};

    const BELL: u32 = FIRST_SHARED + 9;

    fn opened(model: &Model) -> Gic<View<'_>> {
        let gic = Gic::new(model.distributor(0), model.interface(0));
        gic.open();
        gic.open_interface();
        gic.target(BELL, 1);
        gic
    }

    /// What the handler of a core does.
    fn handled(gic: &Gic<View<'_>>, bell: &GicSpi<'_, View<'_>>) -> bool {
        let Some(taken) = gic.take() else { return false };
        gic.complete(taken);
        bell.note(taken.number())
    }

    #[test]
    fn it_is_a_bell_between_two_controllers() {
        let models = [Model::new(), Model::new()];
        let (apu, rpu) = (opened(&models[0]), opened(&models[1]));
        let handler = GicSpi::new(&apu, &rpu, BELL).unwrap();
        check(&Pair {
            ringer: GicSpi::new(&rpu, &apu, BELL + 1).unwrap(),
            rung: &handler,
            target: BELL,
            told: 1,
            interrupted: &|| handled(&rpu, &handler),
        });
    }

    #[test]
    fn a_core_without_interrupts_polls() {
        let models = [Model::new(), Model::new()];
        let (apu, rpu) = (opened(&models[0]), opened(&models[1]));
        let (ringer, polls) = (GicSpi::new(&rpu, &apu, BELL).unwrap(), GicSpi::new(&apu, &rpu, BELL).unwrap());
        assert!(ringer.ring(BELL));
        assert_eq!((polls.take(), polls.take()), (1, 0));
        polls.arm();
        assert!(!handled(&rpu, &polls), "what was polled does not interrupt any more");
    }

    #[test]
    fn an_end_that_only_rings_is_never_rung() {
        let models = [Model::new(), Model::new()];
        let (apu, rpu) = (opened(&models[0]), opened(&models[1]));
        let (ringer, rung) = (GicSpi::that_only_rings(&apu), GicSpi::new(&rpu, &apu, BELL).unwrap());
        assert!(ringer.ring(BELL) && rpu.set_pending(BELL));
        ringer.arm();
        assert_eq!((rung.take(), ringer.take(), ringer.note(BELL)), (1, 0, false));
    }

    #[test]
    fn private_and_absent_interrupts_are_refused() {
        let model = Model::new();
        let gic = opened(&model);
        assert!(GicSpi::new(&gic, &gic, 31).is_none() && GicSpi::new(&gic, &gic, 96).is_none());
        let line = GicSpi::new(&gic, &gic, BELL).unwrap();
        assert!(!line.ring(31) && !line.ring(96));
    }
}

//! Rings by software generated interrupts of a GICv2, between cores that share the controller.
//!
//! How it works: ARM IHI 0048B, 4.3.15: writing `GICD_SGIR` makes an interrupt of number 0 to 15 pending at a set of cores,
//! once for each sender; acknowledging it names the sender. The driver of the controller ([`crate::interrupt::gic`])
//! acknowledges, and the handler passes what it took to [`GicSgi::note`].
//!
//! What it does not do: poll. The number of a pending software interrupt can be seen only by acknowledging it, together
//! with every other interrupt; a core without interrupts uses [`crate::doorbell::gic_spi`].

use core::sync::atomic::{AtomicU32, Ordering};

use crate::doorbell::DoorbellDevice;
use crate::interrupt::gic::{CORES_MAX, Gic, SGIS, Taken};
use crate::registers::{Registers, before_device};

/// One core's end.
#[derive(Debug)]
pub struct GicSgi<'g, R> {
    gic: &'g Gic<R>,
    number: u32,
    /// Cores that rang, a bit each. Writers: this core's handler and whoever takes on it.
    rung: AtomicU32,
}

impl<'g, R: Registers> GicSgi<'g, R> {
    /// The end of this core, over software interrupt `number`; `None` if there is none such. Disarmed.
    pub fn new(gic: &'g Gic<R>, number: u32) -> Option<Self> {
        (number < SGIS).then(|| {
            gic.disable(number);
            Self { gic, number, rung: AtomicU32::new(0) }
        })
    }

    /// The handler has taken an interrupt. Gives whether it was this bell.
    pub fn note(&self, taken: Taken) -> bool {
        let ours = taken.number() == self.number;
        if ours {
            self.rung.fetch_or(1 << taken.source().unwrap_or(0), Ordering::Release);
        }
        ours
    }
}

impl<R: Registers> DoorbellDevice for GicSgi<'_, R> {
    /// `target` is the core's number at the controller.
    fn ring(&self, target: u32) -> bool {
        (target as usize) < CORES_MAX && self.gic.send(self.number, 1 << target)
    }

    fn take(&self) -> u32 {
        let rung = self.rung.swap(0, Ordering::AcqRel);
        before_device();
        rung
    }

    /// Some implementations cannot disable software interrupts; there they always interrupt.
    fn arm(&self) {
        self.gic.enable(self.number);
    }

    fn disarm(&self) {
        self.gic.disable(self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doorbell::conformance::{Pair, check};
    use crate::interrupt::gic::model::{Model, View};

    fn core(model: &Model, number: usize) -> Gic<View<'_>> {
        let gic = Gic::new(model.distributor(number), model.interface(number));
        if number == 0 {
            gic.open();
        }
        gic.open_interface();
        gic
    }

    /// What the handler of a core does.
    fn handled(gic: &Gic<View<'_>>, bell: &GicSgi<'_, View<'_>>) -> bool {
        let Some(taken) = gic.take() else { return false };
        gic.complete(taken);
        bell.note(taken)
    }

    #[test]
    fn it_is_a_bell() {
        let model = Model::new();
        let (first, third) = (core(&model, 0), core(&model, 2));
        let handler = GicSgi::new(&third, 7).unwrap();
        check(&Pair {
            ringer: GicSgi::new(&first, 7).unwrap(),
            rung: &handler,
            target: 2,
            told: 1,
            interrupted: &|| handled(&third, &handler),
        });
        assert_eq!(model.bad_ends(), 0);
    }

    #[test]
    fn two_ringers_are_told_apart_and_other_numbers_are_not_ours() {
        let model = Model::new();
        let cores = [core(&model, 0), core(&model, 1), core(&model, 2)];
        let bells: std::vec::Vec<_> = cores.iter().map(|gic| GicSgi::new(gic, 3).unwrap()).collect();
        cores[0].enable(5);
        bells[0].arm();
        assert!(bells[1].ring(0) && bells[2].ring(0) && cores[1].send(5, 1));
        let ours = (0..4).filter(|_| handled(&cores[0], &bells[0])).count();
        assert_eq!((ours, bells[0].take()), (2, 0b110));
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let model = Model::new();
        let gic = core(&model, 0);
        assert!(GicSgi::new(&gic, 16).is_none());
        assert!(!GicSgi::new(&gic, 0).unwrap().ring(8));
    }
}

//! The Messaging Unit of i.MX 7Dual and i.MX 6SoloX, between the Cortex-A7/A9 and the Cortex-M4.
//!
//! How it works: both sides have the same registers (i.MX 7Dual Applications Processor Reference Manual, chapter
//! Messaging Unit; i.MX 6SoloX Reference Manual likewise): four transmit and four receive words, a status register `SR`
//! and a control register `CR`. A bell is one of the four general purpose interrupts: setting `GIRn` here sets `GIPn`
//! there, which interrupts if `GIEn` is set there; writing one to `GIPn` clears it, and `GIRn` with it. Writing zero to
//! a `GIRn` has no effect, so the driver never writes back a request that it read: the other side might have cleared it
//! in between, and it would be made again.
//!
//! What one side does reaches the other one later, through two clocks: `SR.EP` says that something of ours has not been posted
//! yet. After it has cleared `GIPn`, the driver waits, within a bound, until that is posted: before, the ringer still sees its
//! `GIRn` set and would not ring again, though we look at memory already (IMX7DRM, chapter MU, field EP; NXP's BSP for the
//! Cortex-M4 of i.MX7D waits for the same bit after it has written, `lpm_mcore.c`).
//!
//! The words are a path of their own for a few bytes: `TEn` says that the other side has read our word, `RFn` that there
//! is one for us.
//!
//! What it does not do: share `CR` between threads of one core. The driver's owner calls it with interrupts masked or from
//! one thread; switch its clock on and let both processors use it ([`crate::board::imx7_sharing`]). Tested against a model only:
//! QEMU does not model the unit.

use crate::doorbell::DoorbellDevice;
use crate::registers::{Registers, before_device};

const TR: usize = 0x00;
const RR: usize = 0x10;
const SR: usize = 0x20;
const CR: usize = 0x24;

/// General purpose interrupts, and words in each direction.
pub const CHANNELS: u32 = 4;
/// All four `GIRn` of `CR`.
const GIR_ALL: u32 = 0xF << 16;
/// `EP` of `SR`: an event of this side is not posted to the other yet.
const EVENT_PENDING: u32 = 1 << 4;
/// Looks at `EP` before it is left alone: far more than the few periods of the slower clock that it takes. A ring that is lost then is
/// found at the deadline of whoever sleeps.
const LOOKS_MAX: u32 = 1000;

/// `GIPn` of `SR` and `GIEn` of `CR`: channel 0 is the highest bit.
const fn gip(channel: u32) -> u32 {
    1 << (31 - channel)
}
/// `RFn` of `SR`.
const fn rf(channel: u32) -> u32 {
    1 << (27 - channel)
}
/// `TEn` of `SR`.
const fn te(channel: u32) -> u32 {
    1 << (23 - channel)
}
/// `GIRn` of `CR`.
const fn gir(channel: u32) -> u32 {
    1 << (19 - channel)
}

/// One side of the unit. Writer of its `CR`, of its transmit words and of the clearing ones in its `SR`: this side.
#[derive(Debug)]
pub struct ImxMu<R> {
    registers: R,
    /// The channel whose interrupt rings us.
    channel: u32,
}

impl<R: Registers> ImxMu<R> {
    /// The side with these registers, rung through general purpose interrupt `channel`; `None` if there is none such.
    pub fn new(registers: R, channel: u32) -> Option<Self> {
        let line = Self { registers, channel };
        (channel < CHANNELS).then(|| {
            line.disarm();
            line
        })
    }

    /// Puts a word into transmit register `channel`; `false`, and nothing done, while the other has not read the last one.
    pub fn try_send(&self, channel: u32, word: u32) -> bool {
        let empty = channel < CHANNELS && self.registers.read_u32(SR) & te(channel) != 0;
        if empty {
            before_device();
            self.registers.write_u32(TR + channel as usize * 4, word);
        }
        empty
    }

    /// Takes the word of receive register `channel`, if there is one.
    pub fn try_receive(&self, channel: u32) -> Option<u32> {
        let full = channel < CHANNELS && self.registers.read_u32(SR) & rf(channel) != 0;
        full.then(|| self.registers.read_u32(RR + channel as usize * 4))
    }
}

impl<R: Registers> DoorbellDevice for ImxMu<R> {
    /// `target` is the channel whose interrupt the other side takes for its bell.
    fn ring(&self, target: u32) -> bool {
        if target >= CHANNELS {
            return false;
        }
        before_device();
        let control = self.registers.read_u32(CR);
        // Still requested: the other side has not acknowledged yet, so it will look at memory after what we wrote.
        if control & gir(target) == 0 {
            self.registers.write_u32(CR, control & !GIR_ALL | gir(target));
        }
        true
    }

    fn take(&self) -> u32 {
        let rung = self.registers.read_u32(SR) & gip(self.channel) != 0;
        if rung {
            self.registers.write_u32(SR, gip(self.channel));
            let _ = (0..LOOKS_MAX).any(|_| self.registers.read_u32(SR) & EVENT_PENDING == 0);
        }
        before_device();
        u32::from(rung)
    }

    fn arm(&self) {
        let control = self.registers.read_u32(CR) & !GIR_ALL;
        self.registers.write_u32(CR, control | gip(self.channel));
    }

    fn disarm(&self) {
        let control = self.registers.read_u32(CR) & !GIR_ALL;
        self.registers.write_u32(CR, control & !gip(self.channel));
    }
}

#[cfg(test)]
mod tests {
    use core::cell::Cell;

    use super::*;
    use crate::doorbell::conformance::{Pair, check};

    /// One side's state, as its manual describes it.
    #[derive(Default)]
    struct Side {
        /// `GIEn`, `RIEn`, `TIEn`: what `CR` keeps.
        enables: Cell<u32>,
        /// Requests that the other side has not cleared, by channel.
        requests: [Cell<bool>; 4],
        /// Words on their way to the other side.
        words: [Cell<Option<u32>>; 4],
        /// Channels whose `GIPn` this side has cleared, and the reads of `SR` after which the other side sees it.
        clears: Cell<(u32, u32)>,
    }

    #[derive(Default)]
    struct Model {
        sides: [Side; 2],
        /// Reads of `SR` until what a side did is posted to the other one.
        latency: u32,
    }

    struct View<'m> {
        model: &'m Model,
        side: usize,
    }

    impl Model {
        fn side(&self, side: usize) -> View<'_> {
            View { model: self, side }
        }

        fn slow(latency: u32) -> Self {
            Model { latency, ..Model::default() }
        }

        fn interrupts(&self, side: usize) -> bool {
            let view = self.side(side);
            view.read_u32(SR) & view.read_u32(CR) & 0xF000_0000 != 0
        }
    }

    impl View<'_> {
        fn own(&self) -> &Side {
            &self.model.sides[self.side]
        }
        fn other(&self) -> &Side {
            &self.model.sides[1 - self.side]
        }
        /// One look at `SR` nearer to the other side; gives `EP`.
        fn post(&self) -> u32 {
            let (cleared, left) = self.own().clears.get();
            if left > 0 {
                self.own().clears.set((cleared, left - 1));
                return EVENT_PENDING;
            }
            (0..4).filter(|n| cleared & gip(*n) != 0).for_each(|n| self.other().requests[n as usize].set(false));
            self.own().clears.set((0, 0));
            0
        }
        fn bits(&self, of: impl Fn(usize) -> bool, bit: impl Fn(u32) -> u32) -> u32 {
            (0..4).filter(|n| of(*n)).map(|n| bit(n as u32)).sum()
        }
    }

    impl Registers for View<'_> {
        fn read_u32(&self, offset: usize) -> u32 {
            match offset {
                SR => {
                    let event_pending = self.post();
                    let cleared = self.own().clears.get().0;
                    let requested = |n: usize| self.other().requests[n].get() && cleared & gip(n as u32) == 0;
                    self.bits(requested, gip)
                        | event_pending
                        | self.bits(|n| self.other().words[n].get().is_some(), rf)
                        | self.bits(|n| self.own().words[n].get().is_none(), te)
                }
                CR => self.own().enables.get() | self.bits(|n| self.own().requests[n].get(), gir),
                0x10..=0x1C => self.other().words[(offset - RR) / 4].take().expect("an empty register is not read"),
                _ => panic!("reading {offset:#x} is not defined"),
            }
        }
        fn write_u32(&self, offset: usize, value: u32) {
            match offset {
                0x00..=0x0C => {
                    let before = self.own().words[(offset - TR) / 4].replace(Some(value));
                    assert!(before.is_none(), "a full register is not written");
                }
                SR => {
                    self.own().clears.set((self.own().clears.get().0 | value & 0xF000_0000, self.model.latency));
                    if self.model.latency == 0 {
                        self.post();
                    }
                }
                CR => {
                    self.own().enables.set(value & 0xFFF0_0000);
                    (0..4).filter(|n| value & gir(*n) != 0).for_each(|n| self.own().requests[n as usize].set(true));
                }
                _ => panic!("writing {offset:#x} is not defined"),
            }
        }
    }

    #[test]
    fn it_is_a_bell_in_both_directions() {
        for ringer in [0, 1] {
            let model = Model::default();
            check(&Pair {
                ringer: ImxMu::new(model.side(ringer), 3).unwrap(),
                rung: ImxMu::new(model.side(1 - ringer), 2).unwrap(),
                target: 2,
                told: 1,
                interrupted: &|| model.interrupts(1 - ringer),
            });
        }
    }

    #[test]
    fn a_ring_after_the_acknowledgement_is_not_lost_although_that_takes_its_time() {
        let model = Model::slow(20);
        check(&Pair {
            ringer: ImxMu::new(model.side(0), 0).unwrap(),
            rung: ImxMu::new(model.side(1), 1).unwrap(),
            target: 1,
            told: 1,
            interrupted: &|| model.interrupts(1),
        });
    }

    #[test]
    fn an_event_that_is_never_posted_holds_nobody_up() {
        let model = Model::slow(u32::MAX);
        let (a, b) = (ImxMu::new(model.side(0), 0).unwrap(), ImxMu::new(model.side(1), 1).unwrap());
        assert!(a.ring(1));
        assert_eq!(b.take(), 1);
    }

    #[test]
    fn one_channel_does_not_ring_another_again() {
        let model = Model::default();
        let (a, b2, b3) = (
            ImxMu::new(model.side(0), 0).unwrap(),
            ImxMu::new(model.side(1), 2).unwrap(),
            ImxMu::new(model.side(1), 3),
        );
        assert!(a.ring(2) && a.ring(3));
        assert_eq!(b2.take(), 1);
        assert!(a.ring(3));
        a.arm();
        assert_eq!(b2.take(), 0, "neither a ring of channel 3 nor arming requests channel 2 again");
        assert_eq!(b3.unwrap().take(), 1);
    }

    #[test]
    fn what_is_no_channel_is_refused() {
        let model = Model::default();
        assert!(ImxMu::new(model.side(0), 4).is_none());
        let line = ImxMu::new(model.side(0), 0).unwrap();
        assert!(!line.ring(4) && !line.try_send(4, 0) && line.try_receive(u32::MAX).is_none());
    }

    #[test]
    fn words_pass_one_at_a_time_and_none_is_overwritten() {
        let model = Model::default();
        let (a, b) = (ImxMu::new(model.side(0), 0).unwrap(), ImxMu::new(model.side(1), 0).unwrap());
        assert_eq!(b.try_receive(1), None);
        assert!(a.try_send(1, 77));
        assert!(!a.try_send(1, 78), "not read yet");
        assert!(a.try_send(2, 79));
        assert_eq!((b.try_receive(1), b.try_receive(1), b.try_receive(2)), (Some(77), None, Some(79)));
        assert!(a.try_send(1, 78));
    }
}

//! The doorbell of QEMU's inter-VM shared memory device.
//!
//! How it works: registers of BAR 0, as QEMU's "Device Specification for Inter-VM shared memory device" (docs/specs)
//! gives them: `IVPosition` is our number among the peers; writing `peer << 16 | vector` to `Doorbell` interrupts that peer.
//! With MSI-X each vector is a message of its own and the device keeps no status; without it the peer's `Status` bit is
//! set, which reading clears, and `Mask` lets it interrupt.
//!
//! What it does not do: find the device on the PCI bus, or map its memory.

use core::sync::atomic::{AtomicU32, Ordering};

use crate::doorbell::DoorbellDevice;
use crate::registers::{Registers, before_device};

const MASK: usize = 0x0;
const STATUS: usize = 0x4;
const POSITION: usize = 0x8;
const DOORBELL: usize = 0xC;

/// Highest number that a peer can have.
const PEER_MAX: u32 = 0xFFFF;

/// How interrupts of the device come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// One pin, with status and mask in the device.
    Pin,
    /// A message for the vector; the interrupt controller's driver calls [`Ivshmem::note`].
    Message,
}

/// The device, as one guest sees it.
#[derive(Debug)]
pub struct Ivshmem<R> {
    registers: R,
    delivery: Delivery,
    /// The vector that we ring peers with.
    vector: u16,
    /// 1 once a message has come. Writers: the interrupt handler and whoever takes, of one core.
    noted: AtomicU32,
}

impl<R: Registers> Ivshmem<R> {
    /// The device with these registers (BAR 0).
    pub fn new(registers: R, delivery: Delivery, vector: u16) -> Self {
        let line = Self { registers, delivery, vector, noted: AtomicU32::new(0) };
        line.disarm();
        line
    }

    /// Our number among the peers; `None` until the server has given one.
    pub fn position(&self) -> Option<u32> {
        let position = self.registers.read_u32(POSITION);
        (position <= PEER_MAX).then_some(position)
    }

    /// A message interrupt has come.
    pub fn note(&self) {
        self.noted.store(1, Ordering::Release);
    }
}

impl<R: Registers> DoorbellDevice for Ivshmem<R> {
    /// `target` is the peer's number. The device ignores one that is not there.
    fn ring(&self, target: u32) -> bool {
        before_device();
        if target <= PEER_MAX {
            self.registers.write_u32(DOORBELL, target << 16 | u32::from(self.vector));
        }
        target <= PEER_MAX
    }

    fn take(&self) -> u32 {
        let pin = match self.delivery {
            Delivery::Pin => self.registers.read_u32(STATUS) & 1,
            Delivery::Message => 0,
        };
        let rung = pin | self.noted.swap(0, Ordering::AcqRel);
        before_device();
        rung
    }

    fn arm(&self) {
        if self.delivery == Delivery::Pin {
            self.registers.write_u32(MASK, 1);
        }
    }

    fn disarm(&self) {
        if self.delivery == Delivery::Pin {
            self.registers.write_u32(MASK, 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use core::cell::Cell;

    use super::*;
    use crate::doorbell::conformance::{Pair, check};

    /// Peers of one server; a peer's status, mask and messages that came.
    struct Model {
        status: [Cell<u32>; 2],
        mask: [Cell<u32>; 2],
        messages: [Cell<u32>; 2],
    }

    struct View<'m> {
        model: &'m Model,
        peer: usize,
    }

    impl Model {
        fn new() -> Self {
            let cells = || core::array::from_fn(|_| Cell::new(0));
            Model { status: cells(), mask: cells(), messages: cells() }
        }
        fn peer(&self, peer: usize) -> View<'_> {
            View { model: self, peer }
        }
    }

    impl Registers for View<'_> {
        fn read_u32(&self, offset: usize) -> u32 {
            match offset {
                MASK => self.model.mask[self.peer].get(),
                STATUS => self.model.status[self.peer].take(),
                POSITION => self.peer as u32,
                _ => panic!("reading {offset:#x} is not defined"),
            }
        }
        fn write_u32(&self, offset: usize, value: u32) {
            match offset {
                MASK => self.model.mask[self.peer].set(value),
                STATUS => self.model.status[self.peer].set(value),
                DOORBELL => {
                    if let Some(status) = self.model.status.get(value as usize >> 16) {
                        status.set(1);
                        self.model.messages[value as usize >> 16].set(value & 0xFFFF | 0x1_0000);
                    }
                }
                _ => panic!("writing {offset:#x} is not defined"),
            }
        }
    }

    #[test]
    fn it_is_a_bell_by_pin() {
        let model = Model::new();
        check(&Pair {
            ringer: Ivshmem::new(model.peer(0), Delivery::Pin, 0),
            rung: Ivshmem::new(model.peer(1), Delivery::Pin, 0),
            target: 1,
            told: 1,
            interrupted: &|| model.status[1].get() & model.mask[1].get() != 0,
        });
    }

    #[test]
    fn by_message_the_handler_says_that_it_came() {
        let model = Model::new();
        let (ringer, rung) =
            (Ivshmem::new(model.peer(0), Delivery::Message, 3), Ivshmem::new(model.peer(1), Delivery::Message, 0));
        assert!(ringer.ring(1));
        assert_eq!(model.messages[1].take(), 0x1_0003, "the ringer's vector");
        assert_eq!(rung.take(), 0, "not before the handler has run");
        rung.note();
        rung.note();
        assert_eq!((rung.take(), rung.take()), (1, 0), "coalesced, then nothing");
    }

    #[test]
    fn a_peer_that_is_not_there_is_not_an_error_of_the_device_and_a_number_that_cannot_be_is_ours() {
        let model = Model::new();
        let line = Ivshmem::new(model.peer(0), Delivery::Pin, 0);
        assert!(line.ring(9));
        assert!(!line.ring(0x1_0000));
        assert_eq!(line.position(), Some(0));
    }
}

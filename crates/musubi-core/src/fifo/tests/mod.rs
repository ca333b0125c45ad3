//! Tests of the FIFO channel: against a model, with hostile words, and (under loom) in every interleaving.

use std::vec;
use std::vec::Vec;

use super::*;
use crate::layout::Shape;
use crate::plan::{Fifo, FilterRule, OnRestart, Regulation, Trust};
use crate::port::{Clock, Coherent, Doorbell};
use crate::sync::AtomicU32;
use crate::words::OwnWords;

const SENDER: (u16, u32) = (0, 77);
const RECEIVER: (u16, u32) = (1, 99);

type TestSender<'m> = Sender<'m, Vec<Entry>, Coherent>;
type TestReceiver<'m> = Receiver<'m, Vec<u32>, Coherent>;

struct NoClock;
impl Clock for NoClock {
    fn now_ns(&self) -> u64 {
        1
    }
}

/// Counts the rings and changes the bell, as a port must.
#[derive(Default)]
struct CountingBell(core::cell::Cell<u32>);
impl Doorbell for CountingBell {
    fn ring(&self, bell: &AtomicU32, _waiting: u32) {
        bell.fetch_add(1, crate::sync::Ordering::AcqRel);
        self.0.set(self.0.get() + 1);
    }
}

fn fifo(blocks: u32) -> Fifo<'static> {
    Fifo {
        name: "test",
        from: 0,
        to: 1,
        blocks,
        block_bytes: 16,
        priority: 0,
        filter: FilterRule::EACH,
        regulation: Regulation::NONE,
        budget_ns: 0,
        on_restart: OnRestart::Keep,
        sample_every: 0,
    }
}

/// The two ends' memory.
struct Memory {
    tx: Vec<AtomicU32>,
    rx: Vec<AtomicU32>,
}

impl Memory {
    fn new(fifo: &Fifo<'_>) -> Memory {
        let shape = Shape::of(fifo).unwrap();
        let words = |bytes: Option<u32>| (0..bytes.unwrap() / 4).map(|_| AtomicU32::new(0)).collect();
        Memory { tx: words(shape.tx_bytes()), rx: words(shape.rx_bytes()) }
    }

    fn sender<'m>(&'m self, fifo: &Fifo<'_>) -> TestSender<'m> {
        let entries = vec![Entry::NEW; fifo.blocks as usize];
        Sender::new(OwnWords::of(&self.tx), fifo, SENDER, entries, Coherent).unwrap()
    }

    fn receiver<'m>(&'m self, fifo: &Fifo<'_>, epoch: u32) -> TestReceiver<'m> {
        let held = vec![0; TestReceiver::held_words(fifo.blocks)];
        let (own, tx) = (OwnWords::of(&self.rx), OwnWords::of(&self.tx).as_peer());
        Receiver::new(own, tx, fifo, (RECEIVER.0, epoch), SENDER, Trust::MayCrash, held, Coherent).unwrap()
    }

    /// Both ends with an open session.
    #[cfg(not(loom))]
    fn pair<'m>(&'m self, fifo: &Fifo<'_>) -> (TestSender<'m>, TestReceiver<'m>) {
        let mut sender = self.sender(fifo);
        let mut receiver = self.receiver(fifo, RECEIVER.1);
        session::publish_link(&OwnWords::of(&self.tx), RECEIVER.0, RECEIVER.1, 0);
        assert!(receiver.begin());
        sender.set_receiver(Some(OwnWords::of(&self.rx).as_peer()), 0);
        (sender, receiver)
    }
}

#[cfg(not(loom))]
mod accounts;
#[cfg(not(loom))]
mod behaviour;
#[cfg(not(loom))]
mod borders;
#[cfg(not(loom))]
mod coherence;
#[cfg(loom)]
mod models;
#[cfg(not(loom))]
mod observing;
#[cfg(loom)]
mod observing_models;

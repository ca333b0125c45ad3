//! A lane between a sender and a receiver that are ours and peers that write anything: no access outside, no block
//! handed out twice, no message longer than a block, every call ends.
//!
//! How it works: the sender has a hostile receiver, the receiver a hostile sender. The input chooses the channel, the
//! words that the hostile ones write, and the calls of ours.
#![no_main]

use std::collections::BTreeSet;

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use musubi_core::Error;
use musubi_core::fifo::session::{end_link, publish_link};
use musubi_core::fifo::{Entry, Loan, Received, Receiver, Ring, Sender};
use musubi_core::layout::{Shape, rx, slot, tx};
use musubi_core::plan::{Fifo, FilterRule, OnRestart, Regulation, Trust};
use musubi_core::port::Coherent;
use musubi_fuzz::{Memory, Silent, Ticks};

const SENDER: (u16, u32) = (1, 0x51);
const RECEIVER: (u16, u32) = (2, 0x52);

#[derive(Arbitrary, Debug)]
struct Input {
    blocks: u8,
    block_bytes: u8,
    filter: (u8, u8, u8),
    drop: bool,
    steps: Vec<Step>,
}

#[derive(Arbitrary, Clone, Copy, Debug)]
enum Step {
    /// The hostile receiver writes a word.
    WriteRx(Place, Value),
    /// The hostile sender writes a word.
    WriteTx(Place, Value),
    /// The hostile sender announces something that looks right but for these.
    Announce {
        position: u8,
        block: u8,
        len: u16,
        notified: bool,
    },
    /// The hostile receiver returns something that looks right but for the block.
    Return {
        position: u8,
        block: u8,
    },
    Allocate,
    Enqueue(u8, u16),
    FreeLoan(u8),
    NotifyReceiver,
    RaiseIfDue,
    PollSender(bool),
    ResetSender,
    SetFilter(u8),
    Link,
    Unlink,
    Ready(bool),
    Dequeue,
    FreeReceived(u8),
    NotifySender,
    ResetReceiver,
    Retire,
}

#[derive(Arbitrary, Clone, Copy, Debug)]
enum Place {
    Word(u8),
    SlotWord(u8, u8),
    Return(u8),
}

#[derive(Arbitrary, Clone, Copy, Debug)]
enum Value {
    Any(u32),
    Small(u8),
    AlmostAll(u8),
    Lap(u8, bool),
    Wrap(u8),
    Epoch(bool),
}

impl Value {
    fn of(self, ring: Ring) -> u32 {
        match self {
            Value::Any(value) => value,
            Value::Small(value) => value.into(),
            Value::AlmostAll(value) => u32::MAX - u32::from(value),
            Value::Lap(lap, notified) => u32::from(lap) << 1 | u32::from(notified),
            Value::Wrap(before) => ring.last().wrapping_sub(before.into()),
            Value::Epoch(sender) => {
                if sender {
                    SENDER.1
                } else {
                    RECEIVER.1
                }
            }
        }
    }
}

struct Lane<'m> {
    shape: Shape,
    ring: Ring,
    fifo: Fifo<'static>,
    sender: Sender<'m, Vec<Entry>, Coherent>,
    receiver: Receiver<'m, Vec<u32>, Coherent>,
    loans: Vec<Loan<'m>>,
    received: Vec<Received<'m>>,
    own_tx: &'m Memory,
    foreign_rx: &'m Memory,
    foreign_tx: &'m Memory,
    start: u32,
    clock: Ticks,
}

fuzz_target!(|input: Input| {
    let fifo = Fifo {
        name: "lane",
        from: 0,
        to: 1,
        blocks: u32::from(input.blocks % 9) + 1,
        block_bytes: u32::from(input.block_bytes) + 1,
        priority: 0,
        filter: rule(input.filter),
        regulation: Regulation::NONE,
        budget_ns: 1_000,
        on_restart: if input.drop { OnRestart::Drop } else { OnRestart::Keep },
        sample_every: 2,
    };
    let shape = Shape::of(&fifo).expect("small");
    let (tx_words, rx_words) = (shape.tx_bytes().expect("small") / 4, shape.rx_bytes().expect("small") / 4);
    let memory = |words| Memory::new(words, &[]);
    let (own_tx, foreign_rx) = (memory(tx_words), memory(rx_words));
    let (foreign_tx, own_rx) = (memory(tx_words), memory(rx_words));
    let entries = vec![Entry::NEW; fifo.blocks as usize];
    let held = vec![0; Receiver::<Vec<u32>, Coherent>::held_words(fifo.blocks)];
    let peer = foreign_tx.words().as_peer();
    let mut lane = Lane {
        shape,
        ring: Ring::new(fifo.blocks),
        fifo,
        sender: Sender::new(own_tx.words(), &fifo, SENDER, entries, Coherent).expect("the sizes fit"),
        receiver: Receiver::new(own_rx.words(), peer, &fifo, RECEIVER, SENDER, Trust::Hostile, held, Coherent)
            .expect("the sizes fit"),
        loans: Vec::new(),
        received: Vec::new(),
        own_tx: &own_tx,
        foreign_rx: &foreign_rx,
        foreign_tx: &foreign_tx,
        start: 0,
        clock: Ticks::default(),
    };
    lane.link();
    for step in input.steps {
        lane.act(step);
        lane.check();
    }
});

fn rule((every, level, spans): (u8, u8, u8)) -> FilterRule {
    FilterRule {
        every: every.into(),
        level: level.into(),
        interval_ns_min: u64::from(spans & 15) << 20,
        latest_ns: u64::from(spans >> 4) << 22,
    }
}

impl<'m> Lane<'m> {
    fn act(&mut self, step: Step) {
        match step {
            Step::WriteRx(place, value) => self.write(self.foreign_rx, place, value),
            Step::WriteTx(place, value) => self.write(self.foreign_tx, place, value),
            Step::Announce { position, block, len, notified } => self.forge(position, block, len, notified),
            Step::Return { position, block } => {
                let entry = self.ring.cursor(position.into()).return_entry(block.into());
                let index = rx::WORDS + u32::from(position) % self.ring.slots();
                self.foreign_rx.words().set(index, entry);
            }
            Step::Allocate => {
                if let Ok(mut loan) = self.sender.allocate() {
                    loan.fill(0xa5);
                    self.loans.push(loan);
                }
            }
            Step::Enqueue(index, bytes) => self.enqueue(index, bytes),
            Step::FreeLoan(index) => {
                if let Some(loan) = pick(&mut self.loans, index) {
                    self.sender.free(loan).expect("it was of this end");
                }
            }
            Step::NotifyReceiver => {
                let _ = self.sender.notify(&self.clock, &Silent);
            }
            Step::RaiseIfDue => {
                self.sender.raise_if_due(&self.clock, &Silent);
            }
            Step::PollSender(wait) => {
                let ready = if wait { self.sender.announce_wait(1) } else { self.sender.poll() };
                assert!(!ready.block || self.sender.blocks().1 > 0);
                self.sender.take_event();
                self.sender.withdraw_wait(0);
            }
            Step::ResetSender => {
                // The interfaces allow it only while no block is in hand.
                while let Some(loan) = self.loans.pop() {
                    self.sender.free(loan).expect("it was of this end");
                }
                self.sender.reset(&Silent);
            }
            Step::SetFilter(spans) => self.sender.set_filter(rule((spans & 3, spans >> 6, spans)), &Silent),
            Step::Link => self.link(),
            Step::Unlink => self.unlink(),
            Step::Ready(wait) => {
                let _ = if wait { self.receiver.announce_wait(1) } else { self.receiver.ready() };
                self.receiver.take_event();
                self.receiver.withdraw_wait(0);
            }
            Step::Dequeue => self.dequeue(),
            Step::FreeReceived(index) => {
                if let Some(received) = pick(&mut self.received, index) {
                    self.receiver.free(received, &Silent).expect("it was of this end");
                }
            }
            Step::NotifySender => self.receiver.notify(&Silent),
            Step::ResetReceiver => {
                self.received.clear();
                self.receiver.reset(&self.clock, &Silent);
            }
            Step::Retire => {
                self.receiver.retire();
            }
        }
    }

    fn write(&self, to: &Memory, place: Place, value: Value) {
        let words = to.words();
        let index = match place {
            Place::Word(index) => u32::from(index),
            Place::SlotWord(index, word) => self.shape.slot(u32::from(index) % self.ring.slots()) + u32::from(word) % 8,
            Place::Return(index) => rx::WORDS + u32::from(index) % self.ring.slots(),
        };
        words.set(index % words.len(), value.of(self.ring));
    }

    /// An announcement of the hostile sender's, complete with the mark of its epoch.
    fn forge(&self, position: u8, block: u8, len: u16, notified: bool) {
        let cursor = self.ring.cursor(position.into());
        let (words, at) = (self.foreign_tx.words(), self.shape.slot(cursor.index));
        words.set(at + slot::LEN, u32::from(len) % (self.fifo.block_bytes + 2));
        words.set(at + slot::BLOCK, u32::from(block) | SENDER.1 << 16);
        words.set(at + slot::STAMP, u32::from(len));
        words.set(at + slot::TURN, cursor.turn() | u32::from(notified));
    }

    fn enqueue(&mut self, index: u8, bytes: u16) {
        let Some(loan) = pick(&mut self.loans, index) else { return };
        match self.sender.enqueue(loan, bytes.into(), &self.clock) {
            Ok(()) => assert!(u32::from(bytes) <= self.fifo.block_bytes),
            Err((error, loan)) => {
                assert_eq!(error, Error::TooLong);
                self.loans.push(loan);
            }
        }
    }

    fn dequeue(&mut self) {
        match self.receiver.dequeue(&self.clock, &Silent) {
            Ok(received) => {
                assert!(received.len() <= self.fifo.block_bytes && received.block() < self.ring.slots());
                let mut bytes = vec![0; received.len() as usize + 1];
                assert_eq!(received.copy_to(0, &mut bytes), received.len() as usize);
                assert_eq!(
                    received.copy_to(received.len() / 2 + 1, &mut bytes),
                    (received.len().saturating_sub(received.len() / 2 + 1)) as usize
                );
                self.received.push(received);
            }
            Err(error) => assert!(matches!(error, Error::Empty | Error::PeerFault)),
        }
    }

    /// What a port does when a receiver has come, with our own honest words as its address.
    fn link(&mut self) {
        self.unlink();
        publish_link(&self.own_tx.words(), RECEIVER.0, RECEIVER.1, self.start);
        self.sender.set_receiver(Some(self.foreign_rx.words().as_peer()), self.start);
        // The hostile one plays along, so that the input need not find the epochs.
        let words = self.foreign_rx.words();
        words.set(rx::LINK_PARTICIPANT, SENDER.0.into());
        words.set(rx::LINK_EPOCH, SENDER.1);
        let words = self.foreign_tx.words();
        words.set(tx::LINK_PARTICIPANT, RECEIVER.0.into());
        words.set(tx::LINK_EPOCH, RECEIVER.1);
    }

    fn unlink(&mut self) {
        let rx = Some(self.foreign_rx.words().as_peer());
        let policy = self.fifo.on_restart;
        self.start = end_link(&self.own_tx.words(), rx, self.ring, SENDER, self.start, policy);
        assert!(self.ring.contains(self.start));
        self.sender.set_receiver(None, self.start);
    }

    fn check(&self) {
        let (blocks, free) = self.sender.blocks();
        assert!(blocks == self.ring.slots() && free + self.sender.held() <= blocks);
        assert_eq!(self.sender.held() as usize, self.loans.len());
        assert!(self.sender.queued() <= blocks && self.receiver.queued() <= blocks);
        let loans: BTreeSet<u32> = self.loans.iter().map(Loan::block).collect();
        assert_eq!(loans.len(), self.loans.len(), "a block was handed out twice");
        let received: BTreeSet<u32> = self.received.iter().map(Received::block).collect();
        assert_eq!(received.len(), self.received.len(), "a block was received twice at once");
        assert_eq!(self.receiver.held() as usize, self.received.len());
    }
}

fn pick<T>(from: &mut Vec<T>, index: u8) -> Option<T> {
    if from.is_empty() { None } else { Some(from.swap_remove(usize::from(index) % from.len())) }
}

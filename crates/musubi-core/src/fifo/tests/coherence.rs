//! What an end asks of caches: every range and every hint, exactly, against the layout as docs/layout.md states it.

use core::cell::RefCell;

use super::*;
use crate::layout::{slot, tx};
use crate::port::Coherence;

/// Bytes before the first slot, from one slot to the next, and of an announcement.
const SLOTS_AT: u32 = 256;
const STRIDE: u32 = 128;
const ANNOUNCEMENT: u32 = 16;
const BLOCKS: u32 = 11;
const BLOCK_BYTES: u32 = 100;
/// How many places ahead both ends ask for lines, and after how many messages without a pause a receiver does.
const AHEAD: u32 = 4;
const STREAM: u32 = 4;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asked {
    Publish { at: u32, bytes: u32 },
    Acquire { at: u32, bytes: u32 },
    Write { at: u32 },
    Read { at: u32 },
}

/// Notes what is asked, as offsets from the begin of the transmit end, and what the first word of a slot held then.
struct Recording<'r> {
    tx: &'r [AtomicU32],
    asked: &'r RefCell<Vec<(Asked, u32)>>,
}

impl Recording<'_> {
    fn note(&self, address: *const u8, asked: impl FnOnce(u32) -> Asked) {
        let at = address.addr().wrapping_sub(self.tx.as_ptr().addr());
        let inside = (at < self.tx.len() * 4).then_some(at as u32).expect("an address inside of the transmit end");
        let slot = inside.saturating_sub(SLOTS_AT) / STRIDE;
        let turn = self.tx[((SLOTS_AT + slot * STRIDE) / 4 + slot::TURN) as usize].load(crate::sync::Ordering::Relaxed);
        self.asked.borrow_mut().push((asked(inside), turn));
    }
}

impl Coherence for Recording<'_> {
    fn publish(&self, from: *const u8, bytes: u32) {
        self.note(from, |at| Asked::Publish { at, bytes });
    }
    fn acquire(&self, from: *const u8, bytes: u32) {
        self.note(from, |at| Asked::Acquire { at, bytes });
    }
    fn intend_write(&self, line: *const u8) {
        self.note(line, |at| Asked::Write { at });
    }
    fn intend_read(&self, line: *const u8) {
        self.note(line, |at| Asked::Read { at });
    }
}

fn slot_at(index: u32) -> u32 {
    SLOTS_AT + index % BLOCKS * STRIDE
}

fn payload_at(index: u32) -> u32 {
    slot_at(index) + ANNOUNCEMENT
}

/// The last byte of a payload, where it does not lie in the line of the announcement.
fn last_at(index: u32, bytes: u32) -> Option<u32> {
    (bytes > 64 - ANNOUNCEMENT).then(|| payload_at(index) + bytes - 1)
}

/// Lengths of messages: none, in the first line, up to its end, one more, a whole block.
const LENGTHS: [u32; 7] = [90, 0, 48, 49, 100, 1, 100];

#[test]
fn each_range_and_hint_is_that_of_the_layout() {
    assert_eq!((tx::WORDS * 4, slot::PAYLOAD * 4), (SLOTS_AT, ANNOUNCEMENT));
    let fifo = Fifo { block_bytes: BLOCK_BYTES, ..fifo(BLOCKS) };
    let (memory, asked) = (Memory::new(&fifo), RefCell::new(Vec::new()));
    let recording = || Recording { tx: &memory.tx, asked: &asked };
    let (own, rx) = (OwnWords::of(&memory.tx), OwnWords::of(&memory.rx));
    let mut sender = Sender::<_, _>::new(own, &fifo, SENDER, vec![Entry::NEW; BLOCKS as usize], recording()).unwrap();
    session::publish_link(&OwnWords::of(&memory.tx), RECEIVER.0, RECEIVER.1, 0);
    sender.set_receiver(Some(rx.as_peer()), 0);
    let held = vec![0; TestReceiver::held_words(BLOCKS)];
    let (peer, me) = (OwnWords::of(&memory.tx).as_peer(), RECEIVER);
    let mut receiver =
        Receiver::<_, _>::new(OwnWords::of(&memory.rx), peer, &fifo, me, SENDER, Trust::MayCrash, held, recording())
            .unwrap();
    assert!(receiver.begin());
    let take = || core::mem::take(&mut *asked.borrow_mut());
    let only = |asked: Vec<(Asked, u32)>| Vec::from_iter(asked.into_iter().map(|(asked, _)| asked));
    let (bell, mut last) = (CountingBell::default(), 0);
    for number in 0..3 * BLOCKS {
        let bytes = LENGTHS[number as usize % LENGTHS.len()];
        // While it waits, the receiver asks for the last line that the next message will probably have.
        assert!(!receiver.ready());
        let wanted: Vec<_> = last_at(number, last).map(|at| Asked::Read { at }).into_iter().collect();
        assert_eq!(only(take()), wanted, "waiting for {number}");
        // All blocks but this one are free, so lines are asked for ahead.
        sender.collect();
        let loan = sender.allocate().unwrap();
        assert_eq!(loan.block(), number % BLOCKS);
        let lines = |index| [Some(slot_at(index)), last_at(index, last)];
        let wanted = [lines(number), lines(number + AHEAD)].concat().into_iter().flatten();
        assert_eq!(only(take()), Vec::from_iter(wanted.map(|at| Asked::Write { at })), "allocating {number}");
        sender.enqueue(loan, bytes, &NoClock).unwrap();
        let announced = take();
        let payload = Asked::Publish { at: payload_at(number), bytes };
        let announcement = Asked::Publish { at: slot_at(number), bytes: ANNOUNCEMENT };
        assert_eq!(only(announced.clone()), [payload, announcement], "enqueueing {number}");
        assert_ne!(announced[0].1, announced[1].1, "the payload before the announcement, that after it");
        sender.notify(&NoClock, &bell);
        assert_eq!(only(take()), [Asked::Publish { at: slot_at(number), bytes: 4 }], "notifying {number}");
        assert!(receiver.ready());
        let _ = take();
        let received = receiver.dequeue(&NoClock, &bell).unwrap();
        let mut wanted = vec![Asked::Acquire { at: slot_at(number), bytes: ANNOUNCEMENT }];
        if number + 1 >= STREAM {
            let ahead = number + 1 + AHEAD;
            wanted.push(Asked::Read { at: slot_at(ahead) });
            wanted.extend(last_at(ahead, bytes).map(|at| Asked::Read { at }));
        }
        wanted.push(Asked::Acquire { at: payload_at(number), bytes });
        assert_eq!(only(take()), wanted, "dequeueing {number}");
        receiver.free(received, &bell).unwrap();
        assert_eq!(only(take()), []);
        last = bytes;
    }
}

/// With few blocks left, nothing is asked for ahead: the receiver may read what lies there.
#[test]
fn blocks_that_are_not_free_are_left_alone() {
    let fifo = fifo(AHEAD + 2);
    let (memory, asked) = (Memory::new(&fifo), RefCell::new(Vec::new()));
    let entries = vec![Entry::NEW; fifo.blocks as usize];
    let recording = Recording { tx: &memory.tx, asked: &asked };
    let mut sender = Sender::<_, _>::new(OwnWords::of(&memory.tx), &fifo, SENDER, entries, recording).unwrap();
    let mut count = || {
        let _ = sender.allocate().unwrap();
        core::mem::take(&mut *asked.borrow_mut()).len()
    };
    assert_eq!((count(), count()), (2, 1), "that block, and one ahead while more than so many are free");
}

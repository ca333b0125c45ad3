//! What an observer is shown and what it counts, step by step.

use super::*;
use crate::layout::{rx, slot, tx};
use std::collections::BTreeMap;

/// Looks after which there must be nothing more to show.
const LOOKS_MAX: u32 = 100;

impl Memory {
    fn tx(&self) -> crate::words::PeerWords<'_> {
        OwnWords::of(&self.tx).as_peer()
    }

    fn rx(&self) -> crate::words::PeerWords<'_> {
        OwnWords::of(&self.rx).as_peer()
    }

    fn look(&self, tap: &mut Tap) -> (Look, [u8; 16]) {
        let mut into = [0; 16];
        let look = tap.look(self.tx(), |who, epoch| ((who, epoch) == RECEIVER).then(|| self.rx()), &mut into);
        (look, into)
    }

    /// Looks until there is nothing more; gives the positions and values that were shown.
    fn shown(&self, tap: &mut Tap) -> Vec<(u32, u32)> {
        let mut shown = Vec::new();
        for _ in 0..LOOKS_MAX {
            match self.look(tap) {
                (Look::Message(found), bytes) => {
                    shown.push((found.position, u32::from_le_bytes(bytes[..4].try_into().unwrap())));
                }
                (Look::Passed, _) => {}
                (Look::Nothing | Look::Unknown(..), _) => return shown,
            }
        }
        panic!("there is always more: {shown:?}");
    }
}

fn send(sender: &mut TestSender<'_>, value: u32) {
    let mut loan = sender.allocate().unwrap();
    loan[..4].copy_from_slice(&value.to_le_bytes());
    loan[4..].fill(value as u8);
    sender.enqueue(loan, 4 + value % 13, &NoClock).unwrap();
}

fn take<'m>(receiver: &mut TestReceiver<'m>) -> Received<'m> {
    receiver.dequeue(&NoClock, &CountingBell::default()).unwrap()
}

fn give_back(receiver: &mut TestReceiver<'_>, received: Received<'_>) {
    receiver.free(received, &CountingBell::default()).unwrap();
}

#[test]
fn messages_are_shown_as_they_are_while_the_receiver_has_them() {
    let fifo = fifo(3);
    let memory = Memory::new(&fifo);
    let (mut sender, mut receiver) = memory.pair(&fifo);
    let mut tap = Tap::new(&fifo, SENDER, None).unwrap();
    assert_eq!(memory.look(&mut tap).0, Look::Nothing);
    for value in 0..40 {
        send(&mut sender, value);
        // Queued, or in the receiver's hands.
        let held = (value % 2 == 0).then(|| take(&mut receiver));
        let (look, bytes) = memory.look(&mut tap);
        assert_eq!(look, Look::Message(Tapped { position: value, bytes: 4 + value % 13, stamp: 0 }));
        assert_eq!(bytes[..4], value.to_le_bytes());
        assert!(bytes[4..4 + (value % 13) as usize].iter().all(|byte| *byte == value as u8), "{bytes:?}");
        let held = held.unwrap_or_else(|| take(&mut receiver));
        give_back(&mut receiver, held);
        assert_eq!(memory.look(&mut tap).0, Look::Nothing);
    }
    assert_eq!(tap.unseen(), 0);
}

/// The receiver has returned the block before the look. As long as the sender says that it has not taken it back, the
/// message is still there; then it is not known.
#[test]
fn what_the_sender_took_back_is_counted_and_not_shown() {
    for blocks in [1, 2, 3] {
        let fifo = fifo(blocks);
        let memory = Memory::new(&fifo);
        let (mut sender, mut receiver) = memory.pair(&fifo);
        let mut tap = Tap::new(&fifo, SENDER, None).unwrap();
        assert_eq!(memory.shown(&mut tap), []);
        for number in 0..40 {
            send(&mut sender, number);
            let received = take(&mut receiver);
            give_back(&mut receiver, received);
            if number % 3 == 0 {
                sender.collect();
                assert_eq!(memory.shown(&mut tap), [], "{blocks} blocks");
            } else {
                assert_eq!(memory.shown(&mut tap), [(number, number)], "{blocks} blocks");
            }
            assert_eq!(tap.unseen(), u64::from(number) / 3 + 1);
        }
    }
}

/// A sender that does not say what it has taken back may have taken all that was returned.
#[test]
fn what_was_returned_to_a_silent_sender_is_counted_and_not_shown() {
    let fifo = fifo(2);
    let memory = Memory::new(&fifo);
    let (mut sender, mut receiver) = memory.pair(&fifo);
    let mut tap = Tap::new(&fifo, SENDER, None).unwrap();
    assert_eq!(memory.shown(&mut tap), []);
    for (position, said) in [0, u32::MAX].into_iter().enumerate() {
        send(&mut sender, 7);
        let received = take(&mut receiver);
        give_back(&mut receiver, received);
        OwnWords::of(&memory.tx).set(tx::REAPED, said);
        assert_eq!(memory.shown(&mut tap), []);
        assert_eq!(tap.unseen(), position as u64 + 1);
    }
}

/// In a session that the observer saw begin, the beginning is what returns are counted from.
#[test]
fn messages_are_certain_before_the_observer_has_looked_at_the_receiver() {
    let fifo = fifo(4);
    let memory = Memory::new(&fifo);
    let mut sender = memory.sender(&fifo);
    let mut tap = Tap::new(&fifo, SENDER, None).unwrap();
    assert_eq!(memory.shown(&mut tap), []);
    session::publish_link(&OwnWords::of(&memory.tx), RECEIVER.0, RECEIVER.1, 0);
    let mut receiver = memory.receiver(&fifo, RECEIVER.1);
    sender.set_receiver(Some(memory.rx()), 0);
    (0..3).for_each(|value| send(&mut sender, value));
    let first = take(&mut receiver);
    let _second = take(&mut receiver);
    give_back(&mut receiver, first);
    sender.collect();
    assert_eq!(memory.shown(&mut tap), [(1, 1), (2, 2)]);
    assert_eq!(tap.unseen(), 1);
}

/// Laps of returns are known by 16 bits: an observer that looks again after so many is not misled.
#[test]
#[cfg_attr(miri, ignore = "a million messages; nothing in it that shorter tests have not")]
fn an_observer_that_slept_for_65536_laps_shows_nothing_that_was_returned() {
    for slept in [65_535, 65_536, 65_537] {
        let fifo = fifo(1);
        let memory = Memory::new(&fifo);
        let (mut sender, mut receiver) = memory.pair(&fifo);
        let mut tap = Tap::new(&fifo, SENDER, None).unwrap();
        assert_eq!(memory.shown(&mut tap), []);
        for value in 0..=slept {
            send(&mut sender, value);
            let received = take(&mut receiver);
            give_back(&mut receiver, received);
        }
        sender.collect();
        assert_eq!(memory.shown(&mut tap), [], "after {slept}");
        assert_eq!(tap.unseen(), u64::from(slept) + 1);
    }
}

/// Blocks come back in any order; those that have not are shown.
#[test]
fn a_return_speaks_for_its_own_block_only() {
    let fifo = fifo(4);
    let memory = Memory::new(&fifo);
    let (mut sender, mut receiver) = memory.pair(&fifo);
    let mut tap = Tap::new(&fifo, SENDER, None).unwrap();
    for lap in 0..6 {
        assert_eq!(memory.shown(&mut tap), []);
        (0..4).for_each(|value| send(&mut sender, lap * 4 + value));
        let mut taken: Vec<_> = (0..4).map(|_| take(&mut receiver)).collect();
        let (first, third) = (taken.remove(0), taken.remove(1));
        give_back(&mut receiver, third);
        give_back(&mut receiver, first);
        sender.collect();
        assert_eq!(memory.shown(&mut tap), [(lap * 4 + 1, lap * 4 + 1), (lap * 4 + 3, lap * 4 + 3)]);
        assert_eq!(tap.unseen(), u64::from(2 * (lap + 1)));
        taken.into_iter().for_each(|received| give_back(&mut receiver, received));
    }
}

/// An observer that comes late, or falls behind by laps, goes on at what is still there and counts the rest.
#[test]
fn an_observer_that_falls_behind_counts_what_it_missed() {
    let fifo = fifo(4);
    let memory = Memory::new(&fifo);
    let (mut sender, mut receiver) = memory.pair(&fifo);
    let (mut early, mut sent) = (Tap::new(&fifo, SENDER, None).unwrap(), 0);
    let mut shown = Vec::new();
    for pass in [1, 3, 4, 5, 11, 64, 2] {
        for _ in 0..pass {
            send(&mut sender, sent);
            sent += 1;
            let received = take(&mut receiver);
            give_back(&mut receiver, received);
        }
        send(&mut sender, sent);
        sent += 1;
        shown.extend(memory.shown(&mut early));
        assert_eq!(shown.last(), Some(&(sent - 1, sent - 1)), "after {pass} more");
        assert_eq!(early.unseen() + shown.len() as u64, u64::from(sent));
        let mut late = Tap::new(&fifo, SENDER, None).unwrap();
        late.begin_now(memory.tx(), |_, _| None);
        assert_eq!(memory.shown(&mut late), [(sent - 1, sent - 1)]);
        assert_eq!(late.unseen(), 0);
        let received = take(&mut receiver);
        give_back(&mut receiver, received);
    }
    assert!(shown.iter().all(|(position, value)| position == value));
}

/// Laps are known by 16 bits, and an entry of block 0 in the 65,536th looks like none.
#[test]
fn an_observer_comes_in_any_lap() {
    let fifo = fifo(2);
    let memory = Memory::new(&fifo);
    let (mut sender, mut receiver) = memory.pair(&fifo);
    let mut number = 0;
    let mut pass = |count: u32| {
        for _ in 0..count {
            send(&mut sender, number);
            let received = take(&mut receiver);
            give_back(&mut receiver, received);
            number += 1;
        }
        send(&mut sender, number);
        let held = take(&mut receiver);
        let mut late = Tap::new(&fifo, SENDER, None).unwrap();
        late.begin_now(memory.tx(), |_, _| None);
        // It was taken before we came. A receiver that is not known yet says nothing of that.
        assert_eq!(late.look(memory.tx(), |_, _| None, &mut [0; 16]), Look::Unknown(RECEIVER.0, RECEIVER.1));
        assert_eq!(memory.shown(&mut late), []);
        give_back(&mut receiver, held);
        number += 1;
        send(&mut sender, number);
        assert_eq!(memory.shown(&mut late), [(number, number)]);
        let held = take(&mut receiver);
        give_back(&mut receiver, held);
        assert_eq!(memory.shown(&mut late), []);
        number += 1;
        send(&mut sender, number);
        let held = take(&mut receiver);
        give_back(&mut receiver, held);
        sender.collect();
        assert_eq!((memory.shown(&mut late), late.unseen()), (std::vec![], 1), "after {number}");
        number += 1;
    };
    (0..20).for_each(|_| pass(0));
    // An interpreter would take half an hour for them.
    if !cfg!(miri) {
        pass(2 * 65_534);
    }
    (0..20).for_each(|_| pass(0));
}

#[test]
fn what_is_queued_without_a_receiver_is_certain() {
    let fifo = fifo(3);
    let memory = Memory::new(&fifo);
    let mut sender = memory.sender(&fifo);
    let mut tap = Tap::new(&fifo, SENDER, None).unwrap();
    (0..3).for_each(|value| send(&mut sender, value));
    assert_eq!(memory.shown(&mut tap), [(0, 0), (1, 1), (2, 2)]);
    // A receiver that has not begun yet has returned nothing.
    let mut again = Tap::new(&fifo, SENDER, None).unwrap();
    session::publish_link(&OwnWords::of(&memory.tx), RECEIVER.0, RECEIVER.1, 0);
    assert_eq!(memory.shown(&mut again).len(), 3);
    // One that is still with a former sender may have returned what we don't know of.
    OwnWords::of(&memory.rx).set(rx::LINK_EPOCH, SENDER.1 + 1);
    let mut third = Tap::new(&fifo, SENDER, None).unwrap();
    assert_eq!(memory.look(&mut third).0, Look::Unknown(RECEIVER.0, RECEIVER.1));
    assert_eq!(third.unseen(), 0, "it may still turn out certain");
    let mut successor = Tap::new(&fifo, SENDER, Some((SENDER.0, SENDER.1 + 1))).unwrap();
    OwnWords::of(&memory.rx).set(rx::LINK_PARTICIPANT, u32::from(SENDER.0));
    assert_eq!(memory.shown(&mut successor).len(), 3, "it is with our predecessor");
    let nobody = |_, _| None;
    assert_eq!(third.look(memory.tx(), nobody, &mut [0; 16]), Look::Unknown(RECEIVER.0, RECEIVER.1));
}

/// A receiver dies with messages in hand and in the queue. What the sender takes back is not shown any more.
#[test]
fn a_receiver_that_dies_takes_its_messages_out_of_sight() {
    for on_restart in [OnRestart::Keep, OnRestart::Drop] {
        let fifo = Fifo { on_restart, ..fifo(4) };
        let memory = Memory::new(&fifo);
        let (mut sender, mut receiver) = memory.pair(&fifo);
        let mut tap = Tap::new(&fifo, SENDER, None).unwrap();
        (0..3).for_each(|value| send(&mut sender, value));
        let _taken = take(&mut receiver);
        let own = OwnWords::of(&memory.tx);
        let start = session::end_link(&own, Some(memory.rx()), Ring::new(4), SENDER, 0, on_restart);
        sender.set_receiver(None, start);
        send(&mut sender, 3);
        send(&mut sender, 4);
        let (kept, lost) = if on_restart == OnRestart::Keep { (1..5, 1) } else { (3..5, 3) };
        assert_eq!(memory.shown(&mut tap), kept.map(|value| (value, value)).collect::<Vec<_>>());
        assert_eq!(tap.unseen(), lost);
    }
}

/// An observer may be ahead of the receiver, and so ahead of where the next session begins: that is no news.
#[test]
fn who_saw_what_nobody_took_is_not_sent_back_or_forward_by_a_new_session() {
    let fifo = fifo(4);
    let memory = Memory::new(&fifo);
    let (mut sender, mut receiver) = memory.pair(&fifo);
    let mut tap = Tap::new(&fifo, SENDER, None).unwrap();
    (0..3).for_each(|value| send(&mut sender, value));
    let _taken = take(&mut receiver);
    for _ in 0..2 {
        assert!([0, 3].contains(&memory.shown(&mut tap).len()), "each once");
    }
    let own = OwnWords::of(&memory.tx);
    let start = session::end_link(&own, Some(memory.rx()), Ring::new(4), SENDER, 0, OnRestart::Keep);
    assert_eq!(start, 1);
    sender.set_receiver(None, start);
    assert_eq!((memory.shown(&mut tap), tap.unseen()), (std::vec![], 0));
    send(&mut sender, 3);
    assert_eq!((memory.shown(&mut tap), tap.unseen()), (std::vec![(3, 3)], 0));
}

/// A view of a receive end that is shorter than the channel says is not looked into.
#[test]
fn a_receiver_with_too_few_words_is_an_unknown_one() {
    let fifo = fifo(3);
    let memory = Memory::new(&fifo);
    let (mut sender, _receiver) = memory.pair(&fifo);
    send(&mut sender, 0);
    let words = Shape::of(&fifo).unwrap().rx_bytes().unwrap() / 4;
    let look_with = |words: u32| {
        let mut tap = Tap::new(&fifo, SENDER, None).unwrap();
        tap.look(memory.tx(), |_, _| Some(memory.rx().part(0, words)), &mut [0; 16])
    };
    assert!(matches!(look_with(words), Look::Message(_)));
    for short in [0, rx::WORDS, words - 1] {
        assert_eq!(look_with(short), Look::Unknown(RECEIVER.0, RECEIVER.1), "{short} of {words}");
    }
}

#[test]
fn a_sender_that_has_ended_leaves_nothing_uncounted() {
    let fifo = fifo(4);
    let memory = Memory::new(&fifo);
    let (mut sender, mut receiver) = memory.pair(&fifo);
    for count in 0..9 {
        send(&mut sender, count);
        if count < 6 {
            let received = take(&mut receiver);
            give_back(&mut receiver, received);
        }
    }
    // It died between its tail and an announcement.
    OwnWords::of(&memory.tx).set(tx::TAIL, 10);
    let mut tap = Tap::new(&fifo, SENDER, None).unwrap();
    tap.end(memory.tx());
    assert_eq!(tap.unseen(), 9);
    let mut late = Tap::new(&fifo, SENDER, None).unwrap();
    late.begin_now(memory.tx(), |_, _| None);
    late.end(memory.tx());
    assert_eq!(late.unseen(), 0, "it passed before we came");
}

/// Whatever the words say: no panic, no access outside, and a bounded number of steps.
#[test]
fn rubbish_in_all_words_harms_no_observer() {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let mut seen = BTreeMap::new();
    for _ in 0..if cfg!(miri) { 40 } else { 3_000 } {
        let fifo = fifo(1 + (random() % 5) as u32);
        let memory = Memory::new(&fifo);
        let (mut sender, _receiver) = memory.pair(&fifo);
        let mut tap = Tap::new(&fifo, SENDER, None).unwrap();
        for _ in 0..6 {
            if sender.allocate().is_ok_and(|loan| sender.enqueue(loan, 4, &NoClock).is_ok()) {
                memory.shown(&mut tap);
            }
            for words in [&memory.tx, &memory.rx] {
                let at = random() as usize % words.len();
                let value = [random() as u32, random() as u32 % 8, u32::MAX][(random() % 3) as usize];
                words[at].store(value, crate::sync::Ordering::Relaxed);
            }
            // What decides is met often.
            let first = tx::WORDS + slot::TURN;
            OwnWords::of(&memory.tx).set(first + (random() % 4) as u32, random() as u32 % 9);
            OwnWords::of(&memory.rx)
                .set([rx::TAKEN, rx::LINK_EPOCH, rx::WORDS][(random() % 3) as usize], random() as u32 % 99);
            let look = match memory.look(&mut tap).0 {
                Look::Message(found) => {
                    assert!(found.bytes <= 16);
                    "message"
                }
                Look::Passed => "passed",
                Look::Nothing => "nothing",
                Look::Unknown(..) => "unknown",
            };
            *seen.entry(look).or_insert(0) += 1;
        }
        tap.end(memory.tx());
    }
    assert_eq!(seen.len(), 4, "{seen:?}");
}

/// Who comes when some blocks of a lap are back does not take a later return of that lap for one that is to come.
#[test]
fn an_observer_finds_how_far_a_lap_of_returns_is() {
    for returned in 0..13 {
        let fifo = fifo(4);
        let memory = Memory::new(&fifo);
        let (mut sender, mut receiver) = memory.pair(&fifo);
        for number in 0..returned {
            send(&mut sender, number);
            let received = take(&mut receiver);
            give_back(&mut receiver, received);
        }
        let mut late = Tap::new(&fifo, SENDER, None).unwrap();
        late.begin_now(memory.tx(), |_, _| None);
        assert_eq!(memory.look(&mut late).0, Look::Nothing);
        send(&mut sender, returned);
        let received = take(&mut receiver);
        give_back(&mut receiver, received);
        sender.collect();
        assert_eq!((memory.shown(&mut late), late.unseen()), (std::vec![], 1), "after {returned}");
    }
}

/// What changes between the copy and the second look decides.
#[test]
fn a_message_that_is_overwritten_while_it_is_copied_is_not_shown() {
    let fifo = fifo(3);
    for (word, is_shown) in [(0, true), (slot::TURN, false)] {
        let memory = Memory::new(&fifo);
        let (mut sender, _receiver) = memory.pair(&fifo);
        let mut tap = Tap::new(&fifo, SENDER, None).unwrap();
        send(&mut sender, 5);
        let asked = core::cell::Cell::new(0);
        let find = |_, _| {
            asked.set(asked.get() + 1);
            if asked.get() == 2 && !is_shown {
                OwnWords::of(&memory.tx).set(Shape::of(&fifo).unwrap().slot(0) + word, 2 << 1);
            }
            Some(memory.rx())
        };
        let look = tap.look(memory.tx(), find, &mut [0; 16]);
        assert_eq!(asked.get(), 2);
        assert_eq!((matches!(look, Look::Message(_)), look == Look::Passed), (is_shown, !is_shown));
    }
}

/// A sender that does not say what it took back: the returns alone tell, as long as their laps do.
#[test]
fn returns_alone_tell_as_long_as_their_laps_do() {
    let fifo = fifo(3);
    for (lap, is_shown) in [(None, true), (Some(5), false)] {
        let memory = Memory::new(&fifo);
        let (mut sender, mut receiver) = memory.pair(&fifo);
        for number in 0..7 {
            send(&mut sender, number);
            let received = take(&mut receiver);
            give_back(&mut receiver, received);
        }
        let mut late = Tap::new(&fifo, SENDER, None).unwrap();
        late.begin_now(memory.tx(), |_, _| None);
        assert_eq!(memory.look(&mut late).0, Look::Nothing);
        send(&mut sender, 7);
        OwnWords::of(&memory.tx).set(tx::REAPED, 0);
        let asked = core::cell::Cell::new(0);
        let find = |_, _| {
            asked.set(asked.get() + 1);
            if let (2, Some(lap)) = (asked.get(), lap) {
                // Returns of a block that is not the message's, two laps on.
                (0..3).for_each(|entry| OwnWords::of(&memory.rx).set(rx::WORDS + entry, lap << 16));
            }
            Some(memory.rx())
        };
        let look = late.look(memory.tx(), find, &mut [0; 16]);
        assert_eq!((matches!(look, Look::Message(_)), look == Look::Passed), (is_shown, !is_shown), "{look:?}");
    }
}

//! What an end says of itself: to its port by its getters, to observers by the words that it counts in.

use super::*;
use crate::Error;
use crate::histogram;
use crate::layout::{rx, slot, tx};

/// A clock that stands still at this instant.
struct At(u64);
impl Clock for At {
    fn now_ns(&self) -> u64 {
        self.0
    }
}

fn send(sender: &mut TestSender<'_>, bytes: u32, at_ns: u64) {
    let loan = sender.allocate().unwrap();
    assert!(sender.enqueue(loan, bytes, &At(at_ns)).is_ok());
}

fn receive(receiver: &mut TestReceiver<'_>, at_ns: u64) -> u32 {
    let received = receiver.dequeue(&At(at_ns), &CountingBell::default()).unwrap();
    let bytes = received.len();
    assert!(receiver.free(received, &CountingBell::default()).is_ok());
    bytes
}

#[test]
fn a_receiver_knows_its_sender_and_whether_the_session_is_open() {
    let fifo = fifo(3);
    let memory = Memory::new(&fifo);
    let mut receiver = memory.receiver(&fifo, RECEIVER.1);
    assert_eq!((receiver.sender(), receiver.is_open()), (SENDER, false));
    session::publish_link(&OwnWords::of(&memory.tx), RECEIVER.0, RECEIVER.1, 0);
    assert!(!receiver.is_open(), "before it has begun");
    assert!(receiver.begin() && receiver.is_open());
    assert!(receiver.retire() && !receiver.is_open());
}

#[test]
fn both_sides_count_messages_and_bytes() {
    let fifo = fifo(4);
    let memory = Memory::new(&fifo);
    let (mut sender, mut receiver) = memory.pair(&fifo);
    assert_eq!((sender.block_bytes(), sender.blocks()), (16, (4, 4)));
    for bytes in [0, 1, 7, 16] {
        send(&mut sender, bytes, 1);
    }
    assert_eq!((sender.blocks(), sender.queued(), receiver.queued()), ((4, 0), 4, 4));
    for bytes in [0, 1, 7] {
        assert_eq!(receive(&mut receiver, 1), bytes);
    }
    let kept = receiver.dequeue(&At(1), &CountingBell::default()).unwrap();
    assert_eq!((kept.len(), kept.is_empty(), kept.block(), receiver.held()), (16, false, 3, 1));
    sender.collect();
    assert_eq!((sender.blocks(), sender.queued(), receiver.queued()), ((4, 3), 0, 0));
    let (own, peers) = (OwnWords::of(&memory.tx), OwnWords::of(&memory.rx));
    assert_eq!([tx::SENT, tx::BYTES, tx::REFUSED, tx::EXHAUSTED].map(|word| own.get(word)), [4, 24, 0, 0]);
    assert_eq!([rx::RECEIVED, rx::BYTES, rx::REFUSED, rx::HELD].map(|word| peers.get(word)), [4, 24, 0, 1]);
}

#[test]
fn the_deepest_queue_is_noted_at_samples_and_when_no_block_is_free() {
    let fifo = Fifo { sample_every: 1, ..fifo(20) };
    let memory = Memory::new(&fifo);
    let (mut sender, mut receiver) = memory.pair(&fifo);
    let high_water = || OwnWords::of(&memory.tx).get(tx::HIGH_WATER);
    (0..15).for_each(|_| send(&mut sender, 1, 1));
    assert_eq!(high_water(), 0, "it was not looked at");
    send(&mut sender, 1, 1);
    assert_eq!(high_water(), 15, "at the 16th sample, before its message");
    (0..4).for_each(|_| send(&mut sender, 1, 1));
    assert_eq!(sender.allocate().err(), Some(Error::NoBlock));
    assert_eq!((high_water(), OwnWords::of(&memory.tx).get(tx::EXHAUSTED)), (20, 1));
    (0..20).for_each(|_| assert_eq!(receive(&mut receiver, 1), 1));
    (0..16).for_each(|_| send(&mut sender, 1, 1));
    assert_eq!(high_water(), 20, "a lower one changes nothing");
}

#[test]
fn each_so_many_messages_one_is_stamped() {
    let fifo = Fifo { sample_every: 3, ..fifo(8) };
    let memory = Memory::new(&fifo);
    let (mut sender, _receiver) = memory.pair(&fifo);
    let shape = Shape::of(&fifo).unwrap();
    (0..8).for_each(|number| send(&mut sender, 1, number * 100));
    let stamps: Vec<u32> = (0..8).map(|index| OwnWords::of(&memory.tx).get(shape.slot(index) + slot::STAMP)).collect();
    assert_eq!(stamps, [1, 0, 0, 300, 0, 0, 600, 0], "0 says that there is none, so the instant 0 is 1");
}

#[test]
fn a_latency_beyond_the_budget_is_counted() {
    let fifo = Fifo { sample_every: 1, budget_ns: 10, ..fifo(4) };
    let memory = Memory::new(&fifo);
    let (mut sender, mut receiver) = memory.pair(&fifo);
    let words = || [rx::OVER_BUDGET, rx::HISTOGRAM + histogram::COUNT, rx::HISTOGRAM + histogram::MAX];
    let mut counts_after = |latency_ns: u64| {
        send(&mut sender, 1, 1_000);
        receive(&mut receiver, 1_000 + latency_ns);
        words().map(|word| OwnWords::of(&memory.rx).get(word))
    };
    assert_eq!(counts_after(10), [0, 1, 10]);
    assert_eq!(counts_after(11), [1, 2, 11]);
    assert_eq!(counts_after(5), [1, 3, 11]);
}

#[test]
fn a_block_that_comes_back_twice_is_refused_and_counted_once() {
    let fifo = fifo(4);
    let memory = Memory::new(&fifo);
    let (mut sender, mut receiver) = memory.pair(&fifo);
    for _ in 0..2 {
        send(&mut sender, 1, 1);
        receive(&mut receiver, 1);
    }
    let returns = OwnWords::of(&memory.rx);
    returns.set(rx::WORDS + 1, returns.get(rx::WORDS));
    sender.collect();
    assert_eq!((sender.blocks(), OwnWords::of(&memory.tx).get(tx::REFUSED)), ((4, 3), 1));
}

/// A filter that waits for ever more requests, but not beyond 100 ns.
const LATEST: FilterRule = FilterRule { every: 9, latest_ns: 100, ..FilterRule::EACH };

#[test]
fn a_held_notification_is_raised_when_its_time_has_come() {
    let fifo = Fifo { filter: LATEST, ..fifo(4) };
    let memory = Memory::new(&fifo);
    let (mut sender, mut receiver) = memory.pair(&fifo);
    let bell = CountingBell::default();
    send(&mut sender, 1, 50);
    assert_eq!(sender.notify(&At(50), &bell), Notified::Held { latest_at_ns: 150 });
    assert!(!sender.raise_if_due(&At(149), &bell) && !receiver.ready());
    assert!(sender.raise_if_due(&At(150), &bell) && receiver.ready());
    assert!(!sender.raise_if_due(&At(1_000), &bell), "once");
    let own = OwnWords::of(&memory.tx);
    assert_eq!((own.get(tx::RAISED), own.get(tx::SUPPRESSED)), (1, 1));
}

#[test]
fn what_the_ports_timer_raised_is_not_raised_again() {
    let fifo = Fifo { filter: LATEST, ..fifo(4) };
    let memory = Memory::new(&fifo);
    let (mut sender, _receiver) = memory.pair(&fifo);
    let bell = CountingBell::default();
    send(&mut sender, 1, 50);
    assert_eq!(sender.notify(&At(50), &bell), Notified::Held { latest_at_ns: 150 });
    sender.note_raised(150);
    assert!(!sender.raise_if_due(&At(1_000), &bell));
    assert_eq!(OwnWords::of(&memory.tx).get(tx::RAISED), 0);
}

#[test]
fn a_filter_by_level_counts_what_is_queued_now() {
    let fifo = Fifo { filter: FilterRule { every: u32::MAX, level: 2, latest_ns: 100, ..FilterRule::EACH }, ..fifo(4) };
    let memory = Memory::new(&fifo);
    let (mut sender, mut receiver) = memory.pair(&fifo);
    let bell = CountingBell::default();
    for _ in 0..2 {
        send(&mut sender, 1, 1);
        assert!(matches!(sender.notify(&At(1), &bell), Notified::Held { .. }));
        receive(&mut receiver, 1);
    }
    send(&mut sender, 1, 1);
    assert!(matches!(sender.notify(&At(1), &bell), Notified::Held { .. }));
    send(&mut sender, 1, 1);
    assert_eq!(sender.notify(&At(1), &bell), Notified::Raised);
}

#[test]
fn a_new_filter_raises_what_the_old_one_held() {
    let fifo = Fifo { filter: LATEST, ..fifo(4) };
    let memory = Memory::new(&fifo);
    let (mut sender, mut receiver) = memory.pair(&fifo);
    let bell = CountingBell::default();
    send(&mut sender, 1, 1);
    assert!(matches!(sender.notify(&At(1), &bell), Notified::Held { .. }));
    sender.set_filter(FilterRule::EACH, &bell);
    assert!(receiver.ready());
    sender.set_filter(LATEST, &bell);
    assert_eq!(OwnWords::of(&memory.tx).get(tx::RAISED), 1, "nothing was held");
    send(&mut sender, 1, 1);
    assert!(matches!(sender.notify(&At(1), &bell), Notified::Held { .. }));
}

#[test]
fn who_sleeps_gives_the_kernel_the_other_sides_word() {
    let fifo = fifo(4);
    let memory = Memory::new(&fifo);
    let (sender, receiver) = memory.pair(&fifo);
    let (of_sender, of_receiver) = (sender.bell().unwrap(), receiver.bell());
    assert_eq!(of_sender.word(0).address(), memory.rx[rx::BELL as usize].as_ptr().cast_const());
    assert_eq!(of_receiver.word(0).address(), memory.tx[tx::BELL as usize].as_ptr().cast_const());
}

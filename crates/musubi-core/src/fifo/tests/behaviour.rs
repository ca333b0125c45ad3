//! The channel against a model, and with words that a peer spoils.

use super::*;
use crate::Error;
use crate::guarantee::tests::{cases, length};
use crate::layout::{rx, slot, tx};
use proptest::prelude::*;
use std::collections::VecDeque;

fn send(sender: &mut TestSender<'_>, value: u32) -> Result<(), Error> {
    let mut loan = sender.allocate()?;
    loan[..4].copy_from_slice(&value.to_le_bytes());
    sender.enqueue(loan, 4, &NoClock).map_err(|(error, _)| error)
}

fn value(received: &Received<'_>) -> u32 {
    let mut bytes = [0; 4];
    assert_eq!(received.copy_to(0, &mut bytes), 4);
    u32::from_le_bytes(bytes)
}

fn receive(receiver: &mut TestReceiver<'_>) -> Result<u32, Error> {
    let received = receiver.dequeue(&NoClock, &CountingBell::default())?;
    let value = value(&received);
    receiver.free(received, &CountingBell::default()).unwrap();
    Ok(value)
}

#[test]
fn announcement_and_payload_share_a_line_in_order() {
    let fifo = fifo(3);
    let memory = Memory::new(&fifo);
    let (mut sender, mut receiver) = memory.pair(&fifo);
    for turn in 0..30 {
        let loan = sender.allocate().unwrap();
        assert_eq!(loan.block(), turn % 3);
        sender.enqueue(loan, 4, &NoClock).unwrap();
        receive(&mut receiver).unwrap();
    }
}

#[test]
fn wait_is_a_level_and_the_filter_never_loses_a_wake_up() {
    let fifo = Fifo { filter: FilterRule { every: 2, ..FilterRule::EACH }, ..fifo(8) };
    let memory = Memory::new(&fifo);
    let (mut sender, mut receiver) = memory.pair(&fifo);
    let bell = CountingBell::default();
    send(&mut sender, 1).unwrap();
    assert!(matches!(sender.notify(&NoClock, &bell), Notified::Held { .. }));
    assert!(!receiver.ready());
    send(&mut sender, 2).unwrap();
    assert_eq!(sender.notify(&NoClock, &bell), Notified::Raised);
    assert!(receiver.ready());
    assert_eq!(receive(&mut receiver), Ok(1));
    assert!(receiver.ready(), "the second message was notified and is not dequeued");
    assert_eq!(receive(&mut receiver), Ok(2));
    assert!(!receiver.ready());
    // A timer's notification covers what is announced.
    send(&mut sender, 3).unwrap();
    assert!(!receiver.ready());
    OwnWords::of(&memory.tx).advance(tx::EVENTS, 1);
    assert!(receiver.ready());
    assert_eq!(receive(&mut receiver), Ok(3));
    assert!(!receiver.ready());
}

#[test]
fn a_notification_after_several_messages_covers_them_all() {
    let fifo = fifo(8);
    let memory = Memory::new(&fifo);
    let (mut sender, mut receiver) = memory.pair(&fifo);
    for value in 0..3 {
        send(&mut sender, value).unwrap();
        assert!(!receiver.ready());
    }
    sender.notify(&NoClock, &CountingBell::default());
    for value in 0..3 {
        assert!(receiver.ready());
        assert_eq!(receive(&mut receiver), Ok(value));
    }
    assert!(!receiver.ready());
}

/// A stream that never runs out of blocks gives the sender no other reason to look whether its receiver has begun.
#[test]
fn what_observers_see_of_a_stream_that_is_drained_at_once_is_small() {
    let fifo = Fifo { sample_every: 1, ..fifo(40) };
    let memory = Memory::new(&fifo);
    let (mut sender, mut receiver) = memory.pair(&fifo);
    for value in 0..32 {
        send(&mut sender, value).unwrap();
        assert_eq!(receive(&mut receiver), Ok(value));
    }
    let own = OwnWords::of(&memory.tx);
    assert_eq!(own.get(tx::HIGH_WATER), 0, "whenever the depth was looked at, nothing was queued");
    assert_eq!(own.get(tx::HELD), 0);
    let (kept, sent) = (sender.allocate().unwrap(), sender.allocate().unwrap());
    assert_eq!(own.get(tx::HELD), 2);
    sender.enqueue(sent, 4, &NoClock).unwrap();
    assert_eq!(own.get(tx::HELD), 1);
    sender.free(kept).unwrap();
    assert_eq!(own.get(tx::HELD), 0);
}

#[test]
fn misuse_changes_nothing() {
    let fifo = fifo(2);
    let memory = Memory::new(&fifo);
    let (mut sender, mut receiver) = memory.pair(&fifo);
    let bell = CountingBell::default();
    let loan = sender.allocate().unwrap();
    let (error, loan) = sender.enqueue(loan, 17, &NoClock).unwrap_err();
    assert_eq!(error, Error::TooLong);
    sender.enqueue(loan, 16, &NoClock).unwrap();
    let other_memory = Memory::new(&fifo);
    let (mut other, mut other_receiver) = other_memory.pair(&fifo);
    send(&mut other, 7).unwrap();
    let received = other_receiver.dequeue(&NoClock, &bell).unwrap();
    let received = receiver.free(received, &bell).unwrap_err();
    other_receiver.free(received, &bell).unwrap();
    assert_eq!(bell.0.get(), 0);
    let received = receiver.dequeue(&NoClock, &bell).unwrap();
    receiver.free(received, &bell).unwrap();
    assert_eq!(receiver.dequeue(&NoClock, &bell).unwrap_err(), Error::Empty);
    let foreign = other.allocate().unwrap();
    let (error, foreign) = sender.enqueue(foreign, 1, &NoClock).unwrap_err();
    assert_eq!(error, Error::NotHeld);
    let foreign = sender.free(foreign).unwrap_err();
    other.free(foreign).unwrap();
    assert_eq!((sender.held(), other.held()), (0, 0));
}

/// An end that is made anew over the same memory has given nothing out.
#[test]
fn what_a_former_end_gave_out_is_refused() {
    let fifo = fifo(2);
    let memory = Memory::new(&fifo);
    let bell = CountingBell::default();
    let (mut former, mut former_receiver) = memory.pair(&fifo);
    let loan = former.allocate().unwrap();
    send(&mut former, 1).unwrap();
    let received = former_receiver.dequeue(&NoClock, &bell).unwrap();
    let (mut sender, mut receiver) = memory.pair(&fifo);
    let loan = sender.free(loan).unwrap_err();
    assert_eq!(sender.enqueue(loan, 1, &NoClock).unwrap_err().0, Error::NotHeld);
    let _ = receiver.free(received, &bell).unwrap_err();
    assert_eq!((sender.held(), sender.blocks().1, receiver.held()), (0, 2, 0));
}

#[test]
fn a_dead_receivers_blocks_come_back_and_its_successor_goes_on() {
    let fifo = fifo(4);
    let memory = Memory::new(&fifo);
    let (mut sender, mut receiver) = memory.pair(&fifo);
    let bell = CountingBell::default();
    for value in 0..4 {
        send(&mut sender, value).unwrap();
    }
    assert_eq!(receive(&mut receiver), Ok(0));
    let in_hand = receiver.dequeue(&NoClock, &bell).unwrap();
    assert_eq!(value(&in_hand), 1);
    drop(receiver);
    // The port's part: read how far it got, start a session with the successor.
    let (own, rx) = (OwnWords::of(&memory.tx), OwnWords::of(&memory.rx).as_peer());
    let start = session::end_link(&own, Some(rx), Ring::new(4), SENDER, 0, OnRestart::Keep);
    assert_eq!(start, 2);
    let abandoned = sender.set_receiver(None, start);
    assert_eq!(abandoned, 1, "the one in its hands");
    assert_eq!(sender.blocks().1, 2, "the freed and the abandoned one");
    let fresh = Memory::new(&fifo);
    let successor_memory = Memory { tx: Vec::new(), rx: fresh.rx };
    let held = vec![0; TestReceiver::held_words(4)];
    let (own_rx, tx) = (OwnWords::of(&successor_memory.rx), own.as_peer());
    let me = (RECEIVER.0, 100);
    let mut successor: TestReceiver<'_> =
        Receiver::new(own_rx, tx, &fifo, me, SENDER, Trust::MayCrash, held, Coherent).unwrap();
    assert!(!successor.ready());
    session::publish_link(&own, me.0, me.1, start);
    sender.set_receiver(Some(OwnWords::of(&successor_memory.rx).as_peer()), start);
    for expected in [2, 3] {
        assert_eq!(receive(&mut successor), Ok(expected));
    }
    for value in 4..40 {
        send(&mut sender, value).unwrap();
        assert_eq!(receive(&mut successor), Ok(value));
    }
}

#[test]
fn a_loan_is_given_back_by_itself_only() {
    let fifo = fifo(2);
    let memory = Memory::new(&fifo);
    let (mut sender, _receiver) = memory.pair(&fifo);
    let loan = sender.allocate().unwrap();
    sender.reset(&CountingBell::default());
    assert_eq!(sender.held(), 1);
    let other = sender.allocate().unwrap();
    assert_ne!(loan.block(), other.block());
    assert_eq!(sender.allocate().unwrap_err(), Error::NoBlock);
    let (error, loan) = sender.enqueue(loan, 17, &NoClock).unwrap_err();
    assert_eq!(error, Error::TooLong);
    sender.enqueue(loan, 16, &NoClock).unwrap();
    sender.free(other).unwrap();
}

#[test]
fn a_new_sender_hears_no_event_that_was_raised_for_the_last() {
    let fifo = fifo(4);
    let memory = Memory::new(&fifo);
    let (sender, receiver) = memory.pair(&fifo);
    receiver_events(receiver, 3);
    drop(sender);
    // The successor has memory of its own; here it is the same, wiped.
    let fresh = Memory::new(&fifo);
    let successor_words = Memory { tx: fresh.tx, rx: Vec::new() };
    let mut successor = successor_words.sender(&fifo);
    let held = vec![0; TestReceiver::held_words(4)];
    let tx_words = OwnWords::of(&successor_words.tx);
    let mut receiver: TestReceiver<'_> = Receiver::new(
        OwnWords::of(&memory.rx),
        tx_words.as_peer(),
        &fifo,
        RECEIVER,
        SENDER,
        Trust::MayCrash,
        held,
        Coherent,
    )
    .unwrap();
    session::publish_link(&tx_words, RECEIVER.0, RECEIVER.1, 0);
    successor.set_receiver(Some(OwnWords::of(&memory.rx).as_peer()), 0);
    assert!(receiver.begin());
    assert!(!successor.poll().event);
    receiver.notify(&CountingBell::default());
    assert!(successor.poll().event);
}

fn receiver_events(mut receiver: TestReceiver<'_>, count: u32) {
    for _ in 0..count {
        receiver.notify(&CountingBell::default());
    }
}

#[test]
fn dropping_policy_drops_and_counts() {
    let fifo = fifo(4);
    let memory = Memory::new(&fifo);
    let (mut sender, mut receiver) = memory.pair(&fifo);
    for value in 0..4 {
        send(&mut sender, value).unwrap();
    }
    let _in_hand = receiver.dequeue(&NoClock, &CountingBell::default()).unwrap();
    let (own, rx) = (OwnWords::of(&memory.tx), OwnWords::of(&memory.rx).as_peer());
    let start = session::end_link(&own, Some(rx), Ring::new(4), SENDER, 0, OnRestart::Drop);
    assert_eq!(start, 4);
    assert_eq!(own.get(tx::DROPPED), 3);
    assert_eq!(sender.set_receiver(None, start), 1);
    assert_eq!(sender.blocks(), (4, 4));
}

#[test]
fn a_dead_senders_committed_messages_are_drained() {
    let fifo = fifo(4);
    let memory = Memory::new(&fifo);
    let (mut sender, mut receiver) = memory.pair(&fifo);
    for value in 0..3 {
        send(&mut sender, value).unwrap();
    }
    drop(sender);
    assert!(!receiver.ready(), "nothing was notified");
    assert!(receiver.retire());
    for value in 0..3 {
        assert!(receiver.ready());
        assert!(!receiver.is_drained());
        assert_eq!(receive(&mut receiver), Ok(value));
    }
    assert!(!receiver.ready());
    assert!(receiver.is_drained());
}

#[test]
fn reset_by_the_sender_voids_what_is_queued() {
    let fifo = fifo(4);
    let memory = Memory::new(&fifo);
    let (mut sender, mut receiver) = memory.pair(&fifo);
    let bell = CountingBell::default();
    for value in 0..3 {
        send(&mut sender, value).unwrap();
    }
    sender.reset(&bell);
    send(&mut sender, 9).unwrap();
    assert_eq!(receive(&mut receiver), Ok(9));
    assert_eq!(receive(&mut receiver), Err(Error::Empty));
    for value in 0..4 {
        send(&mut sender, value).unwrap();
    }
    assert_eq!(receiver.reset(&NoClock, &bell), 4);
    assert_eq!(receive(&mut receiver), Err(Error::Empty));
    for value in 0..20 {
        send(&mut sender, value).unwrap();
        assert_eq!(receive(&mut receiver), Ok(value));
    }
}

#[test]
fn positions_go_on_across_the_wrap() {
    let fifo = fifo(3);
    let memory = Memory::new(&fifo);
    let (mut sender, mut receiver) = memory.pair(&fifo);
    let near_end = Ring::new(3).last() - 4;
    sender.jump_to(near_end);
    receiver.jump_to(near_end);
    for value in 0..20 {
        send(&mut sender, value).unwrap();
        sender.notify(&NoClock, &CountingBell::default());
        assert!(receiver.ready());
        assert_eq!(receive(&mut receiver), Ok(value));
    }
}

/// What a test does to a channel.
#[derive(Clone, Debug)]
enum Step {
    Allocate,
    Enqueue(usize),
    FreeUnsent(usize),
    Notify,
    Dequeue,
    FreeReceived(usize),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => Just(Step::Allocate),
        3 => (0usize..8).prop_map(Step::Enqueue),
        1 => (0usize..8).prop_map(Step::FreeUnsent),
        2 => Just(Step::Notify),
        3 => Just(Step::Dequeue),
        3 => (0usize..8).prop_map(Step::FreeReceived),
    ]
}

proptest! {
    #![proptest_config(cases(256))]

    /// The channel against two lists and a queue.
    #[test]
    fn behaves_like_a_bounded_queue(blocks in 1u32..7, steps in prop::collection::vec(step(), 1..length(200)), late in any::<bool>()) {
        let fifo = fifo(blocks);
        let memory = Memory::new(&fifo);
        let (mut sender, mut receiver) = memory.pair(&fifo);
        if late {
            let near_end = Ring::new(blocks).last() - 5;
            sender.jump_to(near_end);
            receiver.jump_to(near_end);
        }
        let bell = CountingBell::default();
        let (mut loans, mut queue, mut in_hand) = (Vec::new(), VecDeque::new(), Vec::new());
        let mut next = 0u32;
        let mut notified = 0usize;
        for step in steps {
            match step {
                Step::Allocate => match sender.allocate() {
                    Ok(loan) => loans.push(loan),
                    Err(error) => {
                        prop_assert_eq!(error, Error::NoBlock);
                        prop_assert_eq!(loans.len() + queue.len() + in_hand.len(), blocks as usize);
                    }
                },
                Step::Enqueue(which) if !loans.is_empty() => {
                    let mut loan = loans.swap_remove(which % loans.len());
                    loan[..4].copy_from_slice(&next.to_le_bytes());
                    sender.enqueue(loan, 4, &NoClock).unwrap();
                    queue.push_back(next);
                    next += 1;
                }
                Step::FreeUnsent(which) if !loans.is_empty() => {
                    let loan = loans.swap_remove(which % loans.len());
                    sender.free(loan).unwrap();
                }
                Step::Notify => {
                    sender.notify(&NoClock, &bell);
                    notified = queue.len();
                }
                Step::Dequeue => match receiver.dequeue(&NoClock, &bell) {
                    Ok(received) => {
                        prop_assert_eq!(Some(value(&received)), queue.pop_front());
                        notified = notified.saturating_sub(1);
                        in_hand.push((received, next));
                    }
                    Err(error) => {
                        prop_assert_eq!(error, Error::Empty);
                        prop_assert!(queue.is_empty());
                    }
                },
                Step::FreeReceived(which) if !in_hand.is_empty() => {
                    let (received, _) = in_hand.swap_remove(which % in_hand.len());
                    receiver.free(received, &bell).unwrap();
                }
                _ => {}
            }
            if notified > 0 {
                prop_assert!(receiver.ready());
            }
            prop_assert_eq!(receiver.queued() as usize, queue.len());
        }
        if notified == 0 && receiver.ready() {
            // A notification without a message is an event; it covers what is queued when it is seen, else it is
            // taken once.
            prop_assert!(!queue.is_empty() || (receiver.take_event() && !receiver.ready()));
        }
    }

    /// Whatever a peer writes, both ends stay inside their bounds, and the sender never hands a block out twice.
    #[test]
    fn garbage_from_the_peer_harms_nothing(blocks in 1u32..5, noise in prop::collection::vec((any::<u16>(), any::<u32>(), any::<bool>()), 1..length(300))) {
        let fifo = fifo(blocks);
        let memory = Memory::new(&fifo);
        let (mut sender, mut receiver) = memory.pair(&fifo);
        let bell = CountingBell::default();
        let mut loans: Vec<Loan<'_>> = Vec::new();
        for (at, value, plausible) in noise {
            let value = if plausible { value & 0x0003_0003 } else { value };
            // The receiver lies to the sender, the sender lies to the receiver.
            let rx_word = rx::WORDS + u32::from(at) % blocks;
            let rx_word = if at & 1 == 0 { rx_word } else { u32::from(at) % 48 };
            OwnWords::of(&memory.rx).set(rx_word, value);
            match sender.allocate() {
                Ok(loan) => {
                    prop_assert!(loans.iter().all(|other| other.block() != loan.block()));
                    loans.push(loan);
                }
                Err(_) => {
                    if let Some(loan) = loans.pop() {
                        let _ = sender.enqueue(loan, 4, &NoClock);
                    }
                }
            }
            sender.notify(&NoClock, &bell);
            sender.poll();
            prop_assert!(sender.queued() <= blocks);
            let tx_words = OwnWords::of(&memory.tx);
            let slot = Shape::of(&fifo).unwrap().slot(u32::from(at) % blocks) + (at as u32 >> 8) % slot::PAYLOAD;
            tx_words.set(if at & 2 == 0 { slot } else { u32::from(at) % 64 }, value);
            receiver.ready();
            if let Ok(received) = receiver.dequeue(&NoClock, &bell) {
                prop_assert!(received.len() <= 16 && received.block() < blocks);
                let mut bytes = [0; 16];
                received.copy_to(0, &mut bytes);
                if at & 4 == 0 {
                    receiver.free(received, &bell).unwrap();
                }
            }
        }
    }
}

#[test]
fn a_senders_event_is_taken_once() {
    let fifo = fifo(2);
    let memory = Memory::new(&fifo);
    let (mut sender, mut receiver) = memory.pair(&fifo);
    assert!(!sender.poll().event && !sender.take_event());
    receiver.notify(&CountingBell::default());
    assert!(sender.poll().event && sender.poll().event, "until it is taken");
    assert!(sender.take_event());
    assert!(!sender.poll().event && !sender.take_event(), "once");
}

#[test]
fn a_receivers_event_is_taken_once() {
    let fifo = fifo(2);
    let memory = Memory::new(&fifo);
    let (mut sender, mut receiver) = memory.pair(&fifo);
    assert!(!receiver.ready() && !receiver.take_event());
    sender.notify(&NoClock, &CountingBell::default());
    assert!(receiver.ready() && receiver.take_event());
    assert!(!receiver.ready() && !receiver.take_event());
}

#[test]
fn a_reset_counts_what_was_held_and_what_was_queued() {
    let fifo = fifo(6);
    let memory = Memory::new(&fifo);
    let (mut sender, mut receiver) = memory.pair(&fifo);
    let bell = CountingBell::default();
    (0..5).for_each(|value| send(&mut sender, value).unwrap());
    let held = [(); 2].map(|()| receiver.dequeue(&NoClock, &bell).unwrap());
    assert_eq!((receiver.held(), receiver.queued()), (2, 3));
    assert_eq!(receiver.reset(&NoClock, &bell), 5, "two held and three queued");
    assert_eq!((receiver.held(), receiver.queued()), (0, 0));
    assert!(held.into_iter().all(|received| receiver.free(received, &bell).is_err()), "they have gone back");
    assert_eq!(receiver.reset(&NoClock, &bell), 0);
}

#[test]
fn nobody_is_rung_who_does_not_sleep() {
    let fifo = fifo(4);
    let memory = Memory::new(&fifo);
    let (mut sender, mut receiver) = memory.pair(&fifo);
    let (up, down) = (CountingBell::default(), CountingBell::default());
    let mut exchange = |sleeps: bool, receiver: &mut TestReceiver<'_>| {
        if sleeps {
            assert!(!receiver.announce_wait(1));
            sender.announce_wait(1);
        }
        send(&mut sender, 1).unwrap();
        sender.notify(&NoClock, &down);
        let received = receiver.dequeue(&NoClock, &up).unwrap();
        receiver.free(received, &up).unwrap();
        receiver.withdraw_wait(0);
        sender.withdraw_wait(0);
        (down.0.take(), up.0.take())
    };
    assert_eq!(exchange(false, &mut receiver), (0, 0));
    assert_eq!(exchange(true, &mut receiver), (1, 1));
    assert_eq!(exchange(false, &mut receiver), (0, 0), "what was withdrawn holds no more");
}

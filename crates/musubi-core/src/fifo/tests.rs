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
mod behaviour {
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

    #[test]
    fn misuse_changes_nothing() {
        let fifo = fifo(2);
        let memory = Memory::new(&fifo);
        let (mut sender, mut receiver) = memory.pair(&fifo);
        let bell = CountingBell::default();
        assert_eq!(sender.free_block(0), Err(Error::NotHeld));
        assert_eq!(sender.free_block(1_000_000), Err(Error::NotHeld));
        assert_eq!(sender.enqueue_block(1, 4, &NoClock), Err(Error::NotHeld));
        let block = sender.allocate_block().unwrap();
        assert_eq!(sender.enqueue_block(block, 17, &NoClock), Err(Error::TooLong));
        sender.enqueue_block(block, 16, &NoClock).unwrap();
        assert_eq!(sender.enqueue_block(block, 16, &NoClock), Err(Error::NotHeld));
        assert_eq!(receiver.free_block(block, &bell), Err(Error::NotHeld));
        let received = receiver.dequeue(&NoClock, &bell).unwrap();
        receiver.free_block(received.block(), &bell).unwrap();
        assert_eq!(receiver.free_block(received.block(), &bell), Err(Error::NotHeld));
        assert_eq!(receiver.dequeue(&NoClock, &bell).unwrap_err(), Error::Empty);
        let other_memory = Memory::new(&fifo);
        let (mut other, _) = other_memory.pair(&fifo);
        let foreign = other.allocate().unwrap();
        let (error, foreign) = sender.enqueue(foreign, 1, &NoClock).unwrap_err();
        assert_eq!(error, Error::NotHeld);
        other.free(foreign).unwrap();
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
        let _held = sender.allocate().unwrap();
        assert_eq!(sender.reset(&bell), 1);
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
}

#[cfg(loom)]
mod models {
    //! Every interleaving of short runs. Payload is a loom cell a block, so that an access that is not ordered after
    //! the other side's is an error even where the value happens to be right.
    use super::*;
    use crate::layout::waiting;
    use loom::cell::UnsafeCell;
    use loom::sync::Arc;
    use loom::thread;

    struct Shared {
        fifo: Fifo<'static>,
        memory: Memory,
        payload: Vec<UnsafeCell<u32>>,
    }

    impl Shared {
        fn new(blocks: u32) -> Arc<Shared> {
            let fifo = fifo(blocks);
            let memory = Memory::new(&fifo);
            let payload = (0..blocks).map(|_| UnsafeCell::new(0)).collect();
            Arc::new(Shared { fifo, memory, payload })
        }

        fn write(&self, block: u32, value: u32) {
            // SAFETY: loom reports an access that is not exclusive.
            self.payload[block as usize].with_mut(|cell| unsafe { *cell = value });
        }

        fn read(&self, block: u32) -> u32 {
            // SAFETY: loom reports an access that races with a write.
            self.payload[block as usize].with(|cell| unsafe { *cell })
        }

        fn try_send(&self, sender: &mut TestSender<'_>, value: u32) -> bool {
            let Ok(block) = sender.allocate_block() else { return false };
            self.write(block, value);
            sender.enqueue_block(block, 4, &NoClock).unwrap();
            true
        }

        fn try_receive(&self, receiver: &mut TestReceiver<'_>) -> Option<u32> {
            let bell = CountingBell::default();
            let received = receiver.dequeue(&NoClock, &bell).ok()?;
            assert_eq!(received.len(), 4, "announcement seen before it was complete");
            let value = self.read(received.block());
            receiver.free_block(received.block(), &bell).unwrap();
            Some(value)
        }
    }

    fn model(run: impl Fn() + Sync + Send + 'static) {
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = Some(builder.preemption_bound.unwrap_or(3));
        builder.check(run);
    }

    /// Two messages through one block: the block is reused only after its return was seen.
    #[test]
    fn loom_messages_arrive_whole_and_in_order() {
        model(|| {
            let shared = Shared::new(1);
            let peer = shared.clone();
            let sending = thread::spawn(move || {
                let (mut sender, _) = pair_of(&peer);
                let mut sent = 0;
                for _ in 0..4 {
                    sent += u32::from(sent < 2 && peer.try_send(&mut sender, sent + 1));
                    sender.poll();
                    thread::yield_now();
                }
            });
            let mut receiver = receiver_of(&shared);
            let mut last = 0;
            for _ in 0..4 {
                if let Some(value) = shared.try_receive(&mut receiver) {
                    assert_eq!(value, last + 1);
                    last = value;
                }
                thread::yield_now();
            }
            sending.join().unwrap();
        });
    }

    /// A receiver that announces sleep either sees the notified message or is rung.
    #[test]
    fn loom_no_wake_up_is_lost_by_the_receiver() {
        model(|| {
            let shared = Shared::new(2);
            let peer = shared.clone();
            let sending = thread::spawn(move || {
                let (mut sender, _) = pair_of(&peer);
                assert!(peer.try_send(&mut sender, 1));
                let bell = CountingBell::default();
                sender.notify(&NoClock, &bell);
                bell.0.get()
            });
            let mut receiver = receiver_of(&shared);
            let seen = receiver.announce_wait(waiting::ASLEEP);
            let rung = sending.join().unwrap();
            assert!(seen || rung > 0, "asleep, and nobody rings");
        });
    }

    /// The same for a notification that no message carries.
    #[test]
    fn loom_no_bare_event_is_lost_by_the_receiver() {
        model(|| {
            let shared = Shared::new(2);
            let peer = shared.clone();
            let sending = thread::spawn(move || {
                let (mut sender, _) = pair_of(&peer);
                let bell = CountingBell::default();
                sender.notify(&NoClock, &bell);
                bell.0.get()
            });
            let mut receiver = receiver_of(&shared);
            let seen = receiver.announce_wait(waiting::ASLEEP);
            let rung = sending.join().unwrap();
            assert!(seen || rung > 0, "asleep, and nobody rings");
        });
    }

    /// A sender that waits for a block either sees the return or is rung.
    #[test]
    fn loom_no_wake_up_is_lost_by_the_sender() {
        model(|| {
            let shared = Shared::new(1);
            let (mut sender, _) = pair_of(&shared);
            assert!(shared.try_send(&mut sender, 1));
            let peer = shared.clone();
            let receiving = thread::spawn(move || {
                let mut receiver = receiver_of(&peer);
                let bell = CountingBell::default();
                let received = receiver.dequeue(&NoClock, &bell).unwrap();
                receiver.free_block(received.block(), &bell).unwrap();
                bell.0.get()
            });
            let ready = sender.announce_wait(waiting::ASLEEP);
            let rung = receiving.join().unwrap();
            assert!(ready.block || rung > 0, "asleep, and nobody rings");
        });
    }

    /// A receiver begins where the sender says, however late it sees the link; the sender takes returns only then.
    #[test]
    fn loom_a_session_begins_where_the_sender_says() {
        model(|| {
            let shared = Shared::new(2);
            let start = 1;
            // A former receiver took one message and left its returns behind in what is now the successor's memory.
            let mut sender = shared.memory.sender(&shared.fifo);
            assert!(shared.try_send(&mut sender, 1));
            assert!(shared.try_send(&mut sender, 2));
            OwnWords::of(&shared.memory.rx).set(crate::layout::rx::WORDS, (1 << 16) | 1);
            let peer = shared.clone();
            let receiving = thread::spawn(move || {
                let held = vec![0; 1];
                let (own, tx) = (OwnWords::of(&peer.memory.rx), OwnWords::of(&peer.memory.tx).as_peer());
                let mut receiver: TestReceiver<'_> =
                    Receiver::new(own, tx, &peer.fifo, RECEIVER, SENDER, Trust::MayCrash, held, Coherent).unwrap();
                for _ in 0..3 {
                    if let Some(value) = peer.try_receive(&mut receiver) {
                        assert_eq!(value, 2, "began at the wrong place");
                        break;
                    }
                    thread::yield_now();
                }
            });
            sender.set_receiver(Some(OwnWords::of(&shared.memory.rx).as_peer()), start);
            session::publish_link(&OwnWords::of(&shared.memory.tx), RECEIVER.0, RECEIVER.1, start);
            // Block 0 came back with the former receiver; block 1 is on the way and must not come back twice.
            let mut taken = 0;
            for _ in 0..3 {
                while let Ok(block) = sender.allocate_block() {
                    shared.write(block, 9);
                    taken += 1;
                }
                sender.poll();
                thread::yield_now();
            }
            receiving.join().unwrap();
            assert!(taken <= 2);
        });
    }

    fn pair_of(shared: &Shared) -> (TestSender<'_>, ()) {
        let mut sender = shared.memory.sender(&shared.fifo);
        session::publish_link(&OwnWords::of(&shared.memory.tx), RECEIVER.0, RECEIVER.1, 0);
        sender.set_receiver(Some(OwnWords::of(&shared.memory.rx).as_peer()), 0);
        (sender, ())
    }

    fn receiver_of(shared: &Shared) -> TestReceiver<'_> {
        let mut receiver = shared.memory.receiver(&shared.fifo, RECEIVER.1);
        receiver.begin();
        receiver
    }
}

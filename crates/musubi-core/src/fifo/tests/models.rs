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
        let Ok(loan) = sender.allocate() else { return false };
        self.write(loan.block(), value);
        sender.enqueue(loan, 4, &NoClock).unwrap();
        true
    }

    fn try_receive(&self, receiver: &mut TestReceiver<'_>) -> Option<u32> {
        let bell = CountingBell::default();
        let received = receiver.dequeue(&NoClock, &bell).ok()?;
        assert_eq!(received.len(), 4, "announcement seen before it was complete");
        let value = self.read(received.block());
        receiver.free(received, &bell).unwrap();
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
            receiver.free(received, &bell).unwrap();
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
            while let Ok(loan) = sender.allocate() {
                shared.write(loan.block(), 9);
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

/// Who learns that a dead receiver took a message finds the sender's tail behind it already.
#[test]
fn loom_the_tail_is_never_behind_what_was_taken() {
    model(|| {
        let shared = Shared::new(2);
        let peer = shared.clone();
        let sending = thread::spawn(move || {
            let (mut sender, _) = pair_of(&peer);
            assert!(peer.try_send(&mut sender, 1));
        });
        let mut receiver = receiver_of(&shared);
        let taken = shared.try_receive(&mut receiver).is_some();
        drop(receiver);
        if taken {
            let (own, rx) = (OwnWords::of(&shared.memory.tx), OwnWords::of(&shared.memory.rx).as_peer());
            let start = session::end_link(&own, Some(rx), Ring::new(2), SENDER, 0, OnRestart::Keep);
            assert_eq!(start, 1, "the successor would get the message again");
        }
        sending.join().unwrap();
    });
}

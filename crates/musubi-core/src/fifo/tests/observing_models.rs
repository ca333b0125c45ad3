//! An observer beside both ends, in every interleaving: what it is shown was never written over. The payload lies in the
//! words of the channel itself, as the observer may read it while the sender writes it.
use super::*;
use crate::layout::slot;
use loom::sync::Arc;
use loom::thread;

/// Two words of payload a message, both of this value.
fn payload(value: u32) -> [u8; 8] {
    let mut bytes = [0; 8];
    bytes[..4].copy_from_slice(&value.to_ne_bytes());
    bytes[4..].copy_from_slice(&value.to_ne_bytes());
    bytes
}

struct Shared {
    fifo: Fifo<'static>,
    memory: Memory,
}

impl Shared {
    /// A channel of one block.
    fn new() -> Arc<Shared> {
        let fifo = fifo(1);
        let memory = Memory::new(&fifo);
        Arc::new(Shared { fifo, memory })
    }

    fn write(&self, value: u32) {
        let shape = Shape::of(&self.fifo).unwrap();
        OwnWords::of(&self.memory.tx).write_bytes(shape.slot(0) * 4 + slot::PAYLOAD * 4, &payload(value));
    }

    fn try_send(&self, sender: &mut TestSender<'_>, value: u32) -> bool {
        let Ok(loan) = sender.allocate() else { return false };
        self.write(value);
        sender.enqueue(loan, 8, &NoClock).unwrap();
        true
    }

    /// One look; what it shows is right.
    fn look(&self, tap: &mut Tap) {
        let mut into = [0; 8];
        let (tx, rx) = (OwnWords::of(&self.memory.tx).as_peer(), OwnWords::of(&self.memory.rx).as_peer());
        let find = |participant, epoch| ((participant, epoch) == RECEIVER).then_some(rx);
        if let Look::Message(found) = tap.look(tx, find, &mut into) {
            assert_eq!(into, payload(found.position + 1), "position {}", found.position);
        }
    }
}

fn model(run: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(builder.preemption_bound.unwrap_or(2));
    builder.check(run);
}

/// The only block comes back by a return and is written again while an observer copies it.
#[test]
fn loom_an_observer_is_shown_no_block_that_was_returned() {
    model(|| {
        let shared = Shared::new();
        // SAFETY: `shared` is dropped at the end, when both threads have ended.
        let ends: &'static Shared = unsafe { &*Arc::as_ptr(&shared) };
        session::publish_link(&OwnWords::of(&ends.memory.tx), RECEIVER.0, RECEIVER.1, 0);
        let mut receiver = ends.memory.receiver(&ends.fifo, RECEIVER.1);
        assert!(receiver.begin());
        let mut sender = ends.memory.sender(&ends.fifo);
        sender.set_receiver(Some(OwnWords::of(&ends.memory.rx).as_peer()), 0);
        // The observer was there before the message, so that it knows which returns are older.
        let mut tap = Tap::new(&ends.fifo, SENDER, None).unwrap();
        ends.look(&mut tap);
        assert!(ends.try_send(&mut sender, 1));
        let bell = CountingBell::default();
        let received = receiver.dequeue(&NoClock, &bell).unwrap();
        let receiving = thread::spawn(move || {
            receiver.free(received, &CountingBell::default()).unwrap();
        });
        let sending = thread::spawn(move || ends.try_send(&mut sender, 2));
        ends.look(&mut tap);
        sending.join().unwrap();
        receiving.join().unwrap();
    });
}

/// It comes back because its receiver has gone, and the plan drops what was queued.
#[test]
fn loom_an_observer_is_shown_no_block_that_a_dead_receiver_gave_up() {
    model(|| {
        let shared = Shared::new();
        let own = OwnWords::of(&shared.memory.tx);
        session::publish_link(&own, RECEIVER.0, RECEIVER.1, 0);
        let mut receiver = shared.memory.receiver(&shared.fifo, RECEIVER.1);
        assert!(receiver.begin());
        let sending = shared.clone();
        let sending = thread::spawn(move || {
            let mut sender = sending.memory.sender(&sending.fifo);
            let (own, rx) = (OwnWords::of(&sending.memory.tx), OwnWords::of(&sending.memory.rx).as_peer());
            sender.set_receiver(Some(rx), 0);
            assert!(sending.try_send(&mut sender, 1));
            let start = session::end_link(&own, Some(rx), Ring::new(1), SENDER, 0, OnRestart::Drop);
            sender.set_receiver(None, start);
            assert!(sending.try_send(&mut sender, 2));
        });
        let mut tap = Tap::new(&shared.fifo, SENDER, None).unwrap();
        shared.look(&mut tap);
        sending.join().unwrap();
    });
}

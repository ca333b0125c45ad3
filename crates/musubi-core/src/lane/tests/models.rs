//! Every interleaving of short runs. Payload is a loom cell, so that an access that is not ordered after the other side's
//! is an error even where the value happens to be right.
use super::*;
use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::thread;

struct Shared {
    memory: Memory,
    /// Stands for what a slot or a block holds.
    cells: Vec<UnsafeCell<u32>>,
}

impl Shared {
    fn new(slots: u32, blocks: u32) -> Arc<Shared> {
        let cells = (0..slots).map(|_| UnsafeCell::new(0)).collect();
        Arc::new(Shared { memory: Memory::new(slots, blocks, 4), cells })
    }

    fn write(&self, cell: u32, value: u32) {
        // SAFETY: loom reports an access that is not exclusive.
        self.cells[cell as usize % self.cells.len()].with_mut(|cell| unsafe { *cell = value });
    }

    fn read(&self, cell: u32) -> u32 {
        // SAFETY: loom reports an access that races with a write.
        self.cells[cell as usize % self.cells.len()].with(|cell| unsafe { *cell })
    }
}

fn model(run: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(builder.preemption_bound.unwrap_or(3));
    builder.check(run);
}

fn receive(link: &mut Link<'_>) -> Option<(u32, Payload)> {
    if let Some(brief) = link.receive_brief::<1>() {
        return Some((brief.head[0], Payload::Copied(brief.bytes)));
    }
    let mut data = [0; RECORD_BYTES_MAX];
    let message = link.receive::<1>(&mut data).unwrap()?;
    Some((message.head[0], message.payload))
}

/// One record more than there are slots: a slot is written again only after it was read.
#[test]
fn loom_lane_records_arrive_whole_and_in_order() {
    model(|| {
        let shared = Shared::new(4, 1);
        let peer = shared.clone();
        // Most of the ring has been used before the two run at the same time.
        let sending = thread::spawn(move || {
            let (mut link, _) = peer.memory.side(0);
            let mut sent = 0;
            for _ in 0..7 {
                if sent < 5 && link.has_sender_room() {
                    peer.write(sent, sent + 1);
                    link.send(&[sent + 1], &[], 0).unwrap();
                    sent += 1;
                } else {
                    thread::yield_now();
                }
            }
        });
        let (mut link, _) = shared.memory.side(1);
        let mut last = 0;
        for _ in 0..5 {
            match receive(&mut link) {
                Some((number, _)) => {
                    assert_eq!((number, shared.read(last)), (last + 1, last + 1));
                    last = number;
                }
                None => thread::yield_now(),
            }
            link.must_ring();
        }
        sending.join().unwrap();
    });
}

/// Two payloads through one block: it is written again only after its return was seen.
#[test]
fn loom_lane_blocks_are_used_again_after_their_return() {
    model(|| {
        let shared = Shared::new(4, 1);
        let peer = shared.clone();
        let sending = thread::spawn(move || {
            let (mut link, _) = peer.memory.side(0);
            let mut sent = 0;
            for _ in 0..4 {
                if sent < 2 && link.has_room() == Ok(true) {
                    peer.write(0, sent + 1);
                    link.send_block(&[sent + 1], &[], 0).unwrap();
                    sent += 1;
                } else {
                    thread::yield_now();
                }
            }
        });
        let (mut link, mut returns) = shared.memory.side(1);
        for _ in 0..4 {
            match receive(&mut link) {
                Some((number, Payload::Block { block, .. })) => {
                    returns.hold(block).unwrap();
                    assert_eq!(shared.read(0), number);
                    returns.give_back(block).unwrap();
                }
                _ => thread::yield_now(),
            }
        }
        sending.join().unwrap();
    });
}

/// A node that announces sleep either sees the record or is rung.
#[test]
fn loom_lane_no_wake_up_is_lost_by_the_receiver() {
    model(|| {
        let shared = Shared::new(4, 1);
        let peer = shared.clone();
        let sending = thread::spawn(move || {
            let (mut link, _) = peer.memory.side(0);
            link.send(&[1], &[], 0).unwrap();
            link.must_ring()
        });
        let (mut link, _) = shared.memory.side(1);
        let seen = link.announce(false).unwrap();
        let rung = sending.join().unwrap();
        assert!(seen || rung, "asleep, and nobody rings");
    });
}

/// The same of a node that sleeps for one class only.
#[test]
fn loom_lane_no_wake_up_of_a_class_is_lost_by_the_receiver() {
    model(|| {
        let shared = Shared::new(4, 1);
        let peer = shared.clone();
        let sending = thread::spawn(move || {
            let (mut link, _) = peer.memory.side(0);
            link.send(&[1], &[], 0).unwrap();
            link.tell_class(5);
            link.must_ring()
        });
        let (mut link, _) = shared.memory.side(1);
        let seen = link.announce_classes(1 << 5 | 1, false).unwrap();
        let rung = sending.join().unwrap();
        assert!(seen || rung, "asleep, and nobody rings");
    });
}

/// A node that waits for room either sees it or is rung.
#[test]
fn loom_lane_no_wake_up_is_lost_by_the_sender() {
    model(|| {
        let shared = Shared::new(4, 1);
        let (mut link, _) = shared.memory.side(0);
        for number in 0..4 {
            link.send(&[number], &[], 0).unwrap();
        }
        let peer = shared.clone();
        let receiving = thread::spawn(move || {
            let (mut link, _) = peer.memory.side(1);
            let mut rung = false;
            for _ in 0..4 {
                receive(&mut link).unwrap();
                rung |= link.must_ring();
            }
            rung
        });
        let seen = link.announce(true).unwrap();
        let rung = receiving.join().unwrap();
        assert!(seen || rung, "asleep, and nobody rings");
    });
}

/// The same for a block.
#[test]
fn loom_lane_no_returned_block_is_lost_by_the_sender() {
    model(|| {
        let shared = Shared::new(4, 1);
        let (mut link, _) = shared.memory.side(0);
        link.send_block(&[1], &[], 0).unwrap();
        let peer = shared.clone();
        let receiving = thread::spawn(move || {
            let (mut link, mut returns) = peer.memory.side(1);
            let Some((_, Payload::Block { block, .. })) = receive(&mut link) else { panic!("sent before") };
            returns.hold(block).unwrap();
            returns.give_back(block).unwrap()
        });
        let seen = link.announce(true).unwrap();
        let rung = receiving.join().unwrap();
        assert!(seen || rung, "asleep, and nobody rings");
    });
}

/// One node begins anew after so many turns of both. Whoever receives gets what was sent in the link that it has, from the
/// incarnation that it was told of, and after all that came before it in memory.
fn meeting_of_one_incarnation(turns: u32) {
    let shared = Shared::new(4, 1);
    let begin = |shared: &Shared, node: usize, incarnation: u32| {
        let (own, peer) = (OwnWords::of(&shared.memory.sections[node]), &shared.memory.sections[1 - node]);
        let numbers = [node as u16, 1 - node as u16];
        let meeting = Meeting::begin(own, OwnWords::of(peer).as_peer(), shared.memory.shape, 1, numbers, incarnation);
        // SAFETY: the same type for a longer life; both threads are joined before the memory goes.
        unsafe { core::mem::transmute::<Meeting<'_>, Meeting<'static>>(meeting) }
    };
    let (mut stays, mut first) = (begin(&shared, 1, 1), begin(&shared, 0, 1));
    let mut of = 0;
    for _ in 0..turns {
        first.turn();
        if let Turn::Linked { incarnation } = stays.turn() {
            of = incarnation;
        }
    }
    let peer = shared.clone();
    let renewed = thread::spawn(move || {
        if let Some((link, _)) = first.link() {
            let _ = link.send(&[1], &[], 0);
        }
        drop(first);
        let mut second = begin(&peer, 0, 2);
        for _ in 0..3 {
            if let Turn::Linked { .. } = second.turn() {
                peer.write(0, 2);
                second.link().unwrap().0.send(&[2], &[], 0).unwrap();
                assert_eq!(receive(second.link().unwrap().0).map(|(number, _)| number).unwrap_or(12), 12);
            }
            thread::yield_now();
        }
    });
    for _ in 0..5 {
        match stays.turn() {
            Turn::Linked { incarnation } => {
                of = incarnation;
                stays.link().unwrap().0.send(&[10 + of], &[], 0).unwrap();
            }
            Turn::Ended { gone } => {
                assert!(gone);
                if let Some((number, _)) = receive(stays.link().unwrap().0) {
                    assert_eq!(number, of);
                }
                stays.part();
            }
            _ => (),
        }
        if let Some((number, _)) = stays.link().and_then(|(link, _)| receive(link)) {
            assert_eq!(number, of);
            if number == 2 {
                assert_eq!(shared.read(0), 2);
            }
        }
        thread::yield_now();
    }
    renewed.join().unwrap();
}

/// One preemption: a run is long, and more of them take minutes.
#[test]
fn loom_lane_who_begins_anew_in_a_link_is_met_once() {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(1);
    builder.check(|| meeting_of_one_incarnation(2));
}

//! Parts of messages that are offered, and fetched from where they lie.

use super::*;
use crate::wire::{NicFrame, Offer};

const A: fn() -> NodeId = || node(0, 0);
const B: fn() -> NodeId = || node(1, 0);
const DONE: Status = Status::DONE;
/// Kind of a frame that offers a part of a message.
const SEND_OFFER: u8 = 18;
const REACHED: u8 = 21;

/// Two connected VIs whose NICs read each other's memory, and one receive posted.
fn joined(level: Reliability) -> (World, ViNumber, ViNumber) {
    let mut world = World::new(&[A(), B()]);
    for node in [A(), B()] {
        let host = world.host(node);
        (host.wires.reaches, host.nic.carriage.offer_bytes_min) = (true, 100);
    }
    let (a, b) = world.connect(A(), B(), attributes(level));
    (world, a, b)
}

/// Posts a send of so many bytes, filled with this.
fn send(world: &mut World, vi: ViNumber, index: usize, bytes: usize, fill: u8) {
    let host = world.host(A());
    host.put(BUFFERS + 8192 * index, &alloc::vec![fill; bytes]);
    host.post_plain(vi, Queue::Send, index, 8192 * index, bytes as u32);
}

fn kinds(world: &mut World) -> Vec<u8> {
    world.host(A()).wires.out.iter().map(|(_, header, _)| header.kind).collect()
}

#[test]
#[cfg_attr(miri, ignore = "a system call that the interpreter does not know")]
fn a_descriptor_that_is_offered_completes_when_the_receiver_has_it() {
    for level in Reliability::ALL {
        let (mut world, a, b) = joined(level);
        world.host(B()).post_plain(b, Queue::Receive, 0, 0, 4096);
        send(&mut world, a, 1, 3000, 7);
        assert_eq!(kinds(&mut world), [SEND_OFFER]);
        assert_eq!(world.host(A()).done(a, Queue::Send), None, "{level:?}");
        // What lies there when it is fetched counts, so nothing was copied before.
        world.host(A()).put(BUFFERS + 8192, &[8; 3000]);
        assert!(world.carry_one(A()));
        assert_eq!(world.host(B()).done(b, Queue::Receive), Some((0, 3000, Status::OP_RECEIVE.and(DONE))));
        assert_eq!(world.host(B()).get(BUFFERS, 3001), [alloc::vec![8; 3000], alloc::vec![0]].concat());
        assert_eq!(world.host(A()).done(a, Queue::Send), None, "{level:?}");
        world.settle();
        assert_eq!(world.host(A()).done(a, Queue::Send), Some((1, 3000, DONE)));
    }
}

#[test]
#[cfg_attr(miri, ignore = "a system call that the interpreter does not know")]
fn what_is_short_or_not_alone_or_scattered_is_copied() {
    let (mut world, a, b) = joined(Reliability::Delivery);
    (0..5).for_each(|index| world.host(B()).post_plain(b, Queue::Receive, index, 4096 * index, 4096));
    send(&mut world, a, 1, 99, 1);
    assert_eq!(kinds(&mut world), [1]);
    world.settle();
    assert_eq!(world.host(A()).done(a, Queue::Send), Some((1, 99, DONE)));
    let (address, handle) = (world.host(A()).address(BUFFERS), world.host(A()).handle);
    world.host(A()).write(2, 0, &[(address, handle, 200), (address + 400, handle, 200)], 0);
    world.host(A()).post(a, Queue::Send, 2).unwrap();
    assert_eq!(kinds(&mut world), [1]);
    world.settle();
    world.host(A()).all_done(a, Queue::Send);
    // The first is offered; while the other side has it, the next ones are copied.
    (1..4).for_each(|index| send(&mut world, a, index, 300, 3));
    assert_eq!(kinds(&mut world), [SEND_OFFER, 1, 1]);
    world.settle();
    assert_eq!(world.host(A()).all_done(a, Queue::Send), [(1, DONE), (2, DONE), (3, DONE)]);
    assert_eq!(world.host(B()).all_done(b, Queue::Receive).len(), 5);
}

#[test]
#[cfg_attr(miri, ignore = "a system call that the interpreter does not know")]
fn who_is_not_trusted_is_not_fetched_from() {
    let mut world = World::new(&[A(), B()]);
    for node in [A(), B()] {
        let host = world.host(node);
        (host.wires.reaches, host.nic.carriage.offer_bytes_min) = (true, 100);
    }
    let mut directory = world.host(B()).nic.directory().clone();
    directory.nics[0].is_trusted = false;
    world.host(B()).nic.describe(directory);
    let (a, b) = world.connect(A(), B(), PLAIN());
    world.host(B()).post_plain(b, Queue::Receive, 0, 0, 4096);
    send(&mut world, a, 1, 3000, 7);
    assert_eq!(kinds(&mut world), [1]);
    // An offer all the same is no frame of this connection's.
    let refused = world.host(B()).nic.refused();
    let (_, mut header, _) = world.host(A()).wires.out.pop_front().unwrap();
    let lease = world.host(A()).nic.carriage.lease.words();
    let offer = Offer { lease, address: world.host(A()).address(BUFFERS), bytes: 3000 }.to_bytes();
    (header.kind, header.length) = (SEND_OFFER, offer.len() as u32);
    world.report(B(), Report::Frame { peer: A(), header, payload: Payload::Owned(offer.to_vec()) });
    assert_eq!(world.host(B()).nic.refused(), refused + 1);
    assert_eq!((world.host(B()).done(b, Queue::Receive), world.host(B()).state(b)), (None, ViState::Connected));
}

/// The sender flushes, and its program writes the buffer again, before the receiver has come to the offer.
#[test]
#[cfg_attr(miri, ignore = "a system call that the interpreter does not know")]
fn what_was_flushed_before_it_was_fetched_is_no_message() {
    for level in Reliability::ALL {
        let (mut world, a, b) = joined(level);
        world.host(B()).post_plain(b, Queue::Receive, 0, 0, 4096);
        send(&mut world, a, 1, 3000, 7);
        let Host { nic, wires, .. } = world.host(A());
        nic.disconnect(a, wires).unwrap();
        assert_eq!(world.host(A()).all_done(a, Queue::Send), [(1, Status::FLUSHED.and(DONE))]);
        world.host(A()).put(BUFFERS + 8192, &[9; 3000]);
        world.settle();
        let flushed = world.host(B()).all_done(b, Queue::Receive);
        assert!(matches!(flushed[..], [(0, status)] if status.has(Status::FLUSHED)), "{level:?} {flushed:?}");
        assert_eq!(world.host(B()).state(b), ViState::Error);
    }
}

#[test]
#[cfg_attr(miri, ignore = "a system call that the interpreter does not know")]
fn what_cannot_be_read_ends_the_connection() {
    for (address, bytes, is_refused) in [(8, 300, false), (u64::MAX - 1, 300, false), (8, 0, true), (8, 1 << 17, true)]
    {
        let (mut world, a, b) = joined(Reliability::Delivery);
        world.host(B()).post_plain(b, Queue::Receive, 0, 0, 4096);
        send(&mut world, a, 1, 300, 7);
        let (_, header, payload) = world.host(A()).wires.out.pop_front().unwrap();
        let offer = Offer { address, bytes, ..Offer::of_bytes(&payload).unwrap() }.to_bytes().to_vec();
        world.report(B(), Report::Frame { peer: A(), header, payload: Payload::Owned(offer) });
        let state = if is_refused { ViState::Connected } else { ViState::Error };
        assert_eq!(world.host(B()).state(b), state, "{address} {bytes}");
        world.settle();
        assert_eq!(world.host(A()).state(a), state);
    }
}

#[test]
#[cfg_attr(miri, ignore = "a system call that the interpreter does not know")]
fn an_unreliable_message_without_a_receive_is_dropped_and_its_sender_told() {
    let (mut world, a, b) = joined(Reliability::Unreliable);
    send(&mut world, a, 1, 3000, 7);
    assert_eq!(kinds(&mut world), [SEND_OFFER]);
    world.settle();
    assert_eq!(world.host(A()).done(a, Queue::Send), Some((1, 3000, DONE)));
    assert_eq!((world.host(B()).state(b), world.host(B()).errors().len()), (ViState::Connected, 1));
}

#[test]
fn who_says_that_it_fetches_and_does_not_delays_its_own_messages_only() {
    let mut world = World::new(&[A(), B()]);
    world.host(A()).wires.reaches = true;
    world.host(A()).nic.carriage.offer_bytes_min = 100;
    let (a, b) = world.connect(A(), B(), PLAIN());
    let (header, _) = NicFrame::Reached.write(ViName::default(), ViName::default(), Priority::LEAST_URGENT, 0);
    assert_eq!(header.kind, REACHED);
    world.report(A(), Report::Frame { peer: B(), header, payload: Payload::Owned(Vec::new()) });
    world.host(B()).post_plain(b, Queue::Receive, 0, 0, 4096);
    send(&mut world, a, 1, 300, 7);
    world.settle();
    assert_eq!((world.host(A()).done(a, Queue::Send), world.host(B()).done(b, Queue::Receive)), (None, None));
    world.disconnect(A(), a);
    assert_eq!(world.host(A()).all_done(a, Queue::Send), [(1, Status::FLUSHED.and(DONE))]);
}

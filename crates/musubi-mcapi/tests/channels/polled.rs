//! Programs of one thread that ask until one end is open, or closed, before they turn to the other.

use std::cell::Cell;

use musubi_mcapi::Error;
use musubi_mcapi::engine::ChannelKind::{Packet, Scalar};
use musubi_mcapi::engine::{ChannelHandle, ChannelKind, OPEN_POLLED_MS, OPEN_POLLS, RequestId, Sending};
use musubi_mcapi::limits::PACKET_CREDIT;

use crate::world::{Mode, World};

const POLLED_NS: u64 = OPEN_POLLED_MS as u64 * 1_000_000;

/// Asks so often, within so much time; gives how often the clock was read.
fn poll(world: &mut World, at: usize, request: RequestId, times: u32, span_ns: u64) -> u32 {
    let reads = Cell::new(0);
    for time in 0..times {
        let now_ns = 5 + u64::from(time) * span_ns / u64::from(times - 1);
        world.call(at, |engine, links| {
            let clock = |_: &mut _| {
                reads.set(reads.get() + 1);
                now_ns
            };
            engine.polled(request, clock, links);
        });
    }
    reads.get()
}

/// Asks until it is complete.
fn until_complete(world: &mut World, at: usize, request: RequestId) {
    poll(world, at, request, OPEN_POLLS + 1, POLLED_NS);
    world.done(at, request);
}

fn connected(kind: ChannelKind) -> (World, [musubi_mcapi::EndpointId; 2]) {
    let mut world = World::new(2, Mode::Memory);
    let ends = [world.create(0), world.create(0)];
    let connecting = world.connect(0, kind, ends[0], ends[1]);
    world.done(0, connecting);
    (world, ends)
}

fn send(world: &mut World, kind: ChannelKind, handle: ChannelHandle, value: u8) -> Result<Sending, Error> {
    match kind {
        Packet => world.send(0, handle, &[value]),
        Scalar => world.send_scalar(0, handle, 1, value.into()),
    }
}

fn receive(world: &mut World, kind: ChannelKind, handle: ChannelHandle) -> Result<Option<u8>, Error> {
    match kind {
        Packet => world.receive(0, handle).map(|packet| packet.map(|bytes| bytes[0])),
        Scalar => world.receive_scalar(0, handle, 1).map(|value| value.map(|value| value as u8)),
    }
}

#[test]
fn an_opening_completes_alone_only_after_many_polls_and_some_time() {
    for kind in [Packet, Scalar] {
        for receives in [false, true] {
            let (mut world, ends) = connected(kind);
            let (_, opening) = world.open(0, kind, receives, ends[usize::from(receives)]);
            assert_eq!(poll(&mut world, 0, opening, OPEN_POLLS, 50 * POLLED_NS), 1, "the clock is left alone");
            assert!(world.pending(0, opening), "it was asked for long, but not often");
            let (mut world, ends) = connected(kind);
            let (_, opening) = world.open(0, kind, receives, ends[usize::from(receives)]);
            poll(&mut world, 0, opening, 50 * OPEN_POLLS, POLLED_NS - 1);
            assert!(world.pending(0, opening), "it was asked often, but not for long");
            poll(&mut world, 0, opening, 2, POLLED_NS);
            world.done(0, opening);
        }
    }
}

#[test]
fn what_is_not_connected_or_of_two_nodes_waits_for_both_ends() {
    let mut world = World::new(2, Mode::Memory);
    let (from, to) = (world.create(0), world.create(1));
    let (_, unconnected) = world.open(0, Packet, false, from);
    poll(&mut world, 0, unconnected, 5 * OPEN_POLLS, 5 * POLLED_NS);
    assert!(world.pending(0, unconnected));
    let connecting = world.connect(0, Packet, from, to);
    world.settle();
    world.done(0, connecting);
    poll(&mut world, 0, unconnected, 5 * OPEN_POLLS, 5 * POLLED_NS);
    assert!(world.pending(0, unconnected));
    let channel = world.channel(Packet, 0, 1);
    let closing = world.close(0, Packet, false, channel.sending).unwrap();
    world.settle();
    poll(&mut world, 0, closing, 5 * OPEN_POLLS, 5 * POLLED_NS);
    assert!(world.pending(0, closing));
}

#[test]
fn one_end_after_the_other_is_opened_used_and_closed() {
    for kind in [Packet, Scalar] {
        for receiver_first in [false, true] {
            let (mut world, ends) = connected(kind);
            let mut handles = [ChannelHandle(0); 2];
            for receives in [receiver_first, !receiver_first] {
                let (handle, opening) = world.open(0, kind, receives, ends[usize::from(receives)]);
                handles[usize::from(receives)] = handle;
                if receives == receiver_first {
                    until_complete(&mut world, 0, opening);
                } else {
                    world.done(0, opening);
                }
            }
            let [sending, receiving] = handles;
            assert_eq!(send(&mut world, kind, sending, 7), Ok(Sending::Done));
            assert_eq!(receive(&mut world, kind, receiving), Ok(Some(7)));
            assert_eq!(receive(&mut world, kind, receiving), Ok(None));
            for receives in [receiver_first, !receiver_first] {
                let closing = world.close(0, kind, receives, handles[usize::from(receives)]).unwrap();
                if receives == receiver_first {
                    until_complete(&mut world, 0, closing);
                    assert_eq!(
                        world.close(0, kind, receives, handles[usize::from(receives)]),
                        Err(Error::ChannelNotOpen)
                    );
                } else {
                    world.done(0, closing);
                }
            }
            // As new.
            let again = world.connect(0, kind, ends[1], ends[0]);
            world.done(0, again);
        }
    }
}

#[test]
fn what_a_lone_sender_sends_stays_for_the_receiver_also_when_it_closes() {
    let (mut world, [from, to]) = connected(Packet);
    let (sending, opening) = world.open(0, Packet, false, from);
    until_complete(&mut world, 0, opening);
    let mut sent = 0;
    while send(&mut world, Packet, sending, sent) == Ok(Sending::Done) {
        sent += 1;
    }
    assert_eq!(u32::from(sent), PACKET_CREDIT);
    let late = world.send_later(0, sending, &[sent]).unwrap();
    let closing = world.close(0, Packet, false, sending).unwrap();
    until_complete(&mut world, 0, closing);
    let (receiving, opening) = world.open(0, Packet, true, to);
    world.done(0, opening);
    for expected in 0..=sent {
        assert_eq!(receive(&mut world, Packet, receiving), Ok(Some(expected)));
        world.release(0, receiving, 1);
    }
    assert!(world.outcome(0, late).is_ok());
    assert_eq!(receive(&mut world, Packet, receiving), Err(Error::ChannelInvalid));
    let closing = world.close(0, Packet, true, receiving).unwrap();
    world.done(0, closing);
    assert_eq!(world.call(0, |engine, links| engine.delete_endpoint(from, links)), Ok(()));
}

#[test]
fn a_lone_end_that_is_closed_unused_leaves_both_as_new() {
    for receives in [false, true] {
        let (mut world, ends) = connected(Packet);
        let (handle, opening) = world.open(0, Packet, receives, ends[usize::from(receives)]);
        until_complete(&mut world, 0, opening);
        let closing = world.close(0, Packet, receives, handle).unwrap();
        world.done(0, closing);
        for end in ends {
            assert_eq!(world.call(0, |engine, links| engine.delete_endpoint(end, links)), Ok(()));
        }
    }
}

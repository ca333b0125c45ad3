//! The functions that connect, open and close, 20 to 22, 30 to 34, 44, 45, status by status; and what all have in common.

use musubi_mcapi::engine::{ChannelHandle, ChannelKind, Outcome, Sending, endpoint_status, endpoint_type};
use musubi_mcapi::{EndpointId, Error};

use super::orders::exchange;
use super::world::{Mode, World, node};

use ChannelKind::{Packet, Scalar};

const TYPE: u32 = 0;
const GET_COUNT: u32 = 1;
const MEMORY_TYPE: u32 = 5;
const PRIORITY: u32 = 7;
const STATUS: u32 = 10;

pub fn set(world: &mut World, at: usize, endpoint: EndpointId, number: u32, value: u32) -> Result<(), Error> {
    world.call(at, |engine, _| engine.set_endpoint_attribute(endpoint, number, &value.to_ne_bytes()))
}

pub fn attribute(world: &mut World, at: usize, endpoint: EndpointId, number: u32) -> u32 {
    let request = world.call(at, |engine, links| engine.endpoint_attribute(endpoint, number, 4, links)).unwrap();
    world.settle();
    match world.outcome(at, request) {
        Ok(Outcome::Attribute(value)) => u32::from_ne_bytes(value.try_into().unwrap()),
        other => panic!("{other:?}"),
    }
}

pub fn get(world: &mut World, at: usize, owner: usize, endpoint: EndpointId) {
    let port = (1..=65_535).find(|port| {
        let request = world.call(owner, |engine, links| engine.get_endpoint((1, owner as u32), *port, links)).unwrap();
        let found = matches!(
            world.call(owner, |engine, _| engine.take_outcome(request)),
            Ok(Some(Ok(Outcome::Endpoint(found)))) if found == endpoint
        );
        world.call(owner, |engine, links| engine.drop_request(request, links));
        if found {
            world.call(owner, |engine, links| engine.release_endpoint(endpoint, links)).unwrap();
        }
        found
    });
    let request = world.call(at, |engine, links| engine.get_endpoint((1, owner as u32), port.unwrap(), links)).unwrap();
    world.settle();
    assert!(matches!(world.outcome(at, request), Ok(Outcome::Endpoint(found)) if found == endpoint));
}

fn connect_fails(world: &mut World, at: usize, kind: ChannelKind, from: EndpointId, to: EndpointId) -> Error {
    let connecting = world.call(at, |engine, links| engine.connect(kind, from, to, links));
    world.settle();
    match connecting {
        Ok(request) => world.failed(at, request),
        Err(error) => error,
    }
}

#[test]
fn f20_f32_connect_endp_invalid() {
    for kind in [Packet, Scalar] {
        let mut world = World::new(3, Mode::Network);
        let (from, to) = (world.create(0), world.create(1));
        assert_eq!(connect_fails(&mut world, 0, kind, from, from), Error::EndpointInvalid);
        let deleted = world.create(1);
        world.call(1, |engine, links| engine.delete_endpoint(deleted, links)).unwrap();
        for connecter in 0..3 {
            assert_eq!(connect_fails(&mut world, connecter, kind, from, deleted), Error::EndpointInvalid);
            assert_eq!(connect_fails(&mut world, connecter, kind, deleted, from), Error::EndpointInvalid);
        }
        let unknown = EndpointId::new(musubi_transport::NodeId::new(9, 9).unwrap(), 1, 1);
        assert_eq!(connect_fails(&mut world, 0, kind, from, unknown), Error::EndpointInvalid);
        world.kill(2);
        let never_there = EndpointId::new(node(2), 1, 1);
        assert_eq!(connect_fails(&mut world, 0, kind, from, never_there), Error::EndpointInvalid);
        let connecting = world.connect(0, kind, from, to);
        world.settle();
        world.done(0, connecting);
    }
}

#[test]
fn f20_f32_connect_to_a_node_that_is_not_there_fails_for_a_third_node_too() {
    let mut world = World::new(3, Mode::Memory);
    world.engines[2] = None;
    let from = world.create(0);
    assert_eq!(connect_fails(&mut world, 1, Packet, from, EndpointId::new(node(2), 1, 1)), Error::EndpointInvalid);
    assert_eq!(connect_fails(&mut world, 1, Packet, EndpointId::new(node(2), 1, 1), from), Error::EndpointInvalid);
    let to = world.create(1);
    world.channel_of(Packet, (0, from), (1, to));
}

#[test]
fn f20_f32_connect_chan_connected() {
    for connecter in 0..3 {
        let mut world = World::new(3, Mode::Network);
        let channel = world.channel(Packet, 0, 1);
        let (third, fourth) = (world.create(0), world.create(1));
        for (from, to) in [
            (channel.from, channel.to),
            (channel.to, channel.from),
            (channel.from, fourth),
            (third, channel.to),
            (channel.to, third),
            (fourth, channel.from),
        ] {
            assert_eq!(connect_fails(&mut world, connecter, Packet, from, to), Error::ChannelConnected);
        }
        exchange(&mut world, &channel);
        world.channel_of(Scalar, (1, fourth), (0, third));
    }
}

#[test]
fn f20_f32_connect_chan_closepending() {
    for receives in [false, true] {
        let mut world = World::new(3, Mode::Network);
        let channel = world.channel(Packet, 0, 1);
        let (closer, handle, other, other_handle) = match receives {
            false => (0, channel.sending, 1, channel.receiving),
            true => (1, channel.receiving, 0, channel.sending),
        };
        let closing = world.close(closer, Packet, receives, handle).unwrap();
        world.settle();
        assert!(world.pending(closer, closing));
        let third = world.create(2);
        let closed_end = if receives { channel.to } else { channel.from };
        assert_eq!(connect_fails(&mut world, 2, Packet, closed_end, third), Error::ChannelClosePending);
        assert_eq!(connect_fails(&mut world, 2, Packet, third, closed_end), Error::ChannelClosePending);
        let closing_too = world.close(other, Packet, !receives, other_handle).unwrap();
        world.settle();
        world.done(closer, closing);
        world.done(other, closing_too);
    }
}

#[test]
fn f20_f32_connect_endp_get_limit_counts_gets_of_strangers_only() {
    let mut world = World::new(4, Mode::Network);
    let (from, to) = (world.create(0), world.create(1));
    get(&mut world, 3, 1, to);
    assert_eq!(connect_fails(&mut world, 2, Packet, from, to), Error::EndpointGetLimit);
    world.call(3, |engine, links| engine.release_endpoint(to, links)).unwrap();
    world.settle();
    for getter in [0, 1, 2] {
        get(&mut world, getter, 1, to);
        get(&mut world, getter, 0, from);
    }
    let connecting = world.connect(2, Packet, from, to);
    world.settle();
    world.done(2, connecting);
}

#[test]
fn f20_f32_connect_attr_incompatible() {
    for (number, value) in [(MEMORY_TYPE, 1), (PRIORITY, 2), (3, 1000), (6, 2)] {
        for at_sender in [false, true] {
            let mut world = World::new(3, Mode::Network);
            let (from, to) = (world.create(0), world.create(1));
            let (at, endpoint) = if at_sender { (0, from) } else { (1, to) };
            set(&mut world, at, endpoint, number, value).unwrap();
            assert_eq!(connect_fails(&mut world, 2, Packet, from, to), Error::AttributeIncompatible, "{number}");
            set(&mut world, 1 - at, if at_sender { to } else { from }, number, value).unwrap();
            let channel = world.channel_of(Packet, (0, from), (1, to));
            exchange(&mut world, &channel);
        }
    }
}

#[test]
fn f20_f32_connect_changes_the_type_and_the_last_close_changes_it_back() {
    for (kind, value) in [(Packet, endpoint_type::PACKET_CHANNEL), (Scalar, endpoint_type::SCALAR_CHANNEL)] {
        let mut world = World::new(3, Mode::Network);
        let channel = world.channel(kind, 0, 1);
        for endpoint in [channel.from, channel.to] {
            assert_eq!(attribute(&mut world, 2, endpoint, TYPE), value);
            assert_eq!(attribute(&mut world, 2, endpoint, GET_COUNT), 1, "a channel's end counts as got once");
        }
        assert_eq!(set(&mut world, 0, channel.from, PRIORITY, 1), Err(Error::ChannelConnected));
        world.close_both(&channel);
        for endpoint in [channel.from, channel.to] {
            assert_eq!(attribute(&mut world, 2, endpoint, TYPE), endpoint_type::MESSAGE);
            assert_eq!(attribute(&mut world, 2, endpoint, GET_COUNT), 0);
            assert_eq!(attribute(&mut world, 2, endpoint, STATUS), 0);
        }
        assert_eq!(set(&mut world, 0, channel.from, PRIORITY, 1), Ok(()));
    }
}

#[test]
fn f13_status_of_an_end_is_seen_from_afar() {
    let mut world = World::new(3, Mode::Network);
    let (from, to) = (world.create(0), world.create(1));
    let (receiving, opening) = world.open(1, Packet, true, to);
    assert_eq!(attribute(&mut world, 2, to, STATUS) >> 16, endpoint_status::OPEN_PENDING >> 16);
    let connecting = world.connect(2, Packet, from, to);
    world.settle();
    world.done(2, connecting);
    let connected = endpoint_status::CONNECTED | endpoint_status::PACKET_CHANNEL | endpoint_status::RECEIVE;
    assert_eq!(attribute(&mut world, 2, to, STATUS) >> 16, (connected | endpoint_status::OPEN_PENDING) >> 16);
    world.open(0, Packet, false, from);
    world.settle();
    world.done(1, opening);
    assert_eq!(attribute(&mut world, 2, to, STATUS) >> 16, (connected | endpoint_status::OPEN) >> 16);
    world.close(1, Packet, true, receiving).unwrap();
    assert_eq!(attribute(&mut world, 2, to, STATUS) >> 16, (connected | endpoint_status::CLOSE_PENDING) >> 16);
}

#[test]
fn f21_f22_f33_f34_open_endp_invalid() {
    let mut world = World::new(2, Mode::Network);
    let remote = world.create(1);
    let deleted = world.create(0);
    world.call(0, |engine, links| engine.delete_endpoint(deleted, links)).unwrap();
    for kind in [Packet, Scalar] {
        for receives in [false, true] {
            for endpoint in [remote, deleted] {
                assert_eq!(world.try_open(0, kind, receives, endpoint).unwrap_err(), Error::EndpointInvalid);
            }
        }
    }
}

#[test]
fn f21_f22_f33_f34_open_chan_type_and_direction_when_connected() {
    for kind in [Packet, Scalar] {
        let other = if kind == Packet { Scalar } else { Packet };
        let mut world = World::new(3, Mode::Network);
        let (from, to) = (world.create(0), world.create(1));
        let connecting = world.connect(2, kind, from, to);
        world.settle();
        world.done(2, connecting);
        assert_eq!(world.try_open(0, other, false, from).unwrap_err(), Error::ChannelType);
        assert_eq!(world.try_open(1, other, true, to).unwrap_err(), Error::ChannelType);
        assert_eq!(world.try_open(0, kind, true, from).unwrap_err(), Error::ChannelDirection);
        assert_eq!(world.try_open(1, kind, false, to).unwrap_err(), Error::ChannelDirection);
        let (_, first) = world.open(0, kind, false, from);
        let (_, second) = world.open(1, kind, true, to);
        world.settle();
        world.done(0, first);
        world.done(1, second);
    }
}

#[test]
fn f21_f22_f33_f34_a_later_connect_contradicts_a_pending_open() {
    for (kind, receives, error) in [
        (Scalar, false, Error::ChannelType),
        (Scalar, true, Error::ChannelType),
        (Packet, true, Error::ChannelDirection),
    ] {
        let mut world = World::new(3, Mode::Network);
        let (from, to) = (world.create(0), world.create(1));
        let (handle, wrong) = world.open(0, kind, receives, from);
        let (_, right) = world.open(1, Packet, true, to);
        let connecting = world.connect(2, Packet, from, to);
        world.settle();
        world.done(2, connecting);
        assert_eq!(world.failed(0, wrong), error);
        assert_eq!(world.close(0, kind, receives, handle), Err(Error::ChannelInvalid));
        assert!(world.pending(1, right));
        let (_, opening) = world.open(0, Packet, false, from);
        world.settle();
        world.done(0, opening);
        world.done(1, right);
    }
}

#[test]
fn f21_f22_f33_f34_open_chan_openpending_open_closepending() {
    for kind in [Packet, Scalar] {
        let mut world = World::new(2, Mode::Network);
        let (from, to) = (world.create(0), world.create(1));
        world.open(0, kind, false, from);
        assert_eq!(world.try_open(0, kind, false, from).unwrap_err(), Error::ChannelOpenPending);
        let (receiving, _) = world.open(1, kind, true, to);
        world.connect(0, kind, from, to);
        world.settle();
        assert_eq!(world.try_open(0, kind, false, from).unwrap_err(), Error::ChannelOpen);
        assert_eq!(world.try_open(1, kind, true, to).unwrap_err(), Error::ChannelOpen);
        world.close(1, kind, true, receiving).unwrap();
        world.settle();
        assert_eq!(world.try_open(1, kind, true, to).unwrap_err(), Error::ChannelClosePending);
    }
}

#[test]
fn f21_f22_f33_f34_open_endp_deleted() {
    let mut world = World::new(1, Mode::Network);
    let endpoint = world.create(0);
    let (handle, opening) = world.open(0, Packet, true, endpoint);
    world.call(0, |engine, links| engine.delete_endpoint(endpoint, links)).unwrap();
    assert_eq!(world.failed(0, opening), Error::EndpointDeleted);
    assert_eq!(world.receive(0, handle), Err(Error::ChannelInvalid));
}

#[test]
fn f12_delete_chan_connected() {
    let mut world = World::new(2, Mode::Network);
    let (from, to) = (world.create(0), world.create(1));
    world.connect(0, Packet, from, to);
    assert_eq!(world.call(0, |engine, links| engine.delete_endpoint(from, links)), Err(Error::ChannelConnected));
    world.settle();
    for (at, endpoint) in [(0, from), (1, to)] {
        assert_eq!(
            world.call(at, |engine, links| engine.delete_endpoint(endpoint, links)),
            Err(Error::ChannelConnected)
        );
    }
}

#[test]
fn f30_f31_f44_f45_close_statuses() {
    for kind in [Packet, Scalar] {
        let other = if kind == Packet { Scalar } else { Packet };
        let mut world = World::new(2, Mode::Network);
        let (from, to) = (world.create(0), world.create(1));
        let (sending, _) = world.open(0, kind, false, from);
        assert_eq!(world.close(0, kind, false, sending), Err(Error::ChannelNotOpen), "the opening is pending");
        let (receiving, _) = world.open(1, kind, true, to);
        world.connect(0, kind, from, to);
        world.settle();
        assert_eq!(world.close(0, other, false, sending), Err(Error::ChannelType));
        assert_eq!(world.close(0, kind, true, sending), Err(Error::ChannelDirection));
        assert_eq!(world.close(1, kind, false, receiving), Err(Error::ChannelDirection));
        assert_eq!(world.close(0, kind, false, ChannelHandle(0xdead_beef)), Err(Error::ChannelInvalid));
        let closing = world.close(0, kind, false, sending).unwrap();
        world.settle();
        assert!(world.pending(0, closing), "the other side is open");
        assert_eq!(world.close(0, kind, false, sending), Err(Error::ChannelNotOpen), "being closed");
        let closing_too = world.close(1, kind, true, receiving).unwrap();
        world.settle();
        world.done(0, closing);
        world.done(1, closing_too);
        assert_eq!(world.close(0, kind, false, sending), Err(Error::ChannelInvalid), "closed");
    }
}

#[test]
fn f30_receive_close_drops_what_is_unread_and_later_sends_fail() {
    for (kind, mode) in
        [(Packet, Mode::Memory), (Packet, Mode::Network), (Scalar, Mode::Memory), (Scalar, Mode::Network)]
    {
        let mut world = World::new(2, mode);
        let channel = world.channel(kind, 0, 1);
        let send = |world: &mut World| match kind {
            Packet => world.send(0, channel.sending, b"unread"),
            Scalar => world.send_scalar(0, channel.sending, 8, 9),
        };
        assert_eq!(send(&mut world), Ok(Sending::Done));
        world.settle();
        world.close(1, kind, true, channel.receiving).unwrap();
        assert_eq!(send(&mut world), Ok(Sending::Done), "nobody knows yet");
        world.settle();
        assert_eq!(send(&mut world), Err(Error::ChannelInvalid));
        assert_eq!(world.receive(1, channel.receiving), Err(Error::ChannelInvalid));
        let closing = world.close(0, kind, false, channel.sending).unwrap();
        world.settle();
        world.done(0, closing);
    }
}

#[test]
fn f31_send_close_keeps_what_is_queued() {
    for choice in 0..5 {
        let mut world = World::new(2, Mode::Network);
        let channel = world.channel(Packet, 0, 1);
        // More than the credit: some wait here when the end is closed.
        let requests: Vec<_> = (0..40_u8).map(|n| world.send_later(0, channel.sending, &[n]).unwrap()).collect();
        let closing = world.close(0, Packet, false, channel.sending).unwrap();
        let mut expected = 0;
        while expected < 40 {
            while world.step(choice) {}
            while expected < 40
                && let Some(packet) = world.receive(1, channel.receiving).unwrap()
            {
                assert_eq!(packet, [expected]);
                expected += 1;
                world.release(1, channel.receiving, 1);
            }
        }
        for request in requests {
            while world.step(choice) {}
            assert!(matches!(world.outcome(0, request), Ok(Outcome::Sent(1))));
        }
        assert_eq!(world.receive(1, channel.receiving), Err(Error::ChannelInvalid), "everything has been read");
        assert!(world.pending(0, closing));
        let closing_too = world.close(1, Packet, true, channel.receiving).unwrap();
        world.settle();
        world.done(0, closing);
        world.done(1, closing_too);
    }
}

#[test]
fn f20_f45_request_limit_leaves_everything_as_it_was() {
    let mut world = World::new(1, Mode::Memory);
    let (from, to) = (world.create(0), world.create(0));
    let channel = world.channel(Packet, 0, 0);
    let listener = world.create(0);
    while world.call(0, |engine, links| engine.receive_message_later(listener, links)).is_ok() {}
    let refused = world.call(0, |engine, links| engine.connect(Packet, from, to, links));
    assert_eq!(refused, Err(Error::RequestLimit));
    assert_eq!(world.try_open(0, Packet, false, from).unwrap_err(), Error::RequestLimit);
    assert_eq!(world.send_later(0, channel.sending, b"x").unwrap_err(), Error::RequestLimit);
    assert_eq!(world.close(0, Packet, false, channel.sending), Err(Error::RequestLimit));
    world.call(0, |engine, links| engine.delete_endpoint(listener, links)).unwrap();
    exchange(&mut world, &channel);
}

#[test]
fn f2_after_finalize_everything_says_so() {
    let mut world = World::new(2, Mode::Memory);
    let channel = world.channel(Packet, 0, 1);
    let other = world.create(0);
    let (_, opening) = world.open(0, Scalar, true, other);
    world.call(0, |engine, _| engine.end());
    assert_eq!(world.failed(0, opening), Error::NodeNotInitialized);
    assert_eq!(world.send(0, channel.sending, b"x"), Err(Error::NodeNotInitialized));
    assert_eq!(world.try_open(0, Packet, false, channel.from).unwrap_err(), Error::NodeNotInitialized);
    assert_eq!(world.close(0, Packet, false, channel.sending), Err(Error::NodeNotInitialized));
    let refused = world.call(0, |engine, links| engine.connect(Packet, channel.from, channel.to, links));
    assert_eq!(refused, Err(Error::NodeNotInitialized));
}

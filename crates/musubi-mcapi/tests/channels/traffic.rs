//! Credit, order, back-pressure, and how many frames a busy channel costs.

use musubi_mcapi::engine::frame::Kind;
use musubi_mcapi::engine::{ChannelKind, Outcome, Sending};
use musubi_mcapi::limits::{CHANNEL_BYTES, PACKET_CREDIT, SCALAR_CREDIT};
use musubi_transport::links::Payload;

use super::world::{Mode, World, bytes};

use ChannelKind::{Packet, Scalar};

const MODES: [Mode; 2] = [Mode::Memory, Mode::Network];

#[test]
fn f24_unreleased_packets_stop_the_sender_and_nothing_is_lost() {
    for mode in MODES {
        let mut world = World::new(2, mode);
        let channel = world.channel(Packet, 0, 1);
        let mut sent = 0_u32;
        while world.send(0, channel.sending, &sent.to_le_bytes()) == Ok(Sending::Done) {
            sent += 1;
            world.settle();
        }
        assert_eq!(sent, PACKET_CREDIT);
        for n in 0..sent {
            assert_eq!(world.receive(1, channel.receiving), Ok(Some(n.to_le_bytes().to_vec())));
        }
        world.settle();
        assert_eq!(world.send(0, channel.sending, b"more"), Ok(Sending::Blocked), "read, but not released");
        world.release(1, channel.receiving, 4);
        world.settle();
        assert_eq!(world.send(0, channel.sending, b"more"), Ok(Sending::Done));
        assert_eq!(world.send(0, channel.sending, b"more"), Ok(Sending::Blocked));
        world.settle();
        assert_eq!(world.receive(1, channel.receiving), Ok(Some(b"more".to_vec())));
    }
}

#[test]
fn f24_bytes_under_way_are_bounded() {
    let mut world = World::new(2, Mode::Network);
    let channel = world.channel(Packet, 0, 1);
    let packet = vec![1; CHANNEL_BYTES as usize / 4];
    let mut sent = 0;
    while world.send(0, channel.sending, &packet) == Ok(Sending::Done) {
        sent += 1;
    }
    assert_eq!(sent, 4);
}

#[test]
fn f24_whoever_holds_packets_for_ever_can_use_the_rest() {
    for held in 0..PACKET_CREDIT {
        let mut world = World::new(2, Mode::Memory);
        let channel = world.channel(Packet, 0, 1);
        let (mut sent, mut received) = (0_u32, 0_u32);
        while received < 200 {
            while world.send(0, channel.sending, &sent.to_le_bytes()) == Ok(Sending::Done) {
                sent += 1;
            }
            world.settle();
            let before = received;
            while let Some(packet) = world.receive(1, channel.receiving).unwrap() {
                assert_eq!(packet, received.to_le_bytes());
                received += 1;
                if received > held {
                    world.release(1, channel.receiving, 4);
                }
            }
            world.settle();
            assert!(received > before, "with {held} held the channel stands still");
        }
    }
}

#[test]
fn f35_f38_unread_scalars_stop_the_sender() {
    for mode in MODES {
        let mut world = World::new(2, mode);
        let channel = world.channel(Scalar, 0, 1);
        let (mut sent, mut received) = (0_u64, 0_u64);
        for _ in 0..5 {
            while world.send_scalar(0, channel.sending, 8, sent) == Ok(Sending::Done) {
                sent += 1;
            }
            assert_eq!(sent - received, u64::from(SCALAR_CREDIT));
            world.settle();
            while let Some(value) = world.receive_scalar(1, channel.receiving, 8).unwrap() {
                assert_eq!(value, received);
                received += 1;
            }
            world.settle();
        }
        assert_eq!(received, sent);
    }
}

#[test]
fn credit_costs_a_frame_a_quarter_of_the_window() {
    for mode in MODES {
        let mut world = World::new(2, mode);
        let (packets, scalars) = (world.channel(Packet, 0, 1), world.channel(Scalar, 0, 1));
        for n in 0..1024 {
            assert_eq!(world.send(0, packets.sending, b"packet"), Ok(Sending::Done));
            assert_eq!(world.send_scalar(0, scalars.sending, 4, n), Ok(Sending::Done));
            world.settle();
            assert!(world.receive(1, packets.receiving).unwrap().is_some());
            world.release(1, packets.receiving, 6);
            assert_eq!(world.receive_scalar(1, scalars.receiving, 4), Ok(Some(n)));
            world.settle();
        }
        let expected = 1024 / (PACKET_CREDIT / 4) + 1024 / (SCALAR_CREDIT / 4);
        assert_eq!(world.sent(Kind::ChannelCredit), expected as usize);
    }
}

#[test]
fn a_full_link_blocks_and_then_goes_on() {
    for mode in MODES {
        let mut world = World::new(2, mode);
        let channel = world.channel(Packet, 0, 1);
        world.net.room = 3;
        let requests: Vec<_> = (0..30_u8).map(|n| world.send_later(0, channel.sending, &[n]).unwrap()).collect();
        assert_eq!(world.send(0, channel.sending, b"x"), Ok(Sending::Blocked), "others wait before it");
        let closing = world.close(0, Packet, false, channel.sending).unwrap();
        for n in 0..30_u8 {
            let packet = loop {
                match world.receive(1, channel.receiving).unwrap() {
                    Some(packet) => break packet,
                    None => assert!(world.step(1), "it stands still"),
                }
            };
            assert_eq!(packet, [n]);
            world.release(1, channel.receiving, 1);
        }
        let closing_too = world.close(1, Packet, true, channel.receiving).unwrap();
        world.settle();
        for request in requests {
            assert!(matches!(world.outcome(0, request), Ok(Outcome::Sent(1))));
        }
        world.done(0, closing);
        world.done(1, closing_too);
    }
}

#[test]
fn a_cancelled_packet_is_not_sent_and_others_pass() {
    let mut world = World::new(2, Mode::Network);
    let channel = world.channel(Packet, 0, 1);
    let (all, waiting) = (PACKET_CREDIT as u8 + 4, PACKET_CREDIT as u8 + 1);
    let requests: Vec<_> = (0..all).map(|n| world.send_later(0, channel.sending, &[n]).unwrap()).collect();
    world.cancel(0, requests[usize::from(waiting)]);
    let mut received = Vec::new();
    for _ in 0..all {
        world.settle();
        while let Some(packet) = world.receive(1, channel.receiving).unwrap() {
            world.release(1, channel.receiving, packet.len());
            received.extend(packet);
        }
    }
    assert_eq!(received, (0..all).filter(|n| *n != waiting).collect::<Vec<u8>>());
}

#[test]
fn blocks_stay_in_place_if_the_link_has_enough_of_them_and_are_copied_otherwise() {
    for kept in [true, false] {
        let mut world = World::new(2, Mode::Memory);
        world.net.kept = kept;
        let channel = world.channel(Packet, 0, 1);
        let packet = vec![5; 5000];
        world.send(0, channel.sending, &packet).unwrap();
        world.settle();
        let received = world.call(1, |engine, links| engine.receive_packet(channel.receiving, links)).unwrap().unwrap();
        assert_eq!(bytes(&received), packet);
        assert_eq!(matches!(received, Payload::Lent(_)), kept);
    }
}

#[test]
fn data_travel_in_the_class_of_the_channels_priority() {
    const PRIORITY: u32 = 7;
    let mut world = World::new(2, Mode::Network);
    let (bulk, urgent) = ((world.create(0), world.create(1)), (world.create(0), world.create(1)));
    for (at, endpoint, priority) in [(0, bulk.0, 3_u32), (1, bulk.1, 3), (0, urgent.0, 0), (1, urgent.1, 0)] {
        world.call(at, |engine, _| engine.set_endpoint_attribute(endpoint, PRIORITY, &priority.to_ne_bytes())).unwrap();
    }
    let bulk = world.channel_of(Packet, (0, bulk.0), (1, bulk.1));
    let urgent = world.channel_of(Packet, (0, urgent.0), (1, urgent.1));
    world.send(0, bulk.sending, b"bulk").unwrap();
    world.send(0, urgent.sending, b"urgent").unwrap();
    // The first event is the delivery of the lowest class.
    assert!(world.step(0));
    assert_eq!(world.receive(1, bulk.receiving), Ok(None));
    assert_eq!(world.receive(1, urgent.receiving), Ok(Some(b"urgent".to_vec())));
}

#[test]
fn a_channel_within_a_node_has_the_same_credit() {
    let mut world = World::new(1, Mode::Memory);
    let channel = world.channel(Packet, 0, 0);
    for round in 0..50_u8 {
        let mut sent = 0;
        while world.send(0, channel.sending, &[round, sent]) == Ok(Sending::Done) {
            sent += 1;
        }
        assert_eq!(u32::from(sent), PACKET_CREDIT);
        for n in 0..sent {
            assert_eq!(world.receive(0, channel.receiving), Ok(Some(vec![round, n])));
            world.release(0, channel.receiving, 2);
        }
    }
    let requests: Vec<_> = (0..40_u8).map(|n| world.send_later(0, channel.sending, &[n]).unwrap()).collect();
    for n in 0..40_u8 {
        assert_eq!(world.receive(0, channel.receiving), Ok(Some(vec![n])));
        world.release(0, channel.receiving, 1);
    }
    for request in requests {
        assert!(matches!(world.outcome(0, request), Ok(Outcome::Sent(1))));
    }
    world.close_both(&channel);
}

//! Death of a node or loss of the way to it, in every state: requests complete, ends become usable again.

use musubi_mcapi::engine::frame::{Header, Kind};
use musubi_mcapi::engine::{ChannelKind, Outcome, Sending};
use musubi_mcapi::limits::PACKET_CREDIT;
use musubi_mcapi::{EndpointId, Error};
use musubi_transport::links::Loss;

use super::orders::exchange;
use super::world::{Channel, Mode, World, node};

use ChannelKind::{Packet, Scalar};

const MODES: [Mode; 2] = [Mode::Memory, Mode::Network];
/// Packets that a channel holds.
const CREDIT: u8 = PACKET_CREDIT as u8;
const LOSSES: [Loss; 2] = [Loss::Gone, Loss::Cut];

/// An endpoint of ours can be connected and used with one of a node that is there.
fn is_usable(world: &mut World, at: usize, endpoint: EndpointId, with: usize) {
    for sends in [true, false] {
        let other = world.create(with);
        let (sender, receiver) = match sends {
            true => ((at, endpoint), (with, other)),
            false => ((with, other), (at, endpoint)),
        };
        let channel = world.channel_of(Packet, sender, receiver);
        exchange(world, &channel);
        world.close_both(&channel);
    }
    assert_eq!(world.call(at, |engine, _| engine.requests()), 0, "requests leak");
}

#[test]
fn a_receiver_dies_while_the_channel_is_open() {
    for mode in MODES {
        for loss in LOSSES {
            let mut world = World::new(3, mode);
            let channel = world.channel(Packet, 0, 1);
            let requests: Vec<_> =
                (0..CREDIT + 4).map(|n| world.send_later(0, channel.sending, &[n]).unwrap()).collect();
            world.cut(0, 1, loss);
            for (n, request) in requests.into_iter().enumerate() {
                match world.outcome(0, request) {
                    Ok(Outcome::Sent(1)) => {
                        assert!(mode == Mode::Memory && n < usize::from(CREDIT), "what memory has is delivered")
                    }
                    other => assert_eq!(other.unwrap_err(), Error::Transmission),
                }
            }
            assert_eq!(world.send(0, channel.sending, b"x"), Err(Error::Transmission));
            assert_eq!(world.send_later(0, channel.sending, b"x").unwrap_err(), Error::Transmission);
            let closing = world.close(0, Packet, false, channel.sending).unwrap();
            world.done(0, closing);
            assert_eq!(world.send(0, channel.sending, b"x"), Err(Error::ChannelInvalid));
            is_usable(&mut world, 0, channel.from, 2);
        }
    }
}

#[test]
fn a_sender_dies_and_what_had_arrived_is_read_first() {
    for mode in MODES {
        let mut world = World::new(3, mode);
        let (packets, scalars) = (world.channel(Packet, 0, 1), world.channel(Scalar, 0, 1));
        for n in 0..3_u8 {
            world.send(0, packets.sending, &[n]).unwrap();
            world.send_scalar(0, scalars.sending, 1, u64::from(n)).unwrap();
        }
        if mode == Mode::Network {
            world.settle();
        }
        world.kill(0);
        for n in 0..3_u8 {
            assert_eq!(world.receive(1, packets.receiving), Ok(Some(vec![n])));
            world.release(1, packets.receiving, 1);
            assert_eq!(world.receive_scalar(1, scalars.receiving, 1), Ok(Some(u64::from(n))));
        }
        assert_eq!(world.receive(1, packets.receiving), Err(Error::Transmission));
        assert_eq!(world.receive_scalar(1, scalars.receiving, 1), Err(Error::Transmission));
        for (kind, handle) in [(Packet, packets.receiving), (Scalar, scalars.receiving)] {
            let closing = world.close(1, kind, true, handle).unwrap();
            world.done(1, closing);
        }
        is_usable(&mut world, 1, packets.to, 2);
        is_usable(&mut world, 1, scalars.to, 2);
        world.start(0);
        is_usable(&mut world, 1, packets.to, 0);
    }
}

#[test]
fn who_waits_for_a_packet_is_told() {
    let mut world = World::new(2, Mode::Network);
    let channel = world.channel(Packet, 0, 1);
    let waiting = world.call(1, |engine, links| engine.receive_packet_later(channel.receiving, links)).unwrap();
    world.kill(0);
    assert_eq!(world.failed(1, waiting), Error::Transmission);
}

#[test]
fn the_other_node_dies_while_an_opening_is_pending() {
    for mode in MODES {
        for receives in [false, true] {
            let mut world = World::new(3, mode);
            let (mine, theirs) = (world.create(0), world.create(1));
            let (from, to) = if receives { (theirs, mine) } else { (mine, theirs) };
            let (handle, opening) = world.open(0, Packet, receives, mine);
            let connecting = world.connect(2, Packet, from, to);
            world.settle();
            world.done(2, connecting);
            world.kill(1);
            assert_eq!(world.failed(0, opening), Error::Transmission);
            assert_eq!(world.close(0, Packet, receives, handle), Err(Error::ChannelInvalid));
            is_usable(&mut world, 0, mine, 2);
        }
    }
}

#[test]
fn the_other_node_dies_while_a_closing_is_pending() {
    for mode in MODES {
        for receives in [false, true] {
            let mut world = World::new(3, mode);
            let (sender, receiver) = if receives { (1, 0) } else { (0, 1) };
            let channel = world.channel(Packet, sender, receiver);
            let (handle, endpoint) = match receives {
                true => (channel.receiving, channel.to),
                false => (channel.sending, channel.from),
            };
            let closing = world.close(0, Packet, receives, handle).unwrap();
            world.kill(1);
            world.done(0, closing);
            is_usable(&mut world, 0, endpoint, 2);
        }
    }
}

#[test]
fn a_node_dies_while_ends_are_being_connected() {
    for mode in MODES {
        for victim in 0..3 {
            for steps in 0..12 {
                let mut world = World::new(4, mode);
                let (from, to) = (world.create(0), world.create(1));
                let connecting = world.connect(2, Packet, from, to);
                for _ in 0..steps {
                    world.step(steps);
                }
                world.kill(victim);
                world.settle();
                if victim != 2 {
                    let result = world.outcome(2, connecting);
                    assert!(
                        matches!(result, Ok(Outcome::Plain) | Err(Error::Transmission | Error::EndpointInvalid)),
                        "{result:?}"
                    );
                }
                for (at, endpoint) in [(0, from), (1, to)].into_iter().filter(|(at, _)| *at != victim) {
                    if victim != 2 {
                        is_usable(&mut world, at, endpoint, 3);
                    }
                }
                if victim == 2 {
                    ends_agree(&mut world, from, to);
                }
            }
        }
    }
}

#[test]
fn who_had_ends_connected_is_lost_and_they_stay() {
    for mode in MODES {
        for loss in LOSSES {
            let mut world = World::new(3, mode);
            let (from, to) = (world.create(0), world.create(1));
            let connecting = world.connect(2, Packet, from, to);
            world.settle();
            world.done(2, connecting);
            world.cut(0, 2, loss);
            world.cut(1, 2, loss);
            let (sending, opening) = world.open(0, Packet, false, from);
            let (receiving, opening_too) = world.open(1, Packet, true, to);
            world.settle();
            world.done(0, opening);
            world.done(1, opening_too);
            let channel = Channel { kind: Packet, sender: 0, receiver: 1, from, to, sending, receiving };
            exchange(&mut world, &channel);
            world.close_both(&channel);
        }
    }
}

/// The question of a node's earlier link, or of its former life, means nothing over the next; another node's loss changes
/// nothing of that.
#[test]
fn a_connection_is_taken_back_over_the_link_over_which_it_was_asked_for() {
    for mode in MODES {
        for (lost, is_undone) in [(2, false), (3, true)] {
            let mut world = World::new(4, mode);
            let (from, to) = (world.create(0), world.create(1));
            let connecting = world.connect(2, Packet, from, to);
            world.settle();
            world.done(2, connecting);
            let link = |world: &mut World, at: usize| {
                let ping = world.call(at, |engine, links| engine.ping(0, node(0), 0, links)).unwrap();
                world.settle();
                assert!(matches!(world.outcome(at, ping), Ok(Outcome::Pong(_))));
            };
            link(&mut world, 3);
            world.cut(0, lost, Loss::Cut);
            link(&mut world, lost);
            let back = Header { tag: connecting.0, from: from.bits(), ..Header::new(Kind::Disconnect as u8) };
            world.forge(2, 0, back, &[]);
            world.settle();
            ends_agree(&mut world, from, to);
            let exists = world.call(0, |engine, _| engine.messages_available(from)).is_ok();
            assert_eq!(exists, !is_undone, "{mode:?}: what is connected cannot be deleted");
        }
    }
}

#[test]
fn a_node_is_lost_while_ends_of_others_are_being_connected() {
    for mode in MODES {
        for loss in LOSSES {
            let mut world = World::new(4, mode);
            let (from, to) = (world.create(0), world.create(1));
            let other = world.channel(Packet, 0, 3);
            // The receiving end's owner does not answer yet.
            world.net.slow = Some(1);
            let connecting = world.connect(0, Packet, from, to);
            world.settle();
            world.cut(0, 3, loss);
            assert!(world.pending(0, connecting), "it is not asked of the node that was lost");
            assert_eq!(world.send(0, other.sending, b"x"), Err(Error::Transmission));
            world.net.slow = None;
            world.settle();
            world.done(0, connecting);
            // And of one that is lost it was.
            let (from, to) = (world.create(0), world.create(1));
            world.net.slow = Some(1);
            let connecting = world.connect(2, Packet, from, to);
            world.settle();
            world.cut(0, 1, loss);
            world.settle();
            assert_eq!(world.failed(2, connecting), Error::Transmission);
            assert_eq!(world.call(0, |engine, links| engine.delete_endpoint(from, links)), Ok(()));
        }
    }
}

/// Both ends are connected, or neither.
fn ends_agree(world: &mut World, from: EndpointId, to: EndpointId) {
    let deleted = world.call(0, |engine, links| engine.delete_endpoint(from, links));
    let deleted_too = world.call(1, |engine, links| engine.delete_endpoint(to, links));
    assert_eq!(deleted, deleted_too);
}

#[test]
fn a_closed_sender_is_not_lost_when_its_node_goes() {
    let mut world = World::new(2, Mode::Memory);
    let channel = world.channel(Packet, 0, 1);
    world.send(0, channel.sending, b"last").unwrap();
    world.close(0, Packet, false, channel.sending).unwrap();
    world.kill(0);
    assert_eq!(world.receive(1, channel.receiving), Ok(Some(b"last".to_vec())));
    assert_eq!(world.receive(1, channel.receiving), Err(Error::ChannelInvalid), "it was closed, and all of it read");
    let closing = world.close(1, Packet, true, channel.receiving).unwrap();
    world.done(1, closing);
}

#[test]
fn a_link_that_comes_back_knows_nothing_of_the_channel() {
    let mut world = World::new(2, Mode::Network);
    let channel = world.channel(Scalar, 0, 1);
    world.cut(0, 1, Loss::Cut);
    assert_eq!(world.send_scalar(0, channel.sending, 4, 1), Err(Error::Transmission));
    for (at, kind, receives, handle) in [(0, Scalar, false, channel.sending), (1, Scalar, true, channel.receiving)] {
        let closing = world.close(at, kind, receives, handle).unwrap();
        world.done(at, closing);
    }
    let channel = world.channel_of(Scalar, (0, channel.from), (1, channel.to));
    assert_eq!(world.send_scalar(0, channel.sending, 4, 2), Ok(Sending::Done));
    world.settle();
    assert_eq!(world.receive_scalar(1, channel.receiving, 4), Ok(Some(2)));
}

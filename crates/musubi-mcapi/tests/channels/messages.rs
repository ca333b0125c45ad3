//! Messages to and from endpoints that are connected, and connections that nobody opens.

use musubi_mcapi::engine::frame::{Header, Kind};
use musubi_mcapi::engine::{ChannelKind, Counters, Engine, Outcome, RequestId, Sending};
use musubi_mcapi::{EndpointId, Error};
use musubi_transport::links::Loss;

use super::functions::{attribute, get, set};
use super::world::{InPlace, Mode, World, bytes};

use ChannelKind::{Packet, Scalar};

const GET_COUNT: u32 = 1;
const PRIORITY: u32 = 7;
const BOTH: [Mode; 2] = [Mode::Memory, Mode::Network];

fn send(world: &mut World, at: usize, from: EndpointId, to: EndpointId) -> Result<Sending, Error> {
    world.call(at, |engine, links| engine.send_message(from, to, 0, b"x", links))
}

fn send_later(world: &mut World, at: usize, from: EndpointId, to: EndpointId) -> Result<RequestId, Error> {
    world.call(at, |engine, links| engine.send_message_later(from, to, 0, b"x".to_vec(), links))
}

fn receive(world: &mut World, at: usize, endpoint: EndpointId) -> Result<Option<Vec<u8>>, Error> {
    let message = world.call(at, |engine, links| engine.receive_message(endpoint, links))?;
    Ok(message.map(|message| bytes(&message.payload)))
}

/// Sends, over a link that comes about if need be.
fn sent(world: &mut World, at: usize, from: EndpointId, to: EndpointId) {
    let request = send_later(world, at, from, to).unwrap();
    world.settle();
    assert!(matches!(world.outcome(at, request), Ok(Outcome::Sent(1))));
}

#[test]
fn a_message_to_a_connected_endpoint_is_refused_here_and_elsewhere() {
    for mode in BOTH {
        let mut world = World::new(3, mode);
        let stranger = world.create(2);
        let near = world.create(1);
        let before = world.create(1);
        sent(&mut world, 2, stranger, before);
        let channel = world.channel(Packet, 0, 1);
        for to in [channel.from, channel.to] {
            // The first message brings the link about: it waits for the news, and then is refused.
            if to == channel.from {
                let first = send_later(&mut world, 2, stranger, to).unwrap();
                world.settle();
                assert_eq!(world.failed(2, first), Error::General);
            }
            assert_eq!(send(&mut world, 2, stranger, to), Err(Error::General), "{mode:?}");
            assert_eq!(send_later(&mut world, 2, stranger, to), Err(Error::General));
        }
        assert_eq!(send(&mut world, 1, near, channel.to), Err(Error::General), "of the same node");
        assert_eq!(send_later(&mut world, 1, near, channel.to), Err(Error::General));
        world.close_both(&channel);
        assert_eq!(receive(&mut world, 1, channel.to), Ok(None), "what was refused did not arrive");
        sent(&mut world, 2, stranger, channel.to);
        sent(&mut world, 1, near, channel.to);
        assert_eq!(receive(&mut world, 1, channel.to), Ok(Some(b"x".to_vec())));
    }
}

#[test]
fn a_connected_endpoint_sends_messages() {
    for mode in BOTH {
        let mut world = World::new(2, mode);
        let (here, there) = (world.create(0), world.create(1));
        let channel = world.channel(Scalar, 0, 1);
        sent(&mut world, 0, channel.from, there);
        sent(&mut world, 0, channel.from, here);
        sent(&mut world, 1, channel.to, here);
        assert_eq!(receive(&mut world, 1, there), Ok(Some(b"x".to_vec())));
        assert_eq!(receive(&mut world, 0, here), Ok(Some(b"x".to_vec())));
        assert_eq!(receive(&mut world, 0, here), Ok(Some(b"x".to_vec())));
    }
}

/// What was there, and what was under way, can be received; what still waited to be sent fails.
#[test]
fn messages_of_before_the_connection_stay_and_those_that_wait_fail() {
    for mode in BOTH {
        let mut world = World::new(2, mode);
        let (from, to) = (world.create(0), world.create(1));
        let other = world.create(0);
        sent(&mut world, 0, other, to);
        let under_way = send_later(&mut world, 0, other, to).unwrap();
        let credit = musubi_mcapi::limits::MESSAGE_CREDIT as usize;
        let waiting: Vec<RequestId> = (0..credit).map(|_| send_later(&mut world, 0, other, to).unwrap()).collect();
        let connecting = world.connect(1, Packet, from, to);
        world.settle();
        world.done(1, connecting);
        assert!(matches!(world.outcome(0, under_way), Ok(Outcome::Sent(1))));
        let results: Vec<_> = waiting.into_iter().map(|request| world.outcome(0, request)).collect();
        let refused = results.iter().filter(|result| matches!(result, Err(Error::General))).count();
        let arrived = 2 + results.iter().filter(|result| matches!(result, Ok(Outcome::Sent(1)))).count();
        assert_eq!((arrived, refused), (credit, 2), "{mode:?}");
        for _ in 0..arrived {
            assert_eq!(receive(&mut world, 1, to), Ok(Some(b"x".to_vec())), "each success can be received");
        }
        assert_eq!(receive(&mut world, 1, to), Err(Error::General));
    }
}

#[test]
fn who_links_later_hears_what_is_connected_and_who_links_anew_too() {
    for mode in BOTH {
        let mut world = World::new(3, mode);
        let (stranger, other) = (world.create(2), world.create(1));
        let channel = world.channel(Packet, 0, 1);
        for loss in [Loss::Cut, Loss::Gone] {
            sent(&mut world, 2, stranger, other);
            assert_eq!(send(&mut world, 2, stranger, channel.to), Err(Error::General));
            world.cut(1, 2, loss);
        }
        world.close_both(&channel);
        sent(&mut world, 2, stranger, other);
        sent(&mut world, 2, stranger, channel.to);
    }
}

#[test]
fn the_first_message_over_a_link_waits_for_the_news_whatever_comes_before_it() {
    for mode in BOTH {
        for choice in 0..40 {
            let mut world = World::new(3, mode);
            let (stranger, near) = (world.create(2), world.create(1));
            let channels: Vec<_> = (0..20).map(|_| world.channel(Packet, 0, 1)).collect();
            world.net.room = 4;
            let refused = channels.iter().map(|channel| send_later(&mut world, 2, stranger, channel.to));
            let refused: Vec<RequestId> = refused.map(Result::unwrap).collect();
            let arrives = send_later(&mut world, 2, stranger, near).unwrap();
            for _ in 0..1000 {
                let sent = send(&mut world, 2, stranger, channels[choice % 20].to);
                assert!(matches!(sent, Ok(Sending::Blocked) | Err(Error::General)), "{sent:?}");
                world.step(choice);
            }
            world.settle();
            for request in refused {
                assert_eq!(world.failed(2, request), Error::General, "{mode:?}");
            }
            assert!(matches!(world.outcome(2, arrives), Ok(Outcome::Sent(1))));
            for channel in channels {
                assert_eq!(world.call(1, |engine, _| engine.messages_available(channel.to)), Ok(0));
            }
        }
    }
}

#[test]
fn that_an_endpoint_is_connected_counts_as_a_get() {
    let mut world = World::new(2, Mode::Memory);
    let (from, to) = (world.create(0), world.create(1));
    let channel = world.channel_of(Packet, (0, from), (1, to));
    assert_eq!(attribute(&mut world, 0, to, GET_COUNT), 1);
    let port = 32_768;
    for asker in 0..2 {
        let request = world.call(asker, |engine, links| engine.get_endpoint((1, 1), port, links)).unwrap();
        world.settle();
        assert_eq!(world.failed(asker, request), Error::EndpointGetLimit);
    }
    world.close_both(&channel);
    get(&mut world, 0, 1, to);
}

/// Gives a connection up from one end's owner, as `mcapi_endpoint_release` does.
fn give_up(world: &mut World, at: usize, end: EndpointId) {
    world.call(at, |engine: &mut Engine<InPlace>, links| engine.release_endpoint(end, links)).unwrap();
    world.settle();
}

#[test]
fn a_connection_that_was_never_opened_is_given_up_by_either_owner() {
    for (mode, by_sender) in
        [(Mode::Memory, true), (Mode::Memory, false), (Mode::Network, true), (Mode::Network, false)]
    {
        let mut world = World::new(3, mode);
        let (from, to) = (world.create(0), world.create(1));
        let connecting = world.connect(2, Packet, from, to);
        world.settle();
        world.done(2, connecting);
        assert_eq!(set(&mut world, 0, from, PRIORITY, 1), Err(Error::ChannelConnected));
        // An opening that the receiver waits for stays, for the next connection.
        let (_, opening) = world.open(1, Packet, true, to);
        world.settle();
        give_up(&mut world, if by_sender { 0 } else { 1 }, if by_sender { from } else { to });
        assert!(world.pending(1, opening));
        set(&mut world, 0, from, PRIORITY, 1).unwrap();
        set(&mut world, 1, to, PRIORITY, 1).unwrap();
        world.cancel(1, opening);
        world.channel_of(Packet, (0, from), (1, to));
    }
}

#[test]
fn a_connection_in_use_is_not_given_up() {
    for mode in BOTH {
        let mut world = World::new(2, mode);
        let channel = world.channel(Packet, 0, 1);
        give_up(&mut world, 0, channel.from);
        give_up(&mut world, 1, channel.to);
        world.send(0, channel.sending, b"still").unwrap();
        world.settle();
        assert_eq!(world.receive(1, channel.receiving), Ok(Some(b"still".to_vec())));
    }
}

#[test]
fn a_get_that_the_owner_has_is_given_back_before_the_connection() {
    let mut world = World::new(2, Mode::Memory);
    let (from, to) = (world.create(0), world.create(1));
    get(&mut world, 0, 0, from);
    let connecting = world.connect(0, Packet, from, to);
    world.settle();
    world.done(0, connecting);
    give_up(&mut world, 0, from);
    assert_eq!(set(&mut world, 0, from, PRIORITY, 1), Err(Error::ChannelConnected), "the get is given back");
    give_up(&mut world, 0, from);
    set(&mut world, 0, from, PRIORITY, 1).unwrap();
}

#[test]
fn gets_of_other_nodes_do_not_keep_the_owner_from_giving_a_connection_up() {
    for (mode, by_sender) in
        [(Mode::Memory, true), (Mode::Memory, false), (Mode::Network, true), (Mode::Network, false)]
    {
        let mut world = World::new(2, mode);
        let (from, to) = (world.create(0), world.create(1));
        // As programs do: who connects has got the other end first.
        get(&mut world, 0, 1, to);
        get(&mut world, 1, 0, from);
        let connecting = world.connect(0, Packet, from, to);
        world.settle();
        world.done(0, connecting);
        give_up(&mut world, if by_sender { 0 } else { 1 }, if by_sender { from } else { to });
        for (at, end) in [(0, from), (1, to)] {
            assert_eq!(world.call(at, |engine, links| engine.delete_endpoint(end, links)), Ok(()), "{mode:?}");
        }
    }
}

#[test]
fn a_peer_that_does_not_hear_of_it_cannot_keep_a_connection_that_was_given_up() {
    for mode in BOTH {
        let mut world = World::new(3, mode);
        let (from, to) = (world.create(0), world.create(1));
        let connecting = world.connect(0, Packet, from, to);
        world.settle();
        world.done(0, connecting);
        let number = world.net.connection;
        world.net.slow = Some(0);
        give_up(&mut world, 1, to);
        set(&mut world, 1, to, PRIORITY, 1).unwrap();
        // What it says of that connection from then on changes nothing.
        let before = world.call(1, |engine, _| engine.counters());
        for kind in [Kind::Open, Kind::Packet, Kind::Close, Kind::Disconnect, Kind::ChannelCredit] {
            let header = Header { to: to.bits(), tag: number, from: number, value: 1, ..Header::new(kind as u8) };
            world.forge(0, 1, header, &[]);
        }
        let after = world.call(1, |engine, _| engine.counters());
        assert_eq!(after.late, before.late + 5);
        assert_eq!(Counters { late: before.late, ..after }, before);
        set(&mut world, 1, to, PRIORITY, 0).unwrap();
        let other = world.create(2);
        let channel = world.channel_of(Packet, (2, other), (1, to));
        world.send(2, channel.sending, b"anew").unwrap();
        world.settle();
        assert_eq!(world.receive(1, channel.receiving), Ok(Some(b"anew".to_vec())));
    }
}

/// The sending end's owner opens it while the receiving end's gives the connection up; neither has heard of the other.
#[test]
fn giving_a_connection_up_crosses_the_opening_of_its_sending_end() {
    for mode in BOTH {
        for receiver_opens in [false, true] {
            let mut world = World::new(2, mode);
            let (from, to) = (world.create(0), world.create(1));
            let connecting = world.connect(0, Packet, from, to);
            world.settle();
            world.done(0, connecting);
            let opening_too = receiver_opens.then(|| world.open(1, Packet, true, to));
            world.settle();
            let (sending, opening) = world.open(0, Packet, false, from);
            world.call(1, |engine: &mut Engine<InPlace>, links| engine.release_endpoint(to, links)).unwrap();
            world.settle();
            if let Some((_, opening_too)) = opening_too {
                // To the sender the channel was open: it hears of its end, and closes.
                world.done(0, opening);
                assert_eq!(world.send(0, sending, b"x"), Err(Error::ChannelInvalid));
                let closing = world.close(0, Packet, false, sending).unwrap();
                world.settle();
                world.done(0, closing);
                assert!(world.pending(1, opening_too), "it goes on waiting");
                world.cancel(1, opening_too);
            } else {
                assert!(world.pending(0, opening), "it goes on waiting");
                world.cancel(0, opening);
            }
            world.settle();
            let channel = world.channel_of(Packet, (0, from), (1, to));
            world.close_both(&channel);
        }
    }
}

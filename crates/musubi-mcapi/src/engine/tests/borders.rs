//! Borders: the last that is admitted, the first that is not, and what is counted to know it.

use super::*;
use crate::engine::inspect::{NodePicture, Part};
use crate::engine::{ChannelHandle, ChannelKind, OPEN_POLLED_MS, OPEN_POLLS, OUTBOX_BYTES_MAX, QUESTIONS_MAX};
use crate::limits::{DOMAIN_MAX, MESSAGE_CREDIT, PACKET_BYTES_MAX, PORT_MAX};

fn picture(world: &mut World, at: usize) -> NodePicture {
    let bytes = world.on(at, |engine, links| engine.picture(0, links));
    Part::decode(&bytes).unwrap().node
}

fn forge(world: &mut World, header: Header) {
    let payload = Payload::Short(Short::EMPTY);
    world.report(0, Report::Frame { peer: node(1), header, payload });
}

#[test]
fn the_last_port_and_the_last_domain_exist() {
    let mut world = World::linked(2, false);
    let get = |world: &mut World, node, port| world.on(0, |engine, links| engine.get_endpoint(node, port, links));
    assert!(get(&mut world, (0, 1), PORT_MAX).is_ok());
    assert_eq!(get(&mut world, (0, 1), PORT_MAX + 1), Err(Error::PortInvalid));
    assert_eq!(get(&mut world, (DOMAIN_MAX, 0), 1), Err(Error::NodeInvalid), "no domain of this system");
    assert_eq!(get(&mut world, (DOMAIN_MAX + 1, 0), 1), Err(Error::DomainInvalid));
    // A peer's question for either comes from who knows no limits.
    for (port, crowded_out) in [(PORT_MAX, 0), (PORT_MAX + 1, 1)] {
        forge(&mut world, Header { value: port, tag: 77, ..Header::new(Kind::Get as u8) });
        assert_eq!(world.engines[0].counters().crowded_out, crowded_out);
    }
    let answers: Vec<_> = world.wire(0, 1).frames.iter().map(|(header, ..)| (header.kind, header.tag)).collect();
    assert_eq!(answers.last(), Some(&(Kind::GetReply as u8, 77)));
    let refused = world.wire(0, 1).frames.back().unwrap().0;
    assert_eq!(refused.status, Error::RequestLimit.wire());
}

#[test]
fn gets_that_are_held_are_counted_until_they_are_answered_or_taken_back() {
    let mut world = World::linked(3, false);
    let (first, second, third) = (world.get(1, 0, 5), world.get(1, 0, 6), world.get(2, 0, 5));
    world.run();
    assert_eq!(picture(&mut world, 0).gets_held, 3);
    world.on(1, |engine, links| engine.cancel(second, links)).unwrap();
    world.run();
    assert_eq!(picture(&mut world, 0).gets_held, 2);
    let endpoint = world.create(0, 5);
    world.run();
    assert_eq!(picture(&mut world, 0).gets_held, 0);
    assert_eq!((world.endpoint_of(1, first), world.endpoint_of(2, third)), (endpoint, endpoint));
    // Who got it first and last is known until the last has given it back.
    let source = |world: &mut World| world.attribute(0, endpoint, 2, 8).unwrap()[4];
    assert_eq!((world.word(0, endpoint, 1), source(&mut world)), (2, 2));
    world.on(2, |engine, links| engine.release_endpoint(endpoint, links)).unwrap();
    world.run();
    assert_eq!((world.word(0, endpoint, 1), source(&mut world)), (1, 2));
    world.on(1, |engine, links| engine.release_endpoint(endpoint, links)).unwrap();
    world.run();
    assert_eq!((world.word(0, endpoint, 1), source(&mut world)), (0, 0xff));
}

#[test]
fn a_peer_that_gets_an_endpoint_without_end_is_refused_where_the_count_ends() {
    let mut world = World::linked(2, false);
    let endpoint = world.create(0, 5);
    let place = world.engines[0].peers.find(node(1)).unwrap();
    world.engines[0].endpoints.get_mut(endpoint).unwrap().gets = u32::MAX - 1;
    world.engines[0].intake(place, endpoint).gets = u32::MAX - 1;
    for status in [0, Error::EndpointGetLimit.wire()] {
        forge(&mut world, Header { value: 5, tag: 77, ..Header::new(Kind::Get as u8) });
        assert_eq!(world.wire(0, 1).frames.back().unwrap().0.status, status);
        assert_eq!(world.engines[0].endpoints.get(endpoint).unwrap().gets, u32::MAX);
    }
}

#[test]
fn what_is_refused_is_added_up_in_the_picture() {
    let mut world = World::linked(2, false);
    let endpoint = world.create(0, 5);
    let refused = |world: &mut World| (picture(world, 0).refused, world.engines[0].counters());
    // Each of another kind than those before, and of the second kind two.
    let theirs = EndpointId::new(node(1), 0, 1);
    let message = Header { class: Priority::new(1).unwrap(), to: endpoint.bits(), ..Header::new(Kind::Message as u8) };
    forge(&mut world, Header { from: 1, ..message });
    assert_eq!(refused(&mut world).0, 1);
    forge(&mut world, Header { tag: 5, ..Header::new(Kind::GetReply as u8) });
    forge(&mut world, Header { tag: 5, ..Header::new(Kind::GetReply as u8) });
    assert_eq!(refused(&mut world).0, 3);
    forge(&mut world, Header { value: PORT_MAX + 1, ..Header::new(Kind::Get as u8) });
    assert_eq!(refused(&mut world).0, 4);
    for _ in 0..MESSAGE_CREDIT + 2 {
        forge(&mut world, Header { from: theirs.bits(), ..message });
    }
    assert_eq!(refused(&mut world).0, 6);
    forge(&mut world, Header::new(Kind::Release as u8));
    assert_eq!(refused(&mut world).0, 7);
    let header = Header::new(Kind::Release as u8);
    world.report(0, Report::Frame { peer: node(9), header, payload: Payload::Short(Short::EMPTY) });
    let (all, counters) = refused(&mut world);
    assert_eq!(all, 8);
    let each = [counters.unlinked, counters.not_theirs, counters.overruns, counters.unasked, counters.malformed];
    assert_eq!((each, counters.crowded_out), ([1, 1, 2, 2, 1], 1));
}

#[test]
fn links_that_carry_less_limit_what_an_endpoint_may_have() {
    let mut world = World::apart(1);
    world.engines[0].limit_payload(1000);
    let endpoint = world.create(0, 5);
    assert_eq!(world.word(0, endpoint, 3), 1000);
    let set = |world: &mut World, number: u32, value: u32| {
        world.engines[0].set_endpoint_attribute(endpoint, number, &value.to_ne_bytes())
    };
    assert_eq!(set(&mut world, 3, 1001), Err(Error::AttributeValue));
    assert_eq!(set(&mut world, 3, 999), Ok(()));
    assert_eq!(set(&mut world, 3, 1000), Ok(()));
    assert_eq!(set(&mut world, 11, 1001), Ok(()), "which is a time");
    // A message may be as long as that, a scalar eight bytes, a packet longer than a message.
    let mut world = World::apart(1);
    let endpoint = world.create(0, 5);
    for (kind, bytes_max) in [(1, 65_536), (2, PACKET_BYTES_MAX as u32), (4, 8)] {
        world.engines[0].set_endpoint_attribute(endpoint, 0, &u32::to_ne_bytes(kind)).unwrap();
        assert_eq!(world.word(0, endpoint, 3), bytes_max);
    }
}

/// A link that takes nothing, and so many bytes of answers held back for it.
fn held_back(world: &mut World, bytes: usize) {
    world.wire(0, 1).full = true;
    let mut left = bytes;
    while left > 0 {
        let now = left.min(65_536);
        let header = Header { length: now as u32, tag: 3, ..Header::new(Kind::Ping as u8) };
        let payload = Payload::Owned(std::vec![7; now]);
        world.report(0, Report::Frame { peer: node(1), header, payload });
        left -= now;
    }
}

#[test]
fn nothing_is_begun_with_who_does_not_keep_up() {
    let begin = |world: &mut World| {
        let header = Header { value: 5, tag: 9, ..Header::new(Kind::Get as u8) };
        world.report(0, Report::Frame { peer: node(1), header, payload: Payload::Short(Short::EMPTY) });
        world.engines[0].counters().crowded_out
    };
    let limit = OUTBOX_BYTES_MAX - Kind::InspectReply.payload_max();
    for (bytes, crowded_out) in [(limit, 0), (limit + 1, 1), (limit + 65_536, 1)] {
        let mut world = World::linked(2, false);
        held_back(&mut world, bytes);
        assert_eq!(begin(&mut world), crowded_out, "{bytes}");
        // What was held back goes out as it was, and then there is room.
        world.set_full(0, 1, false);
        let said: Vec<_> =
            world.wire(0, 1).frames.iter().map(|(header, bytes, _)| (header.length, bytes.len())).collect();
        assert!(said.iter().all(|(length, bytes)| *length as usize == *bytes), "{said:?}");
        assert_eq!(said.iter().map(|(_, bytes)| bytes).sum::<usize>(), bytes);
        world.wire(0, 1).frames.clear();
        held_back(&mut world, limit);
        assert_eq!(begin(&mut world), crowded_out, "as much again");
    }
}

#[test]
fn questions_without_room_are_those_that_are_still_asked() {
    let mut world = World::linked(2, false);
    world.wire(0, 1).full = true;
    for _ in 0..5 * QUESTIONS_MAX {
        let get = world.get(0, 1, 5);
        world.on(0, |engine, links| engine.drop_request(get, links));
    }
    let kept: Vec<_> = (0..QUESTIONS_MAX).map(|_| world.get(0, 1, 6)).collect();
    let one_more = world.on(0, |engine, links| engine.get_endpoint((0, 1), 6, links));
    assert_eq!(one_more, Err(Error::RequestLimit));
    world.set_full(0, 1, false);
    let said: Vec<_> = world.wire(0, 1).frames.iter().map(|(header, ..)| (header.value, header.tag)).collect();
    assert_eq!(said, kept.iter().map(|get| (6, get.0)).collect::<Vec<_>>());
}

/// An open channel of node 0 to itself.
fn to_itself(kind: ChannelKind) -> (World, ChannelHandle, ChannelHandle) {
    let mut world = World::apart(1);
    let (from, to) = (world.create(0, 1), world.create(0, 2));
    world.on(0, |engine, links| engine.connect(kind, from, to, links)).unwrap();
    let open = |world: &mut World, receives, at| {
        world.on(0, |engine, links| engine.open(kind, receives, at, links)).unwrap().0
    };
    let (sending, receiving) = (open(&mut world, false, from), open(&mut world, true, to));
    (world, sending, receiving)
}

/// Asks for a request as a program does that loops; gives what it completed with.
fn polled(world: &mut World, request: RequestId) -> Option<Result<Outcome<TestBlock>, Error>> {
    let mut now_ns = 0;
    for _ in 0..=OPEN_POLLS {
        world.on(0, |engine, links| engine.polled(request, |_| now_ns, links));
        now_ns += u64::from(OPEN_POLLED_MS) * 1_000_000 / u64::from(OPEN_POLLS) + 1;
    }
    world.outcome(0, request)
}

#[test]
fn a_send_to_itself_that_is_asked_for_long_enough_is_sent() {
    let mut world = World::apart(1);
    let (a, b) = (world.create(0, 1), world.create(0, 2));
    for _ in 0..MESSAGE_CREDIT {
        assert_eq!(world.send(0, a, b, &[1]), Ok(Sending::Done));
    }
    let (first, second) = (world.send_later(0, a, b, &[2; 5]).unwrap(), world.send_later(0, a, b, &[3; 7]).unwrap());
    assert!(matches!(polled(&mut world, second), Some(Ok(Outcome::Sent(7)))));
    assert!(matches!(polled(&mut world, first), Some(Ok(Outcome::Sent(5)))));
    let mut read = Vec::new();
    while let Some(bytes) = world.read(0, b) {
        read.push(bytes.len());
    }
    assert_eq!(read[MESSAGE_CREDIT as usize..], [5, 7], "both are still to come");
    let (mut world, sending, receiving) = to_itself(ChannelKind::Packet);
    let send = |world: &mut World, bytes: usize| {
        world.on(0, |engine, links| engine.send_packet_later(sending, std::vec![1; bytes], links)).unwrap()
    };
    while world.on(0, |engine, links| engine.send_packet(sending, &[9], links)) == Ok(Sending::Done) {}
    let (first, second) = (send(&mut world, 3), send(&mut world, 4));
    assert!(matches!(polled(&mut world, second), Some(Ok(Outcome::Sent(4)))));
    assert!(matches!(polled(&mut world, first), Some(Ok(Outcome::Sent(3)))));
    assert!(world.engines[0].channel_available(ChannelKind::Packet, receiving).unwrap() > 1);
}

#[test]
fn what_is_asked_for_of_others_or_not_often_enough_waits() {
    let mut world = World::linked(2, false);
    let (a, b) = (world.create(0, 1), world.create(1, 1));
    for _ in 0..MESSAGE_CREDIT {
        world.send(0, a, b, &[1]).unwrap();
    }
    let waits = world.send_later(0, a, b, &[2]).unwrap();
    assert!(polled(&mut world, waits).is_none());
    let own = world.create(0, 2);
    let receives = world.on(0, |engine, links| engine.receive_message_later(own, links)).unwrap();
    assert!(polled(&mut world, receives).is_none());
}

#[test]
fn requests_are_all_ended_with_their_node() {
    let mut world = World::apart(1);
    let endpoint = world.create(0, 1);
    let wait = |world: &mut World| world.on(0, |engine, links| engine.receive_message_later(endpoint, links)).unwrap();
    let former: Vec<_> = (0..3).map(|_| wait(&mut world)).collect();
    former.iter().for_each(|request| world.on(0, |engine, links| engine.drop_request(*request, links)));
    let waiting: Vec<_> = (0..5).map(|_| wait(&mut world)).collect();
    let before = world.engines[0].changes();
    world.engines[0].end();
    assert!(world.engines[0].changes() > before);
    for request in waiting {
        assert!(matches!(world.outcome(0, request), Some(Err(Error::NodeNotInitialized))), "{request:?}");
    }
}

#[test]
fn scalars_are_taken_in_order_however_often_the_ring_goes_round() {
    let (mut world, sending, receiving) = to_itself(ChannelKind::Scalar);
    let (mut sent, mut read) = (0, 0);
    for burst in [1, 3, 50, 64, 1, 64, 7, 64, 64, 33] {
        for _ in 0..burst {
            let done = world.on(0, |engine, links| engine.send_scalar(sending, 4, sent, links));
            assert_eq!(done, Ok(Sending::Done));
            sent += 1;
        }
        assert_eq!(world.engines[0].channel_available(ChannelKind::Scalar, receiving), Ok(burst));
        while read < sent {
            let came = world.on(0, |engine, links| engine.receive_scalar(receiving, 4, links));
            assert_eq!(came, Ok(Some(read)));
            read += 1;
        }
    }
}

#[test]
fn an_end_that_is_closed_drops_what_is_unread_and_begins_anew() {
    for kind in [ChannelKind::Packet, ChannelKind::Scalar] {
        let (mut world, sending, receiving) = to_itself(kind);
        for _ in 0..3 {
            match kind {
                ChannelKind::Packet => world.on(0, |engine, links| engine.send_packet(sending, &[1], links)).unwrap(),
                ChannelKind::Scalar => world.on(0, |engine, links| engine.send_scalar(sending, 1, 1, links)).unwrap(),
            };
        }
        assert_eq!(world.engines[0].channel_available(kind, receiving), Ok(3));
        let close = world.on(0, |engine, links| engine.close(kind, true, receiving, links)).unwrap();
        assert!(world.outcome(0, close).is_none());
        assert_eq!(world.engines[0].channel_available(kind, receiving), Err(Error::ChannelInvalid));
        let other = world.on(0, |engine, links| engine.close(kind, false, sending, links)).unwrap();
        for request in [close, other] {
            assert!(matches!(world.outcome(0, request), Some(Ok(Outcome::Plain))));
        }
    }
}

#[test]
fn an_opening_that_is_refused_leaves_nothing() {
    let mut world = World::apart(1);
    let endpoint = world.create(0, 1);
    let open = |world: &mut World, kind, receives| {
        world.on(0, |engine, links| engine.open(kind, receives, endpoint, links)).map(|(handle, _)| handle)
    };
    let waiting = open(&mut world, ChannelKind::Packet, true).unwrap();
    assert_eq!(open(&mut world, ChannelKind::Packet, true), Err(Error::ChannelOpenPending));
    let close =
        |world: &mut World, kind, receives| world.on(0, |engine, links| engine.close(kind, receives, waiting, links));
    // What it was opened for is known before it is connected.
    assert_eq!(close(&mut world, ChannelKind::Scalar, true), Err(Error::ChannelType));
    assert_eq!(close(&mut world, ChannelKind::Packet, false), Err(Error::ChannelDirection));
    assert_eq!(close(&mut world, ChannelKind::Packet, true), Err(Error::ChannelNotOpen));
    assert_eq!(world.on(0, |engine, links| engine.delete_endpoint(endpoint, links)), Ok(()));
    world.on(0, |engine, links| engine.packet_released(ChannelHandle(0), 1, links));
    assert_eq!(world.engines[0].channel_available(ChannelKind::Packet, waiting), Err(Error::ChannelInvalid));
}

#[test]
fn a_handle_of_an_earlier_opening_is_none() {
    let (mut world, sending, receiving) = to_itself(ChannelKind::Packet);
    for (handle, receives) in [(sending, false), (receiving, true)] {
        world.on(0, |engine, links| engine.close(ChannelKind::Packet, receives, handle, links)).unwrap();
    }
    for handle in [sending, receiving, ChannelHandle(0)] {
        let sent = world.on(0, |engine, links| engine.send_packet(handle, &[1], links));
        assert_eq!(sent, Err(Error::ChannelInvalid));
    }
}

#[test]
fn queued_packets_are_bounded_by_number_and_bytes() {
    let (mut world, sending, _) = to_itself(ChannelKind::Packet);
    while world.on(0, |engine, links| engine.send_packet(sending, &[9], links)) == Ok(Sending::Done) {}
    let send = |world: &mut World, bytes: usize| {
        world.on(0, |engine, links| engine.send_packet_later(sending, std::vec![1; bytes], links)).map(|_| ())
    };
    let most = super::super::QUEUED_PACKET_BYTES_MAX;
    for _ in 0..most / PACKET_BYTES_MAX - 1 {
        assert_eq!(send(&mut world, PACKET_BYTES_MAX), Ok(()));
    }
    assert_eq!(send(&mut world, PACKET_BYTES_MAX - 1), Ok(()));
    assert_eq!(send(&mut world, 2), Err(Error::MemoryLimit));
    assert_eq!(send(&mut world, 1), Ok(()), "to the last byte");
    assert_eq!(send(&mut world, 1), Err(Error::MemoryLimit));
    let (mut world, sending, _) = to_itself(ChannelKind::Packet);
    while world.on(0, |engine, links| engine.send_packet(sending, &[9], links)) == Ok(Sending::Done) {}
    for _ in 0..super::super::SEND_BUFFERS {
        assert_eq!(
            world.on(0, |engine, links| engine.send_packet_later(sending, Vec::new(), links)).map(|_| ()),
            Ok(())
        );
    }
    let refused = world.on(0, |engine, links| engine.send_packet_later(sending, Vec::new(), links));
    assert_eq!(refused, Err(Error::MemoryLimit));
}

#[test]
fn generations_of_endpoints_go_round_without_zero() {
    let mut world = World::apart(1);
    let mut seen = BTreeMap::<u16, Vec<u8>>::new();
    for _ in 0..200_000 {
        let endpoint = world.create(0, 5);
        seen.entry(endpoint.slot()).or_default().push(endpoint.generation());
        world.on(0, |engine, links| engine.delete_endpoint(endpoint, links)).unwrap();
        if seen.values().any(|generations| generations.len() > 130) {
            break;
        }
    }
    let longest = seen.values().max_by_key(|generations| generations.len()).unwrap();
    assert!(longest.len() > 130, "{}", longest.len());
    for pair in longest.windows(2) {
        let next = if pair[0] == EndpointId::GENERATION_MAX { 1 } else { pair[0] + 1 };
        assert_eq!(pair[1], next);
    }
}

#[test]
fn endpoints_are_told_by_node_place_and_generation() {
    let name = EndpointId::new(NodeId::new(2, 7).unwrap(), 12, 3);
    assert_eq!(std::format!("{name}"), "2:7/12.3");
}

#[test]
fn an_earlier_openings_handle_is_none_when_the_end_is_opened_again() {
    let mut world = World::apart(1);
    let (from, to) = (world.create(0, 1), world.create(0, 2));
    let mut earlier = Vec::new();
    for _ in 0..3 {
        world.on(0, |engine, links| engine.connect(ChannelKind::Packet, from, to, links)).unwrap();
        let open = |world: &mut World, receives, at| {
            world.on(0, |engine, links| engine.open(ChannelKind::Packet, receives, at, links)).unwrap().0
        };
        let ends = [(open(&mut world, false, from), false), (open(&mut world, true, to), true)];
        for handle in &earlier {
            let sent = world.on(0, |engine, links| engine.send_packet(*handle, &[1], links));
            assert_eq!(sent, Err(Error::ChannelInvalid));
        }
        for (handle, receives) in ends {
            world.on(0, |engine, links| engine.close(ChannelKind::Packet, receives, handle, links)).unwrap();
        }
        earlier.push(ends[0].0);
    }
}

#[test]
fn an_end_says_how_it_stands() {
    let mut world = World::apart(1);
    let (from, to) = (world.create(0, 1), world.create(0, 2));
    let status = |world: &mut World, at| world.word(0, at, 10);
    world.get(0, 0, 1);
    assert_eq!((status(&mut world, from), status(&mut world, to)), (0x10, 0));
    world.on(0, |engine, links| engine.connect(ChannelKind::Packet, from, to, links)).unwrap();
    assert_eq!((status(&mut world, from), status(&mut world, to)), (0x51_0011, 0x91_0001));
    let open = |world: &mut World, receives, at| {
        world.on(0, |engine, links| engine.open(ChannelKind::Packet, receives, at, links)).unwrap().0
    };
    let sending = open(&mut world, false, from);
    assert_eq!(status(&mut world, from), 0x55_0015);
    open(&mut world, true, to);
    assert_eq!((status(&mut world, from), status(&mut world, to)), (0x53_0013, 0x93_0003));
    for _ in 0..3 {
        world.on(0, |engine, links| engine.send_packet(sending, &[1; 9], links)).unwrap();
    }
    let bytes = world.on(0, |engine, links| engine.picture(0, links));
    let channels = Part::decode(&bytes).unwrap().channels;
    let seen: Vec<_> = channels.iter().map(|end| (end.endpoint, end.other, end.depth, end.items, end.bytes)).collect();
    assert_eq!(seen, [(from, to, 3, 3, 27), (to, from, 3, 3, 27)]);
    world.on(0, |engine, links| engine.close(ChannelKind::Packet, false, sending, links)).unwrap();
    assert_eq!(status(&mut world, from), 0x59_0019);
}

#[test]
fn a_connections_number_is_below_the_receivers() {
    let mut world = World::linked(2, false);
    let ours = world.create(0, 1);
    let theirs = EndpointId::new(node(1), 0, 1);
    // Its own attributes are those that must be equal.
    let same = world.create(0, 2);
    world.on(0, |engine, links| engine.connect(ChannelKind::Packet, same, theirs, links)).unwrap();
    let compared = world.wire(0, 1).frames.iter().find(|(header, ..)| header.kind == Kind::ConnectAccept as u8);
    let compared = compared.unwrap().1.clone();
    for (tag, accepted) in [(0, false), (1 << 31, false), ((1 << 31) - 1, true)] {
        let value = ChannelKind::Packet.number() | 1 << 16;
        let (from, to, length) = (theirs.bits(), ours.bits(), compared.len() as u32);
        let header = Header { from, to, tag, value, length, ..Header::new(Kind::ConnectAccept as u8) };
        let payload = Payload::Short(Short::new(&compared).unwrap());
        world.report(0, Report::Frame { peer: node(1), header, payload });
        let answer = world.wire(0, 1).frames.iter().rev().find(|(header, ..)| header.kind == Kind::ConnectReply as u8);
        let expected = if accepted { 0 } else { Error::AttributeIncompatible.wire() };
        let said = Header { tag, status: expected, ..Header::new(Kind::ConnectReply as u8) };
        assert_eq!(answer.map(|(header, ..)| *header), Some(said), "and nothing else, as docs/wire.md has it");
    }
}

#[test]
fn a_link_is_tried_for_as_long_as_is_said() {
    const TRIED_NS: u64 = 10_000_000_000;
    for (waited_ns, wanted) in [(TRIED_NS, true), (TRIED_NS + 1, false)] {
        let mut world = World::apart(2);
        let (a, unknown) = (world.create(0, 5), EndpointId::new(node(1), 0, 1));
        assert_eq!(world.send(0, a, unknown, &[]), Ok(Sending::Blocked));
        world.now_ns = waited_ns;
        world.report(0, Report::Absent { peer: node(1) });
        assert_eq!(world.outs[0].wanted.contains(&node(1)), wanted, "{waited_ns}");
    }
}

#[test]
fn a_link_to_itself_is_no_link() {
    let mut world = World::linked(2, false);
    world.report(0, Report::Up { peer: node(0), incarnation: 3 });
    world.report(0, Report::Up { peer: node(0), incarnation: 4 });
    assert_eq!(world.engines[0].counters().not_theirs, 2);
}

#[test]
fn a_deleted_endpoint_is_the_only_one_that_takes_messages_again() {
    let mut world = World::linked(2, false);
    let ours = world.create(0, 1);
    let [first, second] = [1, 2].map(|slot| EndpointId::new(node(1), slot, 5));
    for connected in [first, second] {
        forge(&mut world, Header { from: connected.bits(), value: 1, ..Header::new(Kind::Connected as u8) });
        assert_eq!(world.send(0, ours, connected, &[1]), Err(Error::General));
    }
    // An earlier one of that place, and another's: neither is meant.
    for other in [EndpointId::new(node(1), 1, 4), EndpointId::new(node(1), 3, 5)] {
        forge(&mut world, Header { from: other.bits(), ..Header::new(Kind::Deleted as u8) });
    }
    assert_eq!(world.send(0, ours, first, &[1]), Err(Error::General));
    forge(&mut world, Header { from: first.bits(), ..Header::new(Kind::Deleted as u8) });
    assert_eq!(world.send(0, ours, first, &[1]), Ok(Sending::Done));
    assert_eq!(world.send(0, ours, second, &[1]), Err(Error::General));
}

#[test]
fn credit_is_told_early_only_to_who_has_none() {
    let mut world = World::linked(2, false);
    let (a, b) = (world.create(0, 1), world.create(1, 1));
    let told = |world: &mut World| world.engines[0].peer_counters(node(1)).unwrap().frames_received;
    let begun = told(&mut world);
    let send = |world: &mut World| {
        assert_eq!(world.send(0, a, b, &[1; 200]), Ok(Sending::Done));
        world.run();
    };
    // Some were sent, one was taken: there is credit enough.
    (0..MESSAGE_CREDIT - 1).for_each(|_| send(&mut world));
    assert!(world.read(1, b).is_some());
    world.tick();
    assert_eq!(told(&mut world), begun);
    // The last that there was credit for: now the one that was taken is told, when it is time and not before.
    send(&mut world);
    let tick = |world: &mut World| {
        let now_ns = world.now_ns;
        let due_ns = world.on(1, |engine, links| engine.tick(now_ns, links));
        world.run();
        due_ns
    };
    let due_ns = tick(&mut world);
    assert!(due_ns > world.now_ns && due_ns - world.now_ns <= 100_000, "{due_ns} at {}", world.now_ns);
    world.now_ns = due_ns - 1;
    assert_eq!((tick(&mut world), told(&mut world)), (due_ns, begun));
    world.now_ns = due_ns;
    assert_eq!((tick(&mut world), told(&mut world)), (u64::MAX, begun + 1));
    send(&mut world);
    assert_eq!(world.send(0, a, b, &[1]), Ok(Sending::Blocked));
}

#[test]
fn what_a_dropped_request_got_holds_no_block() {
    let mut world = World::linked(2, false);
    let (a, b) = (world.create(0, 1), world.create(1, 1));
    let waits = world.on(1, |engine, links| engine.receive_message_later(b, links)).unwrap();
    world.send(0, a, b, &[1; 500]).unwrap();
    world.run();
    assert_eq!(world.blocks.load(Ordering::Relaxed), 1);
    world.on(1, |engine, links| engine.drop_request(waits, links));
    assert_eq!(world.blocks.load(Ordering::Relaxed), 0, "it is copied out");
    assert_eq!(world.read(1, b), Some(std::vec![1; 500]));
}

#[test]
fn bytes_that_wait_at_an_end_are_counted_off_when_they_go_or_are_taken_back() {
    let (mut world, sending, receiving) = to_itself(ChannelKind::Packet);
    while world.on(0, |engine, links| engine.send_packet(sending, &[9], links)) == Ok(Sending::Done) {}
    let later = |world: &mut World| {
        let packet = std::vec![1; PACKET_BYTES_MAX];
        world.on(0, |engine, links| engine.send_packet_later(sending, packet, links))
    };
    let most = super::super::QUEUED_PACKET_BYTES_MAX / PACKET_BYTES_MAX;
    for _ in 0..3 {
        let waiting: Vec<_> = (0..most).map(|_| later(&mut world).unwrap()).collect();
        assert_eq!(later(&mut world), Err(Error::MemoryLimit));
        for request in waiting {
            world.on(0, |engine, links| engine.drop_request(request, links));
        }
    }
    let waiting: Vec<_> = (0..most).map(|_| later(&mut world).unwrap()).collect();
    while let Some(packet) = world.on(0, |engine, links| engine.receive_packet(receiving, links)).unwrap() {
        let length = packet.len();
        world.on(0, |engine, links| engine.packet_released(receiving, length, links));
    }
    for request in waiting {
        assert!(matches!(world.outcome(0, request), Some(Ok(Outcome::Sent(PACKET_BYTES_MAX)))));
    }
    let full =
        (0..).find(|_| world.on(0, |engine, links| engine.send_packet(sending, &[9], links)) != Ok(Sending::Done));
    assert!(full.is_some());
    for _ in 0..most {
        later(&mut world).unwrap();
    }
    assert_eq!(later(&mut world), Err(Error::MemoryLimit));
}

#[test]
fn who_only_asks_for_credit_is_believed_nothing_else() {
    let mut world = World::linked(2, false);
    let (from, to) = (world.create(0, 1), world.create(1, 1));
    world.on(0, |engine, links| engine.connect(ChannelKind::Packet, from, to, links)).unwrap();
    world.run();
    let open = |world: &mut World, at, receives, endpoint| {
        let handle =
            world.on(at, |engine, links| engine.open(ChannelKind::Packet, receives, endpoint, links)).unwrap().0;
        world.run();
        handle
    };
    let sending = open(&mut world, 0, false, from);
    open(&mut world, 1, true, to);
    world.on(0, |engine, links| engine.send_packet(sending, &[1], links)).unwrap();
    world.run();
    let number = {
        world.on(0, |engine, links| engine.send_packet(sending, &[1], links)).unwrap();
        world.wire(0, 1).frames.back().unwrap().0.tag | 1 << 31
    };
    world.run();
    let contradictory = |world: &mut World, flags, value, tag| {
        let (from, to) = (number, from.bits());
        forge(world, Header { from, to, flags, value, tag, ..Header::new(Kind::ChannelCredit as u8) });
        world.engines[0].counters().contradictory
    };
    assert_eq!(contradictory(&mut world, 1, 0, 0), 1, "a receiver does not ask");
    assert_eq!(contradictory(&mut world, 2, 1, 1), 2);
    assert_eq!(contradictory(&mut world, 0, 3, 3), 3, "more than was sent");
    assert_eq!(contradictory(&mut world, 0, 2, 2), 3);
    assert_eq!(world.engines[0].counters().late, 0);
}

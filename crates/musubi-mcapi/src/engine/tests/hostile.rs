//! Peers that say what they like: nothing panics, nothing grows without bound, nothing of others changes.

use super::*;
use crate::engine::frame::Kind;
use crate::engine::frame::class_of;
use crate::engine::{Counters, OUTBOX_BYTES_MAX, OUTBOX_FRAMES_MAX, QUESTIONS_MAX};
use crate::limits::MESSAGE_CREDIT;
use musubi_transport::Priority;

/// Says a frame to node 0 in the name of node `from`.
fn say(world: &mut World, from: usize, header: Header, payload: &[u8]) {
    let header = Header { length: payload.len() as u32, ..header };
    let payload = world.payload(payload.to_vec());
    world.report(0, Report::Frame { peer: node(from), header, payload });
}

fn counted(world: &World, of: fn(&Counters) -> u64) -> u64 {
    of(&world.engines[0].counters())
}

#[test]
fn credit_cannot_be_overdrawn() {
    let mut world = World::linked(2, false);
    let (to, from) = (world.create(0, 5), world.create(1, 5));
    let header = Header { class: class_of(0), from: from.bits(), to: to.bits(), ..Header::new(Kind::Message as u8) };
    for _ in 0..100 {
        say(&mut world, 1, header, &[1; 50]);
    }
    assert_eq!(world.engines[0].messages_available(to), Ok(MESSAGE_CREDIT as usize));
    assert_eq!(counted(&world, |counters| counters.overruns), 100 - u64::from(MESSAGE_CREDIT));
    assert_eq!(world.engines[0].peer_counters(node(1)).unwrap().refused, 100 - u64::from(MESSAGE_CREDIT));
}

#[test]
fn nobody_speaks_for_others() {
    let mut world = World::linked(3, false);
    let (ours, theirs, others) = (world.create(0, 5), world.create(1, 5), world.create(2, 5));
    let message = |from: u32, to: u32| Header { class: class_of(0), from, to, ..Header::new(Kind::Message as u8) };
    say(&mut world, 1, message(others.bits(), ours.bits()), &[]);
    say(&mut world, 1, message(ours.bits(), ours.bits()), &[]);
    say(&mut world, 1, message(theirs.bits(), others.bits()), &[]);
    say(&mut world, 1, message(0, ours.bits()), &[]);
    say(&mut world, 1, message(theirs.bits(), 0xdead_beef), &[]);
    say(&mut world, 1, Header { from: others.bits(), ..Header::new(Kind::Deleted as u8) }, &[]);
    say(&mut world, 1, Header { from: others.bits(), value: 5, ..Header::new(Kind::MessageCredit as u8) }, &[]);
    assert_eq!(counted(&world, |counters| counters.not_theirs), 7);
    say(&mut world, 1, Header { class: Priority::MOST_URGENT, ..message(theirs.bits(), ours.bits()) }, &[]);
    assert_eq!(counted(&world, |counters| counters.malformed), 1);
    assert_eq!(world.engines[0].messages_available(ours), Ok(0));
    world.cut(0, 1, Loss::Gone);
    say(&mut world, 1, message(theirs.bits(), ours.bits()), &[]);
    say(&mut world, 9, message(theirs.bits(), ours.bits()), &[]);
    say(&mut world, 0, message(ours.bits(), ours.bits()), &[]);
    assert_eq!(counted(&world, |counters| counters.unlinked), 3);
    assert_eq!(world.engines[0].messages_available(ours), Ok(0));
}

#[test]
fn credit_that_was_not_used_is_not_given() {
    let mut world = World::linked(2, false);
    let (from, to) = (world.create(0, 5), world.create(1, 5));
    for _ in 0..4 {
        world.send(0, from, to, &[]).unwrap();
    }
    say(&mut world, 1, Header { from: to.bits(), value: 5, ..Header::new(Kind::MessageCredit as u8) }, &[]);
    say(&mut world, 1, Header { from: to.bits(), value: u32::MAX, ..Header::new(Kind::MessageCredit as u8) }, &[]);
    assert_eq!(counted(&world, |counters| counters.malformed), 2);
    let mut more = 0;
    while world.send(0, from, to, &[]) == Ok(Sending::Done) {
        more += 1;
    }
    assert_eq!(more, MESSAGE_CREDIT - 4);
}

#[test]
fn answers_to_what_was_not_asked_are_counted_and_change_nothing() {
    let mut world = World::linked(3, false);
    let get = world.get(0, 1, 5);
    let endpoint = world.create(2, 5);
    for kind in [Kind::GetReply, Kind::AttributeReply, Kind::Pong, Kind::InspectReply] {
        say(&mut world, 2, Header { tag: get.0, to: endpoint.bits(), ..Header::new(kind as u8) }, &[]);
        say(&mut world, 1, Header { tag: 0x1234_5678, to: endpoint.bits(), ..Header::new(kind as u8) }, &[]);
    }
    assert_eq!(counted(&world, |counters| counters.unasked), 8);
    assert_eq!(world.engines[0].is_complete(get), Ok(false));
    // An answer of the right node with an endpoint of another.
    say(&mut world, 1, Header { tag: get.0, to: endpoint.bits(), ..Header::new(Kind::GetReply as u8) }, &[]);
    assert!(matches!(world.outcome(0, get), Some(Err(Error::General))));
}

#[test]
fn questions_for_endpoints_are_bounded() {
    let mut world = World::linked(2, false);
    for tag in 0..QUESTIONS_MAX as u32 + 50 {
        say(&mut world, 1, Header { tag, value: 10 + tag % 7, ..Header::new(Kind::Get as u8) }, &[]);
    }
    assert_eq!(world.outs[0].sent, 50, "the rest was refused");
    assert_eq!(counted(&world, |counters| counters.crowded_out), 50);
    world.cut(0, 1, Loss::Gone);
    assert!(world.engines[0].expected.is_empty());
}

#[test]
fn a_peer_that_asks_and_does_not_read_costs_a_bounded_amount() {
    let mut world = World::linked(2, false);
    world.wire(0, 1).full = true;
    for tag in 0..1000 {
        say(&mut world, 1, Header { tag, ..Header::new(Kind::Ping as u8) }, &[7; 65_536]);
    }
    let place = world.engines[0].peers.find(node(1)).unwrap();
    assert!(world.engines[0].peers.at(place).outbox_bytes <= OUTBOX_BYTES_MAX);
    assert!(counted(&world, |counters| counters.crowded_out) > 900);
}

#[test]
fn what_ends_something_has_room_however_much_a_peer_asks_and_does_not_read() {
    let mut world = World::linked(2, false);
    let theirs = world.create(1, 5);
    let get = world.get(0, 1, 9);
    world.run();
    world.wire(0, 1).full = true;
    for tag in 0..50_000 {
        say(&mut world, 1, Header { tag, ..Header::new(Kind::Ping as u8) }, &[]);
    }
    let place = world.engines[0].peers.find(node(1)).unwrap();
    let held = world.engines[0].peers.at(place).outbox.len();
    assert!(held <= OUTBOX_FRAMES_MAX / 2, "{held} are held back");
    assert_eq!(counted(&world, |counters| counters.crowded_out), 50_000 - held as u64);
    // A program hears that it cannot be said now; what it takes back is said.
    let release = world.on(0, |engine, links| engine.release_endpoint(theirs, links));
    assert_eq!(release, Err(Error::MemoryLimit));
    world.on(0, |engine, links| engine.cancel(get, links)).unwrap();
    world.set_full(0, 1, false);
    world.run();
    assert_eq!(world.on(0, |engine, links| engine.release_endpoint(theirs, links)), Ok(()));
    assert!(world.engines[1].expected.is_empty(), "the question was taken back");
}

#[test]
fn a_question_that_was_not_said_and_is_taken_back_is_never_said() {
    let mut world = World::linked(2, false);
    world.set_full(0, 1, true);
    let before = world.outs[0].sent;
    for _ in 0..5 * QUESTIONS_MAX {
        let get = world.get(0, 1, 9);
        world.on(0, |engine, links| engine.cancel(get, links)).unwrap();
        world.on(0, |engine, links| engine.drop_request(get, links));
    }
    let last = world.get(0, 1, 8);
    let place = world.engines[0].peers.find(node(1)).unwrap();
    let peer = world.engines[0].peers.at(place);
    assert!(peer.outbox.is_empty() && peer.unsaid.len() <= 2 * QUESTIONS_MAX);
    // An answer to a question that was not asked is none: what it gives is given back.
    let theirs = world.create(1, 8);
    say(&mut world, 1, Header { tag: last.0, to: theirs.bits(), ..Header::new(Kind::GetReply as u8) }, &[]);
    assert_eq!(counted(&world, |counters| counters.unasked), 1);
    world.set_full(0, 1, false);
    world.run();
    assert_eq!(world.outs[0].sent, before + 2);
    assert_eq!(world.endpoint_of(0, last), theirs);
}

#[test]
fn news_of_endpoints_that_change_again_and_again_is_no_queue() {
    let mut world = World::linked(3, false);
    let (ours, theirs) = (world.create(0, 5), world.create(2, 5));
    world.set_full(0, 1, true);
    let attributes = [crate::limits::PACKET_BYTES_MAX as u32, 0, 0, u32::from(crate::limits::PRIORITIES), 0];
    let attributes: Vec<u8> = attributes.iter().flat_map(|value| value.to_le_bytes()).collect();
    let (from, to) = (theirs.bits(), ours.bits());
    for _ in 0..OUTBOX_FRAMES_MAX {
        let accept = Header { from, to, tag: 7, value: 2, ..Header::new(Kind::ConnectAccept as u8) };
        say(&mut world, 2, accept, &attributes);
        say(&mut world, 2, Header { to, tag: 7, value: 1, ..Header::new(Kind::Disconnect as u8) }, &[]);
    }
    let place = world.engines[0].peers.find(node(1)).unwrap();
    assert!(world.engines[0].peers.at(place).outbox.is_empty());
    let before = world.outs[0].wires[&node(1)].frames.len();
    world.now_ns += 1_000_000_000;
    world.set_full(0, 1, false);
    assert_eq!(world.outs[0].wires[&node(1)].frames.len(), before + 1, "the last state is all that is said");
    assert_eq!(counted(&world, |counters| counters.crowded_out), 0);
}

#[test]
fn arbitrary_frames_do_no_harm() {
    let mut dice = Dice(0x5eed);
    let mut world = World::linked(2, true);
    let names: Vec<u32> =
        (0..4).flat_map(|port| [world.create(0, 5 + port).bits(), world.create(1, 5 + port).bits()]).collect();
    let get = world.get(0, 1, 77);
    for _ in 0..200_000 {
        let name = |dice: &mut Dice| match dice.roll(4) {
            0 => dice.roll(1 << 32) as u32,
            _ => names[dice.roll(names.len())],
        };
        let kind = Kind::ALL[dice.roll(Kind::ALL.len())];
        let small = |dice: &mut Dice| if dice.roll(3) == 0 { dice.roll(1 << 32) as u32 } else { dice.roll(20) as u32 };
        let header = Header {
            kind: kind as u8,
            class: Priority::new(dice.roll(Priority::COUNT) as u8).unwrap(),
            status: if dice.roll(4) == 0 { dice.roll(256) as u8 } else { 0 },
            flags: dice.roll(3) as u8,
            length: 0,
            from: name(&mut dice),
            to: name(&mut dice),
            tag: if dice.roll(8) == 0 { get.0 } else { small(&mut dice) },
            value: small(&mut dice),
        };
        let length = dice.roll(kind.payload_max().min(300) + 1);
        say(&mut world, 1, header, &std::vec![5; length]);
        if dice.roll(50) == 0 {
            let mine = EndpointId::from_bits(names[2 * dice.roll(4)]).unwrap();
            let _ = world.on(0, |engine, links| engine.receive_message(mine, links));
            world.outs[0].wires.get_mut(&node(1)).unwrap().frames.clear();
        }
        if dice.roll(5000) == 0 {
            world.cut(0, 1, Loss::Cut);
            world.link(0, 1, true);
        }
    }
    assert!(world.engines[0].requests() <= 1 + QUESTIONS_MAX);
}

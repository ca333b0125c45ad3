//! Nodes that are absent, die, are cut off, return, leave.

use super::*;
use crate::engine::{LEFT_OVER_BYTES_MAX, LEFT_OVER_COST};
use crate::limits::MESSAGE_CREDIT;

fn ended(world: &mut World, at: usize, request: RequestId) -> Option<Result<(), Error>> {
    world.outcome(at, request).map(|result| result.map(|_| ()))
}

#[test]
fn a_node_that_never_was_there_has_no_endpoints() {
    let mut world = World::apart(2);
    let a = world.create(0, 5);
    let unknown = EndpointId::new(node(1), 0, 1);
    assert_eq!(world.send(0, a, unknown, &[]), Ok(Sending::Blocked));
    let later = world.send_later(0, a, unknown, &[1]).unwrap();
    let get = world.get(0, 1, 5);
    let attribute = world.on(0, |engine, links| engine.endpoint_attribute(unknown, 0, 4, links)).unwrap();
    let ping = world.on(0, |engine, links| engine.ping(1, node(1), 0, links)).unwrap();
    assert!(world.outs[0].wanted.contains(&node(1)));
    let before = world.engines[0].changes();
    world.report(0, Report::Absent { peer: node(1) });
    assert!(world.engines[0].changes() > before);
    assert_eq!(world.send(0, a, unknown, &[]), Err(Error::EndpointInvalid));
    assert_eq!(ended(&mut world, 0, later), Some(Err(Error::EndpointInvalid)));
    assert_eq!(ended(&mut world, 0, attribute), Some(Err(Error::EndpointInvalid)));
    assert_eq!(ended(&mut world, 0, ping), Some(Err(Error::NodeInvalid)));
    assert_eq!(ended(&mut world, 0, get), None, "gets wait");
    assert!(world.outs[0].wanted.contains(&node(1)));
    world.on(0, |engine, links| engine.drop_request(get, links));
    world.now_ns = 11_000_000_000;
    world.report(0, Report::Absent { peer: node(1) });
    assert!(!world.outs[0].wanted.contains(&node(1)), "nothing is wanted any more");
}

#[test]
fn a_node_that_has_gone_is_not_called_for_ever() {
    let mut world = World::apart(2);
    let (a, unknown) = (world.create(0, 5), EndpointId::new(node(1), 0, 1));
    assert_eq!(world.send(0, a, unknown, &[]), Ok(Sending::Blocked));
    world.link(0, 1, true);
    world.now_ns = 20_000_000_000;
    world.cut(0, 1, Loss::Gone);
    world.report(0, Report::Absent { peer: node(1) });
    assert!(world.outs[0].wanted.contains(&node(1)), "a thread may be about to try again");
    world.now_ns += 11_000_000_000;
    world.report(0, Report::Absent { peer: node(1) });
    assert!(!world.outs[0].wanted.contains(&node(1)), "nothing is wanted any more");
    world.send(0, a, EndpointId::new(node(1), 1, 1), &[]).unwrap();
    assert_eq!(world.send(0, a, EndpointId::new(node(1), 1, 1), &[]), Ok(Sending::Blocked));
    assert!(world.outs[0].wanted.contains(&node(1)), "wanted anew");
}

#[test]
fn a_node_that_comes_after_a_first_try_is_reached() {
    let mut world = World::apart(2);
    let a = world.create(0, 5);
    let b = world.create(1, 5);
    assert_eq!(world.send(0, a, b, &[]), Ok(Sending::Blocked));
    world.report(0, Report::Absent { peer: node(1) });
    assert_eq!(world.send(0, a, b, &[]), Err(Error::EndpointInvalid));
    assert_eq!(world.send(0, a, b, &[]), Ok(Sending::Blocked), "tried for anew");
    let later = world.send_later(0, a, b, &[4]).unwrap();
    world.link(0, 1, true);
    world.run();
    assert_eq!(ended(&mut world, 0, later), Some(Ok(())));
    assert_eq!(world.read(1, b), Some(std::vec![4]));
}

#[test]
fn what_was_not_confirmed_when_a_node_died_is_reported() {
    for loss in [Loss::Gone, Loss::Cut] {
        let mut world = World::linked(2, true);
        let (a, b) = (world.create(0, 5), world.create(1, 5));
        world.confirms = false;
        let requests: Vec<_> = (0..20).map(|what| world.send_later(0, a, b, &[what]).unwrap()).collect();
        world.run();
        world.report(0, Report::Acknowledged { peer: node(1), number: 4 });
        let ping = world.on(0, |engine, links| engine.ping(1, node(1), 0, links)).unwrap();
        let receive = world.on(0, |engine, links| engine.receive_message_later(a, links)).unwrap();
        world.cut(0, 1, loss);
        let ends: Vec<_> = requests.iter().map(|request| ended(&mut world, 0, *request).unwrap()).collect();
        assert!(ends[..4].iter().all(|end| *end == Ok(())));
        assert!(ends[4..].iter().all(|end| *end == Err(Error::Transmission)));
        assert_eq!(ended(&mut world, 0, ping), Some(Err(Error::Transmission)));
        assert_eq!(ended(&mut world, 0, receive), None, "somebody else may send");
    }
}

#[test]
fn a_dead_node_takes_and_drops_and_a_cut_one_is_tried_for() {
    let mut world = World::linked(3, false);
    let (a, b) = (world.create(0, 5), world.create(1, 5));
    world.send(0, a, b, &[]).unwrap();
    world.cut(0, 1, Loss::Gone);
    assert_eq!(world.send(0, a, b, &[]), Ok(Sending::Done));
    let never_sent_to = EndpointId::new(node(1), 9, 9);
    assert_eq!(world.send(0, a, never_sent_to, &[]), Ok(Sending::Blocked), "it may be its successor's");
    world.report(0, Report::Absent { peer: node(1) });
    assert_eq!(world.send(0, a, never_sent_to, &[]), Ok(Sending::Done));

    world.link(0, 1, false);
    world.send(0, a, b, &[]).unwrap();
    world.report(0, Report::Absent { peer: node(1) });
    world.cut(0, 1, Loss::Cut);
    assert_eq!(world.send(0, a, b, &[]), Ok(Sending::Blocked));
    assert!(world.outs[0].wanted.contains(&node(1)));
    let later = world.send_later(0, a, b, &[]).unwrap();
    world.report(0, Report::Absent { peer: node(1) });
    assert_eq!(ended(&mut world, 0, later), Some(Err(Error::Transmission)));
    assert_eq!(world.send(0, a, b, &[]), Err(Error::Transmission));
}

#[test]
fn a_name_of_a_nodes_former_life_is_dropped_by_its_successor_unless_63_lives_apart() {
    for (lives, arrives) in [(1, false), (62, false), (63, true)] {
        let mut world = World::linked(2, true);
        let (a, former) = (world.create(0, 5), world.create(1, 5));
        world.cut(0, 1, Loss::Gone);
        let incarnation = world.engines[1].incarnation() + lives;
        world.engines[1] = Engine::new(node(1), incarnation);
        let present = world.create(1, 5);
        world.link(0, 1, true);
        let sent = world.send_later(0, a, former, &[7]).unwrap();
        world.run();
        assert_eq!(ended(&mut world, 0, sent), Some(Ok(())));
        assert_eq!(world.read(1, present), arrives.then_some(std::vec![7]), "{lives} lives");
        assert_eq!(world.engines[1].counters().messages_dropped, u64::from(!arrives));
    }
}

/// Fills the credit for `b` with messages of so many bytes that begin with the round's number, and cuts the link, again and
/// again.
fn send_and_cut(world: &mut World, a: EndpointId, b: EndpointId, rounds: u8, bytes: usize) {
    for round in 0..rounds {
        let mut sent = 0;
        while world.send(0, a, b, &std::vec![round; bytes]) == Ok(Sending::Done) {
            sent += 1;
        }
        assert_eq!(sent, MESSAGE_CREDIT);
        world.run();
        world.cut(0, 1, Loss::Cut);
        world.link(0, 1, false);
    }
}

#[test]
fn credit_begins_anew_with_each_link_and_no_message_is_lost_by_it() {
    let mut world = World::linked(2, false);
    let (a, b) = (world.create(0, 5), world.create(1, 5));
    send_and_cut(&mut world, a, b, 10, 1);
    for at in 0..10 * MESSAGE_CREDIT {
        assert_eq!(world.read(1, b), Some(std::vec![(at / MESSAGE_CREDIT) as u8]));
    }
    assert_eq!(world.engines[1].counters().left_over_dropped, 0);
    world.run();
    assert_eq!(world.send(0, a, b, &[1]), Ok(Sending::Done));
    world.run();
    assert_eq!(world.read(1, b), Some(std::vec![1]));
    assert_eq!(world.engines[1].counters().overruns, 0);
}

#[test]
fn what_earlier_links_left_is_bounded_in_bytes_and_the_newest_stay() {
    let mut world = World::linked(2, false);
    let (a, b) = (world.create(0, 5), world.create(1, 5));
    let bytes = 5 * LEFT_OVER_COST;
    send_and_cut(&mut world, a, b, 20, bytes);
    let stay = (LEFT_OVER_BYTES_MAX / (bytes + LEFT_OVER_COST)) as u32;
    let dropped = 20 * MESSAGE_CREDIT - stay;
    assert_eq!(world.engines[1].messages_available(b).unwrap() as u32, stay);
    assert_eq!(world.engines[1].counters().left_over_dropped, u64::from(dropped));
    for at in dropped..20 * MESSAGE_CREDIT {
        assert_eq!(world.read(1, b), Some(std::vec![(at / MESSAGE_CREDIT) as u8; bytes]), "the newest stay");
    }
    assert_eq!(world.read(1, b), None);
}

#[test]
fn what_a_dead_node_sent_can_still_be_read() {
    let mut world = World::linked(2, false);
    let (a, b) = (world.create(0, 5), world.create(1, 5));
    world.send(0, a, b, &[1]).unwrap();
    world.run();
    world.cut(0, 1, Loss::Gone);
    assert_eq!(world.read(1, b), Some(std::vec![1]));
}

#[test]
fn a_node_that_leaves_ends_everything_of_its_own() {
    let mut world = World::linked(2, true);
    let (a, b) = (world.create(0, 5), world.create(1, 5));
    let get = world.get(0, 1, 99);
    let receive = world.on(0, |engine, links| engine.receive_message_later(a, links)).unwrap();
    while world.send(0, a, b, &[]) != Ok(Sending::Blocked) {}
    let send = world.send_later(0, a, b, &[]).unwrap();
    let before = world.engines[0].changes();
    world.on(0, |engine, _| engine.end());
    assert!(world.engines[0].changes() > before);
    for request in [get, receive, send] {
        assert_eq!(ended(&mut world, 0, request), Some(Err(Error::NodeNotInitialized)));
    }
    assert_eq!(world.send(0, a, b, &[]), Err(Error::NodeNotInitialized));
    assert_eq!(world.on(0, |engine, links| engine.create_endpoint(None, links)), Err(Error::NodeNotInitialized));
    assert_eq!(world.on(0, |engine, links| engine.get_endpoint((0, 1), 5, links)), Err(Error::NodeNotInitialized));
    assert_eq!(world.engines[0].messages_available(a), Err(Error::NodeNotInitialized));
    world.run();
    assert_eq!(world.on(0, |engine, links| engine.tick(5, links)), u64::MAX);
}

#[test]
fn a_ping_comes_back_with_its_time_from_any_node() {
    let mut world = World::linked(2, true);
    for (to, size) in [(0, 0), (1, 0), (1, 65_536)] {
        let now_ns = world.now_ns;
        let ping = world.on(0, |engine, links| engine.ping(now_ns, node(to), size, links)).unwrap();
        if to == 1 {
            world.now_ns += 1500;
        }
        world.run();
        let Some(Ok(Outcome::Pong(round_trip_ns))) = world.outcome(0, ping) else { panic!() };
        assert_eq!(round_trip_ns, if to == 1 { 1500 } else { 0 });
    }
    let long = world.on(0, |engine, links| engine.ping(1, node(1), 65_537, links));
    assert_eq!(long, Err(Error::MessageSize));
    let nobody = world.on(0, |engine, links| engine.ping(1, NodeId::new(4, 4).unwrap(), 0, links));
    assert_eq!(nobody, Err(Error::NodeInvalid));
}

#[test]
fn a_ping_asked_before_the_link_counts_from_the_link() {
    let mut world = World::apart(2);
    let ping = world.on(0, |engine, links| engine.ping(1, node(1), 8, links)).unwrap();
    world.now_ns = 1_000_000;
    world.link(0, 1, true);
    world.run();
    assert!(matches!(world.outcome(0, ping), Some(Ok(Outcome::Pong(0)))));
}

#[test]
fn names_of_the_last_runs_mean_nothing_in_this_one() {
    let mut names: Vec<EndpointId> = Vec::new();
    for run in 0..60 {
        let mut world = World::apart(1);
        world.engines[0] = Engine::new(node(0), 0xffff_0001 + 2 * run);
        let name = world.create(0, 5);
        assert!(!names.contains(&name), "{name} in run {run}");
        names.push(name);
    }
}

//! Creation, deletion, gets.

use super::*;
use crate::engine::{QUESTIONS_MAX, endpoint_type};
use crate::limits::{ENDPOINTS_MAX, PORT_MAX};

const GET_COUNT: u32 = 1;

#[test]
fn ports_are_checked() {
    let mut world = World::apart(1);
    let mut create = |port| world.on(0, |engine, links| engine.create_endpoint(port, links));
    assert!(create(Some(0)).is_ok());
    assert_eq!(create(Some(PORT_MAX + 1)), Err(Error::PortInvalid));
    assert_eq!(create(Some(u32::MAX - 1)), Err(Error::PortInvalid));
    let first = create(Some(PORT_MAX)).unwrap();
    assert_eq!(create(Some(PORT_MAX)), Err(Error::EndpointExists));
    let any = create(None).unwrap();
    assert_ne!(any, create(None).unwrap());
    assert_ne!(any, first);
}

#[test]
fn a_node_has_a_limit_of_endpoints_and_all_places_come_back() {
    let mut world = World::apart(1);
    let all: Vec<_> =
        (0..ENDPOINTS_MAX).map(|_| world.on(0, |engine, links| engine.create_endpoint(None, links)).unwrap()).collect();
    assert_eq!(world.on(0, |engine, links| engine.create_endpoint(None, links)), Err(Error::PortInvalid));
    for endpoint in &all {
        world.on(0, |engine, links| engine.delete_endpoint(*endpoint, links)).unwrap();
    }
    let again: Vec<_> =
        (0..ENDPOINTS_MAX).map(|_| world.on(0, |engine, links| engine.create_endpoint(None, links)).unwrap()).collect();
    assert!(all.iter().all(|old| !again.contains(old)), "a name of before");
}

#[test]
fn a_name_of_before_is_invalid_though_the_port_exists_again() {
    let mut world = World::linked(2, false);
    let old = world.create(0, 5);
    world.on(0, |engine, links| engine.delete_endpoint(old, links)).unwrap();
    let new = world.create(0, 5);
    assert_ne!(old, new);
    assert_eq!(world.engines[0].messages_available(old), Err(Error::EndpointInvalid));
    assert_eq!(world.on(0, |engine, links| engine.delete_endpoint(old, links)), Err(Error::EndpointInvalid));
    assert_eq!(world.attribute(1, old, 0, 4), Err(Error::EndpointInvalid));
    assert_eq!(world.attribute(1, new, 0, 4).map(|value| value.len()), Ok(4));
}

#[test]
fn only_the_owner_deletes() {
    let mut world = World::linked(2, false);
    let endpoint = world.create(0, 5);
    assert_eq!(world.on(1, |engine, links| engine.delete_endpoint(endpoint, links)), Err(Error::EndpointNotOwner));
}

#[test]
fn deleting_ends_waiting_receives_and_drops_what_is_queued() {
    let mut world = World::linked(2, false);
    let (a, b) = (world.create(0, 5), world.create(1, 5));
    let waiting = world.on(1, |engine, links| engine.receive_message_later(b, links)).unwrap();
    world.on(1, |engine, links| engine.delete_endpoint(b, links)).unwrap();
    assert!(matches!(world.outcome(1, waiting), Some(Err(Error::EndpointDeleted))));
    let b = world.create(1, 5);
    world.blocks_may_be_kept = true;
    world.send(0, a, b, &[1; 500]).unwrap();
    world.run();
    assert_eq!(world.blocks.load(Ordering::Relaxed), 1);
    world.on(1, |engine, links| engine.delete_endpoint(b, links)).unwrap();
    assert_eq!(world.blocks.load(Ordering::Relaxed), 0);
}

#[test]
fn a_get_waits_until_the_endpoint_exists_here_and_elsewhere() {
    let mut world = World::linked(2, true);
    let (here, there) = (world.get(0, 0, 9), world.get(1, 0, 9));
    world.run();
    assert_eq!(world.engines[0].is_complete(here), Ok(false));
    assert_eq!(world.engines[1].is_complete(there), Ok(false));
    let before = world.engines[1].changes();
    let endpoint = world.create(0, 9);
    world.run();
    assert!(world.engines[1].changes() > before);
    assert_eq!(world.endpoint_of(0, here), endpoint);
    assert_eq!(world.endpoint_of(1, there), endpoint);
    assert_eq!(world.word(1, endpoint, GET_COUNT), 2);
    let at_once = world.get(0, 0, 9);
    assert_eq!(world.engines[0].is_complete(at_once), Ok(true));
}

#[test]
fn what_cannot_be_is_not_waited_for() {
    let mut world = World::linked(2, false);
    let mut get = |domain, node, port| world.on(0, |engine, links| engine.get_endpoint((domain, node), port, links));
    assert_eq!(get(32, 0, 5), Err(Error::DomainInvalid));
    assert_eq!(get(u32::MAX, u32::MAX, 5), Err(Error::DomainInvalid));
    assert_eq!(get(0, 1024, 5), Err(Error::NodeInvalid));
    assert_eq!(get(1, 0, 5), Err(Error::NodeInvalid), "a node that is not of this system");
    assert_eq!(get(0, 1, PORT_MAX + 1), Err(Error::PortInvalid));
}

#[test]
fn a_get_survives_that_its_node_is_absent_dies_and_returns() {
    let mut world = World::apart(2);
    let request = world.get(0, 1, 9);
    assert!(world.outs[0].wanted.contains(&node(1)));
    world.report(0, Report::Absent { peer: node(1) });
    assert_eq!(world.engines[0].is_complete(request), Ok(false));
    world.link(0, 1, true);
    world.run();
    world.cut(0, 1, Loss::Gone);
    assert!(world.outs[0].wanted.contains(&node(1)), "wanted again");
    world.engines[1] = Engine::new(node(1), 99);
    world.link(0, 1, true);
    world.run();
    assert_eq!(world.engines[0].is_complete(request), Ok(false));
    let endpoint = world.create(1, 9);
    world.run();
    assert_eq!(world.endpoint_of(0, request), endpoint);
    assert_eq!(world.word(0, endpoint, GET_COUNT), 1);
}

#[test]
fn a_cancelled_get_leaves_nothing_behind() {
    let mut world = World::linked(2, false);
    let request = world.get(0, 1, 9);
    world.run();
    world.on(0, |engine, links| engine.cancel(request, links)).unwrap();
    assert!(matches!(world.outcome(0, request), Some(Err(Error::RequestCancelled))));
    world.run();
    let endpoint = world.create(1, 9);
    world.run();
    assert_eq!(world.word(1, endpoint, GET_COUNT), 0);
    // The answer and the cancelling cross each other.
    let request = world.get(0, 1, 9);
    world.deliver(0, 1);
    assert_eq!(world.word(1, endpoint, GET_COUNT), 1);
    let request_late = world.get(0, 1, 9);
    world.on(0, |engine, links| engine.drop_request(request_late, links));
    world.run();
    assert_eq!(world.endpoint_of(0, request), endpoint);
    assert_eq!(world.word(1, endpoint, GET_COUNT), 1);
}

#[test]
fn an_endpoint_of_a_channel_type_is_got_once() {
    let mut world = World::linked(3, false);
    let endpoint = world.create(0, 9);
    let kind = endpoint_type::PACKET_CHANNEL.to_ne_bytes();
    world.engines[0].set_endpoint_attribute(endpoint, 0, &kind).unwrap();
    let first = world.get(1, 0, 9);
    let second = world.get(2, 0, 9);
    world.run();
    assert_eq!(world.endpoint_of(1, first), endpoint);
    assert!(matches!(world.outcome(2, second), Some(Err(Error::EndpointGetLimit))));
    world.on(1, |engine, links| engine.release_endpoint(endpoint, links)).unwrap();
    let third = world.get(2, 0, 9);
    world.run();
    assert_eq!(world.endpoint_of(2, third), endpoint);
}

#[test]
fn gets_are_counted_released_and_end_with_their_node() {
    let mut world = World::linked(3, false);
    let endpoint = world.create(0, 9);
    for _ in 0..3 {
        let request = world.get(1, 0, 9);
        world.run();
        world.endpoint_of(1, request);
    }
    let request = world.get(2, 0, 9);
    world.run();
    world.endpoint_of(2, request);
    assert_eq!(world.word(0, endpoint, GET_COUNT), 4);
    assert_eq!(world.engines[0].getters(endpoint), [(node(1), 3), (node(2), 1)]);
    let source = world.attribute(1, endpoint, 2, 8).unwrap();
    assert_eq!(source, [0u32, 2].into_iter().flat_map(u32::to_ne_bytes).collect::<Vec<_>>());
    world.on(1, |engine, links| engine.release_endpoint(endpoint, links)).unwrap();
    world.run();
    assert_eq!(world.word(0, endpoint, GET_COUNT), 3);
    for _ in 0..9 {
        world.on(2, |engine, links| engine.release_endpoint(endpoint, links)).unwrap();
    }
    world.run();
    assert_eq!(world.word(0, endpoint, GET_COUNT), 2, "one gives back only what one has");
    world.cut(0, 1, Loss::Gone);
    assert_eq!(world.word(0, endpoint, GET_COUNT), 0);
    assert_eq!(world.attribute(0, endpoint, 2, 8).unwrap(), [0xff; 8]);
}

#[test]
fn questions_are_bounded_on_both_sides() {
    let mut world = World::linked(2, false);
    let asked: Vec<_> = (0..QUESTIONS_MAX).map(|_| world.get(0, 1, 9)).collect();
    let more = world.on(0, |engine, links| engine.get_endpoint((0, 1), 9, links));
    assert_eq!(more, Err(Error::RequestLimit));
    world.run();
    let endpoint = world.create(1, 9);
    world.run();
    assert!(asked.into_iter().all(|request| world.endpoint_of(0, request) == endpoint));
    assert_eq!(world.engines[0].requests(), 0);
}

#[test]
fn an_answer_that_finds_no_room_goes_later() {
    let mut world = World::linked(2, true);
    world.create(1, 9);
    world.set_full(1, 0, true);
    let requests: Vec<_> = (0..100).map(|_| world.get(0, 1, 9)).collect();
    world.run();
    assert!(requests.iter().all(|request| world.engines[0].is_complete(*request) == Ok(false)));
    world.set_full(1, 0, false);
    world.run();
    assert!(requests.iter().all(|request| world.engines[0].is_complete(*request) == Ok(true)));
}

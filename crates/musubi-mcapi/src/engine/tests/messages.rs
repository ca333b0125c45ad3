//! Messages: order, priorities, credit, both forms of sending and receiving.

use super::*;
use crate::engine::{ChannelKind, SEND_BUFFERS};
use crate::limits::{MESSAGE_BYTES_MAX, MESSAGE_CREDIT, PRIORITIES};

const CREDIT: usize = MESSAGE_CREDIT as usize;

fn two(numbered: bool) -> (World, EndpointId, EndpointId) {
    let mut world = World::linked(2, numbered);
    let (a, b) = (world.create(0, 5), world.create(1, 5));
    (world, a, b)
}

#[test]
fn a_message_of_any_size_arrives_here_and_elsewhere() {
    for numbered in [false, true] {
        let (mut world, a, b) = two(numbered);
        let here = world.create(0, 6);
        for size in [0, 1, 95, 96, 1000, MESSAGE_BYTES_MAX] {
            let sent = std::vec![size as u8; size];
            for to in [b, here] {
                assert_ne!(world.send(0, a, to, &sent), Ok(Sending::Blocked));
            }
            world.run();
            assert_eq!(world.engines[1].messages_available(b), Ok(1));
            let message = world.receive(1, b).unwrap();
            assert_eq!((message.from, bytes(&message.payload)), (a, sent.clone()));
            assert_eq!(world.read(0, here), Some(sent));
        }
        let long = std::vec![0; MESSAGE_BYTES_MAX + 1];
        assert_eq!(world.send(0, a, b, &long), Err(Error::MessageSize));
    }
}

#[test]
fn names_and_priorities_are_checked() {
    let (mut world, a, b) = two(false);
    let stranger = EndpointId::new(node(0), 9, 9);
    assert_eq!(world.send(0, stranger, b, &[]), Err(Error::EndpointInvalid));
    assert_eq!(world.send(0, b, a, &[]), Err(Error::EndpointInvalid), "not this node's");
    assert_eq!(world.send(0, a, stranger, &[]), Err(Error::EndpointInvalid), "nothing ever was there");
    let nowhere = EndpointId::new(NodeId::new(9, 9).unwrap(), 0, 1);
    assert_eq!(world.send(0, a, nowhere, &[]), Err(Error::EndpointInvalid));
    for priority in [u32::from(PRIORITIES), u32::MAX] {
        let sent = world.on(0, |engine, links| engine.send_message(a, b, priority, &[], links));
        assert_eq!(sent, Err(Error::Priority));
        let later = world.on(0, |engine, links| engine.send_message_later(a, b, priority, Vec::new(), links));
        assert_eq!(later, Err(Error::Priority));
    }
    assert!(matches!(world.on(0, |engine, links| engine.receive_message(b, links)), Err(Error::EndpointInvalid)));
    let later = world.on(0, |engine, links| engine.receive_message_later(b, links));
    assert_eq!(later, Err(Error::EndpointInvalid));
    assert_eq!(world.engines[0].messages_available(b), Err(Error::EndpointInvalid));
}

#[test]
fn the_most_urgent_is_first_and_the_oldest_of_those() {
    let (mut world, a, b) = two(false);
    for (priority, what) in [(3, 0), (1, 1), (0, 2), (1, 3), (3, 4), (0, 5)] {
        world.on(0, |engine, links| engine.send_message(a, b, priority, &[what], links)).unwrap();
    }
    world.run();
    let order: Vec<_> = (0..6).map(|_| world.receive(1, b).unwrap()).collect();
    let order: Vec<_> = order.iter().map(|message| (message.priority, bytes(&message.payload)[0])).collect();
    assert_eq!(order, [(0, 2), (0, 5), (1, 1), (1, 3), (3, 0), (3, 4)]);
    assert!(world.receive(1, b).is_none());
}

#[test]
fn requests_that_wait_are_served_first_come_first_served() {
    let (mut world, a, b) = two(true);
    let later = |world: &mut World| world.on(1, |engine, links| engine.receive_message_later(b, links)).unwrap();
    let (first, second, third) = (later(&mut world), later(&mut world), later(&mut world));
    world.on(1, |engine, links| engine.cancel(second, links)).unwrap();
    for what in 0..3 {
        world.send(0, a, b, &[what]).unwrap();
    }
    world.run();
    for (request, what) in [(first, 0), (third, 1)] {
        let Some(Ok(Outcome::Message(message))) = world.outcome(1, request) else { panic!() };
        assert_eq!(bytes(&message.payload), [what]);
    }
    assert!(matches!(world.outcome(1, second), Some(Err(Error::RequestCancelled))));
    assert_eq!(world.read(1, b), Some(std::vec![2]), "a cancelled request eats nothing");
}

#[test]
fn a_message_in_the_queue_completes_a_request_at_once() {
    let (mut world, a, b) = two(false);
    world.send(0, a, b, &[7]).unwrap();
    world.run();
    let request = world.on(1, |engine, links| engine.receive_message_later(b, links)).unwrap();
    assert!(matches!(world.outcome(1, request), Some(Ok(Outcome::Message(_)))));
}

#[test]
fn credit_stops_a_sender_at_one_endpoint_only_and_comes_back() {
    for numbered in [false, true] {
        let (mut world, a, b) = two(numbered);
        let (other, here) = (world.create(1, 6), world.create(0, 6));
        for to in [b, here] {
            for _ in 0..CREDIT {
                assert_ne!(world.send(0, a, to, &[1]), Ok(Sending::Blocked));
                world.run();
            }
            assert_eq!(world.send(0, a, to, &[1]), Ok(Sending::Blocked));
        }
        assert_ne!(world.send(0, a, other, &[1]), Ok(Sending::Blocked));
        world.run();
        world.receive(0, here).unwrap();
        assert_eq!(world.send(0, a, here, &[1]), Ok(Sending::Done), "own credit is back at once");
        world.receive(1, b).unwrap();
        let before = world.engines[0].changes();
        world.tick();
        assert!(world.engines[0].changes() > before);
        assert_ne!(world.send(0, a, b, &[1]), Ok(Sending::Blocked), "one was taken: by the next tick one can be sent");
        assert_eq!(world.send(0, a, b, &[1]), Ok(Sending::Blocked));
    }
}

#[test]
fn a_busy_flow_gets_few_frames_of_credit() {
    let (mut world, a, b) = two(false);
    for _ in 0..1600 {
        assert_eq!(world.send(0, a, b, &[1]), Ok(Sending::Done));
        world.run();
        world.receive(1, b).unwrap();
        world.run();
    }
    assert_eq!(world.outs[1].sent, 1600 / (MESSAGE_CREDIT as u64 / 2));
}

#[test]
fn each_node_has_its_own_credit() {
    let mut world = World::linked(3, false);
    let (a, b, to) = (world.create(0, 5), world.create(1, 5), world.create(2, 5));
    while world.send(0, a, to, &[]) == Ok(Sending::Done) {}
    assert_eq!(world.send(1, b, to, &[]), Ok(Sending::Done));
}

#[test]
fn what_is_sent_later_goes_in_order_and_nothing_overtakes_it() {
    const LATER: usize = 3 * CREDIT + 2;
    for numbered in [false, true] {
        let (mut world, a, b) = two(numbered);
        let requests: Vec<_> = (0..LATER as u8).map(|what| world.send_later(0, a, b, &[what]).unwrap()).collect();
        world.run();
        let complete = requests.iter().filter(|request| world.engines[0].is_complete(**request).unwrap()).count();
        assert_eq!(complete, CREDIT);
        let mut received = Vec::new();
        for _ in 0..LATER {
            let waiting = received.len() + CREDIT < LATER;
            if waiting {
                assert_eq!(world.send(0, a, b, &[99]), Ok(Sending::Blocked));
            }
            received.push(world.read(1, b).unwrap()[0]);
            world.tick();
        }
        assert_eq!(received, (0..LATER as u8).collect::<Vec<_>>());
        for request in requests {
            assert!(matches!(world.outcome(0, request), Some(Ok(Outcome::Sent(1)))));
        }
    }
}

#[test]
fn what_waits_to_be_sent_can_be_cancelled_and_is_bounded() {
    let (mut world, a, b) = two(false);
    while world.send(0, a, b, &[0]) == Ok(Sending::Done) {}
    let waiting: Vec<_> = (0..SEND_BUFFERS).map(|_| world.send_later(0, a, b, &[1]).unwrap()).collect();
    assert_eq!(world.send_later(0, a, b, &[1]), Err(Error::MemoryLimit));
    for request in &waiting {
        world.on(0, |engine, links| engine.cancel(*request, links)).unwrap();
    }
    let last = world.send_later(0, a, b, &[2]).unwrap();
    world.run();
    while world.read(1, b).is_some() {}
    world.tick();
    assert_eq!(world.read(1, b), Some(std::vec![2]));
    assert!(matches!(world.outcome(0, last), Some(Ok(Outcome::Sent(1)))));
}

#[test]
fn an_endpoint_that_fails_at_its_limit_does_not_wait() {
    let (mut world, a, b) = two(false);
    world.engines[0].set_endpoint_attribute(a, 5, &0x1_0000_u32.to_ne_bytes()).unwrap();
    for _ in 0..CREDIT {
        world.send_later(0, a, b, &[0]).unwrap();
    }
    assert_eq!(world.send_later(0, a, b, &[0]), Err(Error::MemoryLimit));
    assert_eq!(world.engines[0].requests(), CREDIT);
}

#[test]
fn a_message_over_a_network_is_sent_when_it_has_arrived() {
    let (mut world, a, b) = two(true);
    world.confirms = false;
    let Ok(Sending::Confirming(first)) = world.send(0, a, b, &[1, 2]) else { panic!() };
    let later = world.send_later(0, a, b, &[3]).unwrap();
    world.run();
    assert_eq!(world.engines[0].is_complete(first), Ok(false));
    world.confirm(0, 1);
    assert!(matches!(world.outcome(0, first), Some(Ok(Outcome::Sent(2)))));
    assert!(matches!(world.outcome(0, later), Some(Ok(Outcome::Sent(1)))));
}

#[test]
fn a_confirmation_is_for_its_class_alone() {
    let (mut world, a, b) = two(true);
    world.confirms = false;
    let mut send = |priority| match world.on(0, |engine, links| engine.send_message(a, b, priority, &[], links)) {
        Ok(Sending::Confirming(request)) => request,
        other => panic!("{other:?}"),
    };
    let requests = [send(2), send(0), send(2), send(0)];
    world.report(0, Report::Acknowledged { peer: node(1), number: 3 });
    let complete = requests.map(|request| world.engines[0].is_complete(request).unwrap());
    assert_eq!(complete, [true, false, true, false]);
    world.report(0, Report::Acknowledged { peer: node(1), number: 1 });
    world.report(0, Report::Acknowledged { peer: node(1), number: 77 });
    world.report(0, Report::Acknowledged { peer: node(1), number: 4 });
    assert!(requests.iter().all(|request| world.engines[0].is_complete(*request) == Ok(true)));
}

#[test]
fn a_link_without_room_blocks_one_form_and_holds_the_other() {
    let (mut world, a, b) = two(true);
    world.set_full(0, 1, true);
    assert_eq!(world.send(0, a, b, &[1]), Ok(Sending::Blocked));
    let later = world.send_later(0, a, b, &[1]).unwrap();
    let before = world.engines[0].changes();
    world.set_full(0, 1, false);
    assert!(world.engines[0].changes() > before);
    world.run();
    assert!(matches!(world.outcome(0, later), Some(Ok(Outcome::Sent(1)))));
    assert_eq!(world.read(1, b), Some(std::vec![1]));
}

#[test]
fn an_endpoint_that_has_gone_takes_and_drops() {
    let (mut world, a, b) = two(true);
    while world.send(0, a, b, &[1]) != Ok(Sending::Blocked) {}
    world.run();
    let waiting = world.send_later(0, a, b, &[1]).unwrap();
    world.on(1, |engine, links| engine.delete_endpoint(b, links)).unwrap();
    world.run();
    assert!(matches!(world.outcome(0, waiting), Some(Ok(Outcome::Sent(1)))));
    for _ in 0..100 {
        assert_ne!(world.send(0, a, b, &[1]), Ok(Sending::Blocked));
        world.run();
    }
    assert_eq!(world.engines[1].counters().messages_dropped, 100);
    // The place has a new endpoint: the old name still goes nowhere, and takes no credit from the new one.
    while world.engines[1].endpoints.len() < 40 {
        let new = world.on(1, |engine, links| engine.create_endpoint(None, links)).unwrap();
        if new.slot() != b.slot() {
            continue;
        }
        for _ in 0..2 * CREDIT {
            assert_ne!(world.send(0, a, new, &[2]), Ok(Sending::Blocked));
            assert_ne!(world.send(0, a, b, &[1]), Ok(Sending::Blocked));
            world.run();
            assert_eq!(world.read(1, new), Some(std::vec![2]));
            world.run();
        }
        assert!(world.receive(1, new).is_none());
    }
}

#[test]
fn a_stale_name_disturbs_no_credit_of_the_present_one() {
    let mut world = World::linked(2, false);
    let a = world.create(0, 5);
    // Places rest before they are used again.
    let old: Vec<_> = (0..40).map(|port| world.create(1, 100 + port)).collect();
    for endpoint in &old {
        world.on(1, |engine, links| engine.delete_endpoint(*endpoint, links)).unwrap();
    }
    let new = world.create(1, 7);
    let stale = *old.iter().find(|old| old.slot() == new.slot()).expect("a place used again");
    for _ in 0..3 * CREDIT {
        assert_eq!(world.send(0, a, new, &[2]), Ok(Sending::Done));
        assert_eq!(world.send(0, a, stale, &[1]), Ok(Sending::Done));
        world.run();
        assert_eq!(world.read(1, new), Some(std::vec![2]));
        world.run();
    }
    assert_eq!(world.engines[1].counters().overruns, 0);
    assert_eq!(world.engines[1].counters().messages_dropped, 3 * CREDIT as u64);
}

#[test]
fn blocks_are_kept_by_the_first_in_a_queue_only_and_only_if_there_are_enough() {
    let (mut world, a, b) = two(false);
    let blocks = |world: &World| world.blocks.load(Ordering::Relaxed);
    for _ in 0..3 {
        world.send(0, a, b, &[1; 1000]).unwrap();
    }
    world.run();
    assert_eq!(blocks(&world), 1);
    let first = world.receive(1, b).unwrap();
    assert!(matches!(first.payload, Payload::Lent(_)));
    assert_eq!(bytes(&first.payload), [1; 1000]);
    drop(first);
    assert_eq!(world.read(1, b).unwrap(), [1; 1000]);
    world.read(1, b).unwrap();
    world.blocks_may_be_kept = false;
    world.send(0, a, b, &[2; 1000]).unwrap();
    world.run();
    assert_eq!(blocks(&world), 0);
    assert_eq!(world.read(1, b).unwrap(), [2; 1000]);
}

#[test]
fn credit_waits_for_room_without_being_lost() {
    let (mut world, a, b) = two(false);
    world.set_full(1, 0, true);
    for _ in 0..CREDIT {
        assert_eq!(world.send(0, a, b, &[1]), Ok(Sending::Done));
        world.run();
        world.receive(1, b).unwrap();
    }
    assert_eq!(world.send(0, a, b, &[1]), Ok(Sending::Blocked));
    world.set_full(1, 0, false);
    world.tick();
    assert_eq!(world.send(0, a, b, &[1]), Ok(Sending::Done));
    assert!(world.outs[1].sent <= 2, "{} frames", world.outs[1].sent);
}

#[test]
fn a_request_that_is_dropped_gives_its_message_back() {
    for numbered in [false, true] {
        let (mut world, a, b) = two(numbered);
        for n in 0..2 * CREDIT as u8 {
            let [first, second] =
                [(); 2].map(|()| world.on(1, |engine, links| engine.receive_message_later(b, links)).unwrap());
            assert_ne!(world.send(0, a, b, &[n]), Ok(Sending::Blocked), "credit is counted once");
            world.run();
            world.on(1, |engine, links| engine.drop_request(first, links));
            assert_eq!(world.engines[1].is_complete(second), Ok(true), "it goes to who waits");
            world.on(1, |engine, links| engine.drop_request(second, links));
            let third = world.on(1, |engine, links| engine.receive_message_later(b, links)).unwrap();
            world.on(1, |engine, links| engine.drop_request(third, links));
            assert_eq!(world.engines[1].messages_available(b), Ok(1));
            assert_eq!(world.read(1, b), Some(std::vec![n]), "or back into the queue");
            world.run();
        }
    }
}

/// Who has been answered that two ends are connected, be it the owner of either, has nothing more to take in before it is
/// refused a message to one of them.
#[test]
fn who_has_connected_an_endpoint_sends_no_message_to_it() {
    for asker in [0, 1] {
        let (mut world, sends, receives) = two(false);
        let stranger = world.create(asker, 6);
        let request =
            world.on(asker, |engine, links| engine.connect(ChannelKind::Packet, sends, receives, links)).unwrap();
        let answer = loop {
            if let Some(answer) = world.outcome(asker, request) {
                break answer;
            }
            assert!(world.deliver(0, 1) || world.deliver(1, 0), "no answer comes");
        };
        assert!(matches!(answer, Ok(Outcome::Plain)), "{answer:?}");
        for to in [sends, receives] {
            assert_eq!(world.send(asker, stranger, to, b"?"), Err(Error::General), "asked by {asker}");
        }
    }
}

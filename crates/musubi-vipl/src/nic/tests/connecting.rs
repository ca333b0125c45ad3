//! Making and ending connections: clients and servers, peers, in every order.

use super::*;

const CLIENT: fn() -> NodeId = || node(0, 0);
const SERVER: fn() -> NodeId = || node(1, 0);

fn pair() -> World {
    World::new(&[CLIENT(), SERVER()])
}

impl World {
    fn request(&mut self, from: NodeId, vi: ViNumber, to: Address) {
        let local = at(from.slot().unwrap().0, "client");
        let Host { nic, wires, .. } = self.host(from);
        nic.request(vi, local, to, wires).unwrap();
    }

    fn outcome(&mut self, node: NodeId, vi: ViNumber) -> Option<Result<ViAttributes, ViError>> {
        self.host(node).nic.take_outcome(vi)
    }

    fn peer_request(&mut self, (from, vi): (NodeId, ViNumber), local: Address, remote: Address, until_ns: u64) {
        let Host { nic, wires, .. } = self.host(from);
        nic.request_peer(vi, local, remote, until_ns, wires).unwrap();
    }
}

#[test]
fn both_sides_learn_what_the_other_is() {
    let mut world = pair();
    let theirs = ViAttributes { remote_write: false, remote_read: true, ..PLAIN() };
    let a = world.host(CLIENT()).vi(theirs);
    let b = world.host(SERVER()).vi(PLAIN());
    let listener = world.host(SERVER()).nic.listen(&at(1, "port")).unwrap();
    world.request(CLIENT(), a, at(1, "port"));
    assert_eq!(world.host(CLIENT()).state(a), ViState::ConnectPending);
    assert_eq!(world.outcome(CLIENT(), a), None);
    world.settle();
    let (caller, from, told) = world.host(SERVER()).nic.next_caller(listener).unwrap();
    assert_eq!((from, told), (at(0, "client"), ViAttributes { tag: TagHandle(0), ..theirs }));
    assert!(world.host(SERVER()).nic.next_caller(listener).is_none());
    let Host { nic, wires, .. } = world.host(SERVER());
    nic.accept(caller, b, wires).unwrap();
    assert_eq!(nic.accepted(caller), None);
    world.settle();
    assert_eq!(world.host(SERVER()).nic.accepted(caller), Some(Ok(())));
    assert_eq!(world.outcome(CLIENT(), a), Some(Ok(ViAttributes { tag: TagHandle(0), ..PLAIN() })));
    assert_eq!(world.outcome(CLIENT(), a), Some(Err(ViError::State)));
    assert_eq!(
        (world.host(CLIENT()).state(a), world.host(SERVER()).state(b)),
        (ViState::Connected, ViState::Connected)
    );
}

#[test]
fn what_is_wrong_is_said_at_once_and_changes_nothing() {
    let mut world = pair();
    let a = world.host(CLIENT()).vi(PLAIN());
    let Host { nic, wires, .. } = world.host(CLIENT());
    let request = |nic: &mut NicState<_>, wires: &mut Wires, vi, local, remote| nic.request(vi, local, remote, wires);
    assert_eq!(request(nic, wires, ViNumber(99), at(0, ""), at(1, "")), Err(ViError::Parameter));
    assert_eq!(request(nic, wires, a, at(1, ""), at(1, "")), Err(ViError::Parameter));
    assert_eq!(request(nic, wires, a, at(0, ""), at(NICS, "")), Err(ViError::NotReachable));
    assert_eq!(nic.listen(&at(1, "")), Err(ViError::Parameter));
    assert_eq!(nic.accept(CallerNumber(5), a, wires), Err(ViError::Parameter));
    assert_eq!(nic.reject(CallerNumber(5), wires), Err(ViError::Parameter));
    assert_eq!(nic.disconnect(ViNumber(99), wires), Err(ViError::Parameter));
    assert_eq!(nic.take_outcome(a), Some(Err(ViError::State)));
    assert_eq!(nic.take_outcome(ViNumber(99)), Some(Err(ViError::Parameter)));
    assert_eq!(world.host(CLIENT()).state(a), ViState::Idle);
    assert!(world.host(CLIENT()).wires.wanted.is_empty());
}

#[test]
fn without_a_listener_there_is_no_match_and_receives_stay() {
    let mut world = pair();
    let a = world.host(CLIENT()).vi(PLAIN());
    world.host(CLIENT()).post_plain(a, Queue::Receive, 0, 0, 100);
    // Another NIC's slots: none lives. Then one that lives and does not listen.
    for nic in [2, 1] {
        world.request(CLIENT(), a, at(nic, "port"));
        world.settle();
        assert_eq!(world.outcome(CLIENT(), a), Some(Err(ViError::NoMatch)), "{nic}");
        assert_eq!(world.host(CLIENT()).state(a), ViState::Idle);
        assert!(world.host(CLIENT()).wires.wanted.is_empty());
    }
    assert!(!world.host(CLIENT()).nic.query_vi(a).unwrap().receives_empty);
}

#[test]
fn the_slot_that_listens_is_found() {
    let mut world = World::new(&[CLIENT(), SERVER(), node(1, 1)]);
    let a = world.host(CLIENT()).vi(PLAIN());
    let listener = world.host(node(1, 1)).nic.listen(&at(1, "port")).unwrap();
    world.request(CLIENT(), a, at(1, "port"));
    world.settle();
    assert!(world.host(node(1, 1)).nic.next_caller(listener).is_some());
}

#[test]
fn a_listener_goes_on_for_a_while_and_then_refuses() {
    let mut world = pair();
    let listener = world.host(SERVER()).nic.listen(&at(1, "port")).unwrap();
    world.host(SERVER()).nic.end_listening(1000, listener);
    let a = world.host(CLIENT()).vi(PLAIN());
    world.request(CLIENT(), a, at(1, "port"));
    world.settle();
    assert_eq!(world.outcome(CLIENT(), a), None, "it waits for the next wait");
    world.now_ns = 1000 + super::super::connecting::GRACE_NS - 1;
    world.tick();
    world.settle();
    assert_eq!(world.outcome(CLIENT(), a), None);
    world.now_ns += 1;
    world.tick();
    world.settle();
    assert_eq!(world.outcome(CLIENT(), a), Some(Err(ViError::NoMatch)));
    // A thread that waits keeps it.
    let listener = world.host(SERVER()).nic.listen(&at(1, "port")).unwrap();
    world.now_ns += 100 * super::super::connecting::GRACE_NS;
    world.tick();
    world.request(CLIENT(), a, at(1, "port"));
    world.settle();
    assert!(world.host(SERVER()).nic.next_caller(listener).is_some());
}

#[test]
fn who_is_rejected_hears_it() {
    let mut world = pair();
    let a = world.host(CLIENT()).vi(PLAIN());
    let listener = world.host(SERVER()).nic.listen(&at(1, "port")).unwrap();
    world.request(CLIENT(), a, at(1, "port"));
    world.settle();
    let (caller, ..) = world.host(SERVER()).nic.next_caller(listener).unwrap();
    let Host { nic, wires, .. } = world.host(SERVER());
    nic.reject(caller, wires).unwrap();
    assert_eq!(nic.reject(caller, wires), Err(ViError::Parameter));
    world.settle();
    assert_eq!(world.outcome(CLIENT(), a), Some(Err(ViError::Rejected)));
}

#[test]
fn what_does_not_fit_is_told_to_the_server_which_may_try_again() {
    let mut world = pair();
    let a = world.host(CLIENT()).vi(PLAIN());
    let listener = world.host(SERVER()).nic.listen(&at(1, "port")).unwrap();
    world.request(CLIENT(), a, at(1, "port"));
    world.settle();
    let (caller, ..) = world.host(SERVER()).nic.next_caller(listener).unwrap();
    let wrong = [
        (ViAttributes { reliability: Reliability::Reception, ..PLAIN() }, ViError::Reliability),
        (ViAttributes { transfer_bytes_max: 1, ..PLAIN() }, ViError::TransferBytes),
        (ViAttributes { class: 0, ..PLAIN() }, ViError::Quality),
        (ViAttributes { credit: true, ..PLAIN() }, ViError::Quality),
    ];
    let b = world.host(SERVER()).vi(PLAIN());
    for (attributes, error) in wrong {
        let Host { nic, wires, tag, .. } = world.host(SERVER());
        nic.set_vi_attributes(b, ViAttributes { tag: *tag, ..attributes }).unwrap();
        assert_eq!(nic.accept(caller, b, wires), Err(error));
        assert_eq!(nic.query_vi(b).unwrap().state, ViState::Idle);
    }
    let Host { nic, wires, tag, .. } = world.host(SERVER());
    nic.set_vi_attributes(b, ViAttributes { tag: *tag, ..PLAIN() }).unwrap();
    nic.accept(caller, b, wires).unwrap();
    assert_eq!(nic.accept(caller, b, wires), Err(ViError::State));
    world.settle();
    assert!(matches!(world.outcome(CLIENT(), a), Some(Ok(_))));
}

#[test]
fn too_many_callers_are_told_to_be_too_many() {
    let mut world = World::new(&[CLIENT(), SERVER(), node(2, 0)]);
    world.host(SERVER()).nic.listen(&at(1, "port")).unwrap();
    let vis: Vec<ViNumber> = (0..65).map(|_| world.host(CLIENT()).vi(PLAIN())).collect();
    for vi in &vis {
        world.request(CLIENT(), *vi, at(1, "port"));
    }
    world.settle();
    let outcomes: Vec<_> = vis.iter().map(|vi| world.outcome(CLIENT(), *vi)).collect();
    assert!(outcomes[..64].iter().all(Option::is_none));
    assert_eq!(outcomes[64], Some(Err(ViError::Resource)));
    // One that gives up makes room, also for another node's.
    let Host { nic, wires, .. } = world.host(CLIENT());
    assert_eq!(nic.give_up(vis[0], wires), Err(ViError::Timeout));
    world.settle();
    let other = world.host(node(2, 0)).vi(PLAIN());
    world.request(node(2, 0), other, at(1, "port"));
    world.settle();
    assert_eq!(world.outcome(node(2, 0), other), None);
}

#[test]
fn a_client_that_gives_up_leaves_nothing_at_the_server() {
    // Queued, taken, and accepted in the same moment.
    for step in 0..3 {
        let mut world = pair();
        let (a, b) = (world.host(CLIENT()).vi(PLAIN()), world.host(SERVER()).vi(PLAIN()));
        world.host(SERVER()).post_plain(b, Queue::Receive, 0, 0, 100);
        let listener = world.host(SERVER()).nic.listen(&at(1, "port")).unwrap();
        world.request(CLIENT(), a, at(1, "port"));
        world.settle();
        let caller = (step > 0).then(|| world.host(SERVER()).nic.next_caller(listener).unwrap().0);
        if step == 2 {
            let Host { nic, wires, .. } = world.host(SERVER());
            nic.accept(caller.unwrap(), b, wires).unwrap();
        }
        let Host { nic, wires, .. } = world.host(CLIENT());
        assert_eq!(nic.give_up(a, wires), Err(ViError::Timeout));
        assert_eq!(nic.query_vi(a).unwrap().state, ViState::Idle);
        world.settle();
        let Host { nic, wires, .. } = world.host(SERVER());
        match step {
            0 => assert!(nic.next_caller(listener).is_none()),
            1 => assert_eq!(nic.accept(caller.unwrap(), b, wires), Err(ViError::Timeout)),
            _ => assert_eq!(nic.accepted(caller.unwrap()), Some(Err(ViError::Timeout))),
        }
        assert_eq!(nic.query_vi(b).unwrap().state, ViState::Idle);
        world.settle();
        world.host(CLIENT()).nic.destroy_vi(a).unwrap();
    }
}

#[test]
fn what_a_server_gives_up_the_client_loses() {
    let mut world = pair();
    let (a, b) = (world.host(CLIENT()).vi(PLAIN()), world.host(SERVER()).vi(PLAIN()));
    let listener = world.host(SERVER()).nic.listen(&at(1, "port")).unwrap();
    world.request(CLIENT(), a, at(1, "port"));
    world.settle();
    let (caller, ..) = world.host(SERVER()).nic.next_caller(listener).unwrap();
    let Host { nic, wires, .. } = world.host(SERVER());
    nic.accept(caller, b, wires).unwrap();
    nic.give_up_accepted(caller, wires);
    assert_eq!(nic.query_vi(b).unwrap().state, ViState::Idle);
    world.settle();
    assert!(matches!(world.outcome(CLIENT(), a), Some(Ok(_))), "it was accepted");
    assert_eq!(
        (world.host(CLIENT()).state(a), world.host(CLIENT()).errors()),
        (ViState::Error, alloc::vec![AsyncError::ConnectionLost])
    );
}

#[test]
fn disconnecting_is_lost_at_the_other_side_and_both_can_connect_again() {
    let mut world = pair();
    let (a, b) = world.connect(CLIENT(), SERVER(), PLAIN());
    for _ in 0..3 {
        world.host(CLIENT()).post_plain(a, Queue::Receive, 0, 0, 10);
        world.host(SERVER()).post_plain(b, Queue::Receive, 1, 0, 10);
        world.disconnect(CLIENT(), a);
        let flushed = Status::OP_RECEIVE.and(Status::FLUSHED).and(Status::DONE);
        assert_eq!(world.host(CLIENT()).all_done(a, Queue::Receive), [(0, flushed)]);
        assert_eq!(world.host(SERVER()).all_done(b, Queue::Receive), [(1, flushed)]);
        assert_eq!(world.host(CLIENT()).state(a), ViState::Idle);
        assert_eq!(world.host(SERVER()).state(b), ViState::Error);
        assert_eq!(world.host(CLIENT()).errors(), []);
        assert_eq!(world.host(SERVER()).errors(), [AsyncError::ConnectionLost]);
        world.disconnect(SERVER(), b);
        world.connect_vis((CLIENT(), a), (SERVER(), b));
    }
    assert!(world.host(CLIENT()).wires.wanted.contains(&SERVER()));
    world.disconnect(CLIENT(), a);
    assert!(world.host(CLIENT()).wires.wanted.is_empty() && world.host(SERVER()).wires.wanted.is_empty());
}

#[test]
fn disconnecting_an_attempt_ends_it() {
    let mut world = pair();
    let a = world.host(CLIENT()).vi(PLAIN());
    let listener = world.host(SERVER()).nic.listen(&at(1, "port")).unwrap();
    world.request(CLIENT(), a, at(1, "port"));
    world.settle();
    world.disconnect(CLIENT(), a);
    assert_eq!(world.outcome(CLIENT(), a), Some(Err(ViError::State)));
    assert_eq!(world.host(CLIENT()).state(a), ViState::Idle);
    assert!(world.host(SERVER()).nic.next_caller(listener).is_none());
}

#[test]
fn peers_find_each_other_whoever_asks_first() {
    for order in 0..4 {
        let mut world = pair();
        let (a, b) = (world.host(CLIENT()).vi(PLAIN()), world.host(SERVER()).vi(PLAIN()));
        let ask = |world: &mut World, first: bool| {
            let (from, local, remote) =
                if first { ((CLIENT(), a), at(0, "x"), at(1, "y")) } else { ((SERVER(), b), at(1, "y"), at(0, "x")) };
            world.peer_request(from, local, remote, u64::MAX);
        };
        ask(&mut world, order % 2 == 0);
        if order < 2 {
            world.settle();
            assert_eq!(world.outcome(CLIENT(), a).is_none(), order == 0);
        } else {
            // Both before anything was carried.
            world.link();
        }
        ask(&mut world, order % 2 != 0);
        world.settle();
        for (node, vi) in [(CLIENT(), a), (SERVER(), b)] {
            let outcome = world.outcome(node, vi);
            assert!(matches!(outcome, Some(Ok(_))), "{order} {node} {outcome:?}");
            assert_eq!(world.host(node).state(vi), ViState::Connected);
        }
        world.host(SERVER()).post_plain(b, Queue::Receive, 0, 0, 10);
        world.host(CLIENT()).post_plain(a, Queue::Send, 0, 0, 10);
        world.settle();
        assert_eq!(world.host(SERVER()).done(b, Queue::Receive).unwrap().1, 10);
    }
}

#[test]
fn peers_that_do_not_fit_both_hear_it() {
    let mut world = pair();
    let (a, b) = (world.host(CLIENT()).vi(PLAIN()), world.host(SERVER()).vi(attributes(Reliability::Reception)));
    world.peer_request((CLIENT(), a), at(0, "x"), at(1, "y"), u64::MAX);
    world.settle();
    world.peer_request((SERVER(), b), at(1, "y"), at(0, "x"), u64::MAX);
    world.settle();
    for (node, vi) in [(CLIENT(), a), (SERVER(), b)] {
        assert_eq!(world.outcome(node, vi), Some(Err(ViError::Reliability)));
        assert_eq!(world.host(node).state(vi), ViState::Idle);
    }
}

#[test]
fn what_a_peer_answered_to_an_attempt_that_has_ended_says_nothing_to_the_next() {
    let mut world = pair();
    let (a, b) = (world.host(CLIENT()).vi(PLAIN()), world.host(SERVER()).vi(attributes(Reliability::Reception)));
    world.peer_request((CLIENT(), a), at(0, "x"), at(1, "y"), u64::MAX);
    world.peer_request((SERVER(), b), at(1, "y"), at(0, "x"), u64::MAX);
    world.link();
    for node in [SERVER(), CLIENT()] {
        assert!(world.carry_one(node), "both have asked before anything was carried");
    }
    for (node, vi) in [(CLIENT(), a), (SERVER(), b)] {
        assert_eq!(world.outcome(node, vi), Some(Err(ViError::Reliability)));
    }
    // Each has answered besides, which the other has not seen yet.
    let (a, b) = (world.host(CLIENT()).vi(PLAIN()), world.host(SERVER()).vi(PLAIN()));
    world.peer_request((CLIENT(), a), at(0, "x"), at(1, "y"), u64::MAX);
    world.settle();
    world.peer_request((SERVER(), b), at(1, "y"), at(0, "x"), u64::MAX);
    world.settle();
    for (node, vi) in [(CLIENT(), a), (SERVER(), b)] {
        assert!(matches!(world.outcome(node, vi), Some(Ok(_))), "{node}");
    }
}

#[test]
fn peers_with_other_addresses_do_not_meet_and_their_time_ends() {
    let mut world = pair();
    let (a, b) = (world.host(CLIENT()).vi(PLAIN()), world.host(SERVER()).vi(PLAIN()));
    world.peer_request((CLIENT(), a), at(0, "x"), at(1, "y"), 100);
    world.peer_request((SERVER(), b), at(1, "z"), at(0, "x"), 200);
    world.settle();
    let due = |world: &mut World| {
        let now_ns = world.now_ns;
        world.hosts.values_mut().map(|host| host.nic.tick(now_ns, &mut host.wires)).min().unwrap()
    };
    assert_eq!(due(&mut world), 100);
    world.now_ns = 99;
    world.tick();
    assert_eq!(world.outcome(CLIENT(), a), None);
    world.now_ns = 100;
    world.tick();
    assert_eq!(world.outcome(CLIENT(), a), Some(Err(ViError::Timeout)));
    assert_eq!(world.outcome(SERVER(), b), None);
    assert_eq!(due(&mut world), 200);
}

#[test]
fn two_vis_of_one_nic_are_connected_like_others() {
    let mut world = World::new(&[CLIENT()]);
    let (a, b) = world.connect(CLIENT(), CLIENT(), PLAIN());
    world.host(CLIENT()).post_plain(b, Queue::Receive, 0, 0, 5000);
    world.host(CLIENT()).post_plain(a, Queue::Send, 1, 0, 5000);
    assert_eq!(world.host(CLIENT()).done(b, Queue::Receive).unwrap().1, 5000);
    assert!(!world.host(CLIENT()).done(a, Queue::Send).unwrap().2.is_error());
    world.disconnect(CLIENT(), a);
    assert_eq!(world.host(CLIENT()).state(b), ViState::Error);
    let (c, d) = (world.host(CLIENT()).vi(PLAIN()), world.host(CLIENT()).vi(PLAIN()));
    world.peer_request((CLIENT(), c), at(0, "x"), at(0, "y"), u64::MAX);
    world.peer_request((CLIENT(), d), at(0, "y"), at(0, "x"), u64::MAX);
    for vi in [c, d] {
        assert!(matches!(world.outcome(CLIENT(), vi), Some(Ok(_))));
    }
}

#[test]
fn the_death_of_a_node_ends_what_was_with_it_only() {
    let other = node(2, 0);
    let mut world = World::new(&[CLIENT(), SERVER(), other]);
    let (a, _) = world.connect(CLIENT(), SERVER(), PLAIN());
    let (c, d) = world.connect(CLIENT(), other, PLAIN());
    let (e, f) = (world.host(CLIENT()).vi(PLAIN()), world.host(CLIENT()).vi(PLAIN()));
    let listener = world.host(SERVER()).nic.listen(&at(1, "late")).unwrap();
    world.request(CLIENT(), e, at(1, "late"));
    world.settle();
    assert!(world.host(SERVER()).nic.next_caller(listener).is_some());
    world.kill(SERVER());
    world.settle();
    assert_eq!(world.host(CLIENT()).state(a), ViState::Error);
    assert_eq!(world.outcome(CLIENT(), e), Some(Err(ViError::NoMatch)));
    assert_eq!((world.host(CLIENT()).state(c), world.host(other).state(d)), (ViState::Connected, ViState::Connected));
    // Its successor is found.
    world.start(SERVER());
    world.disconnect(CLIENT(), a);
    let b = world.host(SERVER()).vi(PLAIN());
    world.connect_vis((CLIENT(), a), (SERVER(), b));
    let g = world.host(SERVER()).vi(PLAIN());
    world.connect_vis((SERVER(), g), (CLIENT(), f));
}

#[test]
fn a_caller_whose_node_died_is_gone() {
    for taken in [false, true] {
        let mut world = pair();
        let a = world.host(CLIENT()).vi(PLAIN());
        let listener = world.host(SERVER()).nic.listen(&at(1, "port")).unwrap();
        world.request(CLIENT(), a, at(1, "port"));
        world.settle();
        let caller = taken.then(|| world.host(SERVER()).nic.next_caller(listener).unwrap().0);
        world.kill(CLIENT());
        let b = world.host(SERVER()).vi(PLAIN());
        let Host { nic, wires, .. } = world.host(SERVER());
        match caller {
            None => assert!(nic.next_caller(listener).is_none()),
            Some(caller) => assert_eq!(nic.accept(caller, b, wires), Err(ViError::Timeout)),
        }
    }
}

#[test]
fn who_is_connected_tries_for_no_other_slot_any_more() {
    let mut world = World::new(&[node(0, 0), node(1, 0)]);
    let (a, b) = world.connect(node(0, 0), node(1, 0), PLAIN());
    assert_eq!(world.host(node(0, 0)).wires.wanted, BTreeSet::from([node(1, 0)]));
    world.disconnect(node(0, 0), a);
    world.disconnect(node(1, 0), b);
    for (nic, vi, local, remote) in [(0, a, at(0, "a"), at(1, "b")), (1, b, at(1, "b"), at(0, "a"))] {
        let Host { nic, wires, .. } = world.host(node(nic, 0));
        nic.request_peer(vi, local, remote, u64::MAX, wires).unwrap();
    }
    world.settle();
    for (here, there, vi) in [(0, 1, a), (1, 0, b)] {
        assert_eq!(world.host(node(here, 0)).state(vi), ViState::Connected);
        assert_eq!(world.host(node(here, 0)).wires.wanted, BTreeSet::from([node(there, 0)]));
    }
}

#[test]
fn an_answer_brings_what_the_server_says_and_no_more_than_fits() {
    let (client, server) = (node(0, 0), node(1, 0));
    for accepts in [true, false] {
        let mut world = World::new(&[client, server]);
        let (a, b) = (world.host(client).vi(PLAIN()), world.host(server).vi(PLAIN()));
        let listener = world.host(server).nic.listen(&at(1, "port")).unwrap();
        let Host { nic, wires, .. } = world.host(client);
        nic.request(a, at(0, "client"), at(1, "port"), wires).unwrap();
        world.settle();
        let (caller, ..) = world.host(server).nic.next_caller(listener).unwrap();
        let (most, more) = ([7; 128], [7; 129]);
        let Host { nic, wires, .. } = world.host(server);
        assert_eq!(nic.accept_with(caller, b, &more, wires), Err(ViError::Parameter));
        assert_eq!(nic.reject_with(caller, &more, wires), Err(ViError::Parameter));
        if accepts {
            nic.accept_with(caller, b, &most, wires).unwrap();
        } else {
            nic.reject_with(caller, &most, wires).unwrap();
        }
        world.settle();
        let nic = &mut world.host(client).nic;
        let outcome = nic.take_outcome(a).map(|outcome| outcome.map(|_| ()));
        assert_eq!(outcome, Some(if accepts { Ok(()) } else { Err(ViError::Rejected) }));
        assert_eq!((nic.take_connection_data(a), nic.take_connection_data(a)), (most.to_vec(), Vec::new()));
    }
}

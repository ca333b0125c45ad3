//! Who calls, whom we called, who only looks: what each is answered.

use std::os::fd::OwnedFd;

use super::*;
use crate::os::packet_socket::{answer_calls, claim};
use crate::process::rendezvous::registry::{OBSERVERS_MAX, OBSERVERS_OF_USER_MAX};
use crate::process::rendezvous::slot::take_slot_of;

/// One message with a descriptor or none.
fn say(to: &OwnedFd, message: Message, fd: Option<&Descriptor>) {
    let fds: Vec<_> = fd.iter().map(|fd| fd.as_fd()).collect();
    packet_socket::send(to.as_fd(), &message.bytes(), &fds).unwrap();
}

/// The reason of a refusal, after which the connection has ended.
fn refused(other: &OwnedFd) -> Option<Refusal> {
    match heard(other)[..] {
        [Incoming::Message(Message::Refuse { reason, hash }, None), Incoming::Closed] => {
            assert_eq!(hash, PLAN.hash);
            Some(reason)
        }
        _ => None,
    }
}

/// What somebody who looks is answered.
fn look(registry: &mut Registry, shared: &Shared, hash: u64) -> (u32, OwnedFd) {
    let (id, other) = connect(registry, shared, Stage::Accepted, 0);
    say(&other, Message::Observe { hash }, None);
    registry.readable(shared, id);
    (id, other)
}

#[test]
fn observers_see_the_section_and_are_not_too_many() {
    let shared = shared(party(0, 7));
    let mut registry = Registry::default();
    let (id, other) = look(&mut registry, &shared, PLAN.hash ^ 1);
    assert_eq!((refused(&other), registry.connections.contains_key(&id)), (Some(Refusal::Plan), false));
    let mut ends = Vec::new();
    for count in 0..OBSERVERS_OF_USER_MAX {
        let (id, other) = look(&mut registry, &shared, PLAN.hash);
        assert_eq!(registry.connections[&id].stage, Stage::Observer);
        let came = heard(&other);
        assert!(matches!(came[..], [Incoming::Message(Message::Welcome(me), Some(_))] if me == shared.me), "{count}");
        ends.push(other);
    }
    let (_, other) = look(&mut registry, &shared, PLAN.hash);
    assert_eq!(refused(&other), Some(Refusal::Busy), "one too many of a user");
    // Of other users there may be more, but not for ever.
    for connection in registry.connections.values_mut() {
        connection.credentials.uid += 1;
    }
    for count in OBSERVERS_OF_USER_MAX..OBSERVERS_MAX {
        let (id, other) = look(&mut registry, &shared, PLAN.hash);
        assert_eq!(registry.connections[&id].stage, Stage::Observer, "{count}");
        registry.connections.get_mut(&id).unwrap().credentials.uid += 2;
        heard(&other);
        ends.push(other);
    }
    let (_, other) = look(&mut registry, &shared, PLAN.hash);
    assert_eq!(refused(&other), Some(Refusal::Busy));
}

/// What becomes of whom we called, participant 1, when that answers so.
fn welcomed(change: impl FnOnce(&mut Party)) -> (Registry, Shared) {
    let shared = shared(party(0, 7));
    let mut registry = Registry::default();
    let (id, other) = connect(&mut registry, &shared, Stage::Dialed(1), 0);
    registry.dials.insert(1, Dial { connection: Some(id), ..Dial::at(0) });
    let mut says = party(1, 8);
    let section = OwnSection::create(&PLAN, says).unwrap();
    change(&mut says);
    say(&other, Message::Welcome(says), Some(&section.fd()));
    registry.readable(&shared, id);
    (registry, shared)
}

#[test]
fn whom_we_called_is_linked_if_it_is_who_we_called() {
    let (registry, _shared) = welcomed(|_| ());
    assert_eq!((registry.peers.len(), registry.strangers.refused), (1, 0));
    assert_eq!((registry.peers[0].party, registry.peers[0].ready), (party(1, 8), false));
    type Change = fn(&mut Party);
    let changes: [(Change, Refusal); 5] = [
        (|says| says.hash ^= 1, Refusal::Plan),
        (|says| says.participant = 2, Refusal::Section),
        (|says| says.domain = 2, Refusal::Section),
        (|says| says.epoch = 0, Refusal::Section),
        (|says| says.epoch = 9, Refusal::Section),
    ];
    for (place, (change, reason)) in changes.into_iter().enumerate() {
        let (registry, shared) = welcomed(change);
        assert!(registry.peers.is_empty() && registry.dials.is_empty() && registry.connections.is_empty(), "{place}");
        assert_eq!(registry.strangers.last.map(|(whom, reason, _)| (whom, reason)), Some((1, reason)), "{place}");
        assert_eq!((registry.strangers.refused, registry.obstacles.all(&shared).len()), (1, 1));
    }
}

#[test]
fn a_refusal_ends_the_call_and_busy_is_called_again() {
    for reason in [Refusal::Plan, Refusal::User, Refusal::Busy] {
        let shared = shared(party(0, 7));
        let mut registry = Registry::default();
        let (id, other) = connect(&mut registry, &shared, Stage::Dialed(1), 0);
        registry.dials.insert(1, Dial { connection: Some(id), ..Dial::at(0) });
        say(&other, Message::Refuse { reason, hash: 5 }, None);
        registry.readable(&shared, id);
        let again = reason == Refusal::Busy;
        assert_eq!((registry.dials.contains_key(&1), registry.obstacles.of.is_empty()), (again, again), "{reason:?}");
        assert!(registry.connections.is_empty());
    }
}

#[test]
fn who_calls_is_let_in_if_it_holds_its_name_and_its_section_fits() {
    let shared = shared(party(0, 7));
    let mut registry = Registry::default();
    let call = |registry: &mut Registry, says: Party| {
        let (id, other) = connect(registry, &shared, Stage::Accepted, 0);
        let section = OwnSection::create(&PLAN, Party { hash: PLAN.hash, ..party(1, 8) }).unwrap();
        say(&other, Message::Hello(says), Some(&section.fd()));
        registry.readable(&shared, id);
        other
    };
    let right = party(1, 8);
    assert_eq!(refused(&call(&mut registry, right)), Some(Refusal::Slot), "nobody holds the name");
    let holder = claim(&shared.names.participant(1)).unwrap().unwrap();
    answer_calls(&holder).unwrap();
    for (says, reason) in [
        (Party { hash: 5, ..right }, Refusal::Plan),
        (Party { participant: 0, domain: 0, ..right }, Refusal::Slot),
        (Party { participant: 3, ..right }, Refusal::Slot),
        (Party { domain: 2, ..right }, Refusal::Slot),
        (Party { epoch: 0, ..right }, Refusal::Slot),
        (Party { participant: 2, ..right }, Refusal::Slot),
        (Party { epoch: 9, ..right }, Refusal::Section),
    ] {
        assert_eq!(refused(&call(&mut registry, says)), Some(reason), "{says:?}");
        assert!(registry.peers.is_empty() && registry.connections.is_empty());
    }
    assert_eq!(registry.strangers.refused, 8);
    // Both may have called each other: it is the same peer. But not for ever.
    for count in 1..=4 {
        let other = call(&mut registry, right);
        let came = heard(&other);
        assert!(matches!(came[0], Incoming::Message(Message::Welcome(me), Some(_)) if me == shared.me), "{count}");
        assert!(matches!(came[1], Incoming::Message(Message::Ready, None)), "{count}");
        assert_eq!((registry.peers.len(), registry.peers[0].connections.len()), (1, count));
        std::mem::forget(other);
    }
    assert_eq!(refused(&call(&mut registry, right)), Some(Refusal::Busy));
}

#[test]
fn a_slot_is_the_one_that_is_asked_for_or_the_first_that_is_free() {
    let shared = shared(party(0, 7));
    let take = |slot| take_slot_of(&PLAN, 1, slot, Deadline::Poll, &shared.names);
    let refused = take(Some(2)).map(|_| ()).unwrap_err();
    assert!(matches!(refused, Error::NoSuchSlot { slot: 2, slots: 2, .. }), "{refused}");
    let second = take(Some(1)).unwrap();
    assert_eq!(second.0, 2);
    assert!(matches!(take(Some(1)), Err(Error::DomainFull { slots: 2, .. })));
    let first = take(None).unwrap();
    assert_eq!(first.0, 1);
    assert!(matches!(take(None), Err(Error::DomainFull { .. })));
    drop(second);
    assert_eq!(take(None).unwrap().0, 2);
}

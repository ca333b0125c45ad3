//! What a participant knows, and what one event or message makes of it: without its attendant, over socket pairs.

mod handshake;
mod traffic;

use std::collections::BTreeMap;
use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex};

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

use super::connection::{Connection, Incoming, Stage};
use super::dial::Dial;
use super::message::{Message, Party, Refusal};
use super::obstacles::Obstacle;
use super::registry::{HALF_OPEN_NS_MAX, Peer, Registry, Shared};
use super::socket_names::Names;
use crate::direction::Direction;
use crate::error::Error;
use crate::os::clock::{Deadline, DeadlineExt as _, now_ns};
use crate::os::credentials::Credentials;
use crate::os::descriptor::Descriptor;
use crate::os::forks::{Kept, Process};
use crate::os::packet_socket;
use crate::process::channel::latest_timer::LateTimer;
use crate::process::section::OwnSection;
use crate::process::section::tests::{PLAN, both, party};

const MS: u64 = 1_000_000;

/// The Master of [`PLAN`], or a Remote: nobody calls it, and nothing is done but what a test does.
fn shared(me: Party) -> Shared {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let instance = format!("r{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
    Shared {
        plan: &PLAN,
        names: Names::new(PLAN.name, Some(&instance)).unwrap(),
        me,
        process: Process::this(),
        section: Arc::new(OwnSection::create(&PLAN, me).unwrap()),
        epoll: Descriptor::epoll().unwrap(),
        wake: Descriptor::event().unwrap(),
        late: LateTimer::new().unwrap(),
        stopping: AtomicBool::new(false),
        serial: AtomicU32::new(1),
        changed: Condvar::new(),
        registry: Mutex::new(Registry::default()),
    }
}

/// A connection of the registry's, and its other end.
fn connect(registry: &mut Registry, shared: &Shared, stage: Stage, since_ns: u64) -> (u32, OwnedFd) {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let (one, other) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None).unwrap();
    let connection = Connection::new(Kept::new(one.into()), stage, Credentials::own(), since_ns);
    (registry.add_connection(shared, connection).unwrap(), other)
}

/// A peer that is linked over one connection, and its end of that.
fn link(registry: &mut Registry, shared: &Shared, party: Party) -> (u32, OwnedFd) {
    let (id, other) = connect(registry, shared, Stage::Linked(party.participant, party.epoch), 0);
    let section = both(party).1;
    let credentials = Credentials::own();
    let (connections, ends) = (vec![id], BTreeMap::new());
    let number = registry.new_id();
    registry.peers.push(Peer { party, section, credentials, id: number, pidfd: None, connections, ready: false, ends });
    (id, other)
}

fn post(to: &OwnedFd, message: Message) {
    packet_socket::send(to.as_fd(), &message.bytes(), &[]).unwrap();
}

/// What has come at the other end, the end itself included.
fn heard(other: &OwnedFd) -> Vec<Incoming> {
    let kept = Kept::new(other.try_clone().unwrap().into());
    let connection = Connection::new(kept, Stage::Accepted, Credentials::own(), 0);
    let mut heard = Vec::new();
    loop {
        match connection.receive() {
            Incoming::Nothing => break,
            Incoming::Closed => {
                heard.push(Incoming::Closed);
                break;
            }
            one => heard.push(one),
        }
    }
    // The clone is not to shut the socket down.
    std::mem::forget(connection);
    heard
}

#[test]
fn only_the_masters_answer_while_we_start_ends_the_start() {
    let refused = Obstacle::Refused(Refusal::Plan, 5);
    let other = Obstacle::System("sending", Errno::NOBUFS);
    for (participant, joined, obstacle, ends) in [
        (0, false, refused, true),
        (0, true, refused, false),
        (1, false, refused, false),
        (0, false, other, false),
        (99, false, refused, false),
    ] {
        let shared = shared(party(1, 8));
        let mut registry = Registry { joined, ..Registry::default() };
        registry.hindered(&shared, participant, obstacle);
        assert_eq!(registry.obstacles.forbid_start(), ends, "{participant} {joined} {obstacle:?}");
        assert_eq!(registry.obstacles.of_start(&shared).is_some(), ends);
        let all = registry.obstacles.all(&shared);
        assert_eq!((all.len(), all[0].0), (1, participant));
        let of_master = registry.obstacles.of_domain(&shared, 0).is_some();
        assert_eq!(of_master, participant == 0);
        assert!(registry.obstacles.of_domain(&shared, 2).is_none());
    }
}

#[test]
fn what_the_kernel_refused_is_an_obstacle_and_other_errors_are_not() {
    let shared = shared(party(0, 7));
    let mut registry = Registry::default();
    registry.failed_at(&shared, 1, &Error::Left);
    assert!(registry.obstacles.of.is_empty());
    registry.failed_at(&shared, 1, &Error::System { action: "calling", source: Errno::MFILE.into() });
    assert_eq!(registry.obstacles.of.get(&1), Some(&Obstacle::System("calling", Errno::MFILE)));
    let source = std::io::Error::other("no number");
    registry.failed_at(&shared, 2, &Error::System { action: "calling", source });
    assert_eq!(registry.obstacles.of.get(&2), Some(&Obstacle::System("calling", Errno::IO)));
}

#[test]
fn who_is_not_let_in_is_counted_and_noted_if_it_may_be_who_it_says() {
    let shared = shared(party(0, 7));
    let mut registry = Registry::default();
    let (own, mut other) = (Credentials::own(), Credentials::own());
    other.uid += 1;
    let noted = |registry: &Registry| registry.obstacles.of.keys().copied().collect::<Vec<_>>();
    registry.not_let_in(&shared, 1, &other, (Refusal::Plan, 5));
    registry.not_let_in(&shared, 99, &own, (Refusal::Plan, 5));
    registry.not_let_in(&shared, 1, &own, (Refusal::Busy, 5));
    assert_eq!((noted(&registry), registry.strangers.refused), (vec![], 3));
    assert_eq!(registry.strangers.last, Some((1, Refusal::Busy, 5)));
    registry.not_let_in(&shared, 1, &own, (Refusal::Plan, 6));
    assert_eq!(registry.obstacles.of.get(&1), Some(&Obstacle::NotLetIn(Refusal::Plan, 6, own.uid)));
    registry.obstacles.of.clear();
    let (_, _other) = link(&mut registry, &shared, party(1, 8));
    registry.not_let_in(&shared, 1, &own, (Refusal::Plan, 7));
    assert_eq!(noted(&registry), [0; 0], "that one is linked");
    registry.not_let_in(&shared, 2, &own, (Refusal::Plan, 7));
    assert_eq!(noted(&registry), [2]);
}

#[test]
fn calls_are_made_when_due_and_nobody_there_is_an_answer() {
    let shared = shared(party(0, 7));
    let mut registry = Registry { dials: [(1, Dial::at(10)), (2, Dial::at(20))].into(), ..Registry::default() };
    registry.dials.insert(3, Dial { connection: Some(77), ..Dial::at(1) });
    registry.call_due(&shared, 9);
    assert_eq!(registry.dials.len(), 3);
    registry.call_due(&shared, 10);
    assert_eq!(registry.dials.keys().copied().collect::<Vec<_>>(), [2, 3]);
    registry.call_due(&shared, 20);
    assert_eq!(registry.dials.keys().copied().collect::<Vec<_>>(), [3], "that one waits for its answer");
    assert!(!registry.all_answered());
    registry.dial_over(&shared, 3, 78);
    assert!(!registry.dials.is_empty(), "another connection");
    registry.dial_over(&shared, 3, 77);
    assert!(registry.all_answered());
}

#[test]
fn a_call_that_broke_is_made_again_unless_the_peer_has_come_and_told_all() {
    let shared = shared(party(0, 7));
    let mut registry = Registry::default();
    let dial = || Dial { connection: Some(5), ..Dial::at(0) };
    registry.dials.insert(1, dial());
    let before = now_ns();
    registry.dial_broken(&shared, 1);
    let postponed = registry.dials[&1];
    assert!(postponed.connection.is_none() && postponed.due_ns >= before + MS);
    let (id, _other) = link(&mut registry, &shared, party(1, 8));
    registry.dials.insert(2, dial());
    registry.dial_broken(&shared, 2);
    assert!(registry.dials.contains_key(&2), "another one is linked");
    registry.dials.insert(1, dial());
    registry.connections.get_mut(&id).unwrap().incomplete = true;
    assert!(registry.is_incomplete(1) && !registry.is_incomplete(2));
    registry.dial_broken(&shared, 1);
    assert!(registry.dials.contains_key(&1), "something of it was lost");
    registry.connections.get_mut(&id).unwrap().incomplete = false;
    assert!(!registry.is_incomplete(1));
    registry.dial_broken(&shared, 1);
    assert!(!registry.dials.contains_key(&1));
}

#[test]
fn what_was_lost_is_asked_for_once_more_and_the_connection_is_given_up_when_all_is_told() {
    let shared = shared(party(0, 7));
    let mut registry = Registry::default();
    let (id, other) = link(&mut registry, &shared, party(1, 8));
    let before = now_ns();
    registry.missed(&shared, id);
    assert!(registry.is_incomplete(1));
    let due_ns = registry.dials[&1].due_ns;
    assert!(due_ns >= before + 100 * MS && due_ns <= now_ns() + 100 * MS);
    registry.missed(&shared, id);
    assert_eq!(registry.dials[&1].due_ns, due_ns, "once");
    // The same peer tells all on a second connection.
    let (second, _second_end) = connect(&mut registry, &shared, Stage::Linked(1, 8), 0);
    registry.peers[0].connections.push(second);
    registry.told_all(&shared, second, (1, 8));
    assert!(!registry.connections.contains_key(&id) && registry.connections.contains_key(&second));
    assert!(registry.dials.is_empty() && matches!(heard(&other)[..], [Incoming::Closed]));
    assert_eq!(registry.peers[0].connections, [second]);
    // Something is lost there too: it is asked for again.
    registry.missed(&shared, second);
    registry.told_all(&shared, second, (1, 8));
    assert!(registry.connections.contains_key(&second) && registry.dials.contains_key(&1));
    // Who is not linked is hung up on.
    let (caller, caller_end) = connect(&mut registry, &shared, Stage::Accepted, 0);
    registry.missed(&shared, caller);
    assert!(!registry.connections.contains_key(&caller) && matches!(heard(&caller_end)[..], [Incoming::Closed]));
}

#[test]
fn who_says_nothing_is_cut_off_when_its_time_is_over() {
    let shared = shared(party(0, 7));
    let mut registry = Registry::default();
    let (silent, _one) = connect(&mut registry, &shared, Stage::Accepted, 100);
    let (later, _other) = connect(&mut registry, &shared, Stage::Accepted, 101);
    let (observer, _third) = connect(&mut registry, &shared, Stage::Observer, 1);
    registry.drop_silent(&shared, 99 + HALF_OPEN_NS_MAX);
    assert_eq!(registry.connections.len(), 3);
    registry.drop_silent(&shared, 100 + HALF_OPEN_NS_MAX);
    let left: Vec<u32> = registry.connections.keys().copied().collect();
    assert_eq!((left, registry.strangers.garbage), (vec![later, observer], 1));
    assert_ne!(silent, later);
}

#[test]
fn callers_have_their_share_of_descriptors_and_peers_do_not_count() {
    let shared = shared(party(0, 7));
    let mut registry = Registry::default();
    let uid = Credentials::own().uid;
    let mut ends = Vec::new();
    let fill = |registry: &mut Registry, id: u32| {
        for smem in 0..8 {
            let fd = Some(Arc::new(Descriptor::event().unwrap()));
            registry.send(&shared, id, Message::Segment { smem, generation: 1 }, fd);
        }
    };
    for _ in 0..10 {
        let (id, other) = connect(&mut registry, &shared, Stage::Linked(1, 8), 0);
        fill(&mut registry, id);
        ends.push(other);
    }
    assert!(registry.may_be_given(uid), "what peers have not read is theirs");
    for count in 0..8 {
        assert!(registry.may_be_given(uid), "{count}");
        let (id, other) = connect(&mut registry, &shared, Stage::Accepted, 0);
        fill(&mut registry, id);
        ends.push(other);
    }
    assert_eq!(registry.strangers.withheld, 0);
    assert!(!registry.may_be_given(uid) && registry.may_be_given(uid + 1));
    assert_eq!(registry.strangers.withheld, 1);
}

#[test]
fn news_of_an_end_count_by_their_serial() {
    let shared = shared(party(0, 7));
    let mut registry = Registry::default();
    let (id, other) = link(&mut registry, &shared, party(1, 8));
    let mut tell = |open, serial| {
        post(&other, Message::End { fifo: 0, direction: Direction::Receive, open, serial });
        registry.readable(&shared, id);
        registry.peers[0].ends.get(&(0, Direction::Receive)).map(|end| (end.open, end.serial))
    };
    assert_eq!(tell(true, 5), Some((true, 5)));
    assert_eq!(tell(true, 4), Some((true, 5)), "older");
    assert_eq!(tell(false, 4), Some((true, 5)));
    assert_eq!(tell(false, 5), Some((false, 5)));
    assert_eq!(tell(true, 5), Some((false, 5)), "a copy of old news");
    assert_eq!(tell(true, 6), Some((true, 6)));
    assert_eq!(
        tell(false, 6u32.wrapping_add(u32::MAX / 2)),
        Some((false, 6 + u32::MAX / 2)),
        "the furthest that is later"
    );
    assert_eq!(
        tell(true, 6u32.wrapping_add(u32::MAX / 2).wrapping_add(u32::MAX / 2 + 1)),
        Some((false, 6 + u32::MAX / 2))
    );
    assert_eq!(tell(true, 3), Some((true, 3)), "numbers go round");
    // An end that its domain has not.
    post(&other, Message::End { fifo: 0, direction: Direction::Send, open: true, serial: 9 });
    registry.readable(&shared, id);
    assert!(registry.peers.is_empty() && registry.strangers.garbage == 1);
    assert!(heard(&other).iter().any(|one| matches!(one, Incoming::Closed)));
}

#[test]
fn a_peer_that_is_ready_or_lost_is_known_as_that() {
    let shared = shared(party(0, 7));
    let mut registry = Registry::default();
    let (id, other) = link(&mut registry, &shared, party(1, 8));
    registry.dials.insert(1, Dial { connection: Some(id), ..Dial::at(0) });
    registry.obstacles.of.insert(1, Obstacle::Foreign(3));
    assert!(!registry.all_answered());
    post(&other, Message::Ready);
    registry.readable(&shared, id);
    assert!(registry.peers[0].ready && registry.all_answered() && registry.obstacles.of.is_empty());
    assert!(
        registry.peer_index(1, 8).is_some()
            && registry.peer_index(1, 9).is_none()
            && registry.peer_index(2, 8).is_none()
    );
    registry.process_ended(&shared, registry.peers[0].id + 100);
    assert_eq!(registry.peers.len(), 1);
    let process = registry.peers[0].id;
    registry.process_ended(&shared, process);
    assert!(registry.peers.is_empty() && registry.connections.is_empty());
    // The last connection's end is the peer's.
    let (id, other) = link(&mut registry, &shared, party(1, 8));
    let (second, second_end) = connect(&mut registry, &shared, Stage::Linked(1, 8), 0);
    registry.peers[0].connections.push(second);
    drop(other);
    registry.readable(&shared, id);
    assert_eq!(registry.peers.len(), 1);
    drop(second_end);
    registry.readable(&shared, second);
    assert!(registry.peers.is_empty());
}

#[test]
fn a_wait_for_a_change_ends_by_its_deadline() {
    let shared = shared(party(0, 7));
    assert!(shared.wait_changed(shared.lock(), Deadline::Poll).is_none());
    assert!(shared.wait_changed(shared.lock(), Deadline::after(std::time::Duration::from_millis(2))).is_some());
    assert!(shared.is_linked_with(1) && !shared.stopping());
    shared.wake_attendant();
    assert!(rustix::io::read(&shared.wake, &mut [0; 8]).is_ok());
}

//! Carriers of one process, driven by one thread: the order in which links are looked at, what they count, how they end.

use std::sync::Arc;

use musubi_core::lane::Payload as Placed;
use musubi_linux::clock::now_ns;
use musubi_linux::descriptor::Descriptor;
use musubi_linux::epoll;

use super::{Block, ShmCarrier};
use crate::carrier::{Describe as _, Drive as _, Frames as _};
use crate::frame::{Header, Kinds, Shape};
use crate::links::{Block as _, Loss, Payload, Report, Sent};
use crate::status::{AcceptorStatus, LinkStatus};
use crate::topology::{ClassRule, Place, Topology};
use crate::{FilterRule, LinkError, NodeId, Priority, Regulation};

const FRAME: Option<Shape> = Some(Shape { payload_max: 1 << 20, awaited: false });
/// What all speak, and what one speaks beyond it.
const KINDS: &Kinds = &Kinds { least_urgent: Priority::LEAST_URGENT, shapes: &[FRAME] };
const MORE: &Kinds = &Kinds { least_urgent: Priority::LEAST_URGENT, shapes: &[FRAME, FRAME] };
/// Turns after which a test gives up.
const PATIENCE: u32 = 200_000;

/// A carrier with what it hangs on.
struct Neighbour {
    carrier: ShmCarrier,
    epoll: Arc<Descriptor>,
}

fn id(node: u32) -> NodeId {
    NodeId::new(0, node).unwrap()
}

fn class(number: u8) -> Priority {
    Priority::new(number).unwrap()
}

/// A system of this test alone.
fn system(name: &str) -> Topology {
    Topology { system: format!("{name}-{}", std::process::id()), ..Topology::single_machine() }
}

fn open(topology: &Topology, node: u32, incarnation: u32, kinds: &'static Kinds) -> Result<Neighbour, LinkError> {
    let epoll = Arc::new(Descriptor::epoll().unwrap());
    let carrier = ShmCarrier::open(Arc::new(topology.clone()), id(node), incarnation, Arc::clone(&epoll), kinds)?;
    Ok(Neighbour { carrier, epoll })
}

fn header(number: u8, bytes: usize, tag: u32) -> Header {
    Header { class: class(number), length: bytes as u32, tag, ..Header::new(0) }
}

impl Neighbour {
    /// Descriptors that are ready, and what is due.
    fn turn(&mut self) {
        let mut events = [epoll::NO_EVENT; 16];
        let count = epoll::wait(&self.epoll, &mut events, Some(0));
        for event in &events[..count] {
            let data = event.data;
            self.carrier.ready(now_ns(), data.u64());
        }
        if self.carrier.deadline_ns() <= now_ns() {
            self.carrier.tick(now_ns());
        }
    }

    /// The next report that is at hand after a turn.
    fn next(&mut self) -> Option<Report<Block>> {
        self.turn();
        // Links that are idle are looked at now and then only.
        (0..200).find_map(|_| self.carrier.next_report(now_ns()))
    }

    fn send(&mut self, peer: u32, number: u8, bytes: usize, tag: u32) -> Sent {
        self.carrier.send(now_ns(), id(peer), &header(number, bytes, tag), &vec![tag as u8; bytes])
    }

    fn status(&self, peer: u32) -> LinkStatus {
        self.carrier.link(id(peer)).unwrap()
    }
}

/// Who sent a frame, and its tag.
fn frame(report: Option<Report<Block>>) -> (u32, u32) {
    match report {
        Some(Report::Frame { peer, header, payload }) => {
            let mut bytes = vec![0; payload.len()];
            assert_eq!((payload.copy_to(&mut bytes), bytes.len()), (bytes.len(), header.length as usize));
            assert!(bytes.iter().all(|byte| *byte == header.tag as u8));
            (peer.node(), header.tag)
        }
        other => panic!("{other:?} is no frame"),
    }
}

/// Links each of the sides with the first one, which wants them.
fn link(sides: &mut [Neighbour], nodes: &[u32]) {
    for node in &nodes[1..] {
        sides[0].carrier.want(now_ns(), id(*node), true);
    }
    let mut missing = 2 * (sides.len() - 1);
    for _ in 0..PATIENCE {
        for side in &mut *sides {
            match side.next() {
                Some(Report::Up { .. }) => missing -= 1,
                Some(Report::Absent { .. }) | None => {}
                other => panic!("{other:?}"),
            }
        }
        if missing == 0 {
            return;
        }
        std::thread::yield_now();
    }
    panic!("{missing} did not come up");
}

/// Sides 1, 2 and so on of a system, each linked with the first.
fn linked(name: &str, count: u32) -> (Topology, Vec<Neighbour>) {
    let topology = system(name);
    let nodes: Vec<u32> = (1..=count).collect();
    let mut sides: Vec<Neighbour> =
        nodes.iter().map(|node| open(&topology, *node, 10 + node, KINDS).unwrap()).collect();
    link(&mut sides, &nodes);
    (topology, sides)
}

fn report(side: &mut Neighbour) -> Report<Block> {
    for _ in 0..PATIENCE {
        if let Some(report) = side.next() {
            return report;
        }
        std::thread::yield_now();
    }
    panic!("nothing is reported");
}

#[test]
fn what_goes_over_a_link_is_counted() {
    let (_, mut sides) = linked("shm-counts", 2);
    assert!(sides[0].carrier.link(id(9)).is_none());
    assert_eq!(sides[0].send(9, 1, 0, 0), Sent::NoLink);
    let [first, second] = &mut sides[..] else { unreachable!("two") };
    for (tag, bytes) in [(1, 0), (2, 8), (3, 9), (4, 95), (5, 300), (6, 5000)] {
        assert_eq!(first.send(2, 1, bytes, tag), Sent::Delivered);
        first.carrier.flush(now_ns());
        let Report::Frame { payload, header, .. } = report(second) else { panic!("a frame") };
        assert_eq!((header.tag, payload.len()), (tag, bytes));
        if let Payload::Lent(block) = &payload {
            assert!(bytes == 5000 && !block.address().is_null() && !block.is_empty() && block.may_be_kept());
            let mut part = [0; 10];
            assert_eq!((block.len(), block.copy_to(4995, &mut part)), (5000, 5));
            assert_eq!(part, [6, 6, 6, 6, 6, 0, 0, 0, 0, 0]);
        }
    }
    let bytes = 6 * Header::BYTES as u64 + 8 + 9 + 95 + 300 + 5000;
    let none = LinkStatus {
        node: id(2),
        kind: 1,
        state: 1,
        rtt_ns: 0,
        frames_sent: 0,
        frames_received: 0,
        bytes_sent: 0,
        bytes_received: 0,
        connections: 1,
        resumed: 0,
        cuts: 0,
        repeated: 0,
        violations: 0,
        silences: 0,
        refused: 0,
        waited: Some(0),
    };
    assert_eq!(first.status(2), LinkStatus { frames_sent: 6, bytes_sent: bytes, ..none });
    assert_eq!(second.status(1), LinkStatus { node: id(1), frames_received: 6, bytes_received: bytes, ..none });
    // The one that wants it seeks it again.
    second.carrier.leave(now_ns());
    assert!(matches!(report(first), Report::Down { loss: Loss::Gone, .. }));
    assert_eq!((first.status(2).state, first.status(2).cuts, first.carrier.refusals().faults), (2, 0, 0));
    assert!(matches!(report(first), Report::Absent { .. }));
    first.carrier.want(now_ns(), id(2), false);
    assert_eq!(first.status(2).state, 0);
    assert!(second.carrier.link(id(1)).is_none());
}

#[test]
fn a_link_that_breaks_the_protocol_ends_and_comes_back() {
    let topology = system("shm-faults");
    for bytes in [8, 300] {
        let mut sides = [open(&topology, 1, 5, KINDS).unwrap(), open(&topology, 2, 6, MORE).unwrap()];
        for count in 1..=2u32 {
            link(&mut sides, &[1, 2]);
            assert_eq!(sides[1].send(1, 1, bytes, 1), Sent::Delivered);
            let strange = Header { kind: 1, ..header(1, bytes, 2) };
            assert_eq!(sides[1].carrier.send(now_ns(), id(1), &strange, &vec![2; bytes]), Sent::Delivered);
            assert_eq!(sides[1].send(1, 1, bytes, 3), Sent::Delivered);
            sides[1].carrier.flush(now_ns());
            let [first, second] = &mut sides;
            assert_eq!(frame(Some(report(first))), (2, 1));
            assert!(matches!(report(first), Report::Down { loss: Loss::Cut, .. }));
            let status = first.status(2);
            assert_eq!((status.violations, status.cuts), (count.into(), count.into()));
            let mut door = AcceptorStatus::default();
            first.carrier.describe_acceptor(&mut door);
            assert_eq!((first.carrier.refusals().faults, door.memory_faults), (count, count.into()));
            assert!(matches!(report(second), Report::Down { loss: Loss::Gone, .. }));
        }
        sides.iter_mut().for_each(|side| side.carrier.leave(now_ns()));
    }
}

/// The senders of what is at hand, one after the other, while nothing else happens.
fn senders(side: &mut Neighbour, most: usize) -> Vec<u32> {
    let at_hand = std::iter::from_fn(|| side.carrier.next_report(now_ns()));
    at_hand.take(most).map(|report| frame(Some(report)).0).collect()
}

#[test]
fn no_link_keeps_others_waiting_for_more_than_its_row() {
    let (_, mut sides) = linked("shm-rows", 3);
    for peer in [1, 2] {
        for tag in 0..80 {
            assert_eq!(sides[peer].send(1, 1, 8, tag), Sent::Delivered);
        }
        sides[peer].carrier.flush(now_ns());
    }
    // Both are looked at in every round from now on.
    assert!(sides[0].carrier.prepare_sleep());
    sides[0].carrier.finish_sleep();
    let came = senders(&mut sides[0], 1000);
    let rows: Vec<(u32, usize)> = came.chunk_by(|one, other| one == other).map(|row| (row[0], row.len())).collect();
    let (one, other) = (rows[0].0, rows[1].0);
    let expected = [(one, 32), (other, 32), (one, 32), (other, 32), (one, 16), (other, 16)];
    assert_eq!(rows, expected);
    // Who is alone has no row that ends.
    for tag in 0..80 {
        assert_eq!(sides[1].send(1, 1, 8, tag), Sent::Delivered);
    }
    assert_eq!(senders(&mut sides[0], 1000), [2; 80]);
    assert!(!sides[0].carrier.prepare_sleep());
    sides[0].carrier.finish_sleep();
}

#[test]
fn what_comes_on_an_idle_link_is_found_without_a_bell() {
    let (_, mut sides) = linked("shm-idle", 3);
    // Nothing is active: what was active has been forgotten for others.
    sides[0].carrier.active.clear();
    let (busy, idle) = (2, 3);
    let place = sides[0].carrier.enter(id(busy));
    sides[0].carrier.activate(place);
    assert_eq!(sides[2].send(1, 1, 8, 7), Sent::Delivered);
    let mut found = None;
    for round in 1..=200 {
        assert_eq!(sides[1].send(1, 1, 8, 1), Sent::Delivered);
        if senders(&mut sides[0], 1) == [idle] {
            found = Some(round);
            break;
        }
    }
    assert!(found.is_some_and(|round| round <= 64 + 32), "{found:?}");
    assert_eq!(sides[0].carrier.active.len(), 2);
}

#[test]
fn only_so_many_links_are_looked_at_in_every_round_the_latest_first() {
    let (_, mut sides) = linked("shm-active", 12);
    let carrier = &mut sides[0].carrier;
    carrier.active.clear();
    let places: Vec<u16> = (2..=12).map(|node| carrier.enter(id(node))).collect();
    for (count, place) in places.iter().enumerate() {
        carrier.activate(*place);
        carrier.activate(*place);
        let expected: Vec<u16> = places[..=count].iter().rev().take(8).copied().collect();
        assert_eq!(carrier.active, expected);
    }
    let ended = places[0];
    carrier.ended.push(ended);
    carrier.activate(ended);
    assert!(!carrier.active.contains(&ended), "it is drained apart from the others");
    carrier.ended.clear();
}

#[test]
fn links_that_have_ended_are_drained_beside_a_flood() {
    let (_, mut sides) = linked("shm-drain", 3);
    for tag in 0..5 {
        assert_eq!(sides[2].send(1, 1, 8, tag), Sent::Delivered);
    }
    sides[2].carrier.leave(now_ns());
    // The end is noticed; what it had sent is still there.
    while sides[0].carrier.ended.is_empty() {
        sides[0].turn();
    }
    assert!(sides[0].carrier.has_rest() && sides[0].carrier.prepare_sleep() && !sides[0].carrier.holds_reports());
    assert_eq!(sides[0].send(3, 1, 8, 1), Sent::Full, "what is sent to the dead is lost");
    let mut from_ended = 0;
    for round in 0..200 {
        assert_eq!(sides[1].send(1, 1, 8, 1), Sent::Delivered);
        match sides[0].carrier.next_report(now_ns()) {
            Some(Report::Frame { peer, header, .. }) if peer == id(3) => {
                assert_eq!(header.tag, from_ended);
                from_ended += 1;
            }
            Some(Report::Frame { .. }) => {}
            Some(Report::Down { peer, loss: Loss::Gone }) => {
                assert_eq!((peer, from_ended), (id(3), 5));
                assert!(round <= 7 * 8, "one of eight is the turn of those that have ended: {round}");
                return;
            }
            other => panic!("{other:?}"),
        }
    }
    panic!("the end was not reported");
}

#[test]
fn room_is_reported_once_and_only_to_who_was_refused() {
    let (_, mut sides) = linked("shm-room", 2);
    let mut sent = 0;
    while sides[0].send(2, 1, 8, sent) == Sent::Delivered {
        sent += 1;
    }
    assert_eq!(sides[0].send(2, 1, 8, 0), Sent::Full);
    // Control still has room.
    assert_eq!(sides[0].send(2, 0, 8, sent), Sent::Delivered);
    assert_eq!(sides[0].carrier.blocked.len(), 1);
    assert!((0..200).all(|_| sides[0].carrier.next_report(now_ns()).is_none()), "there is none");
    assert!(!sides[0].carrier.prepare_sleep());
    let tags: Vec<u32> = std::iter::from_fn(|| sides[1].next()).map(|report| frame(Some(report)).1).collect();
    assert_eq!(tags, (0..=sent).collect::<Vec<_>>());
    assert!(sides[0].carrier.prepare_sleep(), "there is room");
    sides[0].carrier.finish_sleep();
    assert!(matches!(report(&mut sides[0]), Report::Room { peer } if peer == id(2)));
    assert!(sides[0].next().is_none() && sides[0].carrier.blocked.is_empty());
    assert!(!sides[0].carrier.prepare_sleep());
}

#[test]
fn who_sleeps_is_rung_once_for_what_is_sent() {
    let (_, mut sides) = linked("shm-bells", 2);
    for side in &mut sides {
        while side.next().is_some() {}
        side.turn();
    }
    let is_rung = |side: &Neighbour| epoll::wait(&side.epoll, &mut [epoll::NO_EVENT; 4], Some(0)) > 0;
    sides[0].send(2, 1, 8, 1);
    sides[0].carrier.flush(now_ns());
    assert!(!is_rung(&sides[1]), "it does not sleep");
    assert_eq!(frame(sides[1].next()), (1, 1));
    assert!(!sides[1].carrier.prepare_sleep() && !sides[1].carrier.holds_reports() && !sides[1].carrier.has_rest());
    sides[0].send(2, 1, 8, 2);
    assert!(!is_rung(&sides[1]), "bells are for the end of a call");
    sides[0].carrier.flush(now_ns());
    assert!(is_rung(&sides[1]));
    sides[1].carrier.finish_sleep();
    sides[1].turn();
    assert_eq!(frame(sides[1].next()), (1, 2));
    sides[0].send(2, 1, 8, 3);
    sides[0].carrier.flush(now_ns());
    assert!(!is_rung(&sides[1]), "its sleep is over");
    // Before it sleeps itself, a node rings for what it has sent.
    assert_eq!(frame(sides[1].next()), (1, 3));
    assert!(!sides[1].carrier.prepare_sleep());
    sides[0].send(2, 1, 8, 4);
    sides[0].carrier.prepare_sleep();
    assert!(is_rung(&sides[1]));
}

#[test]
fn a_number_that_runs_is_taken_and_calls_in_vain_are_repeated() {
    let topology = system("shm-calls");
    let mut first = open(&topology, 1, 5, KINDS).unwrap();
    assert_eq!(open(&topology, 1, 6, KINDS).err(), Some(LinkError::NodeRuns));
    assert!(first.carrier.deadline_ns() > now_ns(), "nobody is wanted");
    first.carrier.want(now_ns(), id(2), true);
    let mut last_ns = 0;
    for pause_ms in [1u64, 2, 4, 8, 16, 20, 20] {
        assert!(matches!(first.carrier.next_report(now_ns()), Some(Report::Absent { peer }) if peer == id(2)));
        assert!(first.carrier.next_report(now_ns()).is_none(), "it is said once a call");
        let due_ns = first.carrier.peers[0].due_ns;
        assert_eq!(first.carrier.calls_due_ns, due_ns);
        if last_ns != 0 {
            assert_eq!(due_ns - last_ns, pause_ms * 1_000_000);
        }
        first.carrier.tick(due_ns - 1);
        assert!(first.carrier.next_report(now_ns()).is_none(), "not before");
        last_ns = due_ns;
        first.carrier.tick(due_ns);
        if pause_ms == 1 {
            // The first pause was reckoned from the clock.
            last_ns = due_ns;
        }
    }
    first.carrier.want(now_ns(), id(2), false);
    while first.carrier.next_report(now_ns()).is_some() {}
    first.carrier.tick(last_ns + 1_000_000_000);
    assert!(first.carrier.next_report(now_ns()).is_none());
}

#[test]
fn nodes_that_the_system_reaches_otherwise_are_strangers() {
    let mut near = system("shm-strangers");
    let place = |machine: &str| Place {
        shared_memory: Some(machine.into()),
        tcp: Some("127.0.0.1:1".into()),
        ..Place::default()
    };
    near.nodes.insert(id(1), place("a"));
    near.nodes.insert(id(2), place("a"));
    let mut far = near.clone();
    far.nodes.insert(id(1), place("b"));
    // One description says that they share memory, the other one that they do not.
    let mut sides = [open(&near, 1, 5, KINDS).unwrap(), open(&far, 2, 6, KINDS).unwrap()];
    sides[0].carrier.want(now_ns(), id(2), true);
    let mut turns = 0;
    while sides[1].carrier.refusals().strangers == 0 {
        turns += 1;
        assert!(turns < PATIENCE);
        sides.iter_mut().for_each(|side| drop(side.next()));
    }
    let mut door = AcceptorStatus::default();
    sides[1].carrier.describe_acceptor(&mut door);
    assert_eq!(door.memory_strangers, u64::from(sides[1].carrier.refusals().strangers));
    assert!(sides[1].carrier.linked.is_empty());
}

#[test]
fn a_class_without_budget_is_refused_and_hears_of_room_at_its_time() {
    let mut topology = system("shm-rules");
    let regulation = Regulation { messages_per_s: 1, messages_burst: 2, ..Regulation::NONE };
    let rule = ClassRule { class: class(3), regulation, filter: FilterRule::EACH };
    for node in 1..=3 {
        let rules = if node == 1 { vec![rule.clone()] } else { Vec::new() };
        topology.nodes.insert(id(node), Place { shared_memory: Some("a".into()), rules, ..Place::default() });
    }
    let mut sides: Vec<Neighbour> = (1..=3).map(|node| open(&topology, node, node, KINDS).unwrap()).collect();
    link(&mut sides, &[1, 2, 3]);
    let first = &mut sides[0];
    assert!(!first.carrier.take_held());
    assert_eq!([first.send(2, 3, 8, 1), first.send(2, 3, 8, 2), first.send(2, 1, 8, 3)], [Sent::Delivered; 3]);
    assert!(!first.carrier.take_held());
    let begin_ns = now_ns();
    assert_eq!(first.send(2, 3, 8, 4), Sent::Full);
    assert!(first.carrier.take_held() && !first.carrier.take_held(), "it is said once");
    assert_eq!([first.send(2, 2, 8, 5), first.send(3, 3, 8, 6)], [Sent::Delivered; 2], "others go on");
    assert_eq!((first.status(2).waited, first.status(3).waited), (Some(1), Some(0)));
    let due_ns = first.carrier.deadline_ns();
    assert!(due_ns > begin_ns + 500_000_000 && due_ns <= now_ns() + 1_000_000_000);
    let rooms = |side: &mut Neighbour, now_ns| {
        side.carrier.tick(now_ns);
        let reports = std::iter::from_fn(|| side.carrier.next_of_rest());
        reports.filter(|report| matches!(report, Report::Room { peer } if *peer == id(2))).count()
    };
    assert_eq!([rooms(first, due_ns - 1), rooms(first, due_ns), rooms(first, due_ns)], [0, 1, 0]);
}

#[test]
fn frames_of_a_word_are_taken_by_the_short_way() {
    let (_, mut sides) = linked("shm-brief", 2);
    let [first, second] = &mut sides[..] else { unreachable!("two") };
    let place = first.carrier.enter(id(2));
    assert!(first.carrier.brief_from(place).is_none(), "nothing has come");
    let text = 0x1122_3344_5566_7788u64;
    for bytes in [0, 1, 7, 8] {
        let word = &text.to_le_bytes()[..bytes];
        let sent = second.carrier.send(now_ns(), id(1), &header(1, bytes, 9), word);
        assert_eq!(sent, Sent::Delivered);
        let before = first.status(2);
        let (node, header, word) = first.carrier.brief_from(place).unwrap();
        assert_eq!((node, header.length as usize, header.tag), (id(2), bytes, 9));
        let mask = if bytes == 8 { u64::MAX } else { (1 << (8 * bytes)) - 1 };
        assert_eq!(word & mask, text & mask);
        let after = first.status(2);
        assert_eq!(after.frames_received - before.frames_received, 1);
        assert_eq!(after.bytes_received - before.bytes_received, 24 + bytes as u64);
    }
    assert_eq!(second.send(1, 1, 9, 3), Sent::Delivered);
    assert!(first.carrier.brief_from(place).is_none(), "it is longer");
    assert_eq!(frame(first.carrier.receive_from(place)), (2, 3));
    // A header that says another length than came.
    let strange = Header { kind: 0, ..header(1, 4, 5) };
    assert_eq!(second.carrier.send(now_ns(), id(1), &strange, &[5; 8]), Sent::Delivered);
    assert!(first.carrier.brief_from(place).is_none());
    assert!(matches!(first.carrier.next_of_rest(), Some(Report::Down { loss: Loss::Cut, .. })));
    assert_eq!(first.carrier.refusals().faults, 1);
}

#[test]
fn short_frames_are_told_from_long_ones_and_lend_their_bytes() {
    let (_, mut sides) = linked("shm-short", 2);
    let [first, second] = &mut sides[..] else { unreachable!("two") };
    assert!(!second.carrier.has_short_frame(), "there is none");
    for (tag, bytes) in [(1, 8), (2, 96), (3, 5000), (4, 1)] {
        assert_eq!(first.send(2, 1, bytes, tag), Sent::Delivered);
    }
    first.carrier.flush(now_ns());
    assert_eq!(frame(Some(report(second))), (1, 1));
    assert!(second.carrier.has_short_frame());
    let place = second.carrier.next_place().unwrap();
    let arrival = second.carrier.arrival_from(place).unwrap();
    let data = second.carrier.take_data().unwrap();
    assert_eq!((arrival.header.tag, arrival.placed), (2, Placed::Copied(96)));
    assert_eq!(data[..96], [2; 96]);
    assert!(second.carrier.take_data().is_none() && second.carrier.payload_of(place, arrival.placed).is_none());
    second.carrier.give_data_back(data);
    assert!(
        matches!(second.carrier.payload_of(place, arrival.placed), Some(Payload::Owned(bytes)) if bytes == [2; 96])
    );
    assert!(!second.carrier.has_short_frame(), "the next one is long");
    assert_eq!(frame(Some(report(second))), (1, 3));
    assert!(second.carrier.has_short_frame());
    // What is to be reported first comes first.
    second.carrier.reports.push_back(Report::Room { peer: id(1) });
    assert!(!second.carrier.has_short_frame());
}

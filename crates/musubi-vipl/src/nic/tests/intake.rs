//! A node that takes only so much of a class, from one or several others.

use musubi_transport::Regulation;
use proptest::prelude::*;

use super::*;
use crate::wire::NicFrame;

const A: fn() -> NodeId = || node(0, 0);
const OTHER: fn() -> NodeId = || node(2, 0);
const B: fn() -> NodeId = || node(1, 0);
const MS: u64 = 1_000_000;
const CLASS: u8 = 3;

/// Nodes of which the last takes no more of the class than this.
fn bounded(nodes: &[NodeId], regulation: Regulation) -> World {
    let mut world = World::new(nodes);
    let intake = ClassIntake { class: Priority::new(CLASS).unwrap(), regulation };
    for host in world.hosts.values_mut() {
        host.nic.describe(Host::directory(&[intake], &[1]));
    }
    world
}

fn messages(messages_per_s: u32, messages_burst: u32) -> Regulation {
    Regulation { messages_per_s, messages_burst, ..Regulation::NONE }
}

/// Posts so many receives and sends of so many bytes.
fn post(world: &mut World, (from, a): (NodeId, ViNumber), b: ViNumber, count: usize, bytes: u32) {
    for index in 0..count {
        world.host(B()).post_plain(b, Queue::Receive, index % 100, 0, 8192);
        world.host(from).post_plain(a, Queue::Send, index % 100, 0, bytes);
    }
    world.settle();
}

/// Messages that have come by an instant.
fn come_by(world: &mut World, b: ViNumber, now_ns: u64) -> usize {
    world.now_ns = now_ns;
    world.tick();
    world.settle();
    world.host(B()).all_done(b, Queue::Receive).len()
}

fn has_errors(world: &mut World) -> bool {
    world.hosts.values_mut().any(|host| !host.errors().is_empty() || host.nic.refused() > 0)
}

#[test]
fn what_is_not_granted_waits_and_comes_in_order() {
    let mut world = bounded(&[A(), B()], messages(10, 4));
    let (a, b) = world.connect(A(), B(), PLAIN());
    let (c, d) = world.connect(A(), B(), ViAttributes { class: 5, ..PLAIN() });
    post(&mut world, (A(), a), b, 10, 100);
    assert_eq!(come_by(&mut world, b, 2), 4, "the burst");
    post(&mut world, (A(), c), d, 50, 100);
    assert_eq!(world.host(B()).all_done(d, Queue::Receive).len(), 50, "another class");
    let counts = world.host(A()).nic.class_counts(CLASS);
    assert_eq!((counts.uncredited, counts.uncredited_bytes), (1, 100), "the first in line");
    let mut came = 0;
    for step in 1..=30 {
        let now = come_by(&mut world, b, step * 100 * MS);
        assert!(now <= 1, "{now} at a time");
        came += now;
    }
    assert_eq!(came, 6);
    let sent: Vec<usize> = world.host(A()).all_done(a, Queue::Send).into_iter().map(|(index, _)| index).collect();
    assert_eq!(sent, (0..10).collect::<Vec<usize>>());
    assert!(!has_errors(&mut world));
}

#[test]
fn bytes_are_granted_too_and_a_large_message_leaves_a_debt() {
    let mut world = bounded(&[A(), B()], Regulation { bytes_per_s: 1000, bytes_burst: 500, ..Regulation::NONE });
    let (a, b) = world.connect(A(), B(), PLAIN());
    post(&mut world, (A(), a), b, 4, 1500);
    assert_eq!(come_by(&mut world, b, 2), 1, "one more than the burst goes");
    assert_eq!(come_by(&mut world, b, 900 * MS), 0);
    // 1000 bytes are owed, and 1500 more after the next.
    let came: usize = (10..40).map(|step| come_by(&mut world, b, step * 100 * MS)).sum();
    assert_eq!(came, 2);
    assert!(!has_errors(&mut world));
}

#[test]
fn writes_and_reads_are_counted_as_messages() {
    let mut world = bounded(&[A(), B()], messages(10, 2));
    let (a, b) = world.connect(A(), B(), PLAIN());
    let (to, handle) = (world.host(B()).address(BUFFERS), world.host(B()).handle);
    let (from, own) = (world.host(A()).address(BUFFERS), world.host(A()).handle);
    for (index, control) in [(0, 1), (1, 2), (2, 1), (3, 2)] {
        world.host(A()).write(index, control, &[(to, handle, 0), (from, own, 8)], 0);
        world.host(A()).post(a, Queue::Send, index).unwrap();
    }
    world.settle();
    assert_eq!(world.host(A()).all_done(a, Queue::Send).len(), 2);
    come_by(&mut world, b, 101 * MS);
    come_by(&mut world, b, 202 * MS);
    assert_eq!(world.host(A()).all_done(a, Queue::Send).len(), 2);
    assert!(!has_errors(&mut world));
}

#[test]
fn a_new_link_begins_anew() {
    let mut world = bounded(&[A(), B()], messages(1000, 4));
    for _ in 0..3 {
        let (a, b) = world.connect(A(), B(), PLAIN());
        post(&mut world, (A(), a), b, 3, 10);
        let now_ns = world.now_ns;
        assert_eq!(come_by(&mut world, b, now_ns + 1000 * MS), 3);
        world.cut(A(), B());
        world.settle();
        world.host(A()).errors();
        world.host(B()).errors();
    }
}

fn inject(world: &mut World, frame: &NicFrame, to: ViName, class: u8, payload: &[u8]) {
    let class = Priority::new(class).unwrap();
    let header = frame.header(to, class, payload.len() as u32);
    world.report(B(), Report::Frame { peer: A(), header, payload: Payload::Owned(payload.to_vec()) });
}

#[test]
fn who_sends_beyond_its_credit_loses_that_connection_and_nobody_else_anything() {
    let mut world = bounded(&[A(), B()], messages(10, 2));
    let (_, b) = world.connect(A(), B(), PLAIN());
    let (c, d) = world.connect(A(), B(), PLAIN());
    let (e, f) = world.connect(A(), B(), ViAttributes { class: 5, ..PLAIN() });
    let name =
        |world: &mut World, vi: ViNumber| world.host(B()).nic.vis.get(vi.0).unwrap().connection.as_ref().unwrap().here;
    let (of_b, of_d) = (name(&mut world, b), name(&mut world, d));
    let message = NicFrame::Send { bytes: 1, offset: 0, immediate: None };
    for index in 0..5 {
        world.host(B()).post_plain(b, Queue::Receive, index, 0, 8);
    }
    for _ in 0..4 {
        inject(&mut world, &message, of_b, CLASS, &[1]);
    }
    assert_eq!((world.host(B()).state(b), world.host(B()).nic.class_counts(CLASS).beyond), (ViState::Error, 2));
    assert_eq!(world.host(B()).all_done(b, Queue::Receive).iter().filter(|(_, status)| !status.is_error()).count(), 2);
    // By the credit of another class neither.
    inject(&mut world, &message, of_d, 5, &[1]);
    assert_eq!(world.host(B()).state(d), ViState::Error);
    world.settle();
    assert_eq!(world.host(A()).state(c), ViState::Error);
    post(&mut world, (A(), e), f, 20, 10);
    assert_eq!(world.host(B()).all_done(f, Queue::Receive).len(), 20);
}

#[test]
fn grants_that_come_again_or_late_or_unasked_change_nothing() {
    let mut world = bounded(&[A(), B()], messages(10, 2));
    let (a, b) = world.connect(A(), B(), PLAIN());
    post(&mut world, (A(), a), b, 4, 10);
    assert_eq!(world.host(B()).all_done(b, Queue::Receive).len(), 2);
    let grant = |world: &mut World, class, messages| {
        let header = NicFrame::Grant { class, messages, bytes: 0 }.header(ViName::default(), Priority::MOST_URGENT, 0);
        world.report(A(), Report::Frame { peer: B(), header, payload: Payload::Owned(Vec::new()) });
        world.host(A()).wires.out.len()
    };
    assert_eq!([2, 1, 0, u32::MAX, (1 << 31) + 2].map(|total| grant(&mut world, CLASS, total)), [0; 5]);
    assert_eq!(grant(&mut world, 5, 9), 0);
    assert_eq!(grant(&mut world, 77, 9), 0);
    assert_eq!(world.host(A()).nic.refused(), 2);
    assert_eq!(grant(&mut world, CLASS, 3), 1, "what it has not granted is its own affair");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: if cfg!(miri) { 1 } else { 60 }, failure_persistence: None, ..ProptestConfig::default() })]
    /// Whatever is posted when, by whom and over what lines: no window has more than is stated, all comes, and nobody is left out.
    #[test]
    fn what_comes_is_within_the_bound_and_all_of_it_comes(
        (rate, burst) in (5..400u32, 1..40u32),
        counts in prop::collection::vec(1..60usize, 2),
        room in 1..4usize,
        steps_ms in prop::collection::vec(1..40u64, 5..40),
        numbered in any::<bool>(),
    ) {
        let mut world = bounded(&[A(), OTHER(), B()], messages(rate, burst));
        let senders = [A(), OTHER()];
        let vis: Vec<(ViNumber, ViNumber)> = senders.iter().map(|from| world.connect(*from, B(), PLAIN())).collect();
        for host in world.hosts.values_mut() {
            host.wires.room = room;
            host.wires.numbers = numbered.then(BTreeMap::new);
        }
        let mut came: Vec<(u64, usize)> = Vec::new();
        for ((from, (a, b)), count) in senders.iter().zip(&vis).zip(&counts) {
            post(&mut world, (*from, *a), *b, *count, 10);
        }
        let mut left = counts.clone();
        let mut take = |world: &mut World, left: &mut Vec<usize>| {
            for ((_, b), left) in vis.iter().zip(left) {
                let now = world.host(B()).all_done(*b, Queue::Receive).len();
                *left -= now;
                came.push((world.now_ns, now));
            }
        };
        take(&mut world, &mut left);
        for step in steps_ms.iter().copied().chain(core::iter::repeat_n(50, 1000)) {
            if left.iter().all(|left| *left == 0) {
                break;
            }
            world.now_ns += step * MS;
            world.tick();
            world.settle();
            take(&mut world, &mut left);
        }
        prop_assert_eq!(left, [0, 0]);
        prop_assert!(!has_errors(&mut world));
        for (first, (from_ns, _)) in came.iter().enumerate() {
            let mut sum = 0;
            for (at_ns, count) in &came[first..] {
                sum += *count as u64;
                let most = u64::from(rate) * (at_ns - from_ns) / 1_000_000_000 + 2 * u64::from(burst) + 1 + 2;
                prop_assert!(sum <= most, "{sum} in {} ns, at most {most}", at_ns - from_ns);
            }
        }
    }
}

#[test]
fn peers_that_all_want_more_get_alike() {
    let mut world = bounded(&[A(), OTHER(), B()], messages(1000, 10));
    let (a, b) = world.connect(A(), B(), PLAIN());
    let (c, d) = world.connect(OTHER(), B(), PLAIN());
    for _ in 0..4 {
        post(&mut world, (A(), a), b, 100, 10);
        post(&mut world, (OTHER(), c), d, 100, 10);
    }
    let (mut one, mut other) = (0, 0);
    for _ in 0..100 {
        world.now_ns += 2 * MS;
        world.tick();
        world.settle();
        one += world.host(B()).all_done(b, Queue::Receive).len();
        other += world.host(B()).all_done(d, Queue::Receive).len();
    }
    assert!(one.abs_diff(other) <= 10, "{one} and {other}");
    assert!((190..=220).contains(&(one + other)), "{one} and {other} in 200 ms");
}

#[test]
fn a_grant_that_comes_before_the_description_is_known_is_not_lost() {
    let mut world = bounded(&[A(), B()], messages(1000, 4));
    let described = world.host(A()).nic.directory().clone();
    world.host(A()).nic.describe(Directory { nics: Vec::new() });
    world.connect_links(A(), B());
    world.settle();
    let Host { nic, wires, .. } = world.host(A());
    nic.describe(described);
    nic.see_links(wires);
    let (a, b) = world.connect(A(), B(), PLAIN());
    post(&mut world, (A(), a), b, 2, 10);
    assert_eq!(world.host(B()).all_done(b, Queue::Receive).len(), 2);
    assert!(!has_errors(&mut world));
}

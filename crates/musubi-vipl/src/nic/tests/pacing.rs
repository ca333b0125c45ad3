//! VIs that keep to rates.

use musubi_transport::Regulation;

use super::*;

const A: fn() -> NodeId = || node(0, 0);
const B: fn() -> NodeId = || node(1, 0);
const MS: u64 = 1_000_000;

/// Ten messages a second, two at once.
const TEN: Regulation = Regulation { messages_per_s: 10, messages_burst: 2, ..Regulation::NONE };

/// Two connected VIs; the first keeps to these rates.
fn paced(regulation: Regulation) -> (World, ViNumber, ViNumber) {
    let mut world = World::new(&[A(), B()]);
    let (a, b) = (world.host(A()).vi(PLAIN()), world.host(B()).vi(PLAIN()));
    world.host(A()).nic.set_pace(a, regulation).unwrap();
    world.connect_vis((A(), a), (B(), b));
    world.tick();
    (world, a, b)
}

/// Posts so many receives and sends of 100 bytes.
fn post_all(world: &mut World, (a, b): (ViNumber, ViNumber), count: usize) {
    for index in 0..count {
        world.host(B()).post_plain(b, Queue::Receive, index, 100 * index, 100);
        world.host(A()).post_plain(a, Queue::Send, index, 100 * index, 100);
    }
    world.settle();
}

/// Lets time pass, and tells how many messages have come by then.
fn come_by(world: &mut World, b: ViNumber, now_ns: u64) -> usize {
    world.now_ns = now_ns;
    world.tick();
    world.settle();
    world.host(B()).all_done(b, Queue::Receive).len()
}

#[test]
fn messages_go_as_rates_allow_and_in_order() {
    let (mut world, a, b) = paced(TEN);
    post_all(&mut world, (a, b), 5);
    assert_eq!(world.host(B()).all_done(b, Queue::Receive).len(), 2, "the burst");
    let now_ns = world.now_ns;
    let Host { nic, wires, .. } = world.host(A());
    assert_eq!(nic.tick(now_ns, wires), now_ns + 100 * MS, "the next one's instant");
    assert_eq!(come_by(&mut world, b, now_ns + 100 * MS - 1), 0);
    assert_eq!(come_by(&mut world, b, now_ns + 100 * MS), 1);
    // Ticks that come late: what was saved meanwhile may go at once, and no more.
    assert_eq!(come_by(&mut world, b, now_ns + 10_000 * MS), 2);
    let sent: Vec<usize> = world.host(A()).all_done(a, Queue::Send).into_iter().map(|(index, _)| index).collect();
    assert_eq!(sent, [0, 1, 2, 3, 4]);
    let now_ns = world.now_ns;
    let Host { nic, wires, .. } = world.host(A());
    assert_eq!(nic.tick(now_ns, wires), u64::MAX, "nothing waits");
}

#[test]
fn bytes_count_as_well_and_a_full_link_costs_nothing_twice() {
    let (mut world, a, b) = paced(Regulation { bytes_per_s: 1000, bytes_burst: 200, ..Regulation::NONE });
    world.host(A()).wires.room = 0;
    post_all(&mut world, (a, b), 4);
    assert_eq!(world.host(B()).all_done(b, Queue::Receive).len(), 0);
    world.host(A()).wires.room = usize::MAX;
    world.host(A()).wires.full.clear();
    world.report(A(), Report::Room { peer: B() });
    world.settle();
    assert_eq!(world.host(B()).all_done(b, Queue::Receive).len(), 2);
    let now_ns = world.now_ns;
    assert_eq!(come_by(&mut world, b, now_ns + 99 * MS), 0);
    assert_eq!(come_by(&mut world, b, now_ns + 100 * MS), 1);
}

#[test]
fn what_waits_is_flushed_and_the_other_way_is_free() {
    let (mut world, a, b) = paced(TEN);
    post_all(&mut world, (a, b), 4);
    for index in 10..30 {
        world.host(A()).post_plain(a, Queue::Receive, index, 100 * index, 100);
        world.host(B()).post_plain(b, Queue::Send, index, 100 * index, 100);
    }
    world.settle();
    assert_eq!(world.host(A()).all_done(a, Queue::Receive).len(), 20);
    assert_eq!(world.host(A()).nic.set_pace(a, Regulation::NONE), Err(ViError::State));
    let Host { nic, wires, .. } = world.host(A());
    nic.disconnect(a, wires).unwrap();
    let flushed: Vec<(usize, bool)> = world
        .host(A())
        .all_done(a, Queue::Send)
        .into_iter()
        .map(|(index, status)| (index, status.is_error()))
        .collect();
    assert_eq!(flushed, [(0, false), (1, false), (2, true), (3, true)]);
    assert_eq!(world.host(A()).nic.set_pace(a, Regulation::NONE), Ok(()));
    let late_ns = world.now_ns + 10_000 * MS;
    world.now_ns = late_ns;
    world.tick();
    let Host { nic, wires, .. } = world.host(A());
    assert_eq!(nic.tick(late_ns, wires), u64::MAX);
    assert_eq!(nic.set_pace(ViNumber(0), TEN), Err(ViError::Parameter));
}

//! VIs of one class that want more than a link takes.

use proptest::prelude::*;

use super::super::turns::PART_COST;
use super::*;

const A: fn() -> NodeId = || node(0, 0);
const B: fn() -> NodeId = || node(1, 0);
/// Bytes of a piece.
const PIECE: u32 = 1024;

/// VIs of these weights and classes from A to B, each with a backlog of so many messages of so many bytes.
fn backlogged(of: &[(u8, u8, u32)], messages: usize) -> (World, Vec<ViName>) {
    let mut world = World::new(&[A(), B()]);
    let mut names = Vec::new();
    for node in [A(), B()] {
        world.host(node).nic.limit_payload(PIECE);
    }
    let vis: Vec<(ViNumber, ViNumber)> =
        of.iter().map(|(_, class, _)| world.connect(A(), B(), ViAttributes { class: *class, ..PLAIN() })).collect();
    world.host(A()).wires.room = 0;
    for ((weight, _, bytes), (a, b)) in of.iter().zip(vis) {
        let host = world.host(A());
        host.nic.set_weight(a, Weight::new(*weight).unwrap()).unwrap();
        names.push(host.nic.vis.get(a.0).unwrap().connection.as_ref().unwrap().there);
        for _ in 0..messages {
            world.host(B()).post_plain(b, Queue::Receive, 0, 0, 8192);
            world.host(A()).post_plain(a, Queue::Send, 0, 0, *bytes);
        }
    }
    (world, names)
}

/// Carries frames, a few at a time; gives to `see` each one's place in `names`, and what it costs.
fn carry(world: &mut World, names: &[ViName], room: usize, mut see: impl FnMut(usize, u64)) {
    world.host(A()).wires.room = room;
    world.host(A()).wires.full.clear();
    world.report(A(), Report::Room { peer: B() });
    while let Some((_, header, _)) = world.host(A()).wires.out.front() {
        let from = names.iter().position(|name| name.0 == header.to).unwrap();
        see(from, u64::from(PART_COST + header.length));
        world.carry_one(A());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: if cfg!(miri) { 1 } else { 40 }, failure_persistence: None, ..ProptestConfig::default() })]
    /// While all wait, what each has sent by weight is within a quantum of what it is due, so within two of any other's.
    #[test]
    fn shares_are_by_weight_within_one_quantum(
        of in prop::collection::vec((1..6u8, 1..4000u32), 2..6),
        room in 1..6usize,
    ) {
        let kinds: Vec<(u8, u8, u32)> = of.iter().map(|(weight, bytes)| (*weight, 3, *bytes)).collect();
        let messages = 60;
        let (mut world, names) = backlogged(&kinds, messages);
        let total: Vec<u64> = of.iter().map(|(_, bytes)| cost_of(*bytes) * messages as u64).collect();
        let quantum = f64::from(PIECE + PART_COST);
        let mut spent = std::vec![0u64; of.len()];
        let (mut order, mut frames) = (Ok(()), 0);
        carry(&mut world, &names, room, |from, cost| {
            spent[from] += cost;
            frames += 1;
            if spent.iter().zip(&total).any(|(spent, total)| spent == total) {
                return;
            }
            let by_weight = || spent.iter().zip(&of).map(|(spent, (weight, _))| *spent as f64 / f64::from(*weight));
            let (most, least) = (by_weight().fold(0.0, f64::max), by_weight().fold(f64::MAX, f64::min));
            // A quantum of the one whose turn it is, and less than one that another has saved.
            if most - least >= 2.0 * quantum {
                order = Err((most, least, frames));
            }
        });
        prop_assert_eq!(order, Ok(()));
        prop_assert_eq!(spent, total, "and nothing is lost");
    }
}

/// What a message of so many bytes costs, in pieces.
fn cost_of(bytes: u32) -> u64 {
    u64::from(bytes) + u64::from(bytes.div_ceil(PIECE).max(1)) * u64::from(PART_COST)
}

#[test]
fn a_large_message_is_one_piece_a_turn_and_small_ones_go_between() {
    let (mut world, names) = backlogged(&[(1, 3, 8192), (1, 3, 16)], 4);
    let mut order = Vec::new();
    carry(&mut world, &names, 2, |from, _| order.push(from));
    assert_eq!(order, [&[0, 1, 1, 0, 1, 1][..], &[0; 30]].concat());
}

#[test]
fn more_urgent_classes_go_first_and_who_comes_later_waits_behind() {
    let (mut world, names) = backlogged(&[(1, 5, 100), (1, 2, 100)], 5);
    let mut order = Vec::new();
    carry(&mut world, &names, 1, |from, _| order.push(from));
    assert_eq!(order, [1, 1, 1, 1, 1, 0, 0, 0, 0, 0]);
}

#[test]
fn a_vi_that_posts_while_others_wait_does_not_overtake_them() {
    let (mut world, names) = backlogged(&[(1, 3, 100), (1, 3, 100)], 1);
    let (c, d) = {
        let wires = &mut world.host(A()).wires;
        wires.full.clear();
        wires.room = usize::MAX;
        // The connection manager's frames are not held up by those who wait.
        world.connect(A(), B(), PLAIN())
    };
    assert_eq!(world.host(B()).nic.refused(), 0);
    world.host(B()).post_plain(d, Queue::Receive, 0, 0, 100);
    let last = world.host(A()).nic.vis.get(c.0).unwrap().connection.as_ref().unwrap().there;
    world.host(A()).post_plain(c, Queue::Send, 0, 0, 100);
    assert!(world.host(A()).wires.out.is_empty(), "it waits, though there is room");
    let names = [names, std::vec![last]].concat();
    let mut order = Vec::new();
    carry(&mut world, &names, usize::MAX, |from, _| order.push(from));
    assert_eq!(order, [0, 1, 2]);
    // Nobody waits any more: it goes at once.
    world.host(A()).post_plain(c, Queue::Send, 0, 0, 100);
    assert_eq!(world.host(A()).wires.out.len(), 1);
}

#[test]
fn who_is_gone_while_it_waits_is_passed_over() {
    let (mut world, names) = backlogged(&[(1, 3, 100), (1, 3, 100)], 1);
    let Host { nic, wires, .. } = world.host(A());
    let first = nic.vis.iter().next().map(|(number, _)| ViNumber(number)).unwrap();
    wires.room = usize::MAX;
    nic.disconnect(first, wires).unwrap();
    world.carry_one(A());
    let mut order = Vec::new();
    carry(&mut world, &names, usize::MAX, |from, _| order.push(from));
    assert_eq!(order, [1]);
}

#[test]
fn who_is_gone_in_the_middle_of_its_turn_holds_up_nobody() {
    let (mut world, names) = backlogged(&[(1, 3, 100), (1, 3, 100)], 3);
    let first = world.host(A()).nic.vis.iter().next().map(|(number, _)| ViNumber(number)).unwrap();
    let mut order = Vec::new();
    world.host(A()).wires.full.clear();
    world.host(A()).wires.room = 1;
    world.report(A(), Report::Room { peer: B() });
    world.host(A()).wires.room = usize::MAX;
    world.host(A()).wires.full.clear();
    let Host { nic, wires, .. } = world.host(A());
    nic.disconnect(first, wires).unwrap();
    while !world.host(A()).wires.out.is_empty() {
        world.carry_one(A());
    }
    carry(&mut world, &names, usize::MAX, |from, _| order.push(from));
    assert_eq!(order, [1, 1, 1]);
}

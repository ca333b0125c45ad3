//! Links that come up, carry, break and come back.

use std::sync::Arc;

use musubi_linux::clock::now_ns;
use musubi_transport::carrier::{Describe, Drive, Frames};
use musubi_transport::links::{Loss, Sent};
use musubi_transport::topology::Network;

use crate::node::{TestNode, id, linked, run, topology};

/// A payload that tells its number in each byte.
fn payload(number: u32) -> Vec<u8> {
    let length = [10, 1000, 40_000][number as usize % 3] + number as usize % 7;
    (0..length).map(|place| (number as usize * 31 + place) as u8).collect()
}

#[test]
fn frames_arrive_in_order_and_are_acknowledged() {
    let topology = Arc::new(topology(2, Network::default()));
    let (mut one, mut two) = linked(&topology);
    assert_eq!((one.seen.ups[0], two.seen.ups[0]), ((id(2), 1), (id(1), 1)));
    for number in 0..30 {
        assert_eq!(one.send(id(2), 1, number, &payload(number)), Sent::Numbered(u64::from(number) + 1));
    }
    run(&mut [&mut one, &mut two], "30 frames", |nodes| nodes[0].seen.acknowledged.last() == Some(&(id(2), 30)));
    assert_eq!(two.seen.frames.len(), 30);
    for (number, (from, header, bytes)) in two.seen.frames.iter().enumerate() {
        assert_eq!((*from, header.tag, bytes), (id(1), number as u32, &payload(number as u32)));
    }
}

#[test]
fn what_is_not_taken_in_is_not_read_any_more() {
    const ROUNDS: u32 = 300;
    let quiet =
        Network { heartbeat_ms: 600_000, silence_ms: 3_600_000, window_bytes: 256 * 1024, ..Network::default() };
    let (mut one, mut two) = linked(&Arc::new(topology(2, quiet)));
    let mut sent = 0;
    for _ in 0..ROUNDS {
        while let Sent::Numbered(number) = one.send(id(2), 1, 0, &[0; 1000]) {
            sent = number;
        }
        one.turn(0);
        two.look_away();
    }
    assert!(sent < 2000, "{sent} frames of 1000 bytes lie in the memory of a node that does not look at them");
    run(&mut [&mut one, &mut two], "all frames", |nodes| nodes[1].seen.frames.len() as u64 == sent);
}

#[test]
fn nobody_there_is_said_and_a_latecomer_is_linked() {
    let topology = Arc::new(topology(2, Network::default()));
    let mut one = TestNode::open(&topology, id(1));
    one.want(id(2));
    run(&mut [&mut one], "absence", |nodes| !nodes[0].seen.absents.is_empty());
    assert_eq!(one.send(id(2), 1, 0, b"x"), Sent::NoLink);
    let mut two = TestNode::open(&topology, id(2));
    run(&mut [&mut one, &mut two], "a link", |nodes| nodes.iter().all(|node| node.seen.ups.len() == 1));
}

#[test]
fn cuts_lose_and_duplicate_nothing() {
    const FRAMES: u32 = 3000;
    let topology = Arc::new(topology(2, Network::default()));
    let (mut one, mut two) = linked(&topology);
    let (mut sent, mut cuts) = ([0; 2], 0);
    run(&mut [&mut one, &mut two], "all frames, both ways", |nodes| {
        for (at, peer) in [(0, id(2)), (1, id(1))] {
            while sent[at] < FRAMES
                && let Sent::Numbered(_) = nodes[at].send(peer, 1 + (sent[at] % 4) as u8, sent[at], &payload(sent[at]))
            {
                sent[at] += 1;
            }
        }
        if nodes[1].seen.frames.len() / 100 > cuts {
            cuts = nodes[1].seen.frames.len() / 100;
            let (at, peer) = if cuts % 2 == 0 { (0, id(2)) } else { (1, id(1)) };
            nodes[at].carrier.break_connection(now_ns(), peer);
        }
        nodes.iter().all(|node| node.seen.frames.len() == FRAMES as usize)
    });
    assert!(cuts >= 10, "{cuts}");
    for node in [&one, &two] {
        assert_eq!((node.seen.ups.len(), node.seen.downs.len()), (1, 0));
        for class in 1..=4_u8 {
            let of_class = node.seen.frames.iter().filter(|(_, header, _)| header.class.class() == class);
            for (turn, (_, header, bytes)) in of_class.enumerate() {
                let number = turn as u32 * 4 + u32::from(class) - 1;
                assert_eq!((header.tag, bytes), (number, &payload(number)));
            }
        }
        assert!(node.carrier.sessions().all(|(_, _, counts)| counts.resumed >= 5 && counts.violations == 0));
        let other = id(if node.me == id(1) { 2 } else { 1 });
        let link = node.carrier.link(other).unwrap();
        assert!(link.resumed >= 5 && link.connections > link.resumed && link.state == 1, "{link:?}");
        assert!(link.bytes_received > link.frames_received * 24 && link.rtt_ns > 0, "{link:?}");
    }
}

#[test]
fn both_may_dial_at_once() {
    for _ in 0..50 {
        let topology = Arc::new(topology(2, Network::default()));
        let (mut one, mut two) = (TestNode::open(&topology, id(1)), TestNode::open(&topology, id(2)));
        one.want(id(2));
        two.want(id(1));
        let all_up = |nodes: &mut [&mut TestNode]| nodes.iter().all(|node| node.seen.ups.len() == 1);
        run(&mut [&mut one, &mut two], "a link", all_up);
        assert!(matches!(one.send(id(2), 1, 1, b"there"), Sent::Numbered(1)));
        assert!(matches!(two.send(id(1), 1, 1, b"back"), Sent::Numbered(1)));
        let all_here = |nodes: &mut [&mut TestNode]| nodes.iter().all(|node| node.seen.frames.len() == 1);
        run(&mut [&mut one, &mut two], "both frames", all_here);
        assert!(one.seen.downs.is_empty() && two.seen.downs.is_empty());
    }
}

#[test]
fn who_leaves_says_so_after_all_it_has_sent() {
    let topology = Arc::new(topology(2, Network::default()));
    let (mut one, mut two) = linked(&topology);
    for number in 0..50 {
        assert!(matches!(one.send(id(2), 1, number, &payload(number)), Sent::Numbered(_)));
    }
    let leaving = std::thread::spawn(move || {
        one.carrier.leave(now_ns());
        one
    });
    run(&mut [&mut two], "the goodbye", |nodes| !nodes[0].seen.downs.is_empty());
    assert_eq!((two.seen.frames.len(), &two.seen.downs[..]), (50, &[(id(1), Loss::Gone)][..]));
    let mut one = leaving.join().unwrap();
    assert_eq!(one.send(id(2), 1, 0, b"x"), Sent::NoLink);
}

#[test]
fn who_has_gone_is_said_to_be_absent() {
    let (mut one, two) = linked(&Arc::new(topology(2, Network::default())));
    drop(std::thread::spawn(move || {
        let mut two = two;
        two.carrier.leave(now_ns());
    }));
    run(&mut [&mut one], "absence", |nodes| nodes[0].seen.absents == [id(2)]);
    assert_eq!(one.seen.downs, [(id(2), Loss::Gone)]);
}

#[test]
fn a_successor_is_another_incarnation() {
    let topology = Arc::new(topology(2, Network::default()));
    let (mut one, two) = linked(&topology);
    drop(two);
    let mut two = TestNode::try_open(&topology, id(2), 2).unwrap();
    run(&mut [&mut one, &mut two], "the successor", |nodes| nodes[0].seen.ups.len() == 2);
    assert_eq!(one.seen.ups[1], (id(2), 2));
    assert_eq!(one.seen.downs, [(id(2), Loss::Gone)]);
}

#[test]
fn what_is_gone_for_too_long_is_given_up() {
    let network = Network { resume_ms: 200, ..Network::default() };
    let topology = Arc::new(topology(2, network));
    let (mut one, two) = linked(&topology);
    drop(two);
    run(&mut [&mut one], "the end of the link", |nodes| !nodes[0].seen.downs.is_empty());
    assert_eq!(one.seen.downs, [(id(2), Loss::Cut)]);
}

/// Bytes that `node` has written to its link with `peer`.
fn bytes_sent(node: &TestNode, peer: u32) -> u64 {
    node.carrier.link(id(peer)).map_or(0, |link| link.bytes_sent)
}

#[test]
fn what_is_held_back_goes_out_when_it_is_released_or_enough_for_a_write() {
    let (mut one, mut two) = linked(&Arc::new(topology(2, Network::default())));
    let before = bytes_sent(&one, 2);
    one.carrier.hold();
    for number in 0..3 {
        assert!(matches!(one.send(id(2), 1, number, &payload(number)), Sent::Numbered(_)));
    }
    assert_eq!(bytes_sent(&one, 2), before, "nothing is written yet");
    one.carrier.release(now_ns());
    let released = bytes_sent(&one, 2);
    assert!(released > before + 41_000, "all is written: {before} {released}");
    one.carrier.hold();
    for number in 3..15 {
        assert!(matches!(one.send(id(2), 1, number, &payload(number)), Sent::Numbered(_)));
    }
    assert!(bytes_sent(&one, 2) > released, "160 KB are not held back");
    one.carrier.release(now_ns());
    // From now on as ever.
    assert!(matches!(one.send(id(2), 1, 15, &payload(15)), Sent::Numbered(_)));
    run(&mut [&mut one, &mut two], "all frames", |nodes| nodes[1].seen.frames.len() == 16);
    for (number, (_, header, bytes)) in two.seen.frames.iter().enumerate() {
        assert_eq!((header.tag, bytes), (number as u32, &payload(number as u32)));
    }
}

#[test]
fn what_is_held_back_survives_a_cut_of_its_link() {
    let (mut one, mut two) = linked(&Arc::new(topology(2, Network::default())));
    one.carrier.hold();
    for number in 0..6 {
        assert!(matches!(one.send(id(2), 1, number, &payload(number)), Sent::Numbered(_)));
        if number == 3 {
            one.carrier.break_connection(now_ns(), id(2));
        }
    }
    one.carrier.release(now_ns());
    run(&mut [&mut one, &mut two], "all frames", |nodes| nodes[0].seen.acknowledged.last() == Some(&(id(2), 6)));
    assert_eq!((two.seen.frames.len(), one.seen.downs.len()), (6, 0));
}

//! VIs whose messages wait for receives, over links that are full, end, and number what they take.

use super::*;

const A: fn() -> NodeId = || node(0, 0);
const B: fn() -> NodeId = || node(1, 0);
const CREDITED: fn() -> ViAttributes = || ViAttributes { credit: true, ..PLAIN() };

fn received(world: &mut World, at: NodeId, vi: ViNumber) -> usize {
    world.settle();
    let done = world.host(at).all_done(vi, Queue::Receive);
    assert!(done.iter().all(|(_, status)| !status.is_error()));
    done.len()
}

#[test]
fn receives_of_before_the_connection_are_told_and_what_is_beyond_waits() {
    for other in [B(), A()] {
        let nodes = [A(), B()];
        let mut world = World::new(&nodes);
        let (a, b) = (world.host(A()).vi(CREDITED()), world.host(other).vi(CREDITED()));
        for index in 0..3 {
            world.host(A()).post_plain(a, Queue::Receive, index, 0, 8);
            world.host(other).post_plain(b, Queue::Receive, 10 + index, 0, 8);
        }
        world.connect_vis((A(), a), (other, b));
        for index in 20..25 {
            world.host(A()).post_plain(a, Queue::Send, index, 0, 8);
            world.host(other).post_plain(b, Queue::Send, 10 + index, 0, 8);
        }
        assert_eq!((received(&mut world, other, b), received(&mut world, A(), a)), (3, 3));
        assert_eq!(world.host(A()).all_done(a, Queue::Send).len(), 3);
        world.host(other).post_plain(b, Queue::Receive, 40, 0, 8);
        world.host(A()).post_plain(a, Queue::Receive, 41, 0, 8);
        assert_eq!((received(&mut world, other, b), received(&mut world, A(), a)), (1, 1));
        assert_eq!((world.host(A()).state(a), world.host(other).state(b)), (ViState::Connected, ViState::Connected));
        assert_eq!(world.host(A()).nic.refused(), 0);
        // What waits is flushed, and the next connection begins anew.
        world.disconnect(A(), a);
        world.disconnect(other, b);
        assert!(world.host(A()).all_done(a, Queue::Send).iter().filter(|(_, status)| status.is_error()).count() == 1);
        world.connect_vis((A(), a), (other, b));
        world.host(A()).post_plain(a, Queue::Send, 20, 0, 8);
        assert_eq!(received(&mut world, other, b), 0);
        world.host(other).post_plain(b, Queue::Receive, 10, 0, 8);
        assert_eq!(received(&mut world, other, b), 1);
    }
}

/// Connects two VIs, as client and server or as peers.
fn connect(world: &mut World, are_peers: bool, (a, b): (ViNumber, ViNumber)) {
    if !are_peers {
        return world.connect_vis((A(), a), (B(), b));
    }
    for (here, vi, nic, there) in [(A(), a, 0, 1), (B(), b, 1, 0)] {
        let until_ns = world.now_ns + 1_000_000_000;
        let Host { nic: state, wires, .. } = world.host(here);
        state.request_peer(vi, at(nic, "p"), at(there, "p"), until_ns, wires).unwrap();
    }
    world.settle();
    for (here, vi) in [(A(), a), (B(), b)] {
        assert!(matches!(world.host(here).nic.take_outcome(vi), Some(Ok(_))));
    }
}

#[test]
fn a_side_that_only_receives_tells_with_the_connection() {
    for (are_peers, a_sends) in [(false, false), (false, true), (true, false), (true, true)] {
        let mut world = World::new(&[A(), B()]);
        let (a, b) = (world.host(A()).vi(CREDITED()), world.host(B()).vi(CREDITED()));
        let [(here, sends), (there, receives)] = if a_sends { [(A(), a), (B(), b)] } else { [(B(), b), (A(), a)] };
        world.host(there).post_plain(receives, Queue::Receive, 0, 0, 8);
        connect(&mut world, are_peers, (a, b));
        world.host(here).post_plain(sends, Queue::Send, 1, 0, 8);
        assert_eq!(received(&mut world, there, receives), 1, "peers: {are_peers}, the first sends: {a_sends}");
    }
}

#[test]
fn full_links_and_numbered_frames_lose_no_count() {
    for seed in 0..if cfg!(miri) { 2 } else { 100 } {
        let mut dice = Dice::new(seed + 1);
        let mut world = World::new(&[A(), B()]);
        for node in [A(), B()] {
            world.host(node).wires.numbers = Some(BTreeMap::new());
        }
        let (a, b) = world.connect(A(), B(), CREDITED());
        let mut counts = [[0usize; 3]; 2];
        for _ in 0..200 {
            let side = dice.below(2) as usize;
            let (here, vi) = [(A(), a), (B(), b)][side];
            match dice.below(5) {
                0 if counts[side][0] < 60 => {
                    world.host(here).post_plain(vi, Queue::Receive, counts[side][0], 0, 8);
                    counts[side][0] += 1;
                }
                1 if counts[side][1] < 60 => {
                    world.host(here).post_plain(vi, Queue::Send, 64 + counts[side][1] % 60, 0, 8);
                    counts[side][1] += 1;
                }
                2 => world.host(here).wires.room = 1 + dice.below(3) as usize,
                _ => {
                    world.carry_one(here);
                }
            }
        }
        world.settle();
        for (side, (here, vi)) in [(0, (A(), a)), (1, (B(), b))] {
            counts[side][2] = received(&mut world, here, vi);
            assert_eq!(world.host(here).state(vi), ViState::Connected);
        }
        assert_eq!(counts[0][2], counts[0][0].min(counts[1][1]), "seed {seed}");
        assert_eq!(counts[1][2], counts[1][0].min(counts[0][1]), "seed {seed}");
    }
}

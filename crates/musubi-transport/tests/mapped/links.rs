//! What links say of frames, of room, and of nodes that come and go.

use std::collections::VecDeque;

use proptest::prelude::*;

use musubi_transport::links::{Links as _, Loss, Sent};
use musubi_transport::mapped::Refusals;
use musubi_transport::running::Running as _;

use crate::world::{BEGIN_NS, Heard, Node, Running, World, frame, header, heard, id, send, settle, text};

/// Time between two reports that somebody is not there.
const ABSENT_NS: u64 = 20_000_000;

fn refusals(node: &Node) -> Refusals {
    node.with(|_, links| links.refusals()).unwrap()
}

#[test]
fn two_that_begin_ring_and_meet_once() {
    let world = World::of(3);
    let (one, _) = world.start::<false>(0);
    assert_eq!([0, 1, 2].map(|place| world.desk.rings(place)), [0, 1, 1], "who begins rings everybody else");
    let (other, _) = world.start::<false>(1);
    assert_eq!([0, 1, 2].map(|place| world.desk.rings(place)), [1, 0, 1]);
    for (node, rung) in [(&one, [0, 1, 0]), (&other, [1, 0, 0]), (&one, [0, 1, 0])] {
        node.serve().unwrap();
        assert_eq!([0, 1, 2].map(|place| world.desk.rings(place)), rung, "what is said in a meeting is rung for");
    }
    other.serve().unwrap();
    assert_eq!(heard(&one), [Heard::Up(id(1), 1)]);
    assert_eq!(heard(&other), [Heard::Up(id(0), 1)]);
    assert_eq!([0, 1, 2].map(|place| world.desk.rings(place)), [1, 0, 0]);
    settle(&[&one, &other]);
    assert_eq!([0, 1, 2].map(|place| world.desk.rings(place)), [0, 0, 0], "and nothing else is");
}

#[test]
fn payloads_of_every_length_come_as_they_were() {
    let (_, [(one, _), (other, _)]) = World::pair();
    for (number, bytes) in [0, 1, 8, 94, 95, 96, 399, 400, 401, 1000, 4095, 4096].into_iter().enumerate() {
        let number = number as u32;
        assert_eq!(send(&one, id(1), bytes, number), Sent::Delivered);
        settle(&[&other]);
        assert_eq!(heard(&other), [frame(id(0), bytes, number)], "{bytes} bytes");
    }
    assert!(other.with(|keeper, _| keeper.short_is_short).unwrap());
    assert_eq!(refusals(&one), Refusals::default());
    for count in 1..=2 {
        assert_eq!(send(&one, id(1), 4097, 0), Sent::Delivered);
        settle(&[&other]);
        assert_eq!(heard(&other), []);
        assert_eq!(refusals(&one), Refusals { faults: 0, too_long: count });
    }
}

#[test]
fn only_linked_nodes_of_the_table_can_be_sent_to() {
    let world = World::of(2);
    let (one, _) = world.start::<false>(0);
    let knows = |node| one.with(|_, links| links.knows(node)).unwrap();
    assert_eq!([id(0), id(1), id(2)].map(knows), [false, true, false]);
    assert_eq!([send(&one, id(1), 8, 0), send(&one, id(2), 8, 0)], [Sent::NoLink, Sent::NoLink]);
    let (other, _) = world.start::<false>(1);
    settle(&[&one, &other]);
    assert_eq!(send(&one, id(1), 8, 0), Sent::Delivered);
    assert_eq!(send(&other, id(0), 8, 0), Sent::Delivered);
    assert_eq!(send(&one, id(2), 8, 0), Sent::NoLink);
    one.with(|_, links| links.want(id(2), true)).unwrap();
}

#[test]
fn each_link_has_its_turn() {
    let world = World::of(3);
    let nodes: Vec<Node> = (0..3).map(|place| world.start(place).0).collect();
    settle(&[&nodes[0], &nodes[1], &nodes[2]]);
    nodes.iter().for_each(|node| drop(heard(node)));
    for number in 0..3 {
        for from in [1, 2] {
            assert_eq!(send(&nodes[from], id(0), 8, number), Sent::Delivered);
        }
    }
    settle(&[&nodes[0]]);
    let from: Vec<_> = heard(&nodes[0])
        .into_iter()
        .map(|heard| match heard {
            Heard::Frame(peer, ..) => peer,
            other => panic!("{other:?}"),
        })
        .collect();
    let (one, other) = if from[0] == id(1) { (id(1), id(2)) } else { (id(2), id(1)) };
    assert_eq!(from, [one, other, one, other, one, other]);
}

#[test]
fn who_is_wanted_and_absent_is_reported_every_20_ms() {
    let world = World::of(3);
    let (one, seat) = world.start::<false>(0);
    let want = |peer, wanted| one.with(|_, links| links.want(id(peer), wanted)).unwrap();
    let look = || {
        one.serve().unwrap();
        heard(&one)
    };
    assert_eq!(look(), []);
    want(1, true);
    assert_eq!(look(), [Heard::Absent(id(1))]);
    assert_eq!(look(), [], "it is said once");
    // A wait looks again just then.
    seat.rests();
    let deadline = one.within(ABSENT_NS + 1);
    assert_eq!(one.wait_for(deadline, |_, _| None::<()>).unwrap_err(), musubi_transport::LinkError::Timeout);
    assert_eq!(heard(&one), [Heard::Absent(id(1))]);
    assert!(seat.rests().contains(&(BEGIN_NS + ABSENT_NS)));
    world.desk.pass_to(BEGIN_NS + 2 * ABSENT_NS - 1);
    assert_eq!(look(), []);
    world.desk.pass_to(BEGIN_NS + 2 * ABSENT_NS);
    assert_eq!(look(), [Heard::Absent(id(1))]);
    want(1, false);
    world.desk.pass_to(BEGIN_NS + 9 * ABSENT_NS);
    assert_eq!(look(), []);

    // Who is there but has not been met is not absent; nor is who has been.
    want(1, true);
    let (other, _) = world.start::<false>(1);
    assert_eq!(look(), []);
    settle(&[&one, &other]);
    assert_eq!(heard(&one), [Heard::Up(id(1), 1)]);
    world.desk.pass_to(BEGIN_NS + 20 * ABSENT_NS);
    assert_eq!(look(), []);
    // Nor who is not wanted, though it is not there.
    assert_eq!(heard(&other), [Heard::Up(id(0), 1)]);
    other.finish().unwrap();
    assert_eq!(look(), [Heard::Down(id(1), Loss::Gone), Heard::Absent(id(1))], "at once");
}

#[test]
fn what_was_committed_comes_before_the_end() {
    let (world, [(one, _), (other, _)]) = World::pair();
    for number in 0..5 {
        send(&one, id(1), 8, number);
    }
    one.finish().unwrap();
    assert_eq!(world.desk.rings(1), 1, "the end is rung for");
    assert_eq!(send(&other, id(0), 8, 0), Sent::Delivered, "nobody has looked yet");
    settle(&[&other]);
    let mut expected: Vec<Heard> = (0..5).map(|number| frame(id(0), 8, number)).collect();
    expected.push(Heard::Down(id(0), Loss::Gone));
    assert_eq!(heard(&other), expected);
    assert_eq!(send(&other, id(0), 8, 0), Sent::NoLink);

    let (one, _) = world.start::<false>(0);
    settle(&[&one, &other]);
    assert_eq!(heard(&other), [Heard::Up(id(0), 2)]);
    assert_eq!(heard(&one), [Heard::Up(id(1), 1)]);
}

#[test]
fn who_begins_anew_is_reported_down_and_up_and_a_dropped_node_down() {
    let (world, [(one, _), (other, _)]) = World::pair();
    send(&other, id(0), 8, 1);
    let again = world.start::<false>(0).0;
    // The former run is not called any more, as if its program had been killed.
    std::mem::forget(one);
    settle(&[&other, &again]);
    assert_eq!(heard(&other), [Heard::Down(id(0), Loss::Gone), Heard::Up(id(0), 2)]);
    assert_eq!(heard(&again), [Heard::Up(id(1), 1)], "nothing comes that was sent to another run");
    let handle = again.clone();
    drop(again);
    settle(&[&other]);
    assert_eq!(heard(&other), [], "a handle is left");
    drop(handle);
    settle(&[&other]);
    assert_eq!(heard(&other), [Heard::Down(id(0), Loss::Gone)]);
}

#[test]
fn to_who_has_ended_nothing_is_sent_while_it_is_drained() {
    let (_, [(one, _), (other, _)]) = World::pair();
    for number in 0..3 {
        send(&one, id(1), 8, number);
    }
    one.finish().unwrap();
    // One report at a time: the first look finds the end, and what was committed.
    let mut seen = Vec::new();
    let sent = other.wait_for(musubi_transport::mapped::Deadline::Poll, |keeper, links| {
        seen.extend(keeper.heard.drain(..));
        Some(links.send(id(0), &header(2, 8, 9), &text(9, 8)))
    });
    assert_eq!((sent, seen.len()), (Ok(Sent::Delivered), 0));
    settle(&[&other]);
    assert_eq!(heard(&other).last(), Some(&Heard::Down(id(0), Loss::Gone)));
}

#[test]
fn what_the_protocol_does_not_know_costs_the_link_and_it_comes_back() {
    let world = World::of(2);
    let (one, _): (Running<true>, _) = world.start(0);
    let (other, _) = world.start::<false>(1);
    for count in 1..=2 {
        (0..4).for_each(|_| {
            one.serve().unwrap();
            other.serve().unwrap();
        });
        heard(&one);
        assert_eq!(heard(&other).last(), Some(&Heard::Up(id(0), 1)));
        send(&one, id(1), 8, 1);
        one.with(|_, links| links.send(id(1), &header(2, 8, 0), &text(0, 8))).unwrap();
        let strange = musubi_transport::frame::Header { kind: 1, ..header(2, 8, 0) };
        assert_eq!(one.with(|_, links| links.send(id(1), &strange, &text(0, 8))).unwrap(), Sent::Delivered);
        world.desk.rings(0);
        other.serve().unwrap();
        let came = heard(&other);
        assert_eq!(came[..2], [frame(id(0), 8, 1), frame(id(0), 8, 0)]);
        assert_eq!(came[2..], [Heard::Down(id(0), Loss::Cut)]);
        assert!(world.desk.rings(0) > 0, "who is cut off is told");
        assert_eq!(refusals(&other).faults, count);
        one.serve().unwrap();
        assert_eq!(heard(&one), [Heard::Down(id(1), Loss::Cut)]);
    }
}

#[test]
fn a_full_link_says_once_when_it_has_room() {
    for bytes in [8, 1000] {
        let (_, [(one, _), (other, _)]) = World::pair();
        let mut sent = 0;
        while send(&one, id(1), bytes, sent) == Sent::Delivered {
            sent += 1;
            assert!(sent <= 256, "it is bounded");
        }
        assert!(if bytes == 8 { sent > 100 } else { sent == 8 }, "{sent} frames of {bytes} bytes");
        assert_eq!(send(&one, id(1), bytes, sent), Sent::Full);
        settle(&[&one]);
        assert_eq!(heard(&one), [], "nothing was taken");
        settle(&[&other]);
        assert_eq!(heard(&other).len() as u32, sent);
        settle(&[&one, &other]);
        assert_eq!(heard(&one), [Heard::Room(id(1))]);
        assert_eq!(send(&one, id(1), bytes, sent), Sent::Delivered);
        settle(&[&one, &other]);
        assert_eq!(heard(&one), []);
        assert_eq!(heard(&other), [frame(id(0), bytes, sent)]);
    }
}

/// A step of a conversation of three nodes; numbers are taken modulo what there is.
#[derive(Clone, Copy, Debug)]
enum Step {
    Send { from: usize, to: usize, bytes: usize },
    Look { at: usize },
    Restart { at: usize },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        8 => (0..3usize, 1..3usize, prop_oneof![0..200usize, 0..4097usize]).prop_map(|(from, by, bytes)| Step::Send {
            from,
            to: (from + by) % 3,
            bytes
        }),
        4 => (0..3usize).prop_map(|at| Step::Look { at }),
        1 => (0..3usize).prop_map(|at| Step::Restart { at }),
    ];
    proptest::collection::vec(step, 1..400)
}

/// What is known of a conversation: who is linked, as each hears it, and what is under way.
struct Talk {
    world: World,
    nodes: Vec<Node>,
    runs: [u32; 3],
    is_up: [[Option<u32>; 3]; 3],
    under_way: [[VecDeque<(usize, u32)>; 3]; 3],
    is_full: [[bool; 3]; 3],
    next: u32,
}

impl Talk {
    fn take(&mut self, at: usize, heard: Heard) {
        let place = |peer: musubi_transport::NodeId| peer.node() as usize;
        match heard {
            Heard::Up(peer, run) => {
                assert_eq!(self.is_up[at][place(peer)].replace(run), None);
                self.is_full[at][place(peer)] = false;
            }
            Heard::Down(peer, loss) => {
                assert_eq!(loss, Loss::Gone);
                assert!(self.is_up[at][place(peer)].take().is_some());
                self.under_way[place(peer)][at].clear();
                self.is_full[at][place(peer)] = false;
            }
            Heard::Frame(peer, header, payload) => {
                let (bytes, value) = self.under_way[place(peer)][at].pop_front().expect("it was sent");
                assert_eq!(Heard::Frame(peer, header, payload), frame(peer, bytes, value));
            }
            Heard::Room(peer) => assert!(std::mem::take(&mut self.is_full[at][place(peer)])),
            Heard::Absent(peer) => panic!("nobody wants {peer}"),
        }
    }

    fn look(&mut self, at: usize) {
        self.nodes[at].serve().unwrap();
        heard(&self.nodes[at]).into_iter().for_each(|heard| self.take(at, heard));
    }

    fn step(&mut self, step: Step) {
        match step {
            Step::Look { at } => self.look(at),
            Step::Send { from, to, bytes } => {
                self.next += 1;
                match send(&self.nodes[from], id(to as u32), bytes, self.next) {
                    // What a peer's former run gets is lost with it; the report of its end comes.
                    Sent::Delivered if self.is_up[from][to] == Some(self.runs[to]) => {
                        self.under_way[from][to].push_back((bytes, self.next));
                    }
                    Sent::Delivered | Sent::Numbered(_) => assert!(self.is_up[from][to].is_some()),
                    Sent::Full => self.is_full[from][to] = true,
                    Sent::NoLink => assert_eq!(self.is_up[from][to], None),
                }
            }
            Step::Restart { at } => {
                self.runs[at] += 1;
                self.nodes[at].finish().unwrap();
                self.nodes[at] = self.world.start(at).0;
                for peer in 0..3 {
                    self.is_up[at][peer] = None;
                    self.is_full[at][peer] = false;
                    self.under_way[peer][at].clear();
                    // Who had not met that run yet hears nothing of it.
                    if self.is_up[peer][at].is_none() {
                        self.under_way[at][peer].clear();
                    }
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]
    /// Each frame comes once, in order, as it was sent, unless one of the two began anew; a link that was full says so once
    /// it is not; in the end all are linked with the others' last runs.
    #[test]
    fn three_talk_and_begin_anew_as_they_like(steps in steps()) {
        let world = World::of(3);
        let nodes = (0..3).map(|place| world.start(place).0).collect();
        let (is_up, under_way, is_full) = Default::default();
        let mut talk = Talk { world, nodes, runs: [1; 3], is_up, under_way, is_full, next: 0 };
        steps.into_iter().for_each(|step| talk.step(step));
        for _ in 0..6 {
            (0..3).for_each(|at| talk.look(at));
        }
        for at in 0..3 {
            for peer in (0..3).filter(|peer| *peer != at) {
                prop_assert_eq!(talk.is_up[at][peer], Some(talk.runs[peer]));
                prop_assert!(!talk.is_full[at][peer] && talk.under_way[at][peer].is_empty());
            }
        }
    }
}

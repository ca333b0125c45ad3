//! Peers that say anything at any step of a connection, or nothing: what it costs the others.
//!
//! What is shown: an honest node starts, restarts and runs beside such a peer, as who dials it and as who is dialed by it, with
//! TLS (and a valid certificate of that peer) and without; all that it sends to a third node and that comes from there
//! arrives once and in order.
//!
//! How it works: either each lie of a list ([`crate::liar`]), or an honest peer behind a line that spoils what goes through it
//! ([`crate::spoiler`]), by numbers that begin with a fixed seed.

use std::sync::Arc;
use std::time::Instant;

use musubi_transport::keys::{Authority, Validity};
use musubi_transport::links::Sent;
use musubi_transport::tcp::Counters;
use musubi_transport::topology::{Network, Topology};
use tempfile::TempDir;

use crate::liar::{LIES, Liar, call, server};
use crate::node::{PATIENCE, Seen, TestNode, id, run, topology};
use crate::refused::{client, encrypted, files, keys};
use crate::spoiler::Spoiler;

/// The third node. Its number differs from node 2's in both bytes of a hello: without TLS a hello is believed, and no single
/// byte that a line changes shall make node 2's one of this node's.
const THIRD: u32 = 769;
/// Frames that go either way between the honest nodes in each part of a test.
const FRAMES: usize = 20;

/// Impatient, so that silence costs little of the test's time.
fn impatient(network: Network) -> Network {
    Network { heartbeat_ms: 100, silence_ms: 400, resume_ms: 60_000, ..network }
}

/// Nodes 1, 2 and [`THIRD`].
fn three_nodes(keys: Option<&TempDir>) -> Topology {
    let network = keys.map_or_else(Network::default, encrypted);
    let mut topology = topology(3, impatient(network));
    let place = topology.nodes.remove(&id(3)).unwrap();
    topology.nodes.insert(id(THIRD), place);
    topology
}

/// Their keys.
fn their_keys() -> TempDir {
    let (keys, validity) = (keys(2, Validity::days(1)), Validity::days(1));
    let authority = Authority::load(keys.path(), "test").unwrap();
    authority.issue(id(THIRD), &files(keys.path(), id(THIRD)), validity, false).unwrap();
    keys
}

fn place(topology: &Topology, node: u32) -> String {
    topology.nodes[&id(node)].tcp.clone().unwrap()
}

fn counters(node: &TestNode) -> Counters {
    node.carrier.event_log().counters()
}

/// Nodes 1 and 3, which are honest, and what they have sent each other since node 1 began.
struct Honest {
    one: TestNode,
    three: TestNode,
    sent: [u32; 2],
    incarnation: u32,
}

impl Honest {
    fn start(topology: &Arc<Topology>) -> Honest {
        let (one, three) = (TestNode::open(topology, id(1)), TestNode::open(topology, id(THIRD)));
        let mut honest = Honest { one, three, sent: [0; 2], incarnation: 1 };
        honest.link();
        honest
    }

    fn link(&mut self) {
        self.three.want(id(1));
        [2, THIRD].into_iter().for_each(|peer| self.one.want(id(peer)));
    }

    /// Node 1 ends without a word and begins anew.
    fn restart(&mut self, topology: &Arc<Topology>) {
        self.incarnation += 1;
        // First, as nobody else can listen there meanwhile.
        let unused = TestNode::open(&Arc::new(crate::node::topology(1, Network::default())), id(1));
        drop(std::mem::replace(&mut self.one, unused));
        self.one = TestNode::try_open(topology, id(1), self.incarnation).unwrap();
        self.link();
        let incarnation = self.incarnation;
        run(&mut [&mut self.one, &mut self.three], "the restarted node", |nodes| {
            nodes[1].seen.ups.contains(&(id(1), incarnation))
        });
        // What the former node 1 had sent may have come, and its end.
        (self.sent, self.three.seen) = ([0; 2], Seen::default());
    }

    /// The two talk until that is so and [`FRAMES`] more have come either way.
    fn talk(&mut self, what: &str, mut so: impl FnMut(&TestNode) -> bool) {
        let begin = Instant::now();
        let enough = [self.sent[0], self.sent[1]].map(|sent| sent as usize + FRAMES);
        loop {
            let to_three = self.one.send(id(THIRD), 1, self.sent[0], &[3; 100]);
            self.sent[0] += u32::from(matches!(to_three, Sent::Numbered(_)));
            let to_one = self.three.send(id(1), 1, self.sent[1], &[1; 100]);
            self.sent[1] += u32::from(matches!(to_one, Sent::Numbered(_)));
            self.one.turn(1);
            self.three.turn(1);
            if so(&self.one) && self.came()[0] >= enough[0] && self.came()[1] >= enough[1] {
                return;
            }
            let log = || self.one.carrier.event_log().log();
            assert!(begin.elapsed() < PATIENCE, "{what}: {:?} of {enough:?}; {:#?}", self.came(), log());
        }
    }

    /// How many frames have come at node 3 from node 1 and the other way round: all, and in order.
    fn came(&self) -> [usize; 2] {
        [(&self.three, 1), (&self.one, THIRD)].map(|(node, peer)| {
            let of_peer = node.seen.frames.iter().filter(|(from, ..)| *from == id(peer));
            let tags: Vec<u32> = of_peer.map(|(_, header, _)| header.tag).collect();
            assert!(tags.iter().copied().eq(0..tags.len() as u32), "{tags:?}");
            assert!(!node.seen.downs.iter().any(|(from, _)| *from == id(peer)), "the link of the honest went down");
            tags.len()
        })
    }
}

/// Each lie, to who dials and from who calls, while node 1 starts, runs, and after it was restarted.
fn every_lie(keys: Option<&TempDir>) {
    for lie in LIES {
        let what = format!("{lie:?}, TLS {}", keys.is_some());
        let topology = Arc::new(three_nodes(keys));
        let liar = Liar::listen(&place(&topology, 2), lie, keys.map(|keys| server(keys.path(), 2)));
        let mut honest = Honest::start(&topology);
        for _restart in 0..2 {
            let met = liar.met();
            honest.talk(&what, |_| liar.met() > met);
            let accepted = counters(&honest.one).accepted;
            for _ in 0..3 {
                call(&place(&topology, 1), lie, keys.map(|keys| client(keys.path(), id(2))));
            }
            honest.talk(&what, |one| counters(one).accepted >= accepted + 3);
            honest.restart(&topology);
        }
        drop(liar);
        // An honest successor is linked.
        let mut two = TestNode::try_open(&topology, id(2), 9).unwrap_or_else(|error| panic!("{what}: {error}"));
        honest.talk(&what, |one| {
            two.turn(1);
            one.seen.ups.contains(&(id(2), 9))
        });
    }
}

#[test]
fn no_lie_of_a_peer_keeps_a_node_from_starting_or_touches_its_other_links() {
    every_lie(None);
}

#[test]
fn no_lie_of_a_peer_with_a_certificate_keeps_a_node_from_starting_or_touches_its_other_links() {
    let keys = their_keys();
    every_lie(Some(&keys));
}

#[test]
fn who_does_not_speak_tls_keeps_nobody_from_starting() {
    let keys = their_keys();
    for lie in [crate::liar::Lie::Nothing, crate::liar::Lie::Garbage, crate::liar::Lie::Half, crate::liar::Lie::Echo] {
        let topology = Arc::new(three_nodes(Some(&keys)));
        let liar = Liar::listen(&place(&topology, 2), lie, None);
        let mut honest = Honest::start(&topology);
        call(&place(&topology, 1), lie, None);
        honest.talk(&format!("{lie:?} without TLS"), |one| liar.met() > 0 && counters(one).accepted >= 2);
    }
}

/// Node 2 is honest, and both ways between it and node 1 go through lines that spoil what they carry.
fn spoiled(keys: Option<&TempDir>, seed: u64) {
    const CONNECTIONS: usize = 40;
    let what = format!("seed {seed}, TLS {}", keys.is_some());
    let of_two = three_nodes(keys);
    // Node 1 finds node 2 behind the one line, node 2 finds node 1 behind the other.
    let (mut of_one, mut of_two) = (of_two.clone(), of_two);
    let [ahead, back] = [crate::node::own_address(), crate::node::own_address()];
    let lines = [Spoiler::open(&ahead, &place(&of_two, 2), seed), Spoiler::open(&back, &place(&of_one, 1), !seed)];
    of_one.nodes.get_mut(&id(2)).unwrap().tcp = Some(ahead);
    of_two.nodes.get_mut(&id(1)).unwrap().tcp = Some(back);
    let (of_one, of_two) = (Arc::new(of_one), Arc::new(of_two));
    let mut two = TestNode::open(&of_two, id(2));
    let mut honest = Honest::start(&of_one);
    let carried = || lines.iter().map(Spoiler::carried).sum::<usize>();
    for _restart in 0..3 {
        let before = carried();
        two.want(id(1));
        let mut tag = 0;
        honest.talk(&what, |_| {
            tag += 1;
            // Whether it is taken, and what becomes of it, is not the question.
            let _ = two.send(id(1), (tag % 4) as u8 + 1, tag, &vec![2; tag as usize * 97 % 40_000]);
            two.turn(1);
            carried() >= before + CONNECTIONS
        });
        honest.restart(&of_one);
    }
    lines.iter().for_each(Spoiler::heal);
    let seen = honest.one.seen.frames.len();
    honest.talk(&what, |one| {
        let _ = two.send(id(1), 1, 1, b"healed");
        two.turn(1);
        one.seen.frames[seen.min(one.seen.frames.len())..]
            .iter()
            .any(|(from, _, bytes)| *from == id(2) && bytes == b"healed")
    });
}

#[test]
fn whatever_comes_instead_of_what_a_peer_said_the_others_start_link_and_talk() {
    for seed in [1, 2] {
        spoiled(None, seed);
    }
}

#[test]
fn whatever_comes_instead_of_what_a_peer_said_through_tls_the_others_start_link_and_talk() {
    let keys = their_keys();
    spoiled(Some(&keys), 3);
}

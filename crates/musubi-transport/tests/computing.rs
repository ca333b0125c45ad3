//! A node whose program computes: what it owes to others it gives in stated time.
#![cfg(feature = "std")]

mod loopback;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use musubi_mcapi::engine::{Outcome, RequestId, Sending};
use musubi_mcapi::process::Running as Node;
use musubi_mcapi::{EndpointId, NodeId};
use musubi_transport::runtime::{Deadline, DeadlineExt, Options, TICK_NS};
use musubi_transport::topology::{Network, Place, Topology};

const PORT: u32 = 7;
/// Messages of a trial.
const ROUNDS: usize = 400;
/// A machine that is busy for a while makes its threads wait; a node that does not keep its ticks does so in every trial.
const TRIALS_MAX: u32 = 8;

fn id(node: u32) -> NodeId {
    NodeId::new(0, node).unwrap()
}

fn start(system: &Arc<Topology>, node: u32) -> Node {
    Node::start(Arc::clone(system), id(node), Options::default()).unwrap()
}

fn create(node: &Node, port: Option<u32>) -> EndpointId {
    node.with(|engine, links| engine.create_endpoint(port, links)).unwrap().unwrap()
}

fn outcome(node: &Node, request: RequestId) -> Outcome<musubi_transport::runtime::Block> {
    let soon = Deadline::after(Duration::from_secs(30));
    node.wait_for(soon, |engine, _| engine.take_outcome(request).transpose()).unwrap().unwrap().unwrap()
}

fn send(node: &Node, from: EndpointId, to: EndpointId) {
    let soon = Deadline::after(Duration::from_secs(30));
    let sent = node.wait_for(soon, |engine, links| match engine.send_message(from, to, 0, b"work", links) {
        Ok(Sending::Blocked) => None,
        other => Some(other),
    });
    if let Sending::Confirming(request) = sent.unwrap().unwrap() {
        outcome(node, request);
    }
}

/// The receiver takes what is there, and is then away for times of all lengths about that of a tick.
fn work(node: &Node, inbox: EndpointId, stop: &AtomicBool) {
    for round in 0u64.. {
        if stop.load(Ordering::Relaxed) {
            return;
        }
        let take = || node.wait_for(Deadline::Poll, |engine, links| engine.receive_message(inbox, links).transpose());
        // All of it: a sender waits for credit, too.
        while take().is_ok() {}
        thread::sleep(Duration::from_nanos(round * 37 % 64 * TICK_NS / 16));
    }
}

/// Sends, one after the other; how long each took, in order.
fn waits(sender: &Node, from: EndpointId, to: EndpointId) -> Vec<Duration> {
    let wait = || {
        let begin = Instant::now();
        send(sender, from, to);
        let waited = begin.elapsed();
        // So slowly that its credit lasts until the receiver comes back.
        thread::sleep(Duration::from_micros(300));
        waited
    };
    let mut waits: Vec<Duration> = (0..ROUNDS).map(|_| wait()).collect();
    waits.sort_unstable();
    waits
}

/// Whether nine of ten waited for a tick and a half at most: the half is for a machine that does other things, too.
fn are_short(waits: &[Duration]) -> bool {
    let [median, most, longest] = [ROUNDS / 2, ROUNDS * 9 / 10, ROUNDS - 1].map(|at| waits[at]);
    println!(
        "a sender waited for {median:?} (median), {most:?} (90 of 100), {longest:?} at most; a tick is {TICK_NS} ns"
    );
    most <= Duration::from_nanos(TICK_NS + TICK_NS / 2) && longest < Duration::from_secs(1)
}

#[test]
fn a_sender_waits_for_a_tick_at_most_while_the_receiver_computes() {
    let place = || Place { tcp: Some(loopback::own_address()), ..Place::default() };
    let nodes: BTreeMap<NodeId, Place> = (1..=2).map(|node| (id(node), place())).collect();
    let system = Arc::new(Topology { system: "work".into(), hash: 3, nodes, network: Network::default() });
    let (sender, receiver) = (start(&system, 1), start(&system, 2));
    let (from, inbox) = (create(&sender, None), create(&receiver, Some(PORT)));
    let asked = sender.with(|engine, links| engine.get_endpoint((0, 2), PORT, links)).unwrap().unwrap();
    let Outcome::Endpoint(to) = outcome(&sender, asked) else { panic!("not an endpoint") };
    let stop = AtomicBool::new(false);
    let short = thread::scope(|scope| {
        scope.spawn(|| work(&receiver, inbox, &stop));
        let short = (0..TRIALS_MAX).any(|_| are_short(&waits(&sender, from, to)));
        stop.store(true, Ordering::Relaxed);
        short
    });
    assert!(short, "in each of {TRIALS_MAX} trials");
}

//! A program's event loop beside threads that call and wait at the same node: it is told of everything.
#![cfg(feature = "std")]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use musubi_mcapi::engine::{Outcome, RequestId, Sending};
use musubi_mcapi::process::Running as Node;
use musubi_mcapi::{EndpointId, Error, NodeId};
use musubi_transport::LinkError;
use musubi_transport::runtime::{Deadline, DeadlineExt, Options};
use musubi_transport::topology::{Network, Place, Topology};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// Inboxes of the loop, of a thread that waits, and of one that answers on the other node.
const LOOPS: u32 = 7;
const WAITERS: u32 = 8;
/// Longest sleep of a loop that misses nothing: whoever sleeps longer than that while something is there was not told.
const MISSED: Duration = Duration::from_secs(2);

fn id(node: u32) -> NodeId {
    NodeId::new(0, node).unwrap()
}

/// A system of two nodes that no other test uses.
fn system(by_network: bool) -> Arc<Topology> {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let process = std::process::id();
    let [low, high, ..] = process.to_le_bytes();
    let place = |node: u32| match by_network {
        true => {
            let tcp = Some(format!("127.{}.{low}.{}:7413", 64 + high % 128, 1 + 2 * count + node));
            Place { tcp, ..Place::default() }
        }
        false => Place { shared_memory: Some("here".into()), ..Place::default() },
    };
    let nodes: BTreeMap<NodeId, Place> = (1..=2).map(|node| (id(node), place(node))).collect();
    Arc::new(Topology { system: format!("loop-{process}-{count}"), hash: 3, nodes, network: Network::default() })
}

fn start(system: &Arc<Topology>, node: u32) -> Node {
    Node::start(Arc::clone(system), id(node), Options::default()).unwrap()
}

fn create(node: &Node, port: Option<u32>) -> EndpointId {
    node.with(|engine, links| engine.create_endpoint(port, links)).unwrap().unwrap()
}

fn soon() -> Deadline {
    Deadline::after(Duration::from_secs(30))
}

fn outcome(node: &Node, request: RequestId) -> Outcome<musubi_transport::runtime::Block> {
    node.wait_for(soon(), |engine, _| engine.take_outcome(request).transpose()).unwrap().unwrap().unwrap()
}

fn get(node: &Node, of: u32, port: u32) -> EndpointId {
    let request = node.with(|engine, links| engine.get_endpoint((0, of), port, links)).unwrap().unwrap();
    let Outcome::Endpoint(endpoint) = outcome(node, request) else { panic!("not an endpoint") };
    endpoint
}

fn send(node: &Node, from: EndpointId, to: EndpointId, number: u32) {
    let sent =
        node.wait_for(soon(), |engine, links| match engine.send_message(from, to, 0, &number.to_le_bytes(), links) {
            Ok(Sending::Blocked) => None,
            other => Some(other),
        });
    if let Sending::Confirming(request) = sent.unwrap().unwrap() {
        outcome(node, request);
    }
}

fn receive(node: &Node, at: EndpointId, deadline: Deadline) -> Result<u32, Error> {
    let message = node.wait_for(deadline, |engine, links| engine.receive_message(at, links).transpose())??;
    let mut bytes = [0; 4];
    message.payload.copy_to(&mut bytes);
    Ok(u32::from_le_bytes(bytes))
}

/// Sleeps as the node says. True if it was woken.
fn sleep(node: &Node, until_ns: u64) -> bool {
    let ns = until_ns.saturating_sub(node.now_ns()).min(MISSED.as_nanos() as u64);
    let timeout = Timespec { tv_sec: (ns / 1_000_000_000) as i64, tv_nsec: (ns % 1_000_000_000) as _ };
    poll(&mut [PollFd::new(node, PollFlags::IN)], Some(&timeout)).unwrap() > 0
}

/// A loop that takes `count` messages in order; it must never sleep while one is there.
fn run_loop(node: &Node, inbox: EndpointId, count: u32) {
    let (mut taken, mut slept) = (0, 0);
    let end = Instant::now() + Duration::from_secs(60);
    while taken < count {
        assert!(Instant::now() < end, "{taken} of {count} came");
        while let Ok(number) = receive(node, inbox, Deadline::Poll) {
            assert_eq!(number, taken);
            taken += 1;
        }
        if let Some(until_ns) = node.arm().unwrap() {
            slept += 1;
            let begin = Instant::now();
            if !sleep(node, until_ns) && begin.elapsed() >= MISSED {
                let there = node.with_arrivals(|engine, _| engine.messages_available(inbox)).unwrap();
                assert_eq!(there, Ok(0), "message {taken} was there, and the loop was not told");
            }
        }
    }
    assert!(slept > 0);
}

/// Pauses of many lengths, so that a message comes in every state of the node.
fn pause(round: u32) {
    let us = u64::from(round.wrapping_mul(0x9e37_79b1) >> 20);
    if !round.is_multiple_of(4) {
        thread::sleep(Duration::from_micros(us));
    }
}

/// Ends the others when it is dropped, also by a failure.
struct Stop<'s>(&'s AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// A loop beside a thread that waits all the time, one that calls now and then, and one that waits for short times.
fn crowded(by_network: bool) {
    const ROUNDS: u32 = 1500;
    let system = system(by_network);
    let (one, other) = (start(&system, 1), start(&system, 2));
    let (inbox, waiters) = (create(&one, Some(LOOPS)), create(&one, Some(WAITERS)));
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| (0..ROUNDS / 3).for_each(|number| assert_eq!(receive(&one, waiters, soon()), Ok(number))));
        scope.spawn(|| {
            for round in 0.. {
                if stop.load(Ordering::Relaxed) {
                    break;
                }
                pause(round);
                one.with(|engine, _| engine.messages_available(inbox)).unwrap().unwrap();
                let nothing = create(&one, None);
                let short = Deadline::after(Duration::from_micros(u64::from(round % 7) * 300));
                assert_eq!(receive(&one, nothing, short), Err(Error::Timeout));
                one.with(|engine, links| engine.delete_endpoint(nothing, links)).unwrap().unwrap();
            }
        });
        scope.spawn(|| {
            let from = create(&other, None);
            let (to_loop, to_waiter) = (get(&other, 1, LOOPS), get(&other, 1, WAITERS));
            for round in 0..ROUNDS {
                pause(round);
                send(&other, from, to_loop, round);
                if round % 3 == 0 && round / 3 < ROUNDS / 3 {
                    send(&other, from, to_waiter, round / 3);
                }
            }
        });
        let _stop = Stop(&stop);
        run_loop(&one, inbox, ROUNDS);
    });
}

#[test]
fn beside_other_threads_it_misses_nothing_over_shared_memory() {
    crowded(false);
}

#[test]
fn beside_other_threads_it_misses_nothing_over_tcp() {
    crowded(true);
}

#[test]
fn a_call_of_another_thread_takes_no_wake_up_away() {
    let system = system(false);
    let (one, other) = (start(&system, 1), start(&system, 2));
    let inbox = create(&one, Some(LOOPS));
    let (from, to) = (create(&other, None), get(&other, 1, LOOPS));
    for number in 0..200 {
        let until_ns = loop {
            if let Some(until_ns) = one.arm().unwrap() {
                break until_ns;
            }
        };
        thread::scope(|scope| {
            // Takes the links from the loop, and leaves.
            scope.spawn(|| one.with(|_, _| ()).unwrap());
        });
        send(&other, from, to, number);
        assert!(sleep(&one, until_ns), "message {number}: the loop was not told");
        assert_eq!(receive(&one, inbox, soon()), Ok(number));
    }
}

#[test]
fn the_end_of_the_node_wakes_it() {
    let system = system(false);
    let node = start(&system, 1);
    let inbox = create(&node, None);
    thread::scope(|scope| {
        // It may arm while another thread waits, too.
        scope.spawn(|| assert_eq!(receive(&node, inbox, soon()), Err(Error::NodeNotInitialized)));
        thread::sleep(Duration::from_millis(20));
        let until_ns = loop {
            if let Some(until_ns) = node.arm().unwrap() {
                break until_ns;
            }
        };
        node.finish().unwrap();
        assert!(sleep(&node, until_ns));
        assert_eq!(node.arm(), Err(LinkError::Ended));
    });
}

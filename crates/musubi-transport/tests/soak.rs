//! Many lives: nodes that start and end, and peers that come and are killed. Nothing is left of them.
#![cfg(feature = "std")]

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use musubi_mcapi::engine::{Outcome, RequestId, Sending};
use musubi_mcapi::process::Running as Node;
use musubi_mcapi::{EndpointId, NodeId};
use musubi_transport::runtime::{Deadline, DeadlineExt, Options};
use musubi_transport::topology::{Network, Place, Topology};

const INBOX: u32 = 7;
const CYCLES: u32 = 500;
const KILLS: u32 = 40;
/// Of these, those after which counting begins: threads have their memory, tables their size.
const WARM: u32 = 100;
/// Time in which the ends of earlier links are noticed.
const SETTLE: Duration = Duration::from_millis(500);
/// What the memory of a process may grow by meanwhile: pages that the allocator does not give back at once.
const GROWTH_KB: u64 = 4096;

/// In a process of its own: the counts are the process's. Also which peer a killed process is.
const ALONE: &str = "MUSUBI_TEST_ALONE";
const VICTIM: &str = "MUSUBI_TEST_VICTIM";

fn id(node: u32) -> NodeId {
    NodeId::new(0, node).unwrap()
}

/// Node 2 is reached by memory, node 3 by the network.
fn system(process: u32) -> Arc<Topology> {
    let [low, high, ..] = process.to_le_bytes();
    let tcp = |node: u32| Some(format!("127.{}.{low}.{node}:7415", 64 + high % 128));
    let here = || Some("here".to_string());
    let nodes: BTreeMap<NodeId, Place> = [
        (id(1), Place { shared_memory: here(), tcp: tcp(1), ..Place::default() }),
        (id(2), Place { shared_memory: here(), ..Place::default() }),
        (id(3), Place { tcp: tcp(3), ..Place::default() }),
    ]
    .into();
    let network = Network { resume_ms: 50, ..Network::default() };
    Arc::new(Topology { system: format!("soak-{process}"), hash: 3, nodes, network })
}

fn start(system: &Arc<Topology>, node: u32) -> Node {
    let begin = Instant::now();
    loop {
        match Node::start(Arc::clone(system), id(node), Options::default()) {
            Ok(node) => return node,
            // A killed process takes its time to go.
            Err(error) => assert!(begin.elapsed() < Duration::from_secs(20), "{error}"),
        }
        thread::sleep(Duration::from_millis(1));
    }
}

fn soon() -> Deadline {
    Deadline::after(Duration::from_secs(30))
}

fn outcome(node: &Node, request: RequestId) -> Outcome<musubi_transport::runtime::Block> {
    node.wait_for(soon(), |engine, _| engine.take_outcome(request).transpose()).unwrap().unwrap().unwrap()
}

fn create(node: &Node, port: Option<u32>) -> EndpointId {
    node.with(|engine, links| engine.create_endpoint(port, links)).unwrap().unwrap()
}

/// Sends a message of so many bytes to node 1.
fn send(node: &Node, bytes: usize) {
    let asked = node.with(|engine, links| engine.get_endpoint((0, 1), INBOX, links)).unwrap().unwrap();
    let Outcome::Endpoint(to) = outcome(node, asked) else { panic!("not an endpoint") };
    let (from, payload) = (create(node, None), vec![1; bytes]);
    let sent = node.wait_for(soon(), |engine, links| match engine.send_message(from, to, 0, &payload, links) {
        Ok(Sending::Blocked) => None,
        other => Some(other),
    });
    if let Sending::Confirming(request) = sent.unwrap().unwrap() {
        outcome(node, request);
    }
}

fn receive(node: &Node, inbox: EndpointId) {
    node.wait_for(soon(), |engine, links| engine.receive_message(inbox, links).transpose()).unwrap().unwrap();
}

/// Open descriptors, threads, kilobytes of memory in use.
fn possessions() -> (usize, usize, u64) {
    let count = |directory: &str| std::fs::read_dir(directory).unwrap().count();
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    (count("/proc/self/fd"), count("/proc/self/task"), resident.trim().trim_end_matches(" kB").parse().unwrap())
}

/// Waits until descriptors and threads are as before, as ends of links are noticed a little later; then compares memory.
fn compare(what: &str, before: (usize, usize, u64)) {
    let begin = Instant::now();
    let after = loop {
        let after = possessions();
        if (after.0, after.1) == (before.0, before.1) || begin.elapsed() > Duration::from_secs(5) {
            break after;
        }
        thread::sleep(Duration::from_millis(10));
    };
    println!("{what}: {before:?} before, {after:?} after (descriptors, threads, kilobytes)");
    assert_eq!((after.0, after.1), (before.0, before.1), "{what}: descriptors, threads");
    assert!(after.2 <= before.2 + GROWTH_KB, "{what}: {} kilobytes have become {}", before.2, after.2);
}

/// True in a process of its own, which the test starts.
fn is_alone(test: &str) -> bool {
    if std::env::var_os(ALONE).is_some() {
        return true;
    }
    let mut again = Command::new(std::env::current_exe().unwrap());
    again.args(["--exact", test, "--test-threads=1", "--nocapture"]).env(ALONE, "1");
    assert!(again.status().unwrap().success());
    false
}

#[test]
fn nodes_that_start_and_end_leave_nothing() {
    if !is_alone("nodes_that_start_and_end_leave_nothing") {
        return;
    }
    let system = system(std::process::id());
    let one = start(&system, 1);
    let inbox = create(&one, Some(INBOX));
    let mut before = None;
    for cycle in 0..CYCLES {
        if cycle == WARM {
            thread::sleep(SETTLE);
            before = Some(possessions());
        }
        let peers = [start(&system, 2), start(&system, 3)];
        for (peer, bytes) in peers.iter().zip([10, 2000]) {
            send(peer, bytes * (1 + cycle as usize % 20));
            receive(&one, inbox);
        }
        if cycle % 2 == 0 {
            peers[1].finish().unwrap();
        }
    }
    compare("peers that start and end", before.unwrap());
    drop(one);

    let mut before = None;
    for cycle in 0..CYCLES {
        if cycle == WARM {
            thread::sleep(SETTLE);
            before = Some(possessions());
        }
        let node = start(&system, 1);
        let inbox = create(&node, Some(INBOX));
        send(&node, 100);
        receive(&node, inbox);
    }
    compare("a node that starts and ends", before.unwrap());
}

/// Not a test: a node that sends until it is killed.
#[test]
fn victim() {
    let Ok(words) = std::env::var(VICTIM) else { return };
    let (node, process) = words.split_once(' ').unwrap();
    let node = start(&system(process.parse().unwrap()), node.parse().unwrap());
    send(&node, 10);
    println!("@sent");
    loop {
        send(&node, 3000);
    }
}

#[test]
fn peers_that_are_killed_leave_nothing() {
    if !is_alone("peers_that_are_killed_leave_nothing") {
        return;
    }
    let system = system(std::process::id());
    let one = start(&system, 1);
    let inbox = create(&one, Some(INBOX));
    let mut before = None;
    for round in 0..KILLS {
        if round == KILLS / 4 {
            thread::sleep(SETTLE);
            before = Some(possessions());
        }
        let mut victims: Vec<_> = [2, 3]
            .map(|node| {
                let mut command = Command::new(std::env::current_exe().unwrap());
                command.args(["--exact", "victim", "--nocapture", "--test-threads=1"]);
                let command = command.env(VICTIM, format!("{node} {}", std::process::id()));
                command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap()
            })
            .into();
        for victim in &mut victims {
            let mut lines = BufReader::new(victim.stdout.take().unwrap()).lines();
            while !lines.next().unwrap().unwrap().contains("@sent") {}
        }
        (0..20).for_each(|_| receive(&one, inbox));
        for victim in &mut victims {
            victim.kill().unwrap();
            victim.wait().unwrap();
        }
        // What is unread would fill the inbox.
        while one
            .wait_for(Deadline::after(Duration::from_millis(2)), |engine, links| {
                engine.receive_message(inbox, links).transpose()
            })
            .is_ok()
        {}
    }
    compare("peers that are killed", before.unwrap());
}

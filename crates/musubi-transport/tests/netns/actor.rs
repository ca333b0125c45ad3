//! A node in a process of its own, told by lines what to do, and what it counts.
//!
//! How it works: the test starts its own program again, in a namespace, with the system in the environment. Words of the
//! test go to its standard input; it answers each `count` with one line.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};

use musubi_linux::clock::now_ns;
use musubi_transport::NodeId;
use musubi_transport::links::{Loss, Sent};
use musubi_transport::topology::{Network, Place, Topology};

use crate::net::{Net, address};
use crate::node::{PATIENCE, TestNode, id};

/// The variable that makes this program an actor, and says which.
const ROLE: &str = "MUSUBI_TEST_ACTOR";
/// What a line with counts begins with.
const MARK: &str = "counted:";

/// What all nodes of a test have in common.
#[derive(Clone, Debug, Default)]
pub struct System {
    pub nodes: u32,
    pub silence_ms: u32,
    pub resume_ms: u32,
    /// Directory of keys; without it the network is insecure.
    pub keys: Option<String>,
}

impl System {
    fn topology(&self) -> Topology {
        let place = |node| Place { tcp: Some(address(node)), ..Place::default() };
        let network = Network {
            heartbeat_ms: self.silence_ms / 4,
            silence_ms: self.silence_ms,
            resume_ms: self.resume_ms,
            insecure: self.keys.is_none(),
            keys: self.keys.clone(),
            ..Network::default()
        };
        let nodes = (1..=self.nodes).map(|node| (id(node), place(node))).collect();
        Topology { system: "test".into(), hash: 7, nodes, network }
    }
}

/// What a node counts of its link with another one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counted {
    pub sent: u64,
    pub acknowledged: u64,
    /// Taken, and the link went down before they were acknowledged.
    pub reported_lost: u64,
    pub received: u64,
    /// Numbers that were jumped over, and numbers that came again or too late.
    pub missing: u64,
    pub again: u64,
    pub ups: u64,
    pub cuts: u64,
    pub gone: u64,
    pub connections: u64,
    /// One-way latency of frames, microseconds: median, 99th of 100, greatest.
    pub latency_us: [u64; 3],
}

impl Counted {
    fn line(&self) -> String {
        let [p50, p99, max] = self.latency_us;
        let counts = [self.sent, self.acknowledged, self.reported_lost, self.received, self.missing, self.again];
        let links = [self.ups, self.cuts, self.gone, self.connections, p50, p99, max];
        counts.iter().chain(&links).map(u64::to_string).collect::<Vec<_>>().join(" ")
    }

    fn parsed(line: &str) -> Counted {
        let numbers: Vec<u64> = line.split_whitespace().map(|word| word.parse().expect("a number")).collect();
        let [sent, acknowledged, reported_lost, received, missing, again, ups, cuts, gone, connections, p50, p99, max] =
            numbers[..]
        else {
            panic!("not what an actor says: {line}");
        };
        let latency_us = [p50, p99, max];
        Counted {
            sent,
            acknowledged,
            reported_lost,
            received,
            missing,
            again,
            ups,
            cuts,
            gone,
            connections,
            latency_us,
        }
    }
}

/// An actor, as the test sees it. Killed when dropped.
pub struct Actor {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Actor {
    pub fn start(net: &Net, system: &System, node: u32, incarnation: u32) -> Actor {
        let keys = system.keys.as_deref().unwrap_or("-");
        let numbers = [node, incarnation, system.nodes, system.silence_ms, system.resume_ms];
        let role = numbers.map(|number| number.to_string()).join(" ") + " " + keys;
        let program = std::env::current_exe().expect("this program");
        let mut child = Command::new("ip")
            .args(["netns", "exec", &net.namespace(node)])
            .arg(program)
            .args(["--exact", "actor", "--nocapture"])
            .env(ROLE, role)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("an actor");
        let input = child.stdin.take().expect("it is piped");
        let output = BufReader::new(child.stdout.take().expect("it is piped"));
        Actor { child, input, output }
    }

    pub fn say(&mut self, words: &str) {
        writeln!(self.input, "{words}").expect("the actor lives");
    }

    /// What it counts of its link with `peer`.
    pub fn count(&mut self, peer: u32) -> Counted {
        self.say(&format!("count {peer}"));
        loop {
            let mut line = String::new();
            let read = self.output.read_line(&mut line).expect("the actor lives");
            assert_ne!(read, 0, "the actor has ended");
            // The test's own framework says something first, on the same line.
            if let Some((_, counts)) = line.split_once(MARK) {
                return Counted::parsed(counts);
            }
        }
    }

    /// Asks until what it counts is so.
    pub fn until(&mut self, peer: u32, what: &str, so: impl Fn(&Counted) -> bool) -> Counted {
        let begin = Instant::now();
        loop {
            let counted = self.count(peer);
            if so(&counted) {
                return counted;
            }
            assert!(begin.elapsed() < PATIENCE, "not within {PATIENCE:?}: {what}: {counted:?}");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Sends it a signal: `KILL`, `STOP`, `CONT`. After `STOP` it does nothing any more.
    pub fn signal(&self, name: &str) {
        crate::signalling::signal(self.child.id(), name);
    }
}

impl Drop for Actor {
    fn drop(&mut self) {
        // It may have been killed by the test.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Plays an actor, if this process has been started as one.
pub fn play() {
    let Ok(role) = std::env::var(ROLE) else { return };
    let words: Vec<&str> = role.split(' ').collect();
    let number = |at: usize| words[at].parse::<u32>().expect("a number");
    let keys = (words[5] != "-").then(|| words[5].to_owned());
    let system = System { nodes: number(2), silence_ms: number(3), resume_ms: number(4), keys };
    let node = TestNode::try_open(&Arc::new(system.topology()), id(number(0)), number(1)).expect("a carrier");
    let (sender, lines) = mpsc::channel();
    std::thread::spawn(move || {
        std::io::stdin().lines().map_while(Result::ok).for_each(|line| drop(sender.send(line)));
    });
    Play { node, peers: BTreeMap::new() }.run(&lines);
}

/// A peer of an actor.
#[derive(Default)]
struct Peer {
    counted: Counted,
    /// Payload bytes of frames to it, how long between two (nanoseconds), and when the next is due.
    stream: Option<(usize, u64)>,
    due_ns: u64,
    next_tag: u32,
    expected_tag: u32,
    /// Of this link: frames taken, and how many of them are acknowledged.
    numbered: u64,
    settled: u64,
    latencies_us: Vec<u64>,
}

struct Play {
    node: TestNode,
    peers: BTreeMap<NodeId, Peer>,
}

/// Frames sent to one peer before looking at others.
const SENDS_MAX: usize = 64;

impl Play {
    fn run(mut self, lines: &Receiver<String>) {
        loop {
            loop {
                match lines.try_recv() {
                    Ok(line) => self.obey(&line),
                    Err(mpsc::TryRecvError::Empty) => break,
                    Err(mpsc::TryRecvError::Disconnected) => return,
                }
            }
            let busy = self.send();
            self.node.turn(u64::from(!busy));
            self.take();
        }
    }

    fn obey(&mut self, line: &str) {
        let mut words = line.split_whitespace();
        let word = words.next().unwrap_or_default();
        let mut number = || words.next().and_then(|word| word.parse::<u64>().ok()).unwrap_or_default();
        let id = id(number() as u32);
        let peer = self.peers.entry(id).or_default();
        match word {
            "link" => self.node.want(id),
            // stream PEER BYTES PAUSE_NS
            "stream" => (peer.stream, peer.due_ns) = (Some((number() as usize, number())), now_ns()),
            "rest" => peer.stream = None,
            "forget-latency" => peer.latencies_us.clear(),
            "count" => self.say_counts(id),
            other => panic!("not a word for actors: {other}"),
        }
    }

    fn say_counts(&mut self, id: NodeId) {
        let Some(peer) = self.peers.get_mut(&id) else { return };
        let session = self.node.carrier.sessions().find(|(node, ..)| *node == id);
        peer.counted.connections = session.map_or(0, |(_, _, counts)| counts.connections);
        let mut sorted = peer.latencies_us.clone();
        sorted.sort_unstable();
        let at = |part: usize| sorted.get(sorted.len() * part / 100).or(sorted.last()).copied().unwrap_or(0);
        peer.counted.latency_us = [at(50), at(99), at(100)];
        println!("{MARK} {}", peer.counted.line());
    }

    /// Sends what is due; true if more is.
    fn send(&mut self) -> bool {
        let mut busy = false;
        for (id, peer) in &mut self.peers {
            let Some((bytes, pause_ns)) = peer.stream else { continue };
            let mut payload = vec![peer.next_tag as u8; bytes.max(8)];
            for _ in 0..SENDS_MAX {
                let now = now_ns();
                if now < peer.due_ns {
                    break;
                }
                payload[..8].copy_from_slice(&now.to_le_bytes());
                let Sent::Numbered(number) = self.node.send(*id, 2, peer.next_tag, &payload) else { break };
                peer.numbered = number;
                peer.next_tag += 1;
                peer.counted.sent += 1;
                peer.due_ns = (peer.due_ns + pause_ns).max(now.saturating_sub(pause_ns));
                busy = true;
            }
        }
        busy
    }

    /// Counts what the links have reported.
    fn take(&mut self) {
        let seen = std::mem::take(&mut self.node.seen);
        // Within one round acknowledgements come before the end of the link, and the next link after it.
        for (from, number) in seen.acknowledged {
            let peer = self.peers.entry(from).or_default();
            peer.counted.acknowledged += number - peer.settled;
            peer.settled = number;
        }
        for (from, header, payload) in seen.frames {
            let peer = self.peers.entry(from).or_default();
            let sent_ns = u64::from_le_bytes(payload[..8].try_into().expect("8 bytes"));
            peer.latencies_us.push(now_ns().saturating_sub(sent_ns) / 1000);
            peer.counted.received += 1;
            match header.tag.checked_sub(peer.expected_tag) {
                Some(jumped) => {
                    peer.counted.missing += u64::from(jumped);
                    peer.expected_tag = header.tag + 1;
                }
                None => peer.counted.again += 1,
            }
        }
        for (from, loss) in seen.downs {
            let peer = self.peers.entry(from).or_default();
            match loss {
                Loss::Cut => peer.counted.cuts += 1,
                Loss::Gone => peer.counted.gone += 1,
            }
            peer.counted.reported_lost += peer.numbered - peer.settled;
            (peer.numbered, peer.settled) = (0, 0);
        }
        for (from, _) in seen.ups {
            self.peers.entry(from).or_default().counted.ups += 1;
        }
    }
}

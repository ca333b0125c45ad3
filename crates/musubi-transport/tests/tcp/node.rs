//! A node of its own for tests: a carrier, its epoll instance, and what it has reported.

#[path = "../loopback/mod.rs"]
mod loopback;

use std::sync::Arc;
use std::time::{Duration, Instant};

pub use loopback::own_address;
use musubi_linux::clock::now_ns;
use musubi_linux::descriptor::Descriptor;
use musubi_mcapi::engine::frame::{Header, KINDS, Kind};
use musubi_transport::carrier::{Drive, Frames};
use musubi_transport::links::{Loss, NoBlock, Payload, Report, Sent};
use musubi_transport::tcp::{self, TcpCarrier};
use musubi_transport::topology::{Network, Place, Topology};
use musubi_transport::{NodeId, Priority};
use rustix::buffer::spare_capacity;
use rustix::event::{Timespec, epoll};

/// Everything that is awaited must come within this time, or the test fails.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// The node of this number in domain 0.
pub fn id(node: u32) -> NodeId {
    NodeId::new(0, node).expect("within the limits")
}

/// A system of nodes 1 to `count`, all listening at loopback addresses of their own.
pub fn topology(count: u32, network: Network) -> Topology {
    let place = |_| Place { tcp: Some(own_address()), ..Place::default() };
    let nodes = (1..=count).map(|node| (id(node), place(node))).collect();
    Topology { system: "test".into(), hash: 7, nodes, network }
}

/// What a node has seen of its links.
#[derive(Debug, Default)]
pub struct Seen {
    pub ups: Vec<(NodeId, u32)>,
    pub downs: Vec<(NodeId, Loss)>,
    pub absents: Vec<NodeId>,
    /// Tag, value and payload bytes of frames, in order of arrival, with who sent them.
    pub frames: Vec<(NodeId, Header, Vec<u8>)>,
    pub acknowledged: Vec<(NodeId, u64)>,
    pub rooms: usize,
}

/// A node.
pub struct TestNode {
    pub me: NodeId,
    pub carrier: TcpCarrier,
    pub seen: Seen,
    epoll: Arc<Descriptor>,
}

impl TestNode {
    pub fn try_open(topology: &Arc<Topology>, me: NodeId, incarnation: u32) -> Result<TestNode, tcp::Error> {
        TestNode::try_open_on(Descriptor::epoll().expect("an epoll instance"), topology, me, incarnation)
    }

    /// The same with this epoll instance.
    pub fn try_open_on(
        epoll: Descriptor,
        topology: &Arc<Topology>,
        me: NodeId,
        incarnation: u32,
    ) -> Result<TestNode, tcp::Error> {
        let epoll = Arc::new(epoll);
        let carrier = TcpCarrier::open(Arc::clone(topology), me, incarnation, Arc::clone(&epoll), &KINDS)?;
        Ok(TestNode { me, carrier, seen: Seen::default(), epoll })
    }

    pub fn open(topology: &Arc<Topology>, me: NodeId) -> TestNode {
        TestNode::try_open(topology, me, 1).expect("a carrier")
    }

    pub fn want(&mut self, peer: NodeId) {
        self.carrier.want(now_ns(), peer, true);
    }

    pub fn want_no_more(&mut self, peer: NodeId) {
        self.carrier.want(now_ns(), peer, false);
    }

    /// Sends a packet.
    pub fn send(&mut self, peer: NodeId, class: u8, tag: u32, payload: &[u8]) -> Sent {
        let class = Priority::new(class).unwrap();
        let header = Header { class, tag, length: payload.len() as u32, ..Header::new(Kind::Packet as u8) };
        self.carrier.send(now_ns(), peer, &header, payload)
    }

    /// Takes note of ready descriptors, and not of what came.
    pub fn look_away(&mut self) {
        let mut events = Vec::with_capacity(32);
        let _ = epoll::wait(&self.epoll, spare_capacity(&mut events), Some(&Timespec { tv_sec: 0, tv_nsec: 0 }));
        events.into_iter().for_each(|event| self.carrier.ready(now_ns(), event.data.u64()));
        self.carrier.tick(now_ns());
    }

    /// One round: what is due, what has come, for at most `sleep_ms` waiting for something to come.
    pub fn turn(&mut self, sleep_ms: u64) {
        self.carrier.flush(now_ns());
        let mut events = Vec::with_capacity(32);
        let idle = !self.carrier.prepare_sleep();
        let due_ms = self.carrier.deadline_ns().saturating_sub(now_ns()).div_ceil(1_000_000);
        let sleep_ms = if idle { sleep_ms.min(due_ms) } else { 0 };
        let timeout = Timespec { tv_sec: 0, tv_nsec: (sleep_ms * 1_000_000) as i64 };
        let _ = epoll::wait(&self.epoll, spare_capacity(&mut events), Some(&timeout));
        self.carrier.finish_sleep();
        for event in events {
            self.carrier.ready(now_ns(), event.data.u64());
        }
        self.carrier.tick(now_ns());
        while let Some(report) = self.carrier.next_report(now_ns()) {
            self.seen.take(report);
        }
        self.carrier.flush(now_ns());
    }
}

impl Seen {
    fn take(&mut self, report: Report<NoBlock>) {
        match report {
            Report::Up { peer, incarnation } => self.ups.push((peer, incarnation)),
            Report::Down { peer, loss } => self.downs.push((peer, loss)),
            Report::Absent { peer } => self.absents.push(peer),
            Report::Acknowledged { peer, number } => self.acknowledged.push((peer, number)),
            Report::Room { .. } => self.rooms += 1,
            Report::Frame { peer, header, payload } => {
                let mut bytes = vec![0; payload.len()];
                payload.copy_to(&mut bytes);
                assert!(!matches!(payload, Payload::Lent(_)));
                self.frames.push((peer, header, bytes));
            }
        }
    }
}

/// Turns all nodes until `done`.
pub fn run(nodes: &mut [&mut TestNode], what: &str, mut done: impl FnMut(&mut [&mut TestNode]) -> bool) {
    let begin = Instant::now();
    while !done(nodes) {
        if begin.elapsed() >= PATIENCE {
            let logs: Vec<_> = nodes.iter().map(|node| (node.me, node.carrier.event_log().log())).collect();
            panic!("not within {PATIENCE:?}: {what}; logs: {logs:#?}");
        }
        nodes.iter_mut().for_each(|node| node.turn(1));
    }
}

/// Two nodes with a link.
pub fn linked(topology: &Arc<Topology>) -> (TestNode, TestNode) {
    let (mut one, mut two) = (TestNode::open(topology, id(1)), TestNode::open(topology, id(2)));
    one.want(id(2));
    run(&mut [&mut one, &mut two], "a link", |nodes| nodes.iter().all(|node| node.seen.ups.len() == 1));
    (one, two)
}

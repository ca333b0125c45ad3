//! A node's links by shared memory, driven as a runtime drives them, with nothing above.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use musubi_linux::clock::now_ns;
use musubi_linux::descriptor::Descriptor;
use musubi_mcapi::engine::frame::{Header, KINDS, Kind, class_of};
use musubi_transport::NodeId;
use musubi_transport::carrier::{Drive, Frames};
use musubi_transport::links::{Report, Sent};
use musubi_transport::shm::{Block, ShmCarrier};
use musubi_transport::topology::Topology;
use rustix::event::{Timespec, epoll};

/// Longest wait for anything; far beyond what is needed.
pub const PATIENCE: Duration = Duration::from_secs(20);

pub struct Driver {
    pub carrier: ShmCarrier,
    epoll: Arc<Descriptor>,
    /// Nodes that were reported up while another was awaited.
    up: BTreeMap<NodeId, u32>,
}

pub fn node(number: u32) -> NodeId {
    NodeId::new(0, number).unwrap()
}

/// A system of this test process alone.
pub fn system(name: &str) -> Arc<Topology> {
    Arc::new(Topology { system: format!("{name}-{}", std::process::id()), ..Topology::single_machine() })
}

impl Driver {
    pub fn open(topology: &Arc<Topology>, me: u32, incarnation: u32) -> Driver {
        Driver::try_open(topology, me, incarnation).unwrap()
    }

    pub fn try_open(topology: &Arc<Topology>, me: u32, incarnation: u32) -> Result<Driver, musubi_mcapi::Error> {
        let epoll = Arc::new(Descriptor::epoll().unwrap());
        let carrier = ShmCarrier::open(Arc::clone(topology), node(me), incarnation, Arc::clone(&epoll), &KINDS)?;
        Ok(Driver { carrier, epoll, up: BTreeMap::new() })
    }

    /// The next report; `None` if there is none by then.
    pub fn report_within(&mut self, wait: Duration) -> Option<Report<Block>> {
        let end = Instant::now() + wait;
        loop {
            if let Some(report) = self.carrier.next_report(now_ns()) {
                return Some(report);
            }
            let now = Instant::now();
            if now >= end {
                return None;
            }
            self.sleep(end - now);
        }
    }

    /// Sleeps in the kernel until something happens.
    pub fn sleep(&mut self, longest: Duration) {
        self.carrier.flush(now_ns());
        if !self.carrier.prepare_sleep() {
            let due_ns = self.carrier.deadline_ns().saturating_sub(now_ns());
            self.take(longest.min(Duration::from_nanos(due_ns)));
        }
        self.carrier.finish_sleep();
        self.take(Duration::ZERO);
        if self.carrier.deadline_ns() <= now_ns() {
            self.carrier.tick(now_ns());
        }
    }

    /// Takes what has happened.
    fn take(&mut self, wait: Duration) {
        let mut events = Vec::with_capacity(16);
        let wait = Timespec { tv_sec: wait.as_secs() as i64, tv_nsec: wait.subsec_nanos() as _ };
        let _ = epoll::wait(&self.epoll, rustix::buffer::spare_capacity(&mut events), Some(&wait));
        for event in events {
            self.carrier.ready(now_ns(), event.data.u64());
        }
    }

    pub fn report(&mut self) -> Report<Block> {
        self.report_within(PATIENCE).expect("nothing was reported")
    }

    /// Waits for a link with this node.
    pub fn await_up(&mut self, peer: u32) -> u32 {
        self.carrier.want(now_ns(), node(peer), true);
        loop {
            if let Some(incarnation) = self.up.remove(&node(peer)) {
                return incarnation;
            }
            match self.report() {
                Report::Up { peer, incarnation } => drop(self.up.insert(peer, incarnation)),
                Report::Absent { .. } => (),
                other => panic!("{other:?}"),
            }
        }
    }

    pub fn try_send(&mut self, peer: u32, number: u32, payload: &[u8]) -> Sent {
        let length = payload.len() as u32;
        let header = Header { tag: number, class: class_of(1), length, ..Header::new(Kind::Packet as u8) };
        self.carrier.send(now_ns(), node(peer), &header, payload)
    }

    /// Sends; waits for room if need be.
    pub fn send(&mut self, peer: u32, number: u32, payload: &[u8]) {
        while self.try_send(peer, number, payload) != Sent::Delivered {
            match self.report() {
                Report::Room { .. } => (),
                other => panic!("{other:?} instead of room"),
            }
        }
        self.carrier.flush(now_ns());
    }
}

/// Number and payload of a frame.
pub fn frame(report: Report<Block>) -> (u32, Vec<u8>) {
    let Report::Frame { header, payload, .. } = report else { panic!("{report:?} is no frame") };
    let mut bytes = vec![0; payload.len()];
    assert_eq!(payload.copy_to(&mut bytes), bytes.len());
    (header.tag, bytes)
}

pub fn pattern(number: u32, bytes: usize) -> Vec<u8> {
    (0..bytes).map(|index| (index as u32 * 13 + number * 7) as u8).collect()
}

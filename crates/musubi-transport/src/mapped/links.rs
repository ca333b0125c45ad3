//! The links of a node with all others that map the same memory.
//!
//! What you may rely on: no call waits. A peer that begins anew is reported down and then up, and what its
//! former run had committed comes before that. Whatever a peer writes costs its own link only, and is counted
//! ([`Refusals`]).
//!
//! How it works: one look at a link is two loads while nothing has come: the peer's offer, and the tag of the next record. Each
//! link has its turn. A peer is rung when something was said in a meeting, and for records and room only if it sleeps.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec;
use alloc::vec::Vec;

use musubi_core::lane::{Meeting, Payload as Placed, RECORD_BYTES_MAX, Turn};
use musubi_core::mapped::Host;

use crate::NodeId;
use crate::frame::{Header, Kinds};
use crate::links::{Links, Loss, NoBlock, Payload, Report, Sent, Short};
use crate::running::Ways;
use crate::shm::records::{self, Frame, Refused};

/// Time between two reports that a wanted node is not there, nanoseconds.
const ABSENT_NS: u64 = 20_000_000;

/// What was refused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Refusals {
    /// Links given up because the peer broke the protocol.
    pub faults: u32,
    /// Frames that are longer than a block, such as a large answer to an inspection; they were dropped.
    pub too_long: u32,
}

/// The links of one node.
#[derive(Debug)]
pub struct MappedLinks<B: 'static> {
    host: &'static B,
    kinds: &'static Kinds,
    pairs: Vec<Pair>,
    block_bytes: usize,
    reports: VecDeque<Report<NoBlock>>,
    /// Whose turn it is.
    turn: usize,
    absent_due_ns: u64,
    data: Box<[u8; RECORD_BYTES_MAX]>,
    refusals: Refusals,
}

#[derive(Debug)]
struct Pair {
    node: NodeId,
    /// Its place in the memory: whom to ring.
    place: u16,
    meeting: Meeting<'static>,
    wanted: bool,
    /// The peer has ended the link; it is drained.
    has_ended: bool,
    /// A frame was refused since the last report of room.
    is_blocked: bool,
    /// A frame was sent since the last look whether the peer sleeps.
    is_unflushed: bool,
}

impl<B: Host> MappedLinks<B> {
    pub(super) fn new(
        host: &'static B,
        meetings: impl Iterator<Item = Meeting<'static>>,
        nodes: &[NodeId],
        block_bytes: u32,
        kinds: &'static Kinds,
    ) -> MappedLinks<B> {
        let pairs = meetings.filter_map(|meeting| {
            let place = nodes.iter().position(|node| node.index() == usize::from(meeting.peer()))?;
            let (node, place) = (nodes[place], place as u16);
            let (wanted, has_ended) = (false, false);
            Some(Pair { node, place, meeting, wanted, has_ended, is_blocked: false, is_unflushed: false })
        });
        let mut links = MappedLinks {
            host,
            kinds,
            pairs: pairs.collect(),
            block_bytes: block_bytes as usize,
            reports: VecDeque::new(),
            turn: 0,
            absent_due_ns: u64::MAX,
            data: Box::new([0; RECORD_BYTES_MAX]),
            refusals: Refusals::default(),
        };
        links.pairs.iter_mut().for_each(|pair| pair.ring(host));
        links
    }

    /// What was refused so far.
    pub fn refusals(&self) -> Refusals {
        self.refusals
    }

    /// Nodes that are there and have another table, so that there is no link.
    pub fn strangers(&self) -> impl Iterator<Item = NodeId> {
        self.pairs.iter().filter(|pair| pair.meeting.is_refused()).map(|pair| pair.node)
    }

    /// The next thing that a link tells; each link has its turn.
    pub(super) fn next_report(&mut self, now_ns: u64) -> Option<Report<NoBlock>> {
        if self.absent_due_ns <= now_ns {
            self.report_absent(now_ns);
        }
        for _ in 0..self.pairs.len() {
            if let Some(report) = self.reports.pop_front() {
                return Some(report);
            }
            let index = self.turn;
            self.turn = if index + 1 == self.pairs.len() { 0 } else { index + 1 };
            let report = self.look(index);
            if report.is_some() {
                return report;
            }
        }
        self.reports.pop_front()
    }

    fn look(&mut self, index: usize) -> Option<Report<NoBlock>> {
        let pair = &mut self.pairs[index];
        match pair.meeting.turn() {
            Turn::Nothing => (),
            Turn::Said => pair.ring(self.host),
            Turn::Linked { incarnation } => {
                pair.ring(self.host);
                return Some(Report::Up { peer: pair.node, incarnation });
            }
            Turn::Ended { gone } => {
                pair.has_ended = true;
                let report = self.receive(index);
                return report.or_else(|| self.over(index, if gone { Loss::Gone } else { Loss::Cut }));
            }
        }
        if self.pairs[index].is_blocked {
            self.look_for_room(index);
        }
        self.receive(index)
    }

    fn receive(&mut self, index: usize) -> Option<Report<NoBlock>> {
        let pair = &mut self.pairs[index];
        let (link, _) = pair.meeting.link()?;
        let frame = records::receive(link, &mut self.data, self.kinds);
        let mut rings = link.must_ring_for_room();
        let payload = match &frame {
            Ok(None) => Ok(None),
            Ok(Some(Frame { header, payload: Placed::Copied(bytes) })) => {
                let bytes = &self.data[..*bytes];
                let short = Short::new(bytes).map_or_else(|| Payload::Owned(bytes.to_vec()), Payload::Short);
                Ok(Some((*header, short)))
            }
            Ok(Some(Frame { header, payload: Placed::Block { block, bytes } })) => {
                let mut copy = vec![0; *bytes as usize];
                let taken = pair.meeting.take_block(*block, &mut copy);
                rings |= taken == Ok(true);
                taken.map(|_| Some((*header, Payload::Owned(copy)))).map_err(|_| Refused::Broken)
            }
            Err(refused) => Err(*refused),
        };
        if rings {
            pair.ring(self.host);
        }
        let peer = pair.node;
        match payload {
            Ok(came) => came.map(|(header, payload)| Report::Frame { peer, header, payload }),
            Err(_) => self.fault(index),
        }
    }

    #[cold]
    fn look_for_room(&mut self, index: usize) {
        let pair = &mut self.pairs[index];
        let Some((link, _)) = pair.meeting.link() else { return };
        match link.has_room() {
            Ok(true) => {
                pair.is_blocked = false;
                self.reports.push_back(Report::Room { peer: pair.node });
            }
            Ok(false) => (),
            Err(_) => {
                let report = self.fault(index);
                self.reports.extend(report);
            }
        }
    }

    #[cold]
    fn fault(&mut self, index: usize) -> Option<Report<NoBlock>> {
        self.refusals.faults = self.refusals.faults.wrapping_add(1);
        self.over(index, Loss::Cut)
    }

    /// A link is over; another one is offered.
    #[cold]
    fn over(&mut self, index: usize, loss: Loss) -> Option<Report<NoBlock>> {
        let pair = &mut self.pairs[index];
        (pair.has_ended, pair.is_blocked, pair.is_unflushed) = (false, false, false);
        pair.meeting.part();
        pair.ring(self.host);
        if pair.wanted {
            self.absent_due_ns = 0;
        }
        Some(Report::Down { peer: pair.node, loss })
    }

    /// Reports the wanted nodes that offer nothing, and when to do so again.
    #[cold]
    fn report_absent(&mut self, now_ns: u64) {
        self.absent_due_ns = u64::MAX;
        for pair in self.pairs.iter().filter(|pair| pair.wanted && !pair.meeting.is_linked()) {
            self.absent_due_ns = now_ns.saturating_add(ABSENT_NS);
            if !pair.meeting.is_peer_there() {
                self.reports.push_back(Report::Absent { peer: pair.node });
            }
        }
    }

    /// Rings those who sleep on what was sent.
    pub(super) fn flush(&mut self) {
        let host = self.host;
        for pair in self.pairs.iter_mut().filter(|pair| pair.is_unflushed) {
            pair.is_unflushed = false;
            pair.ring_if_due(host);
        }
    }

    /// Announces sleep, so that peers ring. True if something came meanwhile: do not sleep.
    pub(super) fn prepare_sleep(&mut self) -> bool {
        let mut found = !self.reports.is_empty();
        for pair in &mut self.pairs {
            pair.is_unflushed = false;
            pair.ring_if_due(self.host);
            let is_blocked = pair.is_blocked;
            if let Some((link, _)) = pair.meeting.link() {
                // A fault is found again, and reported, by the next look.
                found |= link.announce(is_blocked) != Ok(false);
            }
        }
        found || self.has_news()
    }

    /// Takes that back.
    pub(super) fn finish_sleep(&mut self) {
        self.pairs.iter_mut().filter_map(|pair| pair.meeting.link()).for_each(|(link, _)| link.withdraw());
    }

    /// Whether a look would find something. Reads memory only.
    pub(super) fn has_news(&self) -> bool {
        self.pairs.iter().any(|pair| pair.meeting.has_news())
    }

    /// When a look is due also if nothing comes.
    pub(super) fn deadline_ns(&self) -> u64 {
        self.absent_due_ns
    }

    /// Tells all peers that this node leaves.
    pub(super) fn leave(&mut self) {
        self.flush();
        for pair in &mut self.pairs {
            pair.meeting.leave();
            pair.ring(self.host);
        }
        self.reports.clear();
    }
}

impl Pair {
    fn ring(&self, host: &impl Host) {
        host.ring(self.place);
    }

    fn ring_if_due(&mut self, host: &impl Host) {
        if self.meeting.link().is_some_and(|(link, _)| link.must_ring()) {
            self.ring(host);
        }
    }
}

impl<B: Host> Links for MappedLinks<B> {
    type Block = NoBlock;

    fn send(&mut self, peer: NodeId, header: &Header, payload: &[u8]) -> Sent {
        let Some(pair) = self.pairs.iter_mut().find(|pair| pair.node == peer) else { return Sent::NoLink };
        let Some((link, _)) = pair.meeting.link() else { return Sent::NoLink };
        if payload.len() > self.block_bytes {
            self.refusals.too_long = self.refusals.too_long.wrapping_add(1);
            return Sent::Delivered;
        }
        // What is sent to who has ended is lost; better say so with the report that follows.
        if pair.has_ended || records::send(link, header, payload).is_err() {
            pair.is_blocked = true;
            return Sent::Full;
        }
        pair.is_unflushed = true;
        Sent::Delivered
    }

    fn want(&mut self, peer: NodeId, wanted: bool) {
        let Some(pair) = self.pairs.iter_mut().find(|pair| pair.node == peer) else { return };
        pair.wanted = wanted;
        if wanted {
            self.absent_due_ns = 0;
        }
    }

    fn knows(&self, peer: NodeId) -> bool {
        self.pairs.iter().any(|pair| pair.node == peer)
    }
}

impl<B: Host> Ways for MappedLinks<B> {
    fn now_ns(&mut self) -> u64 {
        self.host.now_ns()
    }

    fn recycle(&mut self, payload: Payload<NoBlock>) {
        drop(payload);
    }
}

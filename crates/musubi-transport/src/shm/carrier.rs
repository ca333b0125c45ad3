//! The links of a Linux process's node with the other nodes of its machine.
//!
//! What you may rely on: a link costs the hot path nothing while it is idle, except one load now and then. What a peer
//! committed before its end is reported before [`Report::Down`], which comes once a link.
//!
//! How it works: what comes, and the order in which links are looked at, is `arrivals.rs`; who comes and goes
//! `neighbours.rs`. Rings are given in [`Drive::flush`], and before sleep.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use musubi_core::lane::RECORD_BYTES_MAX;
use musubi_linux::descriptor::Descriptor;
use musubi_linux::hint;
use musubi_linux::node::{Counts, Options, Presence, Source};
use musubi_linux::peer_memory::PeerMemory;

use super::Block;
use super::peer::{Held, Peer, bytes_of};
use super::records::{self, SHAPE};
use super::regulation::Bounds;
use crate::carrier::{Describe, Drive, Frames};
use crate::frame::{Header, Kinds, VERSION};
use crate::links::{Reach, Report, Sent};
use crate::status::{AcceptorStatus, LinkStatus};
use crate::topology::Topology;
use crate::{LinkError, NodeId};

/// The highest byte of our tokens.
const TOKEN: u64 = 1 << 56;
/// Every class.
const ALL_CLASSES: u8 = u8::MAX;
/// No place among the peers.
const NOWHERE: u16 = u16::MAX;

/// How many callers and frames were refused.
#[derive(Clone, Copy, Debug, Default)]
pub struct Refusals {
    /// At the rendezvous.
    pub callers: Counts,
    /// Links ended because the peer broke the protocol.
    pub faults: u32,
    /// Links of nodes that the system does not reach by shared memory.
    pub strangers: u32,
}

/// The carrier for shared memory.
#[derive(Debug)]
pub struct ShmCarrier {
    /// `None` after leaving.
    pub(super) presence: Option<Presence>,
    pub(super) topology: Arc<Topology>,
    pub(super) me: NodeId,
    pub(super) kinds: &'static Kinds,
    /// Place among the peers by number of node.
    places: Vec<u16>,
    pub(super) peers: Vec<Peer>,
    /// Place of the peer whose link has this number.
    pub(super) by_link: BTreeMap<u32, u16>,
    /// Peers with a link.
    pub(super) linked: Vec<u16>,
    /// Those of them on which something came lately, the latest first.
    pub(super) active: Vec<u16>,
    /// Whose turn it is among them, and for how many more frames.
    pub(super) turn: usize,
    pub(super) row: u32,
    /// Peers to which something was sent since the last look whether they sleep.
    unflushed: Vec<u16>,
    /// Peers whose link was full.
    pub(super) blocked: Vec<u16>,
    /// One of them has become so since sleep was last announced: nobody rings for its room before it is announced anew.
    has_newly_blocked: bool,
    /// Peers whose link has ended and is being drained.
    pub(super) ended: Vec<u16>,
    pub(super) reports: VecDeque<Report<Block>>,
    /// No call is due before; may be too early.
    pub(super) calls_due_ns: u64,
    pub(super) rounds: u32,
    pub(super) refusals: Refusals,
    /// What the node may send; `None` where it is not bounded.
    bounds: Option<Box<Bounds>>,
    /// Classes whose frames are rung for while the node sleeps, a bit each.
    rings_for: u8,
    /// Most frames of others that were there when it last announced sleep.
    unseen: u32,
    /// Payloads of the lane are copied into it; none while somebody has taken it.
    pub(super) data: Option<Box<[u8; RECORD_BYTES_MAX]>>,
}

impl ShmCarrier {
    /// Takes the node's number on this machine. Descriptors are watched by `epoll`.
    ///
    /// # Errors
    /// [`LinkError::NodeRuns`] if the node runs already, [`LinkError::Unavailable`].
    pub fn open(
        topology: Arc<Topology>,
        me: NodeId,
        incarnation: u32,
        epoll: Arc<Descriptor>,
        kinds: &'static Kinds,
    ) -> Result<ShmCarrier, LinkError> {
        let options = Options {
            system: topology.system.clone(),
            hash: topology.hash,
            node: me.index() as u16,
            nodes: NodeId::COUNT as u16,
            incarnation,
            shape: SHAPE,
            frames: VERSION,
            epoll,
            token: TOKEN,
        };
        let presence = Presence::open(options).map_err(|error| match error {
            musubi_linux::Error::NodeOccupied { .. } => LinkError::NodeRuns,
            _ => LinkError::Unavailable,
        })?;
        let bounds = Bounds::of(topology.rules_of(me));
        Ok(ShmCarrier {
            presence: Some(presence),
            topology,
            kinds,
            me,
            places: vec![NOWHERE; NodeId::COUNT],
            peers: Vec::new(),
            by_link: BTreeMap::new(),
            linked: Vec::new(),
            active: Vec::new(),
            turn: 0,
            row: 0,
            unflushed: Vec::new(),
            blocked: Vec::new(),
            has_newly_blocked: false,
            ended: Vec::new(),
            reports: VecDeque::new(),
            calls_due_ns: u64::MAX,
            rounds: 0,
            refusals: Refusals::default(),
            bounds,
            rings_for: ALL_CLASSES,
            unseen: 0,
            data: None,
        })
    }

    /// Who was refused so far.
    pub fn refusals(&self) -> Refusals {
        Refusals { callers: self.presence.as_ref().map_or(self.refusals.callers, Presence::counts), ..self.refusals }
    }

    /// Whether a peer has given back every block that lay with it.
    pub fn is_drained(&mut self, peer: NodeId) -> bool {
        let place = usize::from(self.places[peer.index()]);
        let held = self.peers.get_mut(place).and_then(Peer::link);
        held.is_some_and(|held| held.link.with(|lanes| lanes.has_all_blocks() == Ok(true)))
    }

    /// A way into the memory of a peer's process.
    pub fn reach(&self, peer: NodeId) -> Option<Arc<dyn Reach>> {
        let place = usize::from(self.places[peer.index()]);
        let memory = self.peers.get(place)?.standing()?.link.peer_memory()?;
        Some(Arc::new(PeerReach(memory)))
    }

    /// Whether something was held back by a rule since the last call, so that [`Drive::deadline_ns`] may be earlier.
    #[inline]
    pub fn take_held(&mut self) -> bool {
        self.bounds.as_mut().is_some_and(|bounds| bounds.take_held())
    }

    /// Whether a link has become full since sleep was last announced; says so once. Who sleeps then must announce it anew.
    #[inline]
    pub fn take_newly_blocked(&mut self) -> bool {
        std::mem::take(&mut self.has_newly_blocked)
    }

    /// The peer's place, made if need be.
    pub(super) fn enter(&mut self, node: NodeId) -> u16 {
        if self.places[node.index()] == NOWHERE {
            self.places[node.index()] = self.peers.len() as u16;
            self.peers.push(Peer::new(node));
        }
        self.places[node.index()]
    }

    pub(super) fn peer(&mut self, place: u16) -> &mut Peer {
        &mut self.peers[usize::from(place)]
    }

    #[inline]
    pub(super) fn ring_if_due(&mut self, place: u16) {
        let peer = &mut self.peers[usize::from(place)];
        if let Some(held) = peer.link()
            && held.link.with(|lanes| lanes.must_ring())
        {
            held.link.ring();
        }
    }

    fn flush_all(&mut self) {
        while let Some(place) = self.unflushed.pop() {
            self.peer(place).is_unflushed = false;
            self.ring_if_due(place);
        }
    }
}

/// The memory of a peer's process, by the kernel.
#[derive(Debug)]
struct PeerReach(PeerMemory);

impl Reach for PeerReach {
    fn fetch(&self, address: u64, into: &mut [u8]) -> bool {
        self.0.read(address, into)
    }
}

impl Frames for ShmCarrier {
    type Block = Block;

    #[inline(always)]
    fn send(&mut self, _now_ns: u64, peer: NodeId, header: &Header, payload: &[u8]) -> Sent {
        let place = self.places[peer.index()];
        let Some(peer) = self.peers.get_mut(usize::from(place)) else { return Sent::NoLink };
        let sent = match peer.link() {
            None => return Sent::NoLink,
            // What is sent to the dead is lost; better say so with the report that follows.
            Some(Held { ended: true, .. }) => return Sent::Full,
            Some(_) if self.bounds.as_mut().is_some_and(|bounds| !bounds.admits(place, header)) => return Sent::Full,
            Some(held) => held.link.with(|lanes| {
                let sent = records::send(lanes, header, payload);
                lanes.lines_ahead().into_iter().flatten().for_each(hint::will_write);
                sent
            }),
        };
        if sent.is_err() {
            // What fills the lane may be of a class that wakes nobody now.
            if let Some(held) = peer.link()
                && held.link.with(|lanes| lanes.must_ring_to_empty(header.class.class()))
            {
                held.link.ring();
            }
            if !peer.is_blocked {
                peer.is_blocked = true;
                self.blocked.push(place);
                self.has_newly_blocked = true;
            }
            return Sent::Full;
        }
        if let Some(bounds) = &mut self.bounds {
            bounds.sent(place, header.class);
        }
        peer.traffic.frames_sent += 1;
        peer.traffic.bytes_sent += bytes_of(header);
        if !peer.is_unflushed {
            peer.is_unflushed = true;
            self.unflushed.push(place);
        }
        Sent::Delivered
    }

    #[inline]
    fn next_report(&mut self, _now_ns: u64) -> Option<Report<Block>> {
        match self.next_place() {
            Some(place) => self.receive_from(place),
            None => self.next_of_rest(),
        }
    }
}

impl Drive for ShmCarrier {
    fn want(&mut self, now_ns: u64, peer: NodeId, wanted: bool) {
        let place = self.enter(peer);
        let known = self.peer(place);
        let begins = wanted && !known.wanted && !known.is_linked();
        known.wanted = wanted;
        if !wanted {
            known.due_ns = u64::MAX;
        }
        if begins {
            self.call(place, now_ns);
        }
    }

    #[inline]
    fn poll(&mut self, _now_ns: u64) {}

    fn ready(&mut self, now_ns: u64, token: u64) {
        let Some(source) = Source::of(token) else { return };
        match source {
            Source::Bell(id) => {
                if let Some(place) = self.by_link.get(&id).copied() {
                    self.activate(place);
                }
            }
            Source::Socket(id) if self.by_link.contains_key(&id) => self.look_for_end(id),
            Source::Socket(_) | Source::Listener => {
                if let Some(presence) = &mut self.presence {
                    presence.ready(source, now_ns);
                }
            }
        }
        self.take_events(now_ns);
    }

    #[inline(always)]
    fn flush(&mut self, _now_ns: u64) {
        if !self.unflushed.is_empty() {
            self.flush_all();
        }
    }

    fn prepare_sleep(&mut self) -> bool {
        self.flush_all();
        let mut found = !self.reports.is_empty() || !self.ended.is_empty();
        self.has_newly_blocked = false;
        let (classes, mut unseen) = (self.rings_for, 0);
        for index in 0..self.linked.len() {
            let place = self.linked[index];
            self.ring_if_due(place);
            let peer = self.peer(place);
            let is_blocked = peer.is_blocked;
            let announce = |lanes: &mut musubi_core::lane::Link<'_>| match classes {
                ALL_CLASSES => lanes.announce(is_blocked),
                some => lanes.announce_classes(some, is_blocked),
            };
            // A fault is found again, and reported, by the next look.
            let ready = peer.link().is_some_and(|held| held.link.with(|lanes| announce(lanes) != Ok(false)));
            if ready {
                self.activate(place);
                unseen += SHAPE.slots;
            }
        }
        self.unseen = if classes == ALL_CLASSES { 0 } else { unseen };
        found |= classes == ALL_CLASSES && unseen > 0;
        found
    }

    fn ring_for(&mut self, classes: u8) {
        self.rings_for = classes;
    }

    fn left_unseen(&self) -> u32 {
        self.unseen
    }

    fn finish_sleep(&mut self) {
        for index in 0..self.linked.len() {
            let place = self.linked[index];
            let Some(held) = self.peer(place).link() else { continue };
            let ready = held.link.with(|lanes| {
                lanes.withdraw();
                lanes.is_ready()
            });
            // Whoever ends the sleep early, to look at what is here, is not told of bells.
            if ready {
                self.activate(place);
            }
        }
    }

    fn holds_reports(&self) -> bool {
        // What lies in lanes has been rung for.
        !self.reports.is_empty()
    }

    fn deadline_ns(&self) -> u64 {
        let bounds_ns = self.bounds.as_ref().map_or(u64::MAX, |bounds| bounds.due_ns());
        self.calls_due_ns.min(self.presence.as_ref().map_or(u64::MAX, Presence::deadline_ns)).min(bounds_ns)
    }

    fn tick(&mut self, now_ns: u64) {
        if let Some(presence) = &mut self.presence {
            presence.tick(now_ns);
        }
        self.take_events(now_ns);
        if let Some(bounds) = &mut self.bounds {
            let peers = &self.peers;
            let room = bounds.release(now_ns).map(|place| Report::Room { peer: peers[usize::from(place)].node });
            self.reports.extend(room);
        }
        if self.calls_due_ns <= now_ns {
            self.call_due(now_ns);
        }
    }

    fn leave(&mut self, _now_ns: u64) {
        self.flush_all();
        self.refusals = self.refusals();
        self.presence = None;
        for list in [&mut self.linked, &mut self.active, &mut self.blocked, &mut self.ended, &mut self.unflushed] {
            list.clear();
        }
        self.by_link.clear();
        self.peers.clear();
        self.places.fill(NOWHERE);
        self.reports.clear();
        self.calls_due_ns = u64::MAX;
    }
}

impl Describe for ShmCarrier {
    fn link(&self, peer: NodeId) -> Option<LinkStatus> {
        let place = self.places[peer.index()];
        let waited = self.bounds.as_ref().map_or(0, |bounds| bounds.waited(place));
        self.peers.get(usize::from(place)).map(|peer| LinkStatus { waited: Some(waited), ..peer.status() })
    }

    fn describe_acceptor(&self, acceptor: &mut AcceptorStatus) {
        let Refusals { callers, faults, strangers } = self.refusals();
        acceptor.memory_refused = callers.refused.into();
        acceptor.memory_garbage = callers.garbage.into();
        acceptor.memory_silent = callers.silent.into();
        acceptor.memory_faults = faults.into();
        acceptor.memory_strangers = strangers.into();
    }
}

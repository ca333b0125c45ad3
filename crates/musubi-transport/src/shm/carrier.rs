//! The links of a Linux process's node with the other nodes of its machine.
//!
//! What you may rely on: a link costs the hot path nothing while it is idle, except one load now and then. What a peer
//! committed before its end is reported before [`Report::Down`], which comes once a link.
//!
//! How it works: links on which something came lately are looked at in every round, the others every [`SCAN_ROUNDS`]
//! rounds and before sleep. Rings are given in [`Carrier::flush`], and when a round has found nothing.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use musubi_core::lane::{Payload as Placed, RECORD_BYTES_MAX};
use musubi_linux::descriptor::Descriptor;
use musubi_linux::node::{Counts, Options, Presence, Source};

use super::Block;
use super::peer::{Held, Peer};
use super::records::{self, Frame, SHAPE};
use super::regulation::Bounds;
use crate::carrier::{Describe, Drive, Frames};
use crate::frame::{Header, Kinds, VERSION};
use crate::links::{Payload, Report, Sent, Short};
use crate::status::{AcceptorStatus, LinkStatus};
use crate::topology::Topology;
use crate::{LinkError, NodeId};

/// The highest byte of our tokens.
const TOKEN: u64 = 1 << 56;
/// Most links that are looked at in every round.
const ACTIVE_MAX: usize = 8;
/// Most frames in a row from one link while others may have some.
const ROW_MAX: u32 = 32;
/// After how many rounds the idle links are looked at.
const SCAN_ROUNDS: u32 = 64;
/// After how many rounds links that have ended have their turn while others have frames.
const DRAIN_ROUNDS: u32 = 8;
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

/// A frame that has been taken from a lane, but for its payload.
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    place: u16,
    /// Who sent it.
    pub node: NodeId,
    /// Its header.
    pub header: Header,
    /// Where its payload is.
    pub placed: Placed,
}

/// The carrier for shared memory.
#[derive(Debug)]
pub struct ShmCarrier {
    /// `None` after leaving.
    pub(super) presence: Option<Presence>,
    pub(super) topology: Arc<Topology>,
    pub(super) me: NodeId,
    kinds: &'static Kinds,
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
    turn: usize,
    row: u32,
    /// Peers to which something was sent since the last look whether they sleep.
    unflushed: Vec<u16>,
    /// Peers whose link was full.
    pub(super) blocked: Vec<u16>,
    /// Peers whose link has ended and is being drained.
    pub(super) ended: Vec<u16>,
    pub(super) reports: VecDeque<Report<Block>>,
    /// No call is due before; may be too early.
    pub(super) calls_due_ns: u64,
    rounds: u32,
    pub(super) refusals: Refusals,
    /// What the node may send; `None` where it is not bounded.
    bounds: Option<Box<Bounds>>,
    data: Box<[u8; RECORD_BYTES_MAX]>,
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
            ended: Vec::new(),
            reports: VecDeque::new(),
            calls_due_ns: u64::MAX,
            rounds: 0,
            refusals: Refusals::default(),
            bounds,
            data: Box::new([0; RECORD_BYTES_MAX]),
        })
    }

    /// Who was refused so far.
    pub fn refusals(&self) -> Refusals {
        Refusals { callers: self.presence.as_ref().map_or(self.refusals.callers, Presence::counts), ..self.refusals }
    }

    /// Whether something was held back by a rule since the last call, so that [`Drive::deadline_ns`] may be earlier.
    #[inline]
    pub fn take_held(&mut self) -> bool {
        self.bounds.as_mut().is_some_and(|bounds| bounds.take_held())
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

    // ---- frames ----

    /// The next frame of a peer's link if its payload is one word at most, with that word: see
    /// [`ShmCarrier::arrival_from`] for all others.
    #[inline(always)]
    pub fn brief_from(&mut self, place: u16) -> Option<(NodeId, Header, u64)> {
        let peer = &mut self.peers[usize::from(place)];
        let node = peer.node;
        let (Held { link, .. }, traffic) = peer.link_and_traffic()?;
        match link.with(|lanes| records::receive_brief(lanes, self.kinds)) {
            Ok(Some((header, word))) => {
                if link.with(|lanes| lanes.must_ring_for_room()) {
                    link.ring();
                }
                traffic.frames_received += 1;
                traffic.bytes_received += bytes_of(&header);
                Some((node, header, word))
            }
            Ok(None) => None,
            Err(_) => {
                self.fault_first(place);
                None
            }
        }
    }

    /// The next frame of a peer's link; if that breaks the protocol, the report of it stands first in the queue.
    pub fn arrival_from(&mut self, place: u16) -> Option<Arrival> {
        let peer = &mut self.peers[usize::from(place)];
        let node = peer.node;
        let (Held { link, .. }, traffic) = peer.link_and_traffic()?;
        let (data, kinds) = (&mut *self.data, self.kinds);
        let (frame, rings) = link.with(|lanes| (records::receive(lanes, data, kinds), lanes.must_ring_for_room()));
        if rings {
            link.ring();
        }
        match frame {
            Ok(Some(Frame { header, payload })) => {
                traffic.frames_received += 1;
                traffic.bytes_received += bytes_of(&header);
                Some(Arrival { place, node, header, placed: payload })
            }
            Ok(None) => None,
            Err(_) => {
                self.fault_first(place);
                None
            }
        }
    }

    /// A link that breaks the protocol gives no frame: its end stands first in the queue.
    #[cold]
    fn fault_first(&mut self, place: u16) {
        if let Some(report) = self.fault(place) {
            self.reports.push_front(report);
        }
    }

    /// The next frame of a peer's link, or what is to be reported before it: its end, say, if it breaks the protocol.
    pub(super) fn receive_from(&mut self, place: u16) -> Option<Report<Block>> {
        match self.arrival_from(place) {
            Some(arrival) => self.report_of(arrival),
            None => self.reports.pop_front(),
        }
    }

    /// The report of a frame, before the next one is taken; of its link's end if that names a block that it has not.
    pub fn report_of(&mut self, arrival: Arrival) -> Option<Report<Block>> {
        let Arrival { place, node, header, placed } = arrival;
        match self.payload_of(place, placed) {
            Some(payload) => Some(Report::Frame { peer: node, header, payload }),
            None => self.reports.pop_front(),
        }
    }

    /// The payload of a frame from this place, before the next one is taken; none if it names a block that its link has
    /// not: then that one's end stands first in the queue.
    #[inline(always)]
    pub fn payload_of(&mut self, place: u16, placed: Placed) -> Option<Payload<Block>> {
        match placed {
            Placed::Copied(bytes) => {
                let bytes = &self.data[..bytes];
                Some(Short::new(bytes).map_or_else(|| Payload::Owned(bytes.to_vec()), Payload::Short))
            }
            Placed::Block { block, bytes } => self.lend(place, block, bytes).map(Payload::Lent),
        }
    }

    #[inline(never)]
    fn lend(&mut self, place: u16, block: u32, bytes: u32) -> Option<Block> {
        match self.peer(place).link()?.link.lend(block, bytes) {
            Ok(lent) => Some(Block(lent)),
            Err(_) => {
                self.fault_first(place);
                None
            }
        }
    }

    /// The place of the peer whose link has the next frame, or something to say; none while something else is to be
    /// reported first.
    #[inline(always)]
    pub fn next_place(&mut self) -> Option<u16> {
        self.rounds = self.rounds.wrapping_add(1);
        let only_frames = self.reports.is_empty() && self.blocked.is_empty() && self.ended.is_empty();
        if (!only_frames || self.rounds.is_multiple_of(SCAN_ROUNDS)) && !self.look_aside() {
            return None;
        }
        self.ready_place()
    }

    /// Looks at what is not looked at in every round; whether it is the turn of frames now.
    #[cold]
    fn look_aside(&mut self) -> bool {
        if !self.reports.is_empty() {
            return false;
        }
        if self.rounds.is_multiple_of(SCAN_ROUNDS) {
            self.scan();
        }
        if !self.blocked.is_empty() {
            self.look_for_room();
        }
        if !self.ended.is_empty()
            && self.rounds.is_multiple_of(DRAIN_ROUNDS)
            && let Some(report) = self.drain_ended()
        {
            self.reports.push_front(report);
            return false;
        }
        true
    }

    /// Whether [`ShmCarrier::next_of_rest`] may have something.
    #[inline(always)]
    pub fn has_rest(&self) -> bool {
        !(self.reports.is_empty() && self.ended.is_empty())
    }

    /// What else there is to report, where [`ShmCarrier::next_place`] has found none.
    pub fn next_of_rest(&mut self) -> Option<Report<Block>> {
        if self.reports.is_empty() && !self.ended.is_empty() {
            return self.drain_ended();
        }
        self.reports.pop_front()
    }

    /// The next that has a frame of those that had some lately; each has its turn.
    #[inline(always)]
    fn ready_place(&mut self) -> Option<u16> {
        // Each once; one more if the first has had its row.
        for _ in 0..self.active.len() + usize::from(self.row >= ROW_MAX) {
            if self.turn >= self.active.len() {
                (self.turn, self.row) = (0, 0);
            }
            let place = *self.active.get(self.turn)?;
            let link = self.peers[usize::from(place)].link();
            if self.row < ROW_MAX && link.is_some_and(|held| held.link.with(|lanes| lanes.is_ready())) {
                self.row += 1;
                return Some(place);
            }
            let next = self.turn + 1;
            (self.turn, self.row) = (if next < self.active.len() { next } else { 0 }, 0);
        }
        None
    }

    /// Looks at every link; those that have something become active.
    #[cold]
    fn scan(&mut self) {
        for index in 0..self.linked.len() {
            let place = self.linked[index];
            if self.peer(place).link().is_some_and(|held| held.link.with(|lanes| lanes.is_ready())) {
                self.activate(place);
            }
        }
    }

    /// From now on this link is looked at in every round.
    pub(super) fn activate(&mut self, place: u16) {
        if self.active.contains(&place) || self.ended.contains(&place) {
            return;
        }
        self.active.insert(0, place);
        if self.active.len() > ACTIVE_MAX
            && let Some(last) = self.active.pop()
        {
            self.ring_if_due(last);
        }
    }

    #[inline]
    fn ring_if_due(&mut self, place: u16) {
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

    /// Reports room where there is some again.
    #[cold]
    fn look_for_room(&mut self) {
        for place in std::mem::take(&mut self.blocked) {
            let peer = self.peer(place);
            let node = peer.node;
            let room = peer.link().map(|held| held.link.with(|lanes| lanes.has_room()));
            match room {
                _ if !self.peer(place).is_blocked => (),
                Some(Ok(true)) => {
                    self.peer(place).is_blocked = false;
                    self.reports.push_back(Report::Room { peer: node });
                }
                Some(Ok(false)) => self.blocked.push(place),
                Some(Err(_)) => {
                    // Before that its successor is up, which stands in the queue.
                    if let Some(report) = self.fault(place) {
                        self.reports.push_front(report);
                    }
                }
                None => (),
            }
        }
    }
}

/// What a frame is counted as.
#[inline]
fn bytes_of(header: &Header) -> u64 {
    Header::BYTES as u64 + u64::from(header.length)
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
            Some(held) => held.link.with(|lanes| records::send(lanes, header, payload)),
        };
        if sent.is_err() {
            if !peer.is_blocked {
                peer.is_blocked = true;
                self.blocked.push(place);
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
        for index in 0..self.linked.len() {
            let place = self.linked[index];
            self.ring_if_due(place);
            let peer = self.peer(place);
            let is_blocked = peer.is_blocked;
            // A fault is found again, and reported, by the next look.
            let ready = peer.link().is_some_and(|held| held.link.with(|lanes| lanes.announce(is_blocked) != Ok(false)));
            if ready {
                self.activate(place);
                found = true;
            }
        }
        found
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

//! The other nodes, as far as this one has to do with them.
//!
//! What you may rely on: a node costs nothing until something is wanted of it or it links; then it is found in one step.
//! What there was with a node ends with the link: both sides begin anew with the next.
//!
//! How it works: a table by [`NodeId::index`] of places in a list. Place 0 is this node itself, always linked.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec;
use alloc::vec::Vec;

use super::RequestId;
use super::peer::flow::{Flow, Intake, Waiting};
use super::peer::news::{News, Pace};
use super::steps::step;
use crate::engine::frame::{Header, Kind};
use crate::{EndpointId, NodeId};
use musubi_transport::Priority;

/// Most questions that one node may have unanswered at another.
pub const QUESTIONS_MAX: usize = 4096;
/// Most control frames held back for one peer whose link is full. No other peer and no program can make us reach it; one
/// that itself does may miss what comes then, which is counted.
pub const OUTBOX_FRAMES_MAX: usize = 16_384;
/// Most payload bytes of those.
pub const OUTBOX_BYTES_MAX: usize = 1 << 20;
/// From so many frames held back on, or so many bytes of them, nothing is begun with the peer: its questions are dropped, and
/// counted, and programs are refused with an error. What ends something has the rest.
pub(super) const OUTBOX_BEGIN_FRAMES: usize = OUTBOX_FRAMES_MAX / 4;
pub(super) const OUTBOX_BEGIN_BYTES: usize = OUTBOX_BYTES_MAX - Kind::InspectReply.payload_max();
/// The place of this node itself.
pub(super) const ME: u16 = 0;

/// Most flows to endpoints of one peer that have lost their slot.
const OTHER_FLOWS_MAX: usize = 64;
const NOBODY: u16 = u16::MAX;

/// How it stands with a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// There never was a link.
    Unknown,
    /// There is a link.
    Linked,
    /// It has left, or died.
    Gone,
    /// It could not be reached; it may live.
    Cut,
}

/// Frames of a class that a link has taken and not confirmed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Unconfirmed {
    pub number: u64,
    /// The request that completes with the confirmation.
    pub request: Option<RequestId>,
}

/// Counts of what went to and came from a peer; never reset.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PeerCounters {
    /// Messages handed to the link.
    pub messages_sent: u64,
    /// Messages taken into this node.
    pub messages_received: u64,
    /// Payload bytes of messages handed to the link.
    pub message_bytes_sent: u64,
    /// Payload bytes of messages taken into this node.
    pub message_bytes_received: u64,
    /// Frames that came, of every kind.
    pub frames_received: u64,
    /// Frames that were against the rules.
    pub refused: u64,
    /// Links there have been.
    pub links: u64,
}

impl PeerCounters {
    /// A message of so many bytes goes to the link.
    #[inline]
    pub(super) fn count_sent(&mut self, bytes: usize) {
        self.messages_sent += 1;
        self.message_bytes_sent += bytes as u64;
    }
}

/// A node this one has to do with.
#[derive(Debug)]
pub(super) struct Peer {
    pub node: NodeId,
    pub standing: Standing,
    /// There is a link, and the peer has said which of its endpoints were connected when it began.
    pub heard: bool,
    pub incarnation: u32,
    /// Counts links that have ended: what belongs to an earlier one is told by it.
    pub epoch: u32,
    /// A link was asked for, lately then.
    pub wanted: bool,
    /// One was before the last one ended, and the links have not been told that it is not any more.
    pub lingers: bool,
    pub wanted_ns: u64,
    /// The last try to link failed, and nobody has taken note.
    pub absent: bool,
    /// Messages to its endpoints, by their slots.
    pub flows: Vec<Flow>,
    /// Flows to endpoints whose slot another one's flow has: stale names, or their successors until we are told.
    pub other_flows: BTreeMap<u32, Flow>,
    /// Its endpoints that take no messages because they are connected: generations by slots.
    pub connected: BTreeMap<u16, u8>,
    /// What it is to be told of ours.
    pub news: News,
    /// What it is asked at other nodes' wishes.
    pub wishes: Pace,
    /// It is on the list of those that are told something later.
    pub held: bool,
    /// The endpoints in whose flows messages wait.
    pub busy: Vec<EndpointId>,
    /// What it may send to ours, by our slots.
    pub intakes: Vec<Intake>,
    /// Requests that wait for its answer.
    pub asked: Vec<RequestId>,
    /// Those whose question the link had no room for, and some that have ended since.
    pub unsaid: VecDeque<RequestId>,
    /// Its questions for endpoints that do not exist yet.
    pub gets_held: u32,
    /// Control frames that the link had no room for.
    pub outbox: VecDeque<(Header, Vec<u8>)>,
    pub outbox_bytes: usize,
    /// What the link has taken, by class.
    pub unconfirmed: [VecDeque<Unconfirmed>; Priority::COUNT],
    pub counters: PeerCounters,
}

impl Peer {
    fn new(node: NodeId) -> Peer {
        Peer {
            node,
            standing: Standing::Unknown,
            heard: false,
            incarnation: 0,
            epoch: 0,
            wanted: false,
            lingers: false,
            wanted_ns: 0,
            absent: false,
            flows: Vec::new(),
            other_flows: BTreeMap::new(),
            connected: BTreeMap::new(),
            news: News::default(),
            wishes: Pace::default(),
            held: false,
            busy: Vec::new(),
            intakes: Vec::new(),
            asked: Vec::new(),
            unsaid: VecDeque::new(),
            gets_held: 0,
            outbox: VecDeque::new(),
            outbox_bytes: 0,
            unconfirmed: [const { VecDeque::new() }; Priority::COUNT],
            counters: PeerCounters::default(),
        }
    }

    /// Whether an endpoint of it has said that it takes no messages.
    #[inline]
    pub fn refuses(&self, id: EndpointId) -> bool {
        !self.connected.is_empty() && self.connected.get(&id.slot()) == Some(&id.generation())
    }

    pub fn is_linked(&self) -> bool {
        self.standing == Standing::Linked
    }

    /// Whether so much is held back for it that nothing is to be begun with it.
    pub fn is_crowded(&self) -> bool {
        self.outbox.len() >= OUTBOX_BEGIN_FRAMES || self.outbox_bytes > OUTBOX_BEGIN_BYTES
    }

    /// The flow to an endpoint; a new one if there is none; `None` if there is no room.
    #[inline]
    pub fn flow(&mut self, id: EndpointId) -> Option<&mut Flow> {
        let slot = usize::from(id.slot());
        if self.flows.get(slot).is_some_and(|flow| flow.generation == id.generation()) {
            return self.flows.get_mut(slot);
        }
        self.new_flow(id)
    }

    fn new_flow(&mut self, id: EndpointId) -> Option<&mut Flow> {
        let slot = usize::from(id.slot());
        if self.flows.len() <= slot {
            self.flows.resize_with(slot + 1, Flow::default);
        }
        let other = self.other_flows.contains_key(&id.bits());
        if self.flows[slot].generation == 0 && !other {
            self.flows[slot].generation = id.generation();
            return self.flows.get_mut(slot);
        }
        if !other && self.other_flows.len() >= OTHER_FLOWS_MAX {
            return None;
        }
        Some(self.other_flows.entry(id.bits()).or_default())
    }

    /// The flow to an endpoint, if there is one.
    pub fn known_flow(&mut self, id: EndpointId) -> Option<&mut Flow> {
        match self.flows.get_mut(usize::from(id.slot())).filter(|flow| flow.generation == id.generation()) {
            Some(flow) => Some(flow),
            None => self.other_flows.get_mut(&id.bits()),
        }
    }

    /// The node has died, and its endpoints with it.
    pub fn end_flows(&mut self) {
        for flow in &mut self.flows {
            flow.dead = flow.generation != 0;
        }
    }

    /// A new link: nothing is under way, and what does not wait is forgotten.
    pub fn begin_flows(&mut self) {
        self.other_flows.retain(|_, flow| !flow.waiting.is_empty());
        for flow in self.flows.iter_mut().chain(self.other_flows.values_mut()) {
            (flow.sent, flow.taken, flow.dead) = (0, 0, false);
            if flow.waiting.is_empty() {
                flow.generation = 0;
            }
        }
    }

    /// Forgets a flow; gives the messages that waited in it.
    pub fn end_flow(&mut self, id: EndpointId) -> VecDeque<Waiting> {
        self.busy.retain(|busy| *busy != id);
        let own = self.flows.get_mut(usize::from(id.slot())).filter(|flow| flow.generation == id.generation());
        let flow = own.map(core::mem::take).or_else(|| self.other_flows.remove(&id.bits()));
        flow.map(|flow| flow.waiting).unwrap_or_default()
    }
}

/// The table.
#[derive(Debug)]
pub(super) struct Peers {
    table: Vec<u16>,
    pub list: Vec<Peer>,
}

impl Peers {
    pub fn new(me: NodeId) -> Peers {
        let mut peers = Peers { table: vec![NOBODY; NodeId::COUNT], list: Vec::new() };
        let place = peers.enter(me);
        let own = &mut peers.list[usize::from(place)];
        (own.standing, own.heard) = (Standing::Linked, true);
        peers
    }

    /// The place of a node, if there has been anything with it.
    #[inline]
    pub fn find(&self, node: NodeId) -> Option<u16> {
        step();
        let place = self.table[node.index()];
        (place != NOBODY).then_some(place)
    }

    /// The place of a node, a new one if there has been nothing with it.
    pub fn enter(&mut self, node: NodeId) -> u16 {
        self.find(node).unwrap_or_else(|| {
            let place = self.list.len() as u16;
            self.list.push(Peer::new(node));
            self.table[node.index()] = place;
            place
        })
    }

    #[inline]
    pub fn at(&mut self, place: u16) -> &mut Peer {
        step();
        &mut self.list[usize::from(place)]
    }
}

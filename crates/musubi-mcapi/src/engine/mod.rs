//! The protocol core of one node: endpoints, messages, channels, requests. No clock, no I/O, no thread.
//!
//! What you may rely on: every call takes a bounded number of steps that does not depend on how many endpoints, nodes
//! or channels are idle; memory is bounded by the limits and by what was asked for; a frame from a peer changes nothing
//! that is not that peer's to change.
//!
//! How it works: the owner calls the operations below, and hands over what the links report ([`Engine::report`]). What
//! cannot be finished at once is a *request*. Operations that come in two forms (send, receive) are tried by the first
//! (`Sending::Blocked`, `None`) and queued by the second (`..._later`), in one order for both.
//!
//! A frame for this node itself goes into a queue of its own and is dispatched at the end of the operation
//! (`settle`), so that an operation is the same whether its other end is here or elsewhere.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;

use crate::engine::frame::Header;
use crate::limits::PACKET_BYTES_MAX;
use crate::{Error, NodeId};
use musubi_transport::links::{Block, Links, Payload, Report};

mod asking;
mod attributes;
mod channel;
mod channel_view;
mod channels;
mod connect;
mod dispatch;
mod endpoints;
mod gets;
mod inbox;
pub mod inspect;
mod messages;
mod opening;
mod output;
mod packets;
mod peer;
mod peers;
mod polled;
mod requests;
mod scalars;
mod steps;
mod table;
#[cfg(test)]
mod tests;

pub use crate::frame;
pub use crate::name::{ChannelHandle, EndpointId, RequestId};
pub use asking::PING_BYTES_MAX;
pub use attributes::{check_new_node_attribute, endpoint_status, endpoint_type};
pub use channel::ChannelKind;
pub use inbox::{LEFT_OVER_BYTES_MAX, LEFT_OVER_COST};
pub use messages::SEND_BUFFERS;
pub use packets::QUEUED_PACKET_BYTES_MAX;
pub use peers::{OUTBOX_BYTES_MAX, OUTBOX_FRAMES_MAX, PeerCounters, QUESTIONS_MAX};
pub use requests::{OPEN_POLLED_MS, OPEN_POLLS, REQUESTS_MAX};

/// What became of something to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sending {
    /// It is in the receiving node's memory, or (channels over a network) accepted: a loss breaks the channel.
    Done,
    /// It is on its way; the request completes when the receiving node has it, or says that it was lost.
    Confirming(RequestId),
    /// Not taken: no credit, no room, no link yet, or something earlier still waits. Try again after any change.
    Blocked,
}

/// What a completed request gives.
#[derive(Debug)]
pub enum Outcome<B> {
    /// Done.
    Plain,
    /// The endpoint asked for.
    Endpoint(EndpointId),
    /// Sent: this many bytes.
    Sent(usize),
    /// A message; it may be longer than the buffer it is for (the caller truncates and reports).
    Message(Message<B>),
    /// A packet.
    Packet(Payload<B>),
    /// An attribute's value.
    Attribute(Vec<u8>),
    /// A pong: nanoseconds there and back.
    Pong(u64),
    /// A part of a node's picture.
    Picture(Vec<u8>),
}

/// A message in hand.
#[derive(Debug)]
pub struct Message<B> {
    /// Who sent it.
    pub from: EndpointId,
    /// Its priority.
    pub priority: u8,
    /// Its bytes.
    pub payload: Payload<B>,
}

/// What was refused or dropped; never reset.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Frames from nodes with which there is no link.
    pub unlinked: u64,
    /// Frames that name an endpoint which is not the sender's, or not ours, to speak for.
    pub not_theirs: u64,
    /// Messages and packets beyond the credit of their sender.
    pub overruns: u64,
    /// Answers to questions that were not asked, or not of that node.
    pub unasked: u64,
    /// Messages for endpoints that have gone.
    pub messages_dropped: u64,
    /// Unread messages of earlier links with a node that had to make room.
    pub left_over_dropped: u64,
    /// Frames of channels that have ended meanwhile.
    pub late: u64,
    /// Frames of channels that a peer which follows the protocol does not send.
    pub contradictory: u64,
    /// Frames whose fields make no sense.
    pub malformed: u64,
    /// Questions and answers for which there was no room.
    pub crowded_out: u64,
}

/// The protocol core of one node. `B` is the block of its links.
#[derive(Debug)]
pub struct Engine<B> {
    me: NodeId,
    incarnation: u32,
    /// Time of the latest report or tick.
    now_ns: u64,
    changes: u64,
    left: bool,
    endpoints: table::Endpoints<B>,
    peers: peers::Peers,
    requests: requests::Requests<B>,
    /// Frames of this node to itself.
    own: VecDeque<(Header, Payload<B>)>,
    /// Questions of peers (and ourselves) for endpoints at ports where there is none: who, and the question's tag.
    expected: BTreeMap<u32, Vec<(u16, u32)>>,
    /// Intakes whose senders are to be told at the first tick after some time.
    owing: VecDeque<(u16, EndpointId)>,
    owing_due_ns: u64,
    /// Peers that are to be told something at the first tick after some time.
    held: Vec<u16>,
    held_due_ns: u64,
    channels: channels::Channels,
    counters: Counters,
}

impl<B: Block> Engine<B> {
    /// A node without endpoints. `incarnation` tells this run from earlier ones; names of endpoints begin differently
    /// where it differs by less than 63 (or by anything but a multiple of that).
    pub fn new(me: NodeId, incarnation: u32) -> Self {
        Engine {
            me,
            incarnation,
            now_ns: 0,
            changes: 0,
            left: false,
            endpoints: table::Endpoints::new(me, incarnation),
            peers: peers::Peers::new(me),
            requests: requests::Requests::new(),
            own: VecDeque::new(),
            expected: BTreeMap::new(),
            owing: VecDeque::new(),
            owing_due_ns: 0,
            held: Vec::new(),
            held_due_ns: 0,
            channels: channels::Channels::default(),
            counters: Counters::default(),
        }
    }

    /// Says, before there are endpoints, that the links carry payloads of so many bytes at most. It must be the same at all
    /// nodes: both ends of a channel must have the attribute alike.
    pub fn limit_payload(&mut self, bytes: u32) {
        self.endpoints.payload_max = bytes.min(PACKET_BYTES_MAX as u32);
    }

    /// This node.
    pub fn me(&self) -> NodeId {
        self.me
    }

    /// Tells this run from others.
    pub fn incarnation(&self) -> u32 {
        self.incarnation
    }

    /// What was refused or dropped.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// Counts of what went to and came from a peer.
    pub fn peer_counters(&self, peer: NodeId) -> Option<PeerCounters> {
        Some(self.peers.list[usize::from(self.peers.find(peer)?)].counters)
    }

    /// Counts everything that a waiting thread could wait for: arrivals, completions, room. If it has not moved, nothing
    /// that was blocked or pending has changed.
    pub fn changes(&self) -> u64 {
        self.changes
    }

    /// Takes note of what a link reports.
    pub fn report(&mut self, now_ns: u64, report: Report<B>, links: &mut impl Links<Block = B>) {
        self.now_ns = now_ns;
        match report {
            Report::Frame { peer, header, payload } => self.frame_came(peer, header, payload, links),
            Report::Up { peer, incarnation } => self.up(peer, incarnation, links),
            Report::Down { peer, loss } => self.down(peer, loss, links),
            Report::Acknowledged { peer, number } => self.acknowledged(peer, number),
            Report::Room { peer } => self.room(peer, links),
            Report::Absent { peer } => self.absent(peer, links),
        }
        self.settle(links);
    }

    /// Does what is due by time: gives the next instant at which something is, `u64::MAX` if nothing. To be called at
    /// least whenever the owner has looked at its links and before it sleeps.
    pub fn tick(&mut self, now_ns: u64, links: &mut impl Links<Block = B>) -> u64 {
        self.now_ns = now_ns;
        let due_ns = self.tell_owing(links).min(self.say_held(links));
        self.settle(links);
        due_ns
    }

    /// Ends the node: everything of its own is discarded, requests complete with [`Error::NodeNotInitialized`]. Peers hear of
    /// it from the links.
    pub fn end(&mut self) {
        for request in self.requests.all_pending() {
            self.complete(request, Err(Error::NodeNotInitialized));
        }
        self.left = true;
        self.changes += 1;
        self.own.clear();
        self.expected.clear();
        self.owing.clear();
        self.held.clear();
        self.endpoints = table::Endpoints::new(self.me, self.incarnation);
        self.peers = peers::Peers::new(self.me);
    }
}

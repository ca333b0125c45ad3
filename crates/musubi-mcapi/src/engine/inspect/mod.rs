//! A picture of a node: what it has, how full it is, what it has done; for tools on other nodes.
//!
//! What you may rely on: a part is at most [`PART_BYTES_MAX`] bytes; a decoder skips records that it does not know and
//! fields that were added at the end of those it knows; nothing in a part can make it panic or take more memory than the
//! part's size allows.
//!
//! How it works: little-endian. A part begins with `version` (u16, [`VERSION`]), 2 bytes 0, `next` (u32: the part to ask for
//! next, 0 for none), and goes on with records: kind (u8), 0 (u8), length of the rest (u16), fields in the order of the
//! structures below, enumerations and flags as u32. Record kinds: 1 [`NodePicture`], 2 [`PeerPicture`], 3 [`EndpointPicture`],
//! 4 [`ChannelPicture`], 5 [`LinkStatus`] (after its peer), 6 [`AcceptorStatus`] (in the first part), 7 [`LoggedEvent`] (in a part
//! of their own, the last), 8 [`WakeStatus`] (in the first part). Every part has one record of the node. Parts are made one by one: what changes between two
//! questions may be missing or twice. Rates are differences of counts, for the asker to take.

use alloc::vec::Vec;

mod fields;
mod links;

use super::Engine;
use super::peers::{ME, Peer, Standing};
use super::table::Endpoint;
use crate::{EndpointId, NodeId};
use fields::{Reader, Written as _, record};
use musubi_transport::links::{Block, Links};
use musubi_transport::status::{AcceptorStatus, LinkStatus, LoggedEvent, WakeStatus};

/// Version of the picture.
pub const VERSION: u16 = 1;
/// Most bytes of a part.
pub const PART_BYTES_MAX: usize = 60 * 1024;
/// Parts from here on begin with an endpoint's place.
const ENDPOINTS_FROM: u32 = 0x1_0000;
/// The part that is the log of connections.
const LOG: u32 = 0x2_0000;
/// Most bytes of a record of any kind but 6 and 7.
const RECORD_BYTES_MAX: usize = 128;

/// The node itself. All counts are since it began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodePicture {
    /// Which.
    pub node: NodeId,
    /// Which run of it.
    pub incarnation: u32,
    /// Endpoints that it has.
    pub endpoints: u32,
    /// Nodes that it has had to do with.
    pub peers: u32,
    /// Requests that exist.
    pub requests: u32,
    /// Questions of others for endpoints that do not exist yet.
    pub gets_held: u32,
    /// Frames refused, for whatever reason.
    pub refused: u64,
    /// Messages that came for endpoints that have gone.
    pub messages_dropped: u64,
}

/// A node that it has had to do with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeerPicture {
    /// Which.
    pub node: NodeId,
    /// 0 never linked, 1 linked, 2 gone, 3 cut off.
    pub standing: u32,
    /// Which run of it, as of the latest link.
    pub incarnation: u32,
    /// Messages and packets that the link has taken and not confirmed.
    pub unconfirmed: u32,
    /// Endpoints for which messages wait to be sent.
    pub waiting: u32,
    /// Control frames held back for want of room.
    pub held_back: u32,
    /// Questions that it has not answered.
    pub asked: u32,
    /// Messages sent to it.
    pub messages_sent: u64,
    /// Messages that came from it.
    pub messages_received: u64,
    /// Frames of all kinds that came from it.
    pub frames_received: u64,
    /// Frames from it that were refused.
    pub refused: u64,
    /// Links there have been.
    pub links: u64,
    /// Payload bytes of messages sent to it; `None` of a node that does not count them.
    pub message_bytes_sent: Option<u64>,
    /// Payload bytes of messages that came from it, likewise.
    pub message_bytes_received: Option<u64>,
}

/// An endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EndpointPicture {
    /// Its name.
    pub endpoint: EndpointId,
    /// Its port.
    pub port: u32,
    /// What for, see [`super::endpoint_type`].
    pub kind: u32,
    /// See [`super::endpoint_status`].
    pub status: u32,
    /// Gets that have not been released.
    pub gets: u32,
    /// Unread messages.
    pub queued: u32,
    /// Requests that wait for messages.
    pub receivers: u32,
    /// Messages that have come.
    pub messages: u64,
}

/// One end of a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChannelPicture {
    /// This end.
    pub endpoint: EndpointId,
    /// The other end.
    pub other: EndpointId,
    /// See [`super::endpoint_status`].
    pub status: u32,
    /// Packets or scalars unread, or waiting to be sent.
    pub depth: u32,
    /// Packets or scalars that went through.
    pub items: u64,
    /// Bytes that went through.
    pub bytes: u64,
}

/// A part of a node's picture, decoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// The node.
    pub node: NodePicture,
    /// Nodes it has had to do with.
    pub peers: Vec<PeerPicture>,
    /// Its endpoints.
    pub endpoints: Vec<EndpointPicture>,
    /// Its ends of channels.
    pub channels: Vec<ChannelPicture>,
    /// Its links.
    pub links: Vec<LinkStatus>,
    /// What became of the connections that others began, and it.
    pub door: Option<AcceptorStatus>,
    /// How often its threads were woken; `None` of a node that does not say it.
    pub wakes: Option<WakeStatus>,
    /// What happened to its connections, oldest first.
    pub log: Vec<LoggedEvent>,
    /// The part to ask for next.
    pub next: Option<u32>,
}

impl Part {
    /// The part that these bytes are; `None` if they are none, or of another version.
    pub fn decode(bytes: &[u8]) -> Option<Part> {
        let mut reader = Reader { bytes };
        if reader.u32()? as u16 != VERSION {
            return None;
        }
        let next = Some(reader.u32()?).filter(|next| *next != 0);
        let (mut node, mut door, mut wakes) = (None, None, None);
        let (mut peers, mut endpoints, mut channels) = (Vec::new(), Vec::new(), Vec::new());
        let (mut links, mut log) = (Vec::new(), Vec::new());
        while !reader.bytes.is_empty() {
            let (kind, mut fields) = reader.record()?;
            match kind {
                NODE => node = Some(NodePicture::read(&mut fields)?),
                PEER => peers.push(PeerPicture::read(&mut fields)?),
                ENDPOINT => endpoints.push(EndpointPicture::read(&mut fields)?),
                CHANNEL => channels.push(ChannelPicture::read(&mut fields)?),
                LINK => links.push(LinkStatus::read(&mut fields)?),
                DOOR => door = Some(AcceptorStatus::read(&mut fields)?),
                WAKES => wakes = Some(WakeStatus::read(&mut fields)?),
                ENTRY => log.push(LoggedEvent::read(&mut fields)?),
                _ => {}
            }
        }
        Some(Part { node: node?, peers, endpoints, channels, links, door, wakes, log, next })
    }
}

const NODE: u8 = 1;
const PEER: u8 = 2;
const ENDPOINT: u8 = 3;
const CHANNEL: u8 = 4;
const LINK: u8 = 5;
const DOOR: u8 = 6;
const ENTRY: u8 = 7;
const WAKES: u8 = 8;

impl<B: Block> Engine<B> {
    /// A part of this node's picture, encoded.
    pub fn picture(&self, part: u32, links: &impl Links<Block = B>) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(256);
        bytes.extend_from_slice(&u32::from(VERSION).to_le_bytes());
        bytes.extend_from_slice(&[0; 4]);
        self.node_picture().write(&mut bytes);
        if part == 0
            && let Some(door) = links.acceptor()
        {
            door.write(&mut bytes);
        }
        if part == 0
            && let Some(wakes) = links.wakes()
        {
            wakes.write(&mut bytes);
        }
        let next = match part {
            LOG.. => {
                links.log().into_iter().for_each(|entry| entry.write(&mut bytes));
                None
            }
            _ => self
                .peers_from(part, links, &mut bytes)
                .or_else(|| self.endpoints_from(part, &mut bytes))
                .or_else(|| (!links.log().is_empty()).then_some(LOG)),
        };
        bytes[4..8].copy_from_slice(&next.unwrap_or(0).to_le_bytes());
        bytes
    }

    /// Peers from a part on; gives the part that begins with the first for which there was no room.
    fn peers_from(&self, part: u32, links: &impl Links<Block = B>, bytes: &mut Vec<u8>) -> Option<u32> {
        if part >= ENDPOINTS_FROM {
            return None;
        }
        let first = (part as usize).max(usize::from(ME) + 1);
        for (place, peer) in self.peers.list.iter().enumerate().skip(first) {
            if bytes.len() + 2 * RECORD_BYTES_MAX > PART_BYTES_MAX {
                return Some(place as u32);
            }
            peer.picture().write(bytes);
            if let Some(link) = links.link(peer.node) {
                link.write(bytes);
            }
        }
        None
    }

    fn endpoints_from(&self, part: u32, bytes: &mut Vec<u8>) -> Option<u32> {
        let first = part.saturating_sub(ENDPOINTS_FROM).min(u32::from(u16::MAX)) as u16;
        for endpoint in self.endpoints.beginning_at(first) {
            if bytes.len() + 2 * RECORD_BYTES_MAX > PART_BYTES_MAX {
                return Some(ENDPOINTS_FROM + u32::from(endpoint.id.slot()));
            }
            self.endpoint_picture(endpoint).write(bytes);
            if let Some(channel) = self.channel_picture(endpoint) {
                channel.write(bytes);
            }
        }
        None
    }

    fn node_picture(&self) -> NodePicture {
        let counters = &self.counters;
        NodePicture {
            node: self.me,
            incarnation: self.incarnation,
            endpoints: self.endpoints.len() as u32,
            peers: self.peers.list.len() as u32 - 1,
            requests: self.requests.live() as u32,
            gets_held: self.peers.list.iter().map(|peer| peer.gets_held).sum(),
            refused: counters.unlinked
                + counters.not_theirs
                + counters.overruns
                + counters.unasked
                + counters.malformed
                + counters.crowded_out,
            messages_dropped: counters.messages_dropped,
        }
    }

    fn endpoint_picture(&self, endpoint: &Endpoint<B>) -> EndpointPicture {
        EndpointPicture {
            endpoint: endpoint.id,
            port: endpoint.port,
            kind: endpoint.attributes.kind,
            status: self.status(endpoint),
            gets: endpoint.gets,
            queued: endpoint.queued as u32,
            receivers: endpoint.receivers.len() as u32,
            messages: endpoint.messages,
        }
    }
}

impl Peer {
    fn picture(&self) -> PeerPicture {
        let standing = match self.standing {
            Standing::Unknown => 0,
            Standing::Linked => 1,
            Standing::Gone => 2,
            Standing::Cut => 3,
        };
        PeerPicture {
            node: self.node,
            standing,
            incarnation: self.incarnation,
            unconfirmed: self.unconfirmed.iter().map(|frames| frames.len() as u32).sum(),
            waiting: self.busy.len() as u32,
            held_back: self.outbox.len() as u32,
            asked: self.asked.len() as u32,
            messages_sent: self.counters.messages_sent,
            messages_received: self.counters.messages_received,
            frames_received: self.counters.frames_received,
            refused: self.counters.refused,
            links: self.counters.links,
            message_bytes_sent: Some(self.counters.message_bytes_sent),
            message_bytes_received: Some(self.counters.message_bytes_received),
        }
    }
}

record!(NodePicture, NODE, node, incarnation, endpoints, peers, requests, gets_held, refused, messages_dropped);
record!(
    PeerPicture,
    PEER,
    node,
    standing,
    incarnation,
    unconfirmed,
    waiting,
    held_back,
    asked,
    messages_sent,
    messages_received,
    frames_received,
    refused,
    links,
    message_bytes_sent,
    message_bytes_received
);
record!(EndpointPicture, ENDPOINT, endpoint, port, kind, status, gets, queued, receivers, messages);
record!(ChannelPicture, CHANNEL, endpoint, other, status, depth, items, bytes);

//! An end of a channel as a whole: its state and credit, the connection it is in, what waits in it and for it.
//!
//! What you may rely on: data only. Who connects, opens, sends and reads is the engine, a concept a file.

use alloc::collections::VecDeque;

use super::ChannelKind;
use super::credit::{Incoming, Outgoing, PACKETS, SCALARS, Size};
use super::state::ChannelState;
use super::unread::Unread;
use crate::name::RequestId;
use crate::{EndpointId, Error};
use musubi_transport::Priority;
use musubi_transport::links::{Payload, SharedBytes};

/// What a pending request about a channel waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChannelRequest {
    /// The answer of the owner of `from`.
    Connect { kind: ChannelKind, from: EndpointId, to: EndpointId },
    /// The answer of the receiving end's owner about our sending end `from`. It is the engine's own, not a program's.
    Accept { from: EndpointId },
    /// That both ends are open.
    Open { at: EndpointId },
    /// That both ends are closed.
    Close { at: EndpointId },
    /// Its turn in the queue of packets.
    SendPacket { at: EndpointId },
    /// A packet.
    ReceivePacket { at: EndpointId, handle: u32 },
}

/// The connection of an end, for the frames to the other one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wire {
    /// The other end's owner, by its place in the table of peers.
    pub place: u16,
    /// Class of the data.
    pub class: Priority,
    /// The other end.
    pub to: u32,
    /// Number of the connection as our frames say it; 0 for none.
    pub number: u32,
    /// As the other end's frames say it.
    pub expected: u32,
}

impl Wire {
    /// Of an end that is not connected.
    pub(crate) const NONE: Wire = Wire { place: 0, class: Priority::MOST_URGENT, to: 0, number: 0, expected: 0 };
}

/// The numbers of a connection are those of the sending end's owner, and each node has its own. So that two of them are not
/// taken for one, the receiving end says them with this bit.
pub(crate) const OF_RECEIVER: u32 = 1 << 31;

/// An end of a channel.
#[derive(Debug)]
pub(crate) struct ChannelEnd<B> {
    pub state: ChannelState,
    pub wire: Wire,
    /// The present opening's handle; 0 for none.
    pub handle: u32,
    pub opening: Option<RequestId>,
    pub closing: Option<RequestId>,
    /// The connecting that is under way.
    pub asking: Option<Asking>,
    /// Who had it connected.
    pub connected_by: Option<Asker>,
    /// Longest packet.
    pub payload_max: usize,
    /// A packet that must wait is refused.
    pub fails_when_full: bool,
    /// Sending: what is under way, what waits, how many bytes that is, whether the close follows it.
    pub out: Outgoing,
    pub queue: VecDeque<QueuedPacket>,
    pub queue_bytes: usize,
    pub close_due: bool,
    /// It is on the list of those that wait for room on the link.
    pub blocked: bool,
    /// Receiving: what came and has not been read, or who waits for it.
    pub incoming: Incoming,
    pub packets: VecDeque<Payload<B>>,
    pub scalars: Unread,
    pub receivers: VecDeque<RequestId>,
}

impl<B> ChannelEnd<B> {
    pub fn new() -> Self {
        ChannelEnd {
            state: ChannelState::NEW,
            wire: Wire::NONE,
            handle: 0,
            opening: None,
            closing: None,
            asking: None,
            connected_by: None,
            payload_max: 0,
            fails_when_full: false,
            out: Outgoing::default(),
            queue: VecDeque::new(),
            queue_bytes: 0,
            close_due: false,
            blocked: false,
            incoming: Incoming::default(),
            packets: VecDeque::new(),
            scalars: Unread::default(),
            receivers: VecDeque::new(),
        }
    }

    /// Packets and scalars that came and have not been read.
    pub fn unread(&self) -> usize {
        self.packets.len() + self.scalars.len()
    }

    /// Why nothing more comes or goes, if so.
    pub fn fate(&self) -> Option<Error> {
        match (self.state.peer_closed(), self.state.is_broken()) {
            (true, _) => Some(Error::ChannelInvalid),
            (_, true) => Some(Error::Transmission),
            _ => None,
        }
    }

    /// How much fits.
    pub fn size(&self) -> Size {
        match self.state.role() {
            Some(role) if role.kind == ChannelKind::Scalar => SCALARS,
            _ => PACKETS,
        }
    }
}

/// Who asked for a connection: its place among the peers, and its question's tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Asker {
    pub place: u16,
    pub tag: u32,
}

/// A connecting that is under way at the owner of the sending end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asking {
    pub kind: ChannelKind,
    /// The receiving end, whose owner is asked.
    pub to: EndpointId,
    pub asker: Asker,
    /// The question's request.
    pub request: RequestId,
}

/// A packet that waits to be sent.
#[derive(Debug)]
pub(crate) struct QueuedPacket {
    pub request: RequestId,
    pub payload: SharedBytes,
}

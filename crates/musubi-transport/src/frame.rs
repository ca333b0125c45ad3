//! Frames: what one node's engine says to another's (docs/wire.md).
//!
//! What you may rely on: a header is 24 bytes, little-endian, the same over shared memory and TCP. Decoding gives a
//! header whose kind and class exist and whose length its kind may have, or nothing.

use crate::limits::{CLASSES, MESSAGE_BYTES_MAX, PACKET_BYTES_MAX};

/// Version of the frames; nodes with another one refuse each other.
pub const VERSION: u16 = 2;

/// What a frame is. The fields of the header mean what each kind says; those not named are 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
#[non_exhaustive]
pub enum Kind {
    /// Message `from` an endpoint `to` another; class `1 + priority`.
    Message = 1,
    /// Credit: endpoint `from` has taken `value` messages (cumulative, wrapping) of the node that this is sent to.
    MessageCredit = 2,
    /// Asks for the endpoint at port `value` as soon as it exists; `tag` names the question.
    Get = 3,
    /// Answers `Get` `tag`: endpoint `to`, or `status`.
    GetReply = 4,
    /// Takes `Get` `tag` back.
    GetCancel = 5,
    /// The sender has no more use for endpoint `to` that it got.
    Release = 6,
    /// Asks for attribute `value` of endpoint `to`, or of the node if `to` is 0.
    AttributeGet = 7,
    /// Answers `AttributeGet` `tag`: the value as payload, or `status`.
    AttributeReply = 8,
    /// Asks the owner of `from` to connect it with `to`; `value` is the channel's type, 2 packets, 4 scalars.
    Connect = 9,
    /// Asks the owner of `to` to accept the connection; payload: the attributes of `from` that must be equal. `value` is the
    /// type, and above its low 16 bits the number of the node that connects. `tag` is the connection's number
    /// from now on; frames of the receiving end say it with the highest bit set.
    ConnectAccept = 10,
    /// Answers `Connect` or `ConnectAccept` `tag` with `status`.
    ConnectReply = 11,
    /// The other end of connection `tag` to endpoint `to` has been opened (`value` 1) or is no longer (`value` 0).
    Open = 12,
    /// The other end of connection `tag` to endpoint `to` has been closed.
    Close = 13,
    /// Packet on connection `tag` to endpoint `to`.
    Packet = 14,
    /// Scalar on connection `tag` to endpoint `to`: `value` is its size, the payload its 8 bytes.
    Scalar = 15,
    /// Credit on connection `from` for its sending end `to`: `value` packets or scalars, `tag` bytes taken (cumulative,
    /// wrapping). With `flags` 1 from the sender instead: it has found no room.
    ChannelCredit = 16,
    /// An endpoint `from` was deleted or its node leaves.
    Deleted = 17,
    /// Asks for an answer; `tag` and the payload come back.
    Ping = 18,
    /// Answers `Ping`.
    Pong = 19,
    /// Asks what the node looks like, from part `value` on.
    Inspect = 20,
    /// Answers `Inspect` `tag`: a part of the picture as payload.
    InspectReply = 21,
    /// Takes `Connect` `tag` for endpoint `from` back (`value` 0), or undoes connection `tag` to endpoint `to` (`value` 1), or
    /// asks the owner of its sending end `to` to do so (`value` 2).
    Disconnect = 22,
    /// Endpoint `from` is connected, so it takes no messages (`value` 1), or takes them again (`value` 0). Said to every linked
    /// node, and of all that are connected first thing over a new link.
    Connected = 23,
}

impl Kind {
    /// All kinds, in the order of their numbers.
    pub const ALL: [Kind; 23] = {
        use Kind::*;
        [
            Message,
            MessageCredit,
            Get,
            GetReply,
            GetCancel,
            Release,
            AttributeGet,
            AttributeReply,
            Connect,
            ConnectAccept,
            ConnectReply,
            Open,
            Close,
            Packet,
            Scalar,
            ChannelCredit,
            Deleted,
            Ping,
            Pong,
            Inspect,
            InspectReply,
            Disconnect,
            Connected,
        ]
    };

    /// By its number, with the most payload bytes: looked up, not decided, with each frame that comes.
    const BY_NUMBER: [(Option<Kind>, u32); 1 + Kind::ALL.len()] = {
        let mut table = [(None, 0); 1 + Kind::ALL.len()];
        let mut place = 0;
        while place < Kind::ALL.len() {
            let kind = Kind::ALL[place];
            table[kind as usize] = (Some(kind), kind.payload_max() as u32);
            place += 1;
        }
        table
    };

    /// Most payload bytes of a frame of this kind.
    pub const fn payload_max(self) -> usize {
        match self {
            Kind::Message => MESSAGE_BYTES_MAX,
            Kind::Packet => PACKET_BYTES_MAX,
            Kind::Scalar => 8,
            Kind::AttributeReply | Kind::ConnectAccept => 64,
            Kind::Ping | Kind::Pong | Kind::InspectReply => 65_536,
            _ => 0,
        }
    }
}

/// The fixed part of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// What it is.
    pub kind: Kind,
    /// Class on the link, below [`CLASSES`]. Frames of one class arrive in order.
    pub class: u8,
    /// 0, or an [`Error`](crate::Error) by its wire number.
    pub status: u8,
    /// Bits that the kind defines.
    pub flags: u8,
    /// Payload bytes.
    pub length: u32,
    /// An endpoint's bits.
    pub from: u32,
    /// An endpoint's bits.
    pub to: u32,
    /// Names a question to its asker, or what the kind says.
    pub tag: u32,
    /// What the kind says.
    pub value: u32,
}

impl Header {
    /// Bytes of a header.
    pub const BYTES: usize = 24;

    /// A header with everything 0 but its kind.
    pub const fn new(kind: Kind) -> Header {
        Header { kind, class: 0, status: 0, flags: 0, length: 0, from: 0, to: 0, tag: 0, value: 0 }
    }

    /// The words of a header: its bytes, four at a time, little-endian.
    pub const WORDS: usize = Header::BYTES / 4;

    /// The bytes for the wire.
    #[inline]
    pub fn encode(&self) -> [u8; Header::BYTES] {
        let mut bytes = [0; Header::BYTES];
        for (place, word) in bytes.as_chunks_mut::<4>().0.iter_mut().zip(self.to_words()) {
            *place = word.to_le_bytes();
        }
        bytes
    }

    /// The header that these bytes are, if they are one.
    #[inline]
    pub fn decode(bytes: &[u8; Header::BYTES]) -> Option<Header> {
        let (words, _) = bytes.as_chunks::<4>();
        Header::from_words(core::array::from_fn(|place| u32::from_le_bytes(words[place])))
    }

    /// [`Header::encode`] for memory that is written in words.
    #[inline]
    pub fn to_words(&self) -> [u32; Header::WORDS] {
        let first = u32::from_le_bytes([self.kind as u8, self.class, self.status, self.flags]);
        [first, self.length, self.from, self.to, self.tag, self.value]
    }

    /// [`Header::decode`] likewise.
    #[inline]
    pub fn from_words([first, length, from, to, tag, value]: [u32; Header::WORDS]) -> Option<Header> {
        let [kind, class, status, flags] = first.to_le_bytes();
        let (kind, payload_max) = *Kind::BY_NUMBER.get(usize::from(kind))?;
        if class >= CLASSES || length > payload_max {
            return None;
        }
        let kind = kind?;
        Some(Header { kind, class, status, flags, length, from, to, tag, value })
    }
}

//! The kinds of MCAPI's frames (docs/wire.md), which links carry without knowing them.
//!
//! What you may rely on: an engine is handed frames only whose kind and class are one of these and whose length the kind may
//! have; the link ends where one is not.

use musubi_transport::Priority;
pub use musubi_transport::frame::Header;
use musubi_transport::frame::{Kinds, Shape};

use crate::limits::{CLASS_OF_PRIORITY, MESSAGE_BYTES_MAX, PACKET_BYTES_MAX};

/// What links are told of them.
pub static KINDS: Kinds = Kinds { least_urgent: class_of(CLASS_OF_PRIORITY.len() as u8 - 1), shapes: &Kind::SHAPES };

/// The class of a priority; of one that does not exist, that of the least urgent.
#[inline]
pub const fn class_of(priority: u8) -> Priority {
    let last = CLASS_OF_PRIORITY.len() - 1;
    let priority = priority as usize;
    CLASS_OF_PRIORITY[if priority < last { priority } else { last }]
}

/// The priority whose frames are of this class; `None` for control's.
#[inline]
pub fn priority_of(class: Priority) -> Option<u8> {
    CLASS_OF_PRIORITY.iter().position(|of| *of == class).map(|priority| priority as u8)
}

/// What a frame is. The fields of the header mean what each kind says; those not named are 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
#[non_exhaustive]
pub enum Kind {
    /// Message `from` an endpoint `to` another; class [`class_of`] its priority.
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
    /// Takes `Connect` `tag` for endpoint `from` back (`value` 0); or the owner of the sending end has undone connection `tag`
    /// to endpoint `to` (`value` 1), or the one of the receiving end has given it up (`value` 2).
    Disconnect = 22,
    /// Endpoint `from` is connected, so it takes no messages (`value` 1), or takes them again (`value` 0). Said to every linked
    /// node, and of all that are connected first thing over a new link; then, with `from` 0, that this was all.
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

    /// By their numbers, as links check them.
    const SHAPES: [Option<Shape>; 1 + Kind::ALL.len()] = {
        let mut table = [None; 1 + Kind::ALL.len()];
        let mut place = 0;
        while place < Kind::ALL.len() {
            let kind = Kind::ALL[place];
            let awaited = matches!(kind, Kind::Message);
            table[kind as usize] = Some(Shape { payload_max: kind.payload_max() as u32, awaited });
            place += 1;
        }
        table
    };

    /// The kind of this number.
    #[inline]
    pub fn of(number: u8) -> Option<Kind> {
        Kind::ALL.get(usize::from(number).wrapping_sub(1)).copied()
    }

    /// Whether the receiver has to answer it.
    pub const fn asks(self) -> bool {
        use Kind::*;
        matches!(self, Get | AttributeGet | Connect | ConnectAccept | Ping | Inspect)
    }

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_priority_has_a_class_of_its_own_behind_controls() {
        let classes = [0, 1, 2, 3].map(|of| class_of(of).class());
        assert_eq!(classes, [1, 2, 3, 4]);
        assert_eq!(class_of(4), class_of(3));
        let back = Priority::all().map(priority_of);
        assert!(back.eq([None, Some(0), Some(1), Some(2), Some(3), None, None, None]));
    }

    #[test]
    fn frames_of_other_classes_are_refused() {
        for number in 0..=u8::MAX {
            let mut bytes = Header::new(Kind::Message as u8).encode();
            bytes[1] = number;
            let class = Header::decode(&bytes, &KINDS).map(|header| header.class.class());
            assert_eq!(class, (number <= 4).then_some(number));
        }
    }
}

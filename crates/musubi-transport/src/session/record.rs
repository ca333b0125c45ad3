//! What a connection carries after the hellos: records, each a piece of a frame or a word of the session itself.
//!
//! What you may rely on: [`Record::decode`] gives a record whose kind exists, whose class the
//! protocol uses, and whose length its kind may have.

use crate::Priority;
use crate::frame::{Header, Kinds};
use crate::limits::PAYLOAD_BYTES_MAX;

/// What a record is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Word {
    /// The first piece of a frame: its header and the beginning of its payload, maybe all.
    First = 1,
    /// The next piece of the frame that the class has begun.
    More = 2,
    /// Nothing but an acknowledgement; also the heartbeat and the answer to a welcome.
    Ack = 3,
    /// The sender leaves; everything it had to say has been said. Flag 1: the answer to that.
    Bye = 4,
}

impl Word {
    /// All, in the order of their numbers.
    pub const ALL: [Word; 4] = [Word::First, Word::More, Word::Ack, Word::Bye];
}

/// The fixed part of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// What it is.
    pub word: Word,
    /// Class of the frame that it is a piece of; the most urgent if none.
    pub class: Priority,
    /// See [`Word::Bye`].
    pub flags: u8,
    /// Bytes that follow.
    pub length: u32,
    /// Pieces are numbered from 1, wrapping; 0 if it is none.
    pub number: u32,
    /// The sender has every piece up to this number.
    pub received: u32,
}

impl Record {
    /// Bytes of the fixed part.
    pub const BYTES: usize = 16;

    /// The bytes for the wire.
    #[inline]
    pub fn encode(&self) -> [u8; Record::BYTES] {
        let mut bytes = [0; Record::BYTES];
        bytes[..4].copy_from_slice(&[self.word as u8, self.class.class(), self.flags, 0]);
        bytes[4..8].copy_from_slice(&self.length.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.number.to_le_bytes());
        bytes[12..].copy_from_slice(&self.received.to_le_bytes());
        bytes
    }

    /// The record that these bytes begin, if they may begin one among frames of these kinds.
    #[inline]
    pub fn decode(bytes: &[u8; Record::BYTES], kinds: &Kinds) -> Option<Record> {
        let number = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        let word = *Word::ALL.get(usize::from(bytes[0]).checked_sub(1)?)?;
        let (class, length) = (kinds.class(bytes[1])?, number(4));
        let right = match word {
            Word::First => length as usize >= Header::BYTES,
            Word::More => length > 0,
            Word::Ack | Word::Bye => class == Priority::MOST_URGENT && length == 0,
        };
        if !right || length as usize > Header::BYTES + PAYLOAD_BYTES_MAX || bytes[3] != 0 {
            return None;
        }
        Some(Record { word, class, flags: bytes[2], length, number: number(8), received: number(12) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A protocol that uses classes 0 to 4.
    const KINDS: &Kinds = &Kinds { least_urgent: Priority::new(4).unwrap(), shapes: &[] };

    #[test]
    fn what_is_said_is_understood() {
        for (word, class, length) in [(Word::First, 4, 24), (Word::More, 0, 1), (Word::Ack, 0, 0), (Word::Bye, 0, 0)] {
            let class = Priority::new(class).unwrap();
            let record = Record { word, class, flags: 1, length, number: 7, received: u32::MAX };
            assert_eq!(Record::decode(&record.encode(), KINDS), Some(record));
        }
    }

    #[test]
    fn the_protocol_says_up_to_which_class() {
        let every = &Kinds { least_urgent: Priority::LEAST_URGENT, ..*KINDS };
        for class in Priority::all() {
            let record = Record { word: Word::More, class, flags: 0, length: 1, number: 1, received: 0 };
            assert_eq!(Record::decode(&record.encode(), every), Some(record));
            assert_eq!(Record::decode(&record.encode(), KINDS).is_some(), class.class() < 5, "{class:?}");
        }
        let mut bytes = [2, 8, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0];
        assert_eq!(Record::decode(&bytes, every), None, "there is no class 8");
        bytes[1] = 7;
        assert!(Record::decode(&bytes, every).is_some());
    }

    #[test]
    fn impossible_ones_are_none() {
        let of = |word: u8, class: u8, length: u32| {
            let mut bytes = [0; Record::BYTES];
            (bytes[0], bytes[1]) = (word, class);
            bytes[4..8].copy_from_slice(&length.to_le_bytes());
            Record::decode(&bytes, KINDS)
        };
        for (word, class, length) in [
            (0, 0, 0),
            (5, 0, 0),
            (1, 5, 24),
            (1, 255, 24),
            (2, 5, 1),
            (1, 0, 23),
            (2, 0, 0),
            (2, 0, 1 << 21),
            (3, 1, 0),
            (4, 0, 8),
        ] {
            assert_eq!(of(word, class, length), None, "{word} {class} {length}");
        }
    }
}

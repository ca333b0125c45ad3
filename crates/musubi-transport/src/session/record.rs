//! What a connection carries after the hellos: records, each a piece of a frame or a word of the session itself.
//!
//! What you may rely on: [`Record::decode`] gives a record whose kind and class exist and whose length its kind may have.

use crate::frame::Header;
use crate::limits::{CLASSES, PAYLOAD_BYTES_MAX};

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
    /// Class of the frame that it is a piece of; 0 if none.
    pub class: u8,
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
        bytes[..4].copy_from_slice(&[self.word as u8, self.class, self.flags, 0]);
        bytes[4..8].copy_from_slice(&self.length.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.number.to_le_bytes());
        bytes[12..].copy_from_slice(&self.received.to_le_bytes());
        bytes
    }

    /// The record that these bytes begin, if they may begin one.
    #[inline]
    pub fn decode(bytes: &[u8; Record::BYTES]) -> Option<Record> {
        let number = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        let word = *Word::ALL.get(usize::from(bytes[0]).checked_sub(1)?)?;
        let (class, length) = (bytes[1], number(4));
        let right = match word {
            Word::First => class < CLASSES && length as usize >= Header::BYTES,
            Word::More => class < CLASSES && length > 0,
            Word::Ack | Word::Bye => class == 0 && length == 0,
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

    #[test]
    fn what_is_said_is_understood() {
        for (word, class, length) in [(Word::First, 4, 24), (Word::More, 0, 1), (Word::Ack, 0, 0), (Word::Bye, 0, 0)] {
            let record = Record { word, class, flags: 1, length, number: 7, received: u32::MAX };
            assert_eq!(Record::decode(&record.encode()), Some(record));
        }
    }

    #[test]
    fn impossible_ones_are_none() {
        let of = |word: u8, class: u8, length: u32| {
            let mut bytes = [0; Record::BYTES];
            (bytes[0], bytes[1]) = (word, class);
            bytes[4..8].copy_from_slice(&length.to_le_bytes());
            Record::decode(&bytes)
        };
        for (word, class, length) in
            [(0, 0, 0), (5, 0, 0), (1, 5, 24), (1, 0, 23), (2, 0, 0), (2, 0, 1 << 21), (3, 1, 0), (4, 0, 8)]
        {
            assert_eq!(of(word, class, length), None, "{word} {class} {length}");
        }
    }
}

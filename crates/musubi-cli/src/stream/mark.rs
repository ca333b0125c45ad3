//! The marks of a stream's beginning and end: which stream it is, in the stream.
//!
//! What you may rely on: a mark names one stream of one sender incarnation, so no mark of one stream can end another, and
//! a program's own messages are not taken for a stream's.
//!
//! How it works: an empty message, then the 16 bytes of a mark, in as many messages as blocks of the channel need; one
//! byte a block suffices. All words are little-endian.

/// Bytes of a mark.
pub const MARK_BYTES: usize = 16;
/// What a mark begins with: name and version of this way to send a stream.
const MAGIC: [u8; 7] = *b"musubi\x01";

/// Which of the two marks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Begin,
    End,
}

/// A stream: the incarnation of the participant that sends it, and its number there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamId {
    pub epoch: u32,
    pub number: u32,
}

/// A mark of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    pub kind: Kind,
    pub stream: StreamId,
}

impl Mark {
    pub fn to_bytes(self) -> [u8; MARK_BYTES] {
        let mut bytes = [0; MARK_BYTES];
        bytes[..7].copy_from_slice(&MAGIC);
        bytes[7] = match self.kind {
            Kind::Begin => b'<',
            Kind::End => b'>',
        };
        bytes[8..12].copy_from_slice(&self.stream.epoch.to_le_bytes());
        bytes[12..].copy_from_slice(&self.stream.number.to_le_bytes());
        bytes
    }

    /// `None` of bytes that are no mark.
    pub fn from_bytes(bytes: [u8; MARK_BYTES]) -> Option<Mark> {
        let kind = match bytes[7] {
            b'<' => Kind::Begin,
            b'>' => Kind::End,
            _ => return None,
        };
        let word = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        let stream = StreamId { epoch: word(8), number: word(12) };
        (bytes[..7] == MAGIC).then_some(Mark { kind, stream })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_come_back_and_nothing_else_is_one() {
        for kind in [Kind::Begin, Kind::End] {
            let mark = Mark { kind, stream: StreamId { epoch: 0xdead_beef, number: 7 } };
            assert_eq!(Mark::from_bytes(mark.to_bytes()), Some(mark));
            for at in 0..8 {
                let mut bytes = mark.to_bytes();
                bytes[at] ^= 0x80;
                assert_eq!(Mark::from_bytes(bytes), None);
            }
        }
    }
}

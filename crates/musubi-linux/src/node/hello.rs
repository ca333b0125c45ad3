//! The messages by which two nodes meet: 64 bytes, little-endian, one a packet.
//!
//! What you may rely on: [`Hello::parse`] is a pure function that never panics; what it accepts, [`Hello::bytes`] gives
//! back bit by bit. Numbers in a message are claims.
//!
//! ```text
//!  0 u32 magic "MSBn"   4 u16 version   6 u16 kind     8 u64 hash of the description
//! 16 u16 from          18 u16 to       20 u32 incarnation
//! 24 u32 slots         28 u32 blocks   32 u32 block bytes   36 u32 reason   40 u16 version of the frames
//! ```

use musubi_core::layout::LinkShape;

/// Length of every message in bytes.
pub const HELLO_BYTES: usize = 64;
const MAGIC: u32 = u32::from_le_bytes(*b"MSBn");
const VERSION: u16 = 1;

/// Why two nodes do not link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refused {
    /// Versions or sizes of links differ: the two were not built from one version.
    Version,
    /// The descriptions differ.
    Description,
    /// The user differs.
    User,
    /// The caller is not who it says, or means another node.
    Node,
    /// What it sent is not the memory of a link.
    Memory,
    /// Both called at the same time, and the call of the refuser counts.
    Crossed,
    /// No room for more; try again.
    Busy,
}

/// All reasons, in the order of their numbers from 1.
const REASONS: [Refused; 7] = [
    Refused::Version,
    Refused::Description,
    Refused::User,
    Refused::Node,
    Refused::Memory,
    Refused::Crossed,
    Refused::Busy,
];

/// What a message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// First word of who calls; carries its section and its bell.
    Call,
    /// The answer; carries the same.
    Welcome,
    /// The other answer; the connection ends.
    Refuse(Refused),
}

/// A message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hello {
    /// What it is.
    pub kind: Kind,
    /// Hash of the speaker's description.
    pub hash: u64,
    /// Index of the speaker.
    pub from: u16,
    /// Index of whom it means.
    pub to: u16,
    /// Tells one run of the speaker from another.
    pub incarnation: u32,
    /// Sizes of its links.
    pub shape: LinkShape,
    /// Version of its frames.
    pub frames: u16,
}

/// The bytes are not a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Garbage {
    /// Not ours at all.
    Foreign,
    /// Ours, of another version.
    Version,
}

impl Hello {
    /// Reads a message.
    ///
    /// # Errors
    /// [`Garbage`] if the bytes are none.
    pub fn parse(bytes: &[u8]) -> Result<Hello, Garbage> {
        let bytes: &[u8; HELLO_BYTES] = bytes.try_into().map_err(|_| Garbage::Foreign)?;
        if word(bytes, 0) != MAGIC {
            return Err(Garbage::Foreign);
        }
        if half(bytes, 4) != VERSION {
            return Err(Garbage::Version);
        }
        let kind = match (half(bytes, 6), word(bytes, 36)) {
            (1, 0) => Kind::Call,
            (2, 0) => Kind::Welcome,
            (3, reason @ 1..) => Kind::Refuse(*REASONS.get(reason as usize - 1).ok_or(Garbage::Foreign)?),
            _ => return Err(Garbage::Foreign),
        };
        let hello = Hello {
            kind,
            hash: u64::from(word(bytes, 8)) | u64::from(word(bytes, 12)) << 32,
            from: half(bytes, 16),
            to: half(bytes, 18),
            incarnation: word(bytes, 20),
            shape: LinkShape { slots: word(bytes, 24), blocks: word(bytes, 28), block_bytes: word(bytes, 32) },
            frames: half(bytes, 40),
        };
        if hello.bytes() == *bytes { Ok(hello) } else { Err(Garbage::Foreign) }
    }

    /// The message as it travels.
    pub fn bytes(&self) -> [u8; HELLO_BYTES] {
        let (kind, reason) = match self.kind {
            Kind::Call => (1u16, 0),
            Kind::Welcome => (2, 0),
            Kind::Refuse(reason) => (3, 1 + REASONS.iter().position(|other| *other == reason).unwrap_or(0) as u32),
        };
        let mut bytes = [0; HELLO_BYTES];
        bytes[0..4].copy_from_slice(&MAGIC.to_le_bytes());
        bytes[4..6].copy_from_slice(&VERSION.to_le_bytes());
        bytes[6..8].copy_from_slice(&kind.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.hash.to_le_bytes());
        bytes[16..18].copy_from_slice(&self.from.to_le_bytes());
        bytes[18..20].copy_from_slice(&self.to.to_le_bytes());
        bytes[20..24].copy_from_slice(&self.incarnation.to_le_bytes());
        bytes[24..28].copy_from_slice(&self.shape.slots.to_le_bytes());
        bytes[28..32].copy_from_slice(&self.shape.blocks.to_le_bytes());
        bytes[32..36].copy_from_slice(&self.shape.block_bytes.to_le_bytes());
        bytes[36..40].copy_from_slice(&reason.to_le_bytes());
        bytes[40..42].copy_from_slice(&self.frames.to_le_bytes());
        bytes
    }
}

fn word(bytes: &[u8; HELLO_BYTES], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

fn half(bytes: &[u8; HELLO_BYTES], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_come_back_and_garbage_does_not() {
        let shape = LinkShape { slots: 256, blocks: 32, block_bytes: 1 << 20 };
        let of = |kind| Hello { kind, hash: u64::MAX - 5, from: 3, to: 4, incarnation: 9, shape, frames: 1 };
        let refusals = REASONS.iter().map(|reason| Kind::Refuse(*reason));
        for kind in [Kind::Call, Kind::Welcome].into_iter().chain(refusals) {
            let bytes = of(kind).bytes();
            assert_eq!(Hello::parse(&bytes), Ok(of(kind)));
            for at in 0..HELLO_BYTES {
                let mut changed = bytes;
                changed[at] ^= 0x40;
                assert_ne!(Hello::parse(&changed), Ok(of(kind)), "byte {at}");
            }
            assert_eq!(Hello::parse(&bytes[1..]), Err(Garbage::Foreign));
        }
    }
}

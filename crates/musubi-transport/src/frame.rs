//! Frames: what one node's protocol says to another's (docs/wire.md).
//!
//! What you may rely on: a header is 24 bytes, little-endian, the same over shared memory and TCP. Decoding gives a
//! header whose kind and class exist and whose length its kind may have, or nothing.
//!
//! How it works: which kinds there are is the protocol's to say, as numbers ([`Kinds`]); links look a number up, and carry
//! the words behind it as they are. A frame's class is one of the plan's priorities, the same scale as that of channels; a
//! protocol says up to which it uses them.

use crate::Priority;

/// Version of the frames; nodes with another one refuse each other.
pub const VERSION: u16 = 3;

// Images that map one memory compare the version of their links, which so says both.
const _: () = assert!(VERSION as u32 == musubi_core::layout::LINK_VERSION);

/// What links must know of a kind of frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Most payload bytes.
    pub payload_max: u32,
    /// A sender may wait for its acknowledgement, which is to go out soon; that of others goes with what is sent anyway.
    pub awaited: bool,
}

/// The frames of a protocol, as far as links check them.
#[derive(Clone, Copy, Debug)]
pub struct Kinds {
    /// The last class in use. [`Priority::MOST_URGENT`] is control's, which never waits for data.
    pub least_urgent: Priority,
    /// By number of the kind; none where there is no such kind.
    pub shapes: &'static [Option<Shape>],
}

impl Kinds {
    /// No frames: of links that are only opened.
    pub const NONE: &'static Kinds = &Kinds { least_urgent: Priority::MOST_URGENT, shapes: &[] };

    /// The shape of the kind of this number.
    #[inline]
    pub fn shape(&self, kind: u8) -> Option<Shape> {
        *self.shapes.get(usize::from(kind))?
    }

    /// The class that a peer named by this number, if it is in use.
    #[inline]
    pub fn class(&self, number: u8) -> Option<Priority> {
        Priority::new(number).filter(|class| *class <= self.least_urgent)
    }
}

/// The fixed part of a frame. Kind, class and length are the link's business too; the rest is the protocol's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// What it is: a number of the protocol's.
    pub kind: u8,
    /// Class on the link. Frames of one class arrive in order.
    pub class: Priority,
    /// 0, or why something failed, as the kind says.
    pub status: u8,
    /// Bits that the kind defines.
    pub flags: u8,
    /// Payload bytes.
    pub length: u32,
    /// Whom it is from, as the kind says.
    pub from: u32,
    /// Whom it is for, as the kind says.
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
    pub const fn new(kind: u8) -> Header {
        Header { kind, class: Priority::MOST_URGENT, status: 0, flags: 0, length: 0, from: 0, to: 0, tag: 0, value: 0 }
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

    /// The header that these bytes are, if they are one of these kinds.
    #[inline]
    pub fn decode(bytes: &[u8; Header::BYTES], kinds: &Kinds) -> Option<Header> {
        let (words, _) = bytes.as_chunks::<4>();
        Header::from_words(core::array::from_fn(|place| u32::from_le_bytes(words[place])), kinds)
    }

    /// [`Header::encode`] for memory that is written in words.
    #[inline]
    pub fn to_words(&self) -> [u32; Header::WORDS] {
        let first = u32::from_le_bytes([self.kind, self.class.class(), self.status, self.flags]);
        [first, self.length, self.from, self.to, self.tag, self.value]
    }

    /// [`Header::decode`] likewise.
    #[inline]
    pub fn from_words([first, length, from, to, tag, value]: [u32; Header::WORDS], kinds: &Kinds) -> Option<Header> {
        let [kind, class, status, flags] = first.to_le_bytes();
        let (shape, class) = (kinds.shape(kind)?, kinds.class(class)?);
        if length > shape.payload_max {
            return None;
        }
        Some(Header { kind, class, status, flags, length, from, to, tag, value })
    }
}

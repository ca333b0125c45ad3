//! The byte layout of a link between two nodes that share memory: one section each. Documented in docs/layout.md.
//!
//! What you may rely on: as for [`super`]: 32-bit words, one writer each, words of different rhythm in lines of their own.
//!
//! How it works: a section has a header, the line of its sleeper, the line of how far its reader has come, the ring of
//! returned blocks, the slots of its lane, and, from the next page on, its blocks.

use super::{LINE_BYTES, PAGE_BYTES, round_up};
use crate::words::WORDS_MAX;

/// First word of a link's section: "MSBl" read as little-endian bytes.
pub const LINK_MAGIC: u32 = u32::from_le_bytes(*b"MSBl");
/// Version of this layout and of the frames that are its records (docs/wire.md): raised with either, for images that map one
/// memory compare nothing else before they talk.
pub const LINK_VERSION: u32 = 3;

/// Words of a link's section, as 32-bit indices from its start. Writer: the node whose section it is.
pub mod link {
    /// [`super::LINK_MAGIC`].
    pub const MAGIC: u32 = 0;
    /// [`super::LINK_VERSION`].
    pub const VERSION: u32 = 1;
    /// Low half of the hash of the description.
    pub const HASH_LOW: u32 = 2;
    /// High half of it.
    pub const HASH_HIGH: u32 = 3;
    /// Number of the node.
    pub const NODE: u32 = 4;
    /// Number of the node at the other end.
    pub const PEER: u32 = 5;
    /// Incarnation of the node.
    pub const INCARNATION: u32 = 6;
    /// Slots of the lane.
    pub const SLOTS: u32 = 7;
    /// Number of blocks.
    pub const BLOCKS: u32 = 8;
    /// Bytes of a block.
    pub const BLOCK_BYTES: u32 = 9;
    /// In mapped memory: which link of this node this is; even while there is none to be had.
    pub const OFFER: u32 = 10;
    /// In mapped memory: the other node's offer before which we use nothing of its section any more.
    pub const SEEN: u32 = 11;
    /// In mapped memory: the other node's offer for which our section is clear.
    pub const READY: u32 = 12;
    /// What the sleeping node wants to be rung for ([`super::awaited`]); 0 while it is awake.
    pub const WAITING: u32 = 16;
    /// Slots of the other lane that were read.
    pub const TAKEN: u32 = 32;
    /// Where the ring of returned blocks begins: a word a block.
    pub const RETURNS: u32 = 48;
}

/// Words of a slot of a lane. Writer: the node whose section it is.
pub mod record {
    /// Lap, mark and length. In the first slot of a record written last.
    pub const TAG: u32 = 0;
    /// The first word of what the record says.
    pub const DATA: u32 = 1;
    /// Length in words: a line.
    pub const WORDS: u32 = 16;
}

/// Bits of [`link::WAITING`].
pub mod awaited {
    /// A record in the other lane.
    pub const RECORD: u32 = 1;
    /// Room in the own lane, or a block.
    pub const ROOM: u32 = 2;
    /// Classes that records may have.
    pub const CLASSES: u8 = 8;
    /// Where the bits of the classes begin.
    const CLASSES_AT: u32 = 8;

    /// A record of this class, where not every record is awaited.
    pub const fn record_of(class: u8) -> u32 {
        1 << (CLASSES_AT + (class % CLASSES) as u32)
    }

    /// A record of any of these classes, a bit each.
    pub const fn records_of(classes: u8) -> u32 {
        (classes as u32) << CLASSES_AT
    }
}

/// Most blocks of a link.
pub const LINK_BLOCKS_MAX: u32 = 32;
/// Fewest and most slots of a lane.
const SLOTS_MIN: u32 = 4;
const SLOTS_MAX: u32 = 1 << 16;

/// Sizes of a link that both nodes must have alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkShape {
    /// Slots of each lane, a power of two.
    pub slots: u32,
    /// Blocks of each side, at most [`LINK_BLOCKS_MAX`].
    pub blocks: u32,
    /// Payload bytes of a block.
    pub block_bytes: u32,
}

impl LinkShape {
    /// Whether the numbers can be those of a link.
    pub const fn is_sound(&self) -> bool {
        self.slots.is_power_of_two()
            && self.slots >= SLOTS_MIN
            && self.slots <= SLOTS_MAX
            && self.blocks >= 1
            && self.blocks <= LINK_BLOCKS_MAX
            && self.section_bytes().is_some()
    }

    /// Word index of the first slot.
    pub const fn slots_at(&self) -> u32 {
        link::RETURNS + self.blocks.next_multiple_of(LINE_BYTES / 4)
    }

    /// Byte offset of the first block.
    pub const fn blocks_at(&self) -> u32 {
        ((self.slots_at() + self.slots * record::WORDS) * 4).next_multiple_of(PAGE_BYTES)
    }

    /// Bytes from one block to the next: not a multiple of a page, so that blocks do not fight for the same places of a
    /// cache, and never so that two share a page's line.
    pub const fn stride_bytes(&self) -> Option<u32> {
        match round_up(self.block_bytes, LINE_BYTES) {
            Some(bytes) => bytes.checked_add(PAGE_BYTES + LINE_BYTES),
            None => None,
        }
    }

    /// Byte offset of a block; `None` if there is no such block.
    pub const fn block_at(&self, block: u32) -> Option<u32> {
        match self.stride_bytes() {
            Some(stride) if block < self.blocks => Some(self.blocks_at() + block * stride),
            _ => None,
        }
    }

    /// Length of a section in bytes, a multiple of [`PAGE_BYTES`]; `None` if it is too long for a view.
    pub const fn section_bytes(&self) -> Option<u32> {
        let Some(stride) = self.stride_bytes() else { return None };
        let Some(blocks) = self.blocks.checked_mul(stride) else { return None };
        let Some(end) = self.blocks_at().checked_add(blocks) else { return None };
        match round_up(end, PAGE_BYTES) {
            Some(bytes) if bytes / 4 <= WORDS_MAX => Some(bytes),
            _ => None,
        }
    }
}

const _: () = {
    let line = LINE_BYTES / 4;
    assert!(link::READY < line && link::WAITING == line);
    assert!(link::TAKEN == 2 * line && link::RETURNS == 3 * line && record::WORDS == line);
};

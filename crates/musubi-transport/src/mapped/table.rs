//! The description of the nodes that map one memory.
//!
//! What you may rely on: programs whose tables differ do not meet: a hash of the table is in what each says when it begins.

use musubi_core::lane::Region;
use musubi_core::layout::LinkShape;

use crate::{LinkError, NodeId};

/// Fewest slots of a lane: a quarter of it must hold a record beside what is kept for control.
const SLOTS_MIN: u32 = 256;
/// Fewest bytes of a block: the longest payload that might not travel in the lane.
const BLOCK_BYTES_MIN: u32 = 1024;

/// Which nodes there are and how large their links are; the same in each program, or they do not meet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Table<'t> {
    /// The nodes, by their places in the memory.
    pub nodes: &'t [NodeId],
    /// Sizes of every link. A payload is at most a block's bytes.
    pub shape: LinkShape,
}

impl<'t> Table<'t> {
    /// Small links: payloads to 4 KiB, 8 under way each way.
    pub const SMALL: LinkShape = LinkShape { slots: SLOTS_MIN, blocks: 8, block_bytes: 4096 };

    /// These nodes with links of [`Table::SMALL`].
    pub const fn new(nodes: &'t [NodeId]) -> Table<'t> {
        Table { nodes, shape: Self::SMALL }
    }

    /// Bytes of memory that all nodes map.
    ///
    /// # Panics
    /// If there are no such links; in a constant, when it is compiled.
    pub const fn bytes(&self) -> usize {
        match Region::bytes(self.nodes.len() as u16, self.shape) {
            Some(bytes) => bytes as usize,
            None => panic!("no links of this shape between so many nodes"),
        }
    }

    /// FNV-1a of all that it says, so that programs with other tables are told apart.
    pub fn hash(&self) -> u64 {
        let words = [self.shape.slots, self.shape.blocks, self.shape.block_bytes];
        let nodes = self.nodes.iter().map(|node| node.index() as u32);
        let bytes = nodes.chain(words).flat_map(u32::to_le_bytes);
        bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
    }

    /// Whether it can be the table of this memory.
    pub(super) fn check(&self, region: &Region<'_>) -> Result<(), LinkError> {
        let fits = usize::from(region.nodes()) == self.nodes.len() && region.shape() == self.shape;
        let large = self.shape.slots >= SLOTS_MIN && self.shape.block_bytes >= BLOCK_BYTES_MIN;
        let unique = (1..self.nodes.len()).all(|place| !self.nodes[..place].contains(&self.nodes[place]));
        if fits && large && unique { Ok(()) } else { Err(LinkError::Unavailable) }
    }
}

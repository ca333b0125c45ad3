//! Names of nodes and endpoints, the same 32 bits everywhere, so that programs can send them to one another.
//!
//! How it works: an endpoint's name is `0 | domain 5 | node 10 | slot 10 | generation 6`, from the highest bit. The slot
//! is the owner's place for it, not the port; the generation, 1 to 63, tells it from earlier endpoints of that slot. The
//! highest bit is 0, so the name prints the same signed and unsigned, and 0 names nothing.

use crate::limits::{DOMAIN_MAX, NODE_MAX, TOOL_DOMAIN, TOOL_NODES};

const NODE_BITS: u32 = 10;
const SLOT_BITS: u32 = 10;
const GENERATION_BITS: u32 = 6;

/// A node: domain and number in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(u16);

impl NodeId {
    /// How many names there are; [`NodeId::index`] is below.
    pub const COUNT: usize = ((DOMAIN_MAX as usize) + 1) << NODE_BITS;

    /// The node of these numbers, if both are within the limits.
    pub const fn new(domain: u32, node: u32) -> Option<Self> {
        if domain > DOMAIN_MAX || node > NODE_MAX {
            return None;
        }
        Some(NodeId((domain << NODE_BITS | node) as u16))
    }
    /// The domain.
    pub const fn domain(self) -> u32 {
        self.0 as u32 >> NODE_BITS
    }
    /// The number in the domain.
    pub const fn node(self) -> u32 {
        self.0 as u32 & NODE_MAX
    }
    /// Whether it is one that a described system keeps for tools, such as a command that asks nodes how they are.
    pub const fn is_tool(self) -> bool {
        self.domain() == TOOL_DOMAIN && self.node() >= *TOOL_NODES.start() && self.node() <= *TOOL_NODES.end()
    }
    /// A dense number below [`NodeId::COUNT`].
    pub const fn index(self) -> usize {
        self.0 as usize
    }
    /// The node with this dense number.
    pub const fn from_index(index: usize) -> Option<Self> {
        if index < Self::COUNT { Some(NodeId(index as u16)) } else { None }
    }
}

impl core::fmt::Display for NodeId {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{}:{}", self.domain(), self.node())
    }
}

/// An endpoint of some node. May be of a node or an endpoint that does not exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EndpointId(u32);

impl EndpointId {
    /// Largest generation; the one after it is 1.
    pub const GENERATION_MAX: u8 = (1 << GENERATION_BITS) - 1;

    /// The name of what `node` has in `slot`.
    ///
    /// # Panics
    /// If slot or generation is beyond its bits: our own bug.
    pub const fn new(node: NodeId, slot: u16, generation: u8) -> Self {
        assert!((slot as u32) < 1 << SLOT_BITS && generation != 0 && generation <= Self::GENERATION_MAX);
        let node = (node.index() as u32) << (SLOT_BITS + GENERATION_BITS);
        EndpointId(node | (slot as u32) << GENERATION_BITS | generation as u32)
    }
    /// The name that these bits are, if they can be one.
    pub const fn from_bits(bits: u32) -> Option<Self> {
        if bits >> 31 != 0 || bits & ((1 << GENERATION_BITS) - 1) == 0 { None } else { Some(EndpointId(bits)) }
    }
    /// The 32 bits.
    pub const fn bits(self) -> u32 {
        self.0
    }
    /// Its owner.
    pub const fn node(self) -> NodeId {
        NodeId((self.0 >> (SLOT_BITS + GENERATION_BITS)) as u16)
    }
    /// Its place at the owner's.
    pub const fn slot(self) -> u16 {
        (self.0 >> GENERATION_BITS) as u16 & ((1 << SLOT_BITS) - 1)
    }
    /// Which endpoint of that place, 1 to [`EndpointId::GENERATION_MAX`].
    pub const fn generation(self) -> u8 {
        self.0 as u8 & Self::GENERATION_MAX
    }
}

impl core::fmt::Display for EndpointId {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{}/{}.{}", self.node(), self.slot(), self.generation())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_keep_their_parts() {
        for (domain, node, slot, generation) in [(0, 0, 0, 1), (31, 1023, 1023, 63), (3, 77, 500, 9)] {
            let owner = NodeId::new(domain, node).unwrap();
            let name = EndpointId::new(owner, slot, generation);
            assert_eq!((name.node(), name.slot(), name.generation()), (owner, slot, generation));
            assert_eq!(EndpointId::from_bits(name.bits()), Some(name));
            assert_eq!(NodeId::from_index(owner.index()), Some(owner));
        }
        assert_eq!((NodeId::new(32, 0), NodeId::new(0, 1024)), (None, None));
    }

    #[test]
    fn what_tests_use_for_garbage_is_no_name() {
        assert_eq!(EndpointId::from_bits(0xdead_beef), None);
        assert_eq!(EndpointId::from_bits(0), None);
        assert_eq!(EndpointId::from_bits(u32::MAX), None);
    }
}

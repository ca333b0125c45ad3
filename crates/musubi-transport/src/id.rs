//! Names of nodes, the same everywhere.
//!
//! What you may rely on: every value is within the limits, so its [`NodeId::index`] may stand for a place in a table of
//! [`NodeId::COUNT`].

use crate::limits::{DOMAIN_MAX, NODE_MAX, PLACES_MAX, SLOTS_MAX, TOOL_DOMAIN, TOOL_NODES};

const NODE_BITS: u32 = 10;

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
    /// The node whose dense number these are the lowest bits of.
    #[inline]
    pub const fn from_lowest_bits(bits: u16) -> Self {
        NodeId(bits & (Self::COUNT as u16 - 1))
    }
    /// The node of a slot, where nodes are slots of places that several processes take; `None` beyond the limits.
    pub const fn of_slot(place: u16, slot: u16) -> Option<Self> {
        if place >= PLACES_MAX || slot >= SLOTS_MAX {
            return None;
        }
        Some(NodeId(place * SLOTS_MAX + slot))
    }
    /// Place and slot of a node that is one; `None` of those that are kept for tools.
    pub const fn slot(self) -> Option<(u16, u16)> {
        let place = self.0 / SLOTS_MAX;
        if place < PLACES_MAX { Some((place, self.0 % SLOTS_MAX)) } else { None }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_nodes_of_their_own_and_no_tools() {
        for (place, slot) in [(0, 0), (1, SLOTS_MAX - 1), (77, 3), (PLACES_MAX - 1, SLOTS_MAX - 1)] {
            let node = NodeId::of_slot(place, slot).unwrap();
            assert!(!node.is_tool());
            assert_eq!(node.slot(), Some((place, slot)));
        }
        assert_eq!(NodeId::of_slot(1, 0).map(NodeId::index), Some(usize::from(SLOTS_MAX)));
        assert_eq!((NodeId::of_slot(PLACES_MAX, 0), NodeId::of_slot(0, SLOTS_MAX)), (None, None));
        assert_eq!(NodeId::new(TOOL_DOMAIN, 0).unwrap().slot(), None);
    }

    #[test]
    fn names_keep_their_parts() {
        for (domain, node) in [(0, 0), (31, 1023), (3, 77)] {
            let name = NodeId::new(domain, node).unwrap();
            assert_eq!((name.domain(), name.node()), (domain, node));
            assert_eq!(NodeId::from_index(name.index()), Some(name));
            assert_eq!(NodeId::from_lowest_bits(name.index() as u16 | 1 << 15), name);
        }
        assert_eq!((NodeId::new(32, 0), NodeId::new(0, 1024)), (None, None));
        assert_eq!(NodeId::from_index(NodeId::COUNT), None);
    }
}

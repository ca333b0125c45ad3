//! Names: of endpoints, the same 32 bits everywhere, so that programs can send them to one another; of requests and ends of
//! channels, which mean something to their node only.
//!
//! How it works: an endpoint's name is `0 | domain 5 | node 10 | slot 10 | generation 6`, from the highest bit. The slot
//! is the owner's place for it, not the port; the generation, 1 to 63, tells it from earlier endpoints of that slot. The
//! highest bit is 0, so the name prints the same signed and unsigned, and 0 names nothing.

use musubi_transport::NodeId;

const SLOT_BITS: u32 = 10;
const GENERATION_BITS: u32 = 6;

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
        NodeId::from_lowest_bits((self.0 >> (SLOT_BITS + GENERATION_BITS)) as u16)
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

/// A request of this node: slot and generation; never 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RequestId(pub u32);

/// A channel's end of this node: slot and generation, as endpoint names without the node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ChannelHandle(pub u32);

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
        }
    }

    #[test]
    fn what_tests_use_for_garbage_is_no_name() {
        assert_eq!(EndpointId::from_bits(0xdead_beef), None);
        assert_eq!(EndpointId::from_bits(0), None);
        assert_eq!(EndpointId::from_bits(u32::MAX), None);
    }
}

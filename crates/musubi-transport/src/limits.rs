//! Limits of a system of nodes, the same on every node.

/// Largest domain number.
pub const DOMAIN_MAX: u32 = 31;
/// Largest node number within a domain.
pub const NODE_MAX: u32 = 1023;
/// Domain of the nodes that are kept for tools: every described system has them without a description.
pub const TOOL_DOMAIN: u32 = DOMAIN_MAX;
/// Their numbers. The first half reaches others by shared memory, the second by TCP.
pub const TOOL_NODES: core::ops::RangeInclusive<u32> = 1008..=NODE_MAX;
/// First number of the half that uses TCP.
pub const TOOL_NODE_TCP: u32 = 1016;
/// Most payload of a frame, in bytes.
pub const PAYLOAD_BYTES_MAX: usize = 1 << 20;
/// Most processes that take one place in turn, each as a node of its own.
pub const SLOTS_MAX: u16 = 16;
/// Most places whose nodes are slots: their nodes stay below those of the domain that is kept for tools.
pub const PLACES_MAX: u16 = ((TOOL_DOMAIN as usize * (NODE_MAX as usize + 1)) / SLOTS_MAX as usize) as u16;

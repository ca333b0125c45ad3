//! Limits of a system of nodes, the same on every node. The C header repeats them.

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
/// Largest port.
pub const PORT_MAX: u32 = 65_535;
/// Most endpoints of a node at a time.
pub const ENDPOINTS_MAX: usize = 1024;
/// Largest message, in bytes.
pub const MESSAGE_BYTES_MAX: usize = 65_536;
/// Largest packet, in bytes.
pub const PACKET_BYTES_MAX: usize = 1 << 20;
/// Priorities of messages and channels: 0 is the most urgent, `PRIORITIES - 1` the least.
pub const PRIORITIES: u8 = 4;
/// Classes of a link: 0 for control, `1 + priority` for data. Frames of one class arrive in order.
pub const CLASSES: u8 = 1 + PRIORITIES;
/// Messages that one node may have under way to, and unread at, one endpoint of another: its credit.
pub const MESSAGE_CREDIT: u32 = 64;
/// Bytes of payload under way in and unread from one packet channel, as far as it holds more than one packet.
pub const CHANNEL_BYTES: u32 = 2 * 1024 * 1024;
/// Packets under way in and unread from one packet channel.
pub const PACKET_CREDIT: u32 = 64;
/// Scalars under way in and unread from one scalar channel.
pub const SCALAR_CREDIT: u32 = 256;

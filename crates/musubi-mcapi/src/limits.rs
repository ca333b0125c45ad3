//! Limits of MCAPI, the same on every node. The C header repeats them.

use musubi_transport::Priority;
use musubi_transport::limits::PAYLOAD_BYTES_MAX;
pub use musubi_transport::limits::{DOMAIN_MAX, NODE_MAX, TOOL_DOMAIN, TOOL_NODE_TCP, TOOL_NODES};

/// Largest port.
pub const PORT_MAX: u32 = 65_535;
/// Most endpoints of a node at a time.
pub const ENDPOINTS_MAX: usize = 1024;
/// Largest message, in bytes.
pub const MESSAGE_BYTES_MAX: usize = 65_536;
/// Largest packet, in bytes.
pub const PACKET_BYTES_MAX: usize = PAYLOAD_BYTES_MAX;
/// Class of the frames of each priority of messages and channels: the scale is the plan's, so 0 is control's, and what is
/// less urgent than the last of these no MCAPI node says.
pub const CLASS_OF_PRIORITY: [Priority; 4] = [priority(1), priority(2), priority(3), priority(4)];
/// Priorities of messages and channels: 0 is the most urgent, `PRIORITIES - 1` the least.
pub const PRIORITIES: u8 = CLASS_OF_PRIORITY.len() as u8;
/// Messages that one node may have under way to, and unread at, one endpoint of another: its credit.
pub const MESSAGE_CREDIT: u32 = 64;
/// Bytes of payload under way in and unread from one packet channel, as far as it holds more than one packet.
pub const CHANNEL_BYTES: u32 = 2 * 1024 * 1024;
/// Packets under way in and unread from one packet channel.
pub const PACKET_CREDIT: u32 = 64;
/// Scalars under way in and unread from one scalar channel.
pub const SCALAR_CREDIT: u32 = 256;

const fn priority(class: u8) -> Priority {
    match Priority::new(class) {
        Some(priority) => priority,
        None => panic!("not a class of the plan"),
    }
}

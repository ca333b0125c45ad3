//! What an end of a channel is, without the node around it: its states, its credit.
//!
//! What you may rely on: pure; nothing here knows an engine, a link or a clock.

pub(super) mod credit;
pub(super) mod end;
pub(super) mod state;
pub(super) mod unread;

/// Packet or scalar channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ChannelKind {
    /// Packets: bytes in buffers of the receiving node.
    Packet,
    /// Scalars of 1, 2, 4 or 8 bytes.
    Scalar,
}

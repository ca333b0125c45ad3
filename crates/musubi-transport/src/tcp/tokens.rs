//! The tokens of this carrier's descriptors in the node's epoll instance.
//!
//! What you may rely on: tokens of links, of the acceptor and of other carriers differ.

use crate::NodeId;

/// This carrier's number: the highest byte of its tokens.
pub const CARRIER: u64 = 2;
/// The acceptor's token, beyond all nodes'.
pub(super) const ACCEPTOR: u64 = CARRIER << 56 | u32::MAX as u64;

/// The token of the link with a node.
pub(super) fn token_of(peer: NodeId) -> u64 {
    CARRIER << 56 | peer.index() as u64
}

/// Whose token it is.
pub(super) fn peer_of(token: u64) -> Option<NodeId> {
    NodeId::from_index((token & u64::from(u32::MAX)) as usize)
}

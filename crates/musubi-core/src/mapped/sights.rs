//! What a participant remembers of its peers from one beat to the next.

use super::clock::Estimate;

/// When a peer's heartbeat last changed.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sight {
    pub beat: u32,
    pub changed_at_ns: u64,
}

/// What a beat remembers.
#[derive(Debug)]
pub(super) struct Watch<'m> {
    pub sights: &'m mut [Sight],
    /// When our own heartbeat was last renewed.
    pub renewed_at_ns: u64,
    pub estimate: Estimate,
    /// Changes seen so far.
    pub changes: u32,
}

impl<'m> Watch<'m> {
    pub fn new(sights: &'m mut [Sight], now_ns: u64) -> Self {
        Watch { sights, renewed_at_ns: now_ns, estimate: Estimate::default(), changes: 0 }
    }
}

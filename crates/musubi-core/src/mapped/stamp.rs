//! A 64-bit value that one writes and others read, on words of 32 bits.
//!
//! What you may rely on: a value that [`see`] gives is one that was written as a whole; neither side waits.
//!
//! How it works: a count and two pairs of words. The writer fills the pair that is not valid, then adds one to the
//! count, whose lowest bit names the valid pair. A reader takes the pair between two looks at the count. A pair that
//! changed under it was overwritten for the next but one value, so the count has changed too: the words of the pair are
//! released and acquired, so who has seen a new word sees the count that came before it.

use crate::sync::Site;
use crate::words::{OwnWords, PeerWords};

/// Words that a stamp takes: the count, then (low, high) of even counts, then of odd ones.
pub(super) const WORDS: u32 = 5;
/// Looks at a value that changes under the reader.
const LOOKS_MAX: u32 = 4;

/// Writes a value. One thread of the owner at a time.
pub(super) fn publish(own: &OwnWords<'_>, value: u64) {
    let count = own.get(0).wrapping_add(1);
    let pair = pair(count);
    own.publish(pair, value as u32, Site::PublishBeat);
    own.publish(pair + 1, (value >> 32) as u32, Site::PublishBeat);
    own.publish(0, count, Site::PublishBeat);
}

/// The count and the value; `None` before the first, or if it changes faster than it can be read.
pub(super) fn see(peer: PeerWords<'_>) -> Option<(u32, u64)> {
    for _ in 0..LOOKS_MAX {
        let count = peer.see(0, Site::SeeBeat);
        let (low, high) = (peer.see(pair(count), Site::SeeBeat), peer.see(pair(count) + 1, Site::SeeBeat));
        if peer.get(0) == count {
            let value = u64::from(low) | u64::from(high) << 32;
            return (count != 0 || value != 0).then_some((count, value));
        }
    }
    None
}

const fn pair(count: u32) -> u32 {
    1 + 2 * (count & 1)
}

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

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::sync::AtomicU32;

    #[test]
    fn what_was_written_is_seen_with_its_count() {
        let words: [AtomicU32; WORDS as usize] = Default::default();
        let own = OwnWords::of(&words);
        assert_eq!(see(own.as_peer()), None, "before the first");
        for (count, value) in [(1, 0x0123_4567_89ab_cdef), (2, u64::MAX), (3, 0), (4, 1 << 32), (5, 1)] {
            publish(&own, value);
            assert_eq!(see(own.as_peer()), Some((count, value)));
        }
    }

    #[test]
    fn the_value_before_stays_in_its_pair() {
        let words: [AtomicU32; WORDS as usize] = Default::default();
        let own = OwnWords::of(&words);
        publish(&own, 0x1_0000_0002);
        publish(&own, 0x3_0000_0004);
        assert_eq!([0, 1, 2, 3, 4].map(|word| own.get(word)), [2, 4, 3, 2, 1]);
    }

    #[test]
    fn a_count_that_came_round_to_zero_is_no_first_one() {
        let words: [AtomicU32; WORDS as usize] = Default::default();
        let own = OwnWords::of(&words);
        own.set(0, u32::MAX);
        publish(&own, 7);
        assert_eq!(see(own.as_peer()), Some((0, 7)));
    }
}

//! The first word of a slot: which lap of the ring it belongs to, and what begins there.
//!
//! What you may rely on: reading one accepts any word: what no sender writes is [`Seen::Impossible`].
//!
//! How it works: 12 bits of length, 4 of mark, 16 of lap, from the lowest. A mark of all ones stands in slots in which a record
//! goes on.

use super::RECORD_BYTES_MAX;

const BYTES_BITS: u32 = 12;
const MARK_BITS: u32 = 4;
const LAP_SHIFT: u32 = BYTES_BITS + MARK_BITS;
/// The mark of a slot in which no record begins.
const CONTINUED: u32 = (1 << MARK_BITS) - 1;

/// A tag, read or to be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Tag(u32);

/// What stands in the slot where the next record is awaited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Seen {
    /// A record of this mark and length begins here.
    Record { mark: u8, bytes: u32 },
    /// The slot is still as the lap before left it.
    Nothing,
    /// What no sender writes.
    Impossible,
}

impl Tag {
    /// Begins a record.
    #[inline(always)]
    pub fn record(lap: u16, mark: u8, bytes: usize) -> Tag {
        debug_assert!(u32::from(mark) < CONTINUED && bytes <= RECORD_BYTES_MAX);
        Tag(u32::from(lap) << LAP_SHIFT | u32::from(mark) << BYTES_BITS | bytes as u32)
    }

    /// Continues one.
    #[inline(always)]
    pub fn continued(lap: u16) -> Tag {
        Tag(u32::from(lap) << LAP_SHIFT | CONTINUED << BYTES_BITS)
    }

    #[inline(always)]
    pub fn word(self) -> u32 {
        self.0
    }

    /// What a word means to who awaits a record of this lap.
    #[inline(always)]
    pub fn seen(word: u32, lap: u16) -> Seen {
        let (of, mark, bytes) =
            ((word >> LAP_SHIFT) as u16, word >> BYTES_BITS & CONTINUED, word & ((1 << BYTES_BITS) - 1));
        if of != lap {
            return if of == lap.wrapping_sub(1) { Seen::Nothing } else { Seen::Impossible };
        }
        if mark == CONTINUED || bytes as usize > RECORD_BYTES_MAX {
            return Seen::Impossible;
        }
        Seen::Record { mark: mark as u8, bytes }
    }
}

/// The lap of a position in a ring of `1 << shift` slots. Fresh memory is of lap 0, so the first is 1.
#[inline(always)]
pub(super) fn lap(position: u32, shift: u32) -> u16 {
    ((position >> shift) as u16).wrapping_add(1)
}

//! Positions in a lane: which slot, in which lap.
//!
//! What you may rely on: arithmetic only. Of positions below the wrap every result is one too; stepping from one to the next
//! divides nothing. Whether a peer's word is a position is asked first ([`Ring::contains`]).
//!
//! How it works: positions count messages modulo [`Ring::wrap`], a multiple of the number of slots, so that one 32-bit
//! word says slot and lap at once and a snapshot of it is never torn. A lap is told apart from the one before by 16
//! bits; the wrap is chosen so that these 16 bits also step by one across it.

/// The positions of a lane with a given number of slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ring {
    slots: u32,
    wrap: u32,
}

impl Ring {
    /// The ring of a channel; `slots` is 1 to [`crate::plan::BLOCKS_MAX`].
    pub const fn new(slots: u32) -> Ring {
        assert!(slots >= 1 && slots <= crate::plan::BLOCKS_MAX);
        let laps = ((1 << 30) / slots) & !0xffff;
        Ring { slots, wrap: laps * slots }
    }

    /// Number of slots.
    pub const fn slots(self) -> u32 {
        self.slots
    }

    /// Whether a claimed value is a position at all.
    pub const fn contains(self, position: u32) -> bool {
        position < self.wrap
    }

    /// The position before position 0.
    pub const fn last(self) -> u32 {
        self.wrap - 1
    }

    /// The position `count` messages after one; `count` is at most that of all positions.
    pub const fn after(self, position: u32, count: u32) -> u32 {
        let left = self.wrap - position;
        if count < left { position + count } else { count - left }
    }

    /// How many messages lie between two positions.
    pub const fn distance(self, from: u32, to: u32) -> u32 {
        if to >= from { to - from } else { self.wrap - from + to }
    }

    /// The cursor at a position of this ring.
    pub const fn cursor(self, position: u32) -> Cursor {
        Cursor { position, index: position % self.slots, lap: position / self.slots + 1 }
    }
}

/// A position with its slot and lap at hand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cursor {
    /// The position itself.
    pub position: u32,
    /// Its slot.
    pub index: u32,
    /// Its lap, from 1.
    pub lap: u32,
}

impl Cursor {
    /// The cursor one message later.
    #[inline(always)]
    pub const fn next(self, ring: Ring) -> Cursor {
        let position = self.position + 1;
        let index = self.index + 1;
        if index < ring.slots {
            Cursor { position, index, lap: self.lap }
        } else if position < ring.wrap {
            Cursor { position, index: 0, lap: self.lap + 1 }
        } else {
            Cursor { position: 0, index: 0, lap: 1 }
        }
    }

    /// The value of a slot's turn word when this message is announced and not yet notified.
    #[inline(always)]
    pub const fn turn(self) -> u32 {
        self.lap << 1
    }

    /// Whether a turn word announces this message.
    #[inline(always)]
    pub const fn announced_by(self, turn: u32) -> bool {
        turn >> 1 == self.lap
    }

    /// The entry that returns `block` at this position of the returns.
    #[inline(always)]
    pub const fn return_entry(self, block: u32) -> u32 {
        (self.lap << 16) | block
    }

    /// The block that an entry returns at this position, if it is this lap's.
    #[inline(always)]
    pub const fn returned_by(self, entry: u32) -> Option<u32> {
        if entry >> 16 == self.lap & 0xffff { Some(entry & 0xffff) } else { None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::BLOCKS_MAX;

    #[test]
    fn laps_step_by_one_across_the_wrap() {
        for slots in [1, 2, 3, 7, 10, 64, 1000, BLOCKS_MAX] {
            let ring = Ring::new(slots);
            let last = ring.cursor(ring.wrap - 1);
            let first = last.next(ring);
            assert_eq!(first, ring.cursor(0));
            assert_eq!((last.lap + 1) & 0xffff, first.lap & 0xffff, "{slots}");
            assert_ne!(last.turn(), first.turn());
            assert!(last.lap < 1 << 31);
            assert_eq!(ring.distance(last.position, first.position), 1);
            assert_eq!((ring.after(last.position, 0), ring.after(last.position, 1)), (last.position, 0));
            assert_eq!(ring.after(5, ring.wrap - 1), 4);
        }
    }

    #[test]
    fn next_agrees_with_division() {
        let ring = Ring::new(5);
        let mut cursor = ring.cursor(0);
        for position in 0..40 {
            assert_eq!(cursor, ring.cursor(position));
            cursor = cursor.next(ring);
        }
    }
}

//! Memory areas as a protection unit wants them: powers of two, aligned to their size.
//!
//! What you may rely on: the blocks of an area lie in it, do not overlap, cover it wholly and are as few as such blocks can
//! be. An area that is not made of 32-byte units has none.
//!
//! How it works: from the area's start on, the largest block that the start's alignment and the rest allow. Every cover by
//! aligned powers of two must have a boundary wherever this one has, so no other has fewer.
//!
//! What it does not do: subregions of the ARMv7-R unit, which would save a region for some areas.

/// Smallest block of an ARMv7-R protection unit (DDI 0406C, chapter B5.1).
pub const BLOCK_BYTES_MIN: u64 = 32;
/// Largest block: the whole address space.
const BLOCK_BYTES_MAX: u64 = 1 << 32;

/// A power of two of bytes at a multiple of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    /// First address.
    pub start: u32,
    /// Bytes, as a power of two: 5 to 32.
    pub bytes_log2: u32,
}

/// The blocks of an area, in the order of their addresses.
#[derive(Clone, Debug)]
pub struct Blocks {
    next: u64,
    end: u64,
}

/// The blocks of `bytes` bytes at `start`; none if the area is not in units of 32 bytes or beyond 4 GiB.
pub fn blocks(start: usize, bytes: usize) -> Blocks {
    let (next, end) = (start as u64, start as u64 + bytes as u64);
    let fits = next.is_multiple_of(BLOCK_BYTES_MIN) && end.is_multiple_of(BLOCK_BYTES_MIN) && end <= BLOCK_BYTES_MAX;
    Blocks { next, end: if fits { end } else { next } }
}

impl Iterator for Blocks {
    type Item = Block;

    fn next(&mut self) -> Option<Block> {
        let rest = self.end - self.next;
        if rest == 0 {
            return None;
        }
        let aligned_log2 = self.next.trailing_zeros().min(32);
        let bytes_log2 = aligned_log2.min(rest.ilog2());
        let start = self.next as u32;
        self.next += 1 << bytes_log2;
        Some(Block { start, bytes_log2 })
    }
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use super::*;

    fn pairs(start: usize, bytes: usize) -> Vec<(u32, u32)> {
        blocks(start, bytes).map(|block| (block.start, block.bytes_log2)).collect()
    }

    #[test]
    fn an_aligned_power_of_two_is_one_block() {
        assert_eq!(pairs(0x3F00_0000, 0x10_0000), [(0x3F00_0000, 20)]);
        assert_eq!(pairs(0, 1 << 32), [(0, 32)]);
    }

    #[test]
    fn others_are_cut_at_their_alignment() {
        assert_eq!(pairs(0x1000, 0x5000), [(0x1000, 12), (0x2000, 13), (0x4000, 13)]);
        assert_eq!(pairs(0x8000_0000, 0x7FE0_0000).len(), 10);
    }

    #[test]
    fn what_the_unit_cannot_say_has_no_blocks() {
        assert_eq!(pairs(0x10, 0x20), []);
        assert_eq!(pairs(0, 0x21), []);
        assert_eq!(pairs(0xFFFF_FFE0, 0x40), []);
        assert_eq!(pairs(0x1000, 0), []);
    }

    #[test]
    fn blocks_cover_their_area_without_gaps() {
        for (start, bytes) in [(0x20usize, 0x12_3460usize), (0x3F01_2340, 0xA_BCC0), (0xFFF0_0000, 0x10_0000)] {
            let mut next = start as u64;
            for block in blocks(start, bytes) {
                assert_eq!(u64::from(block.start), next);
                assert_eq!(next % (1 << block.bytes_log2), 0);
                next += 1 << block.bytes_log2;
            }
            assert_eq!(next, (start + bytes) as u64);
        }
    }
}

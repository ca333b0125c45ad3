//! Buffers of frames that are no longer needed, kept for the next ones.
//!
//! What you may rely on: it keeps at most [`SMALL_MAX`] small buffers and [`LARGE_BYTES_MAX`] bytes of large ones; a buffer that it
//! gives has room for what was asked and one byte more.
//!
//! How it works: two stacks, so that the buffer that is still in the cache is used first.

use alloc::vec::Vec;

/// Buffers up to this capacity are kept apart, so that small frames do not take large buffers.
const SMALL_BYTES: usize = 512;
/// Most small buffers that are kept.
const SMALL_MAX: usize = 256;
/// Most bytes of large buffers that are kept.
const LARGE_BYTES_MAX: usize = 5 << 19;

#[derive(Debug, Default)]
pub(super) struct Pool {
    small: Vec<Vec<u8>>,
    large: Vec<Vec<u8>>,
    large_bytes: usize,
}

impl Pool {
    /// A buffer with room for so many bytes, and one more. It may hold what was in it before: who reads to it need not clear
    /// it first.
    pub(super) fn take(&mut self, bytes: usize) -> Vec<u8> {
        let kept = if bytes <= SMALL_BYTES {
            self.small.pop()
        } else {
            let kept = self.large.pop();
            self.large_bytes -= kept.as_ref().map_or(0, Vec::capacity);
            kept
        };
        let mut buffer = kept.unwrap_or_default();
        if buffer.capacity() <= bytes {
            buffer.clear();
            buffer.reserve_exact((bytes + 1).next_multiple_of(64));
        }
        buffer
    }

    /// Takes a buffer back.
    pub(super) fn give(&mut self, buffer: Vec<u8>) {
        let bytes = buffer.capacity();
        if bytes <= SMALL_BYTES {
            if self.small.len() < SMALL_MAX {
                self.small.push(buffer);
            }
        } else if self.large_bytes + bytes <= LARGE_BYTES_MAX {
            self.large_bytes += bytes;
            self.large.push(buffer);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_has_room_for_one_more_byte() {
        let mut pool = Pool::default();
        for bytes in [0, 1, 63, 64, 65, 511, 512, 513, 5000, 1 << 20] {
            let buffer = pool.take(bytes);
            assert!(buffer.capacity() > bytes && buffer.capacity() <= (bytes + 64).next_multiple_of(64), "{bytes}");
            pool.give(buffer);
        }
    }

    #[test]
    fn what_is_given_back_is_given_out_again_by_size() {
        let mut pool = Pool::default();
        let (small, large) = (Vec::<u8>::with_capacity(512), Vec::<u8>::with_capacity(513));
        let places = [small.as_ptr(), large.as_ptr()];
        pool.give(small);
        pool.give(large);
        let again = [pool.take(511), pool.take(512)];
        assert_eq!(again[0].as_ptr(), places[0]);
        assert_ne!(again[1].as_ptr(), places[1], "512 bytes are a small one's, and there is none");
        assert_eq!(pool.take(513 - 1 + 1).capacity(), 576, "the large one has no room for one more");
    }

    #[test]
    fn it_keeps_no_more_than_is_said() {
        let mut pool = Pool::default();
        for _ in 0..2 * SMALL_MAX {
            pool.give(Vec::with_capacity(100));
        }
        assert_eq!(pool.small.len(), SMALL_MAX);
        let part = LARGE_BYTES_MAX / 4;
        for round in 0..3 {
            (0..8).for_each(|_| pool.give(Vec::with_capacity(part)));
            assert_eq!((pool.large.len(), pool.large_bytes), (4, LARGE_BYTES_MAX), "round {round}");
            assert_eq!(pool.take(part - 1).capacity(), part);
            assert_eq!((pool.large.len(), pool.large_bytes), (3, LARGE_BYTES_MAX - part));
        }
    }
}

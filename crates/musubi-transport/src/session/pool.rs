//! Buffers of frames that are no longer needed, kept for the next ones.

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

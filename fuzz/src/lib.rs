//! What the fuzz targets share: memory that stands for sections, and a clock and a doorbell that count.
//!
//! How it works: each section lies in heap memory of exactly its length, so AddressSanitizer sees any access outside.

#![deny(clippy::undocumented_unsafe_blocks)]

pub mod nodes;

use std::cell::Cell;
use std::sync::atomic::AtomicU32;

use musubi_core::port::{Clock, Doorbell};
use musubi_core::words::OwnWords;

/// Words on the heap.
#[derive(Debug)]
pub struct Memory(Box<[u32]>);

impl Memory {
    /// Zeroed words, or those of `bytes` first.
    pub fn new(words: u32, bytes: &[u8]) -> Memory {
        let mut memory = vec![0u32; words as usize].into_boxed_slice();
        for (word, bytes) in memory.iter_mut().zip(bytes.chunks_exact(4)) {
            *word = u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
        }
        Memory(memory)
    }

    /// The words as their owner sees them. One target runs in one thread, so several views do no harm.
    pub fn words(&self) -> OwnWords<'_> {
        // SAFETY: the heap memory lives as long as the view's lifetime and is aligned; it is reached through views only.
        unsafe { OwnWords::new(self.0.as_ptr().cast_mut(), self.0.len() as u32) }
    }
}

/// A clock that goes on by some time with each reading.
#[derive(Debug, Default)]
pub struct Ticks(Cell<u64>);

impl Clock for Ticks {
    fn now_ns(&self) -> u64 {
        self.0.set(self.0.get().wrapping_add(1_000_003));
        self.0.get()
    }
}

/// A doorbell that changes the bell and wakes nobody.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl Doorbell for Silent {
    fn ring(&self, bell: &AtomicU32, _waiting: u32) {
        bell.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
    }
}

//! Shared pages without any protocol: what a benchmark needs to measure the machine's own limits.
//!
//! What you may rely on: two processes that opened the same [`BarePages`] see the same words and bytes. Nothing here is
//! used by the port itself.
//!
//! What it does not do: protect anybody from anybody; both sides may write everything.

use std::fs::File;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use rustix::thread::futex as kernel;

use crate::error::{Error, Tried};

/// Pages of shared memory.
#[derive(Debug)]
pub struct BarePages {
    address: *mut u8,
    bytes: usize,
    fd: OwnedFd,
}

// SAFETY: the pages are reached through atomics and raw copies only, from any thread.
unsafe impl Send for BarePages {}
// SAFETY: as above.
unsafe impl Sync for BarePages {}

impl BarePages {
    /// New zeroed pages of at least `bytes` bytes.
    ///
    /// # Errors
    /// [`Error::System`].
    pub fn create(bytes: usize) -> Result<BarePages, Error> {
        let fd = memfd_create("musubi-bare", MemfdFlags::CLOEXEC).tried("creating shared pages")?;
        ftruncate(&fd, bytes as u64).tried("sizing shared pages")?;
        BarePages::map(fd, bytes)
    }

    /// The pages that another process created, by the [`BarePages::path`] that it gave.
    ///
    /// # Errors
    /// [`Error::System`].
    pub fn open(path: &Path) -> Result<BarePages, Error> {
        let file = File::options().read(true).write(true).open(path).tried("opening shared pages")?;
        let bytes = file.metadata().tried("opening shared pages")?.len() as usize;
        BarePages::map(file.into(), bytes)
    }

    /// A path by which another process of the same user can open the pages while we live.
    pub fn path(&self) -> String {
        format!("/proc/{}/fd/{}", std::process::id(), self.fd.as_fd().as_raw_fd())
    }

    fn map(fd: OwnedFd, bytes: usize) -> Result<BarePages, Error> {
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: the kernel chooses a free range, so no memory in use is replaced.
        let address = unsafe { mmap(std::ptr::null_mut(), bytes, protection, MapFlags::SHARED, &fd, 0) };
        Ok(BarePages { address: address.tried("mapping shared pages")?.cast(), bytes, fd })
    }

    /// The word at a byte offset, a multiple of 4 inside the pages.
    #[inline(always)]
    pub fn word(&self, offset: usize) -> &AtomicU32 {
        assert!(offset.is_multiple_of(4) && offset + 4 <= self.bytes, "word at {offset} of {}", self.bytes);
        let word = self.address.wrapping_add(offset).cast::<AtomicU32>();
        // SAFETY: aligned and inside the mapping, which lives as long as `self`; shared words are atomics.
        unsafe { &*word }
    }

    /// Copies bytes into the pages.
    pub fn copy_in(&self, offset: usize, from: &[u8]) {
        assert!(offset + from.len() <= self.bytes);
        // SAFETY: inside the mapping; no reference covers these bytes. The caller's hand-over keeps the other side out.
        unsafe { std::ptr::copy_nonoverlapping(from.as_ptr(), self.address.wrapping_add(offset), from.len()) };
    }

    /// Copies bytes out of the pages.
    pub fn copy_out(&self, offset: usize, into: &mut [u8]) {
        assert!(offset + into.len() <= self.bytes);
        // SAFETY: as in `copy_in`.
        unsafe { std::ptr::copy_nonoverlapping(self.address.wrapping_add(offset), into.as_mut_ptr(), into.len()) };
    }
}

impl Drop for BarePages {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours and nothing borrows it any more.
        let _ = unsafe { munmap(self.address.cast(), self.bytes) };
    }
}

/// Sleeps in the kernel while a shared word has this value. Gives whether it slept: not if the word had changed before.
pub fn futex_wait(word: &AtomicU32, expected: u32) -> bool {
    let mut slept = false;
    while word.load(Ordering::Acquire) == expected {
        slept |= kernel::wait(word, kernel::Flags::empty(), expected, None).is_ok();
    }
    slept
}

/// Wakes one sleeper on a shared word. Gives whether there was one.
pub fn futex_wake(word: &AtomicU32) -> bool {
    kernel::wake(word, kernel::Flags::empty(), 1).is_ok_and(|woken| woken > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_slept_and_who_did_not_is_told() {
        let pages = BarePages::create(4096).unwrap();
        let word = pages.word(0);
        assert!(!futex_wake(word), "nobody sleeps");
        word.store(1, Ordering::Release);
        assert!(!futex_wait(word, 0), "the word had changed already");
        std::thread::scope(|scope| {
            let sleeper = scope.spawn(|| futex_wait(word, 1));
            // Found asleep at some time: the wake tells.
            while !futex_wake(word) {
                std::thread::yield_now();
            }
            word.store(2, Ordering::Release);
            while !sleeper.is_finished() {
                futex_wake(word);
                std::thread::yield_now();
            }
            assert!(sleeper.join().unwrap());
        });
    }
}

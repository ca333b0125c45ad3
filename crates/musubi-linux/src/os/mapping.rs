//! Memory mapped from a descriptor, given back when dropped: the only place that maps.
//!
//! What you may rely on: a [`Mapping`] is valid memory for its whole life. Its pages cannot vanish: callers check
//! before mapping that the memory behind is a memfd that is long enough and sealed against shrinking, or a device's. A child made by
//! `fork` does not get the mapping: so it cannot write what only its parent may write.

use std::os::fd::BorrowedFd;

use rustix::io::Errno;
use rustix::mm::{Advice, MapFlags, MprotectFlags, ProtFlags, madvise, mlock, mmap, mmap_anonymous, mprotect};

use crate::os::forks::Process;

/// What may be done with the bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    Read,
    Write,
}

/// A run of mapped pages.
#[derive(Debug)]
pub(crate) struct Mapping {
    address: *mut u8,
    bytes: usize,
    process: Process,
}

// SAFETY: the mapping belongs to the process, not to a thread; all access goes through views that are atomic or follow
// the ownership of blocks.
unsafe impl Send for Mapping {}
// SAFETY: as above; a `Mapping` itself accesses nothing.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps the first `bytes` bytes of `fd`, shared.
    pub(crate) fn shared(fd: BorrowedFd<'_>, bytes: usize, access: Access) -> Result<Mapping, Errno> {
        // SAFETY: a fresh mapping at an address of the kernel's choice touches no memory in use.
        let address = unsafe { mmap(core::ptr::null_mut(), bytes, protection(access), MapFlags::SHARED, fd, 0) }?;
        Mapping { address: address.cast(), bytes, process: Process::this() }.kept_from_children()
    }

    /// Reserves addresses without memory behind them; [`Mapping::replace`] puts memory there.
    pub(crate) fn reserved(bytes: usize) -> Result<Mapping, Errno> {
        let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
        // SAFETY: a fresh mapping at an address of the kernel's choice touches no memory in use.
        let address = unsafe { mmap_anonymous(core::ptr::null_mut(), bytes, ProtFlags::empty(), flags) }?;
        Mapping { address: address.cast(), bytes, process: Process::this() }.kept_from_children()
    }

    /// Puts the memory of `fd` at the same addresses, writable. Who holds pointers sees the new bytes from then on.
    pub(crate) fn replace(&self, fd: BorrowedFd<'_>) -> Result<(), Errno> {
        let flags = MapFlags::SHARED | MapFlags::FIXED;
        // SAFETY: exactly the addresses that this mapping owns are replaced; there are no Rust references into a
        // reservation, only raw pointers whose users expect its bytes to change at any time.
        unsafe { mmap(self.address.cast(), self.bytes, protection(Access::Write), flags, fd, 0) }?;
        self.keep_from_children()
    }

    /// Puts a part of the memory of `fd` over a part of these addresses: `bytes` from `at` in the descriptor, at `from`
    /// from the begin. Who holds pointers sees the new bytes from then on.
    pub(crate) fn overlay(
        &self,
        fd: BorrowedFd<'_>,
        from: u64,
        bytes: u64,
        at: u64,
        access: Access,
    ) -> Result<(), Errno> {
        let (from, bytes) = (index(from)?, index(bytes)?);
        if from.checked_add(bytes).is_none_or(|end| end > self.bytes) {
            return Err(Errno::INVAL);
        }
        let flags = MapFlags::SHARED | MapFlags::FIXED;
        let place = self.address.wrapping_add(from);
        // SAFETY: only addresses that this mapping owns are replaced, as was just checked; as for `replace`, nobody has
        // references into them.
        unsafe { mmap(place.cast(), bytes, protection(access), flags, fd, at) }?;
        self.keep_from_children()
    }

    /// Takes the right to write a part away, `bytes` at `from`.
    pub(crate) fn protect(&self, from: u64, bytes: u64) -> Result<(), Errno> {
        let (from, bytes) = (index(from)?, index(bytes)?);
        if bytes == 0 {
            return Ok(());
        }
        if from.checked_add(bytes).is_none_or(|end| end > self.bytes) {
            return Err(Errno::INVAL);
        }
        let place = self.address.wrapping_add(from);
        // SAFETY: the addresses are this mapping's, and nobody has references into them.
        unsafe { mprotect(place.cast(), bytes, MprotectFlags::READ) }
    }

    /// Keeps the pages in memory.
    pub(crate) fn lock(&self) -> Result<(), Errno> {
        // SAFETY: locking pages that this mapping owns changes no bytes.
        unsafe { mlock(self.address.cast(), self.bytes) }
    }

    /// Brings all pages in now instead of at the first access.
    pub(crate) fn prefault(&self, access: Access) -> Result<(), Errno> {
        let advice = match access {
            Access::Read => Advice::LinuxPopulateRead,
            Access::Write => Advice::LinuxPopulateWrite,
        };
        // SAFETY: populating page tables changes no bytes.
        unsafe { madvise(self.address.cast(), self.bytes, advice) }
    }

    fn kept_from_children(self) -> Result<Mapping, Errno> {
        self.keep_from_children()?;
        Ok(self)
    }

    fn keep_from_children(&self) -> Result<(), Errno> {
        // SAFETY: affects only what a child inherits, and there nothing uses the mapping.
        unsafe { madvise(self.address.cast(), self.bytes, Advice::LinuxDontFork) }
    }

    pub(crate) fn address(&self) -> *mut u8 {
        self.address
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        if !self.process.is_this() {
            // In a forked child something else may be at these addresses.
            return;
        }
        // By the C library, so that a checker that watches its calls (ThreadSanitizer) sees that what is mapped here next is
        // other memory.
        // SAFETY: this mapping owns the addresses, and nobody can hold a view of it any more: views borrow its owner.
        unsafe { libc::munmap(self.address.cast(), self.bytes) };
    }
}

fn index(bytes: u64) -> Result<usize, Errno> {
    usize::try_from(bytes).map_err(|_| Errno::OVERFLOW)
}

fn protection(access: Access) -> ProtFlags {
    match access {
        Access::Read => ProtFlags::READ,
        Access::Write => ProtFlags::READ | ProtFlags::WRITE,
    }
}

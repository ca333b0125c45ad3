//! Sealed memory: memfds that others can be given without a risk for either side.
//!
//! What you may rely on: of what [`new_own`] makes no process, not even one with the descriptor, can get another writable
//! mapping (`F_SEAL_FUTURE_WRITE`). What [`adopt`] maps is a memfd of ordinary pages that can neither shrink nor be punched,
//! of the expected length: reading it can never raise SIGBUS, whatever its owner does.
//!
//! How it works: the owner maps read-write first and seals afterwards; a mapping made before keeps its rights. A seal can
//! never be taken off again, so it is enough to look once. That all pages are there is not looked up but brought about: what
//! the kernel counts for a file includes pages behind its end, and says nothing of those inside.

use std::os::fd::AsFd;

use rustix::fs::{
    FallocateFlags, MemfdFlags, SealFlags, fallocate, fcntl_add_seals, fcntl_get_seals, fstat, fstatfs, ftruncate,
    memfd_create,
};
use rustix::io::Errno;

use crate::error::{Error, Tried};
use crate::os::descriptor::Descriptor;
use crate::os::mapping::{Access, Mapping};

/// What the kernel keeps memfds of ordinary pages in, as `fstatfs` names it.
const TMPFS_MAGIC: rustix::fs::FsWord = 0x0102_1994;
/// Seals of memory that only its owner writes.
const OWNER_WRITES: SealFlags =
    SealFlags::FUTURE_WRITE.union(SealFlags::SHRINK).union(SealFlags::GROW).union(SealFlags::SEAL);
/// Seals of memory that all who have it write.
const ALL_WRITE: SealFlags = SealFlags::SHRINK.union(SealFlags::GROW).union(SealFlags::SEAL);

/// Memory that only we can write, with our mapping of it. The first `present` bytes have their pages now, so that a machine
/// without memory says so and not by a signal later.
pub(crate) fn new_own(name: &str, bytes: u32, present: u32) -> Result<(Descriptor, Mapping), Error> {
    let fd = new_memfd(name, bytes, present)?;
    let mapping =
        Mapping::shared(fd.as_fd(), bytes as usize, Access::Write).tried("mapping shared memory (mmap, madvise)")?;
    fcntl_add_seals(&fd, OWNER_WRITES).tried("sealing shared memory (fcntl)")?;
    Ok((fd, mapping))
}

/// Why memory of another process is not taken.
#[derive(Debug)]
pub(crate) enum Unusable {
    /// It is not what it should be: its owner's fault.
    Unfit,
    /// The kernel has no room for us to use it; it may have later.
    NoRoom(Error),
}

impl Unusable {
    /// What a failed call with a descriptor of another process says of it.
    pub(crate) fn of(error: Error) -> Unusable {
        match error.errno() {
            Some(Errno::NOMEM | Errno::NOSPC | Errno::MFILE | Errno::NFILE | Errno::AGAIN | Errno::INTR) => {
                Unusable::NoRoom(error)
            }
            _ => Unusable::Unfit,
        }
    }
}

/// Checks and maps what another process made by [`new_own`] with the same numbers.
pub(crate) fn adopt(fd: &Descriptor, bytes: u32, present: u32) -> Result<Mapping, Unusable> {
    if !holds(fd, OWNER_WRITES, bytes) {
        return Err(Unusable::Unfit);
    }
    fill(fd, present).map_err(Unusable::of)?;
    let mapped = Mapping::shared(fd.as_fd(), bytes as usize, Access::Read);
    mapped.tried("mapping shared memory (mmap, madvise)").map_err(Unusable::of)
}

/// Memory that all who get the descriptor can write, with all its pages.
pub(crate) fn new_common(name: &str, bytes: u32) -> Result<Descriptor, Error> {
    let fd = new_memfd(name, bytes, bytes)?;
    fcntl_add_seals(&fd, ALL_WRITE).tried("sealing shared memory (fcntl)")?;
    Ok(fd)
}

/// Whether a descriptor can be one that [`new_common`] made. Whoever has it may write it, and so also give pages of it back;
/// the kernel then makes new ones at the next access, of nothing but ordinary memory.
pub(crate) fn is_common(fd: &Descriptor, bytes: u32) -> bool {
    let writable = |seals: SealFlags| !seals.intersects(SealFlags::WRITE | SealFlags::FUTURE_WRITE);
    holds(fd, ALL_WRITE, bytes) && fcntl_get_seals(fd).is_ok_and(writable)
}

/// Puts memory where pages are missing; the first access to one that is missing could fail. Fails if there is none left now.
pub(crate) fn fill(fd: &Descriptor, bytes: u32) -> Result<(), Error> {
    fallocate(fd, FallocateFlags::empty(), 0, u64::from(bytes)).tried("reserving shared memory (fallocate)")
}

fn new_memfd(name: &str, bytes: u32, present: u32) -> Result<Descriptor, Error> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let fd = match memfd_create(name, flags | MemfdFlags::NOEXEC_SEAL) {
        Err(rustix::io::Errno::INVAL) => memfd_create(name, flags),
        made => made,
    };
    let fd = fd.map(Descriptor::from).tried("creating shared memory (memfd_create)")?;
    ftruncate(&fd, u64::from(bytes)).tried("sizing shared memory (ftruncate)")?;
    fallocate(&fd, FallocateFlags::empty(), 0, u64::from(present)).tried("reserving shared memory (fallocate)")?;
    Ok(fd)
}

/// Whether `fd` is a memfd of ordinary pages with these seals and exactly this length. A seal can never be taken off again.
///
/// Huge pages are seldom, and come from a store of their own: a page that its owner gave back may find none left, and whoever
/// touches it then gets SIGBUS. Files of a mounted tmpfs, whose size has a limit, cannot have these seals.
fn holds(fd: &Descriptor, seals: SealFlags, bytes: u32) -> bool {
    // First: only memfds have seals, and the next question would go to whoever serves the file.
    let sealed = fcntl_get_seals(fd).is_ok_and(|have| have.contains(seals));
    let ordinary = || fstatfs(fd).is_ok_and(|system| system.f_type == TMPFS_MAGIC);
    sealed && ordinary() && fstat(fd).is_ok_and(|stat| stat.st_size == i64::from(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HUGE_BYTES: u32 = 2 << 20;

    fn sealed(flags: MemfdFlags, seals: SealFlags) -> Option<Descriptor> {
        let fd = memfd_create("musubi-test", flags | MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING).ok()?;
        ftruncate(&fd, u64::from(HUGE_BYTES)).unwrap();
        fcntl_add_seals(&fd, seals).unwrap();
        Some(fd.into())
    }

    #[test]
    fn huge_pages_are_no_memory_to_share() {
        for seals in [OWNER_WRITES, ALL_WRITE] {
            assert!(holds(&sealed(MemfdFlags::empty(), seals).unwrap(), seals, HUGE_BYTES));
            match sealed(MemfdFlags::HUGETLB | MemfdFlags::HUGE_2MB, seals) {
                Some(huge) => assert!(!holds(&huge, seals, HUGE_BYTES) && !is_common(&huge, HUGE_BYTES)),
                None => println!("SKIPPED: this kernel has no huge pages of 2 MiB"),
            }
        }
    }

    #[test]
    fn common_memory_is_writable() {
        assert!(is_common(&sealed(MemfdFlags::empty(), ALL_WRITE).unwrap(), HUGE_BYTES));
        for more in [SealFlags::WRITE, SealFlags::FUTURE_WRITE] {
            assert!(!is_common(&sealed(MemfdFlags::empty(), ALL_WRITE | more).unwrap(), HUGE_BYTES));
        }
    }

    #[test]
    fn common_memory_with_holes_is_filled() {
        let segment = new_common("musubi-test", HUGE_BYTES).unwrap();
        let hole = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        fallocate(&segment, hole, 0, u64::from(HUGE_BYTES)).unwrap();
        assert!(is_common(&segment, HUGE_BYTES) && bytes_present(&segment) == 0);
        assert!(fill(&segment, HUGE_BYTES).is_ok() && bytes_present(&segment) == HUGE_BYTES);
    }

    /// A hostile owner reserves pages behind the end, where nobody reads.
    #[test]
    fn pages_behind_the_end_do_not_count_for_those_inside() {
        let fd = memfd_create("musubi-test", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING).unwrap();
        ftruncate(&fd, u64::from(HUGE_BYTES)).unwrap();
        fallocate(&fd, FallocateFlags::KEEP_SIZE, u64::from(HUGE_BYTES), u64::from(HUGE_BYTES)).unwrap();
        fcntl_add_seals(&fd, OWNER_WRITES).unwrap();
        let fd = Descriptor::from(fd);
        assert_eq!(bytes_present(&fd), HUGE_BYTES, "all of them behind the end");
        assert!(adopt(&fd, HUGE_BYTES, HUGE_BYTES).is_ok());
        assert_eq!(bytes_present(&fd), 2 * HUGE_BYTES);
    }

    /// What the kernel counts, pages behind the end included.
    fn bytes_present(fd: &Descriptor) -> u32 {
        fstat(fd).unwrap().st_blocks as u32 * 512
    }
}

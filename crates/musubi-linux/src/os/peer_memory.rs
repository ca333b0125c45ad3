//! The memory of another process, as far as the kernel lets us read it (`process_vm_readv`).
//!
//! What you may rely on: nothing but the bytes that were asked for is written, and nothing of the other process is changed. A
//! read either gives all of them or says that it did not.
//!
//! How it works: the kernel copies from one address space into the other, once. It asks whether we might trace that process
//! (ptrace(2), `PTRACE_MODE_ATTACH_REALCREDS`); here only one of our own user is asked for, so that nobody gets from us what it
//! could not have had without us.
//!
//! What it does not do: bound the time. Who owns the memory can make a read of it wait (`userfaultfd`, a file system of its own),
//! so it is for peers that are trusted. Nor does it hold the process: a number that was given anew is another process, and
//! what is read of it must be checked.

use rustix::process::{Pid, geteuid};

/// Another process of our user.
#[derive(Debug)]
pub struct PeerMemory {
    pid: Pid,
}

impl PeerMemory {
    /// That of a process that the kernel named; none if it is another user's, or has no number for us.
    pub(crate) fn of(pid: i32, uid: u32) -> Option<PeerMemory> {
        let pid = Pid::from_raw(pid).filter(|_| uid == geteuid().as_raw())?;
        Some(PeerMemory { pid })
    }

    /// Our own.
    pub fn own() -> PeerMemory {
        PeerMemory { pid: rustix::process::getpid() }
    }

    /// Reads as many bytes as there is room for. False if not all of them could be; what is in `into` then means nothing.
    #[must_use]
    pub fn read(&self, address: u64, into: &mut [u8]) -> bool {
        let Ok(base) = usize::try_from(address) else { return false };
        let local = libc::iovec { iov_base: into.as_mut_ptr().cast(), iov_len: into.len() };
        // An address of the other process: a number that the kernel looks up there.
        let remote = libc::iovec { iov_base: std::ptr::without_provenance_mut(base), iov_len: into.len() };
        let pid = self.pid.as_raw_nonzero().get();
        // SAFETY: the kernel writes into `into` only, at most its length, and every byte is a u8; it reads both structures,
        // which live until the call returns, and nothing else of ours.
        let read = unsafe { libc::process_vm_readv(pid, &local, 1, &remote, 1, 0) };
        usize::try_from(read) == Ok(into.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg_attr(miri, ignore = "a system call that the interpreter does not know")]
    fn what_is_there_is_read_and_what_is_not_is_not() {
        let there = [7_u8; 100];
        let mut into = [0; 100];
        let own = PeerMemory::own();
        assert!(own.read(there.as_ptr().expose_provenance() as u64, &mut into));
        assert_eq!(into, there);
        assert!(!own.read(8, &mut into) && !own.read(u64::MAX, &mut into));
        assert!(PeerMemory::own().read(8, &mut []), "nothing is everywhere");
    }

    #[test]
    fn another_users_memory_is_not_asked_for() {
        let (pid, uid) = (std::process::id() as i32, geteuid().as_raw());
        assert_eq!(PeerMemory::of(pid, uid).map(|own| own.pid), Some(PeerMemory::own().pid));
        assert!(PeerMemory::of(pid, uid + 1).is_none() && PeerMemory::of(0, uid).is_none());
    }
}

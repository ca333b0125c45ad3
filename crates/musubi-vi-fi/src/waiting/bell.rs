//! A descriptor that a program waits on: readable from [`WaitBell::ring`] to [`WaitBell::quiet`].

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsRawFd, FromRawFd};

/// `EFD_CLOEXEC` and `EFD_NONBLOCK`.
const FLAGS: i32 = 0o2_000_000 | 0o4_000;

unsafe extern "C" {
    fn eventfd(value: u32, flags: i32) -> i32;
}

pub(crate) struct WaitBell(File);

impl WaitBell {
    /// A quiet one; `None` if the kernel has none left.
    pub(crate) fn new() -> Option<WaitBell> {
        // SAFETY: any value and these flags may be asked for.
        let descriptor = unsafe { eventfd(0, FLAGS) };
        if descriptor < 0 {
            return None;
        }
        // SAFETY: the kernel has just made it, and nobody else has it.
        Some(WaitBell(unsafe { File::from_raw_fd(descriptor) }))
    }

    /// Its number.
    pub(crate) fn descriptor(&self) -> i32 {
        self.0.as_raw_fd()
    }

    pub(crate) fn ring(&self) {
        // A counter that is full rings already.
        let _ = (&self.0).write(&1_u64.to_ne_bytes());
    }

    pub(crate) fn quiet(&self) {
        // One that is quiet has nothing to read.
        let _ = (&self.0).read(&mut [0; 8]);
    }
}

//! Descriptors that a forked child must not keep: a child that holds the listening socket would keep the slot's name
//! occupied, and one that holds the connections would hide its parent's death.
//!
//! What you may rely on: in a child made by `fork`, every [`Kept`] descriptor refers to an inert event descriptor. A socket
//! that is given up is given up for every copy that another process may still have of it, as one that is just being
//! started has for a moment.
//!
//! How it works: `pthread_atfork` with a handler for the child. It may only do what is safe in a signal handler, so the
//! descriptors stand in a fixed table of atomics and are replaced with `dup3`, which keeps the numbers occupied: the
//! child may still drop its copies of our structs without closing a stranger.
//!
//! What it does not do: see a raw `clone` system call, or a `fork` between creation and registration of a descriptor.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::sync::Once;
use std::sync::atomic::{AtomicI32, AtomicU32, Ordering};

use rustix::event::{EventfdFlags, eventfd};
use rustix::net::{SocketFlags, accept_with};

use crate::os::descriptor::Descriptor;
use crate::os::{closing, inheriting};

/// Most descriptors that are kept from children at once in a process; more are left to them.
const KEPT_MAX: usize = 4096;
const FREE: i32 = -1;

static TABLE: [AtomicI32; KEPT_MAX] = [const { AtomicI32::new(FREE) }; KEPT_MAX];
static INERT: AtomicI32 = AtomicI32::new(FREE);
/// How often this process's line of descent forked since the handler was installed.
static GENERATION: AtomicU32 = AtomicU32::new(0);

/// A socket that forked children do not keep.
#[derive(Debug)]
pub struct Kept {
    fd: Descriptor,
    place: Option<usize>,
    process: Process,
}

impl Kept {
    /// Keeps a descriptor from children that are forked from now on.
    pub fn new(fd: Descriptor) -> Kept {
        install();
        let raw = fd.as_raw_fd();
        let take = |place: &AtomicI32| place.compare_exchange(FREE, raw, Ordering::AcqRel, Ordering::Relaxed).is_ok();
        let place = TABLE.iter().position(take);
        Kept { fd, place, process: Process::this() }
    }
}

impl Kept {
    /// Takes those who still stand before a listening socket, which has been shut: each has its end, which may wait, where
    /// its own would be theirs too, and its name has to be free at once.
    fn take_callers(&self) {
        while let Ok(caller) = accept_with(&self.fd, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK) {
            drop(Descriptor::of_others(caller));
        }
    }
}

impl AsFd for Kept {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        if let Some(place) = self.place {
            TABLE[place].store(FREE, Ordering::Release);
        }
        if self.process.is_this() {
            // Fails for a socket that has never been connected, which nobody talks to.
            let _ = rustix::net::shutdown(&self.fd, rustix::net::Shutdown::Both);
            self.take_callers();
        }
    }
}

/// Sees to it that children learn what they are.
pub(super) fn install() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let Ok(inert) = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK) else { return };
        INERT.store(std::os::fd::IntoRawFd::into_raw_fd(inert), Ordering::Release);
        // SAFETY: the handler is a plain function that lives as long as the program and calls only what is safe in a
        // signal handler.
        unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
    });
}

/// The run of a process that something belongs to: costs one load to ask, no system call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run(u32);

impl Run {
    /// The one that calls.
    pub fn this() -> Run {
        install();
        Run(GENERATION.load(Ordering::Relaxed))
    }

    /// False in a child made by `fork`.
    #[inline]
    pub fn is_this(self) -> bool {
        self.0 == GENERATION.load(Ordering::Relaxed)
    }
}

extern "C" fn in_child() {
    GENERATION.fetch_add(1, Ordering::Relaxed);
    closing::in_child();
    inheriting::in_child();
    let inert = INERT.load(Ordering::Acquire);
    for place in &TABLE {
        let fd = place.load(Ordering::Acquire);
        if fd != FREE {
            // SAFETY: both numbers are open descriptors of this process; replacing one that is registered here is what
            // its owner agreed to.
            unsafe { libc::dup3(inert, fd, libc::O_CLOEXEC) };
        }
    }
}

/// The process that a value belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Process(u32);

impl Process {
    pub(crate) fn this() -> Process {
        Process(std::process::id())
    }

    /// False in a child made by `fork`.
    pub(crate) fn is_this(self) -> bool {
        self == Process::this()
    }

    pub(crate) fn number(self) -> u32 {
        self.0
    }
}

//! What the core asks of a port: three small traits, defined here by the one who calls.
//!
//! What you may rely on: the core calls nothing else of the outside. A port implements these for its time, its way to
//! wake another core, and its caches; docs/porting.md walks through a port and its conformance test.

use crate::sync::AtomicU32;

/// A clock that all participants of a system read alike.
pub trait Clock {
    /// Nanoseconds since a moment common to all participants; never goes back.
    fn now_ns(&self) -> u64;
}

/// How long a call may wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deadline {
    /// Not at all.
    Poll,
    /// Until this instant of the port's [`Clock`], in nanoseconds.
    At(u64),
    /// As long as it takes.
    Forever,
}

/// How a participant that may sleep is woken.
pub trait Doorbell {
    /// Wakes whoever sleeps on `bell`, a word of the ringer's own section, after changing it; `waiting` are the bits
    /// ([`crate::layout::waiting`]) that the other side had set. Must not wait for anything, whatever the other does.
    fn ring(&self, bell: &AtomicU32, waiting: u32);
}

/// What memory needs so that two parties see the same bytes. [`Coherent`] where hardware does it.
pub trait Coherence {
    /// Whether [`Coherence::publish`] and [`Coherence::acquire`] do anything; if not, their addresses are not computed.
    const MANAGES_CACHES: bool = true;
    /// Whether the two hints do anything; if not, their addresses are not computed.
    const HINTS: bool = true;

    /// Makes bytes that we wrote visible to others, before the word that announces them.
    fn publish(&self, from: *const u8, bytes: u32) {
        let _ = (from, bytes);
    }

    /// Makes bytes that another wrote visible to us, after the word that announced them.
    fn acquire(&self, from: *const u8, bytes: u32) {
        let _ = (from, bytes);
    }

    /// A hint that the line at this address will be written soon.
    fn intend_write(&self, line: *const u8) {
        let _ = line;
    }

    /// A hint that the line at this address will be read soon.
    fn intend_read(&self, line: *const u8) {
        let _ = line;
    }
}

/// Hardware keeps caches coherent and there is no hint to give.
#[derive(Clone, Copy, Debug, Default)]
pub struct Coherent;

impl Coherence for Coherent {
    const MANAGES_CACHES: bool = false;
    const HINTS: bool = false;
}

//! Flushes of another core's caches: requests that coalesce, each with an acknowledgement.
//!
//! What you may rely on: when a request is answered, a flush on that core has begun after the request and has ended. One
//! flush answers all requests that were made before it began, so k requests cost at most k flushes and usually fewer.
//! There is no slot to wait for, and a request that nobody answers in time leaves nothing behind.
//!
//! How it works: requests are numbered by a counter; the flushing core reads it, flushes, and then publishes the number
//! that it read. (Linux/M32R kept one request in one slot for all cores, and waited for it without end.)

use crate::smp::causes::Causes;
use crate::sync::{self, AtomicU32, Ordering, Site, constructor};

/// What can be flushed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cache {
    /// Instructions: after code was written.
    Instructions,
    /// Data: written back and dropped, for memory that is not coherent.
    Data,
    /// Address translations (or, without those, memory protection): after a map has changed.
    Translations,
}

/// Kinds of [`Cache`].
pub const CACHES: usize = 3;

impl Cache {
    /// Every kind.
    pub const ALL: [Cache; CACHES] = [Cache::Instructions, Cache::Data, Cache::Translations];

    /// The cause that asks for it.
    pub const fn cause(self) -> Causes {
        match self {
            Cache::Instructions => Causes::FLUSH_INSTRUCTIONS,
            Cache::Data => Causes::FLUSH_DATA,
            Cache::Translations => Causes::FLUSH_TRANSLATIONS,
        }
    }
}

/// Requests for flushes of one cache of one core.
#[derive(Debug)]
pub struct Requests {
    /// Number of the newest request. Writers: any core adds one.
    asked: AtomicU32,
    /// Number of the newest request that has been answered. Writer: the owner, with interrupts masked.
    flushed: AtomicU32,
}

impl Requests {
    constructor! {
        /// No request.
        #[allow(clippy::new_without_default, reason = "requests are part of a static")]
        pub fn new() -> Self {
            Self { asked: AtomicU32::new(0), flushed: AtomicU32::new(0) }
        }
    }

    /// Asks for a flush; the number is for [`Requests::is_answered`]. The caller then raises the cause.
    pub fn ask(&self) -> u32 {
        self.asked.fetch_add(1, sync::release(Site::AskFlush)).wrapping_add(1)
    }

    /// Flushes and answers all requests so far. Only the owner calls this, with interrupts masked; `flush` must not wait
    /// for anything.
    pub fn answer(&self, flush: impl FnOnce()) {
        let asked = self.asked.load(sync::acquire(Site::SeeFlushAsked));
        flush();
        self.flushed.store(asked, sync::release(Site::PublishFlushed));
    }

    /// Whether a flush that began after the request has ended. Numbers wrap; 2^31 requests must not be open at a time.
    pub fn is_answered(&self, number: u32) -> bool {
        let flushed = self.flushed.load(sync::acquire(Site::SeeFlushed));
        flushed.wrapping_sub(number) as i32 >= 0
    }

    /// Gives up what an earlier life of the owner had not answered: a core that starts has empty caches.
    pub(in crate::smp) fn forget(&self) {
        self.flushed.store(self.asked.load(Ordering::Acquire), Ordering::Release);
    }
}

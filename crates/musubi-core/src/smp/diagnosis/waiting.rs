//! What each core waits for at this moment, for a report when one is stuck.
//!
//! What you may rely on: a program that names no [`Witness`] pays nothing, neither code nor memory. Noting a wait is a few
//! stores on the core's own row, bounded, and works in tasks, handlers and nested waits alike. A reader sees an entry
//! whole or not at all.
//!
//! How it works: a core's row has [`WAITS_MAX`] entries, because waits nest: one that waits for a lock serves a cross
//! call, and the called function waits for another lock. An entry's kind is written last and cleared first, and a reader
//! that finds it or the beginning changed afterwards passes the entry over.
//!
//! What it does not do: keep a wait when all entries of the row are taken; that one is only counted.

use crate::smp::cores::Cores;
use crate::sync::{AtomicU32, AtomicUsize, Ordering, array, constructor};

/// Waits of one core that are noted at a time.
pub const WAITS_MAX: usize = 6;

const NOTHING: u32 = 0;
const CLAIMED: u32 = 1;
const LOCK: u32 = 2;
const CALL: u32 = 3;
const FLUSH: u32 = 4;
const BOOT: u32 = 5;
const STOP: u32 = 6;
const OTHER: u32 = 7;

/// What a core waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Awaited {
    /// The lock at this address; a report gives its name.
    Lock(usize),
    /// Acknowledgements of a cross call by these cores.
    Call(Cores),
    /// Flushes by these cores.
    Flush(Cores),
    /// The start of these cores.
    Boot(Cores),
    /// These cores to stop.
    Stop(Cores),
    /// Something of the program's, by a number of its choice.
    Other(usize),
}

impl Awaited {
    fn encode(self) -> (u32, usize) {
        match self {
            Awaited::Lock(address) => (LOCK, address),
            Awaited::Call(cores) => (CALL, cores.mask() as usize),
            Awaited::Flush(cores) => (FLUSH, cores.mask() as usize),
            Awaited::Boot(cores) => (BOOT, cores.mask() as usize),
            Awaited::Stop(cores) => (STOP, cores.mask() as usize),
            Awaited::Other(number) => (OTHER, number),
        }
    }

    fn decode(kind: u32, subject: usize) -> Option<Self> {
        let cores = Cores::from_mask(subject as u32);
        match kind {
            LOCK => Some(Awaited::Lock(subject)),
            CALL => Some(Awaited::Call(cores)),
            FLUSH => Some(Awaited::Flush(cores)),
            BOOT => Some(Awaited::Boot(cores)),
            STOP => Some(Awaited::Stop(cores)),
            OTHER => Some(Awaited::Other(subject)),
            _ => None,
        }
    }
}

/// A type of the program that knows where waits are noted.
pub trait Witness: 'static {
    /// The row of a core; `None` if nothing is noted.
    fn row(core: usize) -> Option<&'static Row>;
}

/// Notes nothing, at no cost.
#[derive(Clone, Copy, Debug)]
pub struct Unwatched;

impl Witness for Unwatched {
    #[inline(always)]
    fn row(_: usize) -> Option<&'static Row> {
        None
    }
}

/// One wait. Writer of all words: the core whose row it is.
#[derive(Debug)]
struct Entry {
    kind: AtomicU32,
    subject: AtomicUsize,
    since_ns_low: AtomicU32,
    since_ns_high: AtomicU32,
}

/// The waits of one core. Writer: that core.
#[derive(Debug)]
pub struct Row {
    entries: [Entry; WAITS_MAX],
    /// Waits that found no entry.
    unnoted: AtomicU32,
}

impl Row {
    constructor! {
        /// A row without waits.
        #[allow(clippy::new_without_default, reason = "a table of rows is a static")]
        pub fn new() -> Self {
            Self {
                entries: array![Entry {
                    kind: AtomicU32::new(NOTHING),
                    subject: AtomicUsize::new(0),
                    since_ns_low: AtomicU32::new(0),
                    since_ns_high: AtomicU32::new(0),
                }; WAITS_MAX],
                unnoted: AtomicU32::new(0),
            }
        }
    }

    /// Notes that the core begins to wait, until the value that this gives is dropped.
    pub fn begin(&'static self, what: Awaited, now_ns: u64) -> Waits {
        let entry = self.entries.iter().find(|entry| entry.claim());
        match entry {
            Some(entry) => entry.fill(what, now_ns),
            None => drop(self.unnoted.fetch_add(1, Ordering::Relaxed)),
        }
        Waits(entry)
    }

    /// What the core waits for and since when, one item a nested wait.
    pub fn waits(&self) -> impl Iterator<Item = (Awaited, u64)> {
        self.entries.iter().filter_map(Entry::read)
    }

    /// Waits that were not noted because too many nested.
    pub fn unnoted(&self) -> u32 {
        self.unnoted.load(Ordering::Relaxed)
    }
}

impl Entry {
    /// Takes the entry, unless it is in use. Only contexts of one core contend, so one attempt is enough.
    fn claim(&self) -> bool {
        self.kind.compare_exchange(NOTHING, CLAIMED, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }

    fn fill(&self, what: Awaited, now_ns: u64) {
        let (kind, subject) = what.encode();
        self.subject.store(subject, Ordering::Relaxed);
        self.since_ns_low.store(now_ns as u32, Ordering::Relaxed);
        self.since_ns_high.store((now_ns >> 32) as u32, Ordering::Relaxed);
        self.kind.store(kind, Ordering::Release);
    }

    fn read(&self) -> Option<(Awaited, u64)> {
        let kind = self.kind.load(Ordering::Acquire);
        let subject = self.subject.load(Ordering::Relaxed);
        let (low, high) = (self.since_ns_low.load(Ordering::Acquire), self.since_ns_high.load(Ordering::Acquire));
        let unchanged = self.kind.load(Ordering::Relaxed) == kind && self.since_ns_low.load(Ordering::Relaxed) == low;
        let what = Awaited::decode(kind, subject)?;
        unchanged.then_some((what, u64::from(high) << 32 | u64::from(low)))
    }
}

/// A wait that is noted until this is dropped.
#[derive(Debug)]
#[must_use = "dropping this ends the note"]
pub struct Waits(Option<&'static Entry>);

impl Drop for Waits {
    fn drop(&mut self) {
        if let Some(entry) = self.0 {
            entry.kind.store(NOTHING, Ordering::Release);
        }
    }
}

/// Notes for the witness `W` that a core begins to wait; `now_ns` is only read if somebody watches.
#[inline(always)]
pub fn begin<W: Witness>(core: usize, what: Awaited, now_ns: impl FnOnce() -> u64) -> Option<Waits> {
    W::row(core).map(|row| row.begin(what, now_ns()))
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::vec::Vec;

    #[test]
    fn nested_waits_are_seen_until_they_end() {
        static ROW: Row = Row::new();
        let lock = ROW.begin(Awaited::Lock(0x40), 5_000_000_000);
        let call = ROW.begin(Awaited::Call(Cores::one(2)), 7);
        let both: Vec<_> = ROW.waits().collect();
        assert_eq!(both, [(Awaited::Lock(0x40), 5_000_000_000), (Awaited::Call(Cores::one(2)), 7)]);
        drop(lock);
        assert_eq!(ROW.waits().collect::<Vec<_>>(), [(Awaited::Call(Cores::one(2)), 7)]);
        drop(call);
        assert_eq!(ROW.waits().count(), 0);
    }

    #[test]
    fn a_full_row_counts() {
        static ROW: Row = Row::new();
        let waits: Vec<_> = (0..WAITS_MAX + 2).map(|n| ROW.begin(Awaited::Other(n), 0)).collect();
        assert_eq!((ROW.waits().count(), ROW.unnoted()), (WAITS_MAX, 2));
        drop(waits);
        assert_eq!(ROW.waits().count(), 0);
    }

    #[test]
    fn nobody_watches_by_default() {
        assert!(begin::<Unwatched>(0, Awaited::Other(1), || unreachable!()).is_none());
    }
}

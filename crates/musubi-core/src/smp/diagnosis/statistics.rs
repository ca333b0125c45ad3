//! Statistics of a lock: how often and how long it was waited for and held.
//!
//! What you may rely on: the same fields as RTEMS keeps for its locks (longest acquisition, longest section, uses,
//! contention by the length of the queue, totals), and the wait's total and the holder as well. A lock without statistics
//! pays nothing for them. Taking a snapshot costs one use of the lock, which is counted like any other.
//!
//! How it works: the counters are written by the lock's holder while it holds it, so they need no atomic addition. Times
//! come from [`Processor::now_ns`]: two readings a use.
//!
//! What it does not do: count tries that were refused.

use crate::smp::exclusion::Lock;
use crate::smp::watch::Watch;
use crate::smp::{Processor, Ticket};
use crate::sync::{AtomicU32, Ordering, array, constructor};

/// Queue lengths that are told apart: none, 1, 2, and 3 or more ahead.
pub const QUEUE_LENGTHS: usize = 4;

/// What happened to a lock so far. Times in nanoseconds; a single wait or hold counts as at most 2^32 - 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Snapshot {
    /// How often it was taken.
    pub acquisitions: u32,
    /// How often it was taken with so many others ahead; the last field counts that many or more.
    pub by_queue_length: [u32; QUEUE_LENGTHS],
    /// Longest wait.
    pub wait_ns_max: u32,
    /// All waits together.
    pub wait_ns_total: u64,
    /// Longest time from taking to giving back.
    pub hold_ns_max: u32,
    /// All these times together.
    pub hold_ns_total: u64,
}

/// Counts what happens to the lock that it watches. Writer of all words: the lock's holder.
#[derive(Debug)]
pub struct Statistics {
    acquisitions: AtomicU32,
    by_queue_length: [AtomicU32; QUEUE_LENGTHS],
    wait: Span,
    hold: Span,
    /// When it was taken.
    since: Wide,
    /// The holder's number plus 1; 0 if free.
    holder: AtomicU32,
}

impl Statistics {
    constructor! {
        /// All zero.
        #[allow(clippy::new_without_default, reason = "part of a static")]
        pub fn new() -> Self {
            Statistics {
                acquisitions: AtomicU32::new(0),
                by_queue_length: array![AtomicU32::new(0); QUEUE_LENGTHS],
                wait: Span::new(),
                hold: Span::new(),
                since: Wide::new(),
                holder: AtomicU32::new(0),
            }
        }
    }

    /// The core that holds the lock. A look that is old at once, for the report on a stuck core.
    pub fn holder(&self) -> Option<usize> {
        (self.holder.load(Ordering::Relaxed) as usize).checked_sub(1)
    }

    fn copy(&self) -> Snapshot {
        let (wait, hold) = (&self.wait, &self.hold);
        let counts = self.by_queue_length.each_ref();
        Snapshot {
            acquisitions: self.acquisitions.load(Ordering::Relaxed),
            by_queue_length: counts.map(|count| count.load(Ordering::Relaxed)),
            wait_ns_max: wait.ns_max.load(Ordering::Relaxed),
            wait_ns_total: wait.ns_total.get(),
            hold_ns_max: hold.ns_max.load(Ordering::Relaxed),
            hold_ns_total: hold.ns_total.get(),
        }
    }
}

impl<P: Processor> Ticket<P, Statistics> {
    /// What happened so far. Waits for the lock.
    pub fn snapshot(&self) -> Snapshot {
        let _held = self.lock();
        self.watch().copy()
    }
}

impl<P: Processor, const NODES: usize> crate::smp::Clh<P, NODES, Statistics> {
    /// What happened so far. Waits for the lock.
    pub fn snapshot(&self) -> Snapshot {
        let _held = self.lock();
        self.watch().copy()
    }
}

impl Watch for Statistics {
    /// When it was asked for.
    type Asked = u64;

    fn asks<P: Processor>(&self, _tries: bool) -> u64 {
        P::now_ns()
    }

    fn takes<P: Processor>(&self, asked_ns: u64, ahead: u32) {
        let now_ns = P::now_ns();
        add_one(&self.acquisitions);
        add_one(&self.by_queue_length[(ahead as usize).min(QUEUE_LENGTHS - 1)]);
        self.wait.add(now_ns.saturating_sub(asked_ns));
        self.since.set(now_ns);
        self.holder.store(P::core() as u32 + 1, Ordering::Relaxed);
    }

    fn gives<P: Processor>(&self) {
        self.hold.add(P::now_ns().saturating_sub(self.since.get()));
        self.holder.store(0, Ordering::Relaxed);
    }
}

fn add_one(word: &AtomicU32) {
    word.store(word.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
}

/// Longest and total of some times.
#[derive(Debug)]
struct Span {
    ns_max: AtomicU32,
    ns_total: Wide,
}

impl Span {
    constructor! {
        fn new() -> Self {
            Span { ns_max: AtomicU32::new(0), ns_total: Wide::new() }
        }
    }

    fn add(&self, ns: u64) {
        let short = u32::try_from(ns).unwrap_or(u32::MAX);
        self.ns_max.store(self.ns_max.load(Ordering::Relaxed).max(short), Ordering::Relaxed);
        self.ns_total.set(self.ns_total.get().wrapping_add(ns));
    }
}

/// 64 bits for those who hold the lock.
#[derive(Debug)]
struct Wide {
    low: AtomicU32,
    high: AtomicU32,
}

impl Wide {
    constructor! {
        fn new() -> Self {
            Wide { low: AtomicU32::new(0), high: AtomicU32::new(0) }
        }
    }

    fn get(&self) -> u64 {
        u64::from(self.high.load(Ordering::Relaxed)) << 32 | u64::from(self.low.load(Ordering::Relaxed))
    }

    fn set(&self, value: u64) {
        self.low.store(value as u32, Ordering::Relaxed);
        self.high.store((value >> 32) as u32, Ordering::Relaxed);
    }
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use super::*;

    #[test]
    fn both_halves_of_a_long_time_are_kept() {
        let span = Span::new();
        for (ns, total, longest) in [(5, 5, 5), (0x2_0000_0001, 0x2_0000_0006, u32::MAX), (7, 0x2_0000_000d, u32::MAX)]
        {
            span.add(ns);
            assert_eq!((span.ns_total.get(), span.ns_max.load(Ordering::Relaxed)), (total, longest));
        }
    }
}

//! The observer that records: the last events of each core, counts of every kind, and latency histograms of cross calls.
//!
//! What you may rely on: noting an event is some ten stores on the core's own memory and one reading of the clock; it never
//! waits, and a handler may interrupt it. A reader gets each event whole or not at all; the oldest may be missing. A value
//! in a histogram is known to 12.5 %.
//!
//! How it works: each core has a ring of the last `EVENTS` events; a place is claimed by one addition, and its turn is
//! cleared first and written last. The same is asked of a kernel's debugging of cross calls (Linux's CSD lock debugging
//! tells ten kinds of events apart; these are fifteen).

use core::marker::PhantomData;

use crate::histogram::{BUCKETS, bucket, quantile};
use crate::smp::causes::Causes;
use crate::smp::observe::{Event, Observer, Stage};
use crate::smp::waiting::{Unwatched, Witness};
use crate::sync::{AtomicU32, Ordering, array, constructor};

/// Kinds of [`Event`].
const KINDS: usize = 15;
const STAGES: usize = 2;

/// Records for `N` cores the last `EVENTS` events each; waits are noted with `W`.
#[derive(Debug)]
pub struct Recorder<const N: usize, const EVENTS: usize, W = Unwatched> {
    lanes: [Lane<EVENTS>; N],
    kind: PhantomData<fn() -> W>,
}

/// What one core records. Writer: that core.
#[derive(Debug)]
struct Lane<const EVENTS: usize> {
    /// Events so far.
    next: AtomicU32,
    records: [Record; EVENTS],
    counts: [AtomicU32; KINDS],
    spans: [Histogram; STAGES],
}

#[derive(Debug)]
struct Record {
    /// Number of the event plus one; 0 while it is being written.
    turn: AtomicU32,
    ns_low: AtomicU32,
    ns_high: AtomicU32,
    /// Kind, and the other core in the bits from 8.
    what: AtomicU32,
    causes: AtomicU32,
}

#[derive(Debug)]
struct Histogram {
    buckets: [AtomicU32; BUCKETS as usize],
    ns_max: AtomicU32,
}

/// How often each thing happened on a core.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Rang at others, and once more at half the time.
    pub rings: u32,
    /// Of these, once more.
    pub rings_again: u32,
    /// Raised without a ring, because a cause was pending.
    pub coalesced: u32,
    /// Raised without a ring, because the other polled.
    pub polled: u32,
    /// Was interrupted.
    pub interrupts: u32,
    /// Was interrupted with nothing left to serve.
    pub spurious: u32,
    /// Queued calls.
    pub posted: u32,
    /// Accepted calls.
    pub accepted: u32,
    /// Completed calls.
    pub completed: u32,
    /// Took calls back.
    pub withdrew: u32,
}

impl<const N: usize, const EVENTS: usize, W: Witness> Recorder<N, EVENTS, W> {
    constructor! {
        /// Nothing has happened. `EVENTS` is at least 1.
        #[allow(clippy::new_without_default, reason = "part of a static")]
        pub fn new() -> Self {
            Self { lanes: array![Lane::new(); N], kind: PhantomData }
        }
    }

    /// How often each thing happened on a core.
    pub fn counts(&self, core: usize) -> Counts {
        let count = |kind: Event| self.lanes[core].counts[encode(kind).0 as usize].load(Ordering::Relaxed);
        let none = Causes::NONE;
        let rings_again = count(Event::RangAgain(0));
        Counts {
            rings: count(Event::Rang(0, none)).wrapping_add(rings_again),
            rings_again,
            coalesced: count(Event::Coalesced(0, none)),
            polled: count(Event::Polled(0, none)),
            interrupts: count(Event::Interrupted),
            spurious: count(Event::Spurious),
            posted: count(Event::Posted(0)),
            accepted: count(Event::Accepted(0)),
            completed: count(Event::Completed(0)),
            withdrew: count(Event::Withdrew(0)),
        }
    }

    /// Longest time of a stage of the calls to a core, in nanoseconds.
    pub fn ns_max(&self, core: usize, stage: Stage) -> u32 {
        self.lanes[core].spans[stage as usize].ns_max.load(Ordering::Relaxed)
    }

    /// The time below which `permille` of the calls to a core needed for a stage, in nanoseconds; `None` if there was no
    /// call. Needs a kilobyte of stack.
    pub fn quantile_ns(&self, core: usize, stage: Stage, permille: u32) -> Option<u32> {
        let buckets = self.lanes[core].spans[stage as usize].buckets.each_ref();
        quantile(&buckets.map(|count| count.load(Ordering::Relaxed)), permille)
    }
}

impl<const N: usize, const EVENTS: usize, W: Witness> Observer for Recorder<N, EVENTS, W> {
    const ON: bool = true;
    type Waits = W;

    fn note(&self, core: usize, event: Event, now_ns: impl FnOnce() -> u64) {
        self.lanes[core].note(event, now_ns());
    }

    fn measure(&self, core: usize, stage: Stage, span_ns: u32) {
        let histogram = &self.lanes[core].spans[stage as usize];
        histogram.buckets[bucket(span_ns) as usize].fetch_add(1, Ordering::Relaxed);
        histogram.ns_max.fetch_max(span_ns, Ordering::Relaxed);
    }
}

/// Somebody who remembers the last events of each core.
pub trait Trace: Sync {
    /// Calls `see` with time in nanoseconds and event, the oldest first.
    fn for_each_event(&self, core: usize, see: &mut dyn FnMut(u64, Event));
}

impl<const N: usize, const EVENTS: usize, W: Witness> Trace for Recorder<N, EVENTS, W> {
    fn for_each_event(&self, core: usize, see: &mut dyn FnMut(u64, Event)) {
        let Some(lane) = self.lanes.get(core) else { return };
        let next = lane.next.load(Ordering::Acquire);
        let oldest = next.saturating_sub(EVENTS as u32);
        (oldest..next).filter_map(|number| lane.read(number)).for_each(|(ns, event)| see(ns, event));
    }
}

impl<const EVENTS: usize> Lane<EVENTS> {
    constructor! {
        fn new() -> Self {
            Self {
                next: AtomicU32::new(0),
                records: array![Record {
                    turn: AtomicU32::new(0),
                    ns_low: AtomicU32::new(0),
                    ns_high: AtomicU32::new(0),
                    what: AtomicU32::new(0),
                    causes: AtomicU32::new(0),
                }; EVENTS],
                counts: array![AtomicU32::new(0); KINDS],
                spans: array![Histogram {
                    buckets: array![AtomicU32::new(0); BUCKETS as usize],
                    ns_max: AtomicU32::new(0),
                }; STAGES],
            }
        }
    }

    fn note(&self, event: Event, now_ns: u64) {
        let (kind, peer, causes) = encode(event);
        self.counts[kind as usize].fetch_add(1, Ordering::Relaxed);
        let number = self.next.fetch_add(1, Ordering::AcqRel);
        let record = &self.records[number as usize % EVENTS];
        record.turn.swap(0, Ordering::Acquire);
        record.ns_low.store(now_ns as u32, Ordering::Release);
        record.ns_high.store((now_ns >> 32) as u32, Ordering::Release);
        record.what.store(kind | (peer as u32) << 8, Ordering::Release);
        record.causes.store(causes.bits(), Ordering::Release);
        record.turn.store(number.wrapping_add(1), Ordering::Release);
    }

    fn read(&self, number: u32) -> Option<(u64, Event)> {
        let record = &self.records[number as usize % EVENTS];
        let is_it = || record.turn.load(Ordering::Acquire) == number.wrapping_add(1);
        if !is_it() {
            return None;
        }
        let [low, high, what, causes] =
            [&record.ns_low, &record.ns_high, &record.what, &record.causes].map(|word| word.load(Ordering::Acquire));
        let event = decode(what & 0xff, (what >> 8) as usize, Causes::from_bits(causes))?;
        is_it().then_some((u64::from(high) << 32 | u64::from(low), event))
    }
}

fn encode(event: Event) -> (u32, usize, Causes) {
    let none = Causes::NONE;
    match event {
        Event::Rang(core, causes) => (0, core, causes),
        Event::Coalesced(core, causes) => (1, core, causes),
        Event::Polled(core, causes) => (2, core, causes),
        Event::RangAgain(core) => (3, core, none),
        Event::Interrupted => (4, 0, none),
        Event::Spurious => (5, 0, none),
        Event::Took(causes) => (6, 0, causes),
        Event::Posted(core) => (7, core, none),
        Event::Accepted(core) => (8, core, none),
        Event::Completed(core) => (9, core, none),
        Event::Withdrew(core) => (10, core, none),
        Event::Overran(core) => (11, core, none),
        Event::Unanswered(core) => (12, core, none),
        Event::Joined => (13, 0, none),
        Event::Left => (14, 0, none),
    }
}

fn decode(kind: u32, core: usize, causes: Causes) -> Option<Event> {
    Some(match kind {
        0 => Event::Rang(core, causes),
        1 => Event::Coalesced(core, causes),
        2 => Event::Polled(core, causes),
        3 => Event::RangAgain(core),
        4 => Event::Interrupted,
        5 => Event::Spurious,
        6 => Event::Took(causes),
        7 => Event::Posted(core),
        8 => Event::Accepted(core),
        9 => Event::Completed(core),
        10 => Event::Withdrew(core),
        11 => Event::Overran(core),
        12 => Event::Unanswered(core),
        13 => Event::Joined,
        14 => Event::Left,
        _ => return None,
    })
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::vec::Vec;

    #[test]
    fn every_kind_comes_back_as_it_went_in() {
        for kind in 0..KINDS as u32 {
            let event = decode(kind, 3, Causes::TICK).unwrap();
            let (again, core, causes) = encode(event);
            assert_eq!((again, decode(kind, core, causes)), (kind, Some(event)));
        }
        assert_eq!(decode(KINDS as u32, 0, Causes::NONE), None);
    }

    #[test]
    fn the_last_events_are_kept_and_all_are_counted() {
        static RECORDER: Recorder<2, 3> = Recorder::new();
        for ns in 0..5 {
            RECORDER.note(1, Event::Posted(ns as usize), || ns + 7_000_000_000);
        }
        let mut seen = Vec::new();
        RECORDER.for_each_event(1, &mut |ns, event| seen.push((ns - 7_000_000_000, event)));
        assert_eq!(seen, [(2, Event::Posted(2)), (3, Event::Posted(3)), (4, Event::Posted(4))]);
        assert_eq!((RECORDER.counts(1).posted, RECORDER.counts(0).posted), (5, 0));
        RECORDER.for_each_event(0, &mut |_, _| panic!("nothing happened there"));
    }

    #[test]
    fn latencies_are_known_by_stage() {
        static RECORDER: Recorder<1, 1> = Recorder::new();
        (1..=1000).for_each(|ns| RECORDER.measure(0, Stage::ToAccepted, ns));
        let median = RECORDER.quantile_ns(0, Stage::ToAccepted, 500).unwrap();
        assert!((500..=563).contains(&median), "{median}");
        assert_eq!(RECORDER.ns_max(0, Stage::ToAccepted), 1000);
        assert_eq!(RECORDER.quantile_ns(0, Stage::ToCompleted, 500), None);
    }
}

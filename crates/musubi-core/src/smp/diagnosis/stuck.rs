//! The report on stuck cores: what each waits for and since when, who holds it, who waits for whom in a circle, and the
//! last events.
//!
//! What you may rely on: printing takes no lock, waits for nothing, allocates nothing, and reads only what cores note of
//! themselves, so any core can print it while the others hang, from a watchdog's handler too.
//!
//! How it works: the rows of [`crate::smp::waiting`] say what each core waits for; with the holders of the locks they make a
//! graph of who waits for whom, and a core that can reach itself in it is in a circle.
//!
//! What it does not do: stop the clock. Cores that are not stuck go on meanwhile, so a wait that has just ended may show.

use crate::smp::CORES_MAX;
use crate::smp::cores::Cores;
use crate::smp::observe::Event;
use crate::smp::recorder::Trace;
use crate::smp::waiting::{Awaited, Row};

/// What is known of a lock, for the report.
#[derive(Clone, Copy, Debug)]
pub struct LockFacts<'a> {
    /// What it is called.
    pub name: &'a str,
    /// What [`Awaited::Lock`] says of it.
    pub address: usize,
    /// The core that holds it, as of now.
    pub holder: Option<usize>,
}

/// The report; print it with `{}`.
#[derive(Clone, Copy)]
pub struct Report<'a> {
    /// The rows of the cores, in their order.
    pub rows: &'a [&'a Row],
    /// The locks that have a name.
    pub locks: &'a [LockFacts<'a>],
    /// Where the last events are, if anywhere.
    pub trace: Option<&'a dyn Trace>,
    /// Now.
    pub now_ns: u64,
    /// Waits shorter than this are not reported, in nanoseconds.
    pub stuck_after_ns: u64,
}

impl Report<'_> {
    /// The cores that have waited for one thing for too long.
    pub fn stuck(&self) -> Cores {
        let stuck = (0..self.cores()).filter(|&core| self.long_waits(core).next().is_some());
        stuck.fold(Cores::NONE, |all, core| all.with(Cores::one(core)))
    }

    /// The cores that wait for one another in a circle, all for too long.
    pub fn circle(&self) -> Cores {
        let mut reach = [Cores::NONE; CORES_MAX];
        for (core, cores) in reach.iter_mut().enumerate().take(self.cores()) {
            *cores = self.long_waits(core).fold(Cores::NONE, |all, (what, _)| all.with(self.waited_for(what)));
        }
        // After one pass for each core in the middle, reach is what can be reached (Warshall, 1962).
        for middle in 0..self.cores() {
            let beyond = reach[middle];
            let before = reach.iter_mut().filter(|cores| cores.contains(middle));
            before.for_each(|cores| *cores = cores.with(beyond));
        }
        let circle = (0..self.cores()).filter(|&core| reach[core].contains(core));
        circle.fold(Cores::NONE, |all, core| all.with(Cores::one(core)))
    }

    fn cores(&self) -> usize {
        self.rows.len().min(CORES_MAX)
    }

    fn long_waits(&self, core: usize) -> impl Iterator<Item = (Awaited, u64)> {
        let age = |since_ns: u64| self.now_ns.saturating_sub(since_ns);
        let waits = self.rows[core].waits().map(move |(what, since_ns)| (what, age(since_ns)));
        waits.filter(|(_, age_ns)| *age_ns >= self.stuck_after_ns)
    }

    /// The cores that have to do something before this wait ends.
    fn waited_for(&self, what: Awaited) -> Cores {
        match what {
            Awaited::Lock(address) => self.lock(address).and_then(|lock| lock.holder).map_or(Cores::NONE, Cores::one),
            Awaited::Call(cores) | Awaited::Flush(cores) | Awaited::Boot(cores) | Awaited::Stop(cores) => cores,
            Awaited::Other(_) => Cores::NONE,
        }
    }

    fn lock(&self, address: usize) -> Option<&LockFacts<'_>> {
        self.locks.iter().find(|lock| lock.address == address)
    }

    /// The cores that wait for a lock, however short.
    fn waiters(&self, address: usize) -> Cores {
        let waits = |core: &usize| self.rows[*core].waits().any(|(what, _)| what == Awaited::Lock(address));
        (0..self.cores()).filter(waits).fold(Cores::NONE, |all, core| all.with(Cores::one(core)))
    }

    fn print_wait(&self, f: &mut core::fmt::Formatter<'_>, what: Awaited) -> core::fmt::Result {
        match what {
            Awaited::Lock(address) => self.print_lock(f, address),
            Awaited::Call(cores) => write!(f, "a call's answer by cores {cores}"),
            Awaited::Flush(cores) => write!(f, "a flush by cores {cores}"),
            Awaited::Boot(cores) => write!(f, "the start of cores {cores}"),
            Awaited::Stop(cores) => write!(f, "cores {cores} to stop"),
            Awaited::Other(number) => write!(f, "number {number} of the program"),
        }
    }

    fn print_lock(&self, f: &mut core::fmt::Formatter<'_>, address: usize) -> core::fmt::Result {
        let waiters = self.waiters(address);
        match self.lock(address) {
            Some(LockFacts { name, holder: Some(holder), .. }) => {
                write!(f, "lock {name}, held by core {holder}, waited for by {waiters}")
            }
            Some(LockFacts { name, holder: None, .. }) => {
                write!(f, "lock {name}, held by none, waited for by {waiters}")
            }
            None => write!(f, "the lock at {address:#x}, waited for by {waiters}"),
        }
    }

    fn print_core(&self, f: &mut core::fmt::Formatter<'_>, core: usize) -> core::fmt::Result {
        for (what, age_ns) in self.long_waits(core) {
            write!(f, "core {core} has waited {} us for ", age_ns / 1000)?;
            self.print_wait(f, what)?;
            writeln!(f)?;
        }
        Ok(())
    }

    fn print_events(&self, f: &mut core::fmt::Formatter<'_>, core: usize) -> core::fmt::Result {
        let mut result = Ok(());
        if let Some(trace) = self.trace {
            trace.for_each_event(core, &mut |at_ns, event| {
                let ago_us = self.now_ns.saturating_sub(at_ns) / 1000;
                result = result.and_then(|()| writeln!(f, "  core {core}, {ago_us} us ago: {event}"));
            });
        }
        result
    }
}

impl core::fmt::Display for Report<'_> {
    /// Of each stuck core its waits, then the circle if there is one, then the last events of stuck cores and of those
    /// that they wait for.
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let stuck = self.stuck();
        if stuck.is_empty() {
            return writeln!(f, "no core is stuck");
        }
        let mut concerned = stuck;
        for core in stuck {
            self.print_core(f, core)?;
            let waits = self.long_waits(core);
            concerned = waits.fold(concerned, |all, (what, _)| all.with(self.waited_for(what)));
        }
        let circle = self.circle();
        if !circle.is_empty() {
            writeln!(f, "cores {circle} wait for one another")?;
        }
        for core in concerned {
            self.print_events(f, core)?;
        }
        Ok(())
    }
}

impl core::fmt::Display for Event {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Event::Rang(core, causes) => write!(f, "rang at core {core} for {causes}"),
            Event::Coalesced(core, causes) => write!(f, "raised {causes} at core {core}, which had been rung"),
            Event::Polled(core, causes) => write!(f, "raised {causes} at core {core}, which polls"),
            Event::RangAgain(core) => write!(f, "rang once more at core {core}"),
            Event::Interrupted => f.write_str("was interrupted"),
            Event::Spurious => f.write_str("was interrupted for nothing"),
            Event::Took(causes) => write!(f, "took {causes}"),
            Event::Posted(core) => write!(f, "queued a call at core {core}"),
            Event::Accepted(core) => write!(f, "accepted a call of core {core}"),
            Event::Completed(core) => write!(f, "completed a call of core {core}"),
            Event::Withdrew(core) => write!(f, "withdrew a call at core {core}"),
            Event::Overran(core) => write!(f, "gave up a call that core {core} had accepted"),
            Event::Unanswered(core) => write!(f, "gave up on core {core}"),
            Event::Joined => f.write_str("came online"),
            Event::Left => f.write_str("went offline"),
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::smp::causes::Causes;
    use crate::smp::observe::Observer;
    use crate::smp::recorder::Recorder;
    use std::string::ToString;

    static ROWS: [Row; 4] = [const { Row::new() }; 4];
    static TRACE: Recorder<4, 2> = Recorder::new();

    #[test]
    fn lock_holder_waiters_circle_and_last_events_are_named() {
        let rows = ROWS.each_ref();
        let locks = [LockFacts { name: "kernel", address: 0x40, holder: Some(0) }];
        let report =
            |now_ns| Report { rows: &rows, locks: &locks, trace: Some(&TRACE), now_ns, stuck_after_ns: 1_000_000 };
        let _lock = ROWS[1].begin(Awaited::Lock(0x40), 1_000_000);
        let _call = ROWS[0].begin(Awaited::Call(Cores::one(1)), 2_000_000);
        let _young = ROWS[2].begin(Awaited::Lock(0x40), 9_500_000);
        TRACE.note(0, Event::Posted(1), || 2_000_000);
        TRACE.note(0, Event::Rang(1, Causes::CALL), || 2_001_000);
        assert_eq!(
            report(10_000_000).to_string(),
            "core 0 has waited 8000 us for a call's answer by cores 1\n\
             core 1 has waited 9000 us for lock kernel, held by core 0, waited for by 1, 2\n\
             cores 0, 1 wait for one another\n  \
             core 0, 8000 us ago: queued a call at core 1\n  \
             core 0, 7999 us ago: rang at core 1 for call\n"
        );
        assert_eq!(report(1_500_000).to_string(), "no core is stuck\n");
        assert_eq!(report(2_500_000).circle(), Cores::NONE, "core 1 waits, but core 0 not yet for long");
    }

    #[test]
    fn locks_without_a_name_go_by_their_address() {
        static ROW: Row = Row::new();
        let _lock = ROW.begin(Awaited::Lock(0x80), 0);
        let report = Report { rows: &[&ROW], locks: &[], trace: None, now_ns: 5_000, stuck_after_ns: 0 };
        assert_eq!(report.to_string(), "core 0 has waited 5 us for the lock at 0x80, waited for by 0\n");
    }
}

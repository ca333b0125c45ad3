//! What a core asks of others without a function: reschedule, tick, flush, stop.
//!
//! What you may rely on: reschedule and tick never wait and coalesce. Flush and stop wait for each core until a deadline
//! and name those that did not answer. Of two cores that stop the others at the same time, one wins and the other stops.

use crate::Error;
use crate::smp::Processor;
use crate::smp::call::wait::Asked;
use crate::smp::causes::Causes;
use crate::smp::cores::Cores;
use crate::smp::flush::Cache;
use crate::smp::interprocessor::{Handlers, Interprocessor};
use crate::smp::observe::{Event, Observer};
use crate::smp::waiting::Awaited;
use crate::sync::Ordering;

impl<P: Processor, H: Handlers, const N: usize, O: Observer> Interprocessor<P, H, N, O> {
    /// Has a core choose anew what it runs; at this core, the handler runs at once. Never waits. Gives whether the core is
    /// online.
    pub fn reschedule(&self, core: usize) -> bool {
        let is_online = self.online().contains(core);
        if is_online {
            self.raise(core, Causes::RESCHEDULE);
        }
        is_online
    }

    /// Passes this core's tick on to all others that are online. Never waits; a core that has not handled the last tick
    /// gets one for both.
    pub fn broadcast_tick(&self) {
        self.others().for_each(|core| self.raise(core, Causes::TICK));
    }

    /// Flushes a cache of each of `cores`, this one among them if it is named, at most until `deadline_ns`.
    ///
    /// # Errors
    /// [`Error::Unresponsive`] with the cores that did not answer as *silent*; they may still flush later.
    pub fn flush(&self, cache: Cache, cores: Cores, deadline_ns: u64) -> Result<(), Error> {
        let mask = P::mask();
        let core = P::core();
        let others = cores.without(Cores::one(core));
        let offline = others.without(self.online());
        let mut flush = Flush::begin(self, cache, others.without(offline));
        if cores.contains(core) {
            self.raise(core, cache.cause());
        }
        P::restore(mask);
        if !flush.open.is_empty() {
            self.wait(Awaited::Flush(flush.open), deadline_ns, &mut flush);
        }
        let (silent, offline) = (flush.open, offline.with(flush.offline));
        silent.for_each(|core| self.note(P::core(), Event::Unanswered(core)));
        answer(silent, offline)
    }

    /// Stops all other cores that are online, at most until `deadline_ns`; what they were doing stays undone.
    ///
    /// # Errors
    /// [`Error::Unresponsive`] with the cores that did not stop as *silent*; they stop when they next look.
    /// [`Error::Locked`] if another core is stopping all others and this one has not been stopped by the deadline.
    pub fn stop_others(&self, deadline_ns: u64) -> Result<(), Error> {
        let own = P::core() as u32 + 1;
        let first = self.stopper.compare_exchange(0, own, Ordering::AcqRel, Ordering::Acquire);
        if first.is_err_and(|stopper| stopper != own) {
            return self.await_stop(deadline_ns);
        }
        let mut stop = Stop { all: self, open: self.others() };
        stop.open.for_each(|core| self.raise(core, Causes::STOP));
        self.wait(Awaited::Stop(stop.open), deadline_ns, &mut stop);
        self.stopper.store(0, Ordering::Release);
        stop.open.for_each(|core| self.note(P::core(), Event::Unanswered(core)));
        answer(stop.open, Cores::NONE)
    }

    /// Serves until another core's stop arrives, which does not return on a target.
    fn await_stop(&self, deadline_ns: u64) -> Result<(), Error> {
        let own = Cores::one(P::core());
        let mut stop = Stop { all: self, open: own };
        self.wait(Awaited::Stop(own), deadline_ns, &mut stop);
        Err(Error::Locked)
    }

    pub(in crate::smp) fn ring_again(&self, core: usize, target: usize) {
        P::ring(target);
        self.note(core, Event::RangAgain(target));
    }
}

fn answer(silent: Cores, offline: Cores) -> Result<(), Error> {
    match silent.with(offline).is_empty() {
        true => Ok(()),
        false => Err(Error::Unresponsive { silent, running: Cores::NONE, offline }),
    }
}

/// Flushes under way.
struct Flush<'a, P, H, const N: usize, O> {
    all: &'a Interprocessor<P, H, N, O>,
    cache: Cache,
    /// Number of the request at each core.
    numbers: [u32; N],
    open: Cores,
    offline: Cores,
}

impl<'a, P: Processor, H: Handlers, const N: usize, O: Observer> Flush<'a, P, H, N, O> {
    fn begin(all: &'a Interprocessor<P, H, N, O>, cache: Cache, cores: Cores) -> Self {
        let mut flush = Flush { all, cache, numbers: [0; N], open: cores, offline: Cores::NONE };
        for core in cores {
            flush.numbers[core] = all.flushes[core][cache as usize].ask();
            all.raise(core, cache.cause());
        }
        flush
    }
}

impl<P: Processor, H: Handlers, const N: usize, O: Observer> Asked for Flush<'_, P, H, N, O> {
    fn advance(&mut self) -> bool {
        let online = self.all.online();
        for core in self.open {
            let own = Cores::one(core);
            if self.all.flushes[core][self.cache as usize].is_answered(self.numbers[core]) {
                self.open = self.open.without(own);
            } else if !online.contains(core) {
                self.open = self.open.without(own);
                self.offline = self.offline.with(own);
            }
        }
        self.open.is_empty()
    }

    fn ring_again(&self) {
        self.open.for_each(|core| self.all.ring_again(P::core(), core));
    }
}

/// Cores that are to go offline.
struct Stop<'a, P, H, const N: usize, O> {
    all: &'a Interprocessor<P, H, N, O>,
    open: Cores,
}

impl<P: Processor, H: Handlers, const N: usize, O: Observer> Asked for Stop<'_, P, H, N, O> {
    fn advance(&mut self) -> bool {
        self.open = self.open.within(self.all.online());
        self.open.is_empty()
    }

    fn ring_again(&self) {
        self.open.without(Cores::one(P::core())).for_each(|core| self.all.ring_again(P::core(), core));
    }
}

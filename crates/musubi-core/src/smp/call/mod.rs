//! Cross calls: run a function on one core, on many, on all others.
//!
//! What you may rely on: the function runs exactly once on each core that the result does not name as *silent* or
//! *offline*, with that core's interrupts masked. There are two acknowledgements, accepted and completed; the caller says
//! which it waits for, and by when. A caller that gives up withdraws the call where it was not accepted, so it does not
//! run later as a surprise. Calls may be made by tasks, by handlers, with interrupts masked, and by called functions; a
//! caller that waits serves the calls of others. A call to the own core runs at once.
//!
//! Most functions are short, and run wherever the target looks, also while it waits for a lock ([`Work::new`]): so a core
//! that holds a lock can call one that waits for it. A function that itself takes locks runs in the interrupt only
//! ([`Work::taking_locks`]).
//!
//! How it works: each call takes one of the core's [`SLOTS`] and a place in the queue of each target ([`crate::smp::queue`]).
//! If a slot's place at a target is still busy, because an earlier call was only waited for until accepted, the call is
//! queued there when it becomes free.
//!
//! What it does not do: keep the function's argument alive. It is a number; if it stands for an address, what lies there
//! must live until completion, also past an error that names cores as *running*. A `static` does.

mod ask;
pub mod causes;
pub mod flush;
pub mod interprocessor;
pub mod queue;
pub(in crate::smp) mod wait;

pub use causes::Causes;
pub use flush::Cache;
pub use interprocessor::{Handlers, Interprocessor};

use crate::Error;
use crate::smp::Processor;
use crate::smp::cores::Cores;
use crate::smp::observe::{Event, Observer};
use crate::smp::queue::{Context, Phase, SLOTS, Task};
use crate::smp::waiting::Awaited;
use crate::sync::Ordering;
use wait::Asked;

/// Which acknowledgement a caller waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    /// The core has taken the call and will run it.
    Accepted,
    /// The function has returned; the caller sees all that it wrote.
    Completed,
}

/// What is to run on another core.
#[derive(Clone, Copy, Debug)]
pub struct Work(pub(in crate::smp) Task);

impl Work {
    /// Runs `function(argument)` wherever the core next looks: in the interrupt, or while it waits for a lock or for
    /// another core. The function must not wait for a lock: the core may stand in that very lock's queue.
    pub const fn new(function: fn(usize), argument: usize) -> Self {
        Work(Task { function, argument, context: Context::Anywhere, posted_ns: 0 })
    }

    /// Runs `function(argument)` in the interrupt, which comes as soon as the core has interrupts open. The function may
    /// wait for locks. A caller that holds one of these, and waits, waits in vain until its deadline.
    pub const fn taking_locks(function: fn(usize), argument: usize) -> Self {
        Work(Task { function, argument, context: Context::Interrupt, posted_ns: 0 })
    }
}

impl<P: Processor, H: Handlers, const N: usize, O: Observer> Interprocessor<P, H, N, O> {
    /// Runs `work` on a core and waits for the acknowledgement, at most until `deadline_ns` of
    /// [`Processor::now_ns`].
    ///
    /// # Errors
    /// [`Error::Unresponsive`] if the core did not answer in time or is offline; [`Error::TooDeep`] if this core has
    /// [`SLOTS`] calls under way.
    pub fn call_one(&self, core: usize, work: Work, until: Until, deadline_ns: u64) -> Result<(), Error> {
        let mask = P::mask();
        // Before anything is made of sets: a call to the own core should cost what it costs on a machine with one.
        if core == P::core() {
            (work.0.function)(work.0.argument);
            P::restore(mask);
            return Ok(());
        }
        self.call_masked(mask, Cores::one(core), work, until, deadline_ns)
    }

    /// [`Interprocessor::call_one`] on all other cores that are online.
    ///
    /// # Errors
    /// As there.
    pub fn call_others(&self, work: Work, until: Until, deadline_ns: u64) -> Result<(), Error> {
        self.call_many(self.others(), work, until, deadline_ns)
    }

    /// [`Interprocessor::call_one`] on each of `cores`, at the same time; this core may be among them and then runs the
    /// function while the others do.
    ///
    /// # Errors
    /// As there; the cores that the error does not name have answered.
    pub fn call_many(&self, cores: Cores, work: Work, until: Until, deadline_ns: u64) -> Result<(), Error> {
        self.call_masked(P::mask(), cores, work, until, deadline_ns)
    }

    /// [`Interprocessor::call_many`] with interrupts masked; `mask` is what was before. They stay masked until the call has
    /// its slot and is queued, so that a scheduler cannot move the caller in between.
    fn call_masked(
        &self,
        mask: P::Mask,
        cores: Cores,
        work: Work,
        until: Until,
        deadline_ns: u64,
    ) -> Result<(), Error> {
        let caller = P::core();
        let others = cores.without(Cores::one(caller));
        if others.is_empty() {
            if !cores.is_empty() {
                (work.0.function)(work.0.argument);
            }
            P::restore(mask);
            return Ok(());
        }
        let task = Task { posted_ns: self.stamp(), ..work.0 };
        let call = self.begin(caller, others, task, until);
        if call.is_ok() && cores.contains(caller) {
            (task.function)(task.argument);
        }
        P::restore(mask);
        let mut call = call?;
        if task.context == Context::Interrupt {
            self.observer.awaits::<P>(cores.without(Cores::one(caller)));
        }
        if !call.open().is_empty() {
            self.wait(Awaited::Call(call.open()), deadline_ns, &mut call);
        }
        call.settle()
    }

    /// The other cores that are online.
    pub fn others(&self) -> Cores {
        self.online().without(Cores::one(P::core()))
    }

    /// Takes a slot and queues the call wherever the place is free. With interrupts masked.
    fn begin(&self, caller: usize, targets: Cores, task: Task, until: Until) -> Result<Call<'_, P, H, N, O>, Error> {
        let slot = self.take_slot(caller, targets).ok_or(Error::TooDeep)?;
        let [posted, silent, running, offline] = [Cores::NONE; 4];
        let all = self;
        let mut call = Call { all, caller, slot, task, until, unposted: targets, posted, silent, running, offline };
        call.advance();
        Ok(call)
    }

    /// A slot that no call of this core uses, best one whose places are free. Only contexts of this core set bits here,
    /// with interrupts masked.
    fn take_slot(&self, caller: usize, targets: Cores) -> Option<usize> {
        let used = self.slots[caller].load(Ordering::Acquire);
        let unused = || (0..SLOTS).filter(|slot| used & 1 << slot == 0);
        let is_clear =
            |slot: &usize| targets.within(Cores::first(N)).all(|t| self.queues[t].phase(caller, *slot) == Phase::Free);
        let slot = unused().find(is_clear).or_else(|| unused().next())?;
        self.slots[caller].fetch_or(1 << slot, Ordering::AcqRel);
        Some(slot)
    }
}

/// A call under way.
struct Call<'a, P, H, const N: usize, O> {
    all: &'a Interprocessor<P, H, N, O>,
    caller: usize,
    slot: usize,
    task: Task,
    until: Until,
    /// Not queued yet.
    unposted: Cores,
    /// Queued, not answered.
    posted: Cores,
    /// Withdrawn at the deadline.
    silent: Cores,
    /// Accepted, but did not complete.
    running: Cores,
    /// Not online.
    offline: Cores,
}

impl<P: Processor, H: Handlers, const N: usize, O: Observer> Call<'_, P, H, N, O> {
    /// Cores that have not answered.
    fn open(&self) -> Cores {
        self.unposted.with(self.posted)
    }

    fn post(&mut self) {
        let online = self.all.online();
        self.offline = self.offline.with(self.unposted.without(online));
        self.unposted = self.unposted.within(online);
        for target in self.unposted {
            if self.all.queues[target].post(self.caller, self.slot, self.task) {
                self.unposted = self.unposted.without(Cores::one(target));
                self.posted = self.posted.with(Cores::one(target));
                self.all.note(self.caller, Event::Posted(target));
                self.all.raise(target, Causes::CALL);
            }
        }
    }

    fn look(&mut self) {
        for target in self.posted {
            match self.phase(target) {
                Phase::Free => self.answered(target),
                Phase::Accepted if self.until == Until::Accepted => self.answered(target),
                _ if !self.all.online().contains(target) => self.lost(target),
                _ => {}
            }
        }
    }

    fn phase(&self, target: usize) -> Phase {
        self.all.queues[target].phase(self.caller, self.slot)
    }

    fn answered(&mut self, target: usize) {
        self.posted = self.posted.without(Cores::one(target));
    }

    /// The target has gone offline; it may have answered before that.
    fn lost(&mut self, target: usize) {
        if self.all.queues[target].withdraw(self.caller, self.slot) {
            self.offline = self.offline.with(Cores::one(target));
        } else if self.phase(target) != Phase::Free && self.until == Until::Completed {
            self.running = self.running.with(Cores::one(target));
        }
        self.answered(target);
    }

    /// Withdraws what was not accepted, and says who did not answer.
    fn settle(mut self) -> Result<(), Error> {
        self.silent = self.unposted;
        for target in self.posted {
            self.give_up(target);
        }
        let (silent, running, offline) = (self.silent, self.running, self.offline);
        match silent.with(running).with(offline).is_empty() {
            true => Ok(()),
            false => Err(Error::Unresponsive { silent, running, offline }),
        }
    }

    fn give_up(&mut self, target: usize) {
        if self.all.queues[target].withdraw(self.caller, self.slot) {
            self.silent = self.silent.with(Cores::one(target));
            self.all.note(self.caller, Event::Withdrew(target));
        } else if self.phase(target) == Phase::Accepted && self.until == Until::Completed {
            self.running = self.running.with(Cores::one(target));
            self.all.note(self.caller, Event::Overran(target));
        }
    }
}

impl<P, H, const N: usize, O> Drop for Call<'_, P, H, N, O> {
    /// Gives the slot back; the caller may have moved to another core meanwhile.
    fn drop(&mut self) {
        self.all.slots[self.caller].fetch_and(!(1 << self.slot), Ordering::AcqRel);
    }
}

impl<P: Processor, H: Handlers, const N: usize, O: Observer> Asked for Call<'_, P, H, N, O> {
    fn advance(&mut self) -> bool {
        self.post();
        self.look();
        self.open().is_empty()
    }

    fn ring_again(&self) {
        for target in self.posted {
            self.all.ring_again(self.caller, target);
        }
    }
}

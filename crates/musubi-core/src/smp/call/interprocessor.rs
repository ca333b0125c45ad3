//! The one static structure through which the cores of a domain interrupt, call, flush and stop one another.
//!
//! What you may rely on: one hardware interrupt number serves all causes. Every wait has a deadline, and the error names
//! the cores that did not answer ([`crate::Error::Unresponsive`]). While a core waits it serves what others ask of it, so
//! cores that wait for one another go on, with interrupts masked too. Nothing here allocates.
//!
//! How it works: a port calls [`Interprocessor::on_interrupt`] for the interrupt and [`Interprocessor::serve`] from
//! [`Processor::serve`]. Both take the causes, do the short ones first (flushes, which may hold up a core that holds a
//! lock), then run queued calls one at a time. Calls are in [`crate::smp::call`], flushes and stops in `crate::smp::ask`.
//!
//! What it does not do: interrupt a core that is offline, or one that masks interrupts and never serves; that is what
//! deadlines are for.

use core::marker::PhantomData;

use crate::smp::Processor;
use crate::smp::causes::{Causes, Inbox, Raised};
use crate::smp::cores::Cores;
use crate::smp::flush::{CACHES, Cache, Requests};
use crate::smp::observe::{Event, Observer, Silent, Stage};
use crate::smp::queue::{Context, Queue, SLOTS};
use crate::sync::{AtomicU32, Ordering, array, constructor};

/// What an architecture or a kernel does for each cause. All run with interrupts masked, also from inside waiting loops
/// ([`Processor::serve`]), and must not wait.
pub trait Handlers: 'static {
    /// Notes that the kernel should choose anew what runs here, when the core is free to.
    fn reschedule();
    /// The core that broadcasts the tick has ticked.
    fn tick();
    /// Flushes this core's instruction cache.
    fn flush_instructions();
    /// Writes this core's data cache back and drops it.
    fn flush_data();
    /// Flushes this core's address translations.
    fn flush_translations();
    /// Stops this core for good; it has gone offline already. On a target this does not return.
    fn stop();
    /// A cause of the program's own.
    fn program(_number: u32) {}
}

/// All that `N` cores share to interrupt one another; `N` is [`Processor::CORES`].
#[derive(Debug)]
pub struct Interprocessor<P, H, const N: usize, O = Silent> {
    /// What is wanted of each core.
    inboxes: [Inbox; N],
    /// Calls to each core.
    pub(in crate::smp) queues: [Queue<N>; N],
    /// Flushes of each core, by kind.
    pub(in crate::smp) flushes: [[Requests; CACHES]; N],
    /// Slots in use by each core's callers, a bit each. Writer: that core's contexts.
    pub(in crate::smp) slots: [AtomicU32; N],
    /// Cores that serve. Writers: each core its own bit.
    online: AtomicU32,
    /// Number of the core that stops the others, plus one. Writer: that core.
    pub(in crate::smp) stopper: AtomicU32,
    pub(in crate::smp) observer: O,
    kind: PhantomData<fn() -> (P, H)>,
}

impl<P: Processor, H: Handlers, const N: usize> Interprocessor<P, H, N, Silent> {
    constructor! {
        /// All cores are offline; each calls [`Interprocessor::join`]. Nobody observes.
        #[allow(clippy::new_without_default, reason = "it is a static")]
        pub fn new() -> Self {
            Self::observed(Silent)
        }
    }
}

impl<P: Processor, H: Handlers, const N: usize, O: Observer> Interprocessor<P, H, N, O> {
    const CORES_FIT: () = assert!(N == P::CORES && N >= 1 && N <= crate::smp::CORES_MAX, "N is the processor's CORES");

    constructor! {
        /// [`Interprocessor::new`] with an observer.
        pub fn observed(observer: O) -> Self {
            Self {
                inboxes: array![Inbox::new(); N],
                queues: array![Queue::new(); N],
                flushes: array![array![Requests::new(); CACHES]; N],
                slots: array![AtomicU32::new(0); N],
                online: AtomicU32::new(0),
                stopper: AtomicU32::new(0),
                observer,
                kind: PhantomData,
            }
        }
    }

    /// The observer.
    pub fn observer(&self) -> &O {
        &self.observer
    }

    /// The cores that serve.
    pub fn online(&self) -> Cores {
        Cores::from_mask(self.online.load(Ordering::Relaxed))
    }

    /// This core goes online: from here on others may ask things of it. Its handlers must be in place. What an earlier
    /// life of this core left behind is cleared: calls that it had accepted, slots of calls that it was making.
    pub fn join(&self) {
        let () = Self::CORES_FIT;
        let core = P::core();
        let before = P::mask();
        let _ = self.inboxes[core].take();
        self.inboxes[core].end_polling(false);
        self.queues[core].forget_accepted();
        self.flushes[core].iter().for_each(Requests::forget);
        self.forget_own_calls(core);
        self.online.fetch_or(Cores::one(core).mask(), Ordering::AcqRel);
        self.note(core, Event::Joined);
        P::restore(before);
    }

    /// This core goes offline, after it has served what was asked so far. Whoever waits for it learns of it at once.
    pub fn leave(&self) {
        let core = P::core();
        self.online.fetch_and(!Cores::one(core).mask(), Ordering::AcqRel);
        self.serve();
        self.note(core, Event::Left);
        P::signal();
    }

    fn forget_own_calls(&self, core: usize) {
        for queue in &self.queues {
            (0..SLOTS).for_each(|slot| _ = queue.withdraw(core, slot));
        }
        self.slots[core].store(0, Ordering::Relaxed);
    }

    /// The interrupt has come, and the port has acknowledged it in hardware. Serves everything, calls that take locks too;
    /// not to be called while this core waits for a lock.
    pub fn on_interrupt(&self) {
        let core = P::core();
        self.note(core, Event::Interrupted);
        let before = P::mask();
        match self.is_quiet(core) && self.queues[core].is_quiet(Context::Interrupt) {
            true => self.note(core, Event::Spurious),
            false if self.serve_now() => self.sweep(core, Context::Interrupt),
            false => {}
        }
        P::restore(before);
    }

    /// Whether there is nothing for a waiting loop of this core to serve, as of now.
    #[inline]
    pub(in crate::smp) fn is_quiet(&self, core: usize) -> bool {
        self.inboxes[core].is_quiet() && self.queues[core].is_quiet(Context::Anywhere)
    }

    /// Does what others ask of this core and what may be done anywhere, at most one sweep over its calls. For waiting
    /// loops; two loads if there is nothing.
    #[inline]
    pub fn serve(&self) {
        if N > 1 && !self.is_quiet(P::core()) {
            self.serve_now();
        }
    }

    /// Masked as a whole, so that a scheduler cannot put aside a call that was taken out of the queue but not yet run.
    /// Gives whether the core goes on.
    #[cold]
    #[inline(never)]
    fn serve_now(&self) -> bool {
        let before = P::mask();
        let core = P::core();
        let causes = self.inboxes[core].take();
        let goes_on = self.handle(core, causes);
        if goes_on {
            self.sweep(core, Context::Anywhere);
        }
        P::restore(before);
        goes_on
    }

    fn sweep(&self, core: usize, context: Context) {
        self.queues[core].sweep(context, |caller, slot| self.run(core, context, caller, slot));
    }

    /// Handles causes, with interrupts masked; gives whether the core goes on. Flushes come first, because a core that
    /// holds a lock may wait for them, and a call may wait for that lock.
    fn handle(&self, core: usize, causes: Causes) -> bool {
        if causes.is_empty() {
            return true;
        }
        self.note(core, Event::Took(causes));
        self.flush_here(core, causes);
        if causes.contains(Causes::STOP) {
            self.stop_here(core);
            return false;
        }
        if causes.contains(Causes::TICK) {
            H::tick();
        }
        if causes.contains(Causes::RESCHEDULE) {
            H::reschedule();
        }
        causes.of_program().for_each(|number| H::program(number as u32));
        true
    }

    fn flush_here(&self, core: usize, causes: Causes) {
        for cache in Cache::ALL.into_iter().filter(|cache| causes.contains(cache.cause())) {
            self.flushes[core][cache as usize].answer(|| flush::<H>(cache));
            P::signal();
        }
    }

    fn stop_here(&self, core: usize) {
        self.online.fetch_and(!Cores::one(core).mask(), Ordering::AcqRel);
        self.note(core, Event::Left);
        P::signal();
        H::stop();
    }

    /// Runs one call, with interrupts masked.
    fn run(&self, core: usize, context: Context, caller: usize, slot: usize) {
        let Some(task) = self.queues[core].accept(context, caller, slot) else { return };
        P::signal();
        self.note(core, Event::Accepted(caller));
        self.measure(core, Stage::ToAccepted, task.posted_ns);
        (task.function)(task.argument);
        self.note(core, Event::Completed(caller));
        self.measure(core, Stage::ToCompleted, task.posted_ns);
        self.queues[core].complete(caller, slot);
        P::signal();
    }

    /// Wants something of a core; what the cause is about must be written. Never waits. Says nothing about whether the
    /// core is online, and does nothing if the program has no such core. At the core itself the handlers run at once.
    pub fn raise(&self, target: usize, causes: Causes) {
        let before = P::mask();
        let core = P::core();
        match self.inboxes.get(target) {
            Some(_) if target == core => _ = self.handle(core, causes),
            Some(inbox) => self.raise_at_other(inbox, core, target, causes),
            None => {}
        }
        P::restore(before);
    }

    fn raise_at_other(&self, inbox: &Inbox, core: usize, target: usize, causes: Causes) {
        match inbox.raise(causes) {
            Raised::Ring => {
                P::ring(target);
                self.note(core, Event::Rang(target, causes));
            }
            Raised::Polling => {
                P::signal();
                self.note(core, Event::Polled(target, causes));
            }
            Raised::Pending => self.note(core, Event::Coalesced(target, causes)),
        }
    }

    /// Begins a stretch in which this core looks by itself, so that nobody rings at it; `look` is called at most `times`
    /// times, until it gives true, with interrupts masked. Gives its last answer. For idle loops and waits.
    pub fn poll(&self, times: u32, mut look: impl FnMut() -> bool) -> bool {
        let mask = P::mask();
        let core = P::core();
        let before = self.inboxes[core].begin_polling();
        let mut found = look();
        for _ in 0..times {
            if found {
                break;
            }
            P::serve();
            P::relax();
            found = look();
        }
        self.inboxes[core].end_polling(before);
        // What came while the flag still stood has not been rung for. What may not run here has to come as an interrupt.
        P::serve();
        if N > 1 && !self.queues[core].is_quiet(Context::Interrupt) {
            P::ring(core);
        }
        P::restore(mask);
        found
    }

    #[inline(always)]
    pub(in crate::smp) fn note(&self, core: usize, event: Event) {
        self.observer.note(core, event, P::now_ns);
    }

    #[inline(always)]
    fn measure(&self, core: usize, stage: Stage, posted_ns: u32) {
        if O::ON {
            self.observer.measure(core, stage, (P::now_ns() as u32).wrapping_sub(posted_ns));
        }
    }

    /// Low half of the time, for a place; nothing is read if nobody observes.
    #[inline(always)]
    pub(in crate::smp) fn stamp(&self) -> u32 {
        if O::ON { P::now_ns() as u32 } else { 0 }
    }
}

fn flush<H: Handlers>(cache: Cache) {
    match cache {
        Cache::Instructions => H::flush_instructions(),
        Cache::Data => H::flush_data(),
        Cache::Translations => H::flush_translations(),
    }
}

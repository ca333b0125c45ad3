//! Having other cores run a part of a case, and resting until they are done.
//!
//! How it works: each secondary core joins the calls and sleeps until it is given a body, in its place of
//! [`Work`]; the reschedule cause wakes it. It clears the place when the body has returned and wakes the boot core.

use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, Ordering};

use musubi_core::smp::{Cores, Processor};
use musubi_metal::board::Board;
use musubi_metal::{Machine, arch};

use crate::report::{Failure, ensure};
use crate::{CORES, PATIENCE_NS, Suite, Target};

/// Longest sleep between two looks; every wake-up that matters comes by interrupt.
const REST_NS_MAX: u64 = 50_000_000;

/// A part of a case: the suite and the number of the core.
pub(crate) type Body<P> = fn(&'static Suite<P>, usize);

/// What each core is to run: a [`Body`], null for nothing. Writers: the boot core from null, the core to null.
#[derive(Debug)]
pub(crate) struct Work([AtomicPtr<()>; CORES]);

impl Work {
    pub const fn new() -> Self {
        Self([const { AtomicPtr::new(null_mut()) }; CORES])
    }
}

/// Whether something holds for each core of a set.
pub(crate) fn each(cores: Cores, holds: impl FnMut(usize) -> bool) -> bool {
    let mut cores = cores;
    cores.all(holds)
}

impl<P: Target> Suite<P> {
    /// Runs `body` on each of `cores` at the same time, the boot core among them if it is named, and rests until all are
    /// done.
    pub fn run_on(&'static self, cores: Cores, body: Body<P>) -> Result<(), Failure> {
        self.begin_on(cores.without(Cores::one(0)), body);
        if cores.contains(0) {
            body(self, 0);
        }
        self.finish(cores)
    }

    /// Gives `body` to each of `cores`, which are not the boot core, and does not wait.
    pub fn begin_on(&'static self, cores: Cores, body: Body<P>) {
        for core in cores {
            self.work.0[core].store(body as *mut (), Ordering::Release);
            let _ = self.calls.reschedule(core);
        }
    }

    /// Rests until none of `cores` runs anything any more.
    pub fn finish(&'static self, cores: Cores) -> Result<(), Failure> {
        let secondaries = cores.without(Cores::one(0));
        let is_idle = |core: usize| self.work.0[core].load(Ordering::Acquire).is_null();
        let done = self.rest_until(PATIENCE_NS, || each(secondaries, is_idle));
        ensure!(done, "every core ends its part in time");
        Ok(())
    }

    /// Sleeps, and handles interrupts, until `is_done` or until so long has passed; gives whether it is done.
    pub fn rest_until(&self, at_most_ns: u64, mut is_done: impl FnMut() -> bool) -> bool {
        let until_ns = Machine::<P>::now_ns() + at_most_ns;
        loop {
            let before = arch::mask();
            let done = is_done();
            let now_ns = Machine::<P>::now_ns();
            if !done && now_ns < until_ns {
                P::Board::set_alarm(until_ns.min(now_ns + REST_NS_MAX));
                arch::wait_for_interrupt();
            }
            arch::restore(before);
            if done || now_ns >= until_ns {
                return done;
            }
        }
    }

    /// Lets this core wait actively for so long, serving nothing but interrupts.
    pub fn spend_ns(&self, ns: u64) {
        let until_ns = Machine::<P>::now_ns() + ns;
        while Machine::<P>::now_ns() < until_ns {
            arch::relax();
        }
    }
}

/// The life of a secondary core.
pub fn idle<P: Target>() -> ! {
    let suite = P::suite();
    let core = Machine::<P>::core();
    suite.come_online(core);
    suite.calls.join();
    arch::unmask();
    let _ = suite.calls.reschedule(0);
    loop {
        let before = arch::mask();
        let given = suite.work.0[core].load(Ordering::Acquire);
        if given.is_null() {
            arch::wait_for_interrupt();
        }
        arch::restore(before);
        if !given.is_null() {
            // SAFETY: `begin_on` stored a function of this type, for the same target.
            let body = unsafe { core::mem::transmute::<*mut (), Body<P>>(given) };
            body(suite, core);
            suite.work.0[core].store(null_mut(), Ordering::Release);
            let _ = suite.calls.reschedule(0);
        }
    }
}

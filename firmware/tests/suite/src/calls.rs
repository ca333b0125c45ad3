//! Cross calls: both acknowledgements, from tasks, handlers, called functions and with interrupts masked; and cores that
//! do not answer.

use core::sync::atomic::Ordering;

use musubi_core::Error;
use musubi_core::smp::{Cores, Processor, Until, Work};
use musubi_metal::board::Board;
use musubi_metal::dispatch::{self, Unmasked};
use musubi_metal::{Machine, arch};

use crate::report::{Case, Failure, ensure, ensure_eq};
use crate::{CORES, PATIENCE_NS, Suite, Target};

/// Time after which a core counts as silent in these cases.
const SHORT_NS: u64 = 30_000_000;
/// Count of calls that ran although they should not.
const SURPRISES: usize = CORES;
/// Count that lets a held core go on.
const GO: usize = CORES + 1;
/// Count of cores that are where the case wants them.
const READY: usize = CORES + 2;
/// Count of what went wrong inside a call.
const FAULTS: usize = CORES + 3;
/// The value that migrates.
const VALUE: usize = CORES + 4;
/// Rounds of the case in which all cores call each other with interrupts masked.
const ROUNDS: usize = 50;

pub fn cases<P: Target>() -> [Case<P>; 12] {
    crate::cases![
        a_call_to_the_own_core_runs_at_once on 1,
        a_missing_core_is_offline on 1,
        a_completed_call_has_run on 2,
        an_accepted_call_runs on 2,
        many_and_all_others_are_called on 2,
        work_migrates_over_all_cores on 1,
        a_handler_may_call on 2 if interrupted,
        a_called_function_may_call on 2,
        a_handler_that_was_interrupted_may_call on 2 if interrupted,
        all_call_each_other_with_interrupts_masked on 2,
        a_silent_core_is_named_and_not_surprised_later on 2,
        a_call_that_takes_too_long_is_named on 2,
    ]
}

fn count_here<P: Target>(_: usize) {
    P::suite().count(Machine::<P>::core());
}

/// Names cores in one of the three parts of the error.
fn unanswered(silent: Cores, running: Cores, offline: Cores) -> Result<(), Error> {
    Err(Error::Unresponsive { silent, running, offline })
}

fn a_call_to_the_own_core_runs_at_once<P: Target>(s: &'static Suite<P>) -> Result<(), Failure> {
    for until in [Until::Accepted, Until::Completed] {
        ensure!(s.calls.call_one(0, Work::new(count_here::<P>, 0), until, s.patience()).is_ok(), "it is taken");
    }
    ensure_eq!(s.counted(0), 2, "it has run when the call returns");
    Ok(())
}

fn a_missing_core_is_offline<P: Target>(s: &'static Suite<P>) -> Result<(), Failure> {
    let missing = Cores::one(CORES - 1);
    let result = s.calls.call_many(missing, Work::new(count_here::<P>, 0), Until::Completed, s.patience());
    ensure!(result == unanswered(Cores::NONE, Cores::NONE, missing), "it is named as offline, at once");
    Ok(())
}

fn a_completed_call_has_run<P: Target>(s: &'static Suite<P>) -> Result<(), Failure> {
    for round in 1..=200 {
        for core in s.calls.others() {
            let work = Work::new(count_here::<P>, 0);
            ensure!(s.calls.call_one(core, work, Until::Completed, s.patience()).is_ok(), "the core answers");
            ensure_eq!(s.counted(core), round, "the caller sees what the function wrote");
        }
    }
    Ok(())
}

fn an_accepted_call_runs<P: Target>(s: &'static Suite<P>) -> Result<(), Failure> {
    for _ in 0..200 {
        let work = Work::new(count_here::<P>, 0);
        ensure!(s.calls.call_one(1, work, Until::Accepted, s.patience()).is_ok(), "the core accepts");
    }
    ensure!(s.rest_until(PATIENCE_NS, || s.counted(1) == 200), "each accepted call runs once");
    Ok(())
}

fn many_and_all_others_are_called<P: Target>(s: &'static Suite<P>) -> Result<(), Failure> {
    let online = s.calls.online();
    for _ in 0..50 {
        ensure!(
            s.calls.call_others(Work::new(count_here::<P>, 0), Until::Completed, s.patience()).is_ok(),
            "all answer"
        );
        let work = Work::new(count_here::<P>, 0);
        ensure!(s.calls.call_many(online, work, Until::Completed, s.patience()).is_ok(), "many answer");
    }
    for core in online {
        let wanted = if core == 0 { 50 } else { 100 };
        ensure_eq!(s.counted(core), wanted, "each ran as often as it was called");
    }
    Ok(())
}

/// Adds this core's number to the value, which only one core has at a time.
fn carry_on<P: Target>(_: usize) {
    let value = &P::suite().counts[VALUE];
    value.store(value.load(Ordering::Relaxed) * 3 + Machine::<P>::core(), Ordering::Relaxed);
}

fn work_migrates_over_all_cores<P: Target>(s: &'static Suite<P>) -> Result<(), Failure> {
    let mut wanted = 0usize;
    for _ in 0..100 {
        for core in s.calls.online() {
            let work = Work::taking_locks(carry_on::<P>, 0);
            ensure!(s.calls.call_one(core, work, Until::Completed, s.patience()).is_ok(), "each core takes it");
            wanted = wanted.wrapping_mul(3).wrapping_add(core);
            let found = s.counts[VALUE].load(Ordering::Relaxed);
            ensure_eq!(found, wanted, "the value is what the cores before made of it");
            if wanted > usize::MAX / 8 {
                s.counts[VALUE].store(0, Ordering::Relaxed);
                wanted = 0;
            }
        }
    }
    Ok(())
}

/// The alarm of the boot core: calls all others from inside the handler.
fn call_from_handler<P: Target>() {
    let s = P::suite();
    let called = s.calls.call_others(Work::new(count_here::<P>, 0), Until::Completed, s.patience());
    if Machine::<P>::level() != 1 || called.is_err() {
        s.count(FAULTS);
    }
    s.count(READY);
}

fn a_handler_may_call<P: Target>(s: &'static Suite<P>) -> Result<(), Failure> {
    dispatch::ALARM.set(Some(call_from_handler::<P>));
    for alarm in 1..=20 {
        P::Board::set_alarm(0);
        let until_ns = s.patience();
        while s.counted(READY) < alarm && Machine::<P>::now_ns() < until_ns {
            Machine::<P>::relax();
        }
        ensure_eq!(s.counted(READY), alarm, "the handler comes back");
    }
    ensure_eq!(s.counted(FAULTS), 0, "each call from the handler is completed");
    for core in s.calls.others() {
        ensure_eq!(s.counted(core), 20, "each core ran each call once");
    }
    Ok(())
}

/// Calls the next core, and so on, until the given number of calls is nested.
fn call_on<P: Target>(depth: usize) {
    let s = P::suite();
    s.count(Machine::<P>::core());
    if depth > 0 {
        let mut next = s.calls.others();
        let this = Machine::<P>::core();
        let target = next.find(|&core| core > this).or_else(|| s.calls.others().next());
        let work = Work::new(call_on::<P>, depth - 1);
        let called = target.map(|core| s.calls.call_one(core, work, Until::Completed, s.patience()));
        if called != Some(Ok(())) {
            s.count(FAULTS);
        }
    }
}

fn a_called_function_may_call<P: Target>(s: &'static Suite<P>) -> Result<(), Failure> {
    for depth in 0..4 {
        let work = Work::new(call_on::<P>, depth);
        ensure!(s.calls.call_one(1, work, Until::Completed, s.patience()).is_ok(), "the chain of calls comes back");
    }
    ensure_eq!(s.counted(FAULTS), 0, "each call of the chain is completed");
    let sum = (0..CORES).map(|core| s.counted(core)).sum::<usize>();
    ensure_eq!(sum, 1 + 2 + 3 + 4, "each ran once");
    Ok(())
}

/// The alarm of the boot core: lets itself be interrupted by the next alarm, and both call.
fn nest<P: Target>() {
    let s = P::suite();
    if Machine::<P>::level() == 1 {
        match Unmasked::in_handler() {
            None => drop(s.count(FAULTS)),
            Some(_unmasked) => {
                P::Board::set_alarm(0);
                let until_ns = s.patience();
                while s.counted(GO) == 0 && Machine::<P>::now_ns() < until_ns {
                    Machine::<P>::relax();
                }
            }
        }
    } else if Unmasked::in_handler().is_some() {
        s.count(FAULTS);
    }
    let called = s.calls.call_others(Work::new(count_here::<P>, 0), Until::Completed, s.patience());
    if called.is_err() {
        s.count(FAULTS);
    }
    s.count(GO);
}

fn a_handler_that_was_interrupted_may_call<P: Target>(s: &'static Suite<P>) -> Result<(), Failure> {
    dispatch::ALARM.set(Some(nest::<P>));
    P::Board::set_alarm(0);
    let until_ns = s.patience();
    while s.counted(GO) < 2 && Machine::<P>::now_ns() < until_ns {
        Machine::<P>::relax();
    }
    ensure_eq!(s.counted(GO), 2, "both handlers come back");
    ensure_eq!(s.counted(FAULTS), 0, "two levels nest, not three, and both call");
    ensure_eq!(s.counted(1), 2, "each call ran once");
    Ok(())
}

/// Calls all others with interrupts masked, while they do the same.
fn call_masked<P: Target>(s: &'static Suite<P>, _: usize) {
    let before = Machine::<P>::mask();
    for _ in 0..ROUNDS {
        if s.calls.call_others(Work::new(count_here::<P>, 0), Until::Completed, s.patience()).is_err() {
            s.count(FAULTS);
        }
    }
    // Others may still wait for this core; it opens only when all have come this far.
    s.count(READY);
    let all = s.calls.online().count() as usize;
    let until_ns = s.patience();
    s.calls.poll(u32::MAX, || s.counted(READY) >= all || Machine::<P>::now_ns() > until_ns);
    Machine::<P>::restore(before);
}

fn all_call_each_other_with_interrupts_masked<P: Target>(s: &'static Suite<P>) -> Result<(), Failure> {
    let online = s.calls.online();
    s.run_on(online, call_masked)?;
    ensure_eq!(s.counted(FAULTS), 0, "no two cores wait for each other");
    for core in online {
        let wanted = ROUNDS * (online.count() as usize - 1);
        ensure_eq!(s.counted(core), wanted, "each ran each call of each other once");
    }
    Ok(())
}

/// Masks interrupts and serves nothing until it is let go.
fn be_silent<P: Target>(s: &'static Suite<P>, _: usize) {
    let before = Machine::<P>::mask();
    s.count(READY);
    let until_ns = s.patience();
    while s.counted(GO) == 0 && Machine::<P>::now_ns() < until_ns {
        Machine::<P>::relax();
    }
    Machine::<P>::restore(before);
}

fn surprise<P: Target>(_: usize) {
    P::suite().count(SURPRISES);
}

fn a_silent_core_is_named_and_not_surprised_later<P: Target>(s: &'static Suite<P>) -> Result<(), Failure> {
    s.begin_on(Cores::one(1), be_silent);
    ensure!(s.rest_until(PATIENCE_NS, || s.counted(READY) == 1), "the core is silent");
    let result = s.calls.call_others(Work::new(surprise::<P>, 0), Until::Completed, s.in_ns(SHORT_NS));
    let rest = s.calls.others().count() as usize - 1;
    ensure!(result == unanswered(Cores::one(1), Cores::NONE, Cores::NONE), "it alone is named as silent");
    ensure_eq!(s.counted(SURPRISES), rest, "the others ran the call");
    s.count(GO);
    s.finish(Cores::one(1))?;
    let answers = s.calls.call_one(1, Work::new(count_here::<P>, 0), Until::Completed, s.patience());
    ensure!(answers.is_ok(), "afterwards it answers again");
    ensure_eq!(s.counted(SURPRISES), rest, "what was withdrawn does not run later");
    Ok(())
}

/// Runs until it is let go.
fn run_long<P: Target>(_: usize) {
    let s = P::suite();
    let until_ns = s.patience();
    while s.counted(GO) == 0 && Machine::<P>::now_ns() < until_ns {
        arch::relax();
    }
    s.count(READY);
}

fn a_call_that_takes_too_long_is_named<P: Target>(s: &'static Suite<P>) -> Result<(), Failure> {
    let work = Work::new(run_long::<P>, 0);
    let result = s.calls.call_one(1, work, Until::Completed, s.in_ns(SHORT_NS));
    ensure!(result == unanswered(Cores::NONE, Cores::one(1), Cores::NONE), "it is named as running");
    s.count(GO);
    ensure!(s.rest_until(PATIENCE_NS, || s.counted(READY) == 1), "it completes all the same");
    let answers = s.calls.call_one(1, Work::new(count_here::<P>, 0), Until::Completed, s.patience());
    ensure!(answers.is_ok(), "and the core answers again");
    Ok(())
}

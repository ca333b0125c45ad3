//! Causes of inter-processor interrupts: each arrives, none overwrites another, none rings at a core that polls.

use core::sync::atomic::Ordering;

use musubi_core::smp::{Cache, Causes, Cores, Processor};
use musubi_metal::{Machine, cause_handlers};

use crate::everywhere::each;
use crate::report::{Case, Failure, ensure, ensure_eq};
use crate::{CORES, PATIENCE_NS, Suite, Target};

/// Causes raised at a core that polls.
const RAISES: usize = 300;
/// Causes that a program may define.
const PROGRAM_CAUSES: u32 = 8;
/// Count of the raises that a polling core has seen.
const SEEN: usize = CORES;
/// Count that tells a polling core to end.
const END: usize = CORES + 1;
/// Count of what a core says before it waits.
const READY: usize = CORES + 2;

pub fn cases<P: Target>() -> [Case<P>; 7] {
    crate::cases![
        a_reschedule_reaches_each_core on 1,
        a_tick_reaches_all_others on 2,
        each_cause_of_the_program_arrives on 2,
        causes_coalesce_and_do_not_overwrite on 2,
        caches_are_flushed_everywhere on 1,
        nobody_rings_at_a_core_that_polls on 2,
        a_core_that_sleeps_is_rung on 2,
    ]
}

fn count_here<P: Target>() {
    P::suite().count(Machine::<P>::core());
}

fn count_cause<P: Target>(number: u32) {
    P::suite().count(number as usize);
}

fn a_reschedule_reaches_each_core<P: Target>(s: &'static Suite<P>) -> Result<(), Failure> {
    cause_handlers::RESCHEDULE.set(Some(count_here::<P>));
    let online = s.calls.online();
    for core in online {
        ensure!(s.calls.reschedule(core), "an online core can be rescheduled");
    }
    ensure!(s.rest_until(PATIENCE_NS, || each(online, |core| s.counted(core) >= 1)), "each core is told");
    ensure!(!s.calls.reschedule(CORES - 1), "a core that is missing is not");
    Ok(())
}

fn a_tick_reaches_all_others<P: Target>(s: &'static Suite<P>) -> Result<(), Failure> {
    cause_handlers::TICK.set(Some(count_here::<P>));
    s.calls.broadcast_tick();
    let others = s.calls.others();
    ensure!(s.rest_until(PATIENCE_NS, || each(others, |core| s.counted(core) >= 1)), "each other core ticks");
    ensure_eq!(s.counted(0), 0, "the core that broadcasts is not told");
    Ok(())
}

fn each_cause_of_the_program_arrives<P: Target>(s: &'static Suite<P>) -> Result<(), Failure> {
    cause_handlers::PROGRAM.set(Some(count_cause::<P>));
    for number in 0..PROGRAM_CAUSES {
        s.calls.raise(1, Causes::program(number));
    }
    let arrived = || (0..PROGRAM_CAUSES as usize).all(|number| s.counted(number) >= 1);
    ensure!(s.rest_until(PATIENCE_NS, arrived), "all eight arrive");
    Ok(())
}

/// Masks its interrupts until the boot core has raised all that it wants to.
fn stay_masked<P: Target>(s: &'static Suite<P>, _: usize) {
    let before = Machine::<P>::mask();
    s.count(READY);
    let until_ns = s.patience();
    while s.counted(END) == 0 && Machine::<P>::now_ns() < until_ns {
        Machine::<P>::relax();
    }
    Machine::<P>::restore(before);
}

fn causes_coalesce_and_do_not_overwrite<P: Target>(s: &'static Suite<P>) -> Result<(), Failure> {
    cause_handlers::PROGRAM.set(Some(count_cause::<P>));
    s.begin_on(Cores::one(1), stay_masked);
    ensure!(s.rest_until(PATIENCE_NS, || s.counted(READY) == 1), "the core masks");
    let before = s.rings(1);
    for _ in 0..100 {
        (0..PROGRAM_CAUSES).for_each(|number| s.calls.raise(1, Causes::program(number)));
    }
    s.count(END);
    s.finish(Cores::one(1))?;
    let arrived = || (0..PROGRAM_CAUSES as usize).all(|number| s.counted(number) >= 1);
    ensure!(s.rest_until(PATIENCE_NS, arrived), "all eight arrive");
    for number in 0..PROGRAM_CAUSES as usize {
        ensure_eq!(s.counted(number), 1, "each hundred raises are handled once");
    }
    // A second one may be the reschedule by which this case itself wakes the core.
    ensure!(s.rings(1) - before <= 2, "eight hundred raises are one ring");
    Ok(())
}

fn caches_are_flushed_everywhere<P: Target>(s: &'static Suite<P>) -> Result<(), Failure> {
    for _ in 0..20 {
        for cache in [Cache::Instructions, Cache::Data, Cache::Translations] {
            ensure!(s.calls.flush(cache, s.calls.online(), s.patience()).is_ok(), "every core answers");
        }
    }
    let missing = Cores::one(CORES - 1);
    let refused = s.calls.flush(Cache::Data, missing.with(Cores::one(0)), s.patience());
    let named = musubi_core::Error::Unresponsive { silent: Cores::NONE, running: Cores::NONE, offline: missing };
    ensure!(refused == Err(named), "a core that is missing is named");
    Ok(())
}

/// Polls until told to end.
fn poll<P: Target>(s: &'static Suite<P>, _: usize) {
    let until_ns = s.patience();
    let end = s.calls.poll(u32::MAX, || {
        s.counts[READY].store(1, Ordering::Release);
        s.counted(END) != 0 || Machine::<P>::now_ns() > until_ns
    });
    if end {
        s.count(END);
    }
}

fn count_seen<P: Target>(_: u32) {
    P::suite().count(SEEN);
}

fn nobody_rings_at_a_core_that_polls<P: Target>(s: &'static Suite<P>) -> Result<(), Failure> {
    cause_handlers::PROGRAM.set(Some(count_seen::<P>));
    s.begin_on(Cores::one(1), poll);
    ensure!(s.rest_until(PATIENCE_NS, || s.counted(READY) == 1), "the core polls");
    let before = s.rings(1);
    for raise in 1..=RAISES {
        s.calls.raise(1, Causes::program(0));
        let until_ns = s.patience();
        while s.counted(SEEN) < raise && Machine::<P>::now_ns() < until_ns {
            Machine::<P>::relax();
        }
        ensure_eq!(s.counted(SEEN), raise, "each raise is seen");
    }
    let rings = s.rings(1) - before;
    s.count(END);
    s.finish(Cores::one(1))?;
    ensure_eq!(rings, 0, "no ring");
    Ok(())
}

fn a_core_that_sleeps_is_rung<P: Target>(s: &'static Suite<P>) -> Result<(), Failure> {
    cause_handlers::PROGRAM.set(Some(count_seen::<P>));
    for raise in 1..=100 {
        let before = s.rings(1);
        s.calls.raise(1, Causes::program(0));
        ensure!(s.rest_until(PATIENCE_NS, || s.counted(SEEN) == raise), "each raise is handled");
        ensure!(s.rings(1) - before <= 1, "at most one ring for each wake-up");
        s.spend_ns(20_000);
    }
    Ok(())
}

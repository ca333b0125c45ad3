//! Locks across cores: one at a time inside whatever interrupts come, first come first served, nested, and serving calls
//! while they wait.

use core::sync::atomic::Ordering;

use musubi_core::smp::{Clh, Cores, Kernel, Lock, Processor, Statistics, Ticket, Until, Work, clh};
use musubi_metal::board::Board;
use musubi_metal::{Machine, dispatch, println};

use crate::everywhere::each;
use crate::report::{Case, Failure, ensure, ensure_eq};
use crate::{CORES, PATIENCE_NS, Suite, Target};

/// Nodes of a queue lock of a test image.
const NODES: usize = clh::nodes(CORES);
/// How long all cores contend. Not a number of sections: a hand-over can take as long as the host lets a core wait.
pub(crate) const CONTEND_NS: u64 = 400_000_000;
/// Longest time between two alarms of a core that contends.
const ALARM_NS_MAX: u64 = 200_000;
/// Rounds in which the order of cores is watched.
const ROUNDS: usize = 8;

/// Count of sections by each core's task, and by its alarm's handler: from here on.
pub(crate) const BY_TASK: usize = 0;
const BY_HANDLER: usize = CORES;
/// Random numbers of each core: from here on.
const DICE: usize = 2 * CORES;
/// What the sections count, by separate load and store.
pub(crate) const SUM: usize = 3 * CORES;
/// Count of what went wrong.
pub(crate) const FAULTS: usize = SUM + 1;
/// Count of cores that wait, or are where the case wants them.
pub(crate) const READY: usize = SUM + 2;
/// Count that lets others go on.
const GO: usize = SUM + 3;
/// Cores in the order in which they entered: from here on.
const ORDER: usize = SUM + 4;

/// The locks that the cases are about.
pub struct Locks<P: Target> {
    ticket: Ticket<Machine<P>>,
    clh: Clh<Machine<P>, NODES>,
    kernel: Kernel<Machine<P>, NODES>,
    watched: Ticket<Machine<P>, Statistics>,
}

impl<P: Target> Locks<P> {
    pub const fn new() -> Self {
        let (ticket, clh, kernel) = (Ticket::new(), Clh::new(), Kernel::new());
        Self { ticket, clh, kernel, watched: Ticket::watched(Statistics::new()) }
    }
}

/// Something that lets one core in at a time.
pub(crate) trait Exclusive<P: Target>: 'static {
    /// Whether a handler may wait for it, because who is inside masks interrupts.
    const MASKS: bool;
    /// Runs `section` inside.
    fn with<R>(s: &'static Suite<P>, section: impl FnOnce() -> R) -> R;
}

struct ByTicket;
struct ByClh;
struct ByKernel;
struct ByWatched;

impl<P: Target> Exclusive<P> for ByTicket {
    const MASKS: bool = true;
    fn with<R>(s: &'static Suite<P>, section: impl FnOnce() -> R) -> R {
        let _held = s.locks.ticket.lock();
        section()
    }
}

impl<P: Target> Exclusive<P> for ByClh {
    const MASKS: bool = true;
    fn with<R>(s: &'static Suite<P>, section: impl FnOnce() -> R) -> R {
        let _held = s.locks.clh.lock();
        section()
    }
}

impl<P: Target> Exclusive<P> for ByKernel {
    const MASKS: bool = true;
    fn with<R>(s: &'static Suite<P>, section: impl FnOnce() -> R) -> R {
        let _outer = s.locks.kernel.lock();
        let _inner = s.locks.kernel.lock();
        section()
    }
}

impl<P: Target> Exclusive<P> for ByWatched {
    const MASKS: bool = true;
    fn with<R>(s: &'static Suite<P>, section: impl FnOnce() -> R) -> R {
        let _held = s.locks.watched.lock();
        section()
    }
}

pub fn cases<P: Target>() -> [Case<P>; 10] {
    crate::cases![
        a_ticket_lock_lets_one_core_in on 1,
        a_queue_lock_lets_one_core_in on 1,
        the_kernel_lock_lets_one_core_in_and_nests on 1,
        statistics_count_every_section on 1,
        locks_nest_in_one_another on 1,
        trying_never_waits on 2,
        who_waits_serves_calls on 2,
        a_ticket_lock_is_fair on 2,
        a_queue_lock_is_fair on 2,
        all_locks_are_free_in_the_end on 1,
    ]
}

/// Adds one, not atomically: two cores inside at once lose a count.
fn add<P: Target>(s: &Suite<P>) {
    let sum = s.counts[SUM].load(Ordering::Relaxed);
    core::hint::spin_loop();
    s.counts[SUM].store(sum + 1, Ordering::Relaxed);
}

/// The next random number of a core (xorshift).
fn roll<P: Target>(s: &Suite<P>, core: usize) -> u64 {
    let dice = &s.counts[DICE + core];
    let mut number = dice.load(Ordering::Relaxed) as u32 | 1;
    number ^= number << 13;
    number ^= number >> 17;
    number ^= number << 5;
    dice.store(number as usize, Ordering::Relaxed);
    number.into()
}

/// Sets this core's alarm to a random instant soon.
fn alarm_soon<P: Target>(s: &Suite<P>) {
    let in_ns = roll(s, Machine::<P>::core()) % ALARM_NS_MAX;
    P::Board::set_alarm(s.in_ns(in_ns));
}

/// The alarm of each core that contends: enters as well.
fn alarm<P: Target, X: Exclusive<P>>() {
    let s = P::suite();
    if X::MASKS {
        X::with(s, || add(s));
        s.count(BY_HANDLER + Machine::<P>::core());
    }
    alarm_soon(s);
}

/// Enters again and again, with random interrupts.
fn contend<P: Target, X: Exclusive<P>>(s: &'static Suite<P>, core: usize) {
    s.counts[DICE + core].store(core * 7919 + 1, Ordering::Relaxed);
    alarm_soon(s);
    let until_ns = s.in_ns(CONTEND_NS);
    while Machine::<P>::now_ns() < until_ns {
        X::with(s, || add(s));
        s.count(BY_TASK + core);
    }
    let before = Machine::<P>::mask();
    P::Board::set_alarm(u64::MAX);
    Machine::<P>::restore(before);
}

/// All cores contend; every section must be counted. Gives how many there were.
pub(crate) fn exclusion<P: Target, X: Exclusive<P>>(s: &'static Suite<P>) -> Result<usize, Failure> {
    dispatch::ALARM.set(Some(alarm::<P, X>));
    let online = s.calls.online();
    for core in online.without(Cores::one(0)) {
        s.begin_on(Cores::one(core), contend::<P, X>);
    }
    contend::<P, X>(s, 0);
    // The boot core's rest sets alarms of its own.
    dispatch::ALARM.set(None);
    s.finish(online)?;
    let by_tasks = online.map(|core| s.counted(BY_TASK + core)).sum::<usize>();
    let by_handlers = online.map(|core| s.counted(BY_HANDLER + core)).sum::<usize>();
    ensure_eq!(s.counted(SUM), by_tasks + by_handlers, "as many counted as sections were entered");
    ensure!(each(online, |core| s.counted(BY_TASK + core) > 0), "each core got in");
    println!(P, "  {by_tasks} sections of tasks, {by_handlers} of handlers");
    Ok(by_tasks + by_handlers)
}

fn a_ticket_lock_lets_one_core_in<P: Target>(s: &'static Suite<P>) -> Result<(), Failure> {
    exclusion::<P, ByTicket>(s).map(drop)
}

fn a_queue_lock_lets_one_core_in<P: Target>(s: &'static Suite<P>) -> Result<(), Failure> {
    exclusion::<P, ByClh>(s).map(drop)
}

fn the_kernel_lock_lets_one_core_in_and_nests<P: Target>(s: &'static Suite<P>) -> Result<(), Failure> {
    exclusion::<P, ByKernel>(s)?;
    ensure!(s.locks.kernel.holder().is_none(), "nobody is inside afterwards");
    Ok(())
}

fn statistics_count_every_section<P: Target>(s: &'static Suite<P>) -> Result<(), Failure> {
    let sections = exclusion::<P, ByWatched>(s)?;
    let seen = s.locks.watched.snapshot();
    ensure_eq!(seen.acquisitions as usize, sections + 1, "each section is in the statistics, and this look at them");
    let by_length = seen.by_queue_length.iter().sum::<u32>();
    ensure_eq!(by_length, seen.acquisitions, "each with the length of its queue");
    ensure!(
        seen.wait_ns_total >= seen.wait_ns_max.into() && seen.hold_ns_total >= seen.hold_ns_max.into(),
        "times add up"
    );
    ensure!(s.locks.watched.watch().holder().is_none(), "nobody holds it");
    println!(P, "  longest wait {} us, longest hold {} us", seen.wait_ns_max / 1_000, seen.hold_ns_max / 1_000);
    Ok(())
}

/// Takes the three locks within one another, in one order, leaving some out at random.
struct Nested;

impl<P: Target> Exclusive<P> for Nested {
    const MASKS: bool = true;
    fn with<R>(s: &'static Suite<P>, section: impl FnOnce() -> R) -> R {
        let before = Machine::<P>::mask();
        let chosen = roll(s, Machine::<P>::core());
        Machine::<P>::restore(before);
        let _outer = (chosen & 1 != 0).then(|| s.locks.kernel.lock());
        let _middle = (chosen & 2 != 0).then(|| s.locks.clh.lock());
        let _inner = s.locks.ticket.lock();
        section()
    }
}

fn locks_nest_in_one_another<P: Target>(s: &'static Suite<P>) -> Result<(), Failure> {
    exclusion::<P, Nested>(s).map(drop)
}

fn try_once<P: Target>(_: usize) {
    let s = P::suite();
    if s.locks.ticket.try_lock().is_some() || s.locks.clh.try_lock().is_some() {
        s.count(FAULTS);
    }
    s.count(READY);
}

fn trying_never_waits<P: Target>(s: &'static Suite<P>) -> Result<(), Failure> {
    let (ticket, clh) = (s.locks.ticket.lock(), s.locks.clh.lock());
    let called = s.calls.call_others(Work::new(try_once::<P>, 0), Until::Completed, s.patience());
    drop(clh);
    drop(ticket);
    ensure!(called.is_ok(), "nobody waits");
    ensure_eq!(s.counted(FAULTS), 0, "a lock that is held is not given");
    ensure!(s.locks.ticket.try_lock().is_some() && s.locks.clh.try_lock().is_some(), "one that is free is");
    Ok(())
}

/// Waits for both locks, one after the other.
fn wait_for_both<P: Target>(s: &'static Suite<P>, _: usize) {
    s.count(READY);
    ByTicket::with(s, || s.count(SUM));
    ByClh::with(s, || s.count(SUM));
}

fn count_here<P: Target>(_: usize) {
    P::suite().count(BY_TASK + Machine::<P>::core());
}

fn who_waits_serves_calls<P: Target>(s: &'static Suite<P>) -> Result<(), Failure> {
    let others = s.calls.others();
    let clh = s.locks.clh.lock();
    let ticket = s.locks.ticket.lock();
    s.begin_on(others, wait_for_both);
    let waiting = others.count() + 1;
    let until_ns = s.patience();
    while s.locks.ticket.interested() < waiting && Machine::<P>::now_ns() < until_ns {
        Machine::<P>::relax();
    }
    // Both sides mask interrupts: only the waiting loop can answer.
    let first = s.calls.call_others(Work::new(count_here::<P>, 0), Until::Completed, s.patience());
    drop(ticket);
    s.spend_ns(5_000_000);
    let second = s.calls.call_others(Work::new(count_here::<P>, 0), Until::Completed, s.patience());
    drop(clh);
    s.finish(others)?;
    ensure!(first.is_ok() && second.is_ok(), "cores in the queue answer");
    ensure!(each(others, |core| s.counted(BY_TASK + core) == 2), "and have run the calls once each");
    ensure_eq!(s.counted(SUM), 2 * others.count() as usize, "and then get both locks");
    Ok(())
}

/// Enters in each round, and inside waits until all other cores stand in the queue; notes the order.
fn queue_up<P: Target, X: Exclusive<P>>(s: &'static Suite<P>, core: usize) {
    let all = s.calls.online().count() as usize;
    let until_ns = s.patience();
    let is_over = || s.counted(GO) >= ROUNDS * all || Machine::<P>::now_ns() > until_ns;
    while !is_over() {
        s.count(READY);
        X::with(s, || {
            while s.counted(READY) < all && !is_over() {
                Machine::<P>::relax();
                Machine::<P>::serve();
            }
            // Who has said that it queues up needs some instructions to do so.
            s.spend_ns(SETTLE_NS);
            let place = s.count(GO);
            if let Some(order) = s.counts.get(ORDER + place) {
                order.store(core + 1, Ordering::Relaxed);
            }
            s.counts[READY].fetch_sub(1, Ordering::AcqRel);
        });
    }
}

/// Time for a core that is about to queue up to do so, unless the host stops it just then.
const SETTLE_NS: u64 = 100_000;
/// Attempts to see the order, as the host may stop a core between saying that it queues up and doing so.
const ATTEMPTS: usize = 5;

/// With all cores always in the queue, their order must be the same in each round: first come, first served.
fn fairness<P: Target, X: Exclusive<P>>(s: &'static Suite<P>) -> Result<(), Failure> {
    let online = s.calls.online();
    let all = online.count() as usize;
    let rounds = ROUNDS.min((s.counts.len() - ORDER) / all);
    let mut strict = 0;
    for _ in 0..ATTEMPTS {
        s.clean();
        s.run_on(online, queue_up::<P, X>)?;
        let order = |place: usize| s.counts[ORDER + place].load(Ordering::Relaxed);
        // The first round sorts itself out.
        let follows = |place: &usize| order(*place) == order(place + all) && order(*place) != 0;
        strict = (all..all * (rounds - 1)).filter(follows).count();
        if strict == all * (rounds - 2) {
            return Ok(());
        }
    }
    ensure_eq!(strict, all * (rounds - 2), "each round has the order of the one before");
    Ok(())
}

fn a_ticket_lock_is_fair<P: Target>(s: &'static Suite<P>) -> Result<(), Failure> {
    fairness::<P, ByTicket>(s)
}

fn a_queue_lock_is_fair<P: Target>(s: &'static Suite<P>) -> Result<(), Failure> {
    fairness::<P, ByClh>(s)
}

fn all_locks_are_free_in_the_end<P: Target>(s: &'static Suite<P>) -> Result<(), Failure> {
    ensure!(s.locks.ticket.try_lock().is_some(), "the ticket lock is free");
    ensure!(s.locks.clh.try_lock().is_some(), "the queue lock is free");
    ensure!(s.rest_until(PATIENCE_NS, || s.locks.kernel.holder().is_none()), "the kernel lock is free");
    Ok(())
}

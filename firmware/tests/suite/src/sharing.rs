//! Readers and writers, sequence lock, semaphore and mutex across cores.

use core::sync::atomic::Ordering;

use musubi_core::Error;
use musubi_core::smp::blocking::Spin;
use musubi_core::smp::{Cores, Mutex, Processor, ReadWrite, Semaphore, Sequence};
use musubi_metal::{Machine, dispatch, println};

use crate::everywhere::each;
use crate::locks::{BY_TASK, CONTEND_NS, Exclusive, FAULTS, READY, SUM, exclusion};
use crate::report::{Case, Failure, ensure, ensure_eq};
use crate::{CORES, PATIENCE_NS, Suite, Target};

/// Permits of the semaphore.
const PERMITS: u32 = 2;
/// Count of tasks that hold a permit.
const INSIDE: usize = READY;
/// A wait that is meant to end at its deadline, in nanoseconds.
const SHORT_NS: u64 = 5_000_000;

/// What the cases of this module are about.
pub struct Shared<P: Target> {
    pair: ReadWrite<Machine<P>, (u64, u64)>,
    sequence: Sequence<Machine<P>, (u64, u64), 4>,
    semaphore: Semaphore<Machine<P>, CORES, Spin<Machine<P>>>,
    mutex: Mutex<Machine<P>, u64, CORES>,
}

impl<P: Target> Shared<P> {
    pub const fn new() -> Self {
        let (pair, sequence) = (ReadWrite::new((0, 0)), Sequence::zero());
        Self { pair, sequence, semaphore: Semaphore::new(PERMITS), mutex: Mutex::new(0) }
    }
}

pub fn cases<P: Target>() -> [Case<P>; 6] {
    crate::cases![
        writers_are_alone on 1,
        readers_see_whole_pairs on 1,
        sequences_are_never_torn on 1,
        a_mutex_lets_one_task_in on 1,
        a_semaphore_lets_so_many_in on 1,
        waits_for_semaphores_end_at_the_deadline on 1,
    ]
}

/// Writers of the reader-writer lock.
struct ByWriting;

impl<P: Target> Exclusive<P> for ByWriting {
    const MASKS: bool = true;
    fn with<R>(s: &'static Suite<P>, section: impl FnOnce() -> R) -> R {
        let mut pair = s.shared.pair.write();
        pair.0 += 1;
        let result = section();
        pair.1 += 1;
        result
    }
}

/// Holders of the mutex.
struct ByMutex;

impl<P: Target> Exclusive<P> for ByMutex {
    const MASKS: bool = false;
    fn with<R>(s: &'static Suite<P>, section: impl FnOnce() -> R) -> R {
        let held = s.shared.mutex.lock(s.patience());
        if held.is_err() {
            s.count(FAULTS);
        }
        section()
    }
}

fn writers_are_alone<P: Target>(s: &'static Suite<P>) -> Result<(), Failure> {
    exclusion::<P, ByWriting>(s).map(drop)
}

fn a_mutex_lets_one_task_in<P: Target>(s: &'static Suite<P>) -> Result<(), Failure> {
    exclusion::<P, ByMutex>(s)?;
    ensure_eq!(s.counted(FAULTS), 0, "each wait is served");
    Ok(())
}

/// Has `body` run on all cores for a while.
fn contend<P: Target>(s: &'static Suite<P>, body: fn(&'static Suite<P>, usize)) -> Result<(), Failure> {
    dispatch::ALARM.set(None);
    s.run_on(s.calls.online(), body)?;
    ensure_eq!(s.counted(FAULTS), 0, "nobody sees what must not be");
    ensure!(each(s.calls.online(), |core| s.counted(BY_TASK + core) > 0), "each core gets in");
    Ok(())
}

/// Writes at each eighth time, reads otherwise: both halves are the same.
fn read_and_write_pairs<P: Target>(s: &'static Suite<P>, core: usize) {
    let until_ns = s.in_ns(CONTEND_NS);
    while Machine::<P>::now_ns() < until_ns {
        if s.count(BY_TASK + core).is_multiple_of(8) {
            let mut pair = s.shared.pair.write();
            pair.0 += 1;
            core::hint::spin_loop();
            pair.1 += 1;
        } else {
            let pair = s.shared.pair.read();
            if pair.0 != pair.1 {
                s.count(FAULTS);
            }
        }
    }
}

fn readers_see_whole_pairs<P: Target>(s: &'static Suite<P>) -> Result<(), Failure> {
    contend(s, read_and_write_pairs)
}

/// The same with the sequence lock, whose second half is the complement.
fn read_and_write_sequences<P: Target>(s: &'static Suite<P>, core: usize) {
    let until_ns = s.in_ns(CONTEND_NS);
    while Machine::<P>::now_ns() < until_ns {
        if s.count(BY_TASK + core).is_multiple_of(8) {
            s.shared.sequence.update(|(value, _)| (value + 1, !(value + 1)));
            s.count(SUM);
        } else {
            let (value, complement) = s.shared.sequence.read();
            if value != !complement {
                s.count(FAULTS);
            }
        }
    }
}

fn sequences_are_never_torn<P: Target>(s: &'static Suite<P>) -> Result<(), Failure> {
    s.shared.sequence.write((0, !0));
    contend(s, read_and_write_sequences)?;
    ensure_eq!(s.shared.sequence.read().0, s.counted(SUM) as u64, "each update is there");
    Ok(())
}

fn take_permits<P: Target>(s: &'static Suite<P>, core: usize) {
    let until_ns = s.in_ns(CONTEND_NS);
    while Machine::<P>::now_ns() < until_ns {
        if s.shared.semaphore.take(s.patience()).is_err() {
            s.count(FAULTS);
            return;
        }
        if s.count(INSIDE) >= PERMITS as usize {
            s.count(FAULTS);
        }
        s.count(BY_TASK + core);
        s.counts[INSIDE].fetch_sub(1, Ordering::Relaxed);
        s.shared.semaphore.give();
    }
}

fn a_semaphore_lets_so_many_in<P: Target>(s: &'static Suite<P>) -> Result<(), Failure> {
    contend(s, take_permits)?;
    ensure_eq!(s.shared.semaphore.state().0, PERMITS, "all permits are back");
    let entries = s.calls.online().map(|core| s.counted(BY_TASK + core)).sum::<usize>();
    println!(P, "  {entries} entries, at most {PERMITS} at a time");
    Ok(())
}

/// Waits for a permit that is not given.
fn wait_in_vain<P: Target>(s: &'static Suite<P>, _: usize) {
    let (begin_ns, end_ns) = (Machine::<P>::now_ns(), s.in_ns(SHORT_NS));
    let result = s.shared.semaphore.take(end_ns);
    if result != Err(Error::Timeout) || Machine::<P>::now_ns() - begin_ns < SHORT_NS {
        s.count(FAULTS);
    }
    s.count(SUM);
}

fn waits_for_semaphores_end_at_the_deadline<P: Target>(s: &'static Suite<P>) -> Result<(), Failure> {
    for _ in 0..PERMITS {
        ensure!(s.shared.semaphore.try_take(), "a permit is free");
    }
    ensure!(!s.shared.semaphore.try_take(), "no more than there are");
    let online: Cores = s.calls.online();
    let ran = s.run_on(online, wait_in_vain);
    (0..PERMITS).for_each(|_| s.shared.semaphore.give());
    ran?;
    ensure_eq!(s.counted(FAULTS), 0, "each wait ends with a timeout, not early");
    ensure_eq!(s.counted(SUM), online.count() as usize, "on each core");
    let free = || s.shared.semaphore.state() == (PERMITS, 0);
    ensure!(s.rest_until(PATIENCE_NS, free), "nobody waits any more, and all permits are back");
    Ok(())
}

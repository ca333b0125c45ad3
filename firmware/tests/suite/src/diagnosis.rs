//! Diagnosis: the report on stuck cores, latencies of cross calls, the checker of lock orders.

use core::fmt::Write;
use core::sync::atomic::{AtomicU32, Ordering};

use musubi_core::Error;
use musubi_core::smp::observe::Stage;
use musubi_core::smp::stuck::{LockFacts, Report};
use musubi_core::smp::waiting::{Row, Witness};
use musubi_core::smp::{Class, Cores, Lock, Noted, Order, Processor, Statistics, Ticket, Until, Violation, Work};
use musubi_metal::{Machine, println};

use crate::report::{Case, Failure, ensure, ensure_eq};
use crate::{CORES, Suite, Target};

/// A wait counts as stuck after so long.
const STUCK_NS: u64 = 10_000_000;
/// How long the cores stay stuck.
const STAY_NS: u64 = 300_000_000;
/// Bytes of a report that are looked at.
const REPORT_BYTES: usize = 600;

/// Counts of cores that wait, of reports that were right, and of cores that may go on.
const READY: usize = 0;
const RIGHT: usize = 1;
const GO: usize = 2;

/// Where waits are noted: in the suite.
#[derive(Debug)]
pub struct Rows<P>(core::marker::PhantomData<P>);

impl<P: Target> Witness for Rows<P> {
    fn row(core: usize) -> Option<&'static Row> {
        P::suite().diagnosed.rows.get(core)
    }
}

static ORDER: Order = Order::new(&["first", "second"], count_violation);
/// Violations of the lock order that the checker reported: circles, and others.
static VIOLATIONS: [AtomicU32; 2] = [AtomicU32::new(0), AtomicU32::new(0)];

fn count_violation(violation: Violation) {
    let is_other = !matches!(violation, Violation::Cycle { .. });
    VIOLATIONS[usize::from(is_other)].fetch_add(1, Ordering::Relaxed);
}

/// What the cases of this module are about.
pub struct Diagnosed<P: Target> {
    rows: [Row; CORES],
    noted: Ticket<Machine<P>, (Statistics, Noted<Rows<P>>)>,
    first: Ticket<Machine<P>, Class>,
    second: Ticket<Machine<P>, Class>,
}

impl<P: Target> Diagnosed<P> {
    pub const fn new() -> Self {
        Self {
            rows: [const { Row::new() }; CORES],
            noted: Ticket::watched((Statistics::new(), Noted::new())),
            first: Ticket::watched(Class::new(&ORDER, 0)),
            second: Ticket::watched(Class::new(&ORDER, 1)),
        }
    }
}

pub fn cases<P: Target>() -> [Case<P>; 4] {
    crate::cases![
        a_stuck_core_is_reported_with_lock_and_holder on 2,
        cores_that_wait_for_one_another_are_reported on 3,
        latencies_of_calls_are_known on 2,
        two_orders_of_locks_are_reported_once on 1,
    ]
}

/// The beginning of a report.
struct Text {
    bytes: [u8; REPORT_BYTES],
    length: usize,
}

impl Write for Text {
    fn write_str(&mut self, text: &str) -> core::fmt::Result {
        let room = &mut self.bytes[self.length..];
        let fits = text.len().min(room.len());
        room[..fits].copy_from_slice(&text.as_bytes()[..fits]);
        self.length += fits;
        Ok(())
    }
}

/// Makes a report on all cores; gives the stuck ones, those in a circle, and the text.
fn report<P: Target>(s: &'static Suite<P>) -> (Cores, Cores, Text) {
    let watch = s.diagnosed.noted.watch();
    let locks = [LockFacts { name: "noted", address: watch.1.address(), holder: watch.0.holder() }];
    let rows = s.diagnosed.rows.each_ref();
    let trace = Some(s.calls.observer() as _);
    let report = Report { rows: &rows, locks: &locks, trace, now_ns: Machine::<P>::now_ns(), stuck_after_ns: STUCK_NS };
    let mut text = Text { bytes: [0; REPORT_BYTES], length: 0 };
    // Writing into the buffer does not fail.
    let _ = write!(text, "{report}");
    (report.stuck(), report.circle(), text)
}

impl Text {
    fn as_str(&self) -> &str {
        core::str::from_utf8(&self.bytes[..self.length]).unwrap_or("")
    }
}

fn take_noted<P: Target>(s: &'static Suite<P>, _: usize) {
    s.count(READY);
    let held = s.diagnosed.noted.lock();
    drop(held);
}

fn a_stuck_core_is_reported_with_lock_and_holder<P: Target>(s: &'static Suite<P>) -> Result<(), Failure> {
    let held = s.diagnosed.noted.lock();
    s.begin_on(Cores::one(1), take_noted);
    let until_ns = s.patience();
    while s.diagnosed.noted.interested() < 2 && Machine::<P>::now_ns() < until_ns {
        Machine::<P>::relax();
    }
    s.spend_ns(2 * STUCK_NS);
    let (stuck, circle, text) = report(s);
    drop(held);
    s.finish(Cores::one(1))?;
    println!(P, "  {}", text.as_str().lines().next().unwrap_or(""));
    ensure!(stuck == Cores::one(1) && circle.is_empty(), "the core that waits is stuck, and in no circle");
    ensure!(text.as_str().contains("lock noted, held by core 0, waited for by 1"), "the report names lock and holder");
    ensure!(report(s).0.is_empty(), "afterwards nobody is stuck");
    Ok(())
}

fn nothing(_: usize) {}

/// Core 2: reports while the other two wait for one another.
fn report_circle<P: Target>(s: &'static Suite<P>, _: usize) {
    let until_ns = s.patience();
    while s.counted(GO) == 0 && Machine::<P>::now_ns() < until_ns {
        let (_, circle, text) = report(s);
        if circle == Cores::first(2) && text.as_str().contains("cores 0, 1 wait for one another") {
            s.counts[RIGHT].store(1, Ordering::Release);
        }
        s.spend_ns(STUCK_NS);
    }
}

fn cores_that_wait_for_one_another_are_reported<P: Target>(s: &'static Suite<P>) -> Result<(), Failure> {
    let held = s.diagnosed.noted.lock();
    s.begin_on(Cores::one(1), take_noted);
    s.begin_on(Cores::one(2), report_circle);
    let until_ns = s.patience();
    while s.diagnosed.noted.interested() < 2 && Machine::<P>::now_ns() < until_ns {
        Machine::<P>::relax();
    }
    // A function that takes locks does not run in a waiting loop, so both wait until the deadline.
    let result = s.calls.call_one(1, Work::taking_locks(nothing, 0), Until::Completed, s.in_ns(STAY_NS));
    s.count(GO);
    drop(held);
    s.finish(Cores::one(1).with(Cores::one(2)))?;
    let named = Error::Unresponsive { silent: Cores::one(1), running: Cores::NONE, offline: Cores::NONE };
    ensure!(result == Err(named), "the call ends at its deadline and names the core");
    ensure_eq!(s.counted(RIGHT), 1, "the report shows the circle while it lasts");
    Ok(())
}

fn latencies_of_calls_are_known<P: Target>(s: &'static Suite<P>) -> Result<(), Failure> {
    let before = s.calls.observer().counts(1);
    for _ in 0..100 {
        let called = s.calls.call_one(1, Work::new(nothing, 0), Until::Completed, s.patience());
        ensure!(called.is_ok(), "the core answers");
    }
    let after = s.calls.observer().counts(1);
    ensure_eq!(after.accepted.wrapping_sub(before.accepted), 100, "each call is counted as accepted");
    ensure_eq!(after.completed.wrapping_sub(before.completed), 100, "and as completed");
    for stage in [Stage::ToAccepted, Stage::ToCompleted] {
        let median_ns = s.calls.observer().quantile_ns(1, stage, 500);
        ensure!(median_ns.is_some_and(|ns| ns <= s.calls.observer().ns_max(1, stage)), "the histogram has a median");
        println!(P, "  {stage:?}: median {} ns, under the emulator", median_ns.unwrap_or(0));
    }
    Ok(())
}

fn two_orders_of_locks_are_reported_once<P: Target>(s: &'static Suite<P>) -> Result<(), Failure> {
    let Diagnosed { first, second, .. } = &s.diagnosed;
    let violations = || [VIOLATIONS[0].load(Ordering::Relaxed), VIOLATIONS[1].load(Ordering::Relaxed)];
    let outer = first.lock();
    let inner = second.lock();
    drop(inner);
    drop(outer);
    ensure!(violations() == [0, 0], "one order is right");
    for _ in 0..3 {
        let outer = second.lock();
        let inner = first.lock();
        drop(inner);
        drop(outer);
    }
    ensure!(violations() == [1, 0], "the other order beside it is reported, once");
    Ok(())
}

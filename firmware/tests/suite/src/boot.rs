//! Start of the other cores: all at once, cores that are missing or do not come up, shutdown meanwhile, and again.

use core::sync::atomic::{AtomicUsize, Ordering};

use musubi_core::Error;
use musubi_core::smp::boot::{Boot, Patience, Reason, Start, State};
use musubi_core::smp::{Cores, Processor, Until, Work};
use musubi_metal::board::{Board, StartError};
use musubi_metal::{Machine, println, start};

use crate::report::{Case, Failure, ensure};
use crate::{CORES, PATIENCE_NS, Suite, Target};

/// Generous for a core that comes up.
const PATIENCE: Patience = Patience { arrive_ns: PATIENCE_NS / 2, ready_ns: PATIENCE_NS };
/// Short, for a core that the case keeps from coming up.
const SHORT: Patience = Patience { arrive_ns: 300_000_000, ready_ns: 600_000_000 };
/// How long the firmware may take to end a core.
const STOP_NS: u64 = 2_000_000_000;
/// Starts of this suite, each with mailboxes of its own: a mailbox remembers a core that failed.
const STARTS: usize = 6;
/// The code of a core's own check.
const CHECK: i32 = 42;

/// What core 1 does when it starts. The others always come up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
enum Conduct {
    /// It comes up.
    Up,
    /// It arrives when the boot core has given it up.
    ArriveLate,
    /// It arrives, and is ready when the boot core has given it up.
    ReadyLate,
    /// Its own check fails.
    Check,
    /// It shuts the system down.
    ShutDown,
}

/// The starts of the suite.
#[derive(Debug)]
pub struct Starts<P: Target> {
    boots: [Boot<Machine<P>, CORES>; STARTS],
    /// Which of them is under way. Writer: the boot core.
    current: AtomicUsize,
    /// The [`Conduct`] of core 1. Writer: the boot core.
    conduct: AtomicUsize,
}

impl<P: Target> Starts<P> {
    pub const fn new() -> Self {
        let boots = [const { Boot::new() }; STARTS];
        Self { boots, current: AtomicUsize::new(0), conduct: AtomicUsize::new(Conduct::Up as usize) }
    }

    fn boot(&self) -> &Boot<Machine<P>, CORES> {
        &self.boots[self.current.load(Ordering::Acquire)]
    }

    fn conducts(&self, conduct: Conduct) -> bool {
        self.conduct.load(Ordering::Acquire) == conduct as usize
    }
}

pub fn first_cases<P: Target>() -> [Case<P>; 2] {
    crate::cases![every_core_starts_in_parallel on 1, missing_cores_are_named_with_the_reason on 1]
}

/// They stop cores, so they come late.
pub fn stop_cases<P: Target>() -> [Case<P>; 1] {
    crate::cases![stopped_cores_are_offline on 2]
}

/// They start cores that were stopped.
pub fn restart_cases<P: Target>() -> [Case<P>; 5] {
    crate::cases![
        a_core_that_does_not_arrive_is_given_up on 0,
        a_core_that_is_not_ready_is_given_up on 0,
        a_core_whose_check_fails_is_left_out on 0,
        shutdown_during_boot_keeps_the_others_away on 0,
        all_come_up_again on 0,
    ]
}

impl<P: Target> Suite<P> {
    /// A started core's way to the calls; parks if it must not go on.
    pub fn come_online(&self, core: usize) {
        let (starts, boot) = (&self.starts, self.starts.boot());
        let dawdles = |conduct| core == 1 && starts.conducts(conduct);
        if dawdles(Conduct::ArriveLate) {
            self.await_given_up(boot, core);
        }
        let Some(start) = boot.arrive(core) else { P::Board::stop() };
        if dawdles(Conduct::Check) || start.argument != argument_of(core) {
            boot.refuse(core, CHECK);
            P::Board::stop();
        }
        if dawdles(Conduct::ShutDown) {
            boot.shut_down();
        }
        if dawdles(Conduct::ReadyLate) {
            self.await_given_up(boot, core);
        }
        if !boot.await_go(core, self.patience()) {
            P::Board::stop();
        }
    }

    fn await_given_up(&self, boot: &Boot<Machine<P>, CORES>, core: usize) {
        let until_ns = self.patience();
        while !matches!(boot.state(core), State::Failed(_)) && Machine::<P>::now_ns() < until_ns {
            Machine::<P>::relax();
        }
    }

    /// Starts all cores, with mailboxes that no earlier start has used.
    fn start_again(&'static self, conduct: Conduct, patience: Patience) -> Cores {
        self.starts.conduct.store(conduct as usize, Ordering::Release);
        self.starts.current.fetch_add(1, Ordering::AcqRel);
        self.start_all(patience)
    }

    fn start_all(&'static self, patience: Patience) -> Cores {
        let start = |core| Start { stack_top: P::stack_top(core), entry: 0, argument: argument_of(core) };
        self.starts.boot().start_all(Cores::first(CORES), patience, start, ask::<P>)
    }

    /// Stops all other cores.
    fn stop_all(&'static self) -> Result<(), Failure> {
        ensure!(self.calls.stop_others(self.patience()).is_ok(), "each core stops");
        ensure!(self.calls.online() == Cores::one(0), "this one is alone");
        Ok(())
    }
}

/// What each core is given, to see that it is given the right one's.
const fn argument_of(core: usize) -> usize {
    0x1000 + core
}

/// Has the hardware start a core; waits for one that has not ended yet.
fn ask<P: Target>(core: usize) -> Result<(), i32> {
    let until_ns = Machine::<P>::now_ns() + STOP_NS;
    loop {
        match start::start_core::<P>(core) {
            Err(StartError::Running) if Machine::<P>::now_ns() < until_ns => Machine::<P>::relax(),
            result => return result.map_err(StartError::code),
        }
    }
}

fn present<P: Target>() -> Cores {
    Cores::first(start::cores_present::<P>())
}

fn every_core_starts_in_parallel<P: Target>(s: &'static Suite<P>) -> Result<(), Failure> {
    let online = s.start_all(PATIENCE);
    ensure!(online == present::<P>(), "all that the board has come online");
    ensure!(s.rest_until(PATIENCE_NS, || s.calls.online() == online), "and serve calls");
    Ok(())
}

fn missing_cores_are_named_with_the_reason<P: Target>(s: &'static Suite<P>) -> Result<(), Failure> {
    let missing = Cores::first(CORES).without(present::<P>());
    ensure!(!missing.is_empty(), "the image is built for more cores than there are");
    for core in missing {
        let state = s.starts.boot().state(core);
        ensure!(state == State::Failed(Reason::Refused(StartError::ABSENT)), "a missing core is refused");
    }
    println!(P, "  {}", First(s.starts.boot()));
    Ok(())
}

/// The first line of a report on failures.
struct First<'b, P: Target>(&'b Boot<Machine<P>, CORES>);

impl<P: Target> core::fmt::Display for First<'_, P> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let failed = (0..CORES).find_map(|core| match self.0.state(core) {
            State::Failed(reason) => Some((core, reason)),
            _ => None,
        });
        match failed {
            Some((core, Reason::Refused(StartError::ABSENT))) => write!(f, "core {core}: there is no such core"),
            Some((core, reason)) => write!(f, "core {core}: {reason}"),
            None => Ok(()),
        }
    }
}

fn nothing(_: usize) {}

fn stopped_cores_are_offline<P: Target>(s: &'static Suite<P>) -> Result<(), Failure> {
    let others = s.calls.others();
    s.stop_all()?;
    let result = s.calls.call_many(others, Work::new(nothing, 0), Until::Completed, s.patience());
    let named = Error::Unresponsive { silent: Cores::NONE, running: Cores::NONE, offline: others };
    ensure!(result == Err(named), "a call to a stopped core names it, at once");
    Ok(())
}

/// Starts all with core 1 behaving so, and sees that it failed for this reason and all others are online.
fn without_core_1<P: Target>(s: &'static Suite<P>, conduct: Conduct, reason: Reason) -> Result<(), Failure> {
    let online = s.start_again(conduct, SHORT);
    ensure!(s.starts.boot().state(1) == State::Failed(reason), "the core is given up for the right reason");
    ensure!(online == present::<P>().without(Cores::one(1)), "the others come online");
    ensure!(s.rest_until(PATIENCE_NS, || s.calls.online() == online), "and serve calls");
    let called = s.calls.call_others(Work::new(nothing, 0), Until::Completed, s.patience());
    ensure!(called.is_ok(), "the system goes on without it");
    println!(P, "  {}", First(s.starts.boot()));
    let is_late = || conduct == Conduct::Check || s.starts.boot().late().contains(1);
    ensure!(s.rest_until(PATIENCE_NS, is_late), "a core that comes late is noted");
    s.stop_all()
}

fn a_core_that_does_not_arrive_is_given_up<P: Target>(s: &'static Suite<P>) -> Result<(), Failure> {
    without_core_1(s, Conduct::ArriveLate, Reason::NotArrived)
}

fn a_core_that_is_not_ready_is_given_up<P: Target>(s: &'static Suite<P>) -> Result<(), Failure> {
    without_core_1(s, Conduct::ReadyLate, Reason::NotReady)
}

fn a_core_whose_check_fails_is_left_out<P: Target>(s: &'static Suite<P>) -> Result<(), Failure> {
    without_core_1(s, Conduct::Check, Reason::Check(CHECK))
}

fn shutdown_during_boot_keeps_the_others_away<P: Target>(s: &'static Suite<P>) -> Result<(), Failure> {
    let online = s.start_again(Conduct::ShutDown, PATIENCE);
    ensure!(!online.contains(1), "the core that shut down does not come online");
    let fates = |core| matches!(s.starts.boot().state(core), State::Online | State::Failed(_));
    ensure!(
        present::<P>().without(Cores::one(0)).filter(|&core| !fates(core)).count() == 0,
        "each core's fate is settled"
    );
    ensure!(s.rest_until(PATIENCE_NS, || s.calls.online() == online), "those that were online before it serve calls");
    s.stop_all()
}

fn all_come_up_again<P: Target>(s: &'static Suite<P>) -> Result<(), Failure> {
    let online = s.start_again(Conduct::Up, PATIENCE);
    ensure!(online == present::<P>(), "all that the board has come online again");
    ensure!(s.rest_until(PATIENCE_NS, || s.calls.online() == online), "and serve calls");
    let called = s.calls.call_others(Work::new(nothing, 0), Until::Completed, s.patience());
    ensure!(called.is_ok(), "each answers a call");
    Ok(())
}

//! The suite that every test image runs: the multiprocessor layer on all cores of the board.
//!
//! What you may rely on: one line for each case that failed (`FAILED name: why`) or could not run here (`skipped name:
//! why`), and at the end `N passed, M failed, K skipped`; then the board is switched off. Each case ends within
//! [`PATIENCE_NS`] for each thing that it waits for.
//!
//! How it works: an image is `suite!(Board)`. It is built for [`CORES`] cores, one more than any of the machines has, so
//! that a core is always missing. The boot core runs the cases one after the other and has other cores run a part of them
//! ([`everywhere`]). The coverage follows the RTEMS tests for multiprocessors (smptests): start, shutdown during boot,
//! missing core, flood of interrupts, call from inside a handler, fairness of locks, nested locks, migration of work,
//! cache messages.
//!
//! What it does not do: measure. Under an emulator only counts mean something.
#![no_std]

use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use musubi_core::smp::Processor;
use musubi_core::smp::interprocessor::Interprocessor;
use musubi_core::smp::recorder::Recorder;
use musubi_metal::board::Board;
use musubi_metal::cause_handlers::CauseHandlers;
use musubi_metal::{Machine, Program, cause_handlers, dispatch, println};

pub use musubi_metal;

mod alone;
mod boot;
mod calls;
mod channel;
mod diagnosis;
pub mod everywhere;
mod flood;
mod interrupts;
mod locks;
#[cfg(feature = "nodes")]
mod nodes;
mod report;
mod sharing;

pub use report::Failure;
use report::{Case, Outcome, cases};

/// Cores that a test image is built for.
pub const CORES: usize = 9;
/// How long a case waits for something that must come.
pub const PATIENCE_NS: u64 = 30_000_000_000;
/// Events of each core that are kept for a report.
const EVENTS: usize = 16;
/// Words in which a case counts.
const COUNTS: usize = 128;

/// A test image.
pub trait Target: Program {
    /// All that its cases share.
    fn suite() -> &'static Suite<Self>;
}

/// All that the cases share.
pub struct Suite<P: Target> {
    /// Interrupts and calls between cores.
    pub calls: Interprocessor<Machine<P>, CauseHandlers<P>, CORES, Recorder<CORES, EVENTS, diagnosis::Rows<P>>>,
    starts: boot::Starts<P>,
    locks: locks::Locks<P>,
    shared: sharing::Shared<P>,
    diagnosed: diagnosis::Diagnosed<P>,
    channels: channel::Channels<P>,
    #[cfg(feature = "nodes")]
    nodes: nodes::Nodes<P>,
    work: everywhere::Work,
    /// Rings that each core was interrupted by. Writer: that core.
    rings: [AtomicU32; CORES],
    /// What a case counts; zero when it begins.
    counts: [AtomicUsize; COUNTS],
}

impl<P: Target> Suite<P> {
    /// Before anything has run.
    #[allow(clippy::new_without_default, reason = "it is a static")]
    pub const fn new() -> Self {
        Self {
            calls: Interprocessor::observed(Recorder::new()),
            starts: boot::Starts::new(),
            locks: locks::Locks::new(),
            shared: sharing::Shared::new(),
            diagnosed: diagnosis::Diagnosed::new(),
            channels: channel::Channels::new(),
            #[cfg(feature = "nodes")]
            nodes: nodes::Nodes::new(),
            work: everywhere::Work::new(),
            rings: [const { AtomicU32::new(0) }; CORES],
            counts: [const { AtomicUsize::new(0) }; COUNTS],
        }
    }

    /// The interrupt by which another core rings: counted, then served.
    pub fn rung(&self) {
        self.rings[Machine::<P>::core()].fetch_add(1, Ordering::Relaxed);
        self.calls.on_interrupt();
    }

    /// Rings that have interrupted a core so far.
    fn rings(&self, core: usize) -> u32 {
        self.rings[core].load(Ordering::Relaxed)
    }

    /// One more of a case's counts; gives the number before.
    fn count(&self, index: usize) -> usize {
        self.counts[index].fetch_add(1, Ordering::Relaxed)
    }

    /// A case's count.
    fn counted(&self, index: usize) -> usize {
        self.counts[index].load(Ordering::Acquire)
    }

    /// An instant so far ahead, for a deadline.
    fn in_ns(&self, ns: u64) -> u64 {
        Machine::<P>::now_ns() + ns
    }

    /// The instant by which everything that a case waits for must have come.
    fn patience(&self) -> u64 {
        self.in_ns(PATIENCE_NS)
    }

    /// Forgets what the case before counted and set.
    fn clean(&self) {
        dispatch::ALARM.set(None);
        cause_handlers::RESCHEDULE.set(None);
        cause_handlers::TICK.set(None);
        cause_handlers::PROGRAM.set(None);
        self.counts.iter().for_each(|count| count.store(0, Ordering::Relaxed));
    }
}

/// What the boot core does: all cases, the summary, the end.
pub fn main<P: Target>() -> ! {
    let suite = P::suite();
    suite.calls.join();
    println!(P, "{}: built for {} cores", P::Board::NAME, P::CORES);
    println!(P, "clock: {}", P::Board::clock_check());
    let mut outcome = Outcome::default();
    run(suite, &alone::first_cases(), &mut outcome);
    run(suite, &boot::first_cases(), &mut outcome);
    run(suite, &alone::cases(), &mut outcome);
    println!(P, "online: {}", suite.calls.online());
    run(suite, &interrupts::cases(), &mut outcome);
    run(suite, &calls::cases(), &mut outcome);
    run(suite, &flood::cases(), &mut outcome);
    run(suite, &locks::cases(), &mut outcome);
    run(suite, &sharing::cases(), &mut outcome);
    run(suite, &diagnosis::cases(), &mut outcome);
    run(suite, &channel::cases(), &mut outcome);
    suite.clean();
    channel::run_on_one_core(suite, &mut outcome);
    #[cfg(feature = "nodes")]
    nodes::run_between_cores(suite, &mut outcome);
    let has_others = suite.calls.online().count() > 1;
    run(suite, &boot::stop_cases(), &mut outcome);
    match has_others && P::Board::RESTARTS {
        true => run(suite, &boot::restart_cases(), &mut outcome),
        false => skip(&boot::restart_cases::<P>(), &mut outcome),
    }
    println!(P, "{outcome}");
    P::Board::power_off()
}

fn run<P: Target>(suite: &'static Suite<P>, cases: &[Case<P>], outcome: &mut Outcome) {
    for case in cases {
        let online = suite.calls.online().count();
        if online < case.cores {
            outcome.skip::<P>(case.name, format_args!("needs {} cores", case.cores));
            continue;
        }
        if let Some(why) = P::Board::polls().filter(|_| case.interrupted) {
            outcome.skip::<P>(case.name, format_args!("{why}"));
            continue;
        }
        suite.clean();
        let begin_ns = Machine::<P>::now_ns();
        let result = (case.run)(suite);
        P::Board::set_alarm(u64::MAX);
        let took_ms = (Machine::<P>::now_ns() - begin_ns) / 1_000_000;
        if result.is_ok() {
            println!(P, "ok {} in {took_ms} ms", case.name);
        }
        outcome.add::<P>(case.name, result);
    }
}

fn skip<P: Target>(cases: &[Case<P>], outcome: &mut Outcome) {
    for case in cases {
        outcome.skip::<P>(case.name, format_args!("needs another core, and a board that starts stopped cores again"));
    }
}

/// Makes the crate a test image for a board.
#[macro_export]
macro_rules! suite {
    ($board:ty) => {
        static SUITE: $crate::Suite<Cpu> = $crate::Suite::new();

        impl $crate::Target for Cpu {
            fn suite() -> &'static $crate::Suite<Self> {
                &SUITE
            }
        }

        $crate::musubi_metal::image! {
            pub Cpu: $board, $crate::CORES, $crate::main::<Cpu>,
            serve: SUITE.calls.serve(), rung: SUITE.rung(), idle: $crate::everywhere::idle::<Cpu>
        }
    };
}

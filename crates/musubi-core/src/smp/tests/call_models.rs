//! loom models of causes, call queue, flush requests and boot mailboxes. Rings are relaxed stores, so no order comes from
//! the model of the interrupt. Run with `MUSUBI_MUTANT` set to a site of the cross calls, at least one of them must fail.

use loom::cell::UnsafeCell;

use super::models::explore;
use crate::smp::boot::{Boot, Patience, Start, State};
use crate::smp::causes::{Inbox, Raised};
use crate::smp::flush::Requests;
use crate::smp::queue::{Context, Phase, Queue, Task};
use crate::smp::{Causes, Cores, Processor};
use crate::sync::{AtomicU32, Ordering};

/// Preemptions in an execution; the runner asks for the same.
const PREEMPTIONS_MAX: usize = 2;

fn words<const N: usize>() -> [AtomicU32; N] {
    core::array::from_fn(|_| AtomicU32::new(0))
}

/// A word without order of its own; loom refuses an execution in which nothing orders two accesses.
struct Unordered(UnsafeCell<u32>);

// SAFETY: that others keep the accesses apart is what the models find out.
unsafe impl Sync for Unordered {}

impl Unordered {
    fn new() -> Self {
        Unordered(UnsafeCell::new(0))
    }

    fn set(&self, value: u32) {
        // SAFETY: loom checks each access.
        self.0.with_mut(|word| unsafe { *word = value });
    }

    fn get(&self) -> u32 {
        // SAFETY: loom checks each access.
        self.0.with(|word| unsafe { *word })
    }
}

/// One core's inbox, its interrupt line, what the causes are about, and what the owner took.
struct Line {
    inbox: Inbox,
    rung: AtomicU32,
    about: [AtomicU32; 2],
    took: AtomicU32,
}

impl Line {
    fn new() -> Self {
        let [rung, took] = words();
        Line { inbox: Inbox::new(), rung, about: words(), took }
    }

    fn raise(&self, number: usize) {
        self.about[number].store(1, Ordering::Relaxed);
        if self.inbox.raise(Causes::from_bits(1 << number)) == Raised::Ring {
            self.rung.store(1, Ordering::Relaxed);
        }
    }

    fn take(&self) {
        let causes = self.inbox.take().bits();
        for number in 0..2 {
            let shown = self.about[number].load(Ordering::Relaxed);
            assert!(causes & 1 << number == 0 || shown == 1, "a cause came before what it is about");
        }
        self.took.store(self.took.load(Ordering::Relaxed) | causes, Ordering::Relaxed);
    }

    /// Polls for a while, as an idle loop does.
    fn poll(&self) {
        let before = self.inbox.begin_polling();
        self.take();
        self.inbox.end_polling(before);
        self.take();
    }

    /// When all is over, the interrupt has come if it was rung.
    fn judge(&self, causes: u32) {
        if self.rung.load(Ordering::Relaxed) == 1 {
            self.take();
        }
        assert_eq!(self.took.load(Ordering::Relaxed), causes, "a cause was lost");
    }
}

#[test]
fn loom_no_cause_is_lost_by_a_core_that_stops_polling() {
    let core = |line: &Line, core| match core {
        0 => line.raise(0),
        _ => line.poll(),
    };
    explore::<_, 2>(PREEMPTIONS_MAX, Line::new, core, |line| line.judge(0b1));
}

#[test]
fn loom_causes_of_two_raisers_coalesce() {
    let core = |line: &Line, core| match core {
        0 | 1 => line.raise(core),
        _ => line.poll(),
    };
    explore::<_, 3>(PREEMPTIONS_MAX, Line::new, core, |line| line.judge(0b11));
}

/// The queue of one core, and what ran on it: a bit for each argument, in the order of `numbers`.
struct Desk {
    queue: Queue<3>,
    line: Line,
    ran: AtomicU32,
    /// What the last call left. Writer: the called function.
    result: Unordered,
    /// Bits of arguments whose calls were withdrawn. Writer: the caller.
    withdrawn: AtomicU32,
}

impl Desk {
    fn new() -> Self {
        let [ran, withdrawn] = words();
        Desk { queue: Queue::new(), line: Line::new(), ran, result: Unordered::new(), withdrawn }
    }

    fn post(&self, caller: usize, argument: usize) -> bool {
        let task = Task { function: |_| {}, argument, context: Context::Anywhere, posted_ns: 0 };
        self.queue.post(caller, 0, task)
    }

    fn sweep(&self) {
        self.queue.sweep(Context::Anywhere, |caller, slot| {
            let Some(task) = self.queue.accept(Context::Anywhere, caller, slot) else { return };
            let ran = self.ran.load(Ordering::Relaxed);
            assert_eq!(ran & 1 << task.argument, 0, "a call ran twice");
            self.ran.store(ran | 1 << task.argument, Ordering::Relaxed);
            self.result.set(task.argument as u32);
            self.queue.complete(caller, slot);
        });
    }

    fn ran(&self) -> u32 {
        self.ran.load(Ordering::Relaxed)
    }
}

#[test]
fn loom_queued_calls_run_once() {
    let core = |desk: &Desk, core| match core {
        0 | 1 => assert!(desk.post(core, 1 + core)),
        _ => {
            desk.sweep();
            desk.sweep();
        }
    };
    let judge = |desk: &Desk| {
        desk.sweep();
        assert_eq!(desk.ran(), 0b110, "a call was lost");
    };
    explore::<_, 3>(PREEMPTIONS_MAX, Desk::new, core, judge);
}

#[test]
fn loom_a_withdrawn_call_never_runs_and_its_place_is_used_again() {
    let core = |desk: &Desk, core| match core {
        0 => {
            assert!(desk.post(0, 1));
            if desk.queue.withdraw(0, 0) {
                desk.withdrawn.store(1 << 1, Ordering::Relaxed);
            }
            if !desk.post(0, 2) {
                desk.withdrawn.store(1 << 2, Ordering::Relaxed);
            }
        }
        _ => {
            desk.sweep();
            desk.sweep();
        }
    };
    let judge = |desk: &Desk| {
        desk.sweep();
        assert_eq!(desk.ran() ^ desk.withdrawn.load(Ordering::Relaxed), 0b110, "withdrawn and ran, or neither");
    };
    explore::<_, 2>(PREEMPTIONS_MAX, Desk::new, core, judge);
}

#[test]
fn loom_a_completed_call_shows_its_results() {
    let core = |desk: &Desk, core| match core {
        0 => {
            assert!(desk.post(0, 1));
            // The called core goes on here; loom finds no reason of its own to let it.
            loom::thread::yield_now();
            if desk.queue.phase(0, 0) == Phase::Free {
                assert_eq!(desk.result.get(), 1, "completed before its results");
            }
        }
        _ => desk.sweep(),
    };
    explore::<_, 2>(PREEMPTIONS_MAX, Desk::new, core, |desk| {
        desk.sweep();
        assert_eq!(desk.ran(), 0b10);
    });
}

#[test]
fn loom_an_interrupted_core_finds_the_call_that_it_was_rung_for() {
    let core = |desk: &Desk, core| match core {
        0 => {
            assert!(desk.post(0, 1));
            desk.line.raise(0);
        }
        _ => {
            desk.line.take();
            desk.sweep();
        }
    };
    let judge = |desk: &Desk| {
        let rung = desk.line.rung.load(Ordering::Relaxed) == 1;
        if rung {
            desk.line.take();
            desk.sweep();
        }
        assert!(rung, "nobody polls, so somebody rings");
        assert_eq!(desk.ran(), 0b10, "the call was lost");
    };
    explore::<_, 2>(PREEMPTIONS_MAX, Desk::new, core, judge);
}

/// Flush requests of one core by two others, each after a write that the flush has to cover.
struct Flushing {
    requests: Requests,
    written: [AtomicU32; 2],
    /// What the flush covered. Writer: the flushing core.
    covered: [AtomicU32; 2],
}

impl Flushing {
    fn ask(&self, core: usize) {
        self.written[core].store(1, Ordering::Relaxed);
        let number = self.requests.ask();
        if self.requests.is_answered(number) {
            assert_eq!(self.covered[core].load(Ordering::Relaxed), 1, "answered by an older flush");
        }
    }

    fn answer(&self) {
        self.requests.answer(|| {
            for (written, covered) in self.written.iter().zip(&self.covered) {
                covered.store(written.load(Ordering::Relaxed), Ordering::Relaxed);
            }
        });
    }
}

#[test]
fn loom_an_answered_flush_covers_what_was_written_before_the_request() {
    let prepare = || Flushing { requests: Requests::new(), written: words(), covered: words() };
    let core = |flushing: &Flushing, core| match core {
        0 | 1 => flushing.ask(core),
        _ => flushing.answer(),
    };
    explore::<_, 3>(PREEMPTIONS_MAX, prepare, core, |flushing| {
        flushing.answer();
        assert!(flushing.requests.is_answered(2));
    });
}

loom::thread_local! {
    static CLOCK: core::cell::Cell<u64> = core::cell::Cell::new(0);
}

/// Cores whose time is how often they have looked at the clock.
struct Looking;

// SAFETY: only the boot processor asks for its number; there are no handlers.
unsafe impl Processor for Looking {
    const CORES: usize = 2;
    type Mask = ();

    fn core() -> usize {
        1
    }
    fn level() -> usize {
        0
    }
    fn mask() {}
    fn restore((): ()) {}
    fn is_masked() -> bool {
        true
    }
    fn relax() {
        loom::thread::yield_now();
    }
    fn signal() {}
    fn serve() {}
    fn ring(_: usize) {}
    fn now_ns() -> u64 {
        CLOCK.with(|clock| clock.replace(clock.get() + 1))
    }
}

/// A boot processor (core 1) and one that starts (core 0).
struct Starting {
    boot: Boot<Looking, 2>,
    /// The start register of the hardware.
    power: AtomicU32,
    /// What the starting core set up.
    set_up: Unordered,
    went: AtomicU32,
}

const START: Start = Start { stack_top: 0x1000, entry: 0x2000, argument: 3 };
/// In looks, which are the model's clock.
const PATIENCE: Patience = Patience { arrive_ns: 2, ready_ns: 3 };

impl Starting {
    fn new() -> Self {
        let [power, went] = words();
        Starting { boot: Boot::new(), power, set_up: Unordered::new(), went }
    }

    fn start(&self) {
        let ask = |_| {
            self.power.store(1, Ordering::Relaxed);
            Ok(())
        };
        let online = self.boot.start_all(Cores::one(0), PATIENCE, |_| START, ask);
        assert!(!online.contains(0) || self.set_up.get() == 1, "online before it was set up");
    }

    fn run(&self) {
        if self.power.load(Ordering::Relaxed) == 0 {
            loom::skip_branch();
        }
        let Some(start) = self.boot.arrive(0) else { return };
        assert_eq!(start, START, "arrived before its mailbox");
        self.set_up.set(1);
        if self.boot.await_go(0, 2) {
            assert!(self.boot.took(0) > 0, "let go before the boot processor had written what it may rely on");
            self.went.store(1, Ordering::Relaxed);
        }
    }
}

#[test]
fn loom_boot_processor_and_core_agree_whether_it_is_online() {
    let core = |starting: &Starting, core| match core {
        0 => starting.run(),
        _ => starting.start(),
    };
    explore::<_, 2>(PREEMPTIONS_MAX, Starting::new, core, |starting| {
        let went = starting.went.load(Ordering::Relaxed) == 1;
        let state = starting.boot.state(0);
        assert_eq!(went, state == State::Online, "{state:?}");
        assert!(starting.boot.late().is_empty() || !went);
    });
}

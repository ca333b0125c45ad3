//! Calls, flushes and stops whose target never looks by itself: one thread is core 0, and what core 1 does, it does at the
//! instant at which core 0 serves.

use std::sync::Mutex;
use std::vec::Vec;

use super::threads::{Pending, Program, Threads, run};
use crate::error::Error;
use crate::smp::observe::{Checked, Event, Observer, Silent, Stage};
use crate::smp::queue::{Context, SLOTS, Task};
use crate::smp::{Cache, Causes, Cores, Handlers, Interprocessor, Order, Processor, Until, Work};
use crate::sync::{AtomicU32, Ordering};

/// Longer than any pause that a loaded host makes.
const LONG_NS: u64 = 60_000_000_000;

type Core = Threads<Two>;
static ORDER: Order = Order::new(&[], |_| ());
static ALL: Interprocessor<Core, Two, 2, Checked<Told>> = Interprocessor::observed(Checked::new(Told, &ORDER));
/// What core 1 does when core 0 next serves.
static MEANWHILE: Mutex<Option<fn()>> = Mutex::new(None);
static EVENTS: Mutex<Vec<Event>> = Mutex::new(Vec::new());
static STAGES: Mutex<Vec<Stage>> = Mutex::new(Vec::new());
static RESCHEDULED: AtomicU32 = AtomicU32::new(0);

struct Two;

impl Program for Two {
    const CORES: usize = 2;
    fn pending() -> &'static Pending {
        static PENDING: Pending = Pending::new();
        &PENDING
    }
    fn serve() {
        let meanwhile = MEANWHILE.lock().unwrap().take();
        meanwhile.unwrap_or(|| ())();
    }
}

impl Handlers for Two {
    fn reschedule() {
        RESCHEDULED.fetch_add(1, Ordering::Relaxed);
    }
    fn tick() {}
    fn flush_instructions() {}
    fn flush_data() {}
    fn flush_translations() {}
    fn stop() {}
}

/// Keeps what it is told.
#[derive(Debug)]
struct Told;

impl Observer for Told {
    const ON: bool = true;
    type Waits = <Silent as Observer>::Waits;
    fn note(&self, _: usize, event: Event, _: impl FnOnce() -> u64) {
        EVENTS.lock().unwrap().push(event);
    }
    fn measure(&self, _: usize, stage: Stage, _: u32) {
        STAGES.lock().unwrap().push(stage);
    }
}

/// Core 1 does something, on a thread of its own.
fn on_core_1(act: fn()) {
    run::<Two, _>(|core| {
        if core == 1 {
            act()
        }
    });
}

fn call(until: Until, deadline_ns: u64, meanwhile: Option<fn()>) -> (Result<(), Error>, Vec<Event>) {
    EVENTS.lock().unwrap().clear();
    *MEANWHILE.lock().unwrap() = meanwhile;
    let result = ALL.call_one(1, Work::new(|_| (), 0), until, deadline_ns);
    assert_eq!(ALL.slots[0].load(Ordering::Relaxed), 0, "its slot is free again");
    (result, EVENTS.lock().unwrap().clone())
}

fn error(silent: Cores, running: Cores, offline: Cores) -> Result<(), Error> {
    Err(Error::Unresponsive { silent, running, offline })
}

/// When the call that is under way was made, at the earliest, and at the latest.
static POSTED: [AtomicU32; 2] = [const { AtomicU32::new(0) }; 2];

/// In one test, as core 1 is the same for all.
#[test]
fn each_end_of_a_call_is_told_as_what_it_is() {
    let (none, one) = (Cores::NONE, Cores::one(1));
    run::<Two, _>(|_| ALL.join());
    // Withdrawn in time, as often as one likes.
    for _ in 0..2 * SLOTS {
        let (result, events) = call(Until::Completed, 0, None);
        assert_eq!(result, error(one, none, none));
        assert!(events.contains(&Event::Withdrew(1)));
    }
    // Accepted is an answer to who asked for that, and at once: nobody rings again half the time later.
    let accept = || assert!(ALL.queues[1].accept(Context::Anywhere, 0, 0).is_some());
    let (result, events) = call(Until::Accepted, Core::now_ns() + LONG_NS, Some(accept));
    assert_eq!((result, events.contains(&Event::RangAgain(1))), (Ok(()), false));
    // Its place is taken, so the next call has another slot; the time of its posting travels with it.
    let accept_another = || {
        let [earliest, latest] = [POSTED[0].load(Ordering::Relaxed), Core::now_ns() as u32];
        let task: Task = ALL.queues[1].accept(Context::Anywhere, 0, 1).unwrap();
        assert!(task.posted_ns.wrapping_sub(earliest) <= latest.wrapping_sub(earliest));
    };
    POSTED[0].store(Core::now_ns() as u32, Ordering::Relaxed);
    let (result, events) = call(Until::Completed, 0, Some(accept_another));
    assert_eq!((result, events.contains(&Event::Overran(1))), (error(none, one, none), true));
    ALL.queues[1].complete(0, 0);
    ALL.queues[1].complete(0, 1);
    // It goes without having accepted, and after it has.
    let (result, _) =
        call(Until::Completed, Core::now_ns() + LONG_NS, Some(|| on_core_1(|| ALL.raise(1, Causes::STOP))));
    assert_eq!(result, error(none, none, one));
    on_core_1(|| ALL.join());
    let accept_and_go = || {
        assert!(ALL.queues[1].accept(Context::Anywhere, 0, 0).is_some());
        on_core_1(|| ALL.raise(1, Causes::STOP));
    };
    let (result, _) = call(Until::Completed, Core::now_ns() + LONG_NS, Some(accept_and_go));
    assert_eq!(result, error(none, one, none));
    on_core_1(|| ALL.join());
    // One that it runs.
    let (result, _) = call(Until::Completed, Core::now_ns() + LONG_NS, Some(|| on_core_1(|| ALL.serve())));
    assert_eq!(result, Ok(()));
    assert_eq!(*STAGES.lock().unwrap(), [Stage::ToAccepted, Stage::ToCompleted]);
    asked_again();
    ALL.raise(0, Causes::RESCHEDULE);
    assert_eq!(RESCHEDULED.load(Ordering::Relaxed), 1, "at the core itself the handler runs at once");
}

/// Half the time later it is rung at once more.
fn asked_again() {
    let within_ns = if cfg!(miri) { 4_000_000_000 } else { 1_000_000_000 };
    EVENTS.lock().unwrap().clear();
    let flushed = ALL.flush(Cache::Data, Cores::one(1), Core::now_ns() + within_ns);
    assert_eq!(flushed, error(Cores::one(1), Cores::NONE, Cores::NONE));
    let rang_again = || EVENTS.lock().unwrap().iter().filter(|event| **event == Event::RangAgain(1)).count();
    assert_eq!(rang_again(), 1);
    *MEANWHILE.lock().unwrap() = Some(|| assert_eq!(ALL.stopper.load(Ordering::Relaxed), 1, "core 0 stops the others"));
    let stopped = ALL.stop_others(Core::now_ns() + within_ns);
    assert_eq!(stopped, error(Cores::one(1), Cores::NONE, Cores::NONE));
    assert_eq!((rang_again(), ALL.stopper.load(Ordering::Relaxed)), (2, 0));
}

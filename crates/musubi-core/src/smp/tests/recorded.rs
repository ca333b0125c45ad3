//! Cross calls that are observed: counts, latencies, lock order, and the report on cores that hang.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::vec::Vec;

use super::calls::{LONG_NS, SHORT_NS, idle_handlers};
use super::threads::{self, Pending, Threads};
use crate::Error;
use crate::smp::observe::{Checked, Silent, Stage};
use crate::smp::order::{Class, Order, Violation};
use crate::smp::recorder::Recorder;
use crate::smp::stuck::{LockFacts, Report};
use crate::smp::ticket::Ticket;
use crate::smp::waiting::{Row, Witness};
use crate::smp::watch::Noted;
use crate::smp::{Cache, Cores, Handlers, Interprocessor, Lock, Processor, Until, Work};

static ROWS: [Row; 2] = [const { Row::new() }; 2];

struct Rows;

impl Witness for Rows {
    fn row(core: usize) -> Option<&'static Row> {
        ROWS.get(core)
    }
}

#[test]
fn nobody_rings_at_a_core_that_polls() {
    const CALLS: u32 = if cfg!(miri) { 10 } else { 100 };
    static PENDING: Pending = Pending::new();
    static ALL: Interprocessor<Core, Group, 2, Recorder<2, 8>> = Interprocessor::observed(Recorder::new());
    static STAGE: AtomicU32 = AtomicU32::new(0);
    static RAN: AtomicU32 = AtomicU32::new(0);
    struct Group;
    type Core = Threads<Group>;
    impl threads::Program for Group {
        const CORES: usize = 2;
        fn pending() -> &'static Pending {
            &PENDING
        }
        fn interrupt() {
            ALL.on_interrupt();
        }
        fn serve() {
            ALL.serve();
        }
    }
    idle_handlers!(Group);
    fn count(_: usize) {
        RAN.fetch_add(1, Ordering::Relaxed);
    }

    threads::run::<Group, _>(|core| {
        ALL.join();
        let deadline_ns = Core::now_ns() + LONG_NS;
        if core == 1 {
            // One stretch of polling, with no gap in which a ring would be due.
            ALL.poll(u32::MAX, || {
                STAGE.fetch_max(1, Ordering::SeqCst);
                STAGE.load(Ordering::SeqCst) == 2
            });
            return;
        }
        while STAGE.load(Ordering::SeqCst) != 1 {
            std::thread::yield_now();
        }
        for _ in 0..CALLS {
            ALL.call_one(1, Work::new(count, 0), Until::Completed, deadline_ns).unwrap();
            assert!(ALL.reschedule(1));
        }
        ALL.flush(Cache::Instructions, Cores::one(1), deadline_ns).unwrap();
        STAGE.store(2, Ordering::SeqCst);
    });
    let [caller, called] = [0, 1].map(|core| ALL.observer().counts(core));
    assert_eq!((caller.rings, called.interrupts, RAN.load(Ordering::Relaxed)), (0, 0, CALLS));
    assert_eq!(caller.polled + caller.coalesced, 2 * CALLS + 1);
    assert_eq!((caller.posted, called.accepted, called.completed), (CALLS, CALLS, CALLS));
    let median = ALL.observer().quantile_ns(1, Stage::ToAccepted, 500).unwrap();
    assert!(median <= ALL.observer().quantile_ns(1, Stage::ToCompleted, 1000).unwrap());
}

#[test]
fn a_call_that_takes_locks_awaited_with_a_lock_of_handlers_is_reported() {
    static PENDING: Pending = Pending::new();
    static ORDER: Order = Order::new(&["of handlers"], |violation| FOUND.lock().unwrap().push(violation));
    static FOUND: std::sync::Mutex<Vec<Violation>> = std::sync::Mutex::new(Vec::new());
    static LOCK: Ticket<Core, Class> = Ticket::watched(Class::new(&ORDER, 0));
    static ALL: Interprocessor<Core, Group, 2, Checked<Silent>> =
        Interprocessor::observed(Checked::new(Silent, &ORDER));
    struct Group;
    type Core = Threads<Group>;
    impl threads::Program for Group {
        const CORES: usize = 2;
        fn pending() -> &'static Pending {
            &PENDING
        }
        fn interrupt() {
            drop(LOCK.lock());
        }
    }
    idle_handlers!(Group);

    threads::interrupt_self::<Group>();
    let held = LOCK.lock();
    let offline = Err(Error::Unresponsive { silent: Cores::NONE, running: Cores::NONE, offline: Cores::one(1) });
    assert_eq!(ALL.call_one(1, Work::new(|_| {}, 0), Until::Completed, 0), offline);
    assert!(FOUND.lock().unwrap().is_empty(), "a short function waits for no lock");
    assert_eq!(ALL.call_one(1, Work::taking_locks(|_| {}, 0), Until::Completed, 0), offline);
    drop(held);
    assert_eq!(*FOUND.lock().unwrap(), [Violation::AwaitedHolding { class: 0 }]);
}

#[test]
fn a_lost_interrupt_costs_time_and_not_the_call() {
    // The second ring comes at half of this time.
    const TIME_NS: u64 = if cfg!(miri) { 4 } else { 16 } * SHORT_NS;
    static PENDING: Pending = Pending::new();
    static ALL: Interprocessor<Core, Group, 2, Recorder<2, 8>> = Interprocessor::observed(Recorder::new());
    static LOSE: AtomicBool = AtomicBool::new(true);
    static OVER: AtomicBool = AtomicBool::new(false);
    struct Group;
    type Core = Threads<Group>;
    impl threads::Program for Group {
        const CORES: usize = 2;
        fn pending() -> &'static Pending {
            &PENDING
        }
        fn interrupt() {
            if !LOSE.swap(false, Ordering::SeqCst) {
                ALL.on_interrupt();
            }
        }
    }
    idle_handlers!(Group);

    threads::run::<Group, _>(|core| {
        ALL.join();
        if core == 1 {
            while !OVER.load(Ordering::SeqCst) {
                Core::relax();
            }
            return;
        }
        while ALL.online().count() < 2 {
            std::thread::yield_now();
        }
        let begin_ns = Core::now_ns();
        let result = ALL.call_one(1, Work::new(|_| {}, 0), Until::Completed, begin_ns + TIME_NS);
        assert_eq!(result, Ok(()));
        assert!(Core::now_ns() - begin_ns >= TIME_NS / 2);
        OVER.store(true, Ordering::SeqCst);
    });
    let counts = ALL.observer().counts(0);
    assert_eq!((counts.rings, counts.rings_again), (2, 1));
    assert_eq!(ALL.observer().counts(1).interrupts, 1);
}

#[test]
fn a_report_names_lock_holder_and_waiters_of_cores_that_hang() {
    static PENDING: Pending = Pending::new();
    static ALL: Interprocessor<Core, Group, 2, Recorder<2, 8, Rows>> = Interprocessor::observed(Recorder::new());
    static LOCK: Ticket<Core, Noted<Rows>> = Ticket::watched(Noted::new());
    static HELD: AtomicBool = AtomicBool::new(false);
    struct Group;
    type Core = Threads<Group>;
    impl threads::Program for Group {
        const CORES: usize = 2;
        fn pending() -> &'static Pending {
            &PENDING
        }
        fn interrupt() {
            ALL.on_interrupt();
        }
        // A program that forgot to serve in its waiting loops.
    }
    idle_handlers!(Group);
    fn nothing(_: usize) {}

    let reports = threads::run::<Group, _>(|core| {
        ALL.join();
        while ALL.online().count() < 2 {
            std::thread::yield_now();
        }
        if core == 1 {
            while !HELD.load(Ordering::SeqCst) {
                std::thread::yield_now();
            }
            drop(LOCK.lock());
            return std::string::String::new();
        }
        let held = LOCK.lock();
        HELD.store(true, Ordering::SeqCst);
        while ROWS[1].waits().count() == 0 {
            std::thread::yield_now();
        }
        let result = ALL.call_one(1, Work::new(nothing, 0), Until::Completed, Core::now_ns() + SHORT_NS);
        assert!(matches!(result, Err(Error::Unresponsive { silent, .. }) if silent == Cores::one(1)), "{result:?}");
        let locks = [LockFacts { name: "of the test", address: LOCK.watch().address(), holder: Some(0) }];
        let rows = ROWS.each_ref();
        let now_ns = Core::now_ns();
        let trace = Some(ALL.observer() as &dyn crate::smp::recorder::Trace);
        let report = Report { rows: &rows, locks: &locks, trace, now_ns, stuck_after_ns: SHORT_NS / 2 };
        let text = std::format!("{report}");
        drop(held);
        text
    });
    for part in ["lock of the test, held by core 0, waited for by 1", "core 0, ", "withdrew a call at core 1"] {
        assert!(reports[0].contains(part), "{}", reports[0]);
    }
}

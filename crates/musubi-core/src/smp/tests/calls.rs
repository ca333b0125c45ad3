//! Cross calls, flushes and stops among threads that stand for cores.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::vec::Vec;

use super::threads::{self, Pending, Threads};
use crate::Error;
use crate::smp::queue::Context;
use crate::smp::{Cache, Cores, Handlers, Interprocessor, Processor, Until, Work};

/// Longer than any pause that a loaded host makes.
pub const LONG_NS: u64 = 60_000_000_000;
/// Until a core counts as dead where a test wants one.
pub const SHORT_NS: u64 = if cfg!(miri) { 2_000_000_000 } else { 200_000_000 };

/// What the cores of one test have in common. Each test has a static one, through [`cores!`].
struct Shared {
    pending: Pending,
    began: AtomicUsize,
    finished: AtomicUsize,
    ran: [AtomicU32; 4],
    flushed: [AtomicU32; 4],
    ticks: AtomicU32,
    rescheduled: AtomicU32,
    own: AtomicU32,
    stopped: AtomicU32,
    failed: AtomicBool,
}

impl Shared {
    const fn new() -> Self {
        let [ticks, rescheduled, own, stopped] = [const { AtomicU32::new(0) }; 4];
        Shared {
            pending: Pending::new(),
            began: AtomicUsize::new(0),
            finished: AtomicUsize::new(0),
            ran: [const { AtomicU32::new(0) }; 4],
            flushed: [const { AtomicU32::new(0) }; 4],
            ticks,
            rescheduled,
            own,
            stopped,
            failed: AtomicBool::new(false),
        }
    }
}

/// Defines `Group`, a program of so many cores, with a static `SHARED` and a static `ALL`, for one test.
macro_rules! cores {
    ($count:literal) => {
        static SHARED: Shared = Shared::new();
        static ALL: Interprocessor<Threads<Group>, Group, $count> = Interprocessor::new();
        struct Group;
        type Core = Threads<Group>;

        impl threads::Program for Group {
            const CORES: usize = $count;
            fn pending() -> &'static Pending {
                &SHARED.pending
            }
            fn interrupt() {
                ALL.on_interrupt();
            }
            fn serve() {
                ALL.serve();
            }
        }

        impl Handlers for Group {
            fn reschedule() {
                SHARED.rescheduled.fetch_add(1, Ordering::Relaxed);
            }
            fn tick() {
                SHARED.ticks.fetch_add(1, Ordering::Relaxed);
            }
            fn flush_instructions() {
                SHARED.flushed[Core::core()].fetch_add(1, Ordering::Relaxed);
            }
            fn flush_data() {
                SHARED.flushed[Core::core()].fetch_add(100, Ordering::Relaxed);
            }
            fn flush_translations() {
                SHARED.flushed[Core::core()].fetch_add(10_000, Ordering::Relaxed);
            }
            fn stop() {
                SHARED.stopped.fetch_add(1, Ordering::Relaxed);
            }
            fn program(number: u32) {
                SHARED.own.fetch_add(1 << number, Ordering::Relaxed);
            }
        }

        /// Serves until every core has come here.
        #[allow(dead_code, reason = "not every test ends together")]
        fn finish() {
            SHARED.finished.fetch_add(1, Ordering::SeqCst);
            while !ALL.poll(16, || SHARED.finished.load(Ordering::SeqCst) == $count) {}
        }

        /// Joins and waits until every core has.
        #[allow(dead_code, reason = "not every test begins together")]
        fn begin() {
            ALL.join();
            SHARED.began.fetch_add(1, Ordering::SeqCst);
            while SHARED.began.load(Ordering::SeqCst) != $count {
                std::thread::yield_now();
            }
        }

        #[allow(dead_code, reason = "not every test waits")]
        fn within(span_ns: u64) -> u64 {
            Core::now_ns() + span_ns
        }
    };
}

/// Handlers that do nothing.
macro_rules! idle_handlers {
    ($name:ident) => {
        impl Handlers for $name {
            fn reschedule() {}
            fn tick() {}
            fn flush_instructions() {}
            fn flush_data() {}
            fn flush_translations() {}
            fn stop() {}
        }
    };
}
pub(super) use idle_handlers;

#[test]
fn one_core_alone_needs_no_other() {
    static PENDING: Pending = Pending::new();
    static ALL: Interprocessor<Core, Group, 1> = Interprocessor::new();
    static RAN: AtomicU32 = AtomicU32::new(0);
    struct Group;
    type Core = Threads<Group>;
    impl threads::Program for Group {
        const CORES: usize = 1;
        fn pending() -> &'static Pending {
            &PENDING
        }
    }
    idle_handlers!(Group);

    threads::run::<Group, _>(|_| {
        ALL.join();
        let work = Work::new(|_| _ = RAN.fetch_add(1, Ordering::Relaxed), 0);
        ALL.call_one(0, work, Until::Completed, 0).unwrap();
        ALL.call_others(work, Until::Completed, 0).unwrap();
        ALL.flush(Cache::Data, Cores::one(0), 0).unwrap();
        ALL.broadcast_tick();
        ALL.stop_others(0).unwrap();
        let nobody = ALL.call_one(1, work, Until::Completed, 0);
        let [silent, running] = [Cores::NONE; 2];
        assert_eq!(nobody, Err(Error::Unresponsive { silent, running, offline: Cores::one(1) }));
    });
    assert_eq!(RAN.load(Ordering::Relaxed), 1);
}

/// Calls among cores in tests: few, or as many as `MUSUBI_CALLS` says.
fn calls() -> u32 {
    let usual = if cfg!(miri) { 20 } else { 10_000 };
    std::env::var("MUSUBI_CALLS").ok().and_then(|text| text.parse().ok()).unwrap_or(usual)
}

/// Each core calls the next; the called function counts, and checks its argument.
macro_rules! every_call_runs_once {
    ($name:ident, $count:literal) => {
        #[test]
        fn $name() {
            cores!($count);
            fn count(argument: usize) {
                let ran = SHARED.ran[Core::core()].fetch_add(1, Ordering::Relaxed);
                assert!(Core::is_masked());
                SHARED.failed.fetch_or(ran as usize != argument, Ordering::Relaxed);
            }
            let calls = calls();
            threads::run::<Group, _>(|core| {
                begin();
                for number in 0..calls {
                    let until = if number % 3 == 0 { Until::Completed } else { Until::Accepted };
                    let work = match number % 5 {
                        0 => Work::taking_locks(count, number as usize),
                        _ => Work::new(count, number as usize),
                    };
                    ALL.call_one((core + 1) % $count, work, until, within(LONG_NS)).unwrap();
                }
                finish();
            });
            assert!(!SHARED.failed.load(Ordering::Relaxed), "a call came with another's argument or out of order");
            for ran in &SHARED.ran[..$count] {
                assert_eq!(ran.load(Ordering::Relaxed), calls);
            }
        }
    };
}

every_call_runs_once!(every_call_runs_once_on_two, 2);
every_call_runs_once!(every_call_runs_once_on_four, 4);

#[test]
fn calls_to_all_at_the_same_time_from_all() {
    const ROUNDS: u32 = if cfg!(miri) { 5 } else { 100 };
    cores!(4);
    fn count(from: usize) {
        SHARED.ran[Core::core()].fetch_add(1 << (8 * from), Ordering::Relaxed);
    }
    threads::run::<Group, _>(|core| {
        begin();
        for _ in 0..ROUNDS {
            ALL.call_many(Cores::first(4), Work::new(count, core), Until::Completed, within(LONG_NS)).unwrap();
        }
        finish();
    });
    for ran in &SHARED.ran {
        assert_eq!(ran.load(Ordering::Relaxed), ROUNDS * 0x0101_0101);
    }
}

#[test]
fn masked_cores_that_call_each_other_go_on() {
    cores!(2);
    fn nothing(_: usize) {}
    threads::run::<Group, _>(|core| {
        begin();
        for _ in 0..calls() / 10 {
            let mask = Core::mask();
            ALL.call_one(1 - core, Work::new(nothing, 0), Until::Completed, within(LONG_NS)).unwrap();
            Core::restore(mask);
        }
        finish();
    });
}

#[test]
fn a_called_function_calls_back() {
    cores!(2);
    fn back(depth: usize) {
        SHARED.ran[Core::core()].fetch_add(1, Ordering::Relaxed);
        if depth > 0 {
            let other = 1 - Core::core();
            ALL.call_one(other, Work::new(back, depth - 1), Until::Completed, within(LONG_NS)).unwrap();
        }
    }
    threads::run::<Group, _>(|core| {
        begin();
        if core == 0 {
            ALL.call_one(1, Work::new(back, 5), Until::Completed, within(LONG_NS)).unwrap();
        }
        finish();
    });
    assert_eq!([0, 1].map(|core| SHARED.ran[core].load(Ordering::Relaxed)), [3, 3]);
}

#[test]
fn too_many_nested_calls_are_refused() {
    cores!(2);
    fn back(depth: usize) {
        let other = 1 - Core::core();
        match ALL.call_one(other, Work::new(back, depth + 1), Until::Completed, within(LONG_NS)) {
            Err(Error::TooDeep) => drop(SHARED.ran[0].fetch_add(depth as u32, Ordering::Relaxed)),
            result => result.unwrap(),
        }
    }
    threads::run::<Group, _>(|core| {
        begin();
        if core == 0 {
            back(0);
        }
        finish();
    });
    assert_eq!(SHARED.ran[0].load(Ordering::Relaxed), 2 * crate::smp::queue::SLOTS as u32);
}

#[test]
fn a_dead_core_is_named_within_the_time_and_its_call_never_runs() {
    cores!(3);
    static DEAD: AtomicBool = AtomicBool::new(true);
    fn count(_: usize) {
        SHARED.ran[Core::core()].fetch_add(1, Ordering::Relaxed);
    }
    threads::run::<Group, _>(|core| {
        begin();
        if core == 2 {
            while DEAD.load(Ordering::SeqCst) {
                std::thread::yield_now();
            }
        }
        if core == 0 {
            let begin_ns = Core::now_ns();
            let result = ALL.call_others(Work::new(count, 0), Until::Completed, within(SHORT_NS));
            let took_ns = Core::now_ns() - begin_ns;
            let [running, offline] = [Cores::NONE; 2];
            assert_eq!(result, Err(Error::Unresponsive { silent: Cores::one(2), running, offline }));
            assert!((SHORT_NS..LONG_NS).contains(&took_ns), "{took_ns} ns");
            let flushed = ALL.flush(Cache::Data, Cores::first(3), within(SHORT_NS));
            assert_eq!(flushed, Err(Error::Unresponsive { silent: Cores::one(2), running, offline }));
            DEAD.store(false, Ordering::SeqCst);
            ALL.call_one(2, Work::new(count, 0), Until::Completed, within(LONG_NS)).unwrap();
        }
        finish();
    });
    assert_eq!([0, 1, 2].map(|core| SHARED.ran[core].load(Ordering::Relaxed)), [0, 1, 1]);
    assert_eq!([0, 1, 2].map(|core| SHARED.flushed[core].load(Ordering::Relaxed)), [100, 100, 100]);
}

#[test]
fn a_core_stuck_in_a_function_is_named_as_running() {
    cores!(2);
    static STUCK: AtomicBool = AtomicBool::new(true);
    fn hang(_: usize) {
        while STUCK.load(Ordering::SeqCst) {
            std::thread::yield_now();
        }
    }
    threads::run::<Group, _>(|core| {
        begin();
        if core == 0 {
            let [silent, offline] = [Cores::NONE; 2];
            let running = Cores::one(1);
            let result = ALL.call_one(1, Work::new(hang, 0), Until::Completed, within(SHORT_NS));
            assert_eq!(result, Err(Error::Unresponsive { silent, running, offline }));
            // The slot is used again; its place at the stuck core is not.
            ALL.call_one(1, Work::new(hang, 0), Until::Completed, within(SHORT_NS)).unwrap_err();
            ALL.call_one(0, Work::new(|_| STUCK.store(false, Ordering::SeqCst), 0), Until::Completed, 0).unwrap();
            ALL.call_one(1, Work::new(hang, 0), Until::Completed, within(LONG_NS)).unwrap();
        }
        finish();
    });
}

#[test]
fn cores_that_are_offline_are_named_at_once() {
    cores!(3);
    fn nothing(_: usize) {}
    threads::run::<Group, _>(|core| {
        begin();
        if core == 1 {
            ALL.leave();
        }
        if core == 0 {
            while ALL.online().contains(1) {
                std::thread::yield_now();
            }
            let [silent, running] = [Cores::NONE; 2];
            let result = ALL.call_many(Cores::first(32), Work::new(nothing, 0), Until::Completed, within(LONG_NS));
            let offline = Cores::first(32).without(Cores::one(0)).without(Cores::one(2));
            assert_eq!(result, Err(Error::Unresponsive { silent, running, offline }));
            assert!(!ALL.reschedule(1) && !ALL.reschedule(99) && ALL.reschedule(2) && ALL.reschedule(0));
        }
        finish();
    });
    assert_eq!(SHARED.rescheduled.load(Ordering::Relaxed), 2);
}

#[test]
fn a_core_that_leaves_is_given_up_at_once() {
    cores!(2);
    fn nothing(_: usize) {}
    threads::run::<Group, _>(|core| {
        begin();
        match core {
            0 => while ALL.call_one(1, Work::taking_locks(nothing, 0), Until::Completed, within(LONG_NS)).is_ok() {},
            _ => {
                let mask = Core::mask();
                std::thread::sleep(core::time::Duration::from_millis(5));
                ALL.leave();
                Core::restore(mask);
            }
        }
        finish();
    });
}

#[test]
fn causes_coalesce_and_none_overwrites_another() {
    cores!(2);
    threads::run::<Group, _>(|core| {
        begin();
        if core == 0 {
            for number in 0..8 {
                ALL.raise(1, crate::smp::Causes::program(number));
                ALL.raise(2, crate::smp::Causes::program(number));
            }
            ALL.broadcast_tick();
            assert!(ALL.reschedule(1));
            for cache in Cache::ALL {
                ALL.flush(cache, Cores::one(1), within(LONG_NS)).unwrap();
            }
        }
        finish();
    });
    assert_eq!(SHARED.own.load(Ordering::Relaxed), 0xff);
    assert_eq!([&SHARED.ticks, &SHARED.rescheduled].map(|count| count.load(Ordering::Relaxed)), [1, 1]);
    assert_eq!(SHARED.flushed[1].load(Ordering::Relaxed), 10_101);
}

#[test]
fn no_cause_of_a_flood_is_left_without_an_interrupt() {
    cores!(4);
    threads::run::<Group, _>(|core| {
        begin();
        if core > 0 {
            (0..calls()).for_each(|_| ALL.raise(0, crate::smp::Causes::program(core as u32)));
            SHARED.finished.fetch_add(1, Ordering::SeqCst);
            return;
        }
        // Looks at nothing by itself; only its interrupt is taken.
        while SHARED.finished.load(Ordering::SeqCst) < 3 {
            Core::relax();
        }
        Core::relax();
        assert!(ALL.is_quiet(0), "a cause that nobody has rung for");
    });
    let handled = SHARED.own.load(Ordering::Relaxed);
    assert!((0b1110..=0b1110 * calls()).contains(&handled), "{handled}");
}

#[test]
fn flushes_from_all_sides_are_all_answered() {
    cores!(4);
    threads::run::<Group, _>(|_| {
        begin();
        for _ in 0..calls() / 10 {
            ALL.flush(Cache::Translations, Cores::first(4), within(LONG_NS)).unwrap();
        }
        finish();
    });
}

#[test]
fn one_of_two_that_stop_the_others_wins() {
    cores!(4);
    let results: Vec<_> = threads::run::<Group, _>(|core| {
        begin();
        match core {
            0 | 1 => Some(ALL.stop_others(within(LONG_NS))),
            _ => {
                while ALL.online().contains(core) {
                    ALL.poll(4, || false);
                }
                None
            }
        }
    });
    assert_eq!(results.iter().filter(|result| **result == Some(Ok(()))).count(), 1, "{results:?}");
    assert_eq!((SHARED.stopped.load(Ordering::Relaxed), ALL.online().count()), (3, 1));
}

#[test]
fn a_stop_ends_the_calls_that_wait_for_the_stopped() {
    cores!(3);
    fn until_stopped(_: usize) {
        while ALL.online().contains(Core::core()) {
            Core::serve();
        }
    }
    threads::run::<Group, _>(|core| {
        begin();
        if core == 0 {
            // Accepted by core 1, which then is stopped inside; this core is stopped while it waits.
            let result = ALL.call_one(1, Work::new(until_stopped, 0), Until::Completed, within(LONG_NS));
            assert!(result.is_ok() || matches!(result, Err(Error::Unresponsive { .. })), "{result:?}");
        } else if core == 2 {
            std::thread::sleep(core::time::Duration::from_millis(5));
            ALL.stop_others(within(LONG_NS)).unwrap();
        } else {
            while ALL.online().contains(1) {
                ALL.poll(4, || false);
            }
        }
    });
    assert_eq!(ALL.online(), Cores::one(2));
}

#[test]
fn a_core_that_starts_again_has_a_clean_desk() {
    cores!(2);
    static RESTARTED: AtomicBool = AtomicBool::new(false);
    fn count(_: usize) {
        SHARED.ran[Core::core()].fetch_add(1, Ordering::Relaxed);
    }
    threads::run::<Group, _>(|core| {
        begin();
        if core == 0 {
            while !RESTARTED.load(Ordering::SeqCst) {
                std::thread::yield_now();
            }
        } else {
            // Its earlier life ends while it serves a call, and with every slot in use.
            let accepted = ALL.queues[1].post(0, 0, Work::new(count, 0).0);
            assert!(accepted && ALL.queues[1].accept(Context::Anywhere, 0, 0).is_some());
            ALL.slots[1].store(u32::MAX, Ordering::Relaxed);
            assert_eq!(ALL.call_one(0, Work::new(count, 0), Until::Completed, 0), Err(Error::TooDeep));
            ALL.leave();
            ALL.join();
            RESTARTED.store(true, Ordering::SeqCst);
        }
        ALL.call_one(1 - core, Work::new(count, 0), Until::Completed, within(LONG_NS)).unwrap();
        finish();
    });
    assert_eq!([0, 1].map(|core| SHARED.ran[core].load(Ordering::Relaxed)), [1, 1]);
}

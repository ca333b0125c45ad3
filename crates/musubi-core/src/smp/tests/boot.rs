//! Starts of cores that are threads of a host, and of cores that do not start as they should.

use std::string::ToString;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use super::threads::{Pending, Program, Threads, run};
use crate::smp::boot::{Boot, Patience, Reason, Start, State};
use crate::smp::{Cores, Processor};

struct Group;

impl Program for Group {
    const CORES: usize = 1;
    fn pending() -> &'static Pending {
        static PENDING: Pending = Pending::new();
        &PENDING
    }
}

type Core = Threads<Group>;
type Mailboxes = Boot<Core, 4>;

const LONG: Patience = Patience { arrive_ns: 60_000_000_000, ready_ns: 60_000_000_000 };
const SHORT: Patience = Patience { arrive_ns: 20_000_000, ready_ns: 40_000_000 };

fn start(core: usize) -> Start {
    Start { stack_top: 0x1000 * core, entry: 0x8000, argument: 7 + core }
}

fn deadline_ns() -> u64 {
    Core::now_ns() + LONG.ready_ns
}

#[test]
fn all_start_at_the_same_time_with_their_own_mailboxes() {
    static BOOT: Mailboxes = Boot::new();
    static HERE: AtomicUsize = AtomicUsize::new(0);
    run::<Group, _>(|_| {
        let online = BOOT.start_all(Cores::first(4), LONG, start, |core| {
            thread::spawn(move || {
                assert_eq!(BOOT.arrive(core), Some(start(core)));
                // All three are under way together: none is ready before all have arrived.
                HERE.fetch_add(1, Ordering::SeqCst);
                while HERE.load(Ordering::SeqCst) < 3 {
                    thread::yield_now();
                }
                assert!(BOOT.await_go(core, deadline_ns()));
            });
            Ok(())
        });
        assert_eq!(online, Cores::first(4));
        assert!((1..4).all(|core| BOOT.took_ns(core).is_some_and(|took_ns| took_ns > 0)));
        assert_eq!((BOOT.failures().to_string().as_str(), BOOT.late()), ("", Cores::NONE));
    });
}

#[test]
fn each_failure_is_named_and_the_others_go_on() {
    static BOOT: Mailboxes = Boot::new();
    run::<Group, _>(|_| {
        let online = BOOT.start_all(Cores::first(4), SHORT, start, |core| match core {
            1 => Err(-3),
            2 => {
                BOOT.arrive(2).unwrap();
                BOOT.refuse(2, 42);
                Ok(())
            }
            _ => Ok(()),
        });
        assert_eq!(online, Cores::one(0));
        assert_eq!(
            [1, 2, 3].map(|core| BOOT.state(core)),
            [Reason::Refused(-3), Reason::Check(42), Reason::NotArrived].map(State::Failed)
        );
        assert_eq!(
            BOOT.failures().to_string(),
            "core 1: start refused with code -3\ncore 2: arrived, and its own check failed with code 42\n\
             core 3: did not arrive in time\n"
        );
    });
}

#[test]
fn a_late_core_parks_and_is_counted() {
    static BOOT: Mailboxes = Boot::new();
    run::<Group, _>(|_| {
        BOOT.start_all(Cores::first(3), SHORT, start, |core| {
            if core == 2 {
                BOOT.arrive(2).unwrap();
            }
            Ok(())
        });
        assert_eq!(BOOT.state(1), State::Failed(Reason::NotArrived));
        assert_eq!(BOOT.state(2), State::Failed(Reason::NotReady));
        assert_eq!(BOOT.arrive(1), None);
        assert!(!BOOT.await_go(2, deadline_ns()));
        assert_eq!(BOOT.late(), Cores::one(1).with(Cores::one(2)));
        // Nobody asks it again: it may still be on its stack.
        BOOT.start_all(Cores::one(1), SHORT, start, |_| unreachable!());
        assert!(BOOT.failures().to_string().contains("core 1: did not arrive in time (arrived late, parked)"));
    });
}

#[test]
fn a_shutdown_ends_a_start_that_is_under_way() {
    static BOOT: Mailboxes = Boot::new();
    run::<Group, _>(|_| {
        let online = BOOT.start_all(Cores::first(4), LONG, start, |core| {
            if core == 3 {
                thread::spawn(|| {
                    thread::sleep(Duration::from_millis(5));
                    BOOT.shut_down();
                });
            }
            Ok(())
        });
        assert_eq!(online, Cores::one(0));
        assert!((1..4).all(|core| BOOT.state(core) == State::Failed(Reason::Shutdown)));
        assert_eq!(BOOT.arrive(2), None);
    });
}

#[test]
fn a_core_that_nobody_lets_go_gives_up() {
    static BOOT: Mailboxes = Boot::new();
    run::<Group, _>(|_| {
        BOOT.start_all(Cores::one(1), LONG, start, |core| {
            BOOT.arrive(core).unwrap();
            assert!(!BOOT.await_go(core, Core::now_ns() + 1_000_000));
            Ok(())
        });
        assert_eq!(BOOT.state(1), State::Failed(Reason::NotReleased));
    });
}

#[test]
fn a_refused_or_retired_core_may_be_asked_again() {
    static BOOT: Mailboxes = Boot::new();
    let answer = |core| {
        BOOT.arrive(core).unwrap();
        thread::spawn(move || assert!(BOOT.await_go(core, deadline_ns())));
        Ok(())
    };
    run::<Group, _>(|_| {
        assert_eq!(BOOT.start_all(Cores::one(1), LONG, start, |_| Err(-1)), Cores::one(0));
        assert!(BOOT.start_all(Cores::one(1), LONG, start, answer).contains(1));
        BOOT.retire(1);
        assert_eq!(BOOT.state(1), State::Absent);
        assert!(BOOT.start_all(Cores::one(1), LONG, start, answer).contains(1));
    });
}

#[test]
fn any_core_can_be_the_boot_processor() {
    struct Three;
    impl Program for Three {
        const CORES: usize = 3;
        fn pending() -> &'static Pending {
            static PENDING: Pending = Pending::new();
            &PENDING
        }
    }
    static BOOT: Boot<Threads<Three>, 3> = Boot::new();
    run::<Three, _>(|core| match core {
        2 => assert_eq!(BOOT.start_all(Cores::first(3), LONG, start, |_| Ok(())), Cores::first(3)),
        _ => {
            while BOOT.state(core) == State::Absent {
                thread::yield_now();
            }
            assert_eq!(BOOT.arrive(core), Some(start(core)));
            assert!(BOOT.await_go(core, deadline_ns()));
        }
    });
}

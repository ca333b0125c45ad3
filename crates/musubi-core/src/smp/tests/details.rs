//! What the layer's words say one by one: marks of waits, addresses, times, stages of a start, permits of tries.

use std::vec::Vec;

use super::threads::{Pending, Program, Threads, run};
use crate::smp::atomics::{Bits, Counter};
use crate::smp::boot::{Boot, Patience, Start, State};
use crate::smp::clh::nodes;
use crate::smp::queue::{Context, Queue, SLOTS, Task};
use crate::smp::waiting::{Awaited, Row, Witness};
use crate::smp::{Clh, Cores, Lock, Processor, Sequence, Statistics, Ticket};

/// Defines a program with so many cores and nothing to serve.
macro_rules! program {
    ($name:ident, $cores:expr) => {
        struct $name;
        impl Program for $name {
            const CORES: usize = $cores;
            fn pending() -> &'static Pending {
                static PENDING: Pending = Pending::new();
                &PENDING
            }
        }
    };
}
program!(One, 1);
program!(Two, 2);

#[test]
fn each_wait_is_told_as_what_it_is() {
    static ROW: Row = Row::new();
    let cores = Cores::one(3);
    for what in [
        Awaited::Lock(0x1234),
        Awaited::Call(cores),
        Awaited::Flush(cores),
        Awaited::Boot(cores),
        Awaited::Stop(cores),
        Awaited::Other(7),
    ] {
        let wait = ROW.begin(what, 0x5_0000_0006);
        assert_eq!(ROW.waits().collect::<Vec<_>>(), [(what, 0x5_0000_0006)]);
        drop(wait);
    }
}

static LOCKS: Row = Row::new();
struct Sees;
impl Witness for Sees {
    fn row(core: usize) -> Option<&'static Row> {
        (core == 0).then_some(&LOCKS)
    }
}

/// Two locks are two to the report on a stuck core, and a lock that was got is waited for no more.
#[test]
fn a_lock_goes_by_an_address_of_its_own() {
    type Noted = crate::smp::Noted<Sees>;
    static BOTH: [(Ticket<Threads<One>, Noted>, u8); 2] =
        [(Ticket::watched(Noted::new()), 0), (Ticket::watched(Noted::new()), 1)];
    let [one, other] = [0, 1].map(|index| BOTH[index].0.watch().address());
    assert_ne!(one, other);
    assert_eq!(one, core::ptr::from_ref(BOTH[0].0.watch()).addr());
    let held = BOTH[0].0.lock();
    assert_eq!(LOCKS.waits().count(), 0, "it has what it waited for");
    drop(held);
}

#[test]
fn statistics_count_no_more_than_the_time_that_passed() {
    type Core = Threads<One>;
    let lock = Clh::<Core, { nodes(1) }, Statistics>::watched(Statistics::new());
    while Core::now_ns() < 20_000_000 {
        std::thread::yield_now();
    }
    let began_ns = Core::now_ns();
    for _ in 0..3 {
        drop(lock.lock());
    }
    let seen = lock.snapshot();
    let passed_ns = Core::now_ns() - began_ns;
    assert!(seen.wait_ns_total + seen.hold_ns_total <= passed_ns, "{seen:?} of {passed_ns} ns");
}

#[test]
fn a_start_shows_each_stage() {
    type Core = Threads<One>;
    static BOOT: Boot<Core, 2> = Boot::new();
    let start = Start { stack_top: 1, entry: 2, argument: 3 };
    let patience = Patience { arrive_ns: 60_000_000_000, ready_ns: 60_000_000_000 };
    assert_eq!((BOOT.state(1), BOOT.took_ns(1)), (State::Absent, None));
    let online = BOOT.start_all(
        Cores::first(2),
        patience,
        |_| start,
        |core| {
            assert_eq!(BOOT.state(core), State::Asked);
            std::thread::spawn(move || {
                let began = std::time::Instant::now();
                assert_eq!(BOOT.arrive(core), Some(start));
                assert!(matches!(BOOT.state(core), State::Started));
                // What a start takes is more than a nanosecond.
                while began.elapsed() < std::time::Duration::from_millis(2) {
                    std::thread::yield_now();
                }
                assert!(BOOT.await_go(core, Core::now_ns() + patience.ready_ns));
            });
            Ok(())
        },
    );
    assert_eq!((online, BOOT.state(1)), (Cores::first(2), State::Online));
    assert!(BOOT.took_ns(1).is_some_and(|took_ns| took_ns >= 2_000_000), "{:?}", BOOT.took_ns(1));
}

#[test]
fn counters_and_bits_know_zero_and_their_neighbours() {
    let counter = Counter::new(-1);
    assert!(!counter.add_negative(1), "0 is not negative");
    assert!(!counter.inc_not_zero());
    counter.set(5);
    assert!(counter.inc_not_zero() && counter.read() == 6);
    let bits = Bits::<1>::new();
    bits.set(3);
    assert!(!bits.test_and_clear(4) && bits.test(3));
    assert!(bits.test_and_clear(3) && !bits.test_and_clear(3));
}

#[test]
fn a_sequence_of_words_keeps_each() {
    let value = Sequence::<Threads<Two>, [u32; 3], 3>::zero();
    value.write([1, 2, 3]);
    assert_eq!(value.read(), [1, 2, 3]);
    run::<Two, _>(|core| {
        if core == 0 {
            value.update(|[a, b, c]| {
                assert_eq!(value.read(), [a, b, c], "who reads does not wait for who only thinks");
                [a + 10, b + 20, c + 30]
            });
        }
    });
    assert_eq!(value.read(), [11, 22, 33]);
}

fn nothing() -> Task {
    Task { function: |_| (), argument: 0, context: Context::Anywhere, posted_ns: 0 }
}

/// With more callers than one word has places for.
#[test]
fn a_sweep_names_each_caller_and_slot() {
    let queue = Queue::<9>::new();
    let places = [(0, 0), (3, SLOTS - 1), (7, 1), (8, 0), (8, SLOTS - 1)];
    assert!(places.iter().all(|&(caller, slot)| queue.post(caller, slot, nothing())));
    let mut served = Vec::new();
    queue.sweep(Context::Anywhere, |caller, slot| served.push((caller, slot)));
    assert_eq!(served, places);
    assert!(queue.is_quiet(Context::Anywhere), "each is taken out");
}

#[test]
fn who_begins_anew_has_accepted_nothing() {
    let queue = Queue::<2>::new();
    assert!(queue.post(0, 0, nothing()) && queue.post(1, 1, nothing()));
    assert!(queue.accept(Context::Anywhere, 1, 1).is_some());
    assert!(!queue.post(1, 1, nothing()));
    queue.forget_accepted();
    assert!(queue.post(1, 1, nothing()), "its place is free");
    assert!(!queue.post(0, 0, nothing()), "what was not accepted stays");
}

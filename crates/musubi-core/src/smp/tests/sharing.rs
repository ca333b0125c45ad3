//! Reader-writer lock, sequence lock, semaphore, mutex and atomics on threads; what a waiting loop serves.

use core::future::Future;
use core::pin::pin;
use core::task::{Context, Poll, Waker};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::Wake;
use std::vec::Vec;

use proptest::prelude::*;

use super::threads::{Pending, Program, Threads, run};
use crate::error::Error;
use crate::smp::atomics::{Bits, Counter};
use crate::smp::blocking::{Blocker, Futures, Wake as Wakes};
use crate::smp::clh::nodes;
use crate::smp::{Clh, Lock, Mutex, PhaseFair, Processor, ReadWrite, Semaphore, Sequence, Ticket};

const ROUNDS: u32 = if cfg!(miri) { 15 } else { 1500 };
/// A deadline that no test reaches.
const LATE_NS: u64 = u64::MAX;

/// Defines a program with so many cores that serves with the given function.
macro_rules! program {
    ($name:ident, $cores:expr, $serve:expr) => {
        struct $name;
        impl Program for $name {
            const CORES: usize = $cores;
            fn pending() -> &'static Pending {
                static PENDING: Pending = Pending::new();
                &PENDING
            }
            fn serve() {
                $serve
            }
        }
    };
}
program!(One, 1, ());
program!(Three, 3, ());
type Cores1 = Threads<One>;
type Cores3 = Threads<Three>;

#[test]
fn readers_and_writers_keep_apart() {
    let pair = ReadWrite::<Cores3, _>::new((0u32, 0u32));
    run::<Three, _>(|core| {
        for round in 0..ROUNDS {
            if core == 0 || round % 4 == 0 {
                let mut guard = pair.try_write().unwrap_or_else(|| pair.write());
                guard.0 += 1;
                guard.1 += 1;
            } else {
                let guard = pair.try_read().unwrap_or_else(|| pair.read());
                assert_eq!(guard.0, guard.1);
            }
        }
        assert!(!Cores3::is_masked());
    });
    let expected = ROUNDS + 2 * ROUNDS.div_ceil(4);
    assert_eq!(pair.into_inner(), (expected, expected));
}

/// A reader that sleeps in its waiting loop from one writer's phase to the next, with a refused try between them.
static SLEPT_THROUGH: PhaseFair<Sleepers> = PhaseFair::new();
/// How far core 0 is: 1 when it writes, 2 when its try has been refused. Written by core 0.
static STAGE: AtomicU32 = AtomicU32::new(0);
program!(Asleep, 2, {
    // Holds the reader within its waiting loop until the second writer has marked its presence.
    while Sleepers::core() == 1 && !(STAGE.load(Ordering::SeqCst) == 2 && SLEPT_THROUGH.look().1) {
        std::thread::yield_now();
    }
});
type Sleepers = Threads<Asleep>;

#[test]
fn a_reader_that_slept_through_a_refused_try_enters() {
    run::<Asleep, _>(|core| {
        if core == 1 {
            while STAGE.load(Ordering::SeqCst) == 0 {
                std::thread::yield_now();
            }
            drop(SLEPT_THROUGH.read());
            return;
        }
        let first = SLEPT_THROUGH.write();
        STAGE.store(1, Ordering::SeqCst);
        // The reader has counted itself in, and so waits for this phase.
        while !SLEPT_THROUGH.has_waiting_readers() {
            std::thread::yield_now();
        }
        drop(first);
        assert!(SLEPT_THROUGH.try_write().is_none(), "a reader is coming");
        STAGE.store(2, Ordering::SeqCst);
        drop(SLEPT_THROUGH.write());
    });
}

#[test]
fn readers_share_and_tries_are_refused() {
    let lock = PhaseFair::<Cores3>::new();
    let (first, second) = (lock.read(), lock.try_read().unwrap());
    assert!(lock.try_write().is_none());
    drop((first, second));
    let writer = lock.try_write().unwrap();
    assert!(lock.try_read().is_none() && lock.try_write().is_none());
    drop(writer);
    assert_eq!(lock.look(), (false, false));
    drop(lock.write());
}

#[test]
fn for_one_core_a_reader_writer_lock_is_a_mask_and_its_data_are_still_safe() {
    let lock = PhaseFair::<Cores1>::new();
    let writer = lock.write();
    assert!(Cores1::is_masked() && lock.look() == (false, false), "no count was touched");
    drop(writer);
    let data = ReadWrite::<Cores1, _>::new(5);
    let (first, second) = (data.read(), data.read());
    assert!(data.try_write().is_none());
    assert_eq!(*first + *second, 10);
    drop((second, first));
    let writer = data.write();
    assert!(data.try_read().is_none());
    drop(writer);
    assert!(!Cores1::is_masked());
    let (first, second) = (data.try_read().unwrap(), data.read());
    drop(first);
    assert!(data.try_write().is_none(), "one still reads");
    drop(second);
    *data.try_write().unwrap() += 1;
    assert_eq!(*data.read(), 6);
}

#[test]
fn a_read_of_a_sequence_lock_is_never_torn() {
    let value = Sequence::<Cores3, (u64, u64), 4>::zero();
    run::<Three, _>(|core| {
        let mut last = 0;
        for _ in 0..ROUNDS {
            if core == 0 {
                value.update(|(a, b)| (a + 1, b.wrapping_sub(1)));
            }
            let (a, b) = value.read();
            assert_eq!(a.wrapping_add(b), 0);
            assert!(a >= last, "a value never goes back");
            last = a;
        }
    });
    assert_eq!(value.read().0, u64::from(ROUNDS));
    let single = Sequence::<Cores1, u64, 2>::zero();
    single.write(u64::MAX - 1);
    assert_eq!(single.read(), u64::MAX - 1);
}

#[test]
fn permits_are_neither_lost_nor_doubled() {
    let semaphore = Semaphore::<Cores3, 3>::new(2);
    let inside = AtomicU32::new(0);
    run::<Three, _>(|_| {
        for _ in 0..ROUNDS {
            semaphore.take(LATE_NS).unwrap();
            assert!(inside.fetch_add(1, Ordering::SeqCst) < 2);
            std::thread::yield_now();
            inside.fetch_sub(1, Ordering::SeqCst);
            semaphore.give();
        }
    });
    assert_eq!(semaphore.state(), (2, 0));
}

#[test]
fn a_wait_ends_at_its_deadline_and_leaves_no_trace() {
    let semaphore = Semaphore::<Cores3, 1>::new(0);
    let deadline_ns = Cores3::now_ns() + 1_000_000;
    assert_eq!(semaphore.take(deadline_ns), Err(Error::Timeout));
    assert!(Cores3::now_ns() >= deadline_ns);
    assert_eq!(semaphore.state(), (0, 0));
    semaphore.give();
    assert_eq!(semaphore.take(0), Ok(()), "a free permit is taken also after the deadline");
    assert!(!semaphore.try_take());
}

#[test]
fn no_more_wait_than_there_are_places() {
    let semaphore = Semaphore::<Cores3, 1>::new(0);
    let crate::smp::semaphore::Begun::Queued(place) = semaphore.begin(()).unwrap() else { panic!() };
    assert_eq!(semaphore.take(LATE_NS), Err(Error::Crowded));
    let place = semaphore.poll(place).unwrap_err();
    semaphore.give();
    assert!(semaphore.abandon(place), "the permit came before the giving up");
    assert_eq!(semaphore.state(), (0, 0));
}

/// Threads that park, the way a task of a scheduler sleeps.
struct Parking;
impl Wakes for Parking {
    type Task = std::thread::Thread;
    fn wake(task: &std::thread::Thread) {
        task.unpark();
    }
}
impl Blocker for Parking {
    fn current() -> std::thread::Thread {
        std::thread::current()
    }
    fn sleep(deadline_ns: u64) {
        let left_ns = deadline_ns.saturating_sub(Cores3::now_ns());
        std::thread::park_timeout(std::time::Duration::from_nanos(left_ns));
    }
}

#[test]
fn a_mutex_of_a_scheduler_excludes_and_hands_over() {
    let count = Mutex::<Cores3, u32, 3, Parking>::new(0);
    run::<Three, _>(|_| {
        for _ in 0..ROUNDS {
            *count.lock(LATE_NS).unwrap() += 1;
        }
    });
    let guard = count.try_lock().unwrap();
    assert_eq!(*guard, 3 * ROUNDS);
    assert!(count.try_lock().is_none());
    let late = count.lock(Cores3::now_ns() + 1_000_000);
    assert_eq!(late.err(), Some(Error::Timeout));
}

struct Woken(AtomicU32);
impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

#[test]
fn futures_wait_in_the_same_queue() {
    let semaphore = Semaphore::<Cores3, 2, Futures>::new(0);
    let woken: [Arc<Woken>; 2] = core::array::from_fn(|_| Arc::new(Woken(AtomicU32::new(0))));
    let wakers = woken.clone().map(Waker::from);
    let (mut first, mut second) = (pin!(semaphore.taking()), pin!(semaphore.taking()));
    let mut contexts = [Context::from_waker(&wakers[0]), Context::from_waker(&wakers[1])];
    assert_eq!(first.as_mut().poll(&mut contexts[0]), Poll::Pending);
    assert_eq!(second.as_mut().poll(&mut contexts[1]), Poll::Pending);
    assert_eq!(pin!(semaphore.taking()).poll(&mut contexts[0]), Poll::Ready(Err(Error::Crowded)));
    semaphore.give();
    assert_eq!(woken.each_ref().map(|w| w.0.load(Ordering::SeqCst)), [1, 0]);
    assert_eq!(second.as_mut().poll(&mut contexts[1]), Poll::Pending, "nobody overtakes");
    assert_eq!(first.as_mut().poll(&mut contexts[0]), Poll::Ready(Ok(())));
    second.set(semaphore.taking());
    assert_eq!(semaphore.state(), (0, 0), "a dropped future has left the queue");
}

#[test]
fn a_future_dropped_with_its_permit_passes_it_on() {
    let semaphore = Semaphore::<Cores3, 2, Futures>::new(0);
    let mut context = Context::from_waker(Waker::noop());
    let mut waiting = std::boxed::Box::pin(semaphore.taking());
    assert!(waiting.as_mut().poll(&mut context).is_pending());
    semaphore.give();
    drop(waiting);
    assert_eq!(semaphore.state(), (1, 0));
}

/// The property that Zephyr #58086 and Uros #317 lacked: core 1 waits masked for what core 0 holds, and core 0 goes on
/// only once core 1 has served what it asked.
#[test]
fn every_waiting_loop_serves() {
    static ASKED: AtomicU32 = AtomicU32::new(0);
    static HELD: AtomicU32 = AtomicU32::new(0);
    program!(Two, 2, {
        if Cores2::core() == 1 && ASKED.load(Ordering::SeqCst) == 1 {
            ASKED.store(0, Ordering::SeqCst);
        }
    });
    type Cores2 = Threads<Two>;
    fn answered_while_waiting<G, H>(hold: impl Fn() -> G + Sync, wait: impl Fn() -> H + Sync) {
        HELD.store(0, Ordering::SeqCst);
        run::<Two, _>(|core| {
            if core == 0 {
                let held = hold();
                ASKED.store(1, Ordering::SeqCst);
                HELD.store(1, Ordering::SeqCst);
                while ASKED.load(Ordering::SeqCst) == 1 {
                    std::thread::yield_now();
                }
                drop(held);
            } else {
                while HELD.load(Ordering::SeqCst) == 0 {
                    std::thread::yield_now();
                }
                drop(wait());
            }
        });
    }
    let (ticket, queue) = (Ticket::<Cores2>::new(), Clh::<Cores2, { nodes(2) }>::new());
    answered_while_waiting(|| ticket.lock(), || ticket.lock());
    answered_while_waiting(|| queue.lock(), || queue.lock());
    let lock = PhaseFair::<Cores2>::new();
    answered_while_waiting(|| lock.write(), || lock.read());
    answered_while_waiting(|| lock.write(), || lock.write());
    answered_while_waiting(|| lock.read(), || lock.write());
    let mutex = Mutex::<Cores2, (), 1>::new(());
    answered_while_waiting(|| mutex.lock(LATE_NS).unwrap(), || mutex.lock(LATE_NS).unwrap());
}

#[test]
fn counters_and_bits_do_what_their_names_say() {
    let counter = Counter::new(-1);
    assert!(counter.inc_and_test() && !counter.inc_not_zero() && counter.add_unless(5, 1));
    assert_eq!(
        (counter.add_return(3), counter.sub_return(2), counter.inc_return(), counter.dec_return()),
        (8, 6, 7, 6)
    );
    assert!(counter.sub_and_test(6) && counter.add_negative(-1) && !counter.dec_and_test());
    assert_eq!((counter.cmpxchg(0, 9), counter.cmpxchg(-2, 9), counter.xchg(0b1100), counter.read()), (-2, -2, 9, 12));
    counter.set_mask(0b11);
    counter.clear_mask(0b100);
    assert_eq!(counter.read(), 0b1011);
    counter.set(i32::MAX);
    counter.inc();
    assert_eq!(counter.read(), i32::MIN);
    counter.sub(1);
    counter.dec();
    counter.add(1);
    assert_eq!(counter.read(), i32::MAX);

    let bits = Bits::<2>::new();
    assert!(!bits.test_and_set(33) && bits.test_and_set(33) && bits.test(33) && !bits.test(1));
    assert!(bits.test_and_clear(33) && !bits.test_and_change(33) && bits.test_and_change(33));
    bits.set(63);
    bits.change(63);
    bits.set(0);
    bits.clear(0);
    assert!((0..64).all(|number| !bits.test(number)));
}

#[test]
fn counters_lose_nothing_between_cores() {
    let (counter, bits) = (Counter::new(0), Bits::<1>::new());
    let first: Vec<u32> = run::<Three, _>(|_| {
        (0..ROUNDS).for_each(|_| counter.inc());
        (0..ROUNDS).filter(|_| counter.add_unless(1, 2 * 3 * ROUNDS as i32)).for_each(drop);
        (0..32).map(|number| u32::from(!bits.test_and_set(number))).sum()
    });
    assert_eq!(counter.read(), 6 * ROUNDS as i32);
    assert_eq!(first.iter().sum::<u32>(), 32, "each bit was set by one core");
}

/// One step of what happens to a semaphore.
#[derive(Clone, Copy, Debug)]
enum Step {
    Begin,
    Give,
    /// The waiter at this position of those still waiting, served or not, looks or gives up.
    Look(usize),
    Abandon(usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        3 => Just(Step::Begin),
        3 => Just(Step::Give),
        2 => (0usize..4).prop_map(Step::Look),
        1 => (0usize..4).prop_map(Step::Abandon),
    ];
    proptest::collection::vec(step, 0..60)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(if cfg!(miri) { 2 } else { 300 }) })]

    /// Against a model that is a list: who is served, in which order, and what remains.
    #[test]
    fn a_semaphore_is_a_list_of_waiters(steps in steps()) {
        use crate::smp::semaphore::Begun;
        let semaphore = Semaphore::<Cores3, 3>::new(1);
        let (mut permits, mut places, mut served) = (1u32, Vec::new(), Vec::new());
        let mut next = 0;
        for step in steps {
            match step {
                Step::Begin => match semaphore.begin(()) {
                    Ok(Begun::Taken) => {
                        prop_assert!(permits > 0);
                        permits -= 1;
                    }
                    Ok(Begun::Queued(place)) => {
                        prop_assert!(permits == 0 && places.len() < 3);
                        places.push((next, place));
                        served.push((next, false));
                        next += 1;
                    }
                    Err(error) => prop_assert_eq!((error, places.len(), permits), (Error::Crowded, 3, 0)),
                },
                Step::Give => {
                    semaphore.give();
                    match served.iter_mut().find(|waiter| !waiter.1) {
                        Some(waiter) => waiter.1 = true,
                        None => permits += 1,
                    }
                }
                Step::Look(at) if at < places.len() => {
                    let (number, place) = places.remove(at);
                    let expected = served.contains(&(number, true));
                    match semaphore.poll(place) {
                        Ok(()) => {
                            prop_assert!(expected);
                            served.retain(|waiter| waiter.0 != number);
                        }
                        Err(place) => {
                            prop_assert!(!expected);
                            places.insert(at, (number, place));
                        }
                    }
                }
                Step::Abandon(at) if at < places.len() => {
                    let (number, place) = places.remove(at);
                    let expected = served.contains(&(number, true));
                    prop_assert_eq!(semaphore.abandon(place), expected);
                    served.retain(|waiter| waiter.0 != number);
                }
                Step::Look(_) | Step::Abandon(_) => {}
            }
            let waiting = served.iter().filter(|waiter| !waiter.1).count();
            prop_assert_eq!(semaphore.state(), (permits, waiting));
        }
    }
}

#[cfg(feature = "lock_api")]
mod interface {
    use super::*;
    use crate::smp::interface::{RawPhaseFair, RawTicket};

    #[test]
    fn the_locks_work_behind_lock_api() {
        static COUNT: lock_api::Mutex<RawTicket<Cores3>, u32> = lock_api::Mutex::new(0);
        static PAIR: lock_api::RwLock<RawPhaseFair<Cores3>, (u32, u32)> = lock_api::RwLock::new((0, 0));
        run::<Three, _>(|core| {
            for _ in 0..ROUNDS {
                *COUNT.lock() += 1;
                if core == 0 {
                    let mut pair = PAIR.write();
                    *pair = (pair.0 + 1, pair.1 + 1);
                } else {
                    let pair = PAIR.read();
                    assert!(pair.0 == pair.1 && Cores3::is_masked());
                }
                assert!(!Cores3::is_masked());
            }
        });
        assert_eq!((*COUNT.lock(), PAIR.read().0), (3 * ROUNDS, ROUNDS));
        let guard = COUNT.lock();
        assert!(COUNT.is_locked() && COUNT.try_lock().is_none());
        drop(guard);
        let guard = PAIR.read();
        assert!(PAIR.is_locked() && !PAIR.is_locked_exclusive() && PAIR.try_write().is_none());
        drop(guard);
        assert!(!PAIR.is_locked());
        assert!(!COUNT.is_locked() && COUNT.try_lock().is_some_and(|count| *count == 3 * ROUNDS));
        assert!(!COUNT.is_locked() && PAIR.try_read().is_some() && PAIR.try_write().is_some() && !PAIR.is_locked());
    }

    #[test]
    fn with_one_core_they_refuse_that_core_too() {
        let count = lock_api::Mutex::<RawTicket<Cores1>, _>::new(0);
        let guard = count.lock();
        assert!(count.try_lock().is_none());
        drop(guard);
        let pair = lock_api::RwLock::<RawPhaseFair<Cores1>, _>::new(0);
        let (first, second) = (pair.read(), pair.read());
        assert!(pair.try_write().is_none() && pair.is_locked());
        drop((second, first));
        let guard = pair.write();
        assert!(pair.try_read().is_none() && pair.is_locked_exclusive());
        drop(guard);
        assert!(!Cores1::is_masked());
    }
}

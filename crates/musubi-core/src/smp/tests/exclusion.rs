//! Locks on threads: exclusion, order, fairness, one core, handlers.

use std::sync::atomic::{AtomicU32, Ordering};
use std::vec::Vec;

use super::threads::{Pending, Program, Threads, run};
use crate::smp::clh::nodes;
use crate::smp::{Clh, Lock, Locked, Processor, Ticket};

/// Sections of a core in a test.
const SECTIONS: u32 = if cfg!(miri) { 20 } else { 2000 };

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
program!(Four, 4);
type Cores1 = Threads<One>;
type Cores4 = Threads<Four>;

/// What four cores do to a pair of equal numbers, and in which order.
fn contend<L: Lock<Processor = Cores4> + Sync>(lock: L) {
    let pair = Locked::new(lock, (0u32, 0u32));
    run::<Four, _>(|core| {
        for _ in 0..SECTIONS {
            let mut guard = if core == 0 { pair.try_lock().unwrap_or_else(|| pair.lock()) } else { pair.lock() };
            assert!(Cores4::is_masked());
            assert_eq!(guard.0, guard.1);
            guard.0 += 1;
            guard.1 += 1;
        }
        assert!(!Cores4::is_masked());
    });
    assert_eq!(pair.into_inner(), (4 * SECTIONS, 4 * SECTIONS));
}

#[test]
fn nobody_is_inside_with_another() {
    contend(Ticket::new());
    contend(Clh::<Cores4, { nodes(4) }>::new());
}

/// Each core comes once the one before stands in the queue, while the lock is held; they must enter in that order.
fn enters_in_order<L: Lock<Processor = Cores4> + Sync>(lock: L, interested: impl Fn(&L) -> bool + Sync) {
    let (waiting, order) = (AtomicU32::new(0), std::sync::Mutex::new(Vec::new()));
    run::<Four, _>(|core| {
        if core == 0 {
            let held = lock.lock();
            waiting.store(1, Ordering::Release);
            while waiting.load(Ordering::Acquire) < 4 || !interested(&lock) {
                std::thread::yield_now();
            }
            drop(held);
            return;
        }
        while waiting.load(Ordering::Acquire) != core as u32 {
            std::thread::yield_now();
        }
        // Long enough for the one before to draw its number.
        std::thread::sleep(std::time::Duration::from_millis(30 * core as u64));
        waiting.store(core as u32 + 1, Ordering::Release);
        let held = lock.lock();
        order.lock().unwrap().push(core);
        drop(held);
    });
    assert_eq!(order.into_inner().unwrap(), [1, 2, 3]);
}

#[test]
#[cfg_attr(miri, ignore = "counts on time")]
fn first_come_first_served() {
    enters_in_order(Ticket::<Cores4>::new(), |lock| lock.interested() == 4);
    enters_in_order(Clh::<Cores4, { nodes(4) }>::new(), |_| true);
}

#[test]
fn who_tries_gets_a_free_lock_only() {
    fn tries<L: Lock<Processor = Cores4>>(lock: L) {
        for _ in 0..10 {
            let held = lock.try_lock().expect("the lock is free");
            assert!(lock.try_lock().is_none());
            assert!(Cores4::is_masked(), "a refused try leaves the mask as it was");
            drop(held);
            assert!(!Cores4::is_masked());
            drop(lock.lock());
        }
    }
    tries(Ticket::new());
    tries(Clh::<Cores4, { nodes(4) }>::new());
}

#[test]
fn for_one_core_a_lock_is_a_mask() {
    let lock = Ticket::<Cores1>::new();
    let held = lock.lock();
    assert!(Cores1::is_masked());
    assert_eq!(lock.interested(), 0, "no number was drawn");
    let inner = lock.lock();
    drop(inner);
    assert!(Cores1::is_masked());
    drop(held);
    assert!(!Cores1::is_masked());
}

#[test]
fn data_on_one_core_is_not_reached_twice() {
    let data = Locked::new(Ticket::<Cores1>::new(), 0);
    let guard = data.lock();
    assert!(data.try_lock().is_none());
    let again = std::panic::catch_unwind(core::panic::AssertUnwindSafe(|| drop(data.lock())));
    assert!(again.is_err());
    drop(guard);
    assert_eq!(data.try_lock().map(|guard| *guard), Some(0));
}

#[test]
fn a_kept_lock_stays_locked() {
    let lock = Ticket::<Cores4>::new();
    let before = lock.lock().keep();
    assert!(lock.try_lock().is_none());
    // SAFETY: taken above by a guard that was forgotten.
    unsafe { lock.unlock(before) };
    assert!(!Cores4::is_masked());
    assert!(lock.try_lock().is_some());
}

//! Statistics, and programs that the order checker must refuse.

use std::sync::Mutex;
use std::vec::Vec;

use super::threads::{self, Pending, Program, Threads, run};
use crate::smp::clh::nodes;
use crate::smp::{Class, Clh, Cores, Kernel, Lock, Order, Processor, Statistics, Ticket, Violation};

/// Defines a program of two cores whose handler and served function are given.
macro_rules! program {
    ($name:ident, $interrupt:expr, $serve:expr) => {
        struct $name;
        impl Program for $name {
            const CORES: usize = 2;
            fn pending() -> &'static Pending {
                static PENDING: Pending = Pending::new();
                &PENDING
            }
            fn interrupt() {
                $interrupt
            }
            fn serve() {
                $serve
            }
        }
    };
}

/// Defines an order of three classes whose reports go to a list, and a ticket lock of each.
macro_rules! order {
    ($program:ident) => {
        static REPORTS: Mutex<Vec<Violation>> = Mutex::new(Vec::new());
        static ORDER: Order = Order::new(&["a", "b", "c"], |violation| REPORTS.lock().unwrap().push(violation));
        static A: Ticket<Threads<$program>, Class> = Ticket::watched(Class::new(&ORDER, 0));
        static B: Ticket<Threads<$program>, Class> = Ticket::watched(Class::new(&ORDER, 1));
        static C: Ticket<Threads<$program>, Class> = Ticket::watched(Class::new(&ORDER, 2));
    };
}

fn both(first: &impl Lock, second: &impl Lock) {
    let outer = first.lock();
    drop(second.lock());
    drop(outer);
}

#[test]
fn two_orders_are_reported_without_a_deadlock() {
    program!(Pair, (), ());
    order!(Pair);
    both(&A, &B);
    assert!(REPORTS.lock().unwrap().is_empty());
    both(&B, &A);
    both(&B, &A);
    assert_eq!(*REPORTS.lock().unwrap(), [Violation::Cycle { held: 1, taken: 0 }], "once");
    assert_eq!(ORDER.name(1), "b");
    drop(C.lock());
}

#[test]
fn a_circle_of_three_is_reported() {
    program!(Pair, (), ());
    order!(Pair);
    both(&A, &B);
    both(&B, &C);
    both(&A, &C);
    assert!(REPORTS.lock().unwrap().is_empty());
    both(&C, &A);
    assert_eq!(*REPORTS.lock().unwrap(), [Violation::Cycle { held: 2, taken: 0 }]);
}

#[test]
fn a_try_makes_no_order_but_holds() {
    program!(Pair, (), ());
    order!(Pair);
    both(&A, &B);
    let outer = B.lock();
    drop(A.try_lock().unwrap());
    drop(outer);
    assert!(REPORTS.lock().unwrap().is_empty());
    let tried = B.try_lock().unwrap();
    assert_eq!(ORDER.doing(0).0, 0b10);
    drop(A.lock());
    drop(tried);
    assert_eq!(*REPORTS.lock().unwrap(), [Violation::Cycle { held: 1, taken: 0 }]);
    drop(C.lock());
    assert_eq!(ORDER.doing(0), (0, None));
}

#[test]
fn a_lock_that_handlers_take_and_a_task_holds_open_is_reported() {
    program!(Pair, drop(A.lock()), ());
    order!(Pair);
    threads::interrupt_self::<Pair>();
    let held = A.lock();
    // The program opens interrupts inside the section: had the interrupt come now, its handler would wait for ever.
    Threads::<Pair>::restore(false);
    drop(held);
    assert_eq!(*REPORTS.lock().unwrap(), [Violation::Open { class: 0 }]);
    both(&B, &C);
}

#[test]
fn guards_dropped_in_the_wrong_order_are_found_the_same_way() {
    program!(Pair, drop(B.lock()), ());
    order!(Pair);
    threads::interrupt_self::<Pair>();
    let (outer, inner) = (A.lock(), B.lock());
    drop(outer);
    drop(inner);
    assert_eq!(*REPORTS.lock().unwrap(), [Violation::Open { class: 1 }]);
    drop(C.lock());
}

#[test]
fn a_cross_call_awaited_with_a_lock_of_handlers_is_reported() {
    program!(Pair, drop(B.lock()), ());
    order!(Pair);
    threads::interrupt_self::<Pair>();
    for lock in [&A, &B] {
        let held = lock.lock();
        ORDER.awaits_call::<Threads<Pair>>(Cores::NONE);
        ORDER.awaits_call::<Threads<Pair>>(Cores::one(1));
        drop(held);
    }
    assert_eq!(*REPORTS.lock().unwrap(), [Violation::AwaitedHolding { class: 1 }]);
    drop(C.lock());
}

#[test]
fn the_same_found_when_the_handler_comes_later() {
    program!(Pair, drop(B.lock()), ());
    order!(Pair);
    let held = B.lock();
    ORDER.awaits_call::<Threads<Pair>>(Cores::one(1));
    drop(held);
    threads::interrupt_self::<Pair>();
    assert_eq!(*REPORTS.lock().unwrap(), [Violation::AwaitedHolding { class: 1 }]);
    both(&A, &C);
}

#[test]
fn what_is_served_in_a_waiting_loop_must_not_wait() {
    program!(
        Pair,
        (),
        if Threads::<Pair>::core() == 1 && SERVES.swap(0, Ordering::Relaxed) == 1 {
            drop(B.lock())
        }
    );
    order!(Pair);
    use std::sync::atomic::{AtomicU32, Ordering};
    static SERVES: AtomicU32 = AtomicU32::new(0);
    run::<Pair, _>(|core| {
        if core == 0 {
            let held = A.lock();
            SERVES.store(1, Ordering::Relaxed);
            while SERVES.load(Ordering::Relaxed) == 1 {
                std::thread::yield_now();
            }
            drop(held);
        } else {
            while SERVES.load(Ordering::Relaxed) == 0 {
                std::thread::yield_now();
            }
            drop(A.lock());
        }
    });
    assert_eq!(*REPORTS.lock().unwrap(), [Violation::WaitedWaiting { awaited: 0, taken: 1 }]);
    drop(C.lock());
}

#[test]
fn statistics_count_what_happened() {
    program!(Pair, (), ());
    type Two = Threads<Pair>;
    let lock = Ticket::<Two, _>::watched(Statistics::new());
    run::<Pair, _>(|core| {
        if core == 0 {
            let held = lock.lock();
            while lock.interested() < 2 {
                std::thread::yield_now();
            }
            std::thread::sleep(std::time::Duration::from_millis(2));
            assert_eq!(lock.watch().holder(), Some(0));
            drop(held);
        } else {
            while lock.interested() < 1 {
                std::thread::yield_now();
            }
            drop(lock.lock());
        }
    });
    let found = lock.snapshot();
    assert_eq!((found.acquisitions, found.by_queue_length), (3, [2, 1, 0, 0]));
    assert!(found.hold_ns_max >= 2_000_000 && found.hold_ns_total >= u64::from(found.hold_ns_max));
    assert!(found.wait_ns_max >= 2_000_000 && found.wait_ns_total >= u64::from(found.wait_ns_max));
    assert_eq!(lock.watch().holder(), None);
}

/// The bound (m-1)(L+h) in numbers: nobody finds more than m-1 cores ahead, however the host lets threads run.
#[test]
#[cfg_attr(miri, ignore = "Miri shows a core an old number served, so that more seem to be ahead than are")]
fn nobody_waits_for_more_than_all_the_others() {
    struct Three;
    impl Program for Three {
        const CORES: usize = 3;
        fn pending() -> &'static Pending {
            static PENDING: Pending = Pending::new();
            &PENDING
        }
    }
    let sections = 3000;
    let lock = Ticket::<Threads<Three>, _>::watched(Statistics::new());
    run::<Three, _>(|_| (0..sections).for_each(|_| drop(lock.lock())));
    let found = lock.snapshot();
    assert_eq!(found.acquisitions, 3 * sections + 1);
    assert_eq!(found.by_queue_length.iter().sum::<u32>(), found.acquisitions);
    assert_eq!(found.by_queue_length[3], 0, "three others ahead of one of three");
}

#[test]
fn a_queue_lock_has_statistics_and_an_order_at_once() {
    program!(Pair, (), ());
    static ORDER: Order = Order::new(&["queue"], |violation| panic!("{violation:?}"));
    type Two = Threads<Pair>;
    let watched = Clh::<Two, { nodes(2) }, _>::watched((Statistics::new(), Class::new(&ORDER, 0)));
    drop(watched.lock());
    drop(watched.try_lock().unwrap());
    assert_eq!(ORDER.doing(0), (0, None));
    let alone = Clh::<Two, { nodes(2) }, _>::watched(Statistics::new());
    drop(alone.lock());
    assert_eq!(alone.snapshot().acquisitions, 2);
}

#[test]
fn the_kernel_lock_is_entered_again() {
    program!(Pair, (), ());
    type Two = Threads<Pair>;
    static KERNEL: Kernel<Two, { nodes(2) }> = Kernel::new();
    let total = Mutex::new(0u32);
    run::<Pair, _>(|core| {
        for _ in 0..100 {
            let outer = KERNEL.lock();
            let inner = KERNEL.lock();
            assert_eq!(KERNEL.holder(), Some(core));
            // Nobody else may be inside: a held mutex would show.
            *total.try_lock().unwrap() += 1;
            drop(inner);
            assert!(Two::is_masked() && KERNEL.holder() == Some(core));
            *total.try_lock().unwrap() += 1;
            drop(outer);
        }
        assert!(!Two::is_masked());
    });
    assert_eq!(total.into_inner().unwrap(), 400);
    assert_eq!(KERNEL.holder(), None);
}

#[test]
fn a_long_queue_counts_as_three_or_more() {
    program!(Queued, (), ());
    type Lock = Ticket<Threads<Queued>, Statistics>;
    let lock = Lock::watched(Statistics::new());
    for ahead in [0, 1, 2, 3, 4, 31, u32::MAX] {
        crate::smp::watch::Watch::takes::<Threads<Queued>>(lock.watch(), 0, ahead);
    }
    // The snapshot's own use is one without a queue.
    assert_eq!(lock.snapshot().by_queue_length, [2, 1, 1, 4]);
}

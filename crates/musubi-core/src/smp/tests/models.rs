//! loom models of the locks: every interleaving, and every stale value that the memory model allows, within the bound
//! on preemptions. What the lock guards is a cell whose unordered accesses loom reports.

use std::sync::Arc;
use std::vec::Vec;

use loom::cell::UnsafeCell;

use crate::smp::atomics::Counter;
use crate::smp::clh::nodes;
use crate::smp::{Clh, LEVELS, Lock, Mutex, PhaseFair, Processor, Semaphore, Sequence, Ticket};

/// How often a waiter looks before a model stops to explore: what comes after differs only in how long others dawdle.
const LOOKS_MAX: u32 = 3;

loom::thread_local! {
    static CORE: core::cell::Cell<usize> = core::cell::Cell::new(0);
    static LOOKS: core::cell::Cell<u32> = core::cell::Cell::new(0);
}

/// loom's threads as cores.
pub struct Modelled<const CORES: usize>;

// SAFETY: each thread of a model sets a number of its own; there are no handlers.
unsafe impl<const N: usize> Processor for Modelled<N> {
    const CORES: usize = N;
    type Mask = ();

    fn core() -> usize {
        CORE.with(|core| core.get())
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
        let looks = LOOKS.with(|looks| looks.replace(looks.get() + 1));
        if looks >= LOOKS_MAX {
            loom::skip_branch();
        }
        loom::thread::yield_now();
    }
    fn signal() {}
    fn serve() {}
    fn ring(_: usize) {}
    fn now_ns() -> u64 {
        0
    }
}

/// Runs `core` on `N` threads in every interleaving. The model's own thread only waits: loom was seen not to go back to
/// loads that it had made before the others ran.
pub fn explore<S: Send + Sync + 'static, const N: usize>(
    preemptions_max: usize,
    prepare: impl Fn() -> S + Sync + Send + 'static,
    core: fn(&S, usize),
    judge: fn(&S),
) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(preemptions_max);
    model.check(move || {
        let shared = Arc::new(prepare());
        let begin = |number: usize| {
            let shared = shared.clone();
            loom::thread::spawn(move || {
                CORE.with(|own| own.set(number));
                core(&shared, number);
            })
        };
        let threads: Vec<_> = (0..N).map(begin).collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        judge(&shared);
    });
}

/// A lock and a count that it guards.
struct Room<L> {
    lock: L,
    count: UnsafeCell<u32>,
}

// SAFETY: that the lock keeps the accesses apart is what the model finds out; loom refuses the execution if not.
unsafe impl<L: Sync> Sync for Room<L> {}

impl<L: Lock> Room<L> {
    fn count_one(&self) {
        // SAFETY: loom checks each access.
        self.count.with_mut(|count| unsafe { *count += 1 });
    }

    fn wait_and_count(&self) {
        let held = self.lock.lock();
        self.count_one();
        drop(held);
    }

    fn try_and_count(&self) {
        if let Some(held) = self.lock.try_lock() {
            self.count_one();
            drop(held);
        }
    }
}

fn all_wait<L: Lock + Send + Sync + 'static, const N: usize>(make: fn() -> L) {
    let prepare = move || Room { lock: make(), count: UnsafeCell::new(0) };
    // SAFETY: loom checks each access.
    let judge = |room: &Room<L>| room.count.with(|count| assert_eq!(unsafe { *count } as usize, N));
    explore::<_, N>(2, prepare, |room, _| room.wait_and_count(), judge);
}

fn one_tries<L: Lock + Send + Sync + 'static, const N: usize>(make: fn() -> L) {
    let prepare = move || Room { lock: make(), count: UnsafeCell::new(0) };
    let core = |room: &Room<L>, core| match core {
        0 => room.try_and_count(),
        _ => room.wait_and_count(),
    };
    // SAFETY: loom checks each access.
    let judge = |room: &Room<L>| room.count.with(|count| assert!(unsafe { *count } as usize >= N - 1));
    explore::<_, N>(2, prepare, core, judge);
}

/// The second round takes nodes that others had before.
fn each_waits_twice<L: Lock + Send + Sync + 'static>(make: fn() -> L) {
    let prepare = move || Room { lock: make(), count: UnsafeCell::new(0) };
    let core = |room: &Room<L>, _| {
        room.wait_and_count();
        room.wait_and_count();
    };
    // SAFETY: loom checks each access.
    let judge = |room: &Room<L>| room.count.with(|count| assert_eq!(unsafe { *count }, 4));
    explore::<_, 2>(2, prepare, core, judge);
}

type Clh2 = Clh<Modelled<2>, { nodes(2) }>;
type Clh3 = Clh<Modelled<3>, { nodes(3) }>;
const _: () = assert!(LEVELS == 3);

#[test]
fn loom_smp_ticket_two_wait() {
    all_wait::<_, 2>(Ticket::<Modelled<2>>::new);
    each_waits_twice(Ticket::<Modelled<2>>::new);
}

#[test]
fn loom_smp_ticket_three_wait() {
    all_wait::<_, 3>(Ticket::<Modelled<3>>::new);
}

#[test]
fn loom_smp_ticket_one_tries() {
    one_tries::<_, 2>(Ticket::<Modelled<2>>::new);
    one_tries::<_, 3>(Ticket::<Modelled<3>>::new);
}

#[test]
fn loom_smp_clh_two_wait() {
    all_wait::<_, 2>(Clh2::new);
    each_waits_twice(Clh2::new);
}

#[test]
fn loom_smp_clh_three_wait() {
    all_wait::<_, 3>(Clh3::new);
}

#[test]
fn loom_smp_clh_one_tries() {
    one_tries::<_, 2>(Clh2::new);
    one_tries::<_, 3>(Clh3::new);
}

#[test]
fn loom_smp_order_contradicting_facts_are_seen() {
    use crate::smp::Order;
    use crate::sync::{AtomicU32, Ordering};

    loom::lazy_static! { static ref REPORTS: AtomicU32 = AtomicU32::new(0); }
    fn count(_: crate::smp::Violation) {
        REPORTS.fetch_add(1, Ordering::Relaxed);
    }
    let core = |order: &Order, core| match core {
        0 => order.note_pair(0, 1),
        _ => order.note_pair(1, 0),
    };
    let judge = |_: &Order| assert!(REPORTS.load(Ordering::Relaxed) >= 1);
    explore::<_, 2>(2, || Order::new(&["a", "b"], count), core, judge);
}

#[test]
fn loom_smp_order_handler_and_open_are_seen() {
    use crate::smp::Order;
    use crate::sync::{AtomicU32, Ordering};

    loom::lazy_static! { static ref REPORTS: AtomicU32 = AtomicU32::new(0); }
    fn count(_: crate::smp::Violation) {
        REPORTS.fetch_add(1, Ordering::Relaxed);
    }
    let core = |order: &Order, core| match core {
        0 => order.note_in_handler(0),
        _ => order.note_open(0),
    };
    let judge = |_: &Order| assert!(REPORTS.load(Ordering::Relaxed) >= 1);
    explore::<_, 2>(2, || Order::new(&["a"], count), core, judge);
}

/// A cell under a reader-writer lock.
struct Page<const N: usize> {
    lock: PhaseFair<Modelled<N>>,
    count: UnsafeCell<u32>,
}

// SAFETY: loom refuses an execution in which accesses are not ordered.
unsafe impl<const N: usize> Sync for Page<N> {}

impl<const N: usize> Page<N> {
    fn new() -> Self {
        Page { lock: PhaseFair::new(), count: UnsafeCell::new(0) }
    }

    fn write(&self) {
        let held = self.lock.write();
        // SAFETY: loom checks each access.
        self.count.with_mut(|count| unsafe { *count += 1 });
        drop(held);
    }

    fn read(&self) {
        let held = self.lock.read();
        // SAFETY: loom checks each access.
        self.count.with(|count| unsafe { core::hint::black_box(*count) });
        drop(held);
    }

    fn try_both(&self) {
        if let Some(held) = self.lock.try_read() {
            // SAFETY: loom checks each access.
            self.count.with(|count| unsafe { core::hint::black_box(*count) });
            drop(held);
        }
        if let Some(held) = self.lock.try_write() {
            // SAFETY: loom checks each access.
            self.count.with_mut(|count| unsafe { *count += 1 });
            drop(held);
        }
    }
}

#[test]
fn loom_smp_phase_fair_readers_and_writer() {
    let core = |page: &Page<3>, core| if core == 0 { page.write() } else { page.read() };
    explore::<_, 3>(2, Page::new, core, |_| ());
}

#[test]
fn loom_smp_phase_fair_writers() {
    explore::<_, 2>(2, Page::new, |page: &Page<2>, _| page.write(), |_| ());
    let core = |page: &Page<3>, core| if core == 0 { page.read() } else { page.write() };
    explore::<_, 3>(2, Page::new, core, |_| ());
}

#[test]
fn loom_smp_phase_fair_tries() {
    let core = |page: &Page<2>, core| if core == 0 { page.try_both() } else { page.write() };
    explore::<_, 2>(2, Page::new, core, |_| ());
    let core = |page: &Page<2>, core| if core == 0 { page.try_both() } else { page.read() };
    explore::<_, 2>(2, Page::new, core, |_| ());
}

/// Two phases with a refused try between them: what slept through the try must not take the second phase for the first.
#[test]
fn loom_smp_phase_fair_refused_try_between_phases() {
    let core = |page: &Page<2>, core| match core {
        0 => {
            page.write();
            drop(page.lock.try_write());
            page.write();
        }
        _ => page.read(),
    };
    explore::<_, 2>(2, Page::new, core, |_| ());
}

#[test]
fn loom_smp_sequence_is_not_torn() {
    type Pair = Sequence<Modelled<2>, [u32; 2], 2>;
    let core = |pair: &Pair, core| match core {
        1 => (1..3).for_each(|value| pair.write([value, value])),
        _ => {
            let [first, second] = pair.read();
            assert_eq!(first, second);
        }
    };
    explore::<_, 2>(2, Pair::zero, core, |pair| assert_eq!(pair.read(), [2, 2]));
}

/// A cell that a permit stands for.
struct Parcel {
    semaphore: Semaphore<Modelled<2>, 1>,
    count: UnsafeCell<u32>,
}

// SAFETY: loom refuses an execution in which accesses are not ordered.
unsafe impl Sync for Parcel {}

#[test]
fn loom_smp_semaphore_hands_over() {
    let prepare = || Parcel { semaphore: Semaphore::new(0), count: UnsafeCell::new(0) };
    let core = |parcel: &Parcel, core| {
        if core == 0 {
            parcel.semaphore.take(u64::MAX).unwrap();
        }
        // SAFETY: loom checks each access.
        parcel.count.with_mut(|count| unsafe { *count += 1 });
        if core == 1 {
            parcel.semaphore.give();
        }
    };
    explore::<_, 2>(2, prepare, core, |parcel| assert_eq!(parcel.semaphore.state(), (0, 0)));
}

#[test]
fn loom_smp_semaphore_abandon_or_permit() {
    type One = Semaphore<Modelled<2>, 1>;
    let core = |semaphore: &One, core| match core {
        // The clock of a model stands at 0: this waits once and gives up.
        0 => drop(semaphore.take(0).map(|()| semaphore.give())),
        _ => semaphore.give(),
    };
    explore::<_, 2>(2, || One::new(0), core, |semaphore| assert_eq!(semaphore.state(), (1, 0), "the permit is kept"));
}

#[test]
fn loom_smp_mutex_excludes() {
    type Count = Mutex<Modelled<2>, u32, 1>;
    let core = |count: &Count, _| *count.lock(u64::MAX).unwrap() += 1;
    explore::<_, 2>(2, || Count::new(0), core, |count| assert_eq!(*count.lock(0).unwrap(), 2));
}

/// Something with two users, of whom the last one takes it away.
struct Shared {
    users: Counter,
    taken_away: UnsafeCell<bool>,
}

// SAFETY: loom refuses an execution in which accesses are not ordered.
unsafe impl Sync for Shared {}

#[test]
fn loom_smp_atomics_the_last_user_is_the_only_one() {
    let prepare = || Shared { users: Counter::new(2), taken_away: UnsafeCell::new(false) };
    let core = |shared: &Shared, _| {
        // SAFETY: loom checks each access.
        shared.taken_away.with(|taken| assert!(unsafe { !*taken }));
        if shared.users.dec_and_test() {
            // SAFETY: loom checks each access.
            shared.taken_away.with_mut(|taken| unsafe { *taken = true });
        }
    };
    explore::<_, 2>(2, prepare, core, |shared| assert_eq!(shared.users.read(), 0));
}

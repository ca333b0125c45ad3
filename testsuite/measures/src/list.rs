//! The list: null trap, interrupt entry, context switch, semaphore and mailbox ping-pong, cross call, lock and unlock,
//! bandwidth of a shared ring, memory copy.
//!
//! How it works: an item is one or more tasks; task 0 counts around its repeats. `Placement` says whether the tasks share
//! core 0 or the partner runs on core 1. What a scheduler would do under its lock is done under the layer's lock, so that
//! an item costs what a kernel on this layer pays.
//!
//! What it does not do: measure waiting. A side that waits on its own core gives the core to the next task; on another
//! core it spins, serving calls.

use core::hint::black_box;
use core::sync::atomic::Ordering;

use musubi_core::smp::semaphore::Begun;
use musubi_core::smp::{Processor, Semaphore, Until, Work};

use crate::machine::{CHUNK_BYTES, CHUNKS, COPY_BYTES, Machine, Mailbox};

/// Where the tasks of an item run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// All on core 0.
    OneCore,
    /// The partner of task 0 on core 1.
    TwoCores,
}

/// One thing that is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Item {
    /// Into what is beneath the program, and back.
    NullTrap,
    /// This core interrupts itself and handles it.
    InterruptEntry,
    /// One switch among two tasks of a core.
    Switch2,
    /// One switch among eight tasks of a core.
    Switch8,
    /// A post and a wait in both directions.
    Semaphore,
    /// A word there and a word back, through two mailboxes.
    Mailbox,
    /// A function called on a core, until it has returned there.
    CrossCall,
    /// A lock taken and given around an increment.
    Lock,
    /// [`CHUNK_BYTES`] copied into a shared ring and out of it.
    Ring,
    /// [`COPY_BYTES`] copied.
    Copy,
}

impl Item {
    /// All of them.
    pub const ALL: [Item; 10] = [
        Item::NullTrap,
        Item::InterruptEntry,
        Item::Switch2,
        Item::Switch8,
        Item::Semaphore,
        Item::Mailbox,
        Item::CrossCall,
        Item::Lock,
        Item::Ring,
        Item::Copy,
    ];

    /// Its name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Item::NullTrap => "null_trap",
            Item::InterruptEntry => "interrupt_entry",
            Item::Switch2 => "context_switch_2",
            Item::Switch8 => "context_switch_8",
            Item::Semaphore => "semaphore_ping_pong",
            Item::Mailbox => "mailbox_ping_pong",
            Item::CrossCall => "cross_call",
            Item::Lock => "lock_unlock",
            Item::Ring => "shared_ring_1k",
            Item::Copy => "memory_copy_16k",
        }
    }

    /// Whether it has a partner that may run on another core.
    pub const fn spans_cores(self) -> bool {
        matches!(self, Item::Semaphore | Item::Mailbox | Item::CrossCall | Item::Lock | Item::Ring)
    }

    /// Operations of all tasks for one repeat of task 0.
    const fn operations(self) -> u32 {
        match self {
            Item::Switch2 => 2,
            Item::Switch8 => 8,
            _ => 1,
        }
    }
}

/// What an item cost.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cost {
    /// Units of [`Machine::count`] for one operation.
    pub each: f64,
    /// Whether a side waited in vain for the other, so that the figure means nothing.
    pub lost: bool,
}

/// Longest wait of one side for the other, in nanoseconds.
const WAIT_NS_MAX: u64 = 10_000_000_000;
/// Turns of a waiting loop between two looks at the clock.
const TURNS_PER_LOOK: u32 = 4096;

/// Measures an item with so many repeats.
pub fn measure<M: Machine<N>, const N: usize>(item: Item, placement: Placement, repeats: u32) -> Cost {
    let shared = M::shared();
    shared.repeats.store(repeats, Ordering::Relaxed);
    shared.done.store(0, Ordering::Relaxed);
    shared.lost.store(0, Ordering::Relaxed);
    M::run(&[(0, empty::<M, N>)]);
    shared.one_core.store(placement == Placement::OneCore, Ordering::Relaxed);
    let partner = usize::from(placement == Placement::TwoCores);
    let tasks: &[(usize, fn())] = match item {
        Item::NullTrap => &[(0, trap::<M, N>)],
        Item::InterruptEntry => &[(0, interrupt::<M, N>)],
        Item::Switch2 => &[(0, switch::<M, N> as fn()); 2],
        Item::Switch8 => &[(0, switch::<M, N> as fn()); 8],
        Item::Semaphore => &[(0, semaphore_ping::<M, N>), (partner, semaphore_pong::<M, N>)],
        Item::Mailbox => &[(0, mailbox_ping::<M, N>), (partner, mailbox_pong::<M, N>)],
        Item::CrossCall if partner == 0 => &[(0, call_self::<M, N>)],
        Item::CrossCall => &[(0, call_other::<M, N>), (partner, serve::<M, N>)],
        Item::Lock if partner == 0 => &[(0, lock::<M, N>)],
        Item::Lock => &[(0, lock::<M, N>), (partner, lock::<M, N>)],
        Item::Ring => &[(0, ring_put::<M, N>), (partner, ring_take::<M, N>)],
        Item::Copy => &[(0, copy::<M, N>)],
    };
    M::run(tasks);
    let counted = shared.counted.load(Ordering::Relaxed) as f64;
    let operations = f64::from(repeats) * f64::from(item.operations());
    Cost { each: counted / operations, lost: shared.lost.load(Ordering::Relaxed) > 0 }
}

/// Puts everything as it was at first.
fn empty<M: Machine<N>, const N: usize>() {
    let shared = M::shared();
    let semaphores = shared.semaphores.iter().chain(shared.mailboxes.iter().map(|mailbox| &mailbox.full));
    semaphores.for_each(|semaphore| while semaphore.try_take() {});
    shared.ring.with(|ring| (ring.put, ring.taken) = (0, 0));
}

/// Repeats `operation` and keeps what was counted meanwhile.
fn counted<M: Machine<N>, const N: usize>(mut operation: impl FnMut(u32)) {
    let shared = M::shared();
    let begin = M::count();
    for turn in 0..shared.repeats.load(Ordering::Relaxed) {
        operation(turn);
    }
    shared.counted.store(M::count().wrapping_sub(begin), Ordering::Relaxed);
    shared.done.fetch_add(1, Ordering::Release);
}

/// [`counted`] for a partner, whose count nobody wants.
fn repeated<M: Machine<N>, const N: usize>(mut operation: impl FnMut(u32)) {
    let shared = M::shared();
    for turn in 0..shared.repeats.load(Ordering::Relaxed) {
        operation(turn);
    }
    shared.done.fetch_add(1, Ordering::Release);
}

/// Gives the core to the next task, as a scheduler does: chooses under its lock, then switches.
fn reschedule<M: Machine<N>, const N: usize>() {
    M::shared().scheduler.with(|chosen| *chosen = chosen.wrapping_add(1));
    M::switch();
}

/// Waits until `try_it` gives something; gives up, and notes it, when the other side does not come.
fn wait<M: Machine<N>, const N: usize, R>(mut try_it: impl FnMut() -> Option<R>) -> Option<R> {
    let is_shared = M::shared().one_core.load(Ordering::Relaxed);
    let mut turns = 0u32;
    let mut begin_ns = None;
    loop {
        if let Some(result) = try_it() {
            return Some(result);
        }
        if is_shared {
            reschedule::<M, N>();
        } else {
            M::Processor::relax();
            M::Processor::serve();
        }
        turns = turns.wrapping_add(1);
        if turns.is_multiple_of(TURNS_PER_LOOK) {
            let now_ns = M::Processor::now_ns();
            if now_ns - *begin_ns.get_or_insert(now_ns) > WAIT_NS_MAX {
                M::shared().lost.fetch_add(1, Ordering::Relaxed);
                return None;
            }
        }
    }
}

fn trap<M: Machine<N>, const N: usize>() {
    counted::<M, N>(|_| M::trap());
}

fn interrupt<M: Machine<N>, const N: usize>() {
    counted::<M, N>(|_| M::interrupt_self());
}

/// All tasks of a switching item run this; the last store of the count is near enough to the first.
fn switch<M: Machine<N>, const N: usize>() {
    counted::<M, N>(|_| reschedule::<M, N>());
}

fn acquire<M: Machine<N>, const N: usize>(semaphore: &Semaphore<M::Processor, 2>) {
    let mut place = match semaphore.begin(()) {
        Ok(Begun::Taken) => return,
        Ok(Begun::Queued(place)) => Some(place),
        Err(_) => None,
    };
    wait::<M, N, _>(|| match semaphore.poll(place.take()?) {
        Ok(()) => Some(()),
        Err(still) => {
            place = Some(still);
            None
        }
    });
    if let Some(given_up) = place {
        semaphore.abandon(given_up);
    }
}

fn semaphore_ping<M: Machine<N>, const N: usize>() {
    let [there, back] = &M::shared().semaphores;
    counted::<M, N>(|_| {
        there.give();
        acquire::<M, N>(back);
    });
}

fn semaphore_pong<M: Machine<N>, const N: usize>() {
    let [there, back] = &M::shared().semaphores;
    repeated::<M, N>(|_| {
        acquire::<M, N>(there);
        back.give();
    });
}

fn put<P: Processor>(mailbox: &Mailbox<P>, word: u32) {
    mailbox.word.store(word, Ordering::Relaxed);
    mailbox.full.give();
}

fn get<M: Machine<N>, const N: usize>(mailbox: &Mailbox<M::Processor>, expected: u32) {
    acquire::<M, N>(&mailbox.full);
    if mailbox.word.load(Ordering::Relaxed) != expected {
        M::shared().lost.fetch_add(1, Ordering::Relaxed);
    }
}

fn mailbox_ping<M: Machine<N>, const N: usize>() {
    let [there, back] = &M::shared().mailboxes;
    counted::<M, N>(|turn| {
        put(there, turn);
        get::<M, N>(back, !turn);
    });
}

fn mailbox_pong<M: Machine<N>, const N: usize>() {
    let [there, back] = &M::shared().mailboxes;
    repeated::<M, N>(|turn| {
        get::<M, N>(there, turn);
        put(back, !turn);
    });
}

/// What a cross call runs.
fn called(argument: usize) {
    black_box(argument);
}

fn call<M: Machine<N>, const N: usize>(core: usize) {
    let shared = M::shared();
    let deadline_ns = M::Processor::now_ns() + WAIT_NS_MAX;
    counted::<M, N>(|turn| {
        let work = Work::new(called, turn as usize);
        if shared.interprocessor.call_one(core, work, Until::Completed, deadline_ns).is_err() {
            shared.lost.fetch_add(1, Ordering::Relaxed);
        }
    });
}

fn call_self<M: Machine<N>, const N: usize>() {
    M::shared().interprocessor.join();
    call::<M, N>(0);
    M::shared().interprocessor.leave();
}

fn call_other<M: Machine<N>, const N: usize>() {
    let shared = M::shared();
    shared.interprocessor.join();
    wait::<M, N, _>(|| (shared.interprocessor.online().count() == 2).then_some(()));
    call::<M, N>(1);
    shared.interprocessor.leave();
}

/// Core 1 while core 0 calls it.
fn serve<M: Machine<N>, const N: usize>() {
    let shared = M::shared();
    shared.interprocessor.join();
    wait::<M, N, _>(|| (shared.done.load(Ordering::Acquire) > 0).then_some(()));
    shared.interprocessor.leave();
}

fn lock<M: Machine<N>, const N: usize>() {
    let shared = M::shared();
    let increment = |_| shared.counter.with(|count| *count = count.wrapping_add(1));
    // With a partner both count; the figure is of whichever ends last.
    counted::<M, N>(increment);
}

fn ring_put<M: Machine<N>, const N: usize>() {
    let (ring, message) = (&M::shared().ring, [0x5a; CHUNK_BYTES]);
    counted::<M, N>(|_| {
        wait::<M, N, _>(|| {
            ring.with(|ring| {
                let room = ring.put - ring.taken < CHUNKS;
                room.then(|| {
                    ring.chunks[ring.put % CHUNKS].copy_from_slice(black_box(&message));
                    ring.put += 1;
                })
            })
        });
    });
}

fn ring_take<M: Machine<N>, const N: usize>() {
    let (ring, mut message) = (&M::shared().ring, [0; CHUNK_BYTES]);
    repeated::<M, N>(|_| {
        wait::<M, N, _>(|| {
            ring.with(|ring| {
                let some = ring.put > ring.taken;
                some.then(|| {
                    black_box(&mut message).copy_from_slice(&ring.chunks[ring.taken % CHUNKS]);
                    ring.taken += 1;
                })
            })
        });
    });
}

fn copy<M: Machine<N>, const N: usize>() {
    M::shared().copy.with(|[from, to]| {
        counted::<M, N>(|_| black_box(&mut to[..COPY_BYTES]).copy_from_slice(black_box(from)));
    });
}

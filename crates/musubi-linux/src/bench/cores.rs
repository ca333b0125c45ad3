//! Cores made of threads: the multiprocessor layer of the core library on Linux, for measurements and tests.
//!
//! What you may rely on: only functions that [`run`] starts are on a core; elsewhere taking a lock of the layer panics. The
//! tasks of one core take turns by [`switch`] and never run at the same time; a task that holds a lock cannot switch.
//!
//! How it works: a task is a thread, pinned to its core's processor, that waits for its turn. The mask is a flag of the
//! thread. A ring sets a word of the target core; the core takes it when it next opens its mask, relaxes or serves. So a
//! handler runs on the stack of what it interrupts, as on a real core, only at fewer places.
//!
//! What it does not do: interrupt a thread at an arbitrary instruction. A signal could, but its cost would drown what is
//! measured here.

use std::cell::{Cell, RefCell};
use std::marker::PhantomData;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, OnceLock};
use std::thread::Thread;
use std::time::Instant;

use musubi_core::smp::{CORES_MAX, LEVELS, Processor};

use crate::os::realtime;

/// What the thread's mask says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mask {
    /// Interrupts are let in.
    Open,
    /// They wait.
    Closed,
    /// The thread is on no core.
    NoCore,
}

thread_local! {
    static CORE: Cell<usize> = const { Cell::new(0) };
    static LEVEL: Cell<usize> = const { Cell::new(0) };
    static MASK: Cell<Mask> = const { Cell::new(Mask::NoCore) };
    static TURN: RefCell<Option<(Arc<Turns>, usize)>> = const { RefCell::new(None) };
}

/// What runs on the cores: a domain made of threads.
pub trait Program: Sized + 'static {
    /// Number of cores.
    const CORES: usize;
    /// The domain's state, a static of its own.
    fn domain() -> &'static Domain;
    /// The handler of the inter-processor interrupt; runs masked, one level up.
    fn interrupt();
    /// What a waiting loop serves; runs with the mask as it is.
    fn serve();
}

/// Interrupts that wait for each core, and whether the cores run.
#[derive(Debug)]
pub struct Domain {
    /// 1 while an interrupt waits. Writers: any core sets it, its own core clears it.
    pending: [AtomicU32; CORES_MAX],
    /// Whether somebody is in [`run`].
    running: AtomicBool,
}

impl Domain {
    /// No interrupt waits, no core runs.
    #[allow(clippy::new_without_default, reason = "it is a static")]
    pub const fn new() -> Self {
        Self { pending: [const { AtomicU32::new(0) }; CORES_MAX], running: AtomicBool::new(false) }
    }
}

/// The tasks of one core and whose turn it is.
#[derive(Debug, Default)]
struct Turns {
    threads: Vec<OnceLock<Thread>>,
    done: Vec<AtomicBool>,
    /// Writer: whoever has the turn.
    current: AtomicUsize,
}

impl Turns {
    fn of(tasks: usize) -> Arc<Self> {
        let threads = (0..tasks).map(|_| OnceLock::new()).collect();
        let done = (0..tasks).map(|_| AtomicBool::new(false)).collect();
        Arc::new(Self { threads, done, current: AtomicUsize::new(0) })
    }

    /// Gives the turn to the next task that is not done; gives whether there was another one.
    fn pass(&self, from: usize) -> bool {
        let count = self.threads.len();
        let next = (1..count).map(|step| (from + step) % count).find(|&next| !self.done[next].load(Ordering::Relaxed));
        if let Some(next) = next {
            self.current.store(next, Ordering::Release);
            if let Some(thread) = self.threads[next].get() {
                thread.unpark();
            }
        }
        next.is_some()
    }

    fn wait(&self, own: usize) {
        while self.current.load(Ordering::Acquire) != own {
            std::thread::park();
        }
    }
}

/// Ends a task, also one that panics, so that the others go on.
struct Running<'t>(&'t Arc<Turns>, usize);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        MASK.set(Mask::NoCore);
        self.0.done[self.1].store(true, Ordering::Relaxed);
        self.0.pass(self.1);
    }
}

/// Runs tasks, each on its core, until all have returned. `false`, and nothing done, if the cores run already or there is
/// no such core.
pub fn run<G: Program>(tasks: &[(usize, fn())]) -> bool {
    let exist = tasks.iter().all(|&(core, _)| core < G::CORES.min(CORES_MAX));
    if !exist || G::domain().running.swap(true, Ordering::Acquire) {
        return false;
    }
    let on_core = |core: usize| tasks.iter().filter(|task| task.0 == core).count();
    let turns: Vec<_> = (0..G::CORES).map(|core| Turns::of(on_core(core))).collect();
    let all_here = Barrier::new(tasks.len());
    std::thread::scope(|scope| {
        let mut places = vec![0; G::CORES];
        for &(core, task) in tasks {
            let (turns, all_here, place) = (&turns[core], &all_here, places[core]);
            places[core] += 1;
            scope.spawn(move || run_task(core, turns, place, all_here, task));
        }
    });
    G::domain().running.store(false, Ordering::Release);
    true
}

fn run_task(core: usize, turns: &Arc<Turns>, place: usize, all_here: &Barrier, task: fn()) {
    let processors = realtime::cores();
    if processors.len() > 1 {
        // Without it the figures are of another placement, which a report of the processors shows.
        let _ = realtime::pin_to_core(processors[core % processors.len()]);
    }
    let _ = turns.threads[place].set(std::thread::current());
    TURN.set(Some((Arc::clone(turns), place)));
    all_here.wait();
    turns.wait(place);
    let _running = Running(turns, place);
    CORE.set(core);
    LEVEL.set(0);
    MASK.set(Mask::Open);
    task();
}

/// Gives this core to its next task, and returns when the turn has come round. Returns at once if there is no other.
pub fn switch() {
    assert!(
        MASK.get() == Mask::Open && LEVEL.get() == 0,
        "a task switches with a lock held, in a handler, or on no core"
    );
    TURN.with_borrow(|turn| {
        if let Some((turns, own)) = turn
            && turns.pass(*own)
        {
            turns.wait(*own);
        }
    });
}

/// The cores of a program.
#[derive(Debug)]
pub struct Threads<G>(PhantomData<fn() -> G>);

/// Rings for this core itself and takes the interrupt if the mask is open.
pub fn interrupt_self<G: Program>() {
    <Threads<G> as Processor>::ring(CORE.get());
    take_interrupt::<G>();
}

/// Takes the pending interrupt of this core if its mask is open.
#[inline]
fn take_interrupt<G: Program>() {
    let pending = &G::domain().pending[CORE.get()];
    if pending.load(Ordering::Relaxed) == 0 || MASK.get() != Mask::Open || LEVEL.get() + 1 >= LEVELS {
        return;
    }
    pending.swap(0, Ordering::Acquire);
    let before = MASK.replace(Mask::Closed);
    LEVEL.set(LEVEL.get() + 1);
    G::interrupt();
    LEVEL.set(LEVEL.get() - 1);
    MASK.set(before);
}

#[cold]
fn on_no_core() -> ! {
    MASK.set(Mask::NoCore);
    panic!("a thread that is on no core uses a lock of the cores");
}

// SAFETY: only tasks of the one `run` are on a core, and of each core's only the one whose turn it is; passing the turn
// orders what they do, and a task cannot pass it with the mask closed. `mask` refuses other threads. Handlers run only
// where the mask is open; `alone`, `enter` and `leave` are the provided ones.
unsafe impl<G: Program> Processor for Threads<G> {
    const CORES: usize = G::CORES;
    type Mask = Mask;

    #[inline]
    fn core() -> usize {
        CORE.get()
    }
    #[inline]
    fn level() -> usize {
        LEVEL.get()
    }
    #[inline]
    fn mask() -> Mask {
        let before = MASK.replace(Mask::Closed);
        if before == Mask::NoCore {
            on_no_core();
        }
        before
    }
    #[inline]
    fn restore(before: Mask) {
        MASK.set(before);
        take_interrupt::<G>();
    }
    fn is_masked() -> bool {
        MASK.get() != Mask::Open
    }
    #[inline]
    fn relax() {
        take_interrupt::<G>();
        std::hint::spin_loop();
    }
    fn signal() {}
    fn serve() {
        G::serve();
    }
    fn ring(core: usize) {
        G::domain().pending[core].store(1, Ordering::Release);
    }
    fn now_ns() -> u64 {
        static START: OnceLock<Instant> = OnceLock::new();
        START.get_or_init(Instant::now).elapsed().as_nanos() as u64
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use musubi_core::smp::{Lock, Ticket};

    use super::*;

    struct Two;
    static DOMAIN: Domain = Domain::new();
    static INTERRUPTS: AtomicUsize = AtomicUsize::new(0);
    impl Program for Two {
        const CORES: usize = 2;
        fn domain() -> &'static Domain {
            &DOMAIN
        }
        fn interrupt() {
            INTERRUPTS.fetch_add(1, Ordering::Relaxed);
        }
        fn serve() {}
    }

    static LOCK: Ticket<Threads<Two>> = Ticket::new();
    static DONE: AtomicUsize = AtomicUsize::new(0);

    fn interrupts_wait_for_the_mask() {
        let before = INTERRUPTS.load(Ordering::Relaxed);
        let held = LOCK.lock();
        interrupt_self::<Two>();
        assert_eq!(INTERRUPTS.load(Ordering::Relaxed), before, "masked");
        drop(held);
        assert_eq!(INTERRUPTS.load(Ordering::Relaxed), before + 1);
        interrupt_self::<Two>();
        assert_eq!(INTERRUPTS.load(Ordering::Relaxed), before + 2);
        DONE.fetch_add(1, Ordering::Relaxed);
    }

    /// Whose turn it was.
    static SEEN: std::sync::Mutex<Vec<char>> = std::sync::Mutex::new(Vec::new());

    fn turns_of(name: char) {
        for _ in 0..3 {
            SEEN.lock().unwrap().push(name);
            switch();
        }
    }

    #[test]
    fn tasks_of_a_core_take_turns_and_interrupts_wait() {
        assert!(run::<Two>(&[(1, interrupts_wait_for_the_mask)]));
        assert_eq!(DONE.load(Ordering::Relaxed), 1);
        assert!(run::<Two>(&[(0, || turns_of('a')), (0, || turns_of('b')), (0, || turns_of('c'))]));
        assert_eq!(*SEEN.lock().unwrap(), ['a', 'b', 'c', 'a', 'b', 'c', 'a', 'b', 'c']);
        assert!(!run::<Two>(&[(2, || ())]), "no such core");
    }

    #[test]
    #[should_panic(expected = "on no core")]
    fn a_thread_that_is_no_core_takes_no_lock() {
        static OTHER: Ticket<Threads<Two>> = Ticket::new();
        let _held = OTHER.lock();
    }
}

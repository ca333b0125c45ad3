//! A mutex whose holder runs with the priority of the most urgent thread that waits for it, and sleeping until one is told.
//!
//! What you may rely on: a real-time thread that waits for the mutex waits as long as its holder needs to give it back, and
//! never for a thread of a priority in between: the kernel lends the holder the waiter's priority meanwhile, and gives the
//! mutex to the most urgent waiter. Taking and giving back a free one makes no system call. A holder that panics gives it
//! back. Nobody who was told sleeps on.
//!
//! How it works: the word is that of the kernel's futexes with priority inheritance (futex(2), `FUTEX_LOCK_PI`): 0, or the
//! holder's thread id, with the highest bit while somebody waits. Where the kernel has or permits no such futex, which is
//! asked once, waiting is on a plain one and nothing is lent. [`Told`] counts what was told; who sleeps compares the count.
//!
//! What it does not do: serve another process. A child made by `fork` has none of its parent's mutexes, but may have its own.

use std::cell::{Cell, UnsafeCell};
use std::ops::{Deref, DerefMut};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::io::Errno;
use rustix::thread::futex::{self as kernel, Flags};
use rustix::thread::gettid;

use crate::os::clock::{Deadline, timespec};
use crate::os::forks;

/// The word of a mutex that nobody holds.
const FREE: u32 = 0;
/// Bit of the word while somebody waits in the kernel.
const WAITERS: u32 = 1 << 31;
/// Looks at a mutex that is held, before the kernel is asked: about as long as a short operation holds it.
const LOOKS: u32 = 100;

thread_local! {
    /// This thread's number, once it was asked for.
    static NUMBER: Cell<u32> = const { Cell::new(0) };
}

/// This thread's number, as the kernel has it in the words of futexes.
#[inline]
fn thread_id() -> u32 {
    NUMBER.with(|number| {
        if number.get() == 0 {
            forks::install();
            number.set(gettid().as_raw_nonzero().get() as u32);
        }
        number.get()
    })
}

/// In a child made by `fork`: its thread has another number than the one that it is a copy of.
pub(super) fn in_child() {
    NUMBER.with(|number| number.set(0));
}

/// Whether the kernel lends priorities; asked once, with a word of our own.
fn lends() -> bool {
    static LENDS: OnceLock<bool> = OnceLock::new();
    *LENDS.get_or_init(|| {
        let word = AtomicU32::new(FREE);
        kernel::lock_pi(&word, Flags::PRIVATE, None).is_ok() && kernel::unlock_pi(&word, Flags::PRIVATE).is_ok()
    })
}

/// The mutex.
#[derive(Debug)]
pub struct InheritingMutex<T> {
    /// Written by who takes it and gives it back, and by the kernel while somebody waits.
    word: AtomicU32,
    /// Whether waiting lends priority.
    lends: fn() -> bool,
    value: UnsafeCell<T>,
}

// SAFETY: the value is reached through a guard only, and there is one guard at a time, of the thread whose number the word
// has; so sharing the mutex hands the value from thread to thread, which `T: Send` permits.
unsafe impl<T: Send> Sync for InheritingMutex<T> {}

/// Who has this has the mutex, until it is dropped.
#[derive(Debug)]
pub struct InheritingGuard<'m, T> {
    mutex: &'m InheritingMutex<T>,
    /// The kernel knows the holder by its thread, so a guard stays with it.
    stays: std::marker::PhantomData<*const ()>,
}

// SAFETY: a shared guard gives `&T` only, which `T: Sync` permits.
unsafe impl<T: Sync> Sync for InheritingGuard<'_, T> {}

impl<T> InheritingMutex<T> {
    /// One that nobody holds.
    pub const fn new(value: T) -> InheritingMutex<T> {
        InheritingMutex::waiting(value, lends)
    }

    const fn waiting(value: T, lends: fn() -> bool) -> InheritingMutex<T> {
        InheritingMutex { word: AtomicU32::new(FREE), lends, value: UnsafeCell::new(value) }
    }

    /// Takes it if nobody has it.
    #[inline(always)]
    pub fn try_lock(&self) -> Option<InheritingGuard<'_, T>> {
        let taken = self.word.compare_exchange(FREE, thread_id(), Ordering::Acquire, Ordering::Relaxed);
        taken.is_ok().then(|| InheritingGuard { mutex: self, stays: std::marker::PhantomData })
    }

    /// Takes it, once it is free. A thread that has it already waits for ever.
    #[inline]
    pub fn lock(&self) -> InheritingGuard<'_, T> {
        self.try_lock().unwrap_or_else(|| self.lock_held())
    }

    #[cold]
    fn lock_held(&self) -> InheritingGuard<'_, T> {
        for _ in 0..LOOKS {
            // Who waits in the kernel goes first.
            if self.word.load(Ordering::Relaxed) == FREE
                && let Some(guard) = self.try_lock()
            {
                return guard;
            }
            std::hint::spin_loop();
        }
        if (self.lends)() { self.lock_lending() } else { self.lock_plainly() }
    }

    fn lock_lending(&self) -> InheritingGuard<'_, T> {
        loop {
            match kernel::lock_pi(&self.word, Flags::PRIVATE, None) {
                Ok(()) => break,
                // A signal came, or the holder is just ending.
                Err(_) => {
                    if let Some(guard) = self.try_lock() {
                        return guard;
                    }
                }
            }
        }
        // The kernel has written the word; what the last holder did comes before this.
        self.word.load(Ordering::Acquire);
        InheritingGuard { mutex: self, stays: std::marker::PhantomData }
    }

    fn lock_plainly(&self) -> InheritingGuard<'_, T> {
        loop {
            let seen = self.word.load(Ordering::Relaxed);
            let mine = thread_id() | WAITERS;
            if seen == FREE {
                // With the bit: others may sleep, and who gives it back is to wake one.
                if self.word.compare_exchange(FREE, mine, Ordering::Acquire, Ordering::Relaxed).is_ok() {
                    return InheritingGuard { mutex: self, stays: std::marker::PhantomData };
                }
                continue;
            }
            let marked = seen | WAITERS;
            if seen == marked || self.word.compare_exchange(seen, marked, Ordering::Relaxed, Ordering::Relaxed).is_ok()
            {
                // Changed meanwhile, woken or disturbed: look again.
                let _ = kernel::wait(&self.word, Flags::PRIVATE, marked, None);
            }
        }
    }

    #[inline(always)]
    fn unlock(&self) {
        let mine = thread_id();
        if self.word.compare_exchange(mine, FREE, Ordering::Release, Ordering::Relaxed).is_err() {
            self.hand_on();
        }
    }

    /// Somebody waits in the kernel.
    #[cold]
    fn hand_on(&self) {
        if (self.lends)() {
            // For who reads it after the kernel has handed the mutex over; the bit is set already.
            self.word.fetch_or(WAITERS, Ordering::Release);
            // Fails for no word that has our number.
            let _ = kernel::unlock_pi(&self.word, Flags::PRIVATE);
        } else {
            self.word.store(FREE, Ordering::Release);
            let _ = kernel::wake(&self.word, Flags::PRIVATE, 1);
        }
    }
}

impl<T> Deref for InheritingGuard<'_, T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        // SAFETY: this guard is the only one until it is dropped, so nobody changes the value but through it.
        unsafe { &*self.mutex.value.get() }
    }
}

impl<T> DerefMut for InheritingGuard<'_, T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: this guard is the only one until it is dropped, and it is borrowed mutably.
        unsafe { &mut *self.mutex.value.get() }
    }
}

impl<T> Drop for InheritingGuard<'_, T> {
    #[inline(always)]
    fn drop(&mut self) {
        self.mutex.unlock();
    }
}

/// Sleeping until one is told, with a mutex that is given up meanwhile.
#[derive(Debug, Default)]
pub struct Told {
    /// How often somebody was told; written by who tells.
    count: AtomicU32,
}

impl Told {
    /// Nobody was told anything.
    pub const fn new() -> Told {
        Told { count: AtomicU32::new(0) }
    }

    /// Gives the mutex up, sleeps until somebody tells or the deadline passes, and takes it again. May return without either.
    pub fn wait<'m, T>(&self, guard: InheritingGuard<'m, T>, deadline: Deadline) -> InheritingGuard<'m, T> {
        let mutex = guard.mutex;
        let count = self.count.load(Ordering::Relaxed);
        drop(guard);
        let until = match deadline {
            Deadline::At(ns) => Some(timespec(ns)),
            Deadline::Poll => return mutex.lock(),
            Deadline::Forever => None,
        };
        // Told meanwhile, woken, disturbed or late: the caller looks.
        let _: Result<(), Errno> = kernel::wait_bitset(&self.count, Flags::PRIVATE, count, until.as_ref(), EVERYBODY);
        mutex.lock()
    }

    /// Tells one of those who sleep.
    pub fn tell_one(&self) {
        self.tell(1);
    }

    /// Tells all of them.
    pub fn tell_all(&self) {
        self.tell(i32::MAX as u32);
    }

    fn tell(&self, most: u32) {
        self.count.fetch_add(1, Ordering::Release);
        let _ = kernel::wake(&self.count, Flags::PRIVATE, most);
    }
}

/// All who sleep on a word, whatever for; with a bitset the kernel takes the time as a point, not as a span.
const EVERYBODY: std::num::NonZeroU32 = std::num::NonZeroU32::MAX;

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, AtomicU64};
    use std::time::{Duration, Instant};

    use super::*;
    use crate::os::clock::DeadlineExt;
    use crate::os::realtime;

    const THREADS: u64 = 4;

    /// Threads that add to a number of two halves.
    fn excludes(
        rounds: u64,
        lends: fn() -> bool,
        lock: impl Fn(&InheritingMutex<[u64; 2]>) -> InheritingGuard<'_, [u64; 2]> + Sync,
    ) {
        let mutex = InheritingMutex::waiting([0_u64; 2], lends);
        std::thread::scope(|scope| {
            for _ in 0..THREADS {
                scope.spawn(|| {
                    for _ in 0..rounds {
                        let mut guard = lock(&mutex);
                        assert_eq!(guard[0], guard[1]);
                        guard[0] += 1;
                        guard[1] += 1;
                    }
                });
            }
        });
        assert_eq!(*mutex.lock(), [THREADS * rounds; 2]);
        assert_eq!(mutex.word.load(Ordering::Relaxed) & !WAITERS, FREE, "nobody has it");
    }

    #[test]
    fn there_is_one_holder_at_a_time() {
        excludes(20_000, lends, InheritingMutex::lock);
    }

    #[test]
    fn there_is_one_holder_at_a_time_where_nothing_is_lent() {
        excludes(20_000, || false, InheritingMutex::lock);
        excludes(500, || false, |mutex| mutex.try_lock().unwrap_or_else(|| mutex.lock_plainly()));
    }

    #[test]
    fn there_is_one_holder_at_a_time_where_all_ask_the_kernel() {
        excludes(500, lends, |mutex| mutex.try_lock().unwrap_or_else(|| mutex.lock_lending()));
    }

    #[test]
    fn a_mutex_that_is_held_is_not_taken() {
        let mutex = InheritingMutex::new(5);
        let guard = mutex.lock();
        std::thread::scope(|scope| assert!(scope.spawn(|| mutex.try_lock().is_none()).join().unwrap()));
        drop(guard);
        assert_eq!(mutex.try_lock().map(|guard| *guard), Some(5));
    }

    #[test]
    #[cfg_attr(miri, ignore = "there is no fork")]
    fn a_child_takes_its_own_mutex_by_its_own_number() {
        // The thread that forks has its number already.
        drop(InheritingMutex::new(()).lock());
        // SAFETY: the child makes system calls and ends without running anything of ours.
        let child = unsafe { libc::fork() };
        if child == 0 {
            let mutex = InheritingMutex::new(());
            let guard = mutex.lock();
            let is_own = mutex.word.load(Ordering::Relaxed) == gettid().as_raw_nonzero().get() as u32;
            drop(guard);
            // SAFETY: ends the child at once.
            unsafe { libc::_exit(i32::from(!is_own)) };
        }
        let mut status = -1;
        // SAFETY: `status` is room for what is written.
        assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
        assert_eq!(status, 0, "the child takes it by its parent's number");
    }

    #[test]
    fn a_holder_that_panics_gives_it_back() {
        let mutex = InheritingMutex::new(());
        let panicked = std::thread::scope(|scope| {
            let holder = scope.spawn(|| {
                let _guard = mutex.lock();
                panic!("the test's own");
            });
            holder.join().is_err()
        });
        assert!(panicked && mutex.try_lock().is_some());
    }

    #[test]
    fn who_was_told_does_not_sleep_on() {
        let shared = Arc::new((InheritingMutex::new(0_u32), Told::new()));
        let sleepers: Vec<_> = (0..THREADS)
            .map(|_| {
                let shared = Arc::clone(&shared);
                std::thread::spawn(move || {
                    let mut seen = 0;
                    while seen < 1000 {
                        let mut guard = shared.0.lock();
                        while *guard == seen {
                            guard = shared.1.wait(guard, Deadline::Forever);
                        }
                        seen = *guard;
                    }
                })
            })
            .collect();
        for _ in 0..1000 {
            *shared.0.lock() += 1;
            shared.1.tell_all();
        }
        sleepers.into_iter().for_each(|sleeper| sleeper.join().unwrap());
    }

    #[test]
    fn a_sleep_ends_at_its_deadline() {
        let (mutex, told) = (InheritingMutex::new(()), Told::new());
        let until = Deadline::after(Duration::from_millis(20));
        let mut guard = mutex.lock();
        while !until.passed() {
            guard = told.wait(guard, until);
        }
        drop(told.wait(guard, Deadline::Poll));
        assert!(mutex.try_lock().is_some());
    }

    /// One processor: a thread that holds the mutex has work to do; one of a middle priority would keep it from its work
    /// for ever, if the most urgent thread, which waits for the mutex, did not lend it its own.
    #[test]
    fn a_holder_runs_before_threads_of_a_priority_between() {
        let Some(&core) = realtime::cores().last() else { return };
        let mutex = Arc::new(InheritingMutex::new(false));
        let (held, over, between) =
            (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let on_core = |priority: u8, run: Box<dyn FnOnce() + Send>| {
            std::thread::spawn(move || {
                let is_so = realtime::pin_to_core(core).is_ok()
                    && (priority == 0 || realtime::set_fifo_priority(priority).is_ok());
                if is_so {
                    run();
                }
                is_so
            })
        };
        let (m, h, o) = (Arc::clone(&mutex), Arc::clone(&held), Arc::clone(&over));
        let holder = on_core(
            0,
            Box::new(move || {
                let mut guard = m.lock();
                h.store(true, Ordering::Release);
                // Until somebody waits, and then more work than real-time threads leave time for in 3 s.
                let begun = Instant::now();
                while m.word.load(Ordering::Relaxed) & WAITERS == 0 && begun.elapsed() < Duration::from_secs(20) {}
                for turn in 0..60_000_000_u64 {
                    if std::hint::black_box(turn) & 0xffff == 0 && o.load(Ordering::Relaxed) {
                        break;
                    }
                }
                *guard = true;
            }),
        );
        while !held.load(Ordering::Acquire) && !holder.is_finished() {
            std::thread::yield_now();
        }
        let (m, o, b) = (Arc::clone(&mutex), Arc::clone(&over), Arc::clone(&between));
        let middle = on_core(
            1,
            Box::new(move || {
                while m.word.load(Ordering::Relaxed) & WAITERS == 0 && !o.load(Ordering::Relaxed) {
                    std::thread::sleep(Duration::from_millis(1));
                }
                let begun = Instant::now();
                while !o.load(Ordering::Relaxed) && begun.elapsed() < Duration::from_secs(3) {
                    b.fetch_add(1, Ordering::Relaxed);
                }
                // It was kept from running, or the holder was.
                o.store(true, Ordering::Relaxed);
            }),
        );
        let (m, o) = (Arc::clone(&mutex), Arc::clone(&over));
        let urgent = on_core(
            2,
            Box::new(move || {
                let guard = m.lock();
                assert!(!o.swap(true, Ordering::Relaxed), "a thread of a priority between ran to its end first");
                assert!(*guard);
            }),
        );
        let [holder, middle, urgent] = [holder, middle, urgent].map(|thread| thread.join().unwrap());
        if !(holder && middle && urgent) {
            eprintln!("not tried: real-time priorities may not be had here");
        }
    }
}

//! Ticket lock with proportional back-off: the default lock between the cores of a domain.
//!
//! What you may rely on: first come, first served; one atomic addition to enter, one store to leave; eight bytes. A
//! core waits at most (m-1)(L+h) for m cores, L the longest section and h the hand-over, because at most m-1 others
//! drew a number before it. It waits with interrupts masked and serves cross calls meanwhile.
//!
//! How it works: who comes draws a number and waits until it is served (Reed and Kanodia, "Synchronization with
//! eventcounts and sequencers", 1979; with back-off in proportion to the numbers ahead: Mellor-Crummey and Scott, 1991).
//! Numbers wrap, which does not matter as fewer than 2^32 cores wait. The waiting loop is out of line, in a section of
//! its own, so that it takes no room in the caches where the lock is free.
//!
//! What it does not do: spare the other waiters a miss at each hand-over, as all look at one word. From four cores on
//! [`crate::smp::Clh`] does.

use core::marker::PhantomData;

use crate::smp::Processor;
use crate::smp::exclusion::{Lock, Turn};
use crate::smp::watch::{Off, Watch};
use crate::sync::{AtomicU32, Ordering, Site, acquire, constructor, release};

/// Hints to the core for each further number ahead, between two looks at the number served.
pub const PAUSES_PER_WAITER: u32 = 16;

/// A ticket lock of the cores `P`.
#[repr(C)]
#[derive(Debug)]
pub struct Ticket<P, W = Off> {
    /// The number that the next core draws. Written by whoever comes, by atomic addition.
    next: AtomicU32,
    /// The number that may enter. Written by the holder only.
    serving: AtomicU32,
    watch: W,
    processor: PhantomData<fn() -> P>,
}

impl<P> Ticket<P> {
    constructor! {
        /// A free lock that nobody watches.
        pub fn new() -> Self {
            Ticket::watched(Off)
        }
    }
}

#[cfg(not(loom))]
impl<P> Default for Ticket<P> {
    fn default() -> Self {
        Ticket::new()
    }
}

impl<P, W> Ticket<P, W> {
    constructor! {
        /// A free lock that is watched.
        pub fn watched(watch: W) -> Self {
            Ticket { next: AtomicU32::new(0), serving: AtomicU32::new(0), watch, processor: PhantomData }
        }
    }

    /// What watches it.
    pub fn watch(&self) -> &W {
        &self.watch
    }

    /// Cores that hold it or wait for it. A look that is old at once.
    pub fn interested(&self) -> u32 {
        let serving = self.serving.load(Ordering::Relaxed);
        self.next.load(Ordering::Relaxed).wrapping_sub(serving)
    }
}

impl<P: Processor, W: Watch> Ticket<P, W> {
    /// Waits until `mine` is served.
    #[cold]
    #[inline(never)]
    #[cfg_attr(lock_section, unsafe(link_section = ".text.lock"))]
    fn wait(&self, mine: u32) {
        loop {
            let ahead = mine.wrapping_sub(self.serving.load(acquire(Site::SeeServing)));
            if ahead == 0 {
                return;
            }
            for _ in 0..(ahead - 1).min(P::CORES as u32) * PAUSES_PER_WAITER {
                core::hint::spin_loop();
            }
            P::relax();
            P::serve();
        }
    }
}

// SAFETY: a number is drawn once, and served only after the holder of the number before has given; that store releases
// what the look that finds it acquires.
unsafe impl<P: Processor, W: Watch> Turn for Ticket<P, W> {
    #[inline(always)]
    fn take(&self) {
        let asked = self.watch.asks::<P>(false);
        let mine = self.next.fetch_add(1, Ordering::Relaxed);
        let ahead = mine.wrapping_sub(self.serving.load(acquire(Site::SeeServing)));
        if ahead != 0 {
            self.wait(mine);
        }
        self.watch.takes::<P>(asked, ahead);
    }

    #[inline(always)]
    fn try_take(&self) -> bool {
        let asked = self.watch.asks::<P>(true);
        let serving = self.serving.load(acquire(Site::SeeServing));
        let drawn = self.next.compare_exchange(serving, serving.wrapping_add(1), Ordering::Relaxed, Ordering::Relaxed);
        if drawn.is_ok() {
            self.watch.takes::<P>(asked, 0);
        }
        drawn.is_ok()
    }

    #[inline(always)]
    unsafe fn give(&self) {
        self.watch.gives::<P>();
        let mine = self.serving.load(Ordering::Relaxed);
        self.serving.store(mine.wrapping_add(1), release(Site::PublishServing));
        P::signal();
    }
}

// SAFETY: nothing is replaced.
unsafe impl<P: Processor, W: Watch> Lock for Ticket<P, W> {
    type Processor = P;
    const WATCHED: bool = W::ON;
}

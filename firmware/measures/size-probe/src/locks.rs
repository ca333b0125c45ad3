//! One site of a lock: built for one core, for four, and for four with the waiting loop in line, to compare.

use core::cell::Cell;
use core::hint::black_box;
use core::sync::atomic::{AtomicU32, Ordering};

use musubi_core::smp::clh::nodes;
use musubi_core::smp::{Clh, Lock, Processor, Ticket, Turn};

/// Cores of a board, whose own part (mask, number) costs as little as it can, since it is the board's.
struct Board<const CORES: usize>;

static MASK: AtomicU32 = AtomicU32::new(0);

// SAFETY: the image is never run, let alone on two cores.
unsafe impl<const CORES: usize> Processor for Board<CORES> {
    const CORES: usize = CORES;
    type Mask = u32;

    #[inline(always)]
    fn core() -> usize {
        black_box(0)
    }
    #[inline(always)]
    fn level() -> usize {
        0
    }
    #[inline(always)]
    fn mask() -> u32 {
        let before = MASK.load(Ordering::Relaxed);
        MASK.store(1, Ordering::Relaxed);
        before
    }
    #[inline(always)]
    fn restore(before: u32) {
        MASK.store(before, Ordering::Relaxed);
    }
    fn is_masked() -> bool {
        MASK.load(Ordering::Relaxed) != 0
    }
    #[inline(always)]
    fn relax() {
        core::hint::spin_loop();
    }
    #[inline(always)]
    fn signal() {}
    #[inline(never)]
    fn serve() {
        MASK.fetch_add(2, Ordering::Relaxed);
    }
    fn ring(_: usize) {}
    fn now_ns() -> u64 {
        0
    }
}

/// What a lock guards.
struct Guarded(Cell<u32>);
// SAFETY: the image is never run, let alone on two cores.
unsafe impl Sync for Guarded {}
static GUARDED: Guarded = Guarded(Cell::new(0));

/// A ticket lock as [`Ticket`], but for its waiting loop, which stands where the lock is taken.
#[cfg(feature = "lock-inline")]
struct InLine {
    next: AtomicU32,
    serving: AtomicU32,
}

#[cfg(feature = "lock-inline")]
// SAFETY: as for `Ticket`.
unsafe impl Turn for InLine {
    #[inline(always)]
    fn take(&self) {
        use musubi_core::smp::ticket::PAUSES_PER_WAITER;
        let mine = self.next.fetch_add(1, Ordering::Relaxed);
        loop {
            let ahead = mine.wrapping_sub(self.serving.load(Ordering::Acquire));
            if ahead == 0 {
                return;
            }
            for _ in 0..(ahead - 1).min(4) * PAUSES_PER_WAITER {
                core::hint::spin_loop();
            }
            Board::<4>::relax();
            Board::<4>::serve();
        }
    }
    fn try_take(&self) -> bool {
        false
    }
    #[inline(always)]
    unsafe fn give(&self) {
        let mine = self.serving.load(Ordering::Relaxed);
        self.serving.store(mine.wrapping_add(1), Ordering::Release);
    }
}

#[cfg(feature = "lock-inline")]
// SAFETY: nothing is replaced.
unsafe impl Lock for InLine {
    type Processor = Board<4>;
}

/// A place where a lock is taken and given: called, not inlined, so that its symbol has its size.
macro_rules! site {
    ($feature:literal, $site:ident, $lock:expr, $kind:ty) => {
        #[cfg(feature = $feature)]
        #[unsafe(no_mangle)]
        #[inline(never)]
        fn $site() -> u32 {
            static LOCK: $kind = $lock;
            let held = LOCK.lock();
            let value = GUARDED.0.get() + 1;
            GUARDED.0.set(value);
            drop(held);
            value
        }
    };
}

site!("lock-up", site_up, Ticket::new(), Ticket<Board<1>>);
site!("lock-smp", site_ticket, Ticket::new(), Ticket<Board<4>>);
site!("lock-inline", site_inline, InLine { next: AtomicU32::new(0), serving: AtomicU32::new(0) }, InLine);
site!("lock-clh", site_clh, Clh::new(), Clh<Board<4>, { nodes(4) }>);

/// Uses each kind of lock that the image has.
pub fn lock(command: u32) -> u32 {
    match command {
        #[cfg(feature = "lock-up")]
        0 => site_up(),
        #[cfg(feature = "lock-smp")]
        1 => site_ticket(),
        #[cfg(feature = "lock-inline")]
        2 => site_inline(),
        #[cfg(feature = "lock-clh")]
        3 => site_clh(),
        _ => command,
    }
}

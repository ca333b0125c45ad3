//! The image's heap: a static arena.
//!
//! What you may rely on: taking and giving back are a few steps with interrupts masked, under a lock that is held for these only;
//! any core may give back what another took. What is used up is refused.
//!
//! How it works: sizes are rounded up to powers of two; each has a list of pieces that came back, linked through their first
//! word. A new piece is cut from the rest of the arena, which never comes back as a whole.
//!
//! What it does not do: serve handlers of interrupts, which could find the lock held by whom they interrupted on another core.

use core::alloc::{GlobalAlloc, Layout};
use core::cell::UnsafeCell;
use core::fmt;
use core::sync::atomic::{AtomicBool, Ordering};

use musubi_metal::arch;

/// Bytes of the arena.
const ARENA_BYTES: usize = 4 << 20;
/// Smallest piece; a power of two.
const PIECE_MIN: usize = 16;
/// Powers of two up to the arena's size.
const SIZES: usize = ARENA_BYTES.ilog2() as usize + 1;

#[repr(C, align(4096))]
struct Arena(UnsafeCell<[u8; ARENA_BYTES]>);

struct Heap {
    taken: AtomicBool,
    arena: Arena,
    state: UnsafeCell<State>,
}

struct State {
    /// Bytes of the arena that were cut off so far.
    cut: usize,
    /// Bytes in use, rounded up, now and at most.
    used: usize,
    peak: usize,
    /// First piece that came back, by the logarithm of the size.
    free: [*mut u8; SIZES],
}

// SAFETY: state and arena are reached under the lock only, or as pieces that one owner has.
unsafe impl Sync for Heap {}

#[global_allocator]
static HEAP: Heap = Heap {
    taken: AtomicBool::new(false),
    arena: Arena(UnsafeCell::new([0; ARENA_BYTES])),
    state: UnsafeCell::new(State { cut: 0, used: 0, peak: 0, free: [core::ptr::null_mut(); SIZES] }),
};

impl Heap {
    fn with<R>(&self, operation: impl FnOnce(&mut State) -> R) -> R {
        let before = arch::mask();
        while self.taken.swap(true, Ordering::Acquire) {
            core::hint::spin_loop();
        }
        // SAFETY: the lock is ours, and nobody on this core can come between.
        let result = operation(unsafe { &mut *self.state.get() });
        self.taken.store(false, Ordering::Release);
        arch::restore(before);
        result
    }
}

fn piece_of(layout: Layout) -> usize {
    layout.size().max(layout.align()).max(PIECE_MIN).next_power_of_two()
}

// SAFETY: a piece is handed out to one owner until it comes back; it is as large and aligned as its power of two, up to a
// page, which is more than any layout here asks for.
unsafe impl GlobalAlloc for Heap {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let bytes = piece_of(layout);
        self.with(|state| {
            let size = bytes.ilog2() as usize;
            let Some(first) = state.free.get(size).copied() else { return core::ptr::null_mut() };
            let piece = if first.is_null() {
                let at = state.cut.next_multiple_of(bytes.min(4096));
                if at + bytes > ARENA_BYTES {
                    return first;
                }
                state.cut = at + bytes;
                self.arena.0.get().cast::<u8>().wrapping_add(at)
            } else {
                // SAFETY: a piece in the list is nobody's, and its first word was written when it came back.
                state.free[size] = unsafe { first.cast::<*mut u8>().read() };
                first
            };
            state.used += bytes;
            state.peak = state.peak.max(state.used);
            piece
        })
    }

    unsafe fn dealloc(&self, piece: *mut u8, layout: Layout) {
        let bytes = piece_of(layout);
        self.with(|state| {
            let size = bytes.ilog2() as usize;
            // SAFETY: the piece is the caller's until now, and large enough and aligned for a word.
            unsafe { piece.cast::<*mut u8>().write(state.free[size]) };
            state.free[size] = piece;
            state.used -= bytes;
        });
    }
}

/// Bytes in use, and at most so far.
pub struct Report {
    used: usize,
    peak: usize,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} KiB at most, {} KiB left behind", self.peak / 1024, self.used / 1024)
    }
}

/// What is in use; from here on "at most" is counted anew.
pub fn report() -> Report {
    HEAP.with(|state| {
        let report = Report { used: state.used, peak: state.peak };
        state.peak = state.used;
        report
    })
}

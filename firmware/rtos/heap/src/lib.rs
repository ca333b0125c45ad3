//! A heap for images: a static arena.
//!
//! What you may rely on: taking and giving back are a few steps with interrupts masked, under a lock that is held for these only;
//! any core may give back what another took. What is used up is refused.
//!
//! How it works: sizes are rounded up to powers of two; each has a list of pieces that came back, linked through their first
//! word. A new piece is cut from the rest of the arena, which never comes back as a whole.
//!
//! What it does not do: serve handlers of interrupts, which could find the lock held by whom they interrupted on another core.
#![no_std]

use core::alloc::{GlobalAlloc, Layout};
use core::cell::UnsafeCell;
use core::fmt;
use core::sync::atomic::{AtomicBool, Ordering};

use musubi_metal::arch;

/// Smallest piece; a power of two.
const PIECE_MIN: usize = 16;
/// Powers of two below which pieces are; no arena is larger.
const SIZES: usize = 32;

#[repr(C, align(4096))]
struct Arena<const BYTES: usize>(UnsafeCell<[u8; BYTES]>);

/// A heap of so many bytes; an image has one, as its `#[global_allocator]`.
pub struct Heap<const BYTES: usize> {
    /// 1 while a core is inside. Writer: who is.
    taken: AtomicBool,
    arena: Arena<BYTES>,
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
unsafe impl<const BYTES: usize> Sync for Heap<BYTES> {}

impl<const BYTES: usize> Heap<BYTES> {
    /// With nothing in use.
    #[allow(clippy::new_without_default, reason = "it is a static")]
    pub const fn new() -> Self {
        let state = State { cut: 0, used: 0, peak: 0, free: [core::ptr::null_mut(); SIZES] };
        let arena = Arena(UnsafeCell::new([0; BYTES]));
        Heap { taken: AtomicBool::new(false), arena, state: UnsafeCell::new(state) }
    }

    /// What is in use; from here on "at most" is counted anew.
    pub fn report(&self) -> Report {
        self.with(|state| {
            let report = Report { used: state.used, peak: state.peak };
            state.peak = state.used;
            report
        })
    }

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
unsafe impl<const BYTES: usize> GlobalAlloc for Heap<BYTES> {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let bytes = piece_of(layout);
        self.with(|state| {
            let size = bytes.ilog2() as usize;
            let Some(first) = state.free.get(size).copied() else { return core::ptr::null_mut() };
            let piece = if first.is_null() {
                let at = state.cut.next_multiple_of(bytes.min(4096));
                if at + bytes > BYTES {
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

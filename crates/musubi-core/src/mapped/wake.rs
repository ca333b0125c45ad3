//! The place of one waker, which a handler may wake at any moment.
//!
//! What you may rely on: neither side waits. A wake after [`WakerPlace::register`] has returned wakes that waker, unless
//! another took its place; one during it wakes the waker at its end.
//!
//! How it works: two bits, one for who puts a waker in and one for who takes it out. Who finds the other bit set leaves
//! the rest to the other: the one who registers then wakes by itself.

use core::cell::UnsafeCell;
use core::task::Waker;

use crate::sync::{AtomicU32, Ordering};

const IDLE: u32 = 0;
const REGISTERING: u32 = 1;
const WAKING: u32 = 2;

/// One waker or none.
#[derive(Debug)]
pub(super) struct WakerPlace {
    bits: AtomicU32,
    waker: UnsafeCell<Option<Waker>>,
}

// SAFETY: the waker is touched only by who brought the bits from `IDLE` to its own.
unsafe impl Sync for WakerPlace {}

impl WakerPlace {
    pub fn new() -> Self {
        WakerPlace { bits: AtomicU32::new(IDLE), waker: UnsafeCell::new(None) }
    }

    /// Puts a waker in; gives the former one, so that it is dropped where its destructor does no harm. Called by one
    /// thread at a time.
    pub fn register(&self, waker: &Waker) -> Option<Waker> {
        let begun = self.bits.compare_exchange(IDLE, REGISTERING, Ordering::Acquire, Ordering::Acquire);
        if begun.is_err() {
            // Somebody wakes the former one just now; what it wakes for may concern the new one.
            waker.wake_by_ref();
            return None;
        }
        let former = self.swap(Some(waker.clone()));
        let ended = self.bits.compare_exchange(REGISTERING, IDLE, Ordering::AcqRel, Ordering::Acquire);
        if ended.is_err() {
            let missed = self.swap(None);
            self.bits.store(IDLE, Ordering::Release);
            if let Some(waker) = missed {
                waker.wake();
            }
        }
        former
    }

    /// Wakes the waker, if there is one, and takes it out.
    pub fn wake(&self) {
        if let Some(waker) = self.take() {
            waker.wake();
        }
    }

    /// Takes the waker out. One that is being put in is woken instead.
    pub fn take(&self) -> Option<Waker> {
        if self.bits.fetch_or(WAKING, Ordering::AcqRel) != IDLE {
            return None;
        }
        let waker = self.swap(None);
        self.bits.fetch_and(!WAKING, Ordering::Release);
        waker
    }

    fn swap(&self, waker: Option<Waker>) -> Option<Waker> {
        // SAFETY: the callers brought the bits from `IDLE` to their own, and nobody else touches the waker until they
        // bring them back.
        let place = unsafe { &mut *self.waker.get() };
        core::mem::replace(place, waker)
    }
}

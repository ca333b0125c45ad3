//! Our locks behind the traits of the crate `lock_api`: `lock_api::Mutex<RawTicket<P>, T>` and
//! `lock_api::RwLock<RawPhaseFair<P>, T>`.
//!
//! What you may rely on: the same order, masking and serving as the locks themselves. Guards stay on their core and carry
//! the mask from before.
//!
//! What it does not do: come for nothing with one core. `lock_api` promises that a lock excludes its own core, too, which a
//! mask alone does not; [`crate::smp::Lock`] has the version that is a mask only.

use lock_api::{GuardNoSend, RawMutex, RawRwLock};

use crate::smp::{Held, Lock, Processor, ReadWrite, Ticket};
use crate::sync::{AtomicU32, Ordering};

/// A ticket lock for `lock_api::Mutex`.
#[derive(Debug)]
pub struct RawTicket<P> {
    lock: Ticket<P>,
    /// 1 while somebody is inside. Written by the holder.
    busy: AtomicU32,
}

/// The mask from before, which belongs to its core.
pub struct Before<P: Processor>(P::Mask, GuardNoSend);

impl<P: Processor> RawTicket<P> {
    /// Keeps the lock, unless this core has it already.
    #[inline(always)]
    fn hold(&self, held: Held<'_, Ticket<P>>) -> Option<Before<P>> {
        if self.busy.load(Ordering::Relaxed) != 0 {
            return None;
        }
        self.busy.store(1, Ordering::Relaxed);
        Some(Before(held.keep(), GuardNoSend::new()))
    }
}

// SAFETY: the ticket lock lets one core in, and `busy` one holder of that core.
unsafe impl<P: Processor> RawMutex for RawTicket<P> {
    #[allow(clippy::declare_interior_mutable_const, reason = "what the trait asks for")]
    const INIT: Self = RawTicket { lock: Ticket::new(), busy: AtomicU32::new(0) };
    type Guard = Before<P>;

    /// # Panics
    /// If this core holds the lock already and a mask is all that it is.
    #[inline(always)]
    fn lock(&self) -> Before<P> {
        self.hold(self.lock.lock()).unwrap_or_else(locked_twice)
    }

    #[inline(always)]
    fn try_lock(&self) -> Option<Before<P>> {
        self.hold(self.lock.try_lock()?)
    }

    #[inline(always)]
    unsafe fn unlock(&self, before: Before<P>) {
        self.busy.store(0, Ordering::Relaxed);
        // SAFETY: the caller holds the lock by the guard that was kept for this mask.
        unsafe { self.lock.unlock(before.0) };
    }

    fn is_locked(&self) -> bool {
        self.busy.load(Ordering::Relaxed) != 0
    }
}

/// A phase-fair lock for `lock_api::RwLock`.
pub struct RawPhaseFair<P>(ReadWrite<P, ()>);

#[cold]
#[inline(never)]
fn locked_twice<T>() -> T {
    panic!("a core locks what it holds")
}

// SAFETY: the lock keeps writers apart from all others; where a mask is all of it, `admits` does.
unsafe impl<P: Processor> RawRwLock for RawPhaseFair<P> {
    #[allow(clippy::declare_interior_mutable_const, reason = "what the trait asks for")]
    const INIT: Self = RawPhaseFair(ReadWrite::new(()));
    type SharedGuard = Before<P>;
    type ExclusiveGuard = Before<P>;

    /// # Panics
    /// With one core, if it writes already.
    fn lock_shared(&self) -> Before<P> {
        let held = self.0.raw().read();
        if self.0.admits(true) { Before(held.keep(), GuardNoSend::new()) } else { locked_twice() }
    }

    fn try_lock_shared(&self) -> Option<Before<P>> {
        let held = self.0.raw().try_read()?;
        self.0.admits(true).then(|| Before(held.keep(), GuardNoSend::new()))
    }

    unsafe fn unlock_shared(&self, before: Before<P>) {
        self.0.has_left();
        // SAFETY: the caller reads, on this core.
        unsafe { self.0.raw().unlock_read() };
        P::restore(before.0);
    }

    /// # Panics
    /// With one core, if it is inside already.
    fn lock_exclusive(&self) -> Before<P> {
        let held = self.0.raw().write();
        if self.0.admits(false) { Before(held.keep(), GuardNoSend::new()) } else { locked_twice() }
    }

    fn try_lock_exclusive(&self) -> Option<Before<P>> {
        let held = self.0.raw().try_write()?;
        self.0.admits(false).then(|| Before(held.keep(), GuardNoSend::new()))
    }

    unsafe fn unlock_exclusive(&self, before: Before<P>) {
        self.0.has_left();
        // SAFETY: the caller writes, on this core.
        unsafe { self.0.raw().unlock_write() };
        P::restore(before.0);
    }

    fn is_locked(&self) -> bool {
        self.0.look().0
    }

    fn is_locked_exclusive(&self) -> bool {
        self.0.look().1
    }
}

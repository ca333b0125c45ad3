//! What all locks of the layer have in common: a turn that is taken and given, guards, and data behind a lock.
//!
//! What you may rely on: while a guard lives, interrupts of its core are masked and no other core is inside. Waiting
//! happens with interrupts masked, so a handler never stands in a queue behind the task that it interrupted; and every
//! waiting loop serves cross calls ([`Processor::serve`]), so the holder may wait for an answer of the waiter.
//!
//! How it works: a lock is a [`Turn`]; [`Lock`] adds masking around it. In a program for one core, and on a core that
//! is [alone](Processor::alone), the turn is left out and the mask does all. A mask does not stop a core from locking
//! twice what it holds, so [`Locked`], which hands out `&mut`, keeps a byte that does.
//!
//! What it does not do: allow guards to be dropped in another order than the reverse of taking; then interrupts open
//! too early. The order checker reports that ([`crate::smp::order`]).

use core::cell::{Cell, UnsafeCell};
use core::marker::PhantomData;
use core::ops::{Deref, DerefMut};

use crate::smp::Processor;

/// A right that at most one core has at a time (or, for readers, that no writer has meanwhile).
///
/// # Safety
/// Once [`Turn::take`] has returned, or [`Turn::try_take`] has given `true`, the right lasts until [`Turn::give`], which
/// makes everything done meanwhile visible to whoever has the turn next.
pub unsafe trait Turn {
    /// Waits for the turn, first come, first served. Interrupts are masked.
    fn take(&self);
    /// Takes the turn if nobody has it or waits for it. Interrupts are masked.
    fn try_take(&self) -> bool;
    /// Gives the turn to the next one.
    ///
    /// # Safety
    /// This core has the turn.
    unsafe fn give(&self);
}

/// A lock: a turn with interrupts masked.
///
/// # Safety
/// The provided functions are not replaced.
pub unsafe trait Lock: Turn + Sized {
    /// The cores that contend.
    type Processor: Processor;
    /// Whether something watches this lock; then it is taken in full even on a core that is alone.
    const WATCHED: bool = false;

    /// Masks interrupts and waits for the turn. Waits at most (m-1)(L+h) for m cores, L the longest section and h the
    /// hand-over from one core to the next.
    #[inline(always)]
    fn lock(&self) -> Held<'_, Self> {
        let before = if Self::WATCHED {
            let before = Self::Processor::mask();
            self.take();
            before
        } else {
            Self::Processor::enter(self)
        };
        Held { lock: self, before, stays: PhantomData }
    }

    /// Masks interrupts and takes the turn if it is free. A core that is alone always gets it.
    #[inline(always)]
    fn try_lock(&self) -> Option<Held<'_, Self>> {
        let before = Self::Processor::mask();
        let taken = (!Self::WATCHED && Self::Processor::alone()) || self.try_take();
        if !taken {
            Self::Processor::restore(before);
            return None;
        }
        Some(Held { lock: self, before, stays: PhantomData })
    }

    /// Gives back what a forgotten guard held.
    ///
    /// # Safety
    /// This core holds the lock by a guard that was forgotten and whose mask was `before`.
    #[inline(always)]
    unsafe fn unlock(&self, before: <Self::Processor as Processor>::Mask) {
        if Self::WATCHED {
            // SAFETY: the caller holds the lock, and a watched lock is always taken in full.
            unsafe { self.give() };
            Self::Processor::restore(before);
        } else {
            // SAFETY: the caller holds the lock by `enter`, or alone.
            unsafe { Self::Processor::leave(self, before) };
        }
    }
}

/// The lock is held by this core until this is dropped. It must not leave its core.
#[must_use = "the lock is given back at once"]
pub struct Held<'l, L: Lock> {
    lock: &'l L,
    before: <L::Processor as Processor>::Mask,
    stays: PhantomData<*mut ()>,
}

impl<L: Lock> Held<'_, L> {
    /// Keeps the lock beyond this value; gives the mask for [`Lock::unlock`].
    #[inline(always)]
    pub fn keep(self) -> <L::Processor as Processor>::Mask {
        let before = self.before;
        core::mem::forget(self);
        before
    }
}

impl<L: Lock> Drop for Held<'_, L> {
    #[inline(always)]
    fn drop(&mut self) {
        // SAFETY: the guard was made by taking the lock on this core, which it cannot leave.
        unsafe { self.lock.unlock(self.before) };
    }
}

/// Data that only the holder of its lock reaches.
pub struct Locked<L, T> {
    lock: L,
    /// Whether somebody is inside; touched with the lock held only.
    busy: Cell<bool>,
    data: UnsafeCell<T>,
}

// SAFETY: the data, and `busy`, are reached by one core at a time, which the lock sees to; the data goes from core to
// core, so it must be `Send`.
unsafe impl<L: Lock + Sync, T: Send> Sync for Locked<L, T> {}

impl<L, T> Locked<L, T> {
    /// Puts `data` behind `lock`, which nobody else uses.
    pub const fn new(lock: L, data: T) -> Self {
        Locked { lock, busy: Cell::new(false), data: UnsafeCell::new(data) }
    }

    /// The lock, to look at its statistics.
    pub const fn raw(&self) -> &L {
        &self.lock
    }

    /// The data of a lock that nobody else can have.
    pub fn into_inner(self) -> T {
        self.data.into_inner()
    }
}

impl<L: Lock, T> Locked<L, T> {
    /// Waits for the lock.
    ///
    /// # Panics
    /// If this core holds it already and a mask is all that the lock is; with several cores that wait never ends.
    #[inline(always)]
    pub fn lock(&self) -> LockedGuard<'_, L, T> {
        let held = self.lock.lock();
        if self.busy.replace(true) {
            locked_twice();
        }
        LockedGuard { place: self, _held: held }
    }

    /// Takes the lock if it is free.
    #[inline(always)]
    pub fn try_lock(&self) -> Option<LockedGuard<'_, L, T>> {
        let held = self.lock.try_lock()?;
        if self.busy.replace(true) {
            return None;
        }
        Some(LockedGuard { place: self, _held: held })
    }

    /// Runs `section` with the lock held.
    #[inline(always)]
    pub fn with<R>(&self, section: impl FnOnce(&mut T) -> R) -> R {
        section(&mut self.lock())
    }
}

#[cold]
#[inline(never)]
fn locked_twice() -> ! {
    panic!("a core locks what it holds")
}

/// The data of a [`Locked`], held by this core until this is dropped.
#[must_use = "the lock is given back at once"]
pub struct LockedGuard<'l, L: Lock, T> {
    place: &'l Locked<L, T>,
    // Dropped after `drop` below has run, so `busy` is cleared with the lock held.
    _held: Held<'l, L>,
}

impl<L: Lock, T> Deref for LockedGuard<'_, L, T> {
    type Target = T;
    #[inline(always)]
    fn deref(&self) -> &T {
        // SAFETY: the guard holds the lock, and `busy` refused a second guard of this core.
        unsafe { &*self.place.data.get() }
    }
}

impl<L: Lock, T> DerefMut for LockedGuard<'_, L, T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as above.
        unsafe { &mut *self.place.data.get() }
    }
}

impl<L: Lock, T> Drop for LockedGuard<'_, L, T> {
    #[inline(always)]
    fn drop(&mut self) {
        self.place.busy.set(false);
    }
}

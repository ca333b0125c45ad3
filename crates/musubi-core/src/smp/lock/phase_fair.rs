//! Reader-writer lock that starves nobody: phases of readers and of one writer take turns.
//!
//! What you may rely on: a reader waits for at most one writer's phase, whatever comes behind it; a writer waits for the
//! writers before it and, for each of them and itself, at most one phase of readers. Both wait with interrupts masked and
//! serve cross calls meanwhile. For one core both sides are a mask.
//!
//! How it works: Brandenburg and Anderson, "Spin-based reader-writer synchronization for multiprocessor real-time
//! systems" (2010), the version with tickets (PF-T). Readers count themselves in and out. A writer takes its turn among
//! writers, marks the count of entered readers with its presence, and waits until as many have left as had entered
//! before. A reader that finds a mark waits until the mark has gone or has the other parity: then its writer's phase has
//! ended. Other than in the paper the parity is no part of the turn: the leaving writer turns it over with the same
//! operation that takes its mark away. A try that draws a turn and gives it back has no phase, and were the parity the
//! turn's, the next writer would have the parity of the last: a reader that slept through both would wait for a writer
//! that waits for it.
//!
//! What it does not do: let a core read again what it reads while a writer waits in between; that core would wait for
//! itself. Nor turn a reader into a writer.

use core::cell::UnsafeCell;
use core::marker::PhantomData;
use core::ops::{Deref, DerefMut};

use crate::smp::Processor;
use crate::sync::{AtomicU32, Ordering, Site, acquire, constructor, release};

/// A writer is there.
const PRESENT: u32 = 2;
/// The parity of its phase; between phases that of the next.
const PARITY: u32 = 1;
const WRITER: u32 = PRESENT | PARITY;
/// One reader, above the writer's bits.
const READER: u32 = 4;

/// A phase-fair lock of the cores `P`.
#[derive(Debug)]
pub struct PhaseFair<P> {
    /// Readers that have entered, and the writer's bits. Written by readers and by the writer whose turn it is, all by
    /// atomic operations.
    entered: AtomicU32,
    /// Readers that have left. Written by readers, by atomic addition.
    left: AtomicU32,
    /// The turn that the next writer draws. Written by whoever comes, by atomic addition.
    next_writer: AtomicU32,
    /// The writer whose turn it is. Written by that writer.
    writer: AtomicU32,
    processor: PhantomData<fn() -> P>,
}

impl<P> PhaseFair<P> {
    constructor! {
        /// A free lock.
        #[allow(clippy::new_without_default, reason = "a static")]
        pub fn new() -> Self {
            PhaseFair {
                entered: AtomicU32::new(0),
                left: AtomicU32::new(0),
                next_writer: AtomicU32::new(0),
                writer: AtomicU32::new(0),
                processor: PhantomData,
            }
        }
    }
}

impl<P: Processor> PhaseFair<P> {
    /// Whether the mask is all that the lock is.
    const MASK_ONLY: bool = P::CORES == 1;

    /// Masks interrupts and waits until no writer is inside; others may read meanwhile.
    #[inline(always)]
    pub fn read(&self) -> Reading<'_, P> {
        let before = P::mask();
        if !Self::MASK_ONLY {
            self.enter_to_read();
        }
        Reading { lock: self, before, stays: PhantomData }
    }

    /// Masks interrupts and waits until nobody is inside.
    #[inline(always)]
    pub fn write(&self) -> Writing<'_, P> {
        let before = P::mask();
        if !Self::MASK_ONLY {
            self.enter_to_write();
        }
        Writing { lock: self, before, stays: PhantomData }
    }

    /// Reads if no writer is inside or waiting for readers to leave.
    #[inline(always)]
    pub fn try_read(&self) -> Option<Reading<'_, P>> {
        let before = P::mask();
        if !Self::MASK_ONLY && !self.try_enter_to_read() {
            P::restore(before);
            return None;
        }
        Some(Reading { lock: self, before, stays: PhantomData })
    }

    /// Writes if nobody is inside or waits to write.
    #[inline(always)]
    pub fn try_write(&self) -> Option<Writing<'_, P>> {
        let before = P::mask();
        if !Self::MASK_ONLY && !self.try_enter_to_write() {
            P::restore(before);
            return None;
        }
        Some(Writing { lock: self, before, stays: PhantomData })
    }

    /// Whether anybody is inside or comes, and whether to write. Old at once.
    pub fn look(&self) -> (bool, bool) {
        let entered = self.entered.load(Ordering::Relaxed);
        (entered & !PARITY != self.left.load(Ordering::Relaxed), entered & PRESENT != 0)
    }

    /// Whether readers have come that have not left. Old at once.
    #[cfg(test)]
    pub(in crate::smp) fn has_waiting_readers(&self) -> bool {
        self.entered.load(Ordering::Relaxed) & !WRITER != self.left.load(Ordering::Relaxed)
    }

    /// Ends a reading whose guard was kept; the mask is the caller's.
    ///
    /// # Safety
    /// This core reads by a guard that was kept.
    #[inline(always)]
    pub unsafe fn unlock_read(&self) {
        if !Self::MASK_ONLY {
            self.leave_reading();
        }
    }

    /// Ends a writing whose guard was kept; the mask is the caller's.
    ///
    /// # Safety
    /// This core writes by a guard that was kept.
    #[inline(always)]
    pub unsafe fn unlock_write(&self) {
        if !Self::MASK_ONLY {
            self.leave_writing();
        }
    }

    #[inline(always)]
    fn enter_to_read(&self) {
        let found = self.entered.fetch_add(READER, acquire(Site::SeeWriterLeft)) & WRITER;
        if found & PRESENT != 0 {
            self.wait_for_phase(found);
        }
    }

    /// Waits until the phase with these bits has ended.
    #[cold]
    #[inline(never)]
    #[cfg_attr(lock_section, unsafe(link_section = ".text.lock"))]
    fn wait_for_phase(&self, found: u32) {
        while self.entered.load(acquire(Site::SeeWriterLeft)) & WRITER == found {
            P::relax();
            P::serve();
        }
    }

    #[inline(always)]
    fn enter_to_write(&self) {
        let mine = self.next_writer.fetch_add(1, Ordering::Relaxed);
        if self.writer.load(acquire(Site::SeeWriterTurn)) != mine {
            self.wait_until(&self.writer, mine, Site::SeeWriterTurn);
        }
        let before = self.entered.fetch_add(PRESENT, Ordering::Relaxed) & !WRITER;
        if self.left.load(acquire(Site::SeeReadersLeft)) != before {
            self.wait_until(&self.left, before, Site::SeeReadersLeft);
        }
    }

    #[cold]
    #[inline(never)]
    #[cfg_attr(lock_section, unsafe(link_section = ".text.lock"))]
    fn wait_until(&self, word: &AtomicU32, value: u32, site: Site) {
        while word.load(acquire(site)) != value {
            P::relax();
            P::serve();
        }
    }

    fn try_enter_to_read(&self) -> bool {
        let found = self.entered.load(Ordering::Relaxed);
        let next = found.wrapping_add(READER);
        found & PRESENT == 0
            && self.entered.compare_exchange(found, next, acquire(Site::SeeWriterLeft), Ordering::Relaxed).is_ok()
    }

    fn try_enter_to_write(&self) -> bool {
        let turn = self.writer.load(acquire(Site::SeeWriterTurn));
        let drawn = self.next_writer.compare_exchange(turn, turn.wrapping_add(1), Ordering::Relaxed, Ordering::Relaxed);
        if drawn.is_err() {
            return false;
        }
        let left = self.left.load(acquire(Site::SeeReadersLeft));
        let free = left | self.entered.load(Ordering::Relaxed) & PARITY;
        let entered = self.entered.compare_exchange(free, free | PRESENT, Ordering::Relaxed, Ordering::Relaxed).is_ok();
        if !entered {
            self.pass_turn(turn);
        }
        entered
    }

    #[inline(always)]
    fn leave_reading(&self) {
        self.left.fetch_add(READER, release(Site::PublishReaderLeft));
        P::signal();
    }

    #[inline(always)]
    fn leave_writing(&self) {
        let turn = self.writer.load(Ordering::Relaxed);
        self.entered.fetch_xor(PRESENT | PARITY, release(Site::PublishWriterLeft));
        self.pass_turn(turn);
    }

    #[inline(always)]
    fn pass_turn(&self, turn: u32) {
        self.writer.store(turn.wrapping_add(1), release(Site::PublishWriterTurn));
        P::signal();
    }
}

/// This core reads until this is dropped.
#[must_use = "the lock is given back at once"]
pub struct Reading<'l, P: Processor> {
    lock: &'l PhaseFair<P>,
    before: P::Mask,
    stays: PhantomData<*mut ()>,
}

impl<P: Processor> Reading<'_, P> {
    /// Keeps the lock beyond this value; gives the mask from before.
    #[inline(always)]
    pub fn keep(self) -> P::Mask {
        let before = self.before;
        core::mem::forget(self);
        before
    }
}

impl<P: Processor> Drop for Reading<'_, P> {
    #[inline(always)]
    fn drop(&mut self) {
        // SAFETY: the guard was made by entering on this core, which it cannot leave.
        unsafe { self.lock.unlock_read() };
        P::restore(self.before);
    }
}

/// This core writes until this is dropped.
#[must_use = "the lock is given back at once"]
pub struct Writing<'l, P: Processor> {
    lock: &'l PhaseFair<P>,
    before: P::Mask,
    stays: PhantomData<*mut ()>,
}

impl<P: Processor> Writing<'_, P> {
    /// Keeps the lock beyond this value; gives the mask from before.
    #[inline(always)]
    pub fn keep(self) -> P::Mask {
        let before = self.before;
        core::mem::forget(self);
        before
    }
}

impl<P: Processor> Drop for Writing<'_, P> {
    #[inline(always)]
    fn drop(&mut self) {
        // SAFETY: the guard was made by entering on this core, which it cannot leave.
        unsafe { self.lock.unlock_write() };
        P::restore(self.before);
    }
}

/// Data that many read at a time or one writes.
pub struct ReadWrite<P, T> {
    lock: PhaseFair<P>,
    /// With one core, where the lock is a mask: how many guards read, or [`WRITTEN`]. Written by that core.
    guards: AtomicU32,
    data: UnsafeCell<T>,
}

/// Somebody writes.
const WRITTEN: u32 = u32::MAX;

// SAFETY: the lock keeps a writer apart from everybody; readers share `&T` between cores, and a writer takes `T` over.
unsafe impl<P: Processor, T: Send + Sync> Sync for ReadWrite<P, T> {}

impl<P: Processor, T> ReadWrite<P, T> {
    constructor! {
        /// Puts `data` behind a lock of its own.
        pub fn new(data: T) -> Self {
            ReadWrite { lock: PhaseFair::new(), guards: AtomicU32::new(0), data: UnsafeCell::new(data) }
        }
    }

    /// Waits until nobody writes.
    ///
    /// # Panics
    /// With one core: if this core writes already. With several that wait never ends.
    #[inline(always)]
    pub fn read(&self) -> ReadGuard<'_, P, T> {
        let held = self.lock.read();
        assert!(self.admits(true), "a core locks what it holds");
        ReadGuard { place: self, _held: held }
    }

    /// Reads if nobody writes or waits to write.
    pub fn try_read(&self) -> Option<ReadGuard<'_, P, T>> {
        let held = self.lock.try_read()?;
        self.admits(true).then_some(())?;
        Some(ReadGuard { place: self, _held: held })
    }

    /// Waits until nobody is inside.
    ///
    /// # Panics
    /// With one core: if this core is inside already. With several that wait never ends.
    #[inline(always)]
    pub fn write(&self) -> WriteGuard<'_, P, T> {
        let held = self.lock.write();
        assert!(self.admits(false), "a core locks what it holds");
        WriteGuard { place: self, _held: held }
    }

    /// Writes if nobody is inside or waits to write.
    pub fn try_write(&self) -> Option<WriteGuard<'_, P, T>> {
        let held = self.lock.try_write()?;
        self.admits(false).then_some(())?;
        Some(WriteGuard { place: self, _held: held })
    }

    /// The data of a lock that nobody else can have.
    pub fn into_inner(self) -> T {
        self.data.into_inner()
    }

    /// With one core: counts a guard, unless the lock would refuse it with several.
    #[inline(always)]
    pub(in crate::smp) fn admits(&self, reads: bool) -> bool {
        if !PhaseFair::<P>::MASK_ONLY {
            return true;
        }
        let guards = self.guards.load(Ordering::Relaxed);
        let free = if reads { guards < WRITTEN - 1 } else { guards == 0 };
        if free {
            self.guards.store(if reads { guards + 1 } else { WRITTEN }, Ordering::Relaxed);
        }
        free
    }

    /// With one core: a guard has gone.
    #[inline(always)]
    pub(in crate::smp) fn has_left(&self) {
        if PhaseFair::<P>::MASK_ONLY {
            let guards = self.guards.load(Ordering::Relaxed);
            self.guards.store(if guards == WRITTEN { 0 } else { guards - 1 }, Ordering::Relaxed);
        }
    }

    /// Whether anybody is inside, and whether to write. Old at once.
    #[cfg(all(feature = "lock_api", not(loom)))]
    pub(in crate::smp) fn look(&self) -> (bool, bool) {
        let guards = self.guards.load(Ordering::Relaxed);
        let (used, written) = self.lock.look();
        (used || guards != 0, written || guards == WRITTEN)
    }

    #[cfg(all(feature = "lock_api", not(loom)))]
    pub(in crate::smp) const fn raw(&self) -> &PhaseFair<P> {
        &self.lock
    }
}

/// The data for reading.
#[must_use = "the lock is given back at once"]
pub struct ReadGuard<'l, P: Processor, T> {
    place: &'l ReadWrite<P, T>,
    // Dropped after `drop` below has run.
    _held: Reading<'l, P>,
}

impl<P: Processor, T> Deref for ReadGuard<'_, P, T> {
    type Target = T;
    #[inline(always)]
    fn deref(&self) -> &T {
        // SAFETY: the guard keeps writers out.
        unsafe { &*self.place.data.get() }
    }
}

impl<P: Processor, T> Drop for ReadGuard<'_, P, T> {
    #[inline(always)]
    fn drop(&mut self) {
        self.place.has_left();
    }
}

/// The data for writing.
#[must_use = "the lock is given back at once"]
pub struct WriteGuard<'l, P: Processor, T> {
    place: &'l ReadWrite<P, T>,
    // Dropped after `drop` below has run.
    _held: Writing<'l, P>,
}

impl<P: Processor, T> Deref for WriteGuard<'_, P, T> {
    type Target = T;
    #[inline(always)]
    fn deref(&self) -> &T {
        // SAFETY: the guard keeps everybody else out.
        unsafe { &*self.place.data.get() }
    }
}

impl<P: Processor, T> DerefMut for WriteGuard<'_, P, T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as above.
        unsafe { &mut *self.place.data.get() }
    }
}

impl<P: Processor, T> Drop for WriteGuard<'_, P, T> {
    #[inline(always)]
    fn drop(&mut self) {
        self.place.has_left();
    }
}

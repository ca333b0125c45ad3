//! The kernel lock: one queue lock around all that a kernel shares, which a core may enter again while it is inside.
//!
//! What you may rely on: nested entries cost a compare; the outermost exit gives the lock back, first come, first served.
//! With one core, and alone, entering is masking. It is what an implementation of the crate `critical-section` needs.
//!
//! How it works: [`Clh`] around, and the holder's number beside it, which only its writer can find equal to its own.
//!
//! What it does not do: hand out `&mut` to anything, as nested sections would share it; put a `RefCell` inside.

use core::marker::PhantomData;

use crate::smp::Processor;
use crate::smp::clh::Clh;
use crate::smp::exclusion::Turn;
use crate::smp::watch::{Off, Watch};
use crate::sync::{AtomicU32, Ordering, constructor};

/// The kernel lock of the cores `P`; `NODES` is [`crate::smp::clh::nodes`] of their number.
#[derive(Debug)]
pub struct Kernel<P, const NODES: usize, W = Off> {
    lock: Clh<P, NODES, W>,
    /// The holder's number plus 1; 0 if nobody holds it. Written by the holder.
    holder: AtomicU32,
}

impl<P: Processor, const NODES: usize> Kernel<P, NODES> {
    constructor! {
        /// A free lock that nobody watches.
        #[allow(clippy::new_without_default, reason = "a static")]
        pub fn new() -> Self {
            Kernel::watched(Off)
        }
    }
}

impl<P: Processor, const NODES: usize, W> Kernel<P, NODES, W> {
    constructor! {
        /// A free lock that is watched. The watcher is told of outermost entries.
        pub fn watched(watch: W) -> Self {
            Kernel { lock: Clh::watched(watch), holder: AtomicU32::new(0) }
        }
    }

    /// What watches it.
    pub fn watch(&self) -> &W {
        self.lock.watch()
    }

    /// The core inside. Old at once, unless it is this one.
    pub fn holder(&self) -> Option<usize> {
        (self.holder.load(Ordering::Relaxed) as usize).checked_sub(1)
    }
}

impl<P: Processor, const NODES: usize, W: Watch> Kernel<P, NODES, W> {
    /// Enters, again or after waiting.
    #[inline(always)]
    pub fn lock(&self) -> Inside<'_, P, NODES, W> {
        let (before, nested) = self.enter();
        Inside { kernel: self, before, nested, stays: PhantomData }
    }

    /// Enters without a guard: gives the mask before and whether the lock was not taken, as this core was inside or is
    /// alone.
    #[inline(always)]
    pub fn enter(&self) -> (P::Mask, bool) {
        let before = P::mask();
        let nested = P::alone() || self.holder() == Some(P::core());
        if !nested {
            self.lock.take();
            self.holder.store(P::core() as u32 + 1, Ordering::Relaxed);
        }
        (before, nested)
    }

    /// Leaves.
    ///
    /// # Safety
    /// Belongs to the last [`Kernel::enter`] of this core that has not been left, which gave `before` and `nested`.
    #[inline(always)]
    pub unsafe fn leave(&self, before: P::Mask, nested: bool) {
        if !nested {
            self.holder.store(0, Ordering::Relaxed);
            // SAFETY: the entry that is left took the lock.
            unsafe { self.lock.give() };
        }
        P::restore(before);
    }
}

/// This core is inside until this is dropped. Guards are dropped in the reverse order of entering.
#[must_use = "the lock is given back at once"]
pub struct Inside<'k, P: Processor, const NODES: usize, W: Watch> {
    kernel: &'k Kernel<P, NODES, W>,
    before: P::Mask,
    nested: bool,
    stays: PhantomData<*mut ()>,
}

impl<P: Processor, const NODES: usize, W: Watch> Drop for Inside<'_, P, NODES, W> {
    #[inline(always)]
    fn drop(&mut self) {
        // SAFETY: the guard was made by entering on this core. No data hangs on it, so an outer guard dropped too early
        // lets others in, but gives nobody a reference.
        unsafe { self.kernel.leave(self.before, self.nested) };
    }
}

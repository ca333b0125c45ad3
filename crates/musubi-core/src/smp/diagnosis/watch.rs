//! What may watch a lock: nothing, statistics, the order checker, the note of waits, or several of these as a pair.
//!
//! What you may rely on: [`Off`] has no size and its calls no instructions.

use core::marker::PhantomData;

use crate::smp::Processor;
use crate::smp::waiting::{self, Awaited, Waits, Witness};

/// Is told of each step of a lock. All calls come with interrupts masked.
pub trait Watch {
    /// Whether there is anybody to tell.
    const ON: bool = true;
    /// What is remembered between asking for a lock and having it.
    type Asked;

    /// This core asks for the lock, and will wait for it unless it only `tries`.
    fn asks<P: Processor>(&self, tries: bool) -> Self::Asked;
    /// This core has the lock; `ahead` others were before it, as far as it saw (an old look finds more). A queue lock tells
    /// only whether there were any.
    fn takes<P: Processor>(&self, asked: Self::Asked, ahead: u32);
    /// This core gives the lock back next.
    fn gives<P: Processor>(&self);
}

/// Nobody watches.
#[derive(Clone, Copy, Debug, Default)]
pub struct Off;

impl Watch for Off {
    const ON: bool = false;
    type Asked = ();

    #[inline(always)]
    fn asks<P: Processor>(&self, _: bool) {}
    #[inline(always)]
    fn takes<P: Processor>(&self, (): (), _: u32) {}
    #[inline(always)]
    fn gives<P: Processor>(&self) {}
}

/// Both watch.
impl<A: Watch, B: Watch> Watch for (A, B) {
    const ON: bool = A::ON || B::ON;
    type Asked = (A::Asked, B::Asked);

    fn asks<P: Processor>(&self, tries: bool) -> Self::Asked {
        (self.0.asks::<P>(tries), self.1.asks::<P>(tries))
    }

    fn takes<P: Processor>(&self, asked: Self::Asked, ahead: u32) {
        self.0.takes::<P>(asked.0, ahead);
        self.1.takes::<P>(asked.1, ahead);
    }

    fn gives<P: Processor>(&self) {
        self.0.gives::<P>();
        self.1.gives::<P>();
    }
}

/// Notes waits for the lock with the witness `N`, for the report on a stuck core. The lock goes by the address of this.
#[derive(Debug)]
pub struct Noted<N>(PhantomData<fn() -> N>);

impl<N> Noted<N> {
    /// A watch without a state of its own.
    #[allow(clippy::new_without_default, reason = "part of a static")]
    pub const fn new() -> Self {
        Noted(PhantomData)
    }

    /// What [`Awaited::Lock`] says of this lock.
    pub fn address(&self) -> usize {
        core::ptr::from_ref(self).addr()
    }
}

impl<N: Witness> Watch for Noted<N> {
    type Asked = Option<Waits>;

    fn asks<P: Processor>(&self, tries: bool) -> Option<Waits> {
        if tries { None } else { waiting::begin::<N>(P::core(), Awaited::Lock(self.address()), P::now_ns) }
    }

    fn takes<P: Processor>(&self, waits: Option<Waits>, _ahead: u32) {
        drop(waits);
    }

    fn gives<P: Processor>(&self) {}
}

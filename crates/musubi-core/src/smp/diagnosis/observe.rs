//! What an observer of cross calls and causes is told; the default observer is told nothing, at no cost.
//!
//! What you may rely on: the observer is a type parameter; with [`Silent`] no clock is read, nothing is stored, and no
//! memory is used. With [`crate::smp::recorder::Recorder`] every step is recorded.

use crate::smp::Processor;
use crate::smp::causes::Causes;
use crate::smp::cores::Cores;
use crate::smp::order::Order;
use crate::smp::waiting::{Unwatched, Witness};

/// A step of a cross call or a cause, as the core that notes it sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// This core rang at another, for these causes.
    Rang(usize, Causes),
    /// Another cause was pending there, so no ring.
    Coalesced(usize, Causes),
    /// It polls, so no ring.
    Polled(usize, Causes),
    /// Half the time to the deadline has passed without an answer: rang once more.
    RangAgain(usize),
    /// This core was interrupted.
    Interrupted,
    /// It was interrupted, but its causes had been served before.
    Spurious,
    /// It took these causes.
    Took(Causes),
    /// It queued a call at another.
    Posted(usize),
    /// It accepted a call of another.
    Accepted(usize),
    /// It completed a call of another.
    Completed(usize),
    /// It took a call back because the other did not accept it by the deadline.
    Withdrew(usize),
    /// The other accepted but did not complete by the deadline.
    Overran(usize),
    /// The other did not flush or stop by the deadline.
    Unanswered(usize),
    /// It came online.
    Joined,
    /// It went offline.
    Left,
}

/// Parts of the time that a cross call takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// From queueing to acceptance.
    ToAccepted,
    /// From queueing to completion.
    ToCompleted,
}

/// Somebody who is told what happens.
pub trait Observer: Sync + 'static {
    /// Whether anything is recorded.
    const ON: bool;
    /// Where waits for acknowledgements are noted.
    type Waits: Witness;
    /// `core` notes an event of its own. Must not wait, and may be interrupted by another note of the same core.
    fn note(&self, core: usize, event: Event, now_ns: impl FnOnce() -> u64);
    /// `core` notes how long a stage of a call to it took, in nanoseconds.
    fn measure(&self, core: usize, stage: Stage, span_ns: u32);
    /// This core is about to wait for cores whose called function may take locks.
    #[inline(always)]
    fn awaits<P: Processor>(&self, _targets: Cores) {}
}

/// Notes nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl Observer for Silent {
    const ON: bool = false;
    type Waits = Unwatched;
    #[inline(always)]
    fn note(&self, _: usize, _: Event, _: impl FnOnce() -> u64) {}
    #[inline(always)]
    fn measure(&self, _: usize, _: Stage, _: u32) {}
}

/// An observer that tells the lock-order checker, too, which cross calls are waited for.
#[derive(Debug)]
pub struct Checked<O> {
    observer: O,
    order: &'static Order,
}

impl<O> Checked<O> {
    /// Tells both.
    pub const fn new(observer: O, order: &'static Order) -> Self {
        Checked { observer, order }
    }

    /// The other observer.
    pub const fn observer(&self) -> &O {
        &self.observer
    }
}

impl<O: Observer> Observer for Checked<O> {
    const ON: bool = O::ON;
    type Waits = O::Waits;
    #[inline(always)]
    fn note(&self, core: usize, event: Event, now_ns: impl FnOnce() -> u64) {
        self.observer.note(core, event, now_ns);
    }
    #[inline(always)]
    fn measure(&self, core: usize, stage: Stage, span_ns: u32) {
        self.observer.measure(core, stage, span_ns);
    }
    fn awaits<P: Processor>(&self, targets: Cores) {
        self.order.awaits_call::<P>(targets);
    }
}

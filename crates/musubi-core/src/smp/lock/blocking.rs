//! How waiting for a semaphore or mutex sleeps: what a scheduler has to offer, and a default that has none.
//!
//! What you may rely on: the objects call nothing else of a scheduler, so one implementation serves them all.

use core::marker::PhantomData;
use core::task::Waker;

use crate::smp::Processor;

/// Wakes what sleeps.
pub trait Wake: 'static {
    /// Names a sleeper.
    type Task: Clone + Send;

    /// Makes the sleeper look again: ends its sleep, or the next one if it does not sleep yet. Called by tasks and handlers
    /// of any core; never waits.
    fn wake(task: &Self::Task);
}

/// Lets the running task sleep.
pub trait Blocker: Wake {
    /// The running task.
    fn current() -> Self::Task;
    /// Sleeps until woken or, at the latest, until the deadline on [`Processor::now_ns`]'s clock. May return early. Not
    /// called by handlers.
    fn sleep(deadline_ns: u64);
}

/// No scheduler: a wait spins and serves cross calls.
#[derive(Debug)]
pub struct Spin<P>(PhantomData<P>);

impl<P: Processor> Wake for Spin<P> {
    type Task = ();

    fn wake((): &()) {
        P::signal();
    }
}

impl<P: Processor> Blocker for Spin<P> {
    fn current() {}

    fn sleep(_deadline_ns: u64) {
        P::relax();
        P::serve();
    }
}

/// Futures, under whatever executor: a sleeper is a waker.
#[derive(Debug)]
pub struct Futures;

impl Wake for Futures {
    type Task = Waker;

    fn wake(task: &Waker) {
        task.wake_by_ref();
    }
}

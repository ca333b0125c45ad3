//! The sending end of a FIFO channel in mapped memory.
//!
//! What you may rely on: as [`crate::channel`] says; one thread at a time uses an end. What a gone receiver had not
//! dequeued its successor gets, or it is dropped and counted, as the plan says. Where the receiver's last position
//! cannot be read any more (its slot was taken twice meanwhile), what was queued is dropped: nothing is delivered twice.
//!
//! How it works: each operation latches the end's record, which a beat may be at; one that would have to wait lets the
//! record follow its receiver first.

use core::cell::Cell;
use core::marker::PhantomData;
use core::task::{Context, Poll};

use super::handle::Handle;
use super::waiting::{self, wait};
use crate::channel::{Deadline, SendingEnd as SendingEndTrait, Usage};
use crate::error::Error;
use crate::fifo::{Loan, Notified};
use crate::mapped::Host;
use crate::mapped::latch::Guard;
use crate::mapped::records::{SendingRecord, SendingState};
use crate::mapped::shared::Shared;
use crate::plan::FilterRule;

/// The sending end of a FIFO channel.
#[derive(Debug)]
pub struct SendingEnd<'m, B: Host> {
    handle: Handle<'m, B>,
    record: &'m SendingRecord<'m, B>,
    one_thread: PhantomData<Cell<()>>,
}

impl<'m, B: Host> SendingEnd<'m, B> {
    /// Opens a record's end.
    pub(in crate::mapped) fn open(shared: &'m Shared<'m, B>, record: &'m SendingRecord<'m, B>) -> Result<Self, Error> {
        let end = SendingEnd { handle: Handle::take(shared, &record.handle)?, record, one_thread: PhantomData };
        end.latched().open(&shared.here)?;
        drop(end.state());
        shared.here.ring_all();
        Ok(end)
    }

    fn latched(&self) -> Guard<'m, SendingState<'m, B>> {
        self.record.state.lock(self.handle.shared.here.host)
    }

    /// The state after a look at the receiver.
    fn state(&self) -> Guard<'m, SendingState<'m, B>> {
        let mut state = self.latched();
        state.follow(&self.handle.shared.here);
        if state.link.is_none_or(|link| link.stalled) {
            self.handle.shared.here.note_peers();
            state.follow(&self.handle.shared.here);
        }
        state
    }

    /// Waits until `check` has a result; reports a loss instead of waiting.
    fn wait_until<R>(
        &self,
        deadline: Deadline,
        mut check: impl FnMut(&mut SendingState<'m, B>) -> Option<R>,
    ) -> Result<R, Error> {
        let look = || {
            let mut state = self.state();
            let result = check(&mut state).map(Ok);
            result.or_else(|| core::mem::take(&mut state.loss).then_some(Err(Error::PeerGone)))
        };
        wait(self.handle.shared, deadline, look, |asleep| {
            let mut state = self.latched();
            let bits = waiting::with_asleep(state.bits, asleep);
            state.set_bits(bits);
        })
    }
}

impl<B: Host> Drop for SendingEnd<'_, B> {
    fn drop(&mut self) {
        drop(self.record.waker.take());
        let mut state = self.latched();
        state.set_bits(0);
    }
}

impl<B: Host> SendingEndTrait for SendingEnd<'_, B> {
    fn block_bytes(&self) -> u32 {
        self.latched().core.block_bytes()
    }

    fn usage(&self) -> Usage {
        let mut state = self.state();
        state.core.collect();
        let (blocks, free) = state.core.blocks();
        let (queued, held) = (state.core.queued(), state.core.held());
        Usage { blocks, free, queued, held, connected: state.link.is_some_and(|link| !link.stalled) }
    }

    fn allocate(&self, deadline: Deadline) -> Result<Loan<'_>, Error> {
        if let Ok(loan) = self.latched().core.allocate() {
            return Ok(loan);
        }
        let allocated = self.wait_until(deadline, |state| match state.core.poll().block {
            true => state.core.allocate().ok(),
            false => None,
        });
        match allocated {
            Err(Error::Timeout) if deadline == Deadline::Poll => Err(Error::NoBlock),
            other => other,
        }
    }

    fn free<'l>(&self, loan: Loan<'l>) -> Result<(), Loan<'l>> {
        self.latched().core.free(loan)
    }

    fn enqueue<'l>(&self, loan: Loan<'l>, bytes: u32) -> Result<(), (Error, Loan<'l>)> {
        self.latched().core.enqueue(loan, bytes, &self.handle.shared.here)
    }

    fn notify(&self) -> Notified {
        let mut state = self.state();
        let bell = self.handle.shared.here.doorbell(state.receiver());
        state.core.notify(&self.handle.shared.here, &bell)
    }

    fn wait(&self, deadline: Deadline) -> Result<(), Error> {
        self.wait_until(deadline, |state| {
            state.core.poll();
            state.core.take_event().then_some(())
        })
    }

    fn poll_block(&self, context: &mut Context<'_>) -> Poll<Result<(), Error>> {
        // Dropped last: a waker's destructor is foreign code, which may use this end.
        let _former = self.record.waker.register(context.waker());
        let mut state = self.state();
        if self.handle.shared.here.host.can_be_woken() {
            let bits = waiting::armed(state.bits);
            state.set_bits(bits);
        }
        if state.core.poll().block {
            return Poll::Ready(Ok(()));
        }
        match core::mem::take(&mut state.loss) {
            false => Poll::Pending,
            true => Poll::Ready(Err(Error::PeerGone)),
        }
    }

    fn set_filter(&self, rule: FilterRule) {
        let mut state = self.state();
        let bell = self.handle.shared.here.doorbell(state.receiver());
        state.core.set_filter(rule, &bell);
    }

    fn reset(&self) {
        let mut state = self.state();
        let bell = self.handle.shared.here.doorbell(state.receiver());
        state.core.reset(&bell);
    }
}

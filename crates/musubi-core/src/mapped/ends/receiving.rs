//! The receiving end of a FIFO channel in mapped memory.
//!
//! What you may rely on: as for [`super::SendingEnd`]. Messages that a gone sender had committed are delivered before
//! those of its successor, each once. A sender that was restarted twice before anybody looked loses nothing either, as
//! long as its successors found the time to wait for us ([`crate::mapped::Setup::release_wait_ns`]).
//!
//! How it works: each operation latches the end's record, which a beat may be at, and reads the incarnation at its front.

use core::cell::Cell;
use core::marker::PhantomData;
use core::task::{Context, Poll};

use super::handle::Handle;
use super::waiting::{self, wait};
use crate::channel::{Deadline, ReceivingEnd as ReceivingEndTrait, Usage};
use crate::error::Error;
use crate::fifo::Received;
use crate::mapped::Host;
use crate::mapped::latch::Guard;
use crate::mapped::records::{INCARNATIONS, ReceivingRecord, ReceivingState};
use crate::mapped::shared::Shared;

/// The receiving end of a FIFO channel.
#[derive(Debug)]
pub struct ReceivingEnd<'m, B: Host> {
    handle: Handle<'m, B>,
    record: &'m ReceivingRecord<'m, B>,
    one_thread: PhantomData<Cell<()>>,
}

impl<'m, B: Host> ReceivingEnd<'m, B> {
    /// Opens a record's end.
    pub(in crate::mapped) fn open(
        shared: &'m Shared<'m, B>,
        record: &'m ReceivingRecord<'m, B>,
    ) -> Result<Self, Error> {
        let end = ReceivingEnd { handle: Handle::take(shared, &record.handle)?, record, one_thread: PhantomData };
        end.latched().open(&shared.here)?;
        drop(end.state());
        shared.here.ring_all();
        Ok(end)
    }

    fn latched(&self) -> Guard<'m, ReceivingState<'m, B>> {
        self.record.state.lock(self.handle.shared.here.host)
    }

    /// The state; a look at the senders if there is none.
    fn state(&self) -> Guard<'m, ReceivingState<'m, B>> {
        let mut state = self.latched();
        if state.front().is_none_or(|front| front.stalled) {
            state.look(&self.handle.shared.here);
        }
        state
    }

    /// What a wait ends with.
    fn outcome(&self) -> Option<Result<(), Error>> {
        let mut state = self.state();
        let ready = state.take_ready(&self.handle.shared.here).map(Ok);
        ready.or_else(|| core::mem::take(&mut state.loss).then_some(Err(Error::PeerGone)))
    }

    pub(in crate::mapped) fn announce(&self, asleep: bool) {
        let mut state = self.latched();
        let bits = waiting::with_asleep(state.bits, asleep);
        state.set_bits(bits);
        if asleep && let Some(front) = state.front() {
            front.core.note_sleep();
        }
    }
}

impl<B: Host> Drop for ReceivingEnd<'_, B> {
    fn drop(&mut self) {
        drop(self.record.waker.take());
        let mut state = self.latched();
        state.set_bits(0);
    }
}

impl<B: Host> ReceivingEndTrait for ReceivingEnd<'_, B> {
    fn block_bytes(&self) -> u32 {
        self.latched().channel.block_bytes
    }

    fn usage(&self) -> Usage {
        let mut state = self.state();
        state.look(&self.handle.shared.here);
        let blocks = state.channel.blocks;
        let held = state.incarnations.iter().flatten().map(|incarnation| incarnation.core.held()).sum();
        let Some(front) = state.front() else { return Usage { blocks, held, ..Usage::default() } };
        front.core.begin();
        let connected = !front.retired && !front.stalled;
        Usage { blocks, free: 0, queued: front.core.queued(), held, connected }
    }

    fn wait(&self, deadline: Deadline) -> Result<(), Error> {
        wait(self.handle.shared, deadline, || self.outcome(), |asleep| self.announce(asleep))
    }

    fn is_ready(&self) -> bool {
        let mut state = self.state();
        state.ready(&self.handle.shared.here) || state.loss
    }

    fn priority(&self) -> u8 {
        self.latched().channel.priority
    }

    fn poll_event(&self, context: &mut Context<'_>) -> Poll<Result<(), Error>> {
        // Dropped last: a waker's destructor is foreign code, which may use this end.
        let _former = self.record.waker.register(context.waker());
        if self.handle.shared.here.host.can_be_woken() {
            let mut state = self.state();
            let bits = waiting::armed(state.bits);
            state.set_bits(bits);
        }
        match self.outcome() {
            Some(outcome) => Poll::Ready(outcome),
            None => Poll::Pending,
        }
    }

    fn dequeue(&self) -> Result<Received<'_>, Error> {
        self.state().dequeue(&self.handle.shared.here)
    }

    fn free<'r>(&self, received: Received<'r>) -> Result<(), Received<'r>> {
        self.latched().free(&self.handle.shared.here, received)
    }

    fn notify(&self) {
        let mut state = self.state();
        if let Some(front) = state.front() {
            let bell = self.handle.shared.here.doorbell(front.participant);
            front.core.notify(&bell);
        }
    }

    fn reset(&self) {
        let mut state = self.state();
        let front = state.front;
        for (index, incarnation) in state.incarnations.iter_mut().enumerate() {
            let Some(incarnation) = incarnation else { continue };
            let bell = self.handle.shared.here.doorbell(incarnation.participant);
            if front == Some(index) {
                incarnation.core.reset(&self.handle.shared.here, &bell);
            } else {
                // What was left is not dequeued: its bank may be another's, and the position reached is the front's.
                incarnation.core.give_back_all(&bell);
            }
        }
        (0..INCARNATIONS)
            .filter(|&index| front != Some(index))
            .for_each(|index| state.give_up(index, &self.handle.shared.here));
        state.follow(&self.handle.shared.here);
    }
}

//! The receiving end of a FIFO channel for a process: the core's receivers, one an incarnation of the sender.
//!
//! What you may rely on: as for [`super::sender`]. Messages that a dead sender had committed are delivered before
//! those of its successor; each is delivered once.
//!
//! How it works: which sender is read, and when its successor is, is `incarnations.rs`; here is how a program waits.

use std::cell::{RefCell, RefMut};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::task::{Context, Poll};

use musubi_core::Error;
use musubi_core::channel::{Deadline, ReceivingEnd as ReceivingEndTrait, Usage};
use musubi_core::fifo::Received;

use crate::process::channel::incarnations::ReceivingState;
use crate::process::channel::mailbox::{Counterpart, RxLinks, RxSender};
use crate::process::channel::shelf::Shelf;
use crate::process::channel::wait::{Sleep, Spin, stream_pause};

/// The receiving end of a FIFO channel.
#[derive(Debug)]
pub struct ReceivingEnd {
    /// Always there; taken out only when the handle is dropped.
    state: RefCell<Option<ReceivingState>>,
    spin: Spin,
    shelf: Arc<Shelf<ReceivingState>>,
}

impl ReceivingEnd {
    pub(crate) fn new(state: ReceivingState, spin: Spin, shelf: Arc<Shelf<ReceivingState>>) -> ReceivingEnd {
        ReceivingEnd { state: RefCell::new(Some(state)), spin, shelf }
    }

    #[inline(always)]
    fn state(&self) -> RefMut<'_, ReceivingState> {
        RefMut::map(self.state.borrow_mut(), |state| match state {
            Some(state) => state,
            None => unreachable!("taken out only when dropped"),
        })
    }

    /// Whether a sender was lost that no call has reported yet; asking reports it. Its messages come first.
    pub fn take_loss(&self) -> bool {
        let mut state = self.state();
        state.ready();
        state.take_loss()
    }

    /// Whether [`ReceivingEnd::take_loss`] would report one.
    pub fn has_loss(&self) -> bool {
        let mut state = self.state();
        state.ready();
        state.has_loss()
    }

    /// Whose messages come next: of a sender that lives, or that is gone and has messages left. What is told by a loss
    /// alone (somebody has gone) this tells of one: whether it is still there.
    pub fn sender(&self) -> Option<Counterpart> {
        let mut state = self.state();
        state.ready();
        state.front_sender()
    }

    /// [`ReceivingEndTrait::dequeue`], and whose message it is.
    ///
    /// # Errors
    /// As there.
    pub fn dequeue_from(&self) -> Result<(Received<'_>, Counterpart), Error> {
        let mut state = self.state();
        let received = state.dequeue()?;
        // The incarnation that a message comes from stays the front one until the next look.
        let from = state.front_sender().ok_or(Error::Empty)?;
        Ok((received, from))
    }

    /// Makes every thread of this process that sleeps at this end look again, for a caller that closes it.
    pub fn wake_sleepers(&self) {
        self.state().wake_sleepers();
    }

    /// A descriptor for event loops, readable when the sender has rung or changed; see [`ReceivingEnd::arm`].
    ///
    /// # Errors
    /// [`crate::Error::System`] if the kernel has no descriptor left.
    pub fn event_fd(&self) -> Result<OwnedFd, crate::Error> {
        self.state().end().duplicate_event_fd()
    }

    /// Clears the descriptor and has it made readable at the next notification. True if a wait would return already.
    pub fn arm(&self) -> bool {
        let mut state = self.state();
        state.end().clear_event();
        state.arm();
        // An incarnation that was drained gives way here to the next, which hears that we are armed and is looked at.
        state.ready()
    }

    /// Looks once without waiting; a true answer takes the event.
    pub fn look(&self) -> bool {
        self.state().take_ready().is_some()
    }

    /// First step of a sleep by a caller with a lock of its own; then [`Sleep::sleep`] without that lock,
    /// then [`ReceivingEnd::finish_sleep`]. If something is ready already, a loss included, finish at once.
    pub fn prepare_sleep(&self) -> (Sleep<RxSender>, bool) {
        self.state().prepare_sleep()
    }

    /// Last step of a sleep.
    pub fn finish_sleep(&self) {
        self.state().finish_sleep();
    }

    /// The mailbox, for sleeping without a borrow of the end.
    pub fn links(&self) -> Arc<RxLinks> {
        Arc::clone(self.state().links())
    }

    /// How long waits of this domain spin.
    pub fn spin(&self) -> Spin {
        self.spin
    }

    /// [`ReceivingEndTrait::wait`] when nothing was ready at the first look.
    fn wait_longer(&self, deadline: Deadline) -> Result<(), Error> {
        let mut look = || self.state().take_ready();
        self.report_loss()?;
        if deadline == Deadline::Poll {
            return Err(Error::Timeout);
        }
        if self.state().stream_ran_dry() {
            stream_pause();
        }
        if self.spin.until(deadline, &mut look).is_some() {
            return Ok(());
        }
        let links = self.links();
        loop {
            self.report_loss()?;
            let (sleep, ready) = self.prepare_sleep();
            let in_time = ready || sleep.sleep(links.version_word(), deadline);
            self.finish_sleep();
            if look().is_some() {
                return Ok(());
            }
            self.report_loss()?;
            if !in_time {
                return Err(Error::Timeout);
            }
        }
    }

    fn report_loss(&self) -> Result<(), Error> {
        if self.state().take_loss() { Err(Error::PeerGone) } else { Ok(()) }
    }
}

impl Drop for ReceivingEnd {
    fn drop(&mut self) {
        if let Some(state) = self.state.get_mut().take() {
            self.shelf.park(state.fifo(), state);
        }
    }
}

impl ReceivingEndTrait for ReceivingEnd {
    fn block_bytes(&self) -> u32 {
        self.state().end().channel().block_bytes
    }

    fn usage(&self) -> Usage {
        self.state().usage()
    }

    #[inline(always)]
    fn wait(&self, deadline: Deadline) -> Result<(), Error> {
        if self.state().take_ready().is_some() {
            return Ok(());
        }
        self.wait_longer(deadline)
    }

    fn is_ready(&self) -> bool {
        let mut state = self.state();
        state.ready() || state.has_loss()
    }

    fn priority(&self) -> u8 {
        self.state().end().channel().priority
    }

    fn poll_event(&self, context: &mut Context<'_>) -> Poll<Result<(), Error>> {
        // Dropped last: a waker's destructor is foreign code, which may use this end.
        let _former;
        let mut state = self.state();
        _former = state.end().listen(context);
        state.arm();
        if state.take_ready().is_some() {
            return Poll::Ready(Ok(()));
        }
        match state.take_loss() {
            false => Poll::Pending,
            true => Poll::Ready(Err(Error::PeerGone)),
        }
    }

    #[inline(always)]
    fn dequeue(&self) -> Result<Received<'_>, Error> {
        self.state().dequeue()
    }

    #[inline(always)]
    fn free<'r>(&self, received: Received<'r>) -> Result<(), Received<'r>> {
        self.state().free(received)
    }

    fn notify(&self) {
        self.state().notify();
    }

    fn reset(&self) {
        self.state().reset();
    }
}

//! The sending end of a FIFO channel for a process: the core's sender, following its receiver through restarts.
//!
//! What you may rely on: every call keeps its deadline; a wait spins for the domain's time, then sleeps in the kernel;
//! nothing here takes a lock that another process holds. One thread at a time uses an end (it is not `Sync`); blocks
//! stay valid as long as the end is borrowed.
//!
//! How it works: each operation first compares the version of the mailbox ([`super::mailbox`]) with the one it has
//! applied; when it differs, the receiver that was lost gives its blocks back and its successor takes its place.
//! Sleeping is in three steps (prepare, sleep, finish), so that a caller with several threads an end can release its
//! own lock while it sleeps.

use std::cell::{RefCell, RefMut};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::task::{Context, Poll};

use musubi_core::Error;
use musubi_core::channel::{Deadline, SendingEnd as SendingEndTrait, Usage};
use musubi_core::fifo::{Entry, Loan, Notified, Sender, SenderReady};
use musubi_core::plan::FilterRule;
use musubi_core::words::{OwnWords, PeerWords};

use crate::os::clock::MonotonicClock;
use crate::process::channel::claim::End;
use crate::process::channel::coherence::Hints;
use crate::process::channel::doorbell::LinkDoorbell;
use crate::process::channel::mailbox::{Counterpart, TxLink, TxLinks};
use crate::process::channel::shelf::Shelf;
use crate::process::channel::wait::{Sleep, Spin, Waiters, stream_pause};

/// The sending end of a FIFO channel.
#[derive(Debug)]
pub struct SendingEnd {
    /// Always there; taken out only when the handle is dropped.
    state: RefCell<Option<SendingState>>,
    spin: Spin,
    shelf: Arc<Shelf<SendingState>>,
}

/// What an end knows and owns; the part that is parked while no handle is open.
#[derive(Debug)]
pub(crate) struct SendingState {
    core: Sender<'static, Box<[Entry]>, Hints>,
    links: Arc<TxLinks>,
    link: Option<TxLink>,
    version: Option<u32>,
    gone_seen: u32,
    loss_unreported: bool,
    /// A receiver that has gone raised an event that was not taken.
    has_former_event: bool,
    waiters: Waiters,
    is_each: bool,
    /// When the attendant raises what the filter holds back.
    held_until_ns: Option<u64>,
    /// Owns the memory that `core` works on; declared last so that it goes last.
    end: End,
}

impl SendingState {
    pub(crate) fn new(end: End) -> Result<SendingState, crate::Error> {
        let fifo = end.channel();
        let links = Arc::clone(end.tx_links().ok_or(crate::Error::Plan)?);
        let entries = vec![Entry::NEW; fifo.blocks as usize].into_boxed_slice();
        let own = end.own().words();
        let (base, words) = (own.bytes_at(0, 0).cast::<u32>(), own.len());
        // SAFETY: `end` keeps the section mapped and is dropped after `core`; the claim of the end makes us the only
        // one in this process that writes this part, the seal the only process.
        let own: OwnWords<'static> = unsafe { OwnWords::new(base, words) };
        let core = Sender::new(own, fifo, end.me(), entries, Hints).map_err(|_| crate::Error::Plan)?;
        Ok(SendingState {
            core,
            links,
            link: None,
            version: None,
            gone_seen: 0,
            loss_unreported: false,
            has_former_event: false,
            waiters: Waiters::default(),
            is_each: fifo.filter.is_each(),
            held_until_ns: None,
            end,
        })
    }

    /// Takes note of receivers that came or went.
    #[inline(always)]
    fn follow(&mut self) {
        if self.version != Some(self.links.version()) {
            self.apply_links();
        }
    }

    pub(crate) fn fifo(&self) -> u16 {
        self.end.fifo()
    }

    #[cold]
    fn apply_links(&mut self) {
        let mut state = self.links.lock();
        let (receiver, gone, start) = (state.receiver.clone(), state.gone, state.start);
        let lost = std::mem::take(&mut state.lost);
        self.version = Some(self.links.version());
        drop(state);
        // A last look at each: an event that it raised before it went is not lost with it.
        self.core.poll();
        // Those that came and went since the last look: what they gave back is taken in order. `lost` keeps their memory.
        for (link, began) in lost.iter().filter(|(link, _)| !self.link.as_ref().is_some_and(|known| known.is(link))) {
            self.core.set_receiver(Some(extended(link)), *began);
            self.core.poll();
        }
        if gone != self.gone_seen {
            self.gone_seen = gone;
            self.loss_unreported = true;
        }
        let is_known = receiver.as_ref().zip(self.link.as_ref()).is_some_and(|(receiver, known)| receiver.is(known));
        if !lost.is_empty() || !is_known {
            self.has_former_event |= self.core.take_event();
            self.core.set_receiver(receiver.as_ref().map(extended), start);
        }
        // The former link's memory may go only now that `core` has let go of it.
        self.link = receiver;
    }

    /// Looks once, at events of receivers that have gone too.
    fn look(&mut self) -> SenderReady {
        let ready = self.core.poll();
        SenderReady { event: ready.event || self.has_former_event, ..ready }
    }

    /// Takes the event of the receiver that is there, or of those before it.
    fn take_event(&mut self) -> bool {
        let is_former = std::mem::take(&mut self.has_former_event);
        self.core.take_event() || is_former
    }

    fn notify(&mut self) -> Notified {
        self.follow();
        self.note_late_raise();
        let notified = self.core.notify(&MonotonicClock, &doorbell(&self.link));
        match notified {
            Notified::Held { latest_at_ns } => {
                self.held_until_ns = Some(latest_at_ns);
                self.end.arm_late(latest_at_ns);
            }
            Notified::Raised if !self.is_each => {
                self.held_until_ns = None;
                self.end.disarm_late();
            }
            Notified::Raised => {}
        }
        self.ring_a_newcomer();
        notified
    }

    /// Tells the filter that the attendant has raised what it held back, else it would raise the next request for that.
    #[inline]
    fn note_late_raise(&mut self) {
        if let Some(at_ns) = self.held_until_ns.filter(|_| !self.end.is_late_armed()) {
            self.core.note_raised(at_ns);
            self.held_until_ns = None;
        }
    }

    /// A receiver that was linked while we notified may have gone to sleep without seeing it.
    #[inline(always)]
    fn ring_a_newcomer(&mut self) {
        if self.version != Some(self.links.version()) {
            self.apply_links();
            self.core.ring_if_waiting(&doorbell(&self.link));
        }
    }

    fn prepare_sleep(&mut self) -> (Sleep<TxLink>, SenderReady) {
        self.follow();
        let bell = self.link.clone().map(|link| {
            let expected = self.core.bell().map_or(0, |bell| bell.look(0));
            (link, expected)
        });
        self.waiters.sleepers += 1;
        let mut ready = self.core.announce_wait(self.waiters.bits());
        ready.event |= self.has_former_event;
        (Sleep::new(bell, self.version.unwrap_or(0)), ready)
    }

    fn finish_sleep(&mut self) {
        self.waiters.sleepers -= 1;
        self.core.withdraw_wait(self.waiters.bits());
    }
}

fn doorbell(link: &Option<TxLink>) -> LinkDoorbell<'_> {
    LinkDoorbell { socket: link.as_ref().and_then(|link| link.doorbell.as_deref()) }
}

/// The receiver's words for as long as the link is kept.
fn extended(link: &TxLink) -> PeerWords<'static> {
    let words = link.words.words();
    // SAFETY: the address and length are those of a valid view; `SendingState` keeps the link, and with it the mapping, until
    // after it has given `core` another one.
    unsafe { PeerWords::new(words.bytes_at(0, 0).cast(), words.len()) }
}

impl SendingEnd {
    pub(crate) fn new(state: SendingState, spin: Spin, shelf: Arc<Shelf<SendingState>>) -> SendingEnd {
        SendingEnd { state: RefCell::new(Some(state)), spin, shelf }
    }

    #[inline(always)]
    fn state(&self) -> RefMut<'_, SendingState> {
        RefMut::map(self.state.borrow_mut(), |state| match state {
            Some(state) => state,
            None => unreachable!("taken out only when dropped"),
        })
    }

    /// Whether a receiver was lost that no call has reported yet; asking reports it.
    pub fn take_loss(&self) -> bool {
        let mut state = self.state();
        state.follow();
        std::mem::take(&mut state.loss_unreported)
    }

    /// Whether [`SendingEnd::take_loss`] would report one.
    pub fn has_loss(&self) -> bool {
        let mut state = self.state();
        state.follow();
        state.loss_unreported
    }

    /// Who receives now. What is told by a loss alone (somebody has gone) this tells of one: whether it is still there.
    pub fn receiver(&self) -> Option<Counterpart> {
        let mut state = self.state();
        state.follow();
        state.link.as_ref().map(TxLink::counterpart)
    }

    /// Makes every thread of this process that sleeps at this end look again, for a caller that made a block free.
    pub fn wake_sleepers(&self) {
        let state = self.state();
        state.waiters.wake(&state.links);
    }

    /// A descriptor for event loops, readable when the receiver has rung or changed; see [`SendingEnd::arm`].
    ///
    /// # Errors
    /// [`crate::Error::System`] if the kernel has no descriptor left.
    pub fn event_fd(&self) -> Result<OwnedFd, crate::Error> {
        self.state().end.duplicate_event_fd()
    }

    /// Clears the descriptor and has it made readable when a block comes back. True if one can be allocated already.
    pub fn arm(&self) -> bool {
        let mut state = self.state();
        state.end.clear_event();
        state.follow();
        state.waiters.armed = true;
        let bits = state.waiters.bits();
        state.core.announce_wait(bits).block
    }

    /// Takes [`SendingEnd::arm`] back: blocks that come back do not ring any more. The descriptor still becomes
    /// readable when the receiver changes.
    pub fn disarm(&self) {
        let mut state = self.state();
        state.waiters.armed = false;
        let bits = state.waiters.bits();
        state.core.withdraw_wait(bits);
    }

    /// Looks once without waiting: a block free, an event of the receiver, a receiver lost.
    pub fn look(&self) -> SenderReady {
        let mut state = self.state();
        state.follow();
        state.look()
    }

    /// Waits for an event of this receiver alone: what one before it raised is forgotten.
    ///
    /// # Errors
    /// [`Error::PeerGone`] if another receives now, or nobody; [`Error::Timeout`] at the deadline.
    pub fn wait_for(&self, receiver: Counterpart, deadline: Deadline) -> Result<(), Error> {
        let of_receiver = |state: &mut SendingState| {
            if state.link.as_ref().map(TxLink::counterpart) != Some(receiver) {
                return Some(Err(Error::PeerGone));
            }
            state.has_former_event = false;
            state.core.poll();
            state.core.take_event().then_some(Ok(()))
        };
        self.wait_until(deadline, of_receiver)?
    }

    /// First step of a sleep by a caller with a lock of its own; then [`Sleep::sleep`] without that lock, then
    /// [`SendingEnd::finish_sleep`]. If something is ready already, finish at once.
    pub fn prepare_sleep(&self) -> (Sleep<TxLink>, SenderReady) {
        self.state().prepare_sleep()
    }

    /// Last step of a sleep.
    pub fn finish_sleep(&self) {
        self.state().finish_sleep();
    }

    /// The mailbox, for sleeping without a borrow of the end.
    pub fn links(&self) -> Arc<TxLinks> {
        Arc::clone(&self.state().links)
    }

    /// How long waits of this domain spin.
    pub fn spin(&self) -> Spin {
        self.spin
    }

    /// Waits until `check` has a result; reports a loss instead of waiting.
    fn wait_until<R>(
        &self,
        deadline: Deadline,
        mut check: impl FnMut(&mut SendingState) -> Option<R>,
    ) -> Result<R, Error> {
        let mut look = || {
            let mut state = self.state();
            state.follow();
            check(&mut state)
        };
        if let Some(result) = look() {
            return Ok(result);
        }
        self.report_loss()?;
        if deadline == Deadline::Poll {
            return Err(Error::Timeout);
        }
        if let Some(result) = self.spin.until(deadline, &mut look) {
            return Ok(result);
        }
        let links = self.links();
        loop {
            let (sleep, _) = self.prepare_sleep();
            let ready = look();
            let in_time = ready.is_some() || self.has_loss() || sleep.sleep(links.version_word(), deadline);
            self.finish_sleep();
            if let Some(result) = ready.or_else(&mut look) {
                return Ok(result);
            }
            self.report_loss()?;
            if !in_time {
                return Err(Error::Timeout);
            }
        }
    }

    /// [`SendingEndTrait::allocate`] when no block was free at the first look.
    fn allocate_later(&self, deadline: Deadline) -> Result<Loan<'_>, Error> {
        let allocated = self.wait_until(deadline, |state| match state.core.poll().block {
            true => state.core.allocate().ok(),
            false => {
                stream_pause();
                None
            }
        });
        match allocated {
            Err(Error::Timeout) if deadline == Deadline::Poll => Err(Error::NoBlock),
            other => other,
        }
    }

    fn report_loss(&self) -> Result<(), Error> {
        let lost = std::mem::take(&mut self.state().loss_unreported);
        if lost { Err(Error::PeerGone) } else { Ok(()) }
    }
}

impl Drop for SendingEnd {
    fn drop(&mut self) {
        if let Some(state) = self.state.get_mut().take() {
            self.shelf.park(state.fifo(), state);
        }
    }
}

impl SendingEndTrait for SendingEnd {
    fn block_bytes(&self) -> u32 {
        self.state().core.block_bytes()
    }

    fn usage(&self) -> Usage {
        let mut state = self.state();
        state.follow();
        state.core.collect();
        let (blocks, free) = state.core.blocks();
        let (queued, held) = (state.core.queued(), state.core.held());
        Usage { blocks, free, queued, held, connected: state.link.is_some() }
    }

    #[inline(always)]
    fn allocate(&self, deadline: Deadline) -> Result<Loan<'_>, Error> {
        let mut state = self.state();
        state.follow();
        if let Ok(loan) = state.core.allocate() {
            return Ok(loan);
        }
        drop(state);
        self.allocate_later(deadline)
    }

    fn free<'l>(&self, loan: Loan<'l>) -> Result<(), Loan<'l>> {
        self.state().core.free(loan)
    }

    #[inline(always)]
    fn enqueue<'l>(&self, loan: Loan<'l>, bytes: u32) -> Result<(), (Error, Loan<'l>)> {
        self.state().core.enqueue(loan, bytes, &MonotonicClock)
    }

    #[inline(always)]
    fn notify(&self) -> Notified {
        self.state().notify()
    }

    fn wait(&self, deadline: Deadline) -> Result<(), Error> {
        self.wait_until(deadline, |state| {
            state.core.poll();
            state.take_event().then_some(())
        })
    }

    fn poll_block(&self, context: &mut Context<'_>) -> Poll<Result<(), Error>> {
        // Dropped last: a waker's destructor is foreign code, which may use this end.
        let _former;
        let mut state = self.state();
        _former = state.end.listen(context);
        state.waiters.armed = true;
        state.follow();
        let bits = state.waiters.bits();
        if state.core.announce_wait(bits).block {
            return Poll::Ready(Ok(()));
        }
        match std::mem::take(&mut state.loss_unreported) {
            false => Poll::Pending,
            true => Poll::Ready(Err(Error::PeerGone)),
        }
    }

    fn set_filter(&self, rule: FilterRule) {
        let mut state = self.state();
        state.follow();
        state.is_each = rule.is_each();
        let SendingState { core, link, .. } = &mut *state;
        core.set_filter(rule, &doorbell(link));
        state.held_until_ns = None;
        state.end.disarm_late();
        state.ring_a_newcomer();
    }

    fn reset(&self) {
        let mut state = self.state();
        state.follow();
        let SendingState { core, link, .. } = &mut *state;
        core.reset(&doorbell(link));
        state.ring_a_newcomer();
    }
}

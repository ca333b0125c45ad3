//! The receiving end of a FIFO channel for a process: the core's receivers, one an incarnation of the sender.
//!
//! What you may rely on: as for [`super::sender`]. Messages that a dead sender had committed are delivered before
//! those of its successor; each is delivered once.
//!
//! How it works: senders queue up in order of arrival in the mailbox ([`super::mailbox`]). The first one is read; when it
//! is dead and drained, the next takes its place. A block of a former one that the program still holds keeps that
//! one's memory mapped until it is freed.

use std::cell::{RefCell, RefMut};
use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::task::{Context, Poll};

use musubi_core::Error;
use musubi_core::channel::{Deadline, ReceivingEnd as ReceivingEndTrait, Usage};
use musubi_core::fifo::{Received, Receiver};
use musubi_core::layout::waiting;
use musubi_core::plan::{Plan, Trust};
use musubi_core::words::{OwnWords, PeerWords};

use crate::os::clock::MonotonicClock;
use crate::process::channel::claim::End;
use crate::process::channel::coherence::Hints;
use crate::process::channel::doorbell::LinkDoorbell;
use crate::process::channel::mailbox::{Counterpart, INCARNATIONS_MAX, RxLinks, RxSender};
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

/// One incarnation of the sender.
#[derive(Debug)]
struct Incarnation {
    core: Receiver<'static, Box<[u32]>, Hints>,
    sender: RxSender,
    retired: bool,
}

/// What an end knows and owns; the part that is parked while no handle is open.
#[derive(Debug)]
pub(crate) struct ReceivingState {
    /// The one that is read first; at most [`INCARNATIONS_MAX`].
    incarnations: VecDeque<Incarnation>,
    /// Drained ones of which blocks are still held; each holds at least one block.
    former: Vec<Incarnation>,
    links: Arc<RxLinks>,
    trust: Trust,
    version: Option<u32>,
    losses: u32,
    sleepers: u32,
    armed: bool,
    /// Owns the memory that the incarnations work on; declared last so that it goes last.
    end: End,
}

impl ReceivingState {
    pub(crate) fn new(end: End, plan: &Plan<'_>) -> Result<ReceivingState, crate::Error> {
        let links = Arc::clone(end.rx_links().ok_or(crate::Error::Plan)?);
        let trust = plan.domains.get(usize::from(end.channel().from)).ok_or(crate::Error::Plan)?.trust;
        Ok(ReceivingState {
            links,
            trust,
            incarnations: VecDeque::with_capacity(INCARNATIONS_MAX),
            former: Vec::new(),
            version: None,
            losses: 0,
            sleepers: 0,
            armed: false,
            end,
        })
    }

    pub(crate) fn fifo(&self) -> u16 {
        self.end.fifo()
    }

    /// Takes note of senders that came or went.
    #[inline(always)]
    fn follow(&mut self) {
        if self.version != Some(self.links.version()) {
            self.apply_links();
        }
    }

    #[cold]
    fn apply_links(&mut self) {
        let links = Arc::clone(&self.links);
        let state = links.lock();
        self.version = Some(links.version());
        for sender in &state.senders {
            match self.incarnations.iter_mut().find(|incarnation| is_same(&incarnation.sender, sender)) {
                Some(incarnation) => {
                    incarnation.sender.alive = sender.alive;
                    incarnation.sender.doorbell.clone_from(&sender.doorbell);
                }
                None => self.incarnations.extend(new_incarnation(&self.end, self.trust, sender)),
            }
        }
        let incarnations = std::mem::take(&mut self.incarnations);
        let known = |incarnation: &Incarnation| state.senders.iter().any(|sender| is_same(&incarnation.sender, sender));
        let (known, forgotten): (VecDeque<_>, VecDeque<_>) = incarnations.into_iter().partition(known);
        self.incarnations = known;
        drop(state);
        forgotten.into_iter().for_each(|incarnation| self.forget(incarnation));
        self.settle_front();
        self.announce_front();
    }

    /// A sender that the mailbox had to forget before it was drained, or that we have left: its memory stays as long as
    /// the program holds blocks of it.
    fn forget(&mut self, mut incarnation: Incarnation) {
        self.losses += 1;
        if incarnation.core.held() > 0 {
            incarnation.core.retire();
            self.former.push(incarnation);
        }
    }

    /// Retires the front incarnation if its sender is gone, and goes on to the next when it is drained.
    fn settle_front(&mut self) {
        for _ in 0..=INCARNATIONS_MAX {
            let Some(front) = self.incarnations.front_mut() else { return };
            if front.sender.alive {
                return;
            }
            if !front.retired {
                front.retired = true;
                front.core.retire();
            }
            if !front.core.is_drained() {
                return;
            }
            self.leave_front();
        }
    }

    fn leave_front(&mut self) {
        let Some(incarnation) = self.incarnations.pop_front() else { return };
        self.losses += 1;
        self.links.lock().senders.retain(|sender| !is_same(sender, &incarnation.sender));
        if incarnation.core.held() > 0 {
            self.former.push(incarnation);
        }
        self.announce_front();
    }

    /// The new front must know that we sleep or are armed, if we are.
    fn announce_front(&mut self) {
        let bits = self.waiting_bits();
        if bits != 0
            && let Some(front) = self.incarnations.front_mut()
        {
            front.core.announce_wait(bits);
        }
    }

    fn waiting_bits(&self) -> u32 {
        let asleep = if self.sleepers > 0 { waiting::ASLEEP } else { 0 };
        asleep | if self.armed { waiting::ARMED } else { 0 }
    }

    #[inline(always)]
    fn ready(&mut self) -> bool {
        self.follow();
        if self.incarnations.front().is_some_and(|front| front.retired && front.core.is_drained()) {
            self.settle_front();
        }
        self.incarnations.front_mut().is_some_and(|front| front.core.ready())
    }

    /// [`ReceivingState::ready`] as the end of a wait, which takes an event.
    #[inline(always)]
    fn take_ready(&mut self) -> Option<()> {
        let ready = self.ready();
        if let Some(front) = self.incarnations.front_mut() {
            front.core.take_event();
        }
        ready.then_some(())
    }

    /// The next message.
    #[inline(always)]
    fn dequeue(&mut self) -> Result<Received<'static>, Error> {
        self.follow();
        if let Some(front) = self.incarnations.front_mut().filter(|front| !front.retired) {
            let doorbell = LinkDoorbell { socket: front.sender.doorbell.as_deref() };
            return front.core.dequeue(&MonotonicClock, &doorbell);
        }
        self.dequeue_retired()
    }

    /// [`ReceivingState::dequeue`] from senders that are gone, until one is left behind that lives.
    #[cold]
    fn dequeue_retired(&mut self) -> Result<Received<'static>, Error> {
        for _ in 0..=INCARNATIONS_MAX {
            let Some(front) = self.incarnations.front_mut() else { return Err(Error::Empty) };
            let doorbell = LinkDoorbell { socket: front.sender.doorbell.as_deref() };
            match front.core.dequeue(&MonotonicClock, &doorbell) {
                Err(Error::Empty) if front.retired => {
                    self.leave_front();
                    self.settle_front();
                }
                other => return other,
            }
        }
        Err(Error::Empty)
    }

    #[inline(always)]
    fn free<'r>(&mut self, mut received: Received<'r>) -> Result<(), Received<'r>> {
        if let Some(front) = self.incarnations.front_mut() {
            let doorbell = LinkDoorbell { socket: front.sender.doorbell.as_deref() };
            match front.core.free(received, &doorbell) {
                Err(other) => received = other,
                freed => return freed,
            }
        }
        self.free_former(received)
    }

    /// [`ReceivingState::free`] of a block that is not the front sender's.
    #[cold]
    fn free_former<'r>(&mut self, mut received: Received<'r>) -> Result<(), Received<'r>> {
        for incarnation in self.incarnations.iter_mut().chain(&mut self.former) {
            let doorbell = LinkDoorbell { socket: incarnation.sender.doorbell.as_deref() };
            match incarnation.core.free(received, &doorbell) {
                Err(other) => received = other,
                Ok(()) => {
                    self.former.retain(|incarnation| incarnation.core.held() > 0);
                    return Ok(());
                }
            }
        }
        Err(received)
    }

    fn prepare_sleep(&mut self) -> (Sleep<RxSender>, bool) {
        self.follow();
        self.sleepers += 1;
        let bits = self.waiting_bits();
        let version = self.version.unwrap_or(0);
        // Following may just have found the sender gone: the version that is slept on has counted that already.
        let lost = self.losses > 0;
        let Some(front) = self.incarnations.front_mut() else { return (Sleep::new(None, version), lost) };
        let expected = front.core.bell().look(0);
        let ready = front.core.announce_wait(bits);
        front.core.note_sleep();
        (Sleep::new(Some((front.sender.clone(), expected)), version), ready || lost)
    }

    fn finish_sleep(&mut self) {
        self.sleepers -= 1;
        let bits = self.waiting_bits();
        if let Some(front) = self.incarnations.front_mut() {
            front.core.withdraw_wait(bits);
        }
    }
}

/// Whether both are one incarnation in one mapping of its memory. A peer that introduces itself twice is mapped twice.
fn is_same(one: &RxSender, other: &RxSender) -> bool {
    let identity = |sender: &RxSender| (sender.participant, sender.epoch, sender.serial);
    identity(one) == identity(other) && Arc::ptr_eq(one.words.section(), other.words.section())
}

/// The core's receiver for a sender; `None` if the plan and the memory disagree, which attaching has excluded.
fn new_incarnation(end: &End, trust: Trust, sender: &RxSender) -> Option<Incarnation> {
    let fifo = end.channel();
    let held = vec![0; Receiver::<Box<[u32]>, Hints>::held_words(fifo.blocks)].into_boxed_slice();
    let (words, own) = (sender.words.words(), end.own().words());
    // SAFETY: the incarnation keeps `sender`, and with it the mapping, beside the receiver that uses it.
    let tx: PeerWords<'static> = unsafe { PeerWords::new(words.bytes_at(0, 0).cast(), words.len()) };
    // SAFETY: the end outlives the incarnations and keeps the section mapped; its claim makes us the only one that writes
    // this part, and of the incarnations only the front one writes.
    let own: OwnWords<'static> = unsafe { OwnWords::new(own.bytes_at(0, 0).cast(), own.len()) };
    let from = (sender.participant, sender.epoch);
    let core = Receiver::new(own, tx, fifo, end.me(), from, trust, held, Hints).ok()?;
    Some(Incarnation { core, sender: sender.clone(), retired: false })
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
        std::mem::take(&mut state.losses) > 0
    }

    /// Whether [`ReceivingEnd::take_loss`] would report one.
    pub fn has_loss(&self) -> bool {
        let mut state = self.state();
        state.ready();
        state.losses > 0
    }

    /// Whose messages come next: of a sender that lives, or that is gone and has messages left. What is told by a loss
    /// alone (somebody has gone) this tells of one: whether it is still there.
    pub fn sender(&self) -> Option<Counterpart> {
        let mut state = self.state();
        state.ready();
        state.incarnations.front().map(|front| front.sender.counterpart())
    }

    /// [`ReceivingEndTrait::dequeue`], and whose message it is.
    ///
    /// # Errors
    /// As there.
    pub fn dequeue_from(&self) -> Result<(Received<'_>, Counterpart), Error> {
        let mut state = self.state();
        let received = state.dequeue()?;
        // The incarnation that a message comes from stays the front one until the next look.
        let from = state.incarnations.front().map(|front| front.sender.counterpart()).ok_or(Error::Empty)?;
        Ok((received, from))
    }

    /// Makes every thread of this process that sleeps at this end look again, for a caller that closes it.
    pub fn wake_sleepers(&self) {
        let state = self.state();
        if state.sleepers > 0 {
            state.links.change(|_| ());
        }
    }

    /// A descriptor for event loops, readable when the sender has rung or changed; see [`ReceivingEnd::arm`].
    ///
    /// # Errors
    /// [`crate::Error::System`] if the kernel has no descriptor left.
    pub fn event_fd(&self) -> Result<OwnedFd, crate::Error> {
        self.state().end.duplicate_event_fd()
    }

    /// Clears the descriptor and has it made readable at the next notification. True if a wait would return already.
    pub fn arm(&self) -> bool {
        let mut state = self.state();
        state.end.clear_event();
        state.armed = true;
        state.follow();
        state.announce_front();
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
        Arc::clone(&self.state().links)
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
        if self.stream_ran_dry() {
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

    fn stream_ran_dry(&self) -> bool {
        self.state().incarnations.front_mut().is_some_and(|front| front.core.stream_ran_dry())
    }

    fn report_loss(&self) -> Result<(), Error> {
        let lost = std::mem::take(&mut self.state().losses);
        if lost > 0 { Err(Error::PeerGone) } else { Ok(()) }
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
        self.state().end.channel().block_bytes
    }

    fn usage(&self) -> Usage {
        let mut state = self.state();
        state.follow();
        let blocks = state.end.channel().blocks;
        let held = state.incarnations.iter().chain(&state.former).map(|incarnation| incarnation.core.held()).sum();
        let connected = state.incarnations.front().is_some_and(|front| front.sender.alive);
        let queued = state.incarnations.front_mut().map_or(0, |front| {
            front.core.begin();
            front.core.queued()
        });
        Usage { blocks, free: 0, queued, held, connected }
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
        state.ready() || state.losses > 0
    }

    fn priority(&self) -> u8 {
        self.state().end.channel().priority
    }

    fn poll_event(&self, context: &mut Context<'_>) -> Poll<Result<(), Error>> {
        // Dropped last: a waker's destructor is foreign code, which may use this end.
        let _former;
        let mut state = self.state();
        state.end.clear_event();
        _former = state.end.set_waker(context.waker().clone());
        if _former.is_err() {
            // Without a descriptor nobody could wake us; so look again at the executor's pace.
            context.waker().wake_by_ref();
        }
        state.armed = true;
        state.follow();
        state.announce_front();
        if state.take_ready().is_some() {
            return Poll::Ready(Ok(()));
        }
        match std::mem::take(&mut state.losses) {
            0 => Poll::Pending,
            _ => Poll::Ready(Err(Error::PeerGone)),
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
        let mut state = self.state();
        state.follow();
        if let Some(front) = state.incarnations.front_mut() {
            front.core.notify(&LinkDoorbell { socket: front.sender.doorbell.as_deref() });
        }
    }

    fn reset(&self) {
        let mut state = self.state();
        state.follow();
        for incarnation in &mut state.incarnations {
            incarnation.core.reset(&MonotonicClock, &LinkDoorbell { socket: incarnation.sender.doorbell.as_deref() });
        }
        state.settle_front();
    }
}

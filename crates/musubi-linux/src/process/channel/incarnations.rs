//! The senders that a receiving end has had and has, one incarnation after the other.
//!
//! What you may rely on: messages that a dead sender had committed come before those of its successor, each once. A sender's
//! memory stays mapped as long as messages of it are queued or held.
//!
//! How it works: senders queue up in order of arrival in the mailbox ([`super::mailbox`]). The first one is read; when it
//! is dead and drained, the next takes its place. A block of a former one that the program still holds keeps that
//! one's memory mapped until it is freed.

use std::collections::VecDeque;
use std::sync::Arc;

use musubi_core::Error;
use musubi_core::channel::Usage;
use musubi_core::fifo::{Received, Receiver};
use musubi_core::plan::{Plan, Trust};
use musubi_core::words::{OwnWords, PeerWords};

use crate::os::clock::MonotonicClock;
use crate::process::channel::claim::End;
use crate::process::channel::coherence::Hints;
use crate::process::channel::doorbell::LinkDoorbell;
use crate::process::channel::mailbox::{Counterpart, INCARNATIONS_MAX, RxLinks, RxSender};
use crate::process::channel::wait::{Sleep, Waiters};

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
    waiters: Waiters,
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
            waiters: Waiters::default(),
            end,
        })
    }

    pub(crate) fn fifo(&self) -> u16 {
        self.end.fifo()
    }

    /// Takes note of senders that came or went.
    #[inline(always)]
    pub(super) fn follow(&mut self) {
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
            match self.incarnations.iter_mut().find(|incarnation| incarnation.sender.is(sender)) {
                Some(incarnation) => {
                    incarnation.sender.alive = sender.alive;
                    incarnation.sender.doorbell.clone_from(&sender.doorbell);
                }
                None => self.incarnations.extend(new_incarnation(&self.end, self.trust, sender)),
            }
        }
        let incarnations = std::mem::take(&mut self.incarnations);
        let known = |incarnation: &Incarnation| state.senders.iter().any(|sender| incarnation.sender.is(sender));
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
        self.links.lock().senders.retain(|sender| !sender.is(&incarnation.sender));
        if incarnation.core.held() > 0 {
            self.former.push(incarnation);
        }
        self.announce_front();
    }

    /// The new front must know that we sleep or are armed, if we are.
    fn announce_front(&mut self) {
        let bits = self.waiters.bits();
        if bits != 0
            && let Some(front) = self.incarnations.front_mut()
        {
            front.core.announce_wait(bits);
        }
    }

    #[inline(always)]
    pub(super) fn ready(&mut self) -> bool {
        self.follow();
        if self.incarnations.front().is_some_and(|front| front.retired && front.core.is_drained()) {
            self.settle_front();
        }
        self.incarnations.front_mut().is_some_and(|front| front.core.ready())
    }

    /// [`ReceivingState::ready`] as the end of a wait, which takes an event.
    #[inline(always)]
    pub(super) fn take_ready(&mut self) -> Option<()> {
        let ready = self.ready();
        if let Some(front) = self.incarnations.front_mut() {
            front.core.take_event();
        }
        ready.then_some(())
    }

    /// The next message.
    #[inline(always)]
    pub(super) fn dequeue(&mut self) -> Result<Received<'static>, Error> {
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
    pub(super) fn free<'r>(&mut self, mut received: Received<'r>) -> Result<(), Received<'r>> {
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

    pub(super) fn prepare_sleep(&mut self) -> (Sleep<RxSender>, bool) {
        self.follow();
        self.waiters.sleepers += 1;
        let bits = self.waiters.bits();
        let version = self.version.unwrap_or(0);
        // Following may just have found the sender gone: the version that is slept on has counted that already.
        let lost = self.losses > 0;
        let Some(front) = self.incarnations.front_mut() else { return (Sleep::new(None, version), lost) };
        let expected = front.core.bell().look(0);
        let ready = front.core.announce_wait(bits);
        front.core.note_sleep();
        (Sleep::new(Some((front.sender.clone(), expected)), version), ready || lost)
    }

    pub(super) fn finish_sleep(&mut self) {
        self.waiters.sleepers -= 1;
        let bits = self.waiters.bits();
        if let Some(front) = self.incarnations.front_mut() {
            front.core.withdraw_wait(bits);
        }
    }

    /// The end and its mailbox.
    pub(super) fn end(&self) -> &End {
        &self.end
    }

    pub(super) fn links(&self) -> &Arc<RxLinks> {
        &self.links
    }

    /// Makes every thread that sleeps at this end look again.
    pub(super) fn wake_sleepers(&self) {
        self.waiters.wake(&self.links);
    }

    /// Has the sender ring at the next notification.
    pub(super) fn arm(&mut self) {
        self.waiters.armed = true;
        self.follow();
        self.announce_front();
    }

    /// Whether a sender was lost that no call has reported yet.
    pub(super) fn has_loss(&self) -> bool {
        self.losses > 0
    }

    /// The same; this call reports it.
    pub(super) fn take_loss(&mut self) -> bool {
        std::mem::take(&mut self.losses) > 0
    }

    /// Whose messages come next.
    pub(super) fn front_sender(&self) -> Option<Counterpart> {
        self.incarnations.front().map(|front| front.sender.counterpart())
    }

    pub(super) fn stream_ran_dry(&mut self) -> bool {
        self.incarnations.front_mut().is_some_and(|front| front.core.stream_ran_dry())
    }

    pub(super) fn usage(&mut self) -> Usage {
        self.follow();
        let blocks = self.end.channel().blocks;
        let held = self.incarnations.iter().chain(&self.former).map(|incarnation| incarnation.core.held()).sum();
        let connected = self.incarnations.front().is_some_and(|front| front.sender.alive);
        let queued = self.incarnations.front_mut().map_or(0, |front| {
            front.core.begin();
            front.core.queued()
        });
        Usage { blocks, free: 0, queued, held, connected }
    }

    /// Raises an event at the sender.
    pub(super) fn notify(&mut self) {
        self.follow();
        if let Some(front) = self.incarnations.front_mut() {
            front.core.notify(&LinkDoorbell { socket: front.sender.doorbell.as_deref() });
        }
    }

    /// Gives back all that is queued and held.
    pub(super) fn reset(&mut self) {
        self.follow();
        for incarnation in &mut self.incarnations {
            incarnation.core.reset(&MonotonicClock, &LinkDoorbell { socket: incarnation.sender.doorbell.as_deref() });
        }
        self.settle_front();
    }
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

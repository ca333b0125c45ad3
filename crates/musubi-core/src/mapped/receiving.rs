//! The receiving end of a FIFO channel in mapped memory: the core's receivers, one an incarnation of the sender.
//!
//! What you may rely on: as for [`super::SendingEnd`]. Messages that a gone sender had committed are delivered before
//! those of its successor, each once. A sender that was restarted twice before anybody looked loses nothing either, as
//! long as its successors found the time to wait for us ([`super::Setup::release_wait_ns`]).
//!
//! How it works: the front incarnation is read. When its sender is gone it is drained, then the next is taken: the predecessor
//! in a participant's other bank, if that had a session with us which we have not drained, else the present incarnation.
//! An incarnation that was left while the program holds blocks of it stays, and with it the use of that bank.

use core::cell::Cell;
use core::marker::PhantomData;
use core::task::{Context, Poll};

use super::latch::{Guard, Latch};
use super::shared::{Care, Fate, Shared, next_epoch};
use super::waiting::{self, wait};
use super::wake::WakerPlace;
use super::{Host, handshake};
use crate::channel::{Deadline, ReceivingEnd as ReceivingEndTrait, Usage};
use crate::error::Error;
use crate::fifo::{Received, Receiver};
use crate::layout::{Part, rx, tx};
use crate::plan::{Fifo, Trust};
use crate::sync::{AtomicU32, Ordering, Site};
use crate::words::{OwnWords, PeerWords};

/// Incarnations of senders that an end keeps: the one it reads, and those of which the program holds blocks.
pub(super) const INCARNATIONS: usize = 3;

/// A receiving end of the plan, open or not.
#[derive(Debug)]
pub(super) struct ReceivingRecord<'m, B: Host> {
    pub fifo: u16,
    pub waker: WakerPlace,
    pub state: Latch<ReceivingState<'m, B>>,
    /// 1 while there is a handle.
    handle: AtomicU32,
}

/// One incarnation of a sender.
#[derive(Debug)]
struct Incarnation<'m, B: Host> {
    core: Receiver<'m, &'m mut [u32], Care<'m, B>>,
    participant: u16,
    epoch: u32,
    retired: bool,
    stalled: bool,
}

/// What an end knows and owns; it stays while no handle is open.
#[derive(Debug)]
pub(super) struct ReceivingState<'m, B: Host> {
    words: OwnWords<'m>,
    channel: &'m Fifo<'m>,
    fifo: u16,
    trust: Trust,
    incarnations: [Option<Incarnation<'m, B>>; INCARNATIONS],
    /// Which incarnation is read.
    front: Option<usize>,
    /// Storage of incarnations that are free.
    spare: [Option<&'m mut [u32]>; INCARNATIONS],
    /// For each participant of the sending domain: the epoch of the incarnation that was left last.
    done: &'m mut [u32],
    /// Whether a predecessor could not be taken because somebody else had the watch; so nothing is to be released yet.
    is_postponed: bool,
    loss: bool,
    bits: u32,
    is_open: bool,
}

impl<'m, B: Host> ReceivingRecord<'m, B> {
    /// The end of a channel on fresh words. `held` has [`Receiver::held_words`] words for each incarnation, `done` one for each
    /// participant of the sending domain, which `trust` is about.
    pub fn new(
        (fifo, channel): (u16, &'m Fifo<'m>),
        words: OwnWords<'m>,
        trust: Trust,
        held: [&'m mut [u32]; INCARNATIONS],
        done: &'m mut [u32],
    ) -> Self {
        let state = ReceivingState {
            words,
            channel,
            fifo,
            trust,
            incarnations: [const { None }; INCARNATIONS],
            front: None,
            spare: held.map(Some),
            done,
            is_postponed: false,
            loss: false,
            bits: 0,
            is_open: false,
        };
        ReceivingRecord { fifo, waker: WakerPlace::new(), state: Latch::new(state), handle: AtomicU32::new(0) }
    }

    /// The participant leaves.
    pub fn close(&self, host: &B) {
        let mut state = self.state.lock(host);
        // A beat that is under way links with nobody any more.
        state.is_open = false;
        state.words.set(rx::OPEN, 0);
        drop(state);
        drop(self.waker.take());
    }
}

impl<'m, B: Host> ReceivingState<'m, B> {
    fn front(&mut self) -> Option<&mut Incarnation<'m, B>> {
        self.incarnations.get_mut(self.front?)?.as_mut()
    }

    /// Takes note of a sender that came or went; gives whether one did.
    pub fn follow(&mut self, shared: &Shared<'m, B>) -> bool {
        if !self.is_open {
            return false;
        }
        let changed = self.front.is_some() && self.follow_front(shared);
        if self.front.is_none() { self.take_next(shared) || changed } else { changed }
    }

    /// Whether [`ReceivingState::follow`] has to come again before a predecessor may be released.
    pub fn is_postponed(&self) -> bool {
        self.is_postponed
    }

    /// [`ReceivingState::follow`] by a thread, which also takes note of peers if there is no sender that beats.
    fn look(&mut self, shared: &Shared<'m, B>) -> bool {
        let changed = self.follow(shared);
        if self.front().is_some_and(|front| !front.stalled) {
            return changed;
        }
        shared.note_peers();
        self.follow(shared) || changed
    }

    fn follow_front(&mut self, shared: &Shared<'m, B>) -> bool {
        let Some(incarnation) = self.front() else { return false };
        match shared.fate(incarnation.participant, incarnation.epoch) {
            Fate::Attached => {
                let stalled = shared.is_stalled(incarnation.participant, incarnation.epoch);
                let newly = stalled && !incarnation.stalled;
                incarnation.stalled = stalled;
                self.loss |= newly;
                newly
            }
            Fate::Gone { intact } => {
                let newly = !incarnation.retired;
                if newly {
                    incarnation.retired = true;
                    incarnation.core.retire();
                }
                let leaves = !intact || incarnation.core.is_drained();
                if leaves {
                    self.leave_front(shared);
                }
                newly || leaves
            }
        }
    }

    /// Leaves a sender that is gone and drained, or whose memory was taken by a successor.
    #[cold]
    fn leave_front(&mut self, shared: &Shared<'m, B>) {
        let Some(index) = self.front.take() else { return };
        let Some(incarnation) = &self.incarnations[index] else { return };
        self.loss |= !incarnation.stalled;
        let first = shared.plan.first_participant(self.channel.from);
        if let Some(done) = self.done.get_mut(usize::from(incarnation.participant - first)) {
            *done = incarnation.epoch;
        }
        self.give_up(index, shared);
    }

    /// Frees an incarnation that is not the front one, once the program holds nothing of it.
    fn give_up(&mut self, index: usize, shared: &Shared<'m, B>) {
        let is_over = |incarnation: &mut Incarnation<'m, B>| incarnation.core.held() == 0;
        if let Some(incarnation) = self.incarnations[index].take_if(is_over) {
            shared.end_use(incarnation.participant, incarnation.epoch);
            self.spare[index] = Some(incarnation.core.into_held());
        }
    }

    /// Takes the next sender, if there is one.
    #[cold]
    fn take_next(&mut self, shared: &Shared<'m, B>) -> bool {
        self.is_postponed = false;
        let Some(index) = self.incarnations.iter().position(Option::is_none) else { return false };
        for (done, participant) in shared.participants_of(self.channel.from).enumerate() {
            let Some(present) = shared.peer(participant).map(|peer| peer.known.load(Ordering::SeqCst)) else {
                continue;
            };
            let done = self.done.get(done).copied().unwrap_or(0);
            let Ok(former) = self.predecessor(shared, participant, present, done) else {
                // Its messages come first, so its successor has to wait for the next look.
                self.is_postponed = true;
                return false;
            };
            let next = former.or_else(|| self.present(shared, participant, present, done));
            if let Some((epoch, words)) = next {
                self.take_incarnation(index, shared, (participant, epoch), words);
                return self.front.is_some();
            }
        }
        false
    }

    /// A sender that was gone before we could take it, if it had a session with us; an error if that cannot be told now.
    fn predecessor(
        &self,
        shared: &Shared<'m, B>,
        participant: u16,
        present: u32,
        done: u32,
    ) -> Result<Option<(u32, PeerWords<'m>)>, Error> {
        let epoch = shared.section_of(participant, present ^ 1).map_or(0, handshake::signed);
        let is_next = present != 0 && epoch != 0 && next_epoch(epoch) == present && epoch != done;
        let words = is_next.then(|| shared.part_of(participant, epoch, Part::Tx(self.fifo))).flatten();
        let Some(words) = words.filter(|words| is_linked(*words, shared.identity())) else { return Ok(None) };
        Ok(shared.use_predecessor(participant, epoch, present)?.then_some((epoch, words)))
    }

    /// The sender that the participant's root names, if it has the end open, or has left with messages for us.
    fn present(&self, shared: &Shared<'m, B>, participant: u16, epoch: u32, done: u32) -> Option<(u32, PeerWords<'m>)> {
        if epoch == 0 || epoch == done {
            return None;
        }
        let words = shared.part_of(participant, epoch, Part::Tx(self.fifo))?;
        let is_wanted = match shared.fate(participant, epoch) {
            Fate::Attached => words.see(tx::OPEN, Site::SeeRoot) == 1,
            Fate::Gone { .. } => is_linked(words, shared.identity()),
        };
        (is_wanted && shared.use_present(participant, epoch)).then_some((epoch, words))
    }

    fn take_incarnation(&mut self, index: usize, shared: &Shared<'m, B>, sender: (u16, u32), words: PeerWords<'m>) {
        let own = shared.own_part(Part::Rx(self.fifo));
        let (Some(own), Some(held)) = (own, self.spare[index].take()) else {
            return shared.end_use(sender.0, sender.1);
        };
        held.fill(0);
        let (me, care) = (shared.identity(), Care(shared.host));
        // The sizes were checked when the end was made; a plan that lies about them is refused here again.
        let Ok(mut core) = Receiver::new(own, words, self.channel, me, sender, self.trust, held, care) else {
            return shared.end_use(sender.0, sender.1);
        };
        if self.bits != 0 {
            core.announce_wait(self.bits);
        }
        let incarnation = Incarnation { core, participant: sender.0, epoch: sender.1, retired: false, stalled: false };
        self.incarnations[index] = Some(incarnation);
        self.front = Some(index);
    }

    fn ready(&mut self, shared: &Shared<'m, B>) -> bool {
        if self.front().is_some_and(|front| front.core.ready()) {
            return true;
        }
        // Once for the sender that is gone, once for its successor.
        (0..2).any(|_| self.look(shared) && self.front().is_some_and(|front| front.core.ready()))
    }

    /// [`ReceivingState::ready`] as the end of a wait, which takes an event.
    fn take_ready(&mut self, shared: &Shared<'m, B>) -> Option<()> {
        let ready = self.ready(shared);
        if let Some(front) = self.front() {
            front.core.take_event();
        }
        ready.then_some(())
    }

    fn dequeue(&mut self, shared: &Shared<'m, B>) -> Result<Received<'m>, Error> {
        for _ in 0..=INCARNATIONS {
            if let Some(front) = self.front() {
                let bell = shared.doorbell(front.participant);
                match front.core.dequeue(shared, &bell) {
                    Err(Error::Empty) => (),
                    other => return other,
                }
            }
            if !self.look(shared) {
                break;
            }
        }
        Err(Error::Empty)
    }

    fn free<'r>(&mut self, shared: &Shared<'m, B>, mut received: Received<'r>) -> Result<(), Received<'r>> {
        for index in 0..INCARNATIONS {
            let Some(incarnation) = &mut self.incarnations[index] else { continue };
            let bell = shared.doorbell(incarnation.participant);
            match incarnation.core.free(received, &bell) {
                Err(other) => received = other,
                Ok(()) => {
                    if self.front != Some(index) {
                        self.give_up(index, shared);
                    }
                    return Ok(());
                }
            }
        }
        Err(received)
    }

    fn set_bits(&mut self, bits: u32) {
        let announces = bits & !self.bits != 0;
        self.bits = bits;
        match self.front() {
            Some(front) if announces => {
                front.core.announce_wait(bits);
            }
            _ => self.words.set(rx::WAITING, bits),
        }
    }
}

/// Whether a sender has opened its session for us.
fn is_linked(tx: PeerWords<'_>, (participant, epoch): (u16, u32)) -> bool {
    tx.see(tx::LINK_EPOCH, Site::SeeLink) == epoch && tx.get(tx::LINK_PARTICIPANT) == u32::from(participant)
}

/// The receiving end of a FIFO channel.
#[derive(Debug)]
pub struct ReceivingEnd<'m, B: Host> {
    shared: &'m Shared<'m, B>,
    record: &'m ReceivingRecord<'m, B>,
    one_thread: PhantomData<Cell<()>>,
}

impl<'m, B: Host> ReceivingEnd<'m, B> {
    /// Opens a record's end.
    pub(super) fn open(shared: &'m Shared<'m, B>, record: &'m ReceivingRecord<'m, B>) -> Result<Self, Error> {
        if record.handle.swap(1, Ordering::AcqRel) != 0 {
            return Err(Error::InUse);
        }
        shared.users.join();
        let end = ReceivingEnd { shared, record, one_thread: PhantomData };
        let mut state = end.latched();
        if !state.is_open {
            shared.claim(&state.words, Part::Rx(record.fifo), rx::OPEN)?;
            state.is_open = true;
        }
        drop(state);
        drop(end.state());
        shared.ring_all();
        Ok(end)
    }

    fn latched(&self) -> Guard<'m, ReceivingState<'m, B>> {
        self.record.state.lock(self.shared.host)
    }

    /// The state; a look at the senders if there is none.
    fn state(&self) -> Guard<'m, ReceivingState<'m, B>> {
        let mut state = self.latched();
        if state.front().is_none_or(|front| front.stalled) {
            state.look(self.shared);
        }
        state
    }

    /// What a wait ends with.
    fn outcome(&self) -> Option<Result<(), Error>> {
        let mut state = self.state();
        let ready = state.take_ready(self.shared).map(Ok);
        ready.or_else(|| core::mem::take(&mut state.loss).then_some(Err(Error::PeerGone)))
    }

    pub(super) fn announce(&self, asleep: bool) {
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
        drop(state);
        self.record.handle.store(0, Ordering::Release);
        if self.shared.users.leave() {
            self.shared.end();
        }
    }
}

impl<B: Host> ReceivingEndTrait for ReceivingEnd<'_, B> {
    fn block_bytes(&self) -> u32 {
        self.latched().channel.block_bytes
    }

    fn usage(&self) -> Usage {
        let mut state = self.state();
        state.look(self.shared);
        let blocks = state.channel.blocks;
        let held = state.incarnations.iter().flatten().map(|incarnation| incarnation.core.held()).sum();
        let Some(front) = state.front() else { return Usage { blocks, held, ..Usage::default() } };
        front.core.begin();
        let connected = !front.retired && !front.stalled;
        Usage { blocks, free: 0, queued: front.core.queued(), held, connected }
    }

    fn wait(&self, deadline: Deadline) -> Result<(), Error> {
        wait(self.shared, deadline, || self.outcome(), |asleep| self.announce(asleep))
    }

    fn is_ready(&self) -> bool {
        let mut state = self.state();
        state.ready(self.shared) || state.loss
    }

    fn priority(&self) -> u8 {
        self.latched().channel.priority
    }

    fn poll_event(&self, context: &mut Context<'_>) -> Poll<Result<(), Error>> {
        // Dropped last: a waker's destructor is foreign code, which may use this end.
        let _former = self.record.waker.register(context.waker());
        if self.shared.host.can_be_woken() {
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
        self.state().dequeue(self.shared)
    }

    fn free<'r>(&self, received: Received<'r>) -> Result<(), Received<'r>> {
        self.latched().free(self.shared, received)
    }

    fn notify(&self) {
        let mut state = self.state();
        if let Some(front) = state.front() {
            let bell = self.shared.doorbell(front.participant);
            front.core.notify(&bell);
        }
    }

    fn reset(&self) {
        let mut state = self.state();
        let front = state.front;
        for (index, incarnation) in state.incarnations.iter_mut().enumerate() {
            let Some(incarnation) = incarnation else { continue };
            let bell = self.shared.doorbell(incarnation.participant);
            if front == Some(index) {
                incarnation.core.reset(self.shared, &bell);
            } else {
                // What was left is not dequeued: its bank may be another's, and the position reached is the front's.
                incarnation.core.give_back_all(&bell);
            }
        }
        (0..INCARNATIONS).filter(|&index| front != Some(index)).for_each(|index| state.give_up(index, self.shared));
        state.follow(self.shared);
    }
}

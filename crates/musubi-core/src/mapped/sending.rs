//! The sending end of a FIFO channel in mapped memory: the core's sender, following its receiver through restarts.
//!
//! What you may rely on: as [`crate::channel`] says; one thread at a time uses an end. What a gone receiver had not
//! dequeued its successor gets, or it is dropped and counted, as the plan says. Where the receiver's last position
//! cannot be read any more (its slot was taken twice meanwhile), what was queued is dropped: nothing is delivered twice.
//!
//! How it works: each operation that would have to wait, and each beat, compares the receiver's root with the
//! incarnation that the session is with ([`SendingState::follow`]), one change a look.

use core::cell::Cell;
use core::marker::PhantomData;
use core::task::{Context, Poll};

use super::latch::{Guard, Latch};
use super::shared::{Care, Fate, Shared};
use super::waiting::{self, wait};
use super::wake::WakerPlace;
use super::{Host, latch};
use crate::channel::{Deadline, SendingEnd as SendingEndTrait, Usage};
use crate::error::Error;
use crate::fifo::session::{end_link, publish_link, reached};
use crate::fifo::{Entry, Loan, Notified, Ring, Sender};
use crate::layout::{Part, rx, tx};
use crate::plan::{Fifo, FilterRule, OnRestart};
use crate::port::Doorbell;
use crate::sync::{AtomicU32, Ordering, Site};
use crate::words::{OwnWords, PeerWords};

/// A sending end of the plan, open or not.
#[derive(Debug)]
pub(super) struct SendingRecord<'m, B: Host> {
    pub fifo: u16,
    pub waker: WakerPlace,
    pub state: Latch<SendingState<'m, B>>,
    /// 1 while there is a handle.
    handle: AtomicU32,
}

/// What an end knows and owns; it stays while no handle is open.
#[derive(Debug)]
pub(super) struct SendingState<'m, B: Host> {
    core: Sender<'m, &'m mut [Entry], Care<'m, B>>,
    words: OwnWords<'m>,
    channel: &'m Fifo<'m>,
    fifo: u16,
    link: Option<Link<'m>>,
    /// Where the present session began or the next one begins.
    start: u32,
    loss: bool,
    bits: u32,
    is_open: bool,
}

/// The receiver of the present session.
#[derive(Clone, Copy, Debug)]
struct Link<'m> {
    participant: u16,
    epoch: u32,
    words: PeerWords<'m>,
    stalled: bool,
}

impl<'m, B: Host> SendingRecord<'m, B> {
    /// The end of a channel on fresh words.
    pub fn new(
        (fifo, channel): (u16, &'m Fifo<'m>),
        words: [OwnWords<'m>; 2],
        me: (u16, u32),
        entries: &'m mut [Entry],
        host: &'m B,
    ) -> Result<Self, Error> {
        let [words, of_core] = words;
        let core = Sender::new(of_core, channel, me, entries, Care(host))?;
        let state =
            SendingState { core, words, channel, fifo, link: None, start: 0, loss: false, bits: 0, is_open: false };
        Ok(SendingRecord { fifo, waker: WakerPlace::new(), state: Latch::new(state), handle: AtomicU32::new(0) })
    }

    /// The participant leaves.
    pub fn close(&self, host: &B) {
        let mut state = self.state.lock(host);
        // A beat that is under way links with nobody any more.
        state.is_open = false;
        state.words.set(tx::OPEN, 0);
        drop(state);
        drop(self.waker.take());
    }
}

impl<'m, B: Host> SendingState<'m, B> {
    /// The periodic work; gives whether anything changed.
    pub fn beat(&mut self, shared: &Shared<'m, B>) -> bool {
        let changed = self.follow(shared);
        if self.is_open {
            let bell = shared.doorbell(self.receiver());
            self.core.raise_if_due(shared, &bell);
        }
        changed
    }

    /// Takes note of a receiver that came or went; gives whether one did.
    fn follow(&mut self, shared: &Shared<'m, B>) -> bool {
        if !self.is_open {
            return false;
        }
        let mut changed = false;
        if let Some(link) = &mut self.link {
            match shared.fate(link.participant, link.epoch) {
                Fate::Attached => {
                    let stalled = shared.is_stalled(link.participant, link.epoch);
                    let newly = stalled && !link.stalled;
                    link.stalled = stalled;
                    self.loss |= newly;
                    return newly;
                }
                Fate::Gone { .. } => self.end_session(shared),
            }
            changed = true;
        }
        self.begin_session(shared) || changed
    }

    #[cold]
    fn end_session(&mut self, shared: &Shared<'m, B>) {
        let Some(link) = self.link.take() else { return };
        // A last look: an event that it raised before it went is not lost with it.
        self.core.poll();
        let reached = reached(link.words, shared.identity());
        // In this order: a successor in the same bank says that it is not the former's any more before it changes it.
        let (taken, rule) = match shared.fate(link.participant, link.epoch) {
            Fate::Gone { intact: false } => (self.start, OnRestart::Drop),
            _ => (reached.unwrap_or(self.start), self.channel.on_restart),
        };
        let ring = Ring::new(self.channel.blocks);
        self.start = end_link(&self.words, None, ring, shared.identity(), taken, rule);
        self.core.set_receiver(None, self.start);
        shared.end_use(link.participant, link.epoch);
        self.loss |= !link.stalled;
    }

    /// Opens a session with a participant that has the other end open, if there is one.
    #[cold]
    fn begin_session(&mut self, shared: &Shared<'m, B>) -> bool {
        for participant in shared.participants_of(self.channel.to) {
            let Some((epoch, words)) = self.offer(shared, participant) else { continue };
            if shared.use_present(participant, epoch) {
                publish_link(&self.words, participant, epoch, self.start);
                self.core.set_receiver(Some(words), self.start);
                self.link = Some(Link { participant, epoch, words, stalled: false });
                // It may have gone to sleep before it could see the session.
                shared.doorbell(participant).ring(self.words.word(tx::BELL), 0);
                return true;
            }
        }
        false
    }

    /// The epoch and receiving end of a participant that is attached and has the end open.
    fn offer(&self, shared: &Shared<'m, B>, participant: u16) -> Option<(u32, PeerWords<'m>)> {
        let epoch = shared.peer(participant)?.known.load(Ordering::SeqCst);
        let attached = epoch != 0 && shared.fate(participant, epoch) == Fate::Attached;
        let words = attached.then(|| shared.part_of(participant, epoch, Part::Rx(self.fifo)))??;
        (words.see(rx::OPEN, Site::SeeRoot) == 1).then_some((epoch, words))
    }

    fn receiver(&self) -> u16 {
        self.link.map_or(0, |link| link.participant)
    }

    fn set_bits(&mut self, bits: u32) {
        if bits & !self.bits == 0 {
            self.core.withdraw_wait(bits);
        } else {
            self.core.announce_wait(bits);
        }
        self.bits = bits;
    }
}

/// The sending end of a FIFO channel.
#[derive(Debug)]
pub struct SendingEnd<'m, B: Host> {
    shared: &'m Shared<'m, B>,
    record: &'m SendingRecord<'m, B>,
    one_thread: PhantomData<Cell<()>>,
}

impl<'m, B: Host> SendingEnd<'m, B> {
    /// Opens a record's end.
    pub(super) fn open(shared: &'m Shared<'m, B>, record: &'m SendingRecord<'m, B>) -> Result<Self, Error> {
        if record.handle.swap(1, Ordering::AcqRel) != 0 {
            return Err(Error::InUse);
        }
        shared.users.join();
        let end = SendingEnd { shared, record, one_thread: PhantomData };
        let mut state = end.latched();
        if !state.is_open {
            shared.claim(&state.words, Part::Tx(record.fifo), tx::OPEN)?;
            state.is_open = true;
        }
        drop(state);
        drop(end.state());
        shared.ring_all();
        Ok(end)
    }

    fn latched(&self) -> Guard<'m, SendingState<'m, B>> {
        self.record.state.lock(self.shared.host)
    }

    /// The state after a look at the receiver.
    fn state(&self) -> latch::Guard<'m, SendingState<'m, B>> {
        let mut state = self.latched();
        state.follow(self.shared);
        if state.link.is_none_or(|link| link.stalled) {
            self.shared.note_peers();
            state.follow(self.shared);
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
        wait(self.shared, deadline, look, |asleep| {
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
        drop(state);
        self.record.handle.store(0, Ordering::Release);
        if self.shared.users.leave() {
            self.shared.end();
        }
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
        self.latched().core.enqueue(loan, bytes, self.shared)
    }

    fn notify(&self) -> Notified {
        let mut state = self.state();
        let bell = self.shared.doorbell(state.receiver());
        state.core.notify(self.shared, &bell)
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
        if self.shared.host.can_be_woken() {
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
        let bell = self.shared.doorbell(state.receiver());
        state.core.set_filter(rule, &bell);
    }

    fn reset(&self) {
        let mut state = self.state();
        let bell = self.shared.doorbell(state.receiver());
        state.core.reset(&bell);
    }
}

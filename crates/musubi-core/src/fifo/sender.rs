//! The sending end of a FIFO channel: allocate, enqueue, notify.
//!
//! What you may rely on: no call waits. `allocate` takes at most [`super::REAP_MAX`] returned blocks back and is
//! otherwise constant; `enqueue`, `free` and `notify` are constant; `set_receiver` makes one pass over the blocks.
//!
//! How it works: see [`super`]. This end owns every word of the transmit end (layout: `tx`, `slot`) and reads the
//! receiver's returns (layout: `rx`), whose entries are claims: a block comes back only if it is out.

use core::fmt;
use core::marker::PhantomData;
use core::ops::{Deref, DerefMut};
use core::ptr::NonNull;

use super::pool::{Entry, Pool};
use super::{Cursor, REAP_MAX, Ring};
use crate::error::Error;
use crate::guarantee::{Filter, Filtering, Regulating, Regulator, Verdict};
use crate::layout::{Shape, rx, slot, tx};
use crate::plan::{Fifo, FilterRule};
use crate::port::{Clock, Coherence, Doorbell};
use crate::sync::{self, Site};
use crate::words::{OwnEnd, OwnWords, PeerEnd, PeerWords};

/// A block in the program's hands: exclusive memory of the channel's block size.
///
/// Give it back through [`Sender::enqueue`] or [`Sender::free`] of the end it came from. One that is dropped stays out
/// of the pool until the end is re-initialised; the interfaces above wrap it so that this does not happen.
#[must_use = "a block that is neither enqueued nor freed is lost to the channel"]
pub struct Loan<'m> {
    /// Not a reference: a loan that is passed to [`Sender::enqueue`] lives on there for a moment after the receiver may
    /// read the block, and a unique reference would forbid that reading.
    memory: NonNull<u8>,
    bytes: u32,
    block: u32,
    lifetime: PhantomData<&'m mut [u8]>,
}

// SAFETY: a loan is as exclusive as the `&mut [u8]` that it stands for.
unsafe impl Send for Loan<'_> {}
// SAFETY: as above; `&Loan` gives `&[u8]` only.
unsafe impl Sync for Loan<'_> {}

impl Loan<'_> {
    /// The block's number in its channel.
    pub fn block(&self) -> u32 {
        self.block
    }

    /// The same loan without a lifetime, for a table beside the end that it came from: how C holds blocks.
    ///
    /// # Safety
    /// The loan goes, and nothing reaches its bytes through it any more, before the end's memory does.
    pub unsafe fn unbound(self) -> Loan<'static> {
        Loan { memory: self.memory, bytes: self.bytes, block: self.block, lifetime: PhantomData }
    }
}

impl Deref for Loan<'_> {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        // SAFETY: the bytes lie inside the own section for 'm, and while the loan exists nobody else writes them.
        unsafe { core::slice::from_raw_parts(self.memory.as_ptr(), self.bytes as usize) }
    }
}

impl DerefMut for Loan<'_> {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `deref`; the pool marked the block held, so no other loan covers these bytes, and `&mut self`
        // keeps this one from giving a second slice.
        unsafe { core::slice::from_raw_parts_mut(self.memory.as_ptr(), self.bytes as usize) }
    }
}

impl fmt::Debug for Loan<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Loan").field("block", &self.block).field("bytes", &self.bytes).finish()
    }
}

/// Processor pauses before a look at the returns that follows one which found few.
const THIN_PAUSES: u32 = 16;

/// At one in this many sampled messages the depth of the queue is looked at, which costs the receiver a line.
const DEPTH_SAMPLES: u32 = 16;
/// How many blocks ahead of the present one are asked for.
const AHEAD: u32 = 4;

/// What became of a notification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notified {
    /// The receiver can see it; it was rung if it slept.
    Raised,
    /// The filter holds it back; it must be raised at this time at the latest ([`Sender::raise_if_due`]).
    Held {
        /// Nanoseconds of the clock that was passed in.
        latest_at_ns: u64,
    },
}

/// The sending end. `S` stores one [`Entry`] a block, `C` is the port's cache care; `F` and `R` are what it carries of the
/// guarantees ([`crate::guarantee::lean`]).
#[derive(Debug)]
pub struct Sender<'m, S, C, F = Filter, R = Regulator> {
    own: OwnEnd<'m, { tx::WORDS }>,
    receiver: Option<PeerEnd<'m, { rx::WORDS }>>,
    began: bool,
    shape: Shape,
    ring: Ring,
    participant: u16,
    epoch: u32,
    tail: Cursor,
    returns: Cursor,
    pool: Pool<S>,
    filter: F,
    regulator: R,
    sample_every: u32,
    until_sample: u32,
    samples: u32,
    /// Slot and turn of the last message, if no notification covers it yet.
    unflagged: Option<(u32, u32)>,
    last_bytes: u32,
    /// Whether the last look at the returns found few.
    thin: bool,
    events_seen: u32,
    event_pending: bool,
    dropped_seen: u32,
    coherence: C,
}

impl<'m, S: AsMut<[Entry]> + AsRef<[Entry]>, C: Coherence> Sender<'m, S, C> {
    /// The end of `fifo`, with filter and regulator; see [`Sender::carrying`].
    ///
    /// # Errors
    /// As there.
    pub fn new(own: OwnWords<'m>, fifo: &Fifo<'_>, me: (u16, u32), entries: S, coherence: C) -> Result<Self, Error> {
        Self::carrying(own, fifo, me, entries, coherence)
    }
}

impl<'m, S, C, R> Sender<'m, S, C, Filter, R>
where
    S: AsMut<[Entry]> + AsRef<[Entry]>,
    C: Coherence,
    R: Regulating,
{
    /// A held-back notification was raised at this time by the port's own timer ([`tx::EVENTS`]); it covers all before.
    pub fn note_raised(&mut self, at_ns: u64) {
        self.filter.raised(at_ns);
    }

    /// Raises a held-back notification whose time has come; gives whether it did.
    pub fn raise_if_due(&mut self, clock: &impl Clock, doorbell: &impl Doorbell) -> bool {
        let due = self.filter.due(clock.now_ns());
        if due {
            self.raise(doorbell);
        }
        due
    }

    /// Replaces the filter (`mdcom_filter_set`). A notification that the old one held back is raised.
    pub fn set_filter(&mut self, rule: FilterRule, doorbell: &impl Doorbell) {
        self.filter = Filter::new(rule);
        if self.unflagged.is_some() {
            self.raise(doorbell);
        }
    }
}

impl<'m, S, C, F, R> Sender<'m, S, C, F, R>
where
    S: AsMut<[Entry]> + AsRef<[Entry]>,
    C: Coherence,
    F: Filtering,
    R: Regulating,
{
    /// The end of `fifo` on fresh (zeroed) words of the own section. `entries` has one entry a block; `me` are our own
    /// participant number and epoch.
    ///
    /// # Errors
    /// [`Error::Plan`] if the words or the entries do not have the size that the plan gives, or the plan asks for a
    /// guarantee that this end does not carry.
    pub fn carrying(
        own: OwnWords<'m>,
        fifo: &Fifo<'_>,
        (participant, epoch): (u16, u32),
        entries: S,
        coherence: C,
    ) -> Result<Self, Error> {
        let shape = Shape::of(fifo).ok_or(Error::Plan)?;
        let fits = shape.tx_bytes().is_some_and(|bytes| own.len() >= bytes / 4);
        if !fits || entries.as_ref().len() != fifo.blocks as usize {
            return Err(Error::Plan);
        }
        let filter = F::of(fifo.filter).ok_or(Error::Plan)?;
        let regulator = R::of(fifo.regulation).ok_or(Error::Plan)?;
        let ring = Ring::new(fifo.blocks);
        Ok(Sender {
            own: OwnEnd::new(own),
            receiver: None,
            began: false,
            shape,
            ring,
            participant,
            epoch,
            tail: ring.cursor(0),
            returns: ring.cursor(0),
            pool: Pool::new(entries),
            filter,
            regulator,
            sample_every: fifo.sample_every,
            until_sample: 1,
            samples: 0,
            unflagged: None,
            last_bytes: 0,
            thin: false,
            events_seen: 0,
            event_pending: false,
            dropped_seen: 0,
            coherence,
        })
    }

    /// Bytes of a block.
    pub fn block_bytes(&self) -> u32 {
        self.shape.block_bytes
    }

    /// Number of blocks, and how many of them are in the pool as far as we have looked.
    pub fn blocks(&self) -> (u32, u32) {
        (self.pool.blocks(), self.pool.free())
    }

    /// Takes back every block that the receiver has returned, so that [`Sender::blocks`] is exact. One pass.
    pub fn collect(&mut self) {
        self.reap::<false>(self.ring.slots());
    }

    /// Blocks in the program's hands.
    pub fn held(&self) -> u32 {
        self.pool.held()
    }

    /// [`Sender::queued`] after a look whether the receiver has begun, else it would be counted from the start.
    fn queued_by_now(&mut self) -> u32 {
        self.began::<false>();
        self.queued()
    }

    /// Messages enqueued and not yet dequeued, by the receiver's own claim.
    pub fn queued(&self) -> u32 {
        let from = match self.receiver {
            Some(rx) if self.began => rx.fixed().get(rx::TAKEN),
            _ => self.own.fixed().get(tx::START),
        };
        if self.ring.contains(from) { self.ring.distance(from, self.tail.position).min(self.ring.slots()) } else { 0 }
    }

    /// Takes a block from the pool.
    ///
    /// # Errors
    /// [`Error::NoBlock`] if all are held or sent and none has come back.
    #[inline(always)]
    pub fn allocate(&mut self) -> Result<Loan<'m>, Error> {
        if self.pool.free() == 0 {
            self.prepare_reap();
        }
        let Some(block) = self.pool.take(self.slot_ahead()) else {
            self.own.fixed().count_one(tx::EXHAUSTED);
            self.note_depth();
            return Err(Error::NoBlock);
        };
        self.account();
        self.bring_near(block);
        let bytes = self.shape.block_bytes;
        let memory = self.own.all().bytes_at(self.shape.payload(block), bytes);
        let memory = NonNull::new(memory).ok_or(Error::Plan)?;
        Ok(Loan { memory, bytes, block, lifetime: PhantomData })
    }

    /// Asks for the lines that will be written; where several blocks are free, those of one some messages ahead too, so
    /// that a stream does not wait for each line in turn. Blocks that are not free are left alone: the receiver reads
    /// them.
    #[inline(always)]
    fn bring_near(&self, block: u32) {
        if !C::HINTS {
            return;
        }
        self.intend_write(block);
        if self.pool.free() > AHEAD {
            let ahead = block + AHEAD;
            self.intend_write(if ahead < self.ring.slots() { ahead } else { ahead % self.ring.slots() });
        }
    }

    /// Asks for a block's first line and, by the length of the last message, its last one.
    #[inline(always)]
    fn intend_write(&self, block: u32) {
        self.coherence.intend_write(self.own.all().address(self.shape.slot(block) * 4));
        if self.last_bytes > self.shape.first_line_bytes() {
            self.coherence.intend_write(self.own.all().address(self.shape.payload(block) + self.last_bytes - 1));
        }
    }

    /// Gives a block back unsent.
    ///
    /// # Errors
    /// The loan itself, if it is not of this end.
    pub fn free<'l>(&mut self, loan: Loan<'l>) -> Result<(), Loan<'l>> {
        if !self.is_lender(&loan) || !self.pool.put_back(loan.block) {
            return Err(loan);
        }
        self.account();
        Ok(())
    }

    /// Enqueues a block with `bytes` of payload. The receiver can dequeue it from now on; [`Sender::notify`] tells it.
    ///
    /// # Errors
    /// With the loan: [`Error::TooLong`], [`Error::Throttled`], or [`Error::NotHeld`] if it is not of this end.
    #[inline(always)]
    pub fn enqueue<'l>(&mut self, loan: Loan<'l>, bytes: u32, clock: &impl Clock) -> Result<(), (Error, Loan<'l>)> {
        if !self.is_lender(&loan) {
            return Err((Error::NotHeld, loan));
        }
        if bytes > self.shape.block_bytes {
            return Err((Error::TooLong, loan));
        }
        if !self.regulator.is_none()
            && let Err(retry_ns) = self.regulator.admit(clock.now_ns(), bytes)
        {
            self.own.fixed().count_one(tx::THROTTLED);
            return Err((Error::Throttled { retry_ns }, loan));
        }
        self.pool.send(loan.block, self.tail.position);
        self.account();
        self.announce(loan.block, bytes, clock);
        Ok(())
    }

    /// Puts an unused end at a later position, as if it had sent that many messages.
    #[cfg(all(test, not(loom)))]
    pub(super) fn jump_to(&mut self, position: u32) {
        self.tail = self.ring.cursor(position);
        self.own.fixed().set(tx::TAIL, position);
    }

    #[inline(always)]
    fn announce(&mut self, block: u32, bytes: u32, clock: &impl Clock) {
        if C::MANAGES_CACHES {
            let payload = self.own.all().bytes_at(self.shape.payload(block), self.shape.block_bytes);
            self.coherence.publish(payload, bytes);
        }
        let first = self.shape.slot(self.tail.index);
        let slot = self.own.all().part(first, slot::PAYLOAD);
        let stamp = self.stamp(clock);
        slot.set(slot::LEN, bytes);
        slot.set(slot::BLOCK, block | (self.epoch << 16));
        slot.set(slot::STAMP, stamp);
        let turn = self.tail.turn();
        self.tail = self.tail.next(self.ring);
        // Before the announcement: who learns how far a dead receiver got must find a tail that is not behind it.
        self.own.fixed().set(tx::TAIL, self.tail.position);
        slot.publish(slot::TURN, turn, Site::PublishTurn);
        if C::MANAGES_CACHES {
            let bytes = slot.len() * 4;
            self.coherence.publish(slot.bytes_at(0, bytes), bytes);
        }
        self.unflagged = Some((first, turn));
        self.last_bytes = bytes;
        self.own.fixed().count(tx::SENT, tx::SENT_HIGH, 1);
        self.own.fixed().count(tx::BYTES, tx::BYTES_HIGH, bytes);
    }

    /// Asks that the receiver be told. The filter decides when.
    #[inline(always)]
    pub fn notify(&mut self, clock: &impl Clock, doorbell: &impl Doorbell) -> Notified {
        if !self.filter.is_each() {
            // A receiver that has begun meanwhile says how far it is; without a look we would count from the start.
            let queued = if self.filter.counts_queued() { self.queued_by_now() } else { 0 };
            if let Verdict::Hold { latest_at_ns } = self.filter.offer(clock.now_ns(), queued) {
                self.own.fixed().count_one(tx::SUPPRESSED);
                return Notified::Held { latest_at_ns };
            }
        }
        self.raise(doorbell);
        Notified::Raised
    }

    #[inline(always)]
    fn raise(&mut self, doorbell: &impl Doorbell) {
        self.own.fixed().count_one(tx::RAISED);
        match self.unflagged.take() {
            Some((slot, turn)) => {
                self.own.all().publish_polled_then_look(slot + slot::TURN, turn | 1, Site::RaiseThenLook);
                if C::MANAGES_CACHES {
                    self.coherence.publish(self.own.all().bytes_at(slot * 4, 4), 4);
                }
            }
            None => self.own.fixed().advance_then_look(tx::EVENTS, Site::RaiseThenLook),
        }
        self.ring_if_waiting(doorbell);
    }

    /// Rings if the receiver sleeps. A port calls it again when it learned of a receiver after a notification.
    #[inline(always)]
    pub fn ring_if_waiting(&self, doorbell: &impl Doorbell) {
        if let Some(rx) = self.receiver {
            let waiting = rx.fixed().look(rx::WAITING);
            if waiting != 0 {
                doorbell.ring(self.own.fixed().word(tx::BELL), waiting);
            }
        }
    }

    /// Re-initialises the channel from this end (`mdcom_fifo_init`): queued messages are void and come back as the
    /// receiver passes them. Loans stay valid.
    pub fn reset(&mut self, doorbell: &impl Doorbell) {
        self.own.fixed().set(tx::SKIP, self.tail.position + 1);
        self.unflagged = None;
        self.raise(doorbell);
        self.account();
    }

    /// The receiver has changed: the former one is gone, and `receiver` (if any) begins at `start`. Blocks that were
    /// on the way to the former one before `start` come back. Gives how many of them it had held in its hands.
    pub fn set_receiver(&mut self, receiver: Option<PeerWords<'m>>, start: u32) -> u32 {
        self.reap::<false>(self.ring.slots());
        let (ring, tail) = (self.ring, self.tail.position);
        let queued = ring.distance(start, tail);
        let reclaimed = self.pool.reclaim(|position| ring.distance(position, tail) > queued);
        let dropped = self.own.fixed().get(tx::DROPPED);
        let abandoned = reclaimed.saturating_sub(dropped.wrapping_sub(self.dropped_seen));
        self.dropped_seen = dropped;
        self.own.fixed().set(tx::ABANDONED, self.own.fixed().get(tx::ABANDONED).wrapping_add(abandoned));
        self.receiver = receiver.map(PeerEnd::new);
        self.began = false;
        self.returns = ring.cursor(0);
        self.say_reaped();
        self.events_seen = 0;
        abandoned
    }

    /// Says which returns were taken back, to an observer: one that copies something of what is written into these blocks
    /// from now on finds it said, or the session changed.
    fn say_reaped(&self) {
        self.own.fixed().publish(tx::REAPED, self.returns.position + 1, Site::PublishReuse);
        sync::release_fence(Site::PublishReuse);
    }

    /// Whether an allocation would succeed now, or the receiver raised an event that was not taken.
    #[inline(always)]
    pub fn poll(&mut self) -> SenderReady {
        self.poll_with::<false>()
    }

    /// Announces that a thread is about to sleep on [`Sender::bell`] (or to be called), then looks once more.
    /// Read the bell's value before.
    /// `bits` are all of [`crate::layout::waiting`] that hold from now on.
    pub fn announce_wait(&mut self, bits: u32) -> SenderReady {
        self.own.fixed().publish_then_look(tx::WAITING, bits, Site::SleepThenLook);
        self.poll_with::<true>()
    }

    /// Takes announcements back; `bits` are those that still hold.
    pub fn withdraw_wait(&mut self, bits: u32) {
        self.own.fixed().set(tx::WAITING, bits);
    }

    /// The word in the receiver's section that changes when it rings; `None` without a receiver.
    pub fn bell(&self) -> Option<PeerWords<'m>> {
        self.receiver.map(|rx| rx.fixed().part(rx::BELL, 1))
    }

    fn poll_with<const LOOK: bool>(&mut self) -> SenderReady {
        if self.pool.free() == 0 {
            self.reap::<LOOK>(REAP_MAX);
        }
        let began = self.began::<LOOK>();
        let events =
            self.receiver.filter(|_| began).map_or(self.events_seen, |rx| load::<LOOK>(rx.fixed(), rx::EVENTS));
        self.event_pending |= events != self.events_seen;
        self.events_seen = events;
        SenderReady { block: self.pool.free() > 0, event: self.event_pending }
    }

    /// Takes the receiver's event, if there was one since it was last taken.
    pub fn take_event(&mut self) -> bool {
        core::mem::take(&mut self.event_pending)
    }

    /// Takes returned blocks back when the pool is empty.
    ///
    /// Where the receiver is what bounds a stream, every look takes the line of the returns out of its hands; so after
    /// a look that found few, a short pause lets more gather.
    fn prepare_reap(&mut self) {
        if self.thin {
            for _ in 0..THIN_PAUSES {
                core::hint::spin_loop();
            }
        }
        self.reap::<false>(REAP_MAX);
        self.thin = self.pool.free() < REAP_MAX / 2 && self.pool.free() < self.pool.blocks() / 4;
    }

    /// Takes at most `most` returned blocks back into the pool.
    fn reap<const LOOK: bool>(&mut self, most: u32) {
        let Some(rx) = self.receiver else { return };
        if !self.began::<LOOK>() {
            return;
        }
        let first = self.returns;
        for _ in 0..most {
            let Some(block) = self.returns.returned_by(load::<LOOK>(rx.all(), rx::WORDS + self.returns.index)) else {
                break;
            };
            self.returns = self.returns.next(self.ring);
            if !self.pool.returned(block) {
                self.own.fixed().advance(tx::REFUSED, 1);
            }
        }
        if self.returns != first {
            self.say_reaped();
        }
    }

    /// Whether the receiver has begun its session with us, so that its returns are meant for us.
    #[inline(always)]
    fn began<const LOOK: bool>(&mut self) -> bool {
        if !self.began
            && let Some(rx) = self.receiver
        {
            let epoch =
                if LOOK { rx.fixed().look(rx::LINK_EPOCH) } else { rx.fixed().see(rx::LINK_EPOCH, Site::SeeBegin) };
            self.began = epoch == self.epoch && rx.fixed().get(rx::LINK_PARTICIPANT) == u32::from(self.participant);
        }
        self.began
    }

    /// The slot that the next block will probably be announced in: as many ahead of the tail as are held.
    #[inline(always)]
    fn slot_ahead(&self) -> u32 {
        let index = self.tail.index + self.pool.held();
        if index < self.ring.slots() { index } else { index - self.ring.slots() }
    }

    /// Says how many blocks are in the program's hands.
    #[inline(always)]
    fn account(&self) {
        self.own.fixed().set(tx::HELD, self.pool.held());
    }

    fn note_depth(&mut self) {
        let queued = self.queued_by_now();
        if queued > self.own.fixed().get(tx::HIGH_WATER) {
            self.own.fixed().set(tx::HIGH_WATER, queued);
        }
    }

    /// Whether the loan came from this end and is still out.
    #[inline(always)]
    fn is_lender(&self, loan: &Loan<'_>) -> bool {
        loan.block < self.ring.slots()
            && core::ptr::eq(self.own.all().address(self.shape.payload(loan.block)), loan.memory.as_ptr())
            && self.pool.is_held(loan.block)
    }

    /// The send time for every [`Fifo::sample_every`]-th message, else 0.
    #[inline(always)]
    fn stamp(&mut self, clock: &impl Clock) -> u32 {
        if self.sample_every == 0 {
            return 0;
        }
        self.until_sample -= 1;
        if self.until_sample > 0 {
            return 0;
        }
        self.until_sample = self.sample_every;
        self.samples = self.samples.wrapping_add(1);
        if self.samples.is_multiple_of(DEPTH_SAMPLES) {
            self.note_depth();
        }
        (clock.now_ns() as u32).max(1)
    }
}

/// A receiver's word, plainly or as the look after an announcement.
#[inline(always)]
fn load<const LOOK: bool>(rx: PeerWords<'_>, index: u32) -> u32 {
    if LOOK { rx.look(index) } else { rx.see(index, Site::SeeReturn) }
}

/// What a sender can go on with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SenderReady {
    /// A block is free.
    pub block: bool,
    /// The receiver raised an event that was not taken yet ([`Sender::take_event`]).
    pub event: bool,
}

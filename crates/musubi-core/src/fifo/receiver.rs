//! The receiving end of a FIFO channel, for one incarnation of its sender: wait condition, dequeue, read, free.
//!
//! What you may rely on: no call waits. `dequeue` and `free` are constant, `ready` looks at no more slots than the
//! channel has blocks; `begin` clears the returns once a session. Everything read from the sender is a claim: an index
//! outside the channel, a length above the block size, a block that we hold already or another incarnation's mark is
//! refused, counted and skipped, so a hostile sender harms nothing but its own channel.
//!
//! How it works: see [`super`]. A notification is a bit in the turn word of the last message that it covers; the
//! receiver looks ahead from the next message to the first slot that is not announced. `ready` is a level, not an
//! edge: it holds as long as a notified message has not been dequeued, so waiting once a message and draining after
//! each wait are both right. Notifications without a message are counted in the sender's `EVENTS`.
//!
//! What it does not do: follow the sender through a restart. A port keeps one receiver an incarnation, drains the
//! dead one's ([`Receiver::retire`]) and goes on with the successor's.

use super::{Cursor, Ring};
use crate::error::Error;
use crate::histogram;
use crate::layout::{Shape, rx, slot, tx};
use crate::plan::{Fifo, Trust};
use crate::port::{Clock, Coherence, Doorbell};
use crate::sync::Site;
use crate::words::{OwnEnd, OwnWords, PeerEnd, PeerWords};

/// From how many messages in a row on we call it a stream.
const STREAM_MIN: u32 = 4;
/// How many messages ahead a stream's lines are asked for.
const AHEAD: u32 = 4;

/// Where clocks are estimated, the receiver's may be behind the sender's by up to this, in nanoseconds.
const BEHIND_NS_MAX: u32 = 1 << 27;

/// The time that a message took. On clocks that differ a little it may come out negative, which counts as 0.
fn latency_ns(now_ns: u32, stamp: u32) -> u32 {
    let latency_ns = now_ns.wrapping_sub(stamp);
    if latency_ns > u32::MAX - BEHIND_NS_MAX { 0 } else { latency_ns }
}

/// A received block in the program's hands. Its bytes are the sender's claim and may change under a hostile one, so
/// they are copied out; give it back through [`Receiver::free`].
#[must_use = "a received block that is not freed is lost to the sender"]
#[derive(Debug)]
pub struct Received<'m> {
    payload: PeerWords<'m>,
    first_byte: u32,
    bytes: u32,
    block: u32,
    trusted: bool,
}

impl<'m> Received<'m> {
    /// The same message without a lifetime, for a table beside the end that it came from: how C holds blocks.
    ///
    /// # Safety
    /// The message goes, and nothing reaches its bytes through it any more, before the end's memory does.
    pub unsafe fn unbound(self) -> Received<'static> {
        // SAFETY: the caller's promise.
        let payload = unsafe { self.payload.unbound() };
        Received { payload, first_byte: self.first_byte, bytes: self.bytes, block: self.block, trusted: self.trusted }
    }

    /// Payload bytes of the message.
    pub fn len(&self) -> u32 {
        self.bytes
    }

    /// Whether the message has no payload.
    pub fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// The block's number in its channel.
    pub fn block(&self) -> u32 {
        self.block
    }

    /// Copies payload bytes from `offset` on; gives how many there were, at most `into.len()`.
    #[inline(always)]
    pub fn copy_to(&self, offset: u32, into: &mut [u8]) -> usize {
        let left = self.bytes.saturating_sub(offset) as usize;
        let count = left.min(into.len());
        self.payload.copy_bytes(self.first_byte + offset.min(self.bytes), &mut into[..count]);
        count
    }

    /// Address of the payload, for C and for DMA. Reading it is reading another's memory: once, and with care.
    pub fn address(&self) -> *const u8 {
        self.payload.bytes_at(self.first_byte, self.bytes)
    }

    /// The payload in place, if the plan declares the sender's domain [`Trust::Trusted`]: it promises not to write a
    /// block that it has sent.
    pub fn trusted_bytes(&self) -> Option<&'m [u8]> {
        let address = self.address();
        // SAFETY: `bytes_at` checked that the bytes lie inside the view, valid for 'm; the plan's author vouches by
        // `trusted` that the sender does not write them while we hold the block.
        self.trusted.then(|| unsafe { core::slice::from_raw_parts(address, self.bytes as usize) })
    }
}

/// The receiving end towards one incarnation of the sender. `S` stores one bit a block, `C` is the port's cache care.
#[derive(Debug)]
pub struct Receiver<'m, S, C> {
    own: OwnEnd<'m, { rx::WORDS }>,
    tx: PeerEnd<'m, { tx::WORDS }>,
    shape: Shape,
    ring: Ring,
    participant: u16,
    epoch: u32,
    sender: (u16, u32),
    trusted: bool,
    budget_ns: u32,
    stage: Stage,
    head: Cursor,
    scan: Cursor,
    notified: u32,
    returns: Cursor,
    held: S,
    held_count: u32,
    last_bytes: u32,
    /// Messages dequeued since the last look that found none.
    run: u32,
    events_seen: u32,
    event_pending: bool,
    skip_seen: u32,
    coherence: C,
}

/// Where the session with this incarnation stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// The sender has not opened the session for us yet.
    Waiting,
    /// Messages flow and blocks go back.
    Open,
    /// The sender is gone; what it had committed is drained and nothing goes back.
    Retired,
}

impl<'m, S: AsMut<[u32]> + AsRef<[u32]>, C: Coherence> Receiver<'m, S, C> {
    /// Number of words that `held` must have for a channel of this many blocks.
    pub const fn held_words(blocks: u32) -> usize {
        blocks.div_ceil(32) as usize
    }

    /// The end of `fifo` towards the sender whose transmit end is `tx`. `me` and `sender` are participant and epoch,
    /// `trust` the plan's word on the sending domain, `held` zeroed storage of [`Receiver::held_words`] words.
    ///
    /// # Errors
    /// [`Error::Plan`] if a view or the storage does not have the size that the plan gives.
    #[allow(clippy::too_many_arguments, reason = "one constructor, called by ports only; each part is of another kind")]
    pub fn new(
        own: OwnWords<'m>,
        tx: PeerWords<'m>,
        fifo: &Fifo<'_>,
        me: (u16, u32),
        sender: (u16, u32),
        trust: Trust,
        held: S,
        coherence: C,
    ) -> Result<Self, Error> {
        let shape = Shape::of(fifo).ok_or(Error::Plan)?;
        let own_fits = shape.rx_bytes().is_some_and(|bytes| own.len() >= bytes / 4);
        let tx_fits = shape.tx_bytes().is_some_and(|bytes| tx.len() >= bytes / 4);
        if !own_fits || !tx_fits || held.as_ref().len() < Self::held_words(fifo.blocks) {
            return Err(Error::Plan);
        }
        let ring = Ring::new(fifo.blocks);
        let start = ring.cursor(0);
        Ok(Receiver {
            own: OwnEnd::new(own),
            tx: PeerEnd::new(tx),
            shape,
            ring,
            participant: me.0,
            epoch: me.1,
            sender,
            trusted: trust == Trust::Trusted,
            budget_ns: fifo.budget_ns,
            stage: Stage::Waiting,
            head: start,
            scan: start,
            notified: start.position,
            returns: start,
            held,
            held_count: 0,
            last_bytes: 0,
            run: 0,
            events_seen: 0,
            event_pending: false,
            skip_seen: 0,
            coherence,
        })
    }

    /// Ends the receiver and gives its storage back.
    pub fn into_held(self) -> S {
        self.held
    }

    /// The sender's participant number and epoch.
    pub fn sender(&self) -> (u16, u32) {
        self.sender
    }

    /// Whether the sender has opened the session for us.
    pub fn is_open(&self) -> bool {
        self.stage == Stage::Open
    }

    /// Blocks in the program's hands.
    pub fn held(&self) -> u32 {
        self.held_count
    }

    /// Messages announced from the head on, counted up to the number of blocks.
    pub fn queued(&self) -> u32 {
        let mut cursor = self.head;
        let mut count = 0;
        while count < self.ring.slots() && cursor.announced_by(self.turn(cursor)) {
            cursor = cursor.next(self.ring);
            count += 1;
        }
        count
    }

    /// Begins the session if the sender has opened it for us; gives whether it is open.
    pub fn begin(&mut self) -> bool {
        if self.stage == Stage::Waiting && self.linked_to_us() {
            let start = self.tx.fixed().get(tx::START);
            self.start_at(start);
            for entry in 0..self.ring.slots() {
                self.own.all().set(rx::WORDS + entry, 0);
            }
            // Events that we raised for a former sender are not for this one.
            self.own.fixed().set(rx::EVENTS, 0);
            self.own.fixed().set(rx::LINK_PARTICIPANT, u32::from(self.sender.0));
            self.own.fixed().publish(rx::LINK_EPOCH, self.sender.1, Site::PublishBegin);
            self.stage = Stage::Open;
        }
        self.stage == Stage::Open
    }

    fn linked_to_us(&self) -> bool {
        self.tx.fixed().see(tx::LINK_EPOCH, Site::SeeLink) == self.epoch
            && self.tx.fixed().get(tx::LINK_PARTICIPANT) == u32::from(self.participant)
    }

    fn start_at(&mut self, claimed: u32) {
        let start = if self.ring.contains(claimed) { claimed } else { 0 };
        self.head = self.ring.cursor(start);
        self.scan = self.head;
        self.notified = start;
        self.own.fixed().set(rx::TAKEN, start);
    }

    /// Puts an end without messages at a later position.
    #[cfg(all(test, not(loom)))]
    pub(super) fn jump_to(&mut self, position: u32) {
        self.start_at(position);
    }

    /// The sender is gone. Its committed messages can still be dequeued; blocks that are freed go nowhere. Gives
    /// whether anything can be known about them: not so if it died between two receivers, before it could say where
    /// the second one begins.
    pub fn retire(&mut self) -> bool {
        if self.stage == Stage::Waiting {
            let nobody = self.tx.fixed().see(tx::LINK_EPOCH, Site::SeeLink) == 0;
            if !nobody && !self.linked_to_us() {
                self.stage = Stage::Retired;
                return false;
            }
            self.start_at(self.tx.fixed().get(tx::START));
        }
        self.stage = Stage::Retired;
        // What it enqueued but had no time to notify is due now.
        self.notified = self.announced_end().position;
        true
    }

    /// Whether a retired sender's messages have all been dequeued.
    pub fn is_drained(&self) -> bool {
        self.stage == Stage::Retired && self.head.position == self.notified
    }

    /// Whether a wait has something to return for.
    #[inline(always)]
    pub fn ready(&mut self) -> bool {
        self.ready_with::<false>()
    }

    /// Announces that a thread is about to sleep on [`Receiver::bell`] (or to be called), then looks once more.
    /// Read the bell's value before.
    /// `bits` are all of [`crate::layout::waiting`] that hold from now on.
    pub fn announce_wait(&mut self, bits: u32) -> bool {
        self.own.fixed().publish_then_look(rx::WAITING, bits, Site::SleepThenLook);
        self.ready_with::<true>()
    }

    /// Takes announcements back; `bits` are those that still hold.
    pub fn withdraw_wait(&mut self, bits: u32) {
        self.own.fixed().set(rx::WAITING, bits);
    }

    /// Counts a wait that went to sleep.
    pub fn note_sleep(&mut self) {
        self.own.fixed().count_one(rx::SLEPT);
    }

    /// The word in the sender's section that changes when it rings.
    pub fn bell(&self) -> PeerWords<'m> {
        self.tx.fixed().part(tx::BELL, 1)
    }

    #[inline(always)]
    fn ready_with<const LOOK: bool>(&mut self) -> bool {
        if self.notified != self.head.position || self.event_pending {
            return true;
        }
        if self.stage == Stage::Waiting && !self.begin() {
            return false;
        }
        self.look_ahead::<LOOK>() || self.see_event::<LOOK>()
    }

    /// Looks from where the last look ended to the first message that a notification covers.
    #[inline(always)]
    fn look_ahead<const LOOK: bool>(&mut self) -> bool {
        while self.ring.distance(self.head.position, self.scan.position) < self.ring.slots() {
            let turn = self.load_turn::<LOOK>(self.scan);
            if !self.scan.announced_by(turn) {
                self.bring_near(self.scan.index);
                break;
            }
            self.scan = self.scan.next(self.ring);
            if turn & 1 != 0 {
                self.notified = self.scan.position;
                return true;
            }
        }
        self.scan != self.head && self.flagged_late::<LOOK>()
    }

    /// While waiting for a message that will probably use its slot's own block and be as long as the last one: asks for
    /// the last line of its payload, so that it comes over beside the announcement and not after it.
    #[inline(always)]
    fn bring_near(&self, index: u32) {
        if C::HINTS && self.last_bytes > self.shape.first_line_bytes() {
            self.coherence.intend_read(self.tx.all().address(self.shape.payload(index) + self.last_bytes - 1));
        }
    }

    /// In a stream: asks for the lines of a message some places ahead, which is probably announced already.
    #[inline(always)]
    fn bring_stream_near(&self) {
        if !C::HINTS {
            return;
        }
        let ahead = self.head.index + AHEAD;
        let ahead = if ahead < self.ring.slots() { ahead } else { ahead % self.ring.slots() };
        self.coherence.intend_read(self.tx.all().address(self.shape.slot(ahead) * 4));
        self.bring_near(ahead);
    }

    /// Whether the queue has just run empty after a stream of messages. Then a short pause before the next look lets
    /// several gather; looking at once would take the line from the sender's hands for every single one.
    pub fn stream_ran_dry(&mut self) -> bool {
        core::mem::take(&mut self.run) >= STREAM_MIN
    }

    /// Whether the last message that was seen without a notification has got one since.
    fn flagged_late<const LOOK: bool>(&mut self) -> bool {
        let last = self.ring.cursor(match self.scan.position {
            0 => self.ring.last(),
            position => position - 1,
        });
        let flagged = self.load_turn::<LOOK>(last) == last.turn() | 1;
        if flagged {
            self.notified = self.scan.position;
        }
        flagged
    }

    /// Takes note of notifications without a message; they cover whatever is announced by now.
    #[inline(always)]
    fn see_event<const LOOK: bool>(&mut self) -> bool {
        let events =
            if LOOK { self.tx.fixed().look(tx::EVENTS) } else { self.tx.fixed().see(tx::EVENTS, Site::SeeTurn) };
        if events == self.events_seen || self.stage != Stage::Open {
            return false;
        }
        self.events_seen = events;
        self.notified = self.announced_end().position;
        self.event_pending = self.notified == self.head.position;
        true
    }

    /// Takes the event without a message, if there was one; a wait that returns takes it.
    pub fn take_event(&mut self) -> bool {
        core::mem::take(&mut self.event_pending)
    }

    fn announced_end(&self) -> Cursor {
        let mut end = self.head;
        for _ in 0..self.ring.slots() {
            if !end.announced_by(self.turn(end)) {
                break;
            }
            end = end.next(self.ring);
        }
        end
    }

    #[inline(always)]
    fn load_turn<const LOOK: bool>(&self, at: Cursor) -> u32 {
        let word = self.shape.slot(at.index) + slot::TURN;
        if LOOK { self.tx.all().look(word) } else { self.tx.all().see(word, Site::SeeTurn) }
    }

    fn turn(&self, at: Cursor) -> u32 {
        self.load_turn::<false>(at)
    }

    /// Takes the next message. From here on it counts as delivered.
    ///
    /// # Errors
    /// [`Error::Empty`]; [`Error::PeerFault`] if the sender's announcement cannot be, which is skipped and counted.
    #[inline(always)]
    pub fn dequeue(&mut self, clock: &impl Clock, doorbell: &impl Doorbell) -> Result<Received<'m>, Error> {
        if self.stage == Stage::Waiting && !self.begin() {
            return Err(Error::Empty);
        }
        // At most as many messages are void as the channel has blocks; one more look finds the first that is not.
        for _ in 0..=self.ring.slots() {
            let void = self.is_void();
            let taken = self.take(clock)?;
            if !void {
                return Ok(taken);
            }
            self.pass_over(&taken, doorbell);
        }
        Err(Error::Empty)
    }

    #[cold]
    fn pass_over(&mut self, void: &Received<'m>, doorbell: &impl Doorbell) {
        self.give_back(void.block, doorbell);
    }

    #[inline(always)]
    fn take(&mut self, clock: &impl Clock) -> Result<Received<'m>, Error> {
        if !self.head.announced_by(self.turn(self.head)) {
            return Err(Error::Empty);
        }
        let slot = self.tx.all().part(self.shape.slot(self.head.index), slot::PAYLOAD);
        if C::MANAGES_CACHES {
            let bytes = slot.len() * 4;
            self.coherence.acquire(slot.bytes_at(0, bytes), bytes);
        }
        let (bytes, mark, stamp) = (slot.get(slot::LEN), slot.get(slot::BLOCK), slot.get(slot::STAMP));
        self.pass_head();
        let (block, epoch) = (mark & 0xffff, mark >> 16);
        let possible = block < self.ring.slots()
            && bytes <= self.shape.block_bytes
            && epoch == self.sender.1 & 0xffff
            && !self.is_held(block);
        if !possible {
            self.own.fixed().count_one(rx::REFUSED);
            return Err(Error::PeerFault);
        }
        self.mark_held(block, true);
        self.last_bytes = bytes;
        self.run = self.run.saturating_add(1);
        if self.run >= STREAM_MIN {
            self.bring_stream_near();
        }
        self.own.fixed().count(rx::RECEIVED, rx::RECEIVED_HIGH, 1);
        self.own.fixed().count(rx::BYTES, rx::BYTES_HIGH, bytes);
        if stamp != 0 {
            self.record_latency(latency_ns(clock.now_ns() as u32, stamp));
        }
        let first_byte = self.shape.payload(block);
        if C::MANAGES_CACHES {
            self.coherence.acquire(self.tx.all().bytes_at(first_byte, bytes), bytes);
        }
        Ok(Received { payload: self.tx.all(), first_byte, bytes, block, trusted: self.trusted })
    }

    #[inline(always)]
    fn pass_head(&mut self) {
        let (passed, next) = (self.head.position, self.head.next(self.ring));
        self.head = next;
        if self.scan.position == passed {
            self.scan = next;
        }
        if self.notified == passed {
            self.notified = next.position;
        }
        self.own.fixed().publish(rx::TAKEN, next.position, Site::PublishReturn);
    }

    /// Whether the message at the head lies before a re-initialisation by the sender.
    #[inline(always)]
    fn is_void(&mut self) -> bool {
        let skip = self.tx.fixed().see(tx::SKIP, Site::SeeTurn);
        skip != self.skip_seen && self.lies_before(skip)
    }

    #[cold]
    fn lies_before(&mut self, skip: u32) -> bool {
        let until = skip.wrapping_sub(1);
        let ahead = if self.ring.contains(until) { self.ring.distance(self.head.position, until) } else { 0 };
        if ahead == 0 || ahead > self.ring.slots() {
            self.skip_seen = skip;
            return false;
        }
        true
    }

    /// Gives a block back to the sender and wakes it if it waits for one.
    ///
    /// # Errors
    /// The block itself, if it is not of this end.
    #[inline]
    pub fn free<'r>(&mut self, received: Received<'r>, doorbell: &impl Doorbell) -> Result<(), Received<'r>> {
        let ours = core::ptr::eq(received.payload.address(0), self.tx.all().address(0));
        if !ours || !self.is_held(received.block) {
            return Err(received);
        }
        self.give_back(received.block, doorbell);
        Ok(())
    }

    /// Gives every block back that the program holds, without a look at what is queued. Gives how many there were.
    pub fn give_back_all(&mut self, doorbell: &impl Doorbell) -> u32 {
        let before = self.held_count;
        for block in 0..self.ring.slots() {
            if self.is_held(block) {
                self.give_back(block, doorbell);
            }
        }
        before
    }

    #[inline(always)]
    fn give_back(&mut self, block: u32, doorbell: &impl Doorbell) {
        self.mark_held(block, false);
        if self.stage == Stage::Open {
            let entry = self.returns.return_entry(block);
            self.own.all().publish_return(rx::WORDS + self.returns.index, entry);
            self.returns = self.returns.next(self.ring);
            self.ring_if_waiting(doorbell);
        }
    }

    /// Tells the sender (seed 000, figure 4: the receiver notifies that it is done).
    pub fn notify(&mut self, doorbell: &impl Doorbell) {
        self.own.fixed().advance_then_look(rx::EVENTS, Site::RaiseThenLook);
        self.ring_if_waiting(doorbell);
    }

    /// Rings if the sender sleeps.
    #[inline(always)]
    pub fn ring_if_waiting(&self, doorbell: &impl Doorbell) {
        let waiting = self.tx.fixed().look(tx::WAITING);
        if waiting != 0 {
            doorbell.ring(self.own.fixed().word(rx::BELL), waiting);
        }
    }

    /// Re-initialises the channel from this end (`mdcom_fifo_init`): what is held and queued goes back unread. Gives
    /// how many blocks went back.
    pub fn reset(&mut self, clock: &impl Clock, doorbell: &impl Doorbell) -> u32 {
        let mut count = self.give_back_all(doorbell);
        for _ in 0..self.ring.slots() {
            match self.dequeue(clock, doorbell) {
                Ok(received) => count += u32::from(self.free(received, doorbell).is_ok()),
                Err(Error::PeerFault) => {}
                Err(_) => break,
            }
        }
        count
    }

    fn record_latency(&mut self, latency_ns: u32) {
        let bucket = rx::HISTOGRAM + histogram::FIRST_BUCKET + histogram::bucket(latency_ns);
        self.own.fixed().count_one(bucket);
        self.own.fixed().count_one(rx::HISTOGRAM + histogram::COUNT);
        if latency_ns > self.own.fixed().get(rx::HISTOGRAM + histogram::MAX) {
            self.own.fixed().set(rx::HISTOGRAM + histogram::MAX, latency_ns);
        }
        if self.budget_ns != 0 && latency_ns > self.budget_ns {
            self.own.fixed().count_one(rx::OVER_BUDGET);
        }
    }

    #[inline(always)]
    fn is_held(&self, block: u32) -> bool {
        let word = self.held.as_ref().get(block as usize / 32).copied().unwrap_or(0);
        word >> (block % 32) & 1 != 0
    }

    #[inline(always)]
    fn mark_held(&mut self, block: u32, held: bool) {
        let word = &mut self.held.as_mut()[block as usize / 32];
        *word = (*word & !(1 << (block % 32))) | (u32::from(held) << (block % 32));
        self.held_count = if held { self.held_count + 1 } else { self.held_count - 1 };
        self.own.fixed().set(rx::HELD, self.held_count);
    }
}

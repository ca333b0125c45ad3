//! An observer's place in the messages of one incarnation of a sender: copies them from outside, without a store.
//!
//! What you may rely on: a message that [`Tap::look`] gives is *certain*: its position, length and bytes are what the sender
//! announced, not what a later use of the block has left there. Every other message that has gone by is counted
//! ([`Tap::unseen`]), so what was given and what was counted are together what has passed. A look takes a number of steps
//! that the plan bounds, writes nothing and rings nobody. All of this as far as both ends keep the protocol: one that does
//! not can tell an observer stories, but have it read no other memory.
//!
//! How it works: a sequence lock whose count is how far the receiver has got. A look reads the announcement, copies the
//! block, and then, behind an acquire fence, looks whether the sender may have had the block back by then. It had not if
//! - the session is still the same one: the link's epoch and the position where it began (`START`) have not changed. A
//!   block that came back because a receiver had gone lies before the next session's `START`, and `START` is written before;
//! - and there is no receiver, or it has not begun with this sender, so that nothing can have been returned; or the part of
//!   its returns that the sender has taken back (`REAPED`) has no entry for the block. Only entries since a *base* count: a
//!   frontier of the ring that was read before `TAKEN` was seen to be no farther than the message. As a receiver writes
//!   `TAKEN` before it can return a message, no entry before the base is this message's. One behind it may still be of an
//!   earlier use of the block; then the message is counted as unseen, though it may have been right. The beginning of a
//!   session that we saw begin is a base, too.
//!
//! A sender takes blocks back only when it has run out of others, so a message stays certain for a while after its receiver
//! has returned it: in a slow stream long enough for an observer that looks now and then.
//!
//! Why the second look cannot miss what spoilt the copy: the sender writes into a block again only after it has read the
//! return (`SeeReturn`) and said so in `REAPED`, or closed the session, and it puts a release fence (`PublishReuse`) behind
//! that. If one word of the copy is of that writing, the fence here (`SeeReuse`) makes visible all that the sender had seen
//! and said by then: the entry, `REAPED`, or the change of the session. `REAPED` begins anew with a session; it is read
//! before the session's words (`SeeReuse`, too), so that a value of another session shows as that. The announcement's own
//! words are written anew one lap later only, when every block has come back, so the same look speaks for them. Where
//! another thread of the sender writes the block than the one that took it back, this rests on hardware on which a store
//! that one core has seen is seen by all (x86-64, Armv8-A, RISC-V), as every target is on which a process can be an
//! observer. `fifo/tests/observing_models.rs` models both ways of coming back.
//!
//! What it does not do: find the sections, follow a sender into its next incarnation, or care for caches. It compares
//! positions the shorter way round, so less than 2^28 messages may pass between two looks.

use super::{Cursor, Ring};
use crate::error::Error;
use crate::layout::{Shape, rx, slot, tx};
use crate::plan::Fifo;
use crate::sync::{self, Site};
use crate::words::PeerWords;

/// Where an observer is. It holds no memory; whoever has mapped the sections passes them to each look.
#[derive(Debug)]
pub struct Tap {
    shape: Shape,
    ring: Ring,
    sender: (u16, u32),
    /// The sender before it, if it is known.
    former: Option<(u16, u32)>,
    next: Cursor,
    session: Session,
    /// What has passed before we came is still to be left out.
    is_late: bool,
    /// Nothing had been returned in this session when we looked at it first.
    is_fresh: bool,
    base: Option<Base>,
    unseen: u64,
}

/// What one look found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Look {
    /// A message, certain; its bytes are copied.
    Message(Tapped),
    /// Messages have passed that cannot be shown; the next look may find more.
    Passed,
    /// No message after the last one yet.
    Nothing,
    /// Whether the next message is certain depends on a receiver that was not passed in, or has not begun with this sender
    /// yet: its participant and epoch. Nothing is counted; look again.
    Unknown(u16, u32),
}

/// A message that was copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tapped {
    /// Its position among the messages of this incarnation of the sender, from 0; [`Ring`] says where it begins anew.
    pub position: u32,
    /// Payload bytes of it, of which as many are copied as there was room for.
    pub bytes: u32,
    /// Low half of the time it was sent at, in nanoseconds of the sender's clock; 0 if the message was not sampled.
    pub stamp: u32,
}

/// A session as the sender's words name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Session {
    receiver: (u16, u32),
    start: u32,
}

/// Returns of a receiver that are older than the next message.
#[derive(Clone, Copy, Debug)]
struct Base {
    receiver: u32,
    returns: Cursor,
    /// The next message then.
    position: u32,
}

/// So many laps behind the next message a base says nothing any more: the laps of returns are known by 16 bits.
const BASE_LAPS_MAX: u32 = 1 << 15;

/// Who may have returned blocks.
enum Returner<'m> {
    /// Nobody in this session.
    Nobody,
    /// Somebody whose words we do not have, or whose session with the sender has not begun.
    Unknown,
    /// The receiver with these words.
    Receiver(PeerWords<'m>),
}

/// Whether a block may have come back since the base.
enum Returned {
    No,
    Yes,
    /// The ring has gone round since.
    TooLongAgo,
}

impl Tap {
    /// An observer of the sender with this participant number and epoch, from its first message on. `former` is the sender
    /// before it, which has ended, if it is known: a receiver that is still with that one has returned nothing to this one.
    ///
    /// # Errors
    /// [`Error::Plan`] if the channel has no shape.
    pub fn new(fifo: &Fifo<'_>, sender: (u16, u32), former: Option<(u16, u32)>) -> Result<Tap, Error> {
        let ring = Ring::new(fifo.blocks);
        let shape = Shape::of(fifo).ok_or(Error::Plan)?;
        let session = Session { receiver: (0, 0), start: 0 };
        Ok(Tap {
            shape,
            ring,
            sender,
            former,
            next: ring.cursor(0),
            session,
            is_late: false,
            is_fresh: true,
            base: None,
            unseen: 0,
        })
    }

    /// Participant number and epoch of the sender.
    pub fn sender(&self) -> (u16, u32) {
        self.sender
    }

    /// Messages that have passed without being shown.
    pub fn unseen(&self) -> u64 {
        self.unseen
    }

    /// Leaves out what has passed before now, uncounted: the next message is the first that is still queued. For an observer
    /// that finds a channel in use. Where the receiver is not known, that is found out by later looks.
    pub fn begin_now<'m>(&mut self, tx: PeerWords<'m>, find: impl Fn(u16, u32) -> Option<PeerWords<'m>>) {
        self.is_late = true;
        self.begin(tx, &find);
    }

    /// Finds the first message that is still queued; not if the receiver is not known.
    fn begin<'m>(&mut self, tx: PeerWords<'m>, find: &impl Fn(u16, u32) -> Option<PeerWords<'m>>) -> bool {
        self.session = self.session_of(tx);
        let oldest = match self.returner(find) {
            Returner::Receiver(rx) => rx.see(rx::TAKEN, Site::SeeReturn),
            Returner::Nobody => self.session.start,
            Returner::Unknown => return false,
        };
        if self.ring.contains(oldest) {
            self.next = self.ring.cursor(oldest);
        }
        (self.is_late, self.is_fresh, self.base) = (false, false, None);
        true
    }

    /// Looks for the next message and copies it. `tx` are the words of the sender's transmit end; `find` gives those of the
    /// receive end that a participant has in an epoch, where they are known.
    ///
    /// At most four passes over as many words as the channel has blocks, and a copy of one block.
    pub fn look<'m>(
        &mut self,
        tx: PeerWords<'m>,
        find: impl Fn(u16, u32) -> Option<PeerWords<'m>>,
        into: &mut [u8],
    ) -> Look {
        if self.is_late && !self.begin(tx, &find) {
            return self.unknown();
        }
        let unseen_before = self.unseen;
        self.follow(tx);
        match self.returner(&find) {
            Returner::Receiver(rx) => self.set_base(rx),
            Returner::Nobody => self.is_fresh = true,
            Returner::Unknown => (),
        }
        self.pass_overwritten(tx);
        if self.unseen != unseen_before {
            return Look::Passed;
        }
        let first = self.shape.slot(self.next.index);
        if !self.next.announced_by(tx.see(first + slot::TURN, Site::SeeTurn)) {
            return Look::Nothing;
        }
        let (bytes, mark) = (tx.get(first + slot::LEN), tx.get(first + slot::BLOCK));
        let (block, epoch) = (mark & 0xffff, mark >> 16);
        let is_possible =
            block < self.ring.slots() && bytes <= self.shape.block_bytes && epoch == self.sender.1 & 0xffff;
        if !is_possible {
            return self.pass(1);
        }
        let found = Tapped { position: self.next.position, bytes, stamp: tx.get(first + slot::STAMP) };
        let copied = into.len().min(bytes as usize);
        tx.load_bytes(self.shape.payload(block), &mut into[..copied]);
        sync::acquire_fence(Site::SeeReuse);
        self.judge(tx, &find, found, block)
    }

    /// The second look: whether what was copied is certain.
    fn judge<'m>(
        &mut self,
        tx: PeerWords<'m>,
        find: &impl Fn(u16, u32) -> Option<PeerWords<'m>>,
        found: Tapped,
        block: u32,
    ) -> Look {
        let reaped = tx.see(tx::REAPED, Site::SeeReuse).checked_sub(1).filter(|reaped| self.ring.contains(*reaped));
        if self.session_of(tx) != self.session {
            return Look::Passed;
        }
        let returned = match (self.returner(find), self.base) {
            (Returner::Nobody, _) => Returned::No,
            (Returner::Receiver(rx), Some(base)) if self.is_valid(base) => self.is_reaped(rx, base, reaped, block),
            // It began while we looked; the next look finds a base.
            (Returner::Receiver(_) | Returner::Unknown, _) => return self.unknown(),
        };
        // After the returns: if those of later laps were seen, their announcements are seen here.
        let turn = tx.get(self.shape.slot(self.next.index) + slot::TURN);
        match returned {
            Returned::No if self.next.announced_by(turn) => {
                self.next = self.next.next(self.ring);
                Look::Message(found)
            }
            Returned::No | Returned::Yes => self.pass(1),
            Returned::TooLongAgo => {
                self.base = None;
                self.pass(1)
            }
        }
    }

    /// Messages that a sender which has ended had announced and that were not shown count as unseen; there will be no other.
    /// Messages that it had not announced whole do not count.
    pub fn end(&mut self, tx: PeerWords<'_>) {
        if self.is_late {
            return;
        }
        self.pass_overwritten(tx);
        for _ in 0..self.ring.slots() {
            let turn = tx.see(self.shape.slot(self.next.index) + slot::TURN, Site::SeeTurn);
            if !self.next.announced_by(turn) {
                break;
            }
            self.pass(1);
        }
    }

    fn unknown(&self) -> Look {
        let (participant, epoch) = self.session.receiver;
        Look::Unknown(participant, epoch)
    }

    fn session_of(&self, tx: PeerWords<'_>) -> Session {
        let epoch = tx.see(tx::LINK_EPOCH, Site::SeeLink);
        let participant = if epoch == 0 { 0 } else { tx.get(tx::LINK_PARTICIPANT) as u16 };
        let claimed = tx.get(tx::START);
        // As the receiver takes it.
        let start = if self.ring.contains(claimed) { claimed } else { 0 };
        Session { receiver: (participant, epoch), start }
    }

    /// Takes note of the session. What lies before the place where a new one begins has come back.
    fn follow(&mut self, tx: PeerWords<'_>) {
        let session = self.session_of(tx);
        if session != self.session {
            // Whoever comes where nobody was, and begins where that was, is the first of this session.
            self.is_fresh &= self.session.receiver.1 == 0 && self.session.start == session.start;
            self.session = session;
            self.base = None;
            if self.is_ahead(session.start) {
                self.pass(self.ring.distance(self.next.position, session.start));
            }
        }
    }

    fn returner<'m>(&self, find: &impl Fn(u16, u32) -> Option<PeerWords<'m>>) -> Returner<'m> {
        let (participant, epoch) = self.session.receiver;
        if epoch == 0 {
            return Returner::Nobody;
        }
        let words = self.shape.rx_bytes().unwrap_or(u32::MAX) / 4;
        let Some(rx) = find(participant, epoch).filter(|rx| rx.len() >= words) else { return Returner::Unknown };
        let epoch = rx.see(rx::LINK_EPOCH, Site::SeeBegin);
        let begun = (rx.get(rx::LINK_PARTICIPANT) as u16, epoch);
        if epoch == 0 || Some(begun) == self.former {
            Returner::Nobody
        } else if begun == self.sender {
            Returner::Receiver(rx)
        } else {
            Returner::Unknown
        }
    }

    /// Finds how far the returns are, and keeps that as base if the next message is not taken yet. Where there is no base
    /// for the next message, what was taken is passed over.
    fn set_base(&mut self, rx: PeerWords<'_>) {
        let (receiver, position) = (self.session.receiver.1, self.next.position);
        let beginning = Base { receiver, returns: self.ring.cursor(0), position: self.session.start };
        let former = self.base.or(self.is_fresh.then_some(beginning)).filter(|base| self.is_valid(*base));
        let frontier = former.and_then(|base| self.frontier_from(rx, base.returns));
        let returns = frontier.unwrap_or_else(|| self.frontier(rx));
        // After the frontier: so nothing before it is a return of a message from `taken` on.
        let taken = rx.get(rx::TAKEN);
        if !self.ring.contains(taken) {
            return;
        }
        if self.is_ahead(taken) {
            if frontier.is_some() {
                self.base = former;
                return;
            }
            self.pass(self.ring.distance(position, taken));
        }
        self.base = Some(Base { receiver, returns, position: self.next.position });
    }

    /// Whether a base is one of this session, and not so old that laps could be mistaken.
    fn is_valid(&self, base: Base) -> bool {
        let laps = self.ring.distance(base.position, self.next.position) / self.ring.slots();
        base.receiver == self.session.receiver.1 && laps < BASE_LAPS_MAX
    }

    /// The first entry of the returns that is not written, by one pass over the ring.
    fn frontier(&self, rx: PeerWords<'_>) -> Cursor {
        let lap = match rx.see(rx::WORDS, Site::SeeReturn) >> 16 {
            0 if self.is_clear(rx) => 1,
            // Laps are known by 16 bits.
            0 => 1 << 16,
            lap => lap,
        };
        let mut at = self.ring.cursor((lap - 1) * self.ring.slots());
        for _ in 0..self.ring.slots() {
            if at.returned_by(rx.see(rx::WORDS + at.index, Site::SeeReturn)).is_none() {
                break;
            }
            at = at.next(self.ring);
        }
        at
    }

    /// Whether nothing has been returned in this session, whose receiver then holds all that it has taken. An entry of block
    /// 0 in each 65,536th lap looks like a clear one.
    fn is_clear(&self, rx: PeerWords<'_>) -> bool {
        let taken = rx.get(rx::TAKEN);
        let is_first_lap =
            self.ring.contains(taken) && self.ring.distance(self.session.start, taken) <= self.ring.slots();
        is_first_lap && (0..self.ring.slots()).all(|entry| rx.get(rx::WORDS + entry) == 0)
    }

    /// The frontier from an earlier one on; `None` if the ring has gone round since.
    fn frontier_from(&self, rx: PeerWords<'_>, from: Cursor) -> Option<Cursor> {
        let mut at = from;
        for _ in 0..=self.ring.slots() {
            let entry = rx.see(rx::WORDS + at.index, Site::SeeReturn);
            if at.returned_by(entry).is_none() {
                return is_of_lap_before(at, entry).then_some(at);
            }
            at = at.next(self.ring);
        }
        None
    }

    /// Whether the sender may have taken a block back since the base: by what it says of it, or, if it does not, by what was
    /// returned.
    fn is_reaped(&self, rx: PeerWords<'_>, base: Base, reaped: Option<u32>, block: u32) -> Returned {
        let mut at = base.returns;
        for _ in 0..=self.ring.slots() {
            if reaped.is_some_and(|reaped| !is_before(at, self.ring.cursor(reaped))) {
                return Returned::No;
            }
            let entry = rx.see(rx::WORDS + at.index, Site::SeeReturn);
            match at.returned_by(entry) {
                Some(returned) if returned == block => return Returned::Yes,
                Some(_) => at = at.next(self.ring),
                None if is_of_lap_before(at, entry) => return Returned::No,
                None => return Returned::TooLongAgo,
            }
        }
        Returned::TooLongAgo
    }

    /// Passes over messages whose slots announce later ones already.
    fn pass_overwritten(&mut self, tx: PeerWords<'_>) {
        let tail = tx.get(tx::TAIL);
        if self.ring.contains(tail) && self.is_ahead(tail) {
            let behind = self.ring.distance(self.next.position, tail);
            if behind > self.ring.slots() {
                self.pass(behind - self.ring.slots());
            }
        }
    }

    /// Counts the next `count` messages as unseen.
    fn pass(&mut self, count: u32) -> Look {
        self.unseen += u64::from(count);
        self.next = self.ring.cursor(self.ring.after(self.next.position, count));
        Look::Passed
    }

    /// Whether a position lies after the next message's.
    fn is_ahead(&self, position: u32) -> bool {
        let ring = self.ring;
        ring.contains(position)
            && position != self.next.position
            && ring.distance(self.next.position, position) < ring.distance(position, self.next.position)
    }
}

/// Whether a place in the returns lies before another one; of their laps 16 bits are known.
fn is_before(one: Cursor, other: Cursor) -> bool {
    match other.lap.wrapping_sub(one.lap) & 0xffff {
        0 => one.index < other.index,
        laps => laps < 1 << 15,
    }
}

/// Whether an entry of the returns has not been written since the lap before, or never.
fn is_of_lap_before(at: Cursor, entry: u32) -> bool {
    entry >> 16 == at.lap.wrapping_sub(1) & 0xffff
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(lap: u32, index: u32) -> Cursor {
        Cursor { position: 0, index, lap }
    }

    #[test]
    fn places_in_the_returns_are_told_apart_over_half_of_all_laps() {
        assert!(is_before(at(7, 1), at(7, 2)) && !is_before(at(7, 2), at(7, 2)) && !is_before(at(7, 2), at(7, 1)));
        for (laps, is_so) in [(1, true), (0x7fff, true), (0x8000, false), (0xffff, false), (0x1_0001, true)] {
            assert_eq!(is_before(at(0xfff0, 2), at(0xfff0 + laps, 1)), is_so, "{laps}");
        }
    }

    #[test]
    fn an_entry_is_of_the_lap_before_or_not() {
        for (lap, before) in [(1, 0), (2, 1), (0x1_0000, 0xffff), (0x1_0001, 0)] {
            assert!(is_of_lap_before(at(lap, 0), before << 16 | 3), "{lap}");
            let others = [before + 1, before + 2, before.wrapping_sub(1)];
            assert!(others.iter().all(|other| !is_of_lap_before(at(lap, 0), other << 16)), "{lap}");
        }
    }
}

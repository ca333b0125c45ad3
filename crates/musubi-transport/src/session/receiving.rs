//! The incoming half of a session: bytes to records, records to frames.
//!
//! What you may rely on: it holds at most one unfinished frame a class, and room for one more. Only whole pieces count as received; what came of
//! a piece when the connection broke is dropped, and the piece comes again.
//!
//! How it works: the heads of record and frame are gathered in a small buffer (or read in place, if they lie whole in the
//! input). Payload goes to the frame of its class. A short frame that lies whole in the input is copied once, to its
//! report; a large one is gathered in the vector that the report will own, by copying or by reading straight into it.
//! Behind a large frame another like it is expected: a *spare* vector lies ready, and one read brings the rest of the one,
//! the head of the other, and its payload to where that will stay.

use alloc::vec::Vec;

use super::pool::Pool;
use super::record::{Record, Word};
use crate::Priority;
use crate::frame::{Header, Kinds};
use crate::links::{NoBlock, Payload, Short};

const HEAD_BYTES: usize = Record::BYTES + Header::BYTES;
/// Fewer bytes than this are not worth a read of their own.
const LANDING_BYTES_MIN: usize = 4096;

/// What a record says to the session.
#[derive(Debug)]
pub(super) enum Item {
    /// A frame is whole.
    Frame(Header, Payload<NoBlock>),
    /// The peer leaves, or answers our leaving.
    Bye {
        /// It is the answer.
        answer: bool,
    },
}

/// What the peer sent breaks the protocol.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Violation;

/// A frame that is not whole yet.
#[derive(Debug, Default)]
struct Gathering {
    header: Option<Header>,
    /// Payload; what lies behind `filled` is only room to read to.
    bytes: Vec<u8>,
    filled: usize,
    /// Bytes up to the end of the last whole piece.
    whole: usize,
    /// Bytes of its first piece.
    first: usize,
}

impl Gathering {
    fn add(&mut self, bytes: &[u8]) {
        self.bytes.truncate(self.filled);
        self.bytes.extend_from_slice(bytes);
        self.filled += bytes.len();
    }

    fn missing(&self) -> usize {
        self.header.map_or(0, |header| header.length as usize - self.filled)
    }

    /// The next so many bytes, to be read to.
    fn room(&mut self, bytes: usize) -> &mut [u8] {
        let end = self.filled + bytes;
        if self.bytes.len() < end {
            self.bytes.resize(end, 0);
        }
        &mut self.bytes[self.filled..end]
    }
}

/// What the next frame is likely to be: like the last one, if that was large.
#[derive(Clone, Copy, Debug)]
struct Expected {
    /// Bytes of its first piece, and of all.
    first: usize,
    whole: usize,
}

/// The piece whose payload comes next.
#[derive(Clone, Copy, Debug)]
struct Piece {
    class: Priority,
    missing: usize,
}

/// The incoming half of a session.
#[derive(Debug)]
pub(super) struct Inbox {
    kinds: &'static Kinds,
    head: Vec<u8>,
    ahead: [u8; HEAD_BYTES],
    piece: Option<Piece>,
    gathering: [Gathering; Priority::COUNT],
    expected: Option<Expected>,
    /// Memory for what is expected.
    spare: Vec<u8>,
    /// Buffers of frames that the program has released.
    pool: Pool,
    received: u32,
    heard: Option<u32>,
    /// Bytes and pieces that came since we last acknowledged.
    due_bytes: usize,
    due: bool,
}

impl Inbox {
    /// Nothing has come.
    pub(super) fn new(kinds: &'static Kinds) -> Inbox {
        Inbox {
            kinds,
            head: Vec::new(),
            ahead: [0; HEAD_BYTES],
            piece: None,
            gathering: Default::default(),
            expected: None,
            spare: Vec::new(),
            pool: Pool::default(),
            received: 0,
            heard: None,
            due_bytes: 0,
            due: false,
        }
    }

    /// Number of the last whole piece.
    pub(super) fn received(&self) -> u32 {
        self.received
    }

    /// Whether there is something to acknowledge.
    pub(super) fn is_due(&self) -> bool {
        self.due
    }

    /// Bytes to be acknowledged.
    pub(super) fn due_bytes(&self) -> usize {
        self.due_bytes
    }

    /// The number to acknowledge, which thereby is no longer due.
    pub(super) fn acknowledge(&mut self) -> u32 {
        (self.due, self.due_bytes) = (false, 0);
        self.received
    }

    /// Takes bytes up to the first item that they complete, and gives it.
    pub(super) fn input(&mut self, bytes: &mut &[u8]) -> Result<Option<Item>, Violation> {
        while !bytes.is_empty() {
            let item = match self.piece {
                Some(piece) => self.payload(piece, bytes)?,
                None => self.head(bytes)?,
            };
            if item.is_some() {
                return Ok(item);
            }
        }
        Ok(None)
    }

    /// The fixed part of a record, and of a frame if it begins one.
    fn head(&mut self, bytes: &mut &[u8]) -> Result<Option<Item>, Violation> {
        if self.head.is_empty()
            && let Some(head) = bytes.first_chunk::<HEAD_BYTES>()
            && head[0] == Word::First as u8
        {
            *bytes = &bytes[HEAD_BYTES..];
            let record = self.record(head)?;
            return self.first(record, &frame_of(head), bytes);
        }
        let known = self.head.len() >= Record::BYTES;
        let need = if known { HEAD_BYTES } else { Record::BYTES } - self.head.len();
        let (taken, rest) = bytes.split_at(need.min(bytes.len()));
        self.head.extend_from_slice(taken);
        *bytes = rest;
        if taken.len() < need {
            return Ok(None);
        }
        let mut head = [0; HEAD_BYTES];
        head[..self.head.len()].copy_from_slice(&self.head);
        let record = self.record(&head)?;
        if record.word == Word::First && !known {
            return Ok(None);
        }
        self.head.clear();
        match record.word {
            Word::First => self.first(record, &frame_of(&head), bytes),
            Word::More => self.more(record),
            Word::Ack => Ok(None),
            Word::Bye => Ok(Some(Item::Bye { answer: record.flags & 1 != 0 })),
        }
    }

    /// The record that begins here; remembers what it acknowledges.
    fn record(&mut self, head: &[u8; HEAD_BYTES]) -> Result<Record, Violation> {
        let record = head
            .first_chunk::<{ Record::BYTES }>()
            .and_then(|head| Record::decode(head, self.kinds))
            .ok_or(Violation)?;
        self.heard = Some(record.received);
        Ok(record)
    }

    /// What the records that came since the last call acknowledge; `None` if none came.
    pub(super) fn take_heard(&mut self) -> Option<u32> {
        self.heard.take()
    }

    /// A piece with the next number, or a violation.
    fn count(&mut self, record: Record) -> Result<(), Violation> {
        if record.number == self.received.wrapping_add(1) { Ok(()) } else { Err(Violation) }
    }

    fn first(
        &mut self,
        record: Record,
        frame: &[u8; Header::BYTES],
        bytes: &mut &[u8],
    ) -> Result<Option<Item>, Violation> {
        self.count(record)?;
        let header =
            Header::decode(frame, self.kinds).filter(|header| header.class == record.class).ok_or(Violation)?;
        let gathering = &mut self.gathering[record.class.index()];
        let (here, whole) = (record.length as usize - Header::BYTES, header.length as usize);
        // A piece brings the frame on, and does not go beyond it.
        if gathering.header.is_some() || here > whole || here == 0 && whole > 0 {
            return Err(Violation);
        }
        if here == whole
            && let Some(short) = bytes.get(..here).and_then(Short::new)
        {
            *bytes = &bytes[here..];
            self.expected = None;
            self.piece_is_whole(here);
            return Ok(Some(Item::Frame(header, Payload::Short(short))));
        }
        gathering.header = Some(header);
        gathering.bytes = self.pool.take(whole);
        (gathering.filled, gathering.whole, gathering.first) = (0, 0, here);
        self.piece = Some(Piece { class: record.class, missing: here });
        Ok(None)
    }

    fn more(&mut self, record: Record) -> Result<Option<Item>, Violation> {
        self.count(record)?;
        let here = record.length as usize;
        let gathering = &self.gathering[record.class.index()];
        if gathering.header.is_none() || here > gathering.missing() {
            return Err(Violation);
        }
        self.piece = Some(Piece { class: record.class, missing: here });
        Ok(None)
    }

    fn payload(&mut self, piece: Piece, bytes: &mut &[u8]) -> Result<Option<Item>, Violation> {
        let (taken, rest) = bytes.split_at(piece.missing.min(bytes.len()));
        self.gathering[piece.class.index()].add(taken);
        *bytes = rest;
        Ok(self.advance(piece, taken.len()))
    }

    /// So many bytes of the piece have been put where they belong.
    fn advance(&mut self, piece: Piece, bytes: usize) -> Option<Item> {
        let missing = piece.missing - bytes;
        self.piece = Some(Piece { missing, ..piece }).filter(|_| missing > 0);
        if missing > 0 {
            return None;
        }
        let gathering = &mut self.gathering[piece.class.index()];
        let here = gathering.filled - gathering.whole;
        gathering.whole = gathering.filled;
        let whole = gathering.missing() == 0;
        let mut gathered = if whole { core::mem::take(gathering) } else { Gathering::default() };
        self.piece_is_whole(here);
        let header = gathered.header?;
        gathered.bytes.truncate(gathered.filled);
        let expected = Expected { first: gathered.first, whole: gathered.filled };
        self.expected = Some(expected).filter(|expected| expected.first >= LANDING_BYTES_MIN);
        let payload = Short::new(&gathered.bytes).map_or(Payload::Owned(gathered.bytes), Payload::Short);
        Some(Item::Frame(header, payload))
    }

    fn piece_is_whole(&mut self, bytes: usize) {
        self.received = self.received.wrapping_add(1);
        self.due_bytes += HEAD_BYTES + bytes;
        self.due = true;
    }

    /// See [`super::Session::recycle`].
    pub(super) fn recycle(&mut self, buffer: Vec<u8>) {
        self.pool.give(buffer);
    }

    /// See [`super::Session::landing`].
    pub(super) fn landing(&mut self) -> Option<[&mut [u8]; 3]> {
        let Some(piece) = self.piece else {
            let expected = self.expected.filter(|_| self.head.is_empty())?;
            self.provide_spare(expected);
            return Some([&mut [], &mut self.ahead, &mut self.spare[..expected.first]]);
        };
        let gathering = &self.gathering[piece.class.index()];
        let ends = gathering.missing() == piece.missing;
        let expected = Expected { first: gathering.first, whole: gathering.filled + piece.missing };
        let spare_bytes = if ends { expected.first } else { 0 };
        // Little may be left of a frame: what is expected behind it counts too.
        if piece.missing.max(spare_bytes) < LANDING_BYTES_MIN {
            return None;
        }
        if ends {
            self.provide_spare(expected);
        }
        let rest = self.gathering[piece.class.index()].room(piece.missing);
        Some([rest, &mut self.ahead, &mut self.spare[..spare_bytes]])
    }

    fn provide_spare(&mut self, expected: Expected) {
        if self.spare.capacity() <= expected.whole {
            let small = core::mem::replace(&mut self.spare, self.pool.take(expected.whole));
            self.pool.give(small);
        }
        if self.spare.len() < expected.first {
            self.spare.resize(expected.first, 0);
        }
    }

    /// So many bytes were read there: gives the frame that they complete, and how many of them lie beyond the piece, in
    /// [`Inbox::ahead`] and then in the spare.
    pub(super) fn landed(&mut self, bytes: usize) -> (Option<Item>, usize) {
        let Some(piece) = self.piece else { return (None, bytes) };
        let here = bytes.min(piece.missing);
        self.gathering[piece.class.index()].filled += here;
        (self.advance(piece, here), bytes - here)
    }

    /// What was read beyond the piece.
    pub(super) fn ahead(&self) -> [u8; HEAD_BYTES] {
        self.ahead
    }

    /// After the head: so many bytes that were read to the spare are payload of the piece that has just begun, and the spare
    /// becomes its frame's memory. Gives the frame if they complete it; `None` if they are anything else.
    pub(super) fn adopt_spare(&mut self, bytes: usize) -> Option<Option<Item>> {
        let piece = self.piece.filter(|piece| bytes <= piece.missing)?;
        let gathering = &mut self.gathering[piece.class.index()];
        let whole = gathering.header.map_or(0, |header| header.length as usize);
        let fits = bytes <= self.spare.len() && whole < self.spare.capacity();
        if gathering.filled > 0 || piece.missing < LANDING_BYTES_MIN || !fits {
            return None;
        }
        core::mem::swap(&mut gathering.bytes, &mut self.spare);
        gathering.filled = bytes;
        Some(self.advance(piece, bytes))
    }

    /// The spare, to be taken in as input.
    pub(super) fn lend_spare(&mut self) -> Vec<u8> {
        core::mem::take(&mut self.spare)
    }

    /// Takes it back.
    pub(super) fn keep_spare(&mut self, spare: Vec<u8>) {
        self.spare = spare;
    }

    /// The connection is gone, and with it the rest of an unfinished piece.
    pub(super) fn disconnect(&mut self) {
        self.head.clear();
        (self.piece, self.heard, self.expected) = (None, None, None);
        for gathering in &mut self.gathering {
            if gathering.whole == 0 && gathering.header.is_some_and(|header| header.length > 0) {
                *gathering = Gathering::default();
            }
            gathering.filled = gathering.whole;
            gathering.bytes.truncate(gathering.whole);
        }
    }

    /// Forgets everything: the link is no more.
    pub(super) fn reset(&mut self) {
        *self = Inbox::new(self.kinds);
    }
}

fn frame_of(head: &[u8; HEAD_BYTES]) -> [u8; Header::BYTES] {
    core::array::from_fn(|at| head[Record::BYTES + at])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::Shape;

    const CLASS: Priority = Priority::new(1).unwrap();
    const KINDS: &Kinds =
        &Kinds { least_urgent: Priority::LEAST_URGENT, shapes: &[Some(Shape { payload_max: 65_536, awaited: false })] };

    /// A first piece of `here` bytes of a frame of `whole`, with the payload that it says it has.
    fn first(here: usize, whole: u32) -> Vec<u8> {
        let length = (Header::BYTES + here) as u32;
        let record = Record { word: Word::First, class: CLASS, flags: 0, length, number: 1, received: 0 };
        let header = Header { class: CLASS, length: whole, ..Header::new(0) };
        let mut bytes = record.encode().to_vec();
        bytes.extend_from_slice(&header.encode());
        bytes.resize(bytes.len() + here, 7);
        bytes
    }

    /// What comes of it, whole and byte by byte: both ways to read a head.
    fn came(bytes: &[u8]) -> [Result<bool, Violation>; 2] {
        [bytes.len(), 1].map(|step| {
            let mut inbox = Inbox::new(KINDS);
            let mut frame = false;
            for mut part in bytes.chunks(step) {
                while !part.is_empty() {
                    frame |= inbox.input(&mut part)?.is_some();
                }
            }
            Ok(frame)
        })
    }

    #[test]
    fn a_first_piece_is_not_longer_than_its_frame() {
        for (here, whole) in [(1, 0), (11, 10), (5000, 4999), (5000, 1)] {
            assert_eq!(came(&first(here, whole)), [Err(Violation), Err(Violation)], "{here} of {whole}");
        }
        assert_eq!(came(&first(10, 10)), [Ok(true), Ok(true)]);
        assert_eq!(came(&first(9, 10)), [Ok(false), Ok(false)]);
    }

    #[test]
    fn a_first_piece_is_empty_only_if_its_frame_is() {
        for whole in [1, 10, 5000] {
            assert_eq!(came(&first(0, whole)), [Err(Violation), Err(Violation)], "0 of {whole}");
        }
        assert_eq!(came(&first(0, 0)), [Ok(true), Ok(true)]);
    }
}

//! The receiving end of a lane.
//!
//! What you may rely on: the slots are the sender's claims. A tag that no sender writes breaks the end for good; a length
//! reaches no further than the longest record. What follows a head is copied out before the sender may write there again.
//!
//! How it works: the tag at our position is of this lap, or there is nothing yet. How far we are is published every quarter of
//! the ring ([`Receiver::publish`]), so that the sender's line is seldom taken from it.

use super::tag::{Seen, Tag, lap};
use super::{RECORD_BYTES_MAX, SLOT_BYTES, slots_of};
use crate::error::Error;
use crate::layout::record;
use crate::sync::Site;
use crate::words::{OwnWords, PeerWords};

/// Into how many steps the ring is divided after each of which the sender hears how far we are.
const STEPS: u32 = 4;

/// Reads records. The slots are the sender's claims; how far we are is ours to say.
#[derive(Debug)]
pub struct Receiver<'m> {
    slots: PeerWords<'m>,
    taken_word: OwnWords<'m>,
    shift: u32,
    /// Slots, less one.
    mask: u32,
    head: u32,
    published: u32,
    broken: bool,
}

/// A record that came, of whose bytes after the head there are so few that they are one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Brief<const H: usize> {
    /// The head.
    pub head: [u32; H],
    /// Bytes after the head, at most [`BRIEF_BYTES_MAX`].
    pub bytes: usize,
    /// These bytes, little-endian; what stands behind them means nothing.
    pub word: u64,
}

/// Most bytes after the head of a [`Brief`] record.
pub const BRIEF_BYTES_MAX: usize = 8;

/// A record that came; what follows its head was copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record<const H: usize> {
    /// The sender's mark.
    pub mark: u8,
    /// The head.
    pub head: [u32; H],
    /// Bytes after the head.
    pub bytes: usize,
}

impl<'m> Receiver<'m> {
    /// An end of the lane in the sender's slots; `taken_word` is our one word, zero.
    ///
    /// # Errors
    /// [`Error::Plan`] if the views have other sizes.
    pub fn new(slots: PeerWords<'m>, taken_word: OwnWords<'m>) -> Result<Self, Error> {
        let count = slots.len() / record::WORDS;
        if !count.is_power_of_two() || !slots.len().is_multiple_of(record::WORDS) || taken_word.len() != 1 {
            return Err(Error::Plan);
        }
        Ok(Receiver { slots, taken_word, shift: count.ilog2(), mask: count - 1, head: 0, published: 0, broken: false })
    }

    /// Whether [`Receiver::receive`] has something to give or to say.
    #[inline(always)]
    pub fn is_ready(&self) -> bool {
        let word = self.slot().get(record::TAG);
        Tag::seen(word, lap(self.head, self.shift)) != Seen::Nothing
    }

    /// Number of the next slot to read.
    #[inline(always)]
    pub fn position(&self) -> u32 {
        self.head
    }

    /// Whether there is a record with this mark, in so far as its tag says.
    #[inline(always)]
    pub fn is_ready_with(&self, mark: u8) -> bool {
        let seen = Tag::seen(self.slot().get(record::TAG), lap(self.head, self.shift));
        matches!(seen, Seen::Record { mark: of, .. } if of == mark)
    }

    /// Takes the next record if it is brief and has this mark; all others, and faults, are left to
    /// [`Receiver::receive`].
    #[inline(always)]
    pub fn receive_brief<const H: usize>(&mut self, mark: u8) -> Option<Brief<H>> {
        const { assert!(H * 4 + BRIEF_BYTES_MAX <= SLOT_BYTES, "it stands in the first slot") };
        let slot = self.slot();
        let seen = Tag::seen(slot.see(record::TAG, Site::SeeRecord), lap(self.head, self.shift));
        let Seen::Record { mark: of, bytes } = seen else { return None };
        let bytes = (bytes as usize).wrapping_sub(H * 4);
        if of != mark || bytes > BRIEF_BYTES_MAX || self.broken {
            return None;
        }
        let mut head = [0; H];
        for (index, word) in head.iter_mut().enumerate() {
            *word = slot.get(record::DATA + index as u32);
        }
        let word = pair_at(slot, record::DATA + H as u32);
        self.head = self.head.wrapping_add(1);
        Some(Brief { head, bytes, word })
    }

    /// Takes the next record; what follows its head is copied into `data`.
    ///
    /// # Errors
    /// [`Error::PeerFault`] if the sender wrote what it cannot have meant.
    #[inline(always)]
    pub fn receive<const H: usize>(&mut self, data: &mut [u8; RECORD_BYTES_MAX]) -> Result<Option<Record<H>>, Error> {
        const { assert!(H < record::WORDS as usize, "the head stands in the first slot") };
        let slot = self.slot();
        let (mark, bytes) = match Tag::seen(slot.see(record::TAG, Site::SeeRecord), lap(self.head, self.shift)) {
            Seen::Nothing if !self.broken => return Ok(None),
            Seen::Record { mark, bytes } if bytes as usize >= H * 4 && !self.broken => (mark, bytes as usize - H * 4),
            _ => return Err(self.fault()),
        };
        let mut head = [0; H];
        for (index, word) in head.iter_mut().enumerate() {
            *word = slot.get(record::DATA + index as u32);
        }
        let here = bytes.min(SLOT_BYTES - H * 4);
        let (first, rest) = data[..bytes].split_at_mut(here);
        read(slot, record::DATA + H as u32, first);
        if !rest.is_empty() {
            self.continue_with(rest);
        }
        self.head = self.head.wrapping_add(slots_of(bytes + H * 4));
        Ok(Some(Record { mark, head, bytes }))
    }

    /// Reads what did not fit the first slot.
    fn continue_with(&self, data: &mut [u8]) {
        let mut position = self.head;
        for part in data.chunks_mut(SLOT_BYTES) {
            position = position.wrapping_add(1);
            read(self.slot_at(position), record::DATA, part);
        }
    }

    #[cold]
    fn fault(&mut self) -> Error {
        self.broken = true;
        Error::PeerFault
    }

    /// Tells the sender how far we are, if that is a quarter of the ring more than it knows; gives whether.
    #[inline(always)]
    pub fn publish(&mut self) -> bool {
        let far = self.head.wrapping_sub(self.published) > self.mask / STEPS;
        if far {
            self.published = self.head;
            self.taken_word.publish(0, self.head, Site::PublishTaken);
        }
        far
    }

    #[inline(always)]
    fn slot(&self) -> PeerWords<'m> {
        self.slot_at(self.head)
    }

    #[inline(always)]
    fn slot_at(&self, position: u32) -> PeerWords<'m> {
        let index = position & self.mask;
        self.slots.part(index * record::WORDS, record::WORDS)
    }
}

/// Reads bytes from a word on.
#[inline(always)]
fn read(slot: PeerWords<'_>, first: u32, data: &mut [u8]) {
    // Stored eight at a time: whoever loads a scalar from `data` at once would wait for two stores of four.
    let (pairs, rest) = data.as_chunks_mut::<8>();
    for (index, pair) in pairs.iter_mut().enumerate() {
        *pair = pair_at(slot, first + 2 * index as u32).to_le_bytes();
    }
    let first = first + 2 * pairs.len() as u32;
    let (words, last) = rest.as_chunks_mut::<4>();
    for (index, word) in words.iter_mut().enumerate() {
        *word = slot.get(first + index as u32).to_le_bytes();
    }
    let count = last.len();
    if count > 0 {
        last.copy_from_slice(&slot.get(first + words.len() as u32).to_le_bytes()[..count]);
    }
}

/// Two words as one.
#[inline(always)]
fn pair_at(slot: PeerWords<'_>, first: u32) -> u64 {
    let (low, high) = (slot.get(first), slot.get(first + 1));
    u64::from(high) << 32 | u64::from(low)
}

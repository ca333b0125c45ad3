//! The sending end of a lane.
//!
//! What you may rely on: a record is the receiver's as a whole or not at all, since the tag of its first slot is published
//! last. The receiver's word is looked at only when the room that is known does not suffice; an impossible value there breaks
//! the end for good. Nothing here waits or allocates.
//!
//! What it does not do: ring, or know who sleeps; [`super::Link`] does.

use super::tag::{Tag, lap};
use super::{RECORD_BYTES_MAX, SLOT_BYTES, slots_of};
use crate::error::Error;
use crate::layout::record;
use crate::sync::Site;
use crate::words::{OwnWords, PeerWords};

/// How far ahead of the next slot lines are asked for: a record of 64 bytes with its head takes two.
const AHEAD: u32 = 2;
/// How many.
const LINES_AHEAD: usize = 2;

/// Writes records. The slots are ours, how far they were read is the receiver's claim.
#[derive(Debug)]
pub struct Sender<'m> {
    slots: OwnWords<'m>,
    taken_word: PeerWords<'m>,
    shift: u32,
    /// Slots, less one.
    mask: u32,
    tail: u32,
    taken: u32,
    broken: bool,
}

impl<'m> Sender<'m> {
    /// An end on fresh (zeroed) slots, a power of two of them; `taken_word` is the one word of the receiver's.
    ///
    /// # Errors
    /// [`Error::Plan`] if the views have other sizes.
    pub fn new(slots: OwnWords<'m>, taken_word: PeerWords<'m>) -> Result<Self, Error> {
        let count = slots.len() / record::WORDS;
        if !count.is_power_of_two() || !slots.len().is_multiple_of(record::WORDS) || taken_word.len() != 1 {
            return Err(Error::Plan);
        }
        Ok(Sender { slots, taken_word, shift: count.ilog2(), mask: count - 1, tail: 0, taken: 0, broken: false })
    }

    /// Whether `slots` are free. Looks at the receiver's word only if as many are not known to be.
    ///
    /// # Errors
    /// [`Error::PeerFault`] if that word is impossible.
    #[inline(always)]
    pub fn has_room(&mut self, slots: u32) -> Result<bool, Error> {
        if self.free() >= slots && !self.broken {
            return Ok(true);
        }
        self.look()?;
        Ok(self.free() >= slots)
    }

    /// Slots that are known to be free.
    #[inline(always)]
    fn free(&self) -> u32 {
        self.mask + 1 - self.tail.wrapping_sub(self.taken)
    }

    #[cold]
    fn look(&mut self) -> Result<(), Error> {
        let claimed = self.taken_word.see(0, Site::SeeTaken);
        if claimed.wrapping_sub(self.taken) > self.tail.wrapping_sub(self.taken) {
            self.broken = true;
        }
        if self.broken {
            return Err(Error::PeerFault);
        }
        self.taken = claimed;
        Ok(())
    }

    /// Sends `head` and `data` as one record of a mark below 15, if `spare` slots stay free behind it.
    ///
    /// # Errors
    /// [`Error::Full`], [`Error::TooLong`], [`Error::PeerFault`].
    #[inline(always)]
    pub fn send<const H: usize>(&mut self, mark: u8, head: &[u32; H], data: &[u8], spare: u32) -> Result<(), Error> {
        const { assert!(H < record::WORDS as usize, "the head stands in the first slot") };
        let bytes = H * 4 + data.len();
        if bytes > RECORD_BYTES_MAX {
            return Err(Error::TooLong);
        }
        if !self.has_room(slots_of(bytes) + spare)? {
            return Err(Error::Full);
        }
        let first = self.slot(self.tail);
        for (index, word) in head.iter().enumerate() {
            first.set(record::DATA + index as u32, *word);
        }
        let here = data.len().min(SLOT_BYTES - H * 4);
        let (here, rest) = data.split_at(here);
        write(&first, record::DATA + H as u32, here);
        if !rest.is_empty() {
            self.continue_with(rest);
        }
        let tag = Tag::record(lap(self.tail, self.shift), mark, bytes);
        first.publish(record::TAG, tag.word(), Site::PublishRecord);
        self.tail = self.tail.wrapping_add(slots_of(bytes));
        Ok(())
    }

    /// Where the record after the next one will be written. The receiver has read those lines a lap ago and has them still; asked
    /// for now they come while the next record is written, whose own came a record ago: asked for only now those would be
    /// taken from a receiver that looks at them already.
    #[inline(always)]
    pub fn lines_ahead(&self) -> [*const u8; LINES_AHEAD] {
        core::array::from_fn(|line| self.slot(self.tail.wrapping_add(AHEAD + line as u32)).address(0))
    }

    /// Writes what did not fit the first slot.
    fn continue_with(&self, data: &[u8]) {
        let mut position = self.tail;
        for part in data.chunks(SLOT_BYTES) {
            position = position.wrapping_add(1);
            let slot = self.slot(position);
            slot.set(record::TAG, Tag::continued(lap(position, self.shift)).word());
            write(&slot, record::DATA, part);
        }
    }

    #[inline(always)]
    fn slot(&self, position: u32) -> OwnWords<'m> {
        let index = position & self.mask;
        self.slots.part(index * record::WORDS, record::WORDS)
    }
}

/// Writes bytes from a word on. In few wide stores: while a line comes over, the processor can put off only so many.
#[cfg(not(loom))]
#[inline(always)]
fn write(slot: &OwnWords<'_>, first: u32, data: &[u8]) {
    let to = slot.bytes_at(first * 4, data.len() as u32);
    if let Some(word) = data.first_chunk::<8>().filter(|word| word.len() == data.len()) {
        // SAFETY: as below; a scalar needs no call of a function that copies.
        unsafe { to.cast::<[u8; 8]>().write(*word) };
        return;
    }
    // SAFETY: `bytes_at` checked that the bytes lie inside our section, which may be written, and no reference covers
    // them; who reads them before the tag says so reads what it cannot use, volatile.
    unsafe { core::ptr::copy_nonoverlapping(data.as_ptr(), to, data.len()) };
}

/// The same where words are loom's and not memory.
#[cfg(loom)]
fn write(slot: &OwnWords<'_>, first: u32, data: &[u8]) {
    for (index, word) in data.chunks(4).enumerate() {
        let mut bytes = [0; 4];
        bytes[..word.len()].copy_from_slice(word);
        slot.set(first + index as u32, u32::from_le_bytes(bytes));
    }
}

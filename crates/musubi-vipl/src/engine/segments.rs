//! The places that a descriptor names: a list of addresses, and parts of it.
//!
//! What you may rely on: up to [`FEW`] places are kept without an allocation; lengths add up without overflow, as a
//! descriptor whose places have more than 4 GiB together is never made.

use alloc::vec::Vec;

use super::protection::MemoryHandle;

/// Places that are kept in line.
pub const FEW: usize = 2;

/// Bytes of this side's memory: `VIP_DATA_SEGMENT`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LocalPlace {
    /// First byte.
    pub address: u64,
    /// The region that it lies in.
    pub handle: MemoryHandle,
    /// How many.
    pub bytes: u32,
}

/// The places of one descriptor, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segments {
    few: [LocalPlace; FEW],
    count: usize,
    many: Vec<LocalPlace>,
    bytes: u32,
}

impl Segments {
    /// No places.
    pub const NONE: Segments = Segments {
        few: [LocalPlace { address: 0, handle: MemoryHandle::NONE, bytes: 0 }; FEW],
        count: 0,
        many: Vec::new(),
        bytes: 0,
    };

    /// Takes all places away; the room for many stays.
    #[inline]
    pub fn clear(&mut self) {
        self.count = 0;
        self.bytes = 0;
        self.many.clear();
    }

    /// Puts one more behind the others; `None` if all together have more bytes than 32 bits count.
    #[inline]
    #[must_use]
    pub fn push(&mut self, place: LocalPlace) -> Option<()> {
        self.bytes = self.bytes.checked_add(place.bytes)?;
        match self.few.get_mut(self.count) {
            Some(free) if self.many.is_empty() => *free = place,
            _ => {
                if self.many.is_empty() {
                    self.many.extend_from_slice(&self.few);
                }
                self.many.push(place);
            }
        }
        self.count += 1;
        Some(())
    }

    /// All of them.
    pub fn places(&self) -> &[LocalPlace] {
        if self.many.is_empty() { &self.few[..self.count.min(FEW)] } else { &self.many }
    }

    /// Bytes of all together.
    pub fn bytes(&self) -> u32 {
        self.bytes
    }

    /// The places of `bytes` bytes from `offset` on; fewer if there are fewer.
    pub fn part(&self, offset: u32, bytes: u32) -> Places<'_> {
        Places { rest: self.places(), skip: offset, left: bytes.min(self.bytes.saturating_sub(offset)) }
    }
}

/// Places of a part of a message, in order, none of them empty.
#[derive(Clone, Debug)]
pub struct Places<'s> {
    rest: &'s [LocalPlace],
    /// Bytes of the first of `rest` that come before the part.
    skip: u32,
    left: u32,
}

impl<'s> Places<'s> {
    /// A part that is one place.
    pub fn one(place: &'s LocalPlace) -> Places<'s> {
        Places { rest: core::slice::from_ref(place), skip: 0, left: place.bytes }
    }

    /// Bytes of all that are left.
    pub fn bytes(&self) -> u32 {
        self.left
    }
}

impl Iterator for Places<'_> {
    type Item = LocalPlace;

    fn next(&mut self) -> Option<LocalPlace> {
        while self.left > 0 {
            let (place, rest) = self.rest.split_first()?;
            self.rest = rest;
            if self.skip >= place.bytes {
                self.skip -= place.bytes;
                continue;
            }
            let bytes = (place.bytes - self.skip).min(self.left);
            let address = place.address.wrapping_add(u64::from(self.skip));
            self.left -= bytes;
            self.skip = 0;
            return Some(LocalPlace { address, bytes, ..*place });
        }
        None
    }
}

//! The memory that all nodes of a chip map: for each node a row of sections, one for every other node.
//!
//! What you may rely on: the own row is written through its view only and the others' are only read, so a processor's
//! protection can hold each node to its row. No length or place is ever taken from the memory itself.
//!
//! How it works: a node is known by its *place*, counted from 0. Row n begins at n times [`Region::row_bytes`]; in it come
//! the sections for the other places in their order.
//!
//! What it does not do: clear the memory. It is zero before the first node begins.

use core::marker::PhantomData;

use super::meeting::Meeting;
use crate::layout::{LinkShape, link};
use crate::words::{OwnWords, PeerWords};

/// Where one node has the memory of all.
#[derive(Debug)]
pub struct Region<'m> {
    own_row: *mut u32,
    all: *const u32,
    nodes: u16,
    place: u16,
    shape: LinkShape,
    memory: PhantomData<&'m ()>,
}

// SAFETY: the addresses are those of memory that is shared between processors anyhow; all access is atomic, volatile or
// governed by the protocol of the lanes.
unsafe impl Send for Region<'_> {}
// SAFETY: what it gives by a shared reference are numbers, and another of itself, whose use the caller vouches for.
unsafe impl Sync for Region<'_> {}

/// A node's meetings with all others, by place.
#[derive(Debug)]
pub struct Row<'m, 'n> {
    region: Region<'m>,
    numbers: &'n [u16],
    hash: u64,
    incarnation: u32,
    next: u16,
}

impl<'m> Region<'m> {
    /// Bytes of a node's row; `None` if there is no such shape.
    pub const fn row_bytes(nodes: u16, shape: LinkShape) -> Option<u32> {
        if !shape.is_sound() || nodes < 2 {
            return None;
        }
        match shape.section_bytes() {
            Some(bytes) => bytes.checked_mul(nodes as u32 - 1),
            None => None,
        }
    }

    /// Bytes of the whole.
    pub const fn bytes(nodes: u16, shape: LinkShape) -> Option<u32> {
        match Self::row_bytes(nodes, shape) {
            Some(bytes) => bytes.checked_mul(nodes as u32),
            None => None,
        }
    }

    /// The whole at one address, which this program may write. `None` if there is no such place or shape.
    ///
    /// # Safety
    /// For all of `'m`, `base` is aligned to 64, better to a page, and valid for reads and writes of [`Region::bytes`]; it
    /// was zero before any node began; nothing else in this program writes the row of `place`, and no reference covers
    /// any of it. All nodes see it coherently, or uncached.
    pub unsafe fn whole(base: *mut u8, nodes: u16, place: u16, shape: LinkShape) -> Option<Region<'m>> {
        let own_row = base.wrapping_add(Self::row_bytes(nodes, shape)? as usize * usize::from(place));
        // SAFETY: the parts lie inside the whole, for which the caller vouches.
        unsafe { Self::parts(own_row, base, nodes, place, shape) }
    }

    /// The own row at an address that may be written, and all of it (the own row included) at one that need only be
    /// readable.
    ///
    /// # Safety
    /// As for [`Region::whole`], with `own_row` valid for reads and writes of [`Region::row_bytes`] and `all` for reads of
    /// everything.
    pub unsafe fn parts(
        own_row: *mut u8,
        all: *const u8,
        nodes: u16,
        place: u16,
        shape: LinkShape,
    ) -> Option<Region<'m>> {
        Self::bytes(nodes, shape).filter(|_| place < nodes)?;
        Some(Region { own_row: own_row.cast(), all: all.cast(), nodes, place, shape, memory: PhantomData })
    }

    /// The same place once more, for a node that begins anew within one life of the program.
    ///
    /// # Safety
    /// Nothing that was begun with one of the two is used to write any more when the other begins.
    pub unsafe fn again(&self) -> Region<'m> {
        let Region { own_row, all, nodes, place, shape, memory } = *self;
        Region { own_row, all, nodes, place, shape, memory }
    }

    /// Our place.
    pub fn place(&self) -> u16 {
        self.place
    }

    /// How many nodes there are.
    pub fn nodes(&self) -> u16 {
        self.nodes
    }

    /// Sizes of every link.
    pub fn shape(&self) -> LinkShape {
        self.shape
    }

    /// Begins a new incarnation: from here on the others see that the former one is over. `numbers` are those of the nodes,
    /// by place, and `hash` is of the description; who has others is not met.
    ///
    /// # Panics
    /// If there are not as many numbers as nodes: our own bug.
    pub fn begin<'n>(self, numbers: &'n [u16], hash: u64) -> Row<'m, 'n> {
        assert_eq!(numbers.len(), usize::from(self.nodes), "a number for each node");
        let last =
            (0..self.nodes).filter(|peer| *peer != self.place).map(|peer| self.own(peer).get(link::INCARNATION)).max();
        let incarnation = last.unwrap_or(0).wrapping_add(1);
        Row { region: self, numbers, hash, incarnation, next: 0 }
    }

    /// In words.
    fn section_at(&self, of: u16, with: u16) -> usize {
        let section = self.shape.section_bytes().unwrap_or(0) / 4;
        let index = if with < of { with } else { with - 1 };
        section as usize * usize::from(index)
    }

    fn words(&self) -> u32 {
        self.shape.section_bytes().unwrap_or(0) / 4
    }

    fn own(&self, peer: u16) -> OwnWords<'m> {
        let base = self.own_row.wrapping_add(self.section_at(self.place, peer));
        // SAFETY: the section lies inside our row; the maker vouches for the memory and for us being the only writer. A
        // second view of it exists only while the first is not used to write.
        unsafe { OwnWords::new(base, self.words()) }
    }

    fn theirs(&self, peer: u16) -> PeerWords<'m> {
        let row = Self::row_bytes(self.nodes, self.shape).unwrap_or(0) as usize / 4;
        let base = self.all.wrapping_add(row * usize::from(peer) + self.section_at(peer, self.place));
        // SAFETY: the section lies inside the whole, for which the maker vouches.
        unsafe { PeerWords::new(base, self.words()) }
    }
}

impl Row<'_, '_> {
    /// Tells this run of the node from others: one more than the last one's.
    pub fn incarnation(&self) -> u32 {
        self.incarnation
    }
}

impl<'m> Iterator for Row<'m, '_> {
    type Item = Meeting<'m>;

    fn next(&mut self) -> Option<Meeting<'m>> {
        if self.next == self.region.place {
            self.next += 1;
        }
        let peer = self.next;
        let number = *self.numbers.get(usize::from(peer))?;
        self.next += 1;
        let me = self.numbers[usize::from(self.region.place)];
        let (own, theirs) = (self.region.own(peer), self.region.theirs(peer));
        Some(Meeting::begin(own, theirs, self.region.shape, self.hash, [me, number], self.incarnation))
    }
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use super::*;

    #[test]
    fn a_section_is_as_long_as_the_shape_says() {
        let shape = LinkShape { slots: 16, blocks: 1, block_bytes: 64 };
        let mut memory = std::vec![0u32; Region::bytes(3, shape).unwrap() as usize / 4];
        let base = memory.as_mut_ptr().cast();
        // SAFETY: the words are aligned, as many as the region has, and outlive it.
        let region = unsafe { Region::whole(base, 3, 1, shape) }.unwrap();
        let words = shape.section_bytes().unwrap() / 4;
        for peer in [0, 2] {
            assert_eq!((region.own(peer).len(), region.theirs(peer).len()), (words, words));
        }
    }
}

//! Blocks: memory of the sender's for payloads that are too long for a record.
//!
//! What you may rely on: a block is given out again only after its return was seen, and comes back at most once for each
//! time that it was sent. Each call looks at no more returns than there are blocks.
//!
//! How it works: the receiver returns numbers through a ring of words in its section, one word a block, each with its lap;
//! since a block is returned once, the ring cannot overflow. The sender keeps its free blocks in a stack.

use super::tag::lap;
use crate::error::Error;
use crate::layout::{LINK_BLOCKS_MAX, awaited};
use crate::sync::{self, Site};
use crate::words::{OwnWords, PeerWords};

const LAP_SHIFT: u32 = 16;

/// The sender's account of its blocks.
#[derive(Debug)]
pub struct Pool<'m> {
    returns: PeerWords<'m>,
    free: [u8; LINK_BLOCKS_MAX as usize],
    count: u32,
    /// A bit for each block that was sent.
    out: u32,
    /// Place in the ring of the next return, and its lap.
    next: u32,
    lap: u32,
}

impl<'m> Pool<'m> {
    /// An account with all blocks free. `returns` is the receiver's ring, one word a block.
    pub(super) fn new(returns: PeerWords<'m>) -> Self {
        let blocks = returns.len().min(LINK_BLOCKS_MAX);
        // The last one is taken first.
        let free = core::array::from_fn(|index| blocks.saturating_sub(1 + index as u32) as u8);
        Pool { returns, free, count: blocks, out: 0, next: 0, lap: 0 }
    }

    /// Takes the block that came back last; `None` if all are out.
    ///
    /// # Errors
    /// [`Error::PeerFault`] if the receiver returned what it did not have.
    pub fn take(&mut self) -> Result<Option<u32>, Error> {
        self.collect()?;
        if self.count == 0 {
            return Ok(None);
        }
        self.count -= 1;
        let block = u32::from(self.free[self.count as usize]);
        self.out |= 1 << block;
        Ok(Some(block))
    }

    /// Puts a block back that was not sent after all.
    pub(super) fn put_back(&mut self, block: u32) {
        self.out &= !(1 << block);
        self.free[self.count as usize] = block as u8;
        self.count += 1;
    }

    /// How many blocks are free, as far as we have looked.
    pub fn free(&self) -> u32 {
        self.count
    }

    /// Whether the receiver has none, as far as we have looked.
    pub(super) fn are_all_here(&self) -> bool {
        self.out == 0
    }

    /// Takes back what was returned.
    ///
    /// # Errors
    /// As [`Pool::take`].
    pub fn collect(&mut self) -> Result<(), Error> {
        for _ in 0..self.returns.len() {
            let word = self.returns.see(self.next, Site::SeeReturned);
            let block = word & ((1 << LAP_SHIFT) - 1);
            if word != u32::from(lap(self.lap, 0)) << LAP_SHIFT | block {
                return Ok(());
            }
            if block >= self.returns.len() || self.out >> block & 1 == 0 {
                return Err(Error::PeerFault);
            }
            self.put_back(block);
            self.next += 1;
            if self.next == self.returns.len() {
                (self.next, self.lap) = (0, self.lap.wrapping_add(1));
            }
        }
        Ok(())
    }
}

/// The receiver's account of the sender's blocks, and the ring through which they go back.
#[derive(Debug)]
pub struct Returns<'m> {
    ring: OwnWords<'m>,
    /// What the sender sleeps for.
    waiting: PeerWords<'m>,
    /// A bit for each block in our hands.
    held: u32,
    next: u32,
    lap: u32,
}

impl<'m> Returns<'m> {
    pub(super) fn new(ring: OwnWords<'m>, waiting: PeerWords<'m>) -> Self {
        Returns { ring, waiting, held: 0, next: 0, lap: 0 }
    }

    /// A block has come.
    ///
    /// # Errors
    /// [`Error::PeerFault`] if there is no such block, or we have it already.
    pub fn hold(&mut self, block: u32) -> Result<(), Error> {
        if block >= self.ring.len() || self.held >> block & 1 != 0 {
            return Err(Error::PeerFault);
        }
        self.held |= 1 << block;
        Ok(())
    }

    /// Returns a block. Gives whether the sender sleeps for it and must be rung.
    ///
    /// # Errors
    /// [`Error::NotHeld`]; nothing was changed.
    pub fn give_back(&mut self, block: u32) -> Result<bool, Error> {
        if block >= self.ring.len() || self.held >> block & 1 == 0 {
            return Err(Error::NotHeld);
        }
        self.held &= !(1 << block);
        let word = u32::from(lap(self.lap, 0)) << LAP_SHIFT | block;
        self.ring.publish(self.next, word, Site::PublishReturned);
        self.next += 1;
        if self.next == self.ring.len() {
            (self.next, self.lap) = (0, self.lap.wrapping_add(1));
        }
        sync::look_fence(Site::LaneThenLook);
        Ok(self.waiting.look(0) & awaited::ROOM != 0)
    }

    /// Blocks in our hands, and how many there are.
    pub fn held(&self) -> (u32, u32) {
        (self.held.count_ones(), self.ring.len())
    }
}

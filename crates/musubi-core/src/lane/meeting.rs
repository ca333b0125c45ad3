//! How two nodes that map the same memory agree on a link in fresh memory, and notice that the other has begun anew.
//!
//! What you may rely on: a record comes from the incarnation that the link was reported for, and was written for this one.
//! What a node had committed before it ended or began anew can still be received, as long as [`Meeting::part`] has not
//! been called. Each turn takes a bounded number of steps, whatever the peer writes.
//!
//! How it works: each side has an *offer*, a number that names its part in one link. It repeats the other's offer once it
//! uses nothing of that side's section any more (`SEEN`), clears its own section once the other has done the same, and says
//! so (`READY`). So nobody clears what the other still reads, and nobody reads what is not clear. A new offer comes after
//! `SEEN` and `READY` were taken back: who sees the offer does not take what was said to an earlier one for an answer.
//!
//! What it does not do: notice a node that stands still. Only a new offer, or none, is an end.

use super::blocks::Returns;
use super::link::Link;
use crate::error::Error;
use crate::layout::{LINK_MAGIC, LINK_VERSION, LinkShape, link, record};
use crate::sync::Site;
use crate::words::{OwnWords, PeerWords};

/// One side of two nodes' meeting.
#[derive(Debug)]
pub struct Meeting<'m> {
    own: OwnWords<'m>,
    peer: PeerWords<'m>,
    shape: LinkShape,
    hash: u64,
    /// Our number, and the other's.
    numbers: [u16; 2],
    offer: u32,
    linked: Option<Linked<'m>>,
}

#[derive(Debug)]
struct Linked<'m> {
    link: Link<'m>,
    returns: Returns<'m>,
    /// The peer's offer.
    with: u32,
    incarnation: u32,
}

/// What a turn came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// Nothing has changed.
    Nothing,
    /// We have said something that the peer should hear: it is to be rung.
    Said,
    /// There is a link. The peer is to be rung.
    Linked {
        /// Tells this run of the peer from others.
        incarnation: u32,
    },
    /// The peer has ended the link. What it committed before can be received; then [`Meeting::part`] is due.
    Ended {
        /// The node has left or begun anew; otherwise it has given up this link only.
        gone: bool,
    },
}

impl<'m> Meeting<'m> {
    /// Makes a first offer in the own section, which a former incarnation may have left at any point.
    pub(super) fn begin(
        own: OwnWords<'m>,
        peer: PeerWords<'m>,
        shape: LinkShape,
        hash: u64,
        numbers: [u16; 2],
        incarnation: u32,
    ) -> Meeting<'m> {
        let former = own.get(link::OFFER);
        let mut meeting = Meeting { own, peer, shape, hash, numbers, offer: former, linked: None };
        meeting.leave();
        for (word, value) in meeting.header(numbers) {
            meeting.own.set(word, value);
        }
        meeting.own.set(link::INCARNATION, incarnation);
        meeting.offer_anew();
        meeting
    }

    /// What the header of a section says that belongs to the first of these numbers.
    fn header(&self, [of, with]: [u16; 2]) -> [(u32, u32); 9] {
        [
            (link::MAGIC, LINK_MAGIC),
            (link::VERSION, LINK_VERSION),
            (link::HASH_LOW, self.hash as u32),
            (link::HASH_HIGH, (self.hash >> 32) as u32),
            (link::NODE, of.into()),
            (link::PEER, with.into()),
            (link::SLOTS, self.shape.slots),
            (link::BLOCKS, self.shape.blocks),
            (link::BLOCK_BYTES, self.shape.block_bytes),
        ]
    }

    /// What we said to the peer's offer before holds no more; then a new offer of ours.
    fn offer_anew(&mut self) {
        self.own.set(link::SEEN, 0);
        self.own.set(link::READY, 0);
        self.offer = self.offer.wrapping_add(1) | 1;
        self.own.publish(link::OFFER, self.offer, Site::PublishRoot);
    }

    /// Number of the other node.
    pub fn peer(&self) -> u16 {
        self.numbers[1]
    }

    /// The link, if there is one.
    #[inline(always)]
    pub fn link(&mut self) -> Option<(&mut Link<'m>, &mut Returns<'m>)> {
        self.linked.as_mut().map(|linked| (&mut linked.link, &mut linked.returns))
    }

    /// Whether there is a link.
    pub fn is_linked(&self) -> bool {
        self.linked.is_some()
    }

    /// Whether the other node offers anything.
    pub fn is_peer_there(&self) -> bool {
        self.offered() & 1 != 0 && self.is_right()
    }

    /// Whether the other node is there and has another description, version or shape.
    pub fn is_refused(&self) -> bool {
        self.offered() & 1 != 0 && !self.is_right()
    }

    fn offered(&self) -> u32 {
        self.peer.see(link::OFFER, Site::SeeRoot)
    }

    fn is_right(&self) -> bool {
        let [me, other] = self.numbers;
        self.header([other, me]).into_iter().all(|(word, value)| self.peer.get(word) == value)
    }

    /// Looks what the other side has said, and goes on as far as that allows.
    #[inline]
    pub fn turn(&mut self) -> Turn {
        let theirs = self.offered();
        match &self.linked {
            Some(linked) if linked.with == theirs => Turn::Nothing,
            Some(linked) => {
                let gone = theirs & 1 == 0 || self.peer.get(link::INCARNATION) != linked.incarnation;
                Turn::Ended { gone }
            }
            None if theirs & 1 != 0 && self.is_right() => self.approach(theirs),
            None => Turn::Nothing,
        }
    }

    #[cold]
    fn approach(&mut self, theirs: u32) -> Turn {
        let mut turn = Turn::Nothing;
        if self.own.get(link::SEEN) != theirs {
            // Nothing of an earlier link is left: there is none.
            self.own.publish(link::SEEN, theirs, Site::PublishReleased);
            turn = Turn::Said;
        }
        if self.own.get(link::READY) != theirs {
            if self.peer.see(link::SEEN, Site::SeeReleased) != self.offer {
                return turn;
            }
            self.clear();
            self.own.publish(link::READY, theirs, Site::PublishRoot);
            turn = Turn::Said;
        }
        if self.peer.see(link::READY, Site::SeeRoot) != self.offer {
            return turn;
        }
        let incarnation = self.peer.get(link::INCARNATION);
        let own = self.own.part(0, self.own.len());
        // The shape is sound and the views are as long as it says: their maker has seen to that.
        let Ok((link, returns)) = Link::new(own, self.peer, self.shape) else { return turn };
        self.linked = Some(Linked { link, returns, with: theirs, incarnation });
        Turn::Linked { incarnation }
    }

    /// Makes our section what fresh memory is, as far as anybody reads it.
    fn clear(&self) {
        for slot in 0..self.shape.slots {
            self.own.set(self.shape.slots_at() + slot * record::WORDS + record::TAG, 0);
        }
        for block in 0..self.shape.blocks {
            self.own.set(link::RETURNS + block, 0);
        }
        self.own.set(link::TAKEN, 0);
        self.own.set(link::WAITING, 0);
    }

    /// Whether [`Meeting::turn`] would do something, or the link has something. Reads only.
    pub fn has_news(&self) -> bool {
        let theirs = self.offered();
        match &self.linked {
            Some(linked) => linked.with != theirs || linked.link.is_ready(),
            None if theirs & 1 == 0 || !self.is_right() => false,
            None if self.own.get(link::SEEN) != theirs => true,
            None if self.own.get(link::READY) != theirs => self.peer.get(link::SEEN) == self.offer,
            None => self.peer.get(link::READY) == self.offer,
        }
    }

    /// Ends the link from our side, or takes note of its end; from then on another one is offered. The peer is to be rung.
    pub fn part(&mut self) {
        self.linked = None;
        self.offer_anew();
    }

    /// Says that this node offers nothing any more. The peer is to be rung.
    pub fn leave(&mut self) {
        self.linked = None;
        if self.offer & 1 != 0 {
            self.offer = self.offer.wrapping_add(1);
        }
        self.own.publish(link::OFFER, self.offer, Site::PublishRoot);
    }

    /// Gives back the block of a message after copying it. Gives whether the peer sleeps for it and is to be rung.
    ///
    /// # Errors
    /// [`Error::PeerFault`] if the peer named a block that it had sent already.
    pub fn take_block(&mut self, block: u32, into: &mut [u8]) -> Result<bool, Error> {
        let Some((link, returns)) = self.link() else { return Err(Error::NotHeld) };
        returns.hold(block)?;
        link.copy_block(block, into);
        returns.give_back(block)
    }
}

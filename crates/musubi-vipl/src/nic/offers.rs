//! Large parts of messages that are not copied into blocks: the receiver fetches them from where they lie.
//!
//! What you may rely on: a receiver fetches from peers that the description trusts only, at most [`PIECE_BYTES_MAX`] at a time,
//! into places that it has checked as always; and it takes a message for whole only if the sender's connection stood after the
//! last byte was fetched, so that what it has is what was posted. A descriptor of which a part was offered completes when
//! the receiver has it.
//!
//! How it works: when a link comes up, each side names a word of its memory ([`NicFrame::Reach`]). Whoever trusts the other and
//! can read that word there says so ([`NicFrame::Reached`]), and is offered large parts from then on: address, length, and the
//! *lease* of the connection ([`Lease`](crate::engine::Lease)), which is void before the sender's program hears of an end. The
//! receiver reads the bytes, then the lease.
//!
//! A part is offered only if nothing else is posted and the peer has nothing else of ours to read: fetching is the fast way for one message (one copy
//! instead of two, one after the other), blocks are for a stream, where both sides copy at the same time.
//!
//! What it does not do: offer answers to reads, or parts that lie in several places; those are copied, as to everybody else.

use alloc::boxed::Box;
use alloc::sync::Arc;
use core::sync::atomic::{Ordering, fence};

use musubi_transport::Priority;
use musubi_transport::links::{Block, Links, Reach};

use super::NicState;
use super::carriage::{PIECE_BYTES_MAX, SaidPart, ViWire};
use super::frames::Came;
use crate::address::NicNumber;
use crate::engine::{Handed, LeaseWords, Places};
use crate::wire::{NicFrame, Offer, ViName};

/// Fewer bytes are copied: to have them fetched costs two calls of the kernel, and a frame that says so.
pub(super) const OFFER_BYTES_MIN: u32 = 8 * 1024;

/// A part that was offered, and the way to it.
#[derive(Clone, Debug)]
pub(super) struct Offered {
    reach: Arc<dyn Reach>,
    address: u64,
    pub(super) bytes: u32,
}

impl Offered {
    /// Fetches from `offset` on. False if it is not to be had.
    pub(super) fn fetch(&self, offset: u64, into: &mut [u8]) -> bool {
        self.address.checked_add(offset).is_some_and(|address| self.reach.fetch(address, into))
    }
}

/// The lease of a peer's connection, and the way to it.
#[derive(Debug)]
pub(super) struct TheirLease {
    pub(super) reach: Arc<dyn Reach>,
    pub(super) words: LeaseWords,
}

impl TheirLease {
    /// Whether it stands, after everything that was fetched before.
    pub(super) fn stands(&self) -> bool {
        stands(&*self.reach, self.words)
    }
}

/// Whether the words of a lease are what they were said to be, after everything that was fetched before.
fn stands(reach: &dyn Reach, lease: LeaseWords) -> bool {
    let mut value = [0; 8];
    // The lease ends before the bytes may change: to be seen so, they are read before it.
    fence(Ordering::SeqCst);
    reach.fetch(lease.address, &mut value) && value == lease.value
}

impl<B: Block> NicState<B> {
    /// The system's NICs are known now: does what was not done for links that came up before.
    pub fn see_links(&mut self, links: &mut impl Links<Block = B>) {
        for peer in 0..self.carriage.peers.len() as u16 {
            if self.carriage.peer(peer).is_linked {
                self.begin_grants(peer, links);
                self.tell_reach(peer, links);
                self.try_reach(peer, links);
            }
        }
    }

    /// Says what a peer is to read if it would fetch from this process, which it may if this NIC's are trusted.
    pub(super) fn tell_reach(&mut self, peer: u16, links: &mut impl Links<Block = B>) {
        let node = self.carriage.peer(peer).node;
        if self.directory.trusts(self.nic) && links.reach(node).is_some() {
            let frame = NicFrame::Reach(self.carriage.lease.words());
            self.say(peer, &frame, (ViName::default(), ViName::default()), Priority::LEAST_URGENT, links);
        }
    }

    /// A peer says what to read there.
    pub(super) fn reach_came(&mut self, peer: u16, lease: LeaseWords, links: &mut impl Links<Block = B>) {
        self.carriage.peer(peer).readable = Some(lease);
        self.try_reach(peer, links);
    }

    fn try_reach(&mut self, peer: u16, links: &mut impl Links<Block = B>) {
        let Some(lease) = self.carriage.peer(peer).readable else { return };
        let node = self.carriage.peer(peer).node;
        let is_trusted = NicNumber::of_node(node).is_some_and(|(nic, _)| self.directory.trusts(nic));
        let Some(reach) = links.reach(node).filter(|_| is_trusted) else { return };
        if stands(&*reach, lease) {
            self.carriage.peer(peer).reach = Some(reach);
            let nobody = (ViName::default(), ViName::default());
            self.say(peer, &NicFrame::Reached, nobody, Priority::LEAST_URGENT, links);
        }
    }

    /// What a peer offers, if it may.
    pub(super) fn offered(&mut self, peer: u16, came: &Came<'_, B>) -> Option<(Offered, Box<TheirLease>)> {
        let mut bytes = [0; crate::wire::REQUEST_BYTES_MAX];
        let Offer { lease, address, bytes } = Offer::of_bytes(NicState::told(came, &mut bytes)?)?;
        let reach = self.carriage.peer(peer).reach.clone().filter(|_| (1..=PIECE_BYTES_MAX).contains(&bytes))?;
        let theirs = TheirLease { reach: Arc::clone(&reach), words: lease };
        Some((Offered { reach, address, bytes }, Box::new(theirs)))
    }
}

impl<L: Links> ViWire<'_, L> {
    /// Whether the peer is to fetch a part: the first of a message that is long enough.
    #[inline]
    pub(super) fn offers(&mut self, (bytes, offset): (u32, u32), payload: &Places<'_>) -> bool {
        bytes >= self.carriage.offer_bytes_min
            && offset == 0
            && self.is_alone
            && !self.connection.is_bounded
            && self.may_offer(payload)
    }

    #[inline(never)]
    fn may_offer(&mut self, payload: &Places<'_>) -> bool {
        let mut places = payload.clone();
        let is_one =
            places.next().is_some_and(|place| place.bytes >= self.carriage.offer_bytes_min) && places.next().is_none();
        is_one && self.would_fetch_now()
    }

    /// Whether the peer fetches what it is offered, and has nothing else to copy now: in a stream both sides copy at the same
    /// time, which is faster than one alone.
    fn would_fetch_now(&mut self) -> bool {
        let peer = self.carriage.peer(self.connection.peer);
        peer.fetches && !self.connection.has_offered && self.links.is_drained(peer.node)
    }

    /// Offers a part that lies in one place.
    #[inline(never)]
    pub(super) fn offer(&mut self, frame: &NicFrame, mut payload: Places<'_>) -> Handed {
        let Some(place) = payload.next() else { return self.wait() };
        let &mut super::Connection { there, class, peer, here, lease, .. } = self.connection;
        let offer = Offer { lease, address: place.address, bytes: place.bytes }.to_bytes();
        let header = frame.header(there, class, offer.len() as u32);
        if self.is_behind(SaidPart::Posted) {
            return self.wait();
        }
        let sent = self.links.send(self.carriage.peer(peer).node, &header, &offer);
        match self.carriage.peer(peer).note(class, sent, here) {
            Handed::Full => self.wait(),
            Handed::Accepted | Handed::Numbered(_) | Handed::Offered => {
                self.connection.has_offered = true;
                Handed::Offered
            }
        }
    }
}

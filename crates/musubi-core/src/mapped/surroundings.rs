//! Where a participant stands, and how it sees its peers.
//!
//! What you may rely on: [`Surroundings::fate`] and the other looks at peers take a constant number of loads; whatever a peer
//! has written, the places that are read are those of the plan.
//!
//! How it works: each peer has two banks. While an end or an incarnation of ours uses a peer's bank, [`Peer`] counts it; from that
//! follows what our root says about which banks that peer may take anew (`watch.rs`).

use super::clock::Offset;
use super::latch::Latch;
use super::memory::Memory;
use super::sights::Watch;
use super::users::Users;
use super::{Host, handshake};
use crate::error::Error;
use crate::layout::{self, Part, header, root};
use crate::plan::Plan;
use crate::port::{Clock, Coherence, Doorbell};
use crate::sync::{AtomicU32, Ordering, Site};
use crate::words::{OwnWords, PeerWords};

/// What we know of a participant, without a latch.
#[derive(Debug)]
pub(super) struct Peer {
    /// Byte at which its slot begins.
    slot_offset: u64,
    /// Bytes of its sections.
    section_bytes: u32,
    /// Epoch of the incarnation that the last watch took note of; 0: none.
    pub known: AtomicU32,
    /// Epoch of the incarnation whose heartbeat stands still; 0: none.
    pub stalled: AtomicU32,
    /// How many ends and incarnations of ours use each bank.
    uses: [AtomicU32; 2],
}

impl Peer {
    /// What is known of a participant beforehand: its place, which is computed once, since ends look there often.
    pub fn of(plan: &Plan<'_>, participant: u16) -> Option<Peer> {
        let none = || AtomicU32::new(0);
        Some(Peer {
            slot_offset: layout::slot_offset(plan, participant)?,
            section_bytes: layout::section_bytes(plan, plan.domain_of(participant)?)?,
            known: none(),
            stalled: none(),
            uses: [none(), none()],
        })
    }

    fn bank(&self, epoch: u32) -> &AtomicU32 {
        &self.uses[(epoch & 1) as usize]
    }

    /// Whether nothing of ours uses the bank of this epoch.
    pub fn is_unused(&self, epoch: u32) -> bool {
        self.bank(epoch).load(Ordering::SeqCst) == 0
    }
}

/// What became of an incarnation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// It is attached. It may be stalled.
    Attached,
    /// It will never store again. `intact` says whether its section is still what it left.
    Gone { intact: bool },
}

/// Where a participant stands: its own memory, what carries it, and its peers.
#[derive(Debug)]
pub(super) struct Surroundings<'m, B: Host> {
    pub plan: &'m Plan<'m>,
    pub host: &'m B,
    pub memory: Memory<'m>,
    pub me: u16,
    pub domain: u16,
    pub epoch: u32,
    pub root: OwnWords<'m>,
    pub section: OwnWords<'m>,
    pub users: Users<'m>,
    /// Rings heard so far.
    pub rung: AtomicU32,
    pub offset: Offset,
    pub peers: &'m [Peer],
    pub watch: Latch<Watch<'m>>,
}

impl<'m, B: Host> Surroundings<'m, B> {
    pub fn identity(&self) -> (u16, u32) {
        (self.me, self.epoch)
    }

    pub fn peer(&self, participant: u16) -> Option<&'m Peer> {
        self.peers.get(usize::from(participant))
    }

    /// Numbers of a domain's participants.
    pub fn participants_of(&self, domain: u16) -> core::ops::Range<u16> {
        let first = self.plan.first_participant(domain);
        let count = self.plan.domains.get(usize::from(domain)).map_or(0, |domain| domain.participants);
        first..first + count
    }

    /// A participant's root page.
    pub fn root_of(&self, participant: u16) -> Option<PeerWords<'m>> {
        Some(self.memory.peer(self.peer(participant)?.slot_offset, root::WORDS))
    }

    /// The section of a participant's incarnation.
    pub fn section_of(&self, participant: u16, epoch: u32) -> Option<PeerWords<'m>> {
        let Peer { slot_offset, section_bytes, .. } = *self.peer(participant)?;
        let bank = layout::bank(section_bytes, epoch);
        Some(self.memory.peer(slot_offset + bank, section_bytes / 4))
    }

    /// A part of the section of a participant's incarnation, if the section says that it is that one's.
    pub fn part_of(&self, participant: u16, epoch: u32, wanted: Part) -> Option<PeerWords<'m>> {
        let section = self.section_of(participant, epoch)?;
        if handshake::signed(section) != epoch || section.get(header::MAGIC) != layout::MAGIC {
            return None;
        }
        let (first, words) = layout::place(self.plan, self.plan.domain_of(participant)?, wanted)?;
        Some(section.part(first, words))
    }

    /// A part of our own section.
    pub fn own_part(&self, wanted: Part) -> Option<OwnWords<'m>> {
        let (first, words) = layout::place(self.plan, self.domain, wanted)?;
        Some(self.section.part(first, words))
    }

    /// The epoch in a participant's root, if the root is of this plan; else 0.
    pub fn epoch_of(&self, participant: u16) -> u32 {
        let Some(root) = self.root_of(participant) else { return 0 };
        let epoch = root.see(root::EPOCH, Site::SeeRoot);
        if is_root_of(root, self.plan, participant) { epoch } else { 0 }
    }

    /// Whether this participant is attached as far as its root says.
    pub fn is_attached(&self, participant: u16) -> bool {
        let epoch = self.epoch_of(participant);
        epoch != 0 && self.fate(participant, epoch) == Fate::Attached
    }

    /// What became of an incarnation that was attached when we saw it first.
    pub fn fate(&self, participant: u16, epoch: u32) -> Fate {
        let Some(root) = self.root_of(participant) else { return Fate::Gone { intact: false } };
        if root.see(root::EPOCH, Site::SeeRoot) == epoch {
            return if root.see(root::LEFT, Site::SeeRoot) != epoch {
                Fate::Attached
            } else {
                Fate::Gone { intact: true }
            };
        }
        let section = self.section_of(participant, epoch);
        Fate::Gone { intact: section.is_some_and(|section| handshake::signed(section) == epoch) }
    }

    /// Whether the heartbeat of an incarnation stands still.
    pub fn is_stalled(&self, participant: u16, epoch: u32) -> bool {
        self.peer(participant).is_some_and(|peer| peer.stalled.load(Ordering::Relaxed) == epoch)
    }

    /// Begins to use the section of the incarnation that a participant's root names and that was taken note of.
    pub fn use_present(&self, participant: u16, epoch: u32) -> bool {
        let (Some(peer), Some(root)) = (self.peer(participant), self.root_of(participant)) else { return false };
        peer.bank(epoch).fetch_add(1, Ordering::SeqCst);
        let is_present = peer.known.load(Ordering::SeqCst) == epoch && root.look(root::EPOCH) == epoch;
        if !is_present {
            self.end_use(participant, epoch);
        }
        is_present
    }

    /// Begins to use the section of the predecessor of `present`, if our root has not released it yet.
    ///
    /// # Errors
    /// [`Error::NotReady`] while somebody else has the watch.
    pub fn use_predecessor(&self, participant: u16, epoch: u32, present: u32) -> Result<bool, Error> {
        let Some(peer) = self.peer(participant) else { return Ok(false) };
        // Under the watch's latch, so that it does not say meanwhile that we hold nothing.
        let _watch = self.watch.try_lock().ok_or(Error::NotReady)?;
        let is_kept = peer.known.load(Ordering::SeqCst) == present
            && handshake::keeps_predecessor(&self.root, participant, present);
        if is_kept {
            peer.bank(epoch).fetch_add(1, Ordering::SeqCst);
        }
        Ok(is_kept)
    }

    /// Ends a use.
    pub fn end_use(&self, participant: u16, epoch: u32) {
        if let Some(peer) = self.peer(participant) {
            peer.bank(epoch).fetch_sub(1, Ordering::SeqCst);
        }
    }

    /// Opens an end for us alone: says so first and looks at the others of our domain then, so that of two at most one
    /// succeeds (Dekker's pattern).
    pub fn claim(&self, words: &OwnWords<'_>, end: Part, open_word: u32) -> Result<(), Error> {
        words.publish_then_look(open_word, 1, Site::TicketThenLook);
        if self.sibling_has(end, open_word) {
            words.set(open_word, 0);
            return Err(Error::InUse);
        }
        Ok(())
    }

    /// Whether another participant of our domain has an end of the channel open.
    fn sibling_has(&self, end: Part, open_word: u32) -> bool {
        self.participants_of(self.domain).filter(|&other| other != self.me).any(|other| {
            let epoch = self.epoch_of(other);
            let part = self.is_attached(other).then(|| self.part_of(other, epoch, end)).flatten();
            part.is_some_and(|part| part.look(open_word) == 1)
        })
    }

    pub fn doorbell(&self, participant: u16) -> Ring<'m, B> {
        Ring { host: self.host, participant }
    }

    /// Makes the participants that have a channel with us look.
    pub fn ring_all(&self) {
        for participant in (0..self.plan.participants()).filter(|&other| other != self.me) {
            let domain = self.plan.domain_of(participant).unwrap_or(self.domain);
            if self.plan.linked(self.domain, domain) && self.is_attached(participant) {
                self.host.ring(participant);
            }
        }
    }
}

impl<B: Host> Clock for Surroundings<'_, B> {
    /// The time that all participants have in common, as far as this host knows it.
    fn now_ns(&self) -> u64 {
        let now_ns = self.host.now_ns();
        if self.host.has_common_clock() { now_ns } else { now_ns.wrapping_add(self.offset.get()) }
    }
}

/// Whether a root page was made from this plan for this participant.
pub(super) fn is_root_of(words: PeerWords<'_>, plan: &Plan<'_>, participant: u16) -> bool {
    words.get(root::MAGIC) == layout::ROOT_MAGIC
        && words.get(root::VERSION) == layout::VERSION
        && words.get(root::PLAN_LOW) == plan.hash as u32
        && words.get(root::PLAN_HIGH) == (plan.hash >> 32) as u32
        && words.get(root::PARTICIPANT) == u32::from(participant)
}

/// How far an epoch goes on after memory was lost: further than incarnations follow one another before a peer says so.
const COLD_STEP: u32 = 257;

/// The epoch after this one: never 0, and always of the other bank.
pub(super) const fn next_epoch(epoch: u32) -> u32 {
    epoch_after(epoch, 1)
}

/// The epoch after the newest one that peers speak of, where our own memory has forgotten which came since: never 0, and
/// always of the other bank.
pub(super) const fn cold_epoch(epoch: u32) -> u32 {
    epoch_after(epoch, COLD_STEP)
}

/// `step` is odd, so that it leads to the other bank.
const fn epoch_after(epoch: u32, step: u32) -> u32 {
    match epoch.wrapping_add(step) {
        0 => 2,
        next => next,
    }
}

/// The host's cache operations for the core's ends.
#[derive(Debug)]
pub(super) struct Care<'m, B>(pub &'m B);

impl<B: Host> Coherence for Care<'_, B> {
    const MANAGES_CACHES: bool = B::MANAGES_CACHES;
    const HINTS: bool = B::HINTS;

    fn publish(&self, from: *const u8, bytes: u32) {
        self.0.publish(from, bytes);
    }
    fn acquire(&self, from: *const u8, bytes: u32) {
        self.0.acquire(from, bytes);
    }
    fn intend_write(&self, line: *const u8) {
        self.0.intend_write(line);
    }
    fn intend_read(&self, line: *const u8) {
        self.0.intend_read(line);
    }
}

/// Rings one participant.
#[derive(Debug)]
pub(super) struct Ring<'m, B> {
    host: &'m B,
    participant: u16,
}

impl<B: Host> Doorbell for Ring<'_, B> {
    fn ring(&self, bell: &AtomicU32, _: u32) {
        // The latch of the end makes us the only one that writes the word.
        bell.store(bell.load(Ordering::Relaxed).wrapping_add(1), Ordering::Release);
        self.host.ring(self.participant);
    }
}

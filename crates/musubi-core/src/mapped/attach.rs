//! Attaching: taking a bank for a new incarnation, and saying so in the root.
//!
//! What you may rely on: the epoch is another than those of all incarnations that a peer may still know, and of the other
//! bank than the former one's. Waiting for peers to release the bank is bounded by [`Setup::release_wait_ns`]; a bank
//! that is taken without their word is counted in the root's `FORCED`. Whatever peers wrote, attaching ends.
//!
//! How it works: the root is first marked, so that peers see that the former incarnation is gone, then looked at is what
//! they still use. A root of another plan, or garbage, is a cold start: its epoch says nothing, so the new one follows
//! on what the peers know of us, or is the one that the host gives.

use super::clock::Offset;
use super::latch::Latch;
use super::memory::Memory;
use super::records::{INCARNATIONS, ReceivingRecord, SegmentRecord, SendingRecord};
use super::shared::Shared;
use super::sights::{Sight, Watch};
use super::storage::{Arena, StorageLine};
use super::surroundings::{Peer, Surroundings, cold_epoch, is_root_of, next_epoch};
use super::{Host, handshake, stamp};
use crate::error::Error;
use crate::fifo::Entry;
use crate::layout::{self, Part, header, root, state};
use crate::lock::Contender;
use crate::plan::{Fifo, LockKind, Plan, Role};
use crate::sync::{AtomicU32, Site};
use crate::words::OwnWords;

/// How long attaching rests between two looks at who has released its bank, in nanoseconds.
const REST_NS: u64 = 200_000;
/// Heartbeat periods that attaching waits for it, unless told otherwise.
const RELEASE_BEATS: u64 = 8;

/// What a participant attaches with.
#[derive(Clone, Copy, Debug)]
pub struct Setup<'m, B: Host> {
    /// The system.
    pub plan: &'m Plan<'m>,
    /// Our global number in it.
    pub participant: u16,
    /// What carries us.
    pub host: &'m B,
    /// Where the memory is.
    pub memory: Memory<'m>,
    /// Private memory, [`super::storage_lines`] lines of it or more.
    pub storage: &'m [StorageLine],
    /// The first epoch in cold memory, better another one after each reset; 0 counts as 1.
    pub first_epoch: u32,
    /// How long attaching waits for peers to release the bank, in nanoseconds.
    pub release_wait_ns: u64,
}

impl<'m, B: Host> Setup<'m, B> {
    /// The usual: first epoch 1, and eight heartbeat periods of patience.
    pub fn new(
        plan: &'m Plan<'m>,
        participant: u16,
        host: &'m B,
        memory: Memory<'m>,
        storage: &'m [StorageLine],
    ) -> Self {
        let release_wait_ns = plan.liveness.heartbeat_ns.saturating_mul(RELEASE_BEATS);
        Setup { plan, participant, host, memory, storage, first_epoch: 1, release_wait_ns }
    }

    /// Attaches; see [`super::Participant::attach`].
    pub(super) fn attach(self) -> Result<&'m Shared<'m, B>, Error> {
        self.plan.check()?;
        let domain = self.plan.domain_of(self.participant).ok_or(Error::Plan)?;
        let section_bytes = layout::section_bytes(self.plan, domain).ok_or(Error::Plan)?;
        let mut arena = Arena::claim(self.storage).ok_or(Error::InUse)?;
        let users = arena.users();
        let root = self.memory.own(0, root::WORDS);
        let (epoch, is_cold) = self.leave_former(&root);
        let bank = layout::bank_offset(self.plan, domain, epoch).ok_or(Error::Plan)?;
        let section = self.memory.own((bank / 4) as u32, section_bytes / 4);
        self.begin_section(&section, domain, epoch);
        let is_master = self.plan.domains[usize::from(domain)].role == Role::Master;
        // The first participant of the Master only; others may come while the memory is in use.
        if is_cold && is_master && self.participant == self.plan.first_participant(domain) {
            self.begin_segments(&root, epoch);
        }
        let shared = self.share(&mut arena, (domain, epoch), root, section).inspect_err(|_| users.end())?;
        self.publish(&shared.here.root, epoch);
        shared.here.note_peers();
        shared.here.ring_all();
        Ok(shared)
    }

    /// Says that the former incarnation is gone and waits until its bank but one is released. Gives the new epoch, and
    /// whether the memory was cold.
    fn leave_former(&self, root: &OwnWords<'m>) -> (u32, bool) {
        let written = root.get(root::EPOCH);
        let is_cold = written == 0 || !is_root_of(root.as_peer(), self.plan, self.participant);
        if is_cold {
            root.publish(root::EPOCH, 0, Site::PublishRoot);
            (0..root::WORDS).for_each(|word| root.set(word, 0));
        }
        let former = if is_cold { self.known_to_peers() } else { written };
        if former == 0 {
            return (self.first_epoch.max(1), true);
        }
        handshake::mark_left(root, former);
        (0..self.plan.participants()).for_each(|peer| self.host.ring(peer));
        if !self.wait_for_release(former) {
            root.count_one(root::FORCED);
        }
        (if is_cold { cold_epoch(former) } else { next_epoch(former) }, is_cold)
    }

    /// What a peer has of us: the newest of our epochs of whose predecessors it holds nothing; `None` without a peer.
    fn released_by(&self, peer: u16) -> Option<u32> {
        let offset = layout::slot_offset(self.plan, peer).filter(|_| peer != self.participant)?;
        let words = self.memory.peer(offset, root::WORDS);
        let epoch = words.see(root::EPOCH, Site::SeeRoot);
        let lives = epoch != 0 && is_root_of(words, self.plan, peer) && words.see(root::LEFT, Site::SeeRoot) != epoch;
        lives.then(|| handshake::released_by(words, self.participant))
    }

    /// The epoch that peers still know of us although our root has forgotten it; 0: none.
    fn known_to_peers(&self) -> u32 {
        (0..self.plan.participants()).filter_map(|peer| self.released_by(peer)).max().unwrap_or(0)
    }

    /// Waits until nobody holds anything of the predecessors of `former`; false if that took too long.
    fn wait_for_release(&self, former: u32) -> bool {
        let end_ns = self.host.now_ns().saturating_add(self.release_wait_ns);
        loop {
            let is_released = |released| released == 0 || released == former;
            if (0..self.plan.participants()).filter_map(|peer| self.released_by(peer)).all(is_released) {
                return true;
            }
            let now_ns = self.host.now_ns();
            if now_ns >= end_ns {
                return false;
            }
            self.host.rest(end_ns.min(now_ns.saturating_add(REST_NS)), &|| true);
        }
    }

    /// Zeroes the bank and writes the section's header.
    fn begin_section(&self, section: &OwnWords<'m>, domain: u16, epoch: u32) {
        handshake::clear(section);
        let now_ns = self.host.now_ns();
        section.set(header::MAGIC, layout::MAGIC);
        section.set(header::VERSION, layout::VERSION);
        section.set(header::PLAN_LOW, self.plan.hash as u32);
        section.set(header::PLAN_HIGH, (self.plan.hash >> 32) as u32);
        section.set(header::SECTION_BYTES, section.len() * 4);
        section.set(header::PARTICIPANT, u32::from(self.participant));
        section.set(header::DOMAIN, u32::from(domain));
        section.set(header::STATE, state::ATTACHED);
        section.set(header::START_LOW, now_ns as u32);
        section.set(header::START_HIGH, (now_ns >> 32) as u32);
        handshake::sign(section, epoch);
    }

    /// Zeroes the segments.
    fn begin_segments(&self, root: &OwnWords<'m>, epoch: u32) {
        let first = layout::segment_offset(self.plan, 0).unwrap_or(0);
        for (smem, channel) in (0u16..).zip(self.plan.smems) {
            let (Some(begin), Some(bytes)) =
                (layout::segment_offset(self.plan, smem), layout::segment_bytes(channel.bytes))
            else {
                continue;
            };
            let words = self.memory.segment(begin - first, bytes / 4);
            (0..words.len()).for_each(|word| words.set(word, 0));
        }
        root.publish(root::SEGMENTS, epoch, Site::PublishRoot);
    }

    /// Says in the root who we are.
    fn publish(&self, root: &OwnWords<'m>, epoch: u32) {
        (0..self.plan.participants()).for_each(|peer| root.set(root::RELEASED + u32::from(peer), 0));
        root.set(root::VERSION, layout::VERSION);
        root.set(root::PLAN_LOW, self.plan.hash as u32);
        root.set(root::PLAN_HIGH, (self.plan.hash >> 32) as u32);
        root.set(root::PARTICIPANT, u32::from(self.participant));
        root.set(root::MAGIC, layout::ROOT_MAGIC);
        stamp::publish(&root.part(root::BEAT, stamp::WORDS), self.host.now_ns());
        handshake::show(root, epoch);
    }

    /// Makes what the handles share, in the storage.
    fn share(
        &self,
        arena: &mut Arena<'m>,
        (domain, epoch): (u16, u32),
        root: OwnWords<'m>,
        section: OwnWords<'m>,
    ) -> Result<&'m Shared<'m, B>, Error> {
        let participants = usize::from(self.plan.participants());
        let parts = Parts { setup: self, me: (self.participant, epoch), domain, section: &section };
        let (sending, receiving) = (parts.sending(arena)?, parts.receiving(arena)?);
        let segments = parts.segments(arena)?;
        let mut peers = arena.row(participants).ok_or(Error::Plan)?;
        for participant in 0..self.plan.participants() {
            peers.push(Peer::of(self.plan, participant).ok_or(Error::Plan)?).ok_or(Error::Plan)?;
        }
        let peers = peers.finish();
        let sights = arena.fill(participants, Sight::default).ok_or(Error::Plan)?;
        let mut row = arena.row(1).ok_or(Error::Plan)?;
        let here = Surroundings {
            plan: self.plan,
            host: self.host,
            memory: self.memory,
            me: self.participant,
            domain,
            epoch,
            root,
            section,
            users: arena.users(),
            rung: AtomicU32::new(0),
            offset: Offset::new(),
            peers,
            watch: Latch::new(Watch::new(sights, self.host.now_ns())),
        };
        row.push(Shared { here, sending, receiving, segments }).ok_or(Error::Plan)?;
        row.finish().first().ok_or(Error::Plan)
    }
}

/// The ends and segments of a participant, as they are made.
struct Parts<'s, 'm, B: Host> {
    setup: &'s Setup<'m, B>,
    me: (u16, u32),
    domain: u16,
    section: &'s OwnWords<'m>,
}

impl<'m, B: Host> Parts<'_, 'm, B> {
    fn words(&self, part: Part) -> Result<OwnWords<'m>, Error> {
        let (first, words) = layout::place(self.setup.plan, self.domain, part).ok_or(Error::Plan)?;
        Ok(self.section.part(first, words))
    }

    fn fifos(&self) -> impl Iterator<Item = (u16, &'m Fifo<'m>)> + Clone + use<'m, B> {
        (0u16..).zip(self.setup.plan.fifos)
    }

    fn sending(&self, arena: &mut Arena<'m>) -> Result<&'m [SendingRecord<'m, B>], Error> {
        let ours = self.fifos().filter(|(_, channel)| channel.from == self.domain);
        let mut row = arena.row(ours.clone().count()).ok_or(Error::Plan)?;
        for (fifo, channel) in ours {
            let entries = arena.fill(channel.blocks as usize, || Entry::NEW).ok_or(Error::Plan)?;
            let words = [self.words(Part::Tx(fifo))?, self.words(Part::Tx(fifo))?];
            let record = SendingRecord::new((fifo, channel), words, self.me, entries, self.setup.host)?;
            row.push(record).ok_or(Error::Plan)?;
        }
        Ok(row.finish())
    }

    fn receiving(&self, arena: &mut Arena<'m>) -> Result<&'m [ReceivingRecord<'m, B>], Error> {
        let ours = self.fifos().filter(|(_, channel)| channel.to == self.domain);
        let mut row = arena.row(ours.clone().count()).ok_or(Error::Plan)?;
        for (fifo, channel) in ours {
            let sender = self.setup.plan.domains.get(usize::from(channel.from)).ok_or(Error::Plan)?;
            let mut held = || arena.fill(channel.blocks.div_ceil(32) as usize, || 0).ok_or(Error::Plan);
            let held: [_; INCARNATIONS] = [held()?, held()?, held()?];
            let done = arena.fill(usize::from(sender.participants), || 0).ok_or(Error::Plan)?;
            let words = self.words(Part::Rx(fifo))?;
            row.push(ReceivingRecord::new((fifo, channel), words, sender.trust, held, done)).ok_or(Error::Plan)?;
        }
        Ok(row.finish())
    }

    fn segments(&self, arena: &mut Arena<'m>) -> Result<&'m [SegmentRecord<'m>], Error> {
        let (plan, me) = (self.setup.plan, self.me.0);
        let ours = (0u16..)
            .zip(plan.smems)
            .filter(|(_, channel)| channel.domains.contains(&self.domain) && matches!(channel.lock, LockKind::Bakery));
        let mut row = arena.row(ours.clone().count()).ok_or(Error::Plan)?;
        for (smem, _) in ours {
            let line = self.words(Part::Ticket(smem))?;
            let nobody = Contender { participant: me, line: line.as_peer(), alive: false };
            let others = arena.fill(usize::from(plan.participants()), || nobody).ok_or(Error::Plan)?;
            row.push(SegmentRecord::new(smem, me, line, others)).ok_or(Error::Plan)?;
        }
        Ok(row.finish())
    }
}

//! The memory of SMEM channels: one memfd a channel that all members map writable.
//!
//! What you may rely on: the address of a [`Segment`] does not change while it is open, whoever restarts. The contents
//! survive the restart of any member while another lives. Before two participants can both find [`Segment::settled`],
//! each has the other's ticket line in its [`Segment::tickets`].
//!
//! How it works: the memory is created by a participant of the Master's domain if that is a member, else of the first
//! member domain: the one that holds the channel's name. It is created only after all present peers have been asked,
//! because a living member hands on what it has. Its generation is the creator's epoch. Where two memories meet, as
//! after a restart while a member was stopped, that of the creating domain wins, and a newer generation over an older.
//!
//! For the lock on top: take the version of the tickets, write the own ticket, and check the version again before
//! looking at the others' tickets. A newcomer is in the tickets of a present peer before it is settled.

use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use musubi_core::layout::{Part, segment_bytes};
use musubi_core::plan::{Plan, Role, Smem};

use crate::error::{Error, Tried};
use crate::os::clock::Deadline;
use crate::os::descriptor::Descriptor;
use crate::os::forks::Kept;
use crate::os::mapping::Mapping;
use crate::process::channel::mailbox::Versioned;
use crate::process::rendezvous::dial::claim;
use crate::process::rendezvous::message::Message;
use crate::process::rendezvous::registry::{Registry, Shared};
use crate::process::section::{OwnPart, PeerPart, is_segment, new_segment};

/// The lock lines of the living members.
pub type Tickets = Arc<[TicketPeer]>;

/// One member that is linked with us.
#[derive(Clone, Debug)]
pub struct TicketPeer {
    /// Global number of the participant.
    pub participant: u16,
    /// Its incarnation.
    pub epoch: u32,
    /// Its ticket line.
    pub words: PeerPart,
}

/// What the attendant and the users share of an SMEM channel.
#[derive(Debug)]
pub(crate) struct SegmentView {
    mapping: Mutex<Option<Arc<Mapping>>>,
    generation: AtomicU32,
    settled: AtomicBool,
    tickets: Versioned<Tickets>,
}

/// Our membership in an SMEM channel.
#[derive(Debug)]
pub(crate) struct SmemMember {
    pub(crate) number: u16,
    bytes: u32,
    creating_domain: u16,
    memory: Option<Arc<Descriptor>>,
    right_to_create: Option<Kept>,
    pub(crate) view: Arc<SegmentView>,
}

/// The memory of an SMEM channel, mapped. Other participants write it at any time.
#[derive(Debug)]
pub struct Segment {
    shared: Arc<Shared>,
    number: u16,
    own: Option<OwnPart>,
    mapping: Arc<Mapping>,
    view: Arc<SegmentView>,
}

impl SegmentView {
    fn new() -> SegmentView {
        SegmentView {
            mapping: Mutex::new(None),
            generation: AtomicU32::new(0),
            settled: AtomicBool::new(false),
            tickets: Versioned::new(Arc::new([])),
        }
    }

    pub(crate) fn settle(&self, settled: bool) {
        self.settled.store(settled, Ordering::SeqCst);
    }

    /// Puts new memory where the old was, if it is mapped.
    fn renew(&self, memory: &Descriptor, generation: u32) -> Result<(), rustix::io::Errno> {
        let mapping = self.mapping.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(mapping) = &*mapping {
            mapping.replace(memory.as_fd())?;
        }
        self.generation.store(generation, Ordering::SeqCst);
        Ok(())
    }

    fn map(&self, memory: &Descriptor, bytes: u32) -> Result<Arc<Mapping>, rustix::io::Errno> {
        let mut mapping = self.mapping.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(mapping) = &*mapping {
            return Ok(Arc::clone(mapping));
        }
        let fresh = Arc::new(Mapping::reserved(bytes as usize)?);
        fresh.replace(memory.as_fd())?;
        Ok(Arc::clone(mapping.insert(fresh)))
    }
}

impl Segment {
    /// Number of the channel.
    pub fn smem(&self) -> u16 {
        self.number
    }

    /// The channel in the plan.
    pub fn channel(&self) -> &'static Smem<'static> {
        &self.shared.plan.smems[usize::from(self.number)]
    }

    /// Address of the first byte, aligned to a page.
    pub fn address(&self) -> *mut u8 {
        self.mapping.address()
    }

    /// Payload bytes of the channel.
    pub fn bytes(&self) -> u32 {
        self.channel().bytes
    }

    /// Epoch of the memory's creator. When it changes, the contents have become those of another memory.
    pub fn generation(&self) -> u32 {
        self.view.generation.load(Ordering::SeqCst)
    }

    /// Our own ticket line; `None` if the plan names a hardware lock.
    pub fn own_ticket(&self) -> Option<&OwnPart> {
        self.own.as_ref()
    }

    /// Version of [`Segment::tickets`].
    #[inline]
    pub fn tickets_version(&self) -> u32 {
        self.view.tickets.version()
    }

    /// The version as a word of this process to sleep on.
    pub fn tickets_version_word(&self) -> &AtomicU32 {
        self.view.tickets.version_word()
    }

    /// The ticket lines of the other living members, with their version.
    pub fn tickets(&self) -> (u32, Tickets) {
        let tickets = self.view.tickets.lock();
        (self.view.tickets.version(), Arc::clone(&tickets))
    }

    /// Whether every member that was there when we came knows our ticket line. While false, the lock must not be taken.
    #[inline]
    pub fn settled(&self) -> bool {
        self.view.settled.load(Ordering::SeqCst)
    }

    /// Our participant number and epoch.
    pub fn me(&self) -> (u16, u32) {
        (self.shared.me.participant, self.shared.me.epoch)
    }
}

impl SmemMember {
    /// Our memberships.
    pub(crate) fn all(plan: &Plan<'_>, domain: u16) -> Vec<SmemMember> {
        let smems = plan.smems.iter().enumerate().filter(|(_, smem)| smem.domains.contains(&domain));
        let member = |(number, smem): (usize, &Smem<'_>)| {
            Some(SmemMember {
                number: number as u16,
                bytes: segment_bytes(smem.bytes)?,
                creating_domain: creating_domain(plan, smem)?,
                memory: None,
                right_to_create: None,
                view: Arc::new(SegmentView::new()),
            })
        };
        smems.filter_map(member).collect()
    }

    fn generation(&self) -> u32 {
        self.view.generation.load(Ordering::SeqCst)
    }

    /// Whether memory of `generation`, offered by a participant of `domain`, takes the place of what we have.
    fn prefers(&self, own_domain: u16, domain: u16, generation: u32) -> bool {
        if self.memory.is_none() {
            return true;
        }
        let newer = generation.wrapping_sub(self.generation()).wrapping_sub(1) < u32::MAX / 2;
        generation != self.generation() && domain == self.creating_domain && (own_domain != domain || newer)
    }
}

fn creating_domain(plan: &Plan<'_>, smem: &Smem<'_>) -> Option<u16> {
    let is_master = |domain: &&u16| plan.domains[usize::from(**domain)].role == Role::Master;
    smem.domains.iter().find(is_master).or(smem.domains.first()).copied()
}

impl Registry {
    /// Creates the memory of the channels that are ours to create and that nobody has handed on.
    pub(crate) fn create_segments(&mut self, shared: &Shared) {
        if !self.joined || self.left {
            return;
        }
        for index in 0..self.segments.len() {
            let member = &mut self.segments[index];
            if member.memory.is_some() || member.creating_domain != shared.me.domain {
                continue;
            }
            if member.right_to_create.is_none() {
                member.right_to_create = claim(&shared.names.segment(member.number)).ok().flatten();
            }
            let Some(bytes) = member.right_to_create.is_some().then_some(member.bytes) else { continue };
            if let Ok(memory) = new_segment(bytes) {
                self.adopt_segment(shared, index, Arc::new(memory), shared.me.epoch);
            }
        }
    }

    fn adopt_segment(&mut self, shared: &Shared, index: usize, memory: Arc<Descriptor>, generation: u32) -> bool {
        let member = &mut self.segments[index];
        if member.view.renew(&memory, generation).is_err() {
            return false;
        }
        member.memory = Some(memory);
        let (number, creates) = (member.number, member.creating_domain == shared.me.domain);
        if creates {
            self.offer_to_members(shared, number);
        }
        shared.changed.notify_all();
        true
    }

    fn offer_to_members(&mut self, shared: &Shared, number: u16) {
        for peer in 0..self.peers.len() {
            let domain = self.peers[peer].party.domain;
            if let Some((message, memory)) = self.offer(shared, number, domain) {
                self.tell(shared, peer, message, Some(memory));
            }
        }
    }

    /// What there is to hand on of a channel to a participant of `domain`.
    fn offer(&self, shared: &Shared, number: u16, domain: u16) -> Option<(Message, Arc<Descriptor>)> {
        let member = self.segments.iter().find(|member| member.number == number)?;
        let concerned = shared.plan.smems[usize::from(number)].domains.contains(&domain);
        let memory = member.memory.clone().filter(|_| concerned)?;
        Some((Message::Segment { smem: number, generation: member.generation() }, memory))
    }

    /// Hands what we have to a participant that has just been linked.
    pub(crate) fn offer_segments(&mut self, shared: &Shared, connection: u32, domain: u16) {
        let numbers: Vec<u16> = self.segments.iter().map(|member| member.number).collect();
        for number in numbers {
            if let Some((message, memory)) = self.offer(shared, number, domain) {
                self.send(shared, connection, message, Some(memory));
            }
        }
    }

    /// A peer hands on memory. False if it is nonsense.
    pub(crate) fn segment_told(
        &mut self,
        shared: &Shared,
        peer: (u16, u32),
        smem: u16,
        generation: u32,
        memory: Descriptor,
    ) -> bool {
        let Some(domain) = shared.plan.domain_of(peer.0) else { return false };
        let Some(index) = self.segments.iter().position(|member| member.number == smem) else { return false };
        let member = &self.segments[index];
        let is_member = shared.plan.smems[usize::from(smem)].domains.contains(&domain);
        if !is_member || generation == 0 || !is_segment(&memory, member.bytes) {
            return false;
        }
        !member.prefers(shared.me.domain, domain, generation)
            || self.adopt_segment(shared, index, Arc::new(memory), generation)
    }

    /// Recomputes the ticket lines of the channels that a domain is a member of.
    pub(crate) fn refresh_tickets(&mut self, shared: &Shared, domain: u16) {
        for member in &self.segments {
            let domains = shared.plan.smems[usize::from(member.number)].domains;
            if !domains.contains(&domain) {
                continue;
            }
            let tickets: Tickets = self
                .peers
                .iter()
                .filter(|peer| domains.contains(&peer.party.domain))
                .filter_map(|peer| {
                    let words = peer.section.part(Part::Ticket(member.number))?;
                    Some(TicketPeer { participant: peer.party.participant, epoch: peer.party.epoch, words })
                })
                .collect();
            member.view.tickets.change(|state| *state = tickets);
        }
    }

    fn member(&self, number: u16) -> Option<&SmemMember> {
        self.segments.iter().find(|member| member.number == number)
    }
}

/// Opens an SMEM channel, waiting for its memory if another participant creates it.
pub(crate) fn open(shared: &Arc<Shared>, number: u16, deadline: Deadline) -> Result<Segment, Error> {
    let domain = || shared.plan.domains[usize::from(shared.me.domain)].name.to_owned();
    let mut registry = shared.lock();
    loop {
        if registry.left {
            return Err(Error::Left);
        }
        registry.create_segments(shared);
        let Some(member) = registry.member(number) else {
            return Err(Error::NotOurs { domain: domain(), what: "shared memory", channel: number });
        };
        if let Some(memory) = &member.memory {
            let mapping = member.view.map(memory, member.bytes).tried("mapping a segment")?;
            let own = shared.section.part(Part::Ticket(number));
            return Ok(Segment { shared: Arc::clone(shared), number, own, mapping, view: Arc::clone(&member.view) });
        }
        let obstacle = registry.obstacles.of_domain(shared, member.creating_domain);
        registry = match shared.wait_changed(registry, deadline) {
            Some(registry) => registry,
            None => {
                let absent = Error::TimedOut("the participant that creates the shared memory");
                return Err(obstacle.unwrap_or(absent));
            }
        };
    }
}

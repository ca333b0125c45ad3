//! The memory of SMEM channels among participants: creating it, handing it on, taking what is handed on.
//!
//! What you may rely on: what a peer hands on is used only if it can be the memory of that channel; it takes the place of
//! what we have only by the rule below, so that all members end up with one memory.
//!
//! How it works: the memory is created by a participant of the Master's domain if that is a member, else of the first
//! member domain: the one that holds the channel's name. It is created only after all present peers have been asked,
//! because a living member hands on what it has. Its generation is the creator's epoch. Where two memories meet, as
//! after a restart while a member was stopped, that of the creating domain wins, and a newer generation over an older.
//! What cannot be created now (the name is held, the kernel has no memory) is tried again when a peer comes or goes, and
//! after [`AGAIN_NS`].

use std::sync::Arc;

use musubi_core::layout::Part;

use crate::error::{Error, Tried};
use crate::os::clock::now_ns;
use crate::os::descriptor::Descriptor;
use crate::os::packet_socket::claim;
use crate::os::sealed::{self, Unusable};
use crate::process::rendezvous::membership::{SmemMember, TicketPeer, Tickets};
use crate::process::rendezvous::message::Message;
use crate::process::rendezvous::registry::{Registry, Shared};

/// Time until memory that could not be created is tried again, in nanoseconds.
const AGAIN_NS: u64 = 100_000_000;

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
            match sealed::new_common("musubi-segment", bytes) {
                Ok(memory) => {
                    let _ = self.adopt_segment(shared, index, Arc::new(memory), shared.me.epoch);
                }
                Err(error) => member.failed(&error),
            }
        }
        let is_missing = |member: &SmemMember| member.memory.is_none() && member.creating_domain == shared.me.domain;
        let is_planned = self.create_again_ns.is_some();
        if self.segments.iter().any(is_missing) && !is_planned {
            self.create_again_ns = Some(now_ns() + AGAIN_NS);
            // It may sleep for longer.
            shared.wake_attendant();
        }
    }

    /// Tries again what could not be created, when it is due.
    pub(crate) fn create_again(&mut self, shared: &Shared, now: u64) {
        if self.create_again_ns.is_some_and(|due| due <= now) {
            self.create_again_ns = None;
            self.create_segments(shared);
        }
    }

    fn adopt_segment(
        &mut self,
        shared: &Shared,
        index: usize,
        memory: Arc<Descriptor>,
        generation: u32,
    ) -> Result<(), Error> {
        let member = &mut self.segments[index];
        let renewed = member.view.renew(&memory, generation).tried("mapping shared memory (mmap, madvise)");
        renewed.inspect_err(|error| member.failed(error))?;
        member.memory = Some(memory);
        member.failure = None;
        let (number, creates) = (member.number, member.creating_domain == shared.me.domain);
        if creates {
            self.offer_to_members(shared, number);
        }
        shared.changed.notify_all();
        Ok(())
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

    /// A peer hands on memory.
    pub(crate) fn segment_told(
        &mut self,
        shared: &Shared,
        peer: (u16, u32),
        smem: u16,
        generation: u32,
        memory: Descriptor,
    ) -> Result<(), Unusable> {
        let domain = shared.plan.domain_of(peer.0).ok_or(Unusable::Unfit)?;
        let index = self.segments.iter().position(|member| member.number == smem).ok_or(Unusable::Unfit)?;
        let member = &mut self.segments[index];
        let is_member = shared.plan.smems[usize::from(smem)].domains.contains(&domain);
        if !is_member || generation == 0 || !sealed::is_common(&memory, member.bytes) {
            return Err(Unusable::Unfit);
        }
        if !member.prefers(shared.me.domain, domain, generation) {
            return Ok(());
        }
        // Who hands it on may not be the one who made holes in it.
        let filled = sealed::fill(&memory, member.bytes).inspect_err(|error| member.failed(error));
        filled.and_then(|()| self.adopt_segment(shared, index, Arc::new(memory), generation)).map_err(Unusable::of)
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

    pub(crate) fn member(&self, number: u16) -> Option<&SmemMember> {
        self.segments.iter().find(|member| member.number == number)
    }
}

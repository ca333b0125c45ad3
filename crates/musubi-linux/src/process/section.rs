//! Sections: our own, which only we can write, and those of peers, which we can only read.
//!
//! What you may rely on: after our section is made no process can get another writable mapping of it; a [`PeerSection`] was
//! checked before it was mapped (`os/sealed.rs`): of the length that the plan says, all its pages there, with the
//! header that its owner announced. So reading it can never raise SIGBUS, whatever the peer does.
//!
//! How it works: a section is sealed memory. It is unmapped when the last [`PeerPart`] or [`OwnPart`] into it is gone.

use std::sync::Arc;

use musubi_core::layout::{self, Part, header, state};
use musubi_core::plan::Plan;
use musubi_core::sync::Site;
use musubi_core::words::{OwnWords, PeerWords};

use crate::error::Error;
use crate::os::clock::now_ns;
use crate::os::descriptor::Descriptor;
use crate::os::forks::Process;
use crate::os::mapping::Mapping;
use crate::os::sealed::{self, Unusable};
use crate::process::rendezvous::message::Party;

/// The section that this participant writes.
#[derive(Debug)]
pub(crate) struct OwnSection {
    plan: &'static Plan<'static>,
    domain: u16,
    mapping: Mapping,
    fd: Arc<Descriptor>,
}

impl OwnSection {
    /// Makes the section, sealed, and its header with the epoch written last.
    pub(crate) fn create(plan: &'static Plan<'static>, me: Party) -> Result<OwnSection, Error> {
        let bytes = me.section_bytes;
        let (fd, mapping) = sealed::new_own("musubi-section", bytes, bytes)?;
        let section = OwnSection { plan, domain: me.domain, mapping, fd: Arc::new(fd) };
        write_header(&section.words(), me);
        Ok(section)
    }

    /// All words of the section.
    pub(crate) fn words(&self) -> OwnWords<'_> {
        let words = (self.mapping.bytes() / 4) as u32;
        // SAFETY: the mapping is page-aligned, readable and writable for `words` words as long as `self` lives; sealing
        // keeps every other process from writing, and inside this process each word has one writing module (layout).
        unsafe { OwnWords::new(self.mapping.address().cast(), words) }
    }

    /// One part of the section.
    pub(crate) fn part(self: &Arc<Self>, part: Part) -> Option<OwnPart> {
        let (first, words) = place(self.plan, self.domain, part)?;
        Some(OwnPart { section: Arc::clone(self), first, words })
    }

    pub(crate) fn fd(&self) -> Arc<Descriptor> {
        Arc::clone(&self.fd)
    }

    pub(crate) fn mapping(&self) -> &Mapping {
        &self.mapping
    }
}

fn write_header(words: &OwnWords<'_>, me: Party) {
    words.set(header::MAGIC, layout::MAGIC);
    words.set(header::VERSION, layout::VERSION);
    words.set(header::PLAN_LOW, me.hash as u32);
    words.set(header::PLAN_HIGH, (me.hash >> 32) as u32);
    words.set(header::SECTION_BYTES, me.section_bytes);
    words.set(header::PARTICIPANT, u32::from(me.participant));
    words.set(header::DOMAIN, u32::from(me.domain));
    words.set(header::PROCESS, Process::this().number());
    words.set(header::STATE, state::ATTACHED);
    let start_ns = now_ns();
    words.set(header::START_LOW, start_ns as u32);
    words.set(header::START_HIGH, (start_ns >> 32) as u32);
    words.set(header::HEARTBEAT_MS, (start_ns / 1_000_000) as u32);
    words.publish(header::EPOCH, me.epoch, Site::PublishLink);
}

/// One part of our own section; keeps the section mapped.
#[derive(Clone, Debug)]
pub struct OwnPart {
    section: Arc<OwnSection>,
    first: u32,
    words: u32,
}

impl OwnPart {
    /// The part's words.
    #[inline]
    pub fn words(&self) -> OwnWords<'_> {
        self.section.words().part(self.first, self.words)
    }
}

/// A peer's section, mapped read-only and checked.
#[derive(Debug)]
pub struct PeerSection {
    plan: &'static Plan<'static>,
    mapping: Mapping,
    party: Party,
}

impl PeerSection {
    /// Checks and maps what a peer sent.
    pub(crate) fn adopt(
        plan: &'static Plan<'static>,
        fd: &Descriptor,
        party: Party,
    ) -> Result<Arc<PeerSection>, Unusable> {
        let expected = layout::section_bytes(plan, party.domain).ok_or(Unusable::Unfit)?;
        if expected != party.section_bytes {
            return Err(Unusable::Unfit);
        }
        let mapping = sealed::adopt(fd, expected, expected)?;
        let section = PeerSection { plan, mapping, party };
        if header_fits(&section.words(), party) { Ok(Arc::new(section)) } else { Err(Unusable::Unfit) }
    }

    /// Global number of the owner.
    pub fn participant(&self) -> u16 {
        self.party.participant
    }

    /// Domain of the owner.
    pub fn domain(&self) -> u16 {
        self.party.domain
    }

    /// Incarnation of the owner.
    pub fn epoch(&self) -> u32 {
        self.party.epoch
    }

    /// All words of the section.
    pub fn words(&self) -> PeerWords<'_> {
        let words = (self.mapping.bytes() / 4) as u32;
        // SAFETY: the mapping is page-aligned and readable for `words` words as long as `self` lives, and its pages
        // cannot vanish: seals and length were checked before it was mapped.
        unsafe { PeerWords::new(self.mapping.address().cast_const().cast(), words) }
    }

    /// One part of the section; `None` if the owner's domain has no such part.
    pub fn part(self: &Arc<Self>, part: Part) -> Option<PeerPart> {
        let (first, words) = place(self.plan, self.party.domain, part)?;
        Some(PeerPart { section: Arc::clone(self), first, words })
    }

    /// Milliseconds since the owner's attendant last showed that it runs.
    pub fn heartbeat_age_ms(&self) -> u32 {
        let now_ms = (now_ns() / 1_000_000) as u32;
        // A beat that seems to lie in the future was written between the two looks.
        let age = now_ms.wrapping_sub(self.words().get(header::HEARTBEAT_MS));
        if age > u32::MAX / 2 { 0 } else { age }
    }

    /// Whether the owner has said that it leaves.
    pub fn terminated(&self) -> bool {
        self.words().get(header::STATE) == state::TERMINATED
    }
}

/// One part of a peer's section; keeps the section mapped.
#[derive(Clone, Debug)]
pub struct PeerPart {
    section: Arc<PeerSection>,
    first: u32,
    words: u32,
}

impl PeerPart {
    /// The part's words.
    #[inline]
    pub fn words(&self) -> PeerWords<'_> {
        self.section.words().part(self.first, self.words)
    }

    /// The section it belongs to.
    pub fn section(&self) -> &Arc<PeerSection> {
        &self.section
    }
}

/// Where a part lies: first word and number of words.
fn place(plan: &Plan<'_>, domain: u16, wanted: Part) -> Option<(u32, u32)> {
    let mut found = None;
    layout::walk(plan, domain, |part, offset, bytes| {
        if part == wanted {
            found = Some((offset / 4, bytes / 4));
        }
    })?;
    found
}

/// Whether a section's header says what its owner announced; how the section came here is not looked at.
pub fn header_fits(words: &PeerWords<'_>, party: Party) -> bool {
    let hash = u64::from(words.get(header::PLAN_LOW)) | u64::from(words.get(header::PLAN_HIGH)) << 32;
    words.see(header::EPOCH, Site::SeeLink) == party.epoch
        && words.get(header::MAGIC) == layout::MAGIC
        && words.get(header::VERSION) == layout::VERSION
        && hash == party.hash
        && words.get(header::SECTION_BYTES) == party.section_bytes
        && words.get(header::PARTICIPANT) == u32::from(party.participant)
        && words.get(header::DOMAIN) == u32::from(party.domain)
}

#[cfg(test)]
pub(crate) mod tests;

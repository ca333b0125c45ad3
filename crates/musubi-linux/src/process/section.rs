//! Sections: our own, which only we can write, and those of peers, which we can only read.
//!
//! What you may rely on: after our section is made no process, not even one with the descriptor, can get another
//! writable mapping (`F_SEAL_FUTURE_WRITE`); a [`PeerSection`] was checked before it was mapped: it is a memfd that can
//! neither shrink nor be punched, of ordinary pages that are all there, of the length that the plan says, with the header that its owner announced. So reading
//! it can never raise SIGBUS, whatever the peer does.
//!
//! How it works: the owner maps read-write first and seals afterwards; a mapping made before keeps its rights. A
//! section is unmapped when the last [`PeerPart`] or [`OwnPart`] into it is gone.

use std::os::fd::AsFd;
use std::sync::Arc;

use musubi_core::layout::{self, Part, header, state};
use musubi_core::plan::Plan;
use musubi_core::sync::Site;
use musubi_core::words::{OwnWords, PeerWords};
use rustix::fs::{
    FallocateFlags, MemfdFlags, SealFlags, fallocate, fcntl_add_seals, fcntl_get_seals, fstat, fstatfs, ftruncate,
    memfd_create,
};

use crate::error::{Error, Tried};
use crate::os::clock::now_ns;
use crate::os::descriptor::Descriptor;
use crate::os::forks::Process;
use crate::os::mapping::{Access, Mapping};
use crate::process::rendezvous::message::Party;

/// What the kernel keeps memfds of ordinary pages in, as `fstatfs` names it.
const TMPFS_MAGIC: rustix::fs::FsWord = 0x0102_1994;
/// Seals of a section.
pub(crate) const SEALS: SealFlags =
    SealFlags::FUTURE_WRITE.union(SealFlags::SHRINK).union(SealFlags::GROW).union(SealFlags::SEAL);
/// Seals of an SMEM channel's memory, which all members write.
const SEGMENT_SEALS: SealFlags = SealFlags::SHRINK.union(SealFlags::GROW).union(SealFlags::SEAL);

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
        let fd = new_memfd("musubi-section", bytes)?;
        let mapping =
            Mapping::shared(fd.as_fd(), bytes as usize, Access::Write).tried("mapping the section (mmap, madvise)")?;
        fcntl_add_seals(&fd, SEALS).tried("sealing the section (fcntl)")?;
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
    /// Checks and maps what a peer sent; `None` if it is not the section it is said to be.
    pub fn adopt(plan: &'static Plan<'static>, fd: &Descriptor, party: Party) -> Option<Arc<PeerSection>> {
        let expected = layout::section_bytes(plan, party.domain)?;
        if expected != party.section_bytes || !holds(fd, SEALS, expected) || is_sparse(fd, expected) {
            return None;
        }
        let mapping = Mapping::shared(fd.as_fd(), expected as usize, Access::Read).ok()?;
        let section = PeerSection { plan, mapping, party };
        header_fits(&section.words(), party).then(|| Arc::new(section))
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

/// A memfd with all its pages, so that a machine without memory says so now and not by a signal later.
fn new_memfd(name: &str, bytes: u32) -> Result<Descriptor, Error> {
    let fd = bare_memfd(name)?;
    ftruncate(&fd, u64::from(bytes)).tried("sizing shared memory (ftruncate)")?;
    fallocate(&fd, FallocateFlags::empty(), 0, u64::from(bytes)).tried("reserving shared memory (fallocate)")?;
    Ok(fd)
}

/// A memfd of no length that can be sealed.
pub(crate) fn bare_memfd(name: &str) -> Result<Descriptor, Error> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let fd = match memfd_create(name, flags | MemfdFlags::NOEXEC_SEAL) {
        Err(rustix::io::Errno::INVAL) => memfd_create(name, flags),
        made => made,
    };
    fd.map(Descriptor::from).tried("creating shared memory (memfd_create)")
}

/// Memory for an SMEM channel, writable for all who get the descriptor.
pub(crate) fn new_segment(bytes: u32) -> Result<Descriptor, Error> {
    let fd = new_memfd("musubi-segment", bytes)?;
    fcntl_add_seals(&fd, SEGMENT_SEALS).tried("sealing a segment (fcntl)")?;
    Ok(fd)
}

/// Whether a received descriptor can be the memory of an SMEM channel. Its members may write it, and so also give pages of
/// it back; the kernel then makes new ones at the next access, of nothing but ordinary memory.
pub(crate) fn is_segment(fd: &Descriptor, bytes: u32) -> bool {
    let writable = |seals: SealFlags| !seals.intersects(SealFlags::WRITE | SealFlags::FUTURE_WRITE);
    holds(fd, SEGMENT_SEALS, bytes) && fcntl_get_seals(fd).is_ok_and(writable)
}

/// Puts memory where a member has given pages back. False if there is none left now.
pub(crate) fn fill_segment(fd: &Descriptor, bytes: u32) -> bool {
    !is_sparse(fd, bytes) || fallocate(fd, FallocateFlags::empty(), 0, u64::from(bytes)).is_ok()
}

/// Whether `fd` is a memfd of ordinary pages with these seals and exactly this length. A seal can never be taken off again.
///
/// Huge pages are seldom, and come from a store of their own: a page that its owner gave back may find none left, and whoever
/// touches it then gets SIGBUS. Files of a mounted tmpfs, whose size has a limit, cannot have these seals.
pub(crate) fn holds(fd: &Descriptor, seals: SealFlags, bytes: u32) -> bool {
    if !fstatfs(fd).is_ok_and(|system| system.f_type == TMPFS_MAGIC) {
        return false;
    }
    let sealed = fcntl_get_seals(fd).is_ok_and(|have| have.contains(seals));
    sealed && fstat(fd).is_ok_and(|stat| stat.st_size == i64::from(bytes))
}

/// Whether pages are missing, whose first access could fail for lack of memory.
fn is_sparse(fd: &Descriptor, bytes: u32) -> bool {
    !fstat(fd).is_ok_and(|stat| stat.st_blocks as u64 * 512 >= u64::from(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HUGE_BYTES: u32 = 2 << 20;

    fn sealed(flags: MemfdFlags, seals: SealFlags) -> Option<Descriptor> {
        let fd = memfd_create("musubi-test", flags | MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING).ok()?;
        ftruncate(&fd, u64::from(HUGE_BYTES)).unwrap();
        fcntl_add_seals(&fd, seals).unwrap();
        Some(fd.into())
    }

    #[test]
    fn huge_pages_are_no_memory_to_share() {
        for seals in [SEALS, SEGMENT_SEALS] {
            assert!(holds(&sealed(MemfdFlags::empty(), seals).unwrap(), seals, HUGE_BYTES));
            match sealed(MemfdFlags::HUGETLB | MemfdFlags::HUGE_2MB, seals) {
                Some(huge) => assert!(!holds(&huge, seals, HUGE_BYTES) && !is_segment(&huge, HUGE_BYTES)),
                None => println!("SKIPPED: this kernel has no huge pages of 2 MiB"),
            }
        }
    }

    #[test]
    fn a_segment_is_writable() {
        assert!(is_segment(&sealed(MemfdFlags::empty(), SEGMENT_SEALS).unwrap(), HUGE_BYTES));
        for more in [SealFlags::WRITE, SealFlags::FUTURE_WRITE] {
            assert!(!is_segment(&sealed(MemfdFlags::empty(), SEGMENT_SEALS | more).unwrap(), HUGE_BYTES));
        }
    }

    #[test]
    fn a_segment_with_holes_is_filled() {
        let segment = new_segment(HUGE_BYTES).unwrap();
        let hole = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        fallocate(&segment, hole, 0, u64::from(HUGE_BYTES)).unwrap();
        assert!(is_segment(&segment, HUGE_BYTES) && is_sparse(&segment, HUGE_BYTES));
        assert!(fill_segment(&segment, HUGE_BYTES) && !is_sparse(&segment, HUGE_BYTES));
    }
}

//! Our memberships in SMEM channels: the memory that we have, and who else is a member.
//!
//! What you may rely on: no call here waits beyond a system call that maps. A mapping stays at its addresses when newer
//! memory takes its place.

use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use musubi_core::layout::segment_bytes;
use musubi_core::plan::{Plan, Role, Smem};
use rustix::io::Errno;

use crate::error::Error;
use crate::os::descriptor::Descriptor;
use crate::os::forks::Kept;
use crate::os::mapping::Mapping;
use crate::process::channel::mailbox::Versioned;
use crate::process::section::PeerPart;

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
    pub(crate) generation: AtomicU32,
    pub(crate) settled: AtomicBool,
    pub(crate) tickets: Versioned<Tickets>,
}

/// Our membership in an SMEM channel.
#[derive(Debug)]
pub(crate) struct SmemMember {
    pub(crate) number: u16,
    pub(crate) bytes: u32,
    pub(crate) creating_domain: u16,
    pub(crate) memory: Option<Arc<Descriptor>>,
    pub(crate) right_to_create: Option<Kept>,
    /// What the kernel would not do when memory was to be made or taken over; until there is some.
    pub(crate) failure: Option<(&'static str, Errno)>,
    pub(crate) view: Arc<SegmentView>,
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
    pub(crate) fn renew(&self, memory: &Descriptor, generation: u32) -> Result<(), Errno> {
        let mapping = self.mapping.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(mapping) = &*mapping {
            mapping.replace(memory.as_fd())?;
        }
        self.generation.store(generation, Ordering::SeqCst);
        Ok(())
    }

    pub(crate) fn map(&self, memory: &Descriptor, bytes: u32) -> Result<Arc<Mapping>, Errno> {
        let mut mapping = self.mapping.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(mapping) = &*mapping {
            return Ok(Arc::clone(mapping));
        }
        let fresh = Arc::new(Mapping::reserved(bytes as usize)?);
        fresh.replace(memory.as_fd())?;
        Ok(Arc::clone(mapping.insert(fresh)))
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
                failure: None,
                view: Arc::new(SegmentView::new()),
            })
        };
        smems.filter_map(member).collect()
    }

    /// Notes why there is no memory, for whoever waits to open the channel.
    pub(crate) fn failed(&mut self, error: &Error) {
        if let Error::System { action, source } = error {
            self.failure = Some((action, source.raw_os_error().map_or(Errno::IO, Errno::from_raw_os_error)));
        }
    }

    /// Why there is no memory, if the kernel is why.
    pub(crate) fn failure(&self) -> Option<Error> {
        self.failure.map(|(action, errno)| Error::System { action, source: errno.into() })
    }

    pub(crate) fn generation(&self) -> u32 {
        self.view.generation.load(Ordering::SeqCst)
    }

    /// Whether memory of `generation`, offered by a participant of `domain`, takes the place of what we have.
    pub(crate) fn prefers(&self, own_domain: u16, domain: u16, generation: u32) -> bool {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::section::tests::PLAN;

    /// A member of the channel with all domains, created by domain 0, with memory of this generation.
    fn member(generation: u32) -> SmemMember {
        let mut member = SmemMember::all(&PLAN, 1).remove(0);
        member.memory = Some(Arc::new(Descriptor::event().unwrap()));
        member.view.generation.store(generation, Ordering::SeqCst);
        member
    }

    #[test]
    fn the_master_creates_the_memory_or_else_the_first_member() {
        let of = |domain| -> Vec<(u16, u16, u32)> {
            let all = SmemMember::all(&PLAN, domain);
            all.iter().map(|member| (member.number, member.creating_domain, member.bytes)).collect()
        };
        assert_eq!(of(0), [(0, 0, 4096)]);
        assert_eq!(of(1), [(0, 0, 4096), (1, 2, 4096)]);
        assert_eq!(of(2), of(1));
    }

    #[test]
    fn any_memory_is_better_than_none() {
        let member = SmemMember::all(&PLAN, 1).remove(0);
        assert!(member.prefers(1, 2, 7) && member.prefers(0, 0, 1));
    }

    #[test]
    fn only_the_creating_domains_memory_takes_the_place_of_other_memory() {
        let member = member(5);
        for domain in [1, 2] {
            assert!(!member.prefers(1, domain, 9) && !member.prefers(0, domain, 9));
        }
        for generation in [1, 4, 6, u32::MAX] {
            assert!(member.prefers(1, 0, generation), "{generation}");
        }
        assert!(!member.prefers(1, 0, 5), "the same again");
    }

    #[test]
    fn within_the_creating_domain_the_newer_memory_wins() {
        for own in [5_u32, u32::MAX, 1 << 31] {
            let member = member(own);
            for later in [1, 2, u32::MAX / 2] {
                assert!(member.prefers(0, 0, own.wrapping_add(later)), "{later} after {own}");
            }
            for later in [0, u32::MAX / 2 + 1, u32::MAX - 1, u32::MAX] {
                assert!(!member.prefers(0, 0, own.wrapping_add(later)), "{later} after {own}");
            }
        }
    }

    #[test]
    fn what_the_kernel_refused_is_told_and_nothing_else() {
        let mut member = SmemMember::all(&PLAN, 0).remove(0);
        member.failed(&Error::Left);
        assert!(member.failure().is_none());
        member.failed(&Error::System { action: "mapping", source: Errno::NOMEM.into() });
        let Some(Error::System { action, source }) = member.failure() else { panic!("{:?}", member.failure()) };
        assert_eq!((action, source.raw_os_error()), ("mapping", Some(Errno::NOMEM.raw_os_error())));
    }

    #[test]
    fn newer_memory_lies_at_the_addresses_of_the_former() {
        let common = || crate::os::sealed::new_common("musubi-test", 4096).unwrap();
        let view = SegmentView::new();
        view.renew(&common(), 1).unwrap();
        let mapping = view.map(&common(), 4096).unwrap();
        // SAFETY: the mapping is of one page, aligned to it, and this test alone uses it.
        let word = unsafe { AtomicU32::from_ptr(mapping.address().cast()) };
        word.store(7, Ordering::SeqCst);
        assert!(Arc::ptr_eq(&mapping, &view.map(&common(), 4096).unwrap()), "mapped once");
        assert_eq!(word.load(Ordering::SeqCst), 7);
        view.renew(&common(), 2).unwrap();
        assert_eq!((word.load(Ordering::SeqCst), view.generation.load(Ordering::SeqCst)), (0, 2));
    }
}

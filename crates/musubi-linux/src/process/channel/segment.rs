//! The memory of SMEM channels: one memfd a channel that all members map writable.
//!
//! What you may rely on: the address of a [`Segment`] does not change while it is open, whoever restarts. The contents
//! survive the restart of any member while another lives. Before two participants can both find [`Segment::settled`],
//! each has the other's ticket line in its [`Segment::tickets`].
//!
//! How it works: what the attendant keeps of it is a membership (`rendezvous/membership.rs`); a handle maps the memory and
//! stays at its addresses when other memory takes its place.
//!
//! For the lock on top: take the version of the tickets, write the own ticket, and check the version again before
//! looking at the others' tickets. A newcomer is in the tickets of a present peer before it is settled.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use musubi_core::layout::Part;
use musubi_core::plan::Smem;

use crate::error::{Error, Tried};
use crate::os::clock::Deadline;
use crate::os::mapping::Mapping;
use crate::process::rendezvous::membership::SegmentView;
pub use crate::process::rendezvous::membership::{TicketPeer, Tickets};
use crate::process::rendezvous::registry::Shared;
use crate::process::section::OwnPart;

/// The memory of an SMEM channel, mapped. Other participants write it at any time.
#[derive(Debug)]
pub struct Segment {
    shared: Arc<Shared>,
    number: u16,
    own: Option<OwnPart>,
    mapping: Arc<Mapping>,
    view: Arc<SegmentView>,
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
            let mapping = member.view.map(memory, member.bytes).tried("mapping a segment (mmap, madvise)")?;
            let own = shared.section.part(Part::Ticket(number));
            return Ok(Segment { shared: Arc::clone(shared), number, own, mapping, view: Arc::clone(&member.view) });
        }
        let failure = member.failure();
        let obstacle = registry.obstacles.of_domain(shared, member.creating_domain);
        registry = match shared.wait_changed(registry, deadline) {
            Some(registry) => registry,
            None => {
                let absent = Error::TimedOut("the participant that creates the shared memory");
                return Err(failure.or(obstacle).unwrap_or(absent));
            }
        };
    }
}

//! What a participant keeps of an SMEM channel: its ticket line, and who else may want the lock.
//!
//! What you may rely on: trying never waits; a look at the lock counts everybody that was attached when we showed our
//! ticket. A member that was restarted or has left is passed over.
//!
//! How it works: [`Bakery`] over the ticket lines of all that are attached. A newcomer needs no handshake: its root is
//! published before it shows a ticket, and we list the roots again after we have shown ours. So either our second list
//! has it, or it sees our ticket (Dekker's pattern, as in the lock itself).

use crate::error::Error;
use crate::layout::{Part, root};
use crate::lock::{Bakery, Contender};
use crate::mapped::Host;
use crate::mapped::latch::Latch;
use crate::mapped::surroundings::{Fate, Surroundings};
use crate::sync::{AtomicU32, Ordering, fence};
use crate::words::OwnWords;

/// How often taking the lock starts again because a member came meanwhile.
const NEWCOMERS_MAX: u32 = 64;

/// An SMEM channel of which our domain is a member.
#[derive(Debug)]
pub(in crate::mapped) struct SegmentRecord<'m> {
    pub smem: u16,
    pub state: Latch<SegmentState<'m>>,
    /// 1 while there is a handle.
    pub handle: AtomicU32,
}

/// The lock as this participant sees it.
#[derive(Debug)]
pub(in crate::mapped) struct SegmentState<'m> {
    pub bakery: Bakery<'m>,
    others: &'m mut [Contender<'m>],
    count: usize,
}

impl<'m> SegmentRecord<'m> {
    /// The channel with our ticket line. `others` has room for all participants.
    pub fn new(smem: u16, me: u16, line: OwnWords<'m>, others: &'m mut [Contender<'m>]) -> Self {
        let state = SegmentState { bakery: Bakery::new(me, line), others, count: 0 };
        SegmentRecord { smem, state: Latch::new(state), handle: AtomicU32::new(0) }
    }
}

/// The members that are attached, other than us.
fn members<'s, 'm, B: Host>(
    here: &'s Surroundings<'m, B>,
    smem: u16,
) -> impl Iterator<Item = Contender<'m>> + use<'s, 'm, B> {
    let domains = here.plan.smems.get(usize::from(smem)).map_or(&[][..], |smem| smem.domains);
    let participants = domains.iter().flat_map(move |&domain| here.participants_of(domain));
    participants.filter(move |&other| other != here.me).filter_map(move |participant| {
        let epoch = here.root_of(participant)?.look(root::EPOCH);
        let lives = here.epoch_of(participant) == epoch && here.fate(participant, epoch) == Fate::Attached;
        let line = lives.then(|| here.part_of(participant, epoch, Part::Ticket(smem)))??;
        Some(Contender { participant, line, alive: true })
    })
}

impl<'m> SegmentState<'m> {
    /// Lists the members anew.
    fn list<B: Host>(&mut self, here: &Surroundings<'m, B>, smem: u16) {
        self.count = 0;
        for (place, member) in self.others.iter_mut().zip(members(here, smem)) {
            *place = member;
            self.count += 1;
        }
    }

    /// Whether the listed members are all there are.
    fn is_current<B: Host>(&self, here: &Surroundings<'m, B>, smem: u16) -> bool {
        // A line of another incarnation in the same bank is the same line.
        let identity = |member: &Contender<'_>| (member.participant, member.line.bytes_at(0, 0).addr());
        self.others.iter().take(self.count).map(identity).eq(members(here, smem).map(|member| identity(&member)))
    }

    pub fn try_lock<B: Host>(&mut self, here: &Surroundings<'m, B>, smem: u16) -> Result<(), Error> {
        for _ in 0..NEWCOMERS_MAX {
            self.list(here, smem);
            self.bakery.try_lock(&self.others[..self.count])?;
            fence(Ordering::SeqCst);
            if self.is_current(here, smem) {
                return Ok(());
            }
            self.bakery.unlock()?;
        }
        Err(Error::NotReady)
    }

    pub fn begin<B: Host>(&mut self, here: &Surroundings<'m, B>, smem: u16) -> Result<(), Error> {
        for _ in 0..NEWCOMERS_MAX {
            self.list(here, smem);
            self.bakery.begin(&self.others[..self.count])?;
            fence(Ordering::SeqCst);
            if self.is_current(here, smem) {
                return Ok(());
            }
            self.bakery.abandon();
        }
        Err(Error::NotReady)
    }

    /// One look of a waiter that has begun.
    pub fn poll<B: Host>(&mut self, here: &Surroundings<'m, B>, smem: u16) -> bool {
        self.list(here, smem);
        self.bakery.poll(&self.others[..self.count])
    }
}

//! SMEM channels in mapped memory: the segment at its place, with the core's lock.
//!
//! What you may rely on: trying never waits; waiting is first come first served and keeps its deadline. A holder that was
//! restarted or has left is passed over; one that only stands still is waited for, because it may go on.
//!
//! How it works: [`Bakery`] over the ticket lines of all that are attached. A newcomer needs no handshake: its root is
//! published before it shows a ticket, and we list the roots again after we have shown ours. So either our second list
//! has it, or it sees our ticket (Dekker's pattern, as in the lock itself).
//!
//! What it does not do: keep a member that ignores the lock from writing; the memory is writable by all members.

use core::cell::Cell;
use core::marker::PhantomData;

use super::Host;
use super::latch::{Guard, Latch};
use super::shared::{Fate, Shared};
use crate::channel::{Deadline, SharedSegment};
use crate::error::Error;
use crate::layout::{self, Part, root};
use crate::lock::{Bakery, Contender};
use crate::plan::Role;
use crate::sync::{AtomicU32, Ordering, Site, fence};
use crate::words::OwnWords;

/// How often taking the lock starts again because a member came meanwhile.
const NEWCOMERS_MAX: u32 = 64;
/// How long a waiter rests between two looks at the tickets, in nanoseconds.
const REST_NS: u64 = 100_000;

/// An SMEM channel of which our domain is a member.
#[derive(Debug)]
pub(super) struct SegmentRecord<'m> {
    pub smem: u16,
    state: Latch<State<'m>>,
    /// 1 while there is a handle.
    handle: AtomicU32,
}

#[derive(Debug)]
struct State<'m> {
    bakery: Bakery<'m>,
    others: &'m mut [Contender<'m>],
    count: usize,
}

impl<'m> SegmentRecord<'m> {
    /// The channel with our ticket line. `others` has room for all participants.
    pub fn new(smem: u16, me: u16, line: OwnWords<'m>, others: &'m mut [Contender<'m>]) -> Self {
        let state = State { bakery: Bakery::new(me, line), others, count: 0 };
        SegmentRecord { smem, state: Latch::new(state), handle: AtomicU32::new(0) }
    }
}

/// The members that are attached, other than us.
fn members<'s, 'm, B: Host>(
    shared: &'s Shared<'m, B>,
    smem: u16,
) -> impl Iterator<Item = Contender<'m>> + use<'s, 'm, B> {
    let domains = shared.plan.smems.get(usize::from(smem)).map_or(&[][..], |smem| smem.domains);
    let participants = domains.iter().flat_map(move |&domain| shared.participants_of(domain));
    participants.filter(move |&other| other != shared.me).filter_map(move |participant| {
        let epoch = shared.root_of(participant)?.look(root::EPOCH);
        let lives = shared.epoch_of(participant) == epoch && shared.fate(participant, epoch) == Fate::Attached;
        let line = lives.then(|| shared.part_of(participant, epoch, Part::Ticket(smem)))??;
        Some(Contender { participant, line, alive: true })
    })
}

impl<'m> State<'m> {
    /// Lists the members anew.
    fn list<B: Host>(&mut self, shared: &Shared<'m, B>, smem: u16) {
        self.count = 0;
        for (place, member) in self.others.iter_mut().zip(members(shared, smem)) {
            *place = member;
            self.count += 1;
        }
    }

    /// Whether the listed members are all there are.
    fn is_current<B: Host>(&self, shared: &Shared<'m, B>, smem: u16) -> bool {
        // A line of another incarnation in the same bank is the same line.
        let identity = |member: &Contender<'_>| (member.participant, member.line.bytes_at(0, 0).addr());
        self.others.iter().take(self.count).map(identity).eq(members(shared, smem).map(|member| identity(&member)))
    }

    fn try_lock<B: Host>(&mut self, shared: &Shared<'m, B>, smem: u16) -> Result<(), Error> {
        for _ in 0..NEWCOMERS_MAX {
            self.list(shared, smem);
            self.bakery.try_lock(&self.others[..self.count])?;
            fence(Ordering::SeqCst);
            if self.is_current(shared, smem) {
                return Ok(());
            }
            self.bakery.unlock()?;
        }
        Err(Error::NotReady)
    }

    fn begin<B: Host>(&mut self, shared: &Shared<'m, B>, smem: u16) -> Result<(), Error> {
        for _ in 0..NEWCOMERS_MAX {
            self.list(shared, smem);
            self.bakery.begin(&self.others[..self.count])?;
            fence(Ordering::SeqCst);
            if self.is_current(shared, smem) {
                return Ok(());
            }
            self.bakery.abandon();
        }
        Err(Error::NotReady)
    }

    /// One look of a waiter that has begun.
    fn poll<B: Host>(&mut self, shared: &Shared<'m, B>, smem: u16) -> bool {
        self.list(shared, smem);
        self.bakery.poll(&self.others[..self.count])
    }
}

/// An SMEM channel with its lock.
#[derive(Debug)]
pub struct Segment<'m, B: Host> {
    shared: &'m Shared<'m, B>,
    record: &'m SegmentRecord<'m>,
    words: OwnWords<'m>,
    bytes: u32,
    one_thread: PhantomData<Cell<()>>,
}

impl<'m, B: Host> Segment<'m, B> {
    /// Opens a record's channel, once the Master has made the memory.
    pub(super) fn open(
        shared: &'m Shared<'m, B>,
        record: &'m SegmentRecord<'m>,
        deadline: Deadline,
    ) -> Result<Self, Error> {
        let (words, bytes) = claim(shared, record, deadline)?;
        Ok(Segment { shared, record, words, bytes, one_thread: PhantomData })
    }

    /// Address of the memory, the same as long as the participant is attached.
    pub fn address(&self) -> *mut u8 {
        self.words.bytes_at(0, self.bytes)
    }

    /// Whether we hold the lock.
    pub fn holds(&self) -> bool {
        self.state().bakery.holds()
    }

    fn state(&self) -> Guard<'m, State<'m>> {
        self.record.state.lock(self.shared.host)
    }

    fn check(&self, offset: u32, len: usize) -> Result<(), Error> {
        let end = u32::try_from(len).ok().and_then(|len| offset.checked_add(len));
        if end.is_some_and(|end| end <= self.bytes) { Ok(()) } else { Err(Error::TooLong) }
    }
}

/// Makes a channel's memory this participant's to use, for one handle, once the Master has made it; gives its bytes too.
pub(super) fn claim<'m, B: Host>(
    shared: &'m Shared<'m, B>,
    record: &'m SegmentRecord<'m>,
    deadline: Deadline,
) -> Result<(OwnWords<'m>, u32), Error> {
    let channel = shared.plan.smems.get(usize::from(record.smem)).ok_or(Error::NotOurs)?;
    super::waiting::wait(shared, deadline, || is_made(shared).then_some(Ok(())), |_| ())?;
    let place = layout::segment_offset(shared.plan, record.smem).zip(layout::segment_offset(shared.plan, 0));
    let (begin, first) = place.ok_or(Error::Plan)?;
    if record.handle.swap(1, Ordering::AcqRel) != 0 {
        return Err(Error::InUse);
    }
    shared.users.join();
    let words = shared.memory.segment(begin - first, channel.bytes.div_ceil(4));
    Ok((words, channel.bytes))
}

/// Whether the Master has zeroed the segments since the memory was cold.
fn is_made<B: Host>(shared: &Shared<'_, B>) -> bool {
    let master = shared.plan.domains.iter().position(|domain| domain.role == Role::Master);
    let first = master.map(|master| shared.plan.first_participant(master as u16));
    first.is_some_and(|master| {
        let made = shared.root_of(master).is_some_and(|root| root.see(root::SEGMENTS, Site::SeeRoot) != 0);
        made && shared.epoch_of(master) != 0
    })
}

impl<B: Host> Drop for Segment<'_, B> {
    /// A handle that goes while it holds the lock gives it back; nobody else could.
    fn drop(&mut self) {
        let mut state = self.state();
        state.bakery.abandon();
        let _ = state.bakery.unlock();
        drop(state);
        self.record.handle.store(0, Ordering::Release);
        if self.shared.users.leave() {
            self.shared.end();
        }
    }
}

impl<B: Host> SharedSegment for Segment<'_, B> {
    fn bytes(&self) -> u32 {
        self.bytes
    }

    fn try_lock(&self) -> Result<(), Error> {
        self.state().try_lock(self.shared, self.record.smem)
    }

    fn lock(&self, deadline: Deadline) -> Result<(), Error> {
        let (shared, smem) = (self.shared, self.record.smem);
        self.state().begin(shared, smem)?;
        loop {
            if self.state().poll(shared, smem) {
                return Ok(());
            }
            let now_ns = shared.host.now_ns();
            let end_ns = match deadline {
                Deadline::Poll => now_ns,
                Deadline::At(ns) => ns,
                Deadline::Forever => u64::MAX,
            };
            if now_ns >= end_ns {
                self.state().bakery.abandon();
                return Err(Error::Timeout);
            }
            shared.beat();
            shared.host.rest(end_ns.min(now_ns.saturating_add(REST_NS)), &|| true);
        }
    }

    fn unlock(&self) -> Result<(), Error> {
        self.state().bakery.unlock()
    }

    fn read(&self, offset: u32, into: &mut [u8]) -> Result<(), Error> {
        self.check(offset, into.len())?;
        self.shared.host.acquire(self.words.bytes_at(offset, into.len() as u32), into.len() as u32);
        self.words.as_peer().copy_bytes(offset, into);
        Ok(())
    }

    fn write(&self, offset: u32, from: &[u8]) -> Result<(), Error> {
        self.check(offset, from.len())?;
        self.words.write_bytes(offset, from);
        self.shared.host.publish(self.words.bytes_at(offset, from.len() as u32), from.len() as u32);
        Ok(())
    }
}

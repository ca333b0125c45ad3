//! SMEM channels in mapped memory: the segment at its place, with the core's lock.
//!
//! What you may rely on: trying never waits; waiting is first come first served and keeps its deadline. A holder that was
//! restarted or has left is passed over; one that only stands still is waited for, because it may go on.
//!
//! How it works: each look at the lock latches the channel's record, which knows who else may want it.
//!
//! What it does not do: keep a member that ignores the lock from writing; the memory is writable by all members.

use core::cell::Cell;
use core::marker::PhantomData;

use super::handle::Handle;
use super::waiting::wait;
use crate::channel::{Deadline, SharedSegment};
use crate::error::Error;
use crate::layout::{self, root};
use crate::mapped::Host;
use crate::mapped::latch::Guard;
use crate::mapped::records::{SegmentRecord, SegmentState};
use crate::mapped::shared::Shared;
use crate::mapped::surroundings::Surroundings;
use crate::plan::Role;
use crate::sync::Site;
use crate::words::OwnWords;

/// How long a waiter rests between two looks at the tickets, in nanoseconds.
const REST_NS: u64 = 100_000;

/// An SMEM channel with its lock.
#[derive(Debug)]
pub struct Segment<'m, B: Host> {
    handle: Handle<'m, B>,
    record: &'m SegmentRecord<'m>,
    words: OwnWords<'m>,
    bytes: u32,
    one_thread: PhantomData<Cell<()>>,
}

impl<'m, B: Host> Segment<'m, B> {
    /// Opens a record's channel, once the Master has made the memory.
    pub(in crate::mapped) fn open(
        shared: &'m Shared<'m, B>,
        record: &'m SegmentRecord<'m>,
        deadline: Deadline,
    ) -> Result<Self, Error> {
        let (handle, words, bytes) = claim(shared, record, deadline)?;
        Ok(Segment { handle, record, words, bytes, one_thread: PhantomData })
    }

    /// Address of the memory, the same as long as the participant is attached.
    pub fn address(&self) -> *mut u8 {
        self.words.bytes_at(0, self.bytes)
    }

    /// Whether we hold the lock.
    pub fn holds(&self) -> bool {
        self.state().bakery.holds()
    }

    fn state(&self) -> Guard<'m, SegmentState<'m>> {
        self.record.state.lock(self.handle.shared.here.host)
    }

    fn check(&self, offset: u32, len: usize) -> Result<(), Error> {
        let end = u32::try_from(len).ok().and_then(|len| offset.checked_add(len));
        if end.is_some_and(|end| end <= self.bytes) { Ok(()) } else { Err(Error::TooLong) }
    }
}

/// Makes a channel's memory this participant's to use as long as the handle exists, once the Master has made it; gives its
/// bytes too.
pub(in crate::mapped) fn claim<'m, B: Host>(
    shared: &'m Shared<'m, B>,
    record: &'m SegmentRecord<'m>,
    deadline: Deadline,
) -> Result<(Handle<'m, B>, OwnWords<'m>, u32), Error> {
    let channel = shared.here.plan.smems.get(usize::from(record.smem)).ok_or(Error::NotOurs)?;
    wait(shared, deadline, || is_made(&shared.here).then_some(Ok(())), |_| ())?;
    let place = layout::segment_offset(shared.here.plan, record.smem).zip(layout::segment_offset(shared.here.plan, 0));
    let (begin, first) = place.ok_or(Error::Plan)?;
    let handle = Handle::take(shared, &record.handle)?;
    let words = shared.here.memory.segment(begin - first, channel.bytes.div_ceil(4));
    Ok((handle, words, channel.bytes))
}

/// Whether the Master has zeroed the segments since the memory was cold.
fn is_made<B: Host>(here: &Surroundings<'_, B>) -> bool {
    let master = here.plan.domains.iter().position(|domain| domain.role == Role::Master);
    let first = master.map(|master| here.plan.first_participant(master as u16));
    first.is_some_and(|master| {
        let made = here.root_of(master).is_some_and(|root| root.see(root::SEGMENTS, Site::SeeRoot) != 0);
        made && here.epoch_of(master) != 0
    })
}

impl<B: Host> Drop for Segment<'_, B> {
    /// A handle that goes while it holds the lock gives it back; nobody else could.
    fn drop(&mut self) {
        let mut state = self.state();
        state.bakery.abandon();
        let _ = state.bakery.unlock();
    }
}

impl<B: Host> SharedSegment for Segment<'_, B> {
    fn bytes(&self) -> u32 {
        self.bytes
    }

    fn try_lock(&self) -> Result<(), Error> {
        self.state().try_lock(&self.handle.shared.here, self.record.smem)
    }

    fn lock(&self, deadline: Deadline) -> Result<(), Error> {
        let (shared, smem) = (self.handle.shared, self.record.smem);
        self.state().begin(&shared.here, smem)?;
        loop {
            if self.state().poll(&shared.here, smem) {
                return Ok(());
            }
            let now_ns = shared.here.host.now_ns();
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
            shared.here.host.rest(end_ns.min(now_ns.saturating_add(REST_NS)), &|| true);
        }
    }

    fn unlock(&self) -> Result<(), Error> {
        self.state().bakery.unlock()
    }

    fn read(&self, offset: u32, into: &mut [u8]) -> Result<(), Error> {
        self.check(offset, into.len())?;
        self.handle.shared.here.host.acquire(self.words.bytes_at(offset, into.len() as u32), into.len() as u32);
        self.words.as_peer().copy_bytes(offset, into);
        Ok(())
    }

    fn write(&self, offset: u32, from: &[u8]) -> Result<(), Error> {
        self.check(offset, from.len())?;
        self.words.write_bytes(offset, from);
        self.handle.shared.here.host.publish(self.words.bytes_at(offset, from.len() as u32), from.len() as u32);
        Ok(())
    }
}

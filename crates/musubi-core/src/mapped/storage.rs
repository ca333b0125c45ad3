//! A participant's private memory: given by the caller, carved once when attaching.
//!
//! What you may rely on: [`storage_lines`] lines suffice; nothing is allocated besides. While a participant or one of
//! its handles exists the lines are claimed, and attaching with them again is refused; afterwards they can be used anew.
//!
//! How it works: the first line counts who uses it. Everything else is placed behind it, each piece at a multiple of a
//! line, so the sum does not depend on the order.

use core::cell::UnsafeCell;
use core::marker::PhantomData;
use core::mem::{align_of, size_of};

use super::Host;
use super::records::{INCARNATIONS, ReceivingRecord, SegmentRecord, SendingRecord};
use super::shared::Shared;
use super::sights::Sight;
use super::surroundings::Peer;
use super::users::Users;
use crate::fifo::Entry;
use crate::lock::Contender;
use crate::plan::Plan;
use crate::sync::AtomicU32;

/// Bytes of a line of storage.
const LINE: usize = 16;

/// A piece of a participant's private memory, as `static S: [StorageLine; N] = [const { StorageLine::new() }; N]` or on a
/// heap, with N from [`storage_lines`].
#[repr(C, align(16))]
#[derive(Debug)]
pub struct StorageLine(UnsafeCell<[u64; LINE / 8]>);

// SAFETY: only `claim` hands the memory out, to one owner at a time.
unsafe impl Sync for StorageLine {}

impl StorageLine {
    /// Memory that nobody uses.
    #[allow(clippy::new_without_default, reason = "a default could not make the elements of a static")]
    pub const fn new() -> StorageLine {
        StorageLine(UnsafeCell::new([0; LINE / 8]))
    }
}

/// Lines that a participant of a domain needs.
pub const fn storage_lines<'b, B: Host + 'b>(plan: &Plan<'_>, domain: u16) -> usize {
    let participants = participants_in_all(plan);
    let mut lines = 1 + lines_of::<Shared<'b, B>>(1);
    lines += lines_of::<Peer>(participants) + lines_of::<Sight>(participants);
    let (mut fifo, mut sending, mut receiving) = (0, 0, 0);
    while fifo < plan.fifos.len() {
        let channel = &plan.fifos[fifo];
        let blocks = channel.blocks as usize;
        if channel.from == domain {
            sending += 1;
            lines += lines_of::<Entry>(blocks);
        }
        if channel.to == domain {
            receiving += 1;
            lines += lines_of::<u32>(blocks.div_ceil(32)) * INCARNATIONS + lines_of::<u32>(members(plan, channel.from));
        }
        fifo += 1;
    }
    let (mut smem, mut segments) = (0, 0);
    while smem < plan.smems.len() {
        if is_member(plan.smems[smem].domains, domain) {
            segments += 1;
            lines += lines_of::<Contender<'b>>(participants);
        }
        smem += 1;
    }
    lines += lines_of::<SendingRecord<'b, B>>(sending) + lines_of::<ReceivingRecord<'b, B>>(receiving);
    lines + lines_of::<SegmentRecord<'b>>(segments)
}

const fn participants_in_all(plan: &Plan<'_>) -> usize {
    let (mut domain, mut sum) = (0, 0);
    while domain < plan.domains.len() {
        sum += plan.domains[domain].participants as usize;
        domain += 1;
    }
    sum
}

const fn members(plan: &Plan<'_>, domain: u16) -> usize {
    if (domain as usize) < plan.domains.len() { plan.domains[domain as usize].participants as usize } else { 0 }
}

const fn is_member(domains: &[u16], domain: u16) -> bool {
    let mut index = 0;
    while index < domains.len() {
        if domains[index] == domain {
            return true;
        }
        index += 1;
    }
    false
}

const fn lines_of<T>(count: usize) -> usize {
    assert!(align_of::<T>() <= LINE);
    (count * size_of::<T>()).div_ceil(LINE)
}

/// Claimed storage, of which pieces are taken.
#[derive(Debug)]
pub(super) struct Arena<'m> {
    users: Users<'m>,
    rest: &'m [StorageLine],
}

impl<'m> Arena<'m> {
    /// Claims storage; `None` if somebody uses it.
    pub fn claim(storage: &'m [StorageLine]) -> Option<Arena<'m>> {
        let (first, rest) = storage.split_first()?;
        let counts = first.0.get().cast::<[AtomicU32; 2]>();
        // SAFETY: a line is large enough and aligned for two counters, which are the only things ever accessed there;
        // zero is a counter.
        let [holders, users] = unsafe { &*counts };
        Some(Arena { users: Users::claim(holders, users)?, rest })
    }

    pub fn users(&self) -> Users<'m> {
        self.users
    }

    /// Room for the next `count` things; `None` if the storage is too short.
    pub fn row<T>(&mut self, count: usize) -> Option<Row<'m, T>> {
        let (piece, rest) = self.rest.split_at_checked(lines_of::<T>(count))?;
        self.rest = rest;
        Some(Row { first: piece.as_ptr().cast_mut().cast(), count, filled: 0, storage: PhantomData })
    }

    /// The next `count` things, all alike.
    pub fn fill<T>(&mut self, count: usize, make: impl Fn() -> T) -> Option<&'m mut [T]> {
        let mut row = self.row(count)?;
        while row.push(make()).is_some() {}
        Some(row.finish())
    }
}

/// Claimed room that is filled one by one.
#[derive(Debug)]
pub(super) struct Row<'m, T> {
    first: *mut T,
    count: usize,
    filled: usize,
    storage: PhantomData<&'m mut [T]>,
}

impl<'m, T> Row<'m, T> {
    /// Puts the next one in; `None` if there is no room.
    pub fn push(&mut self, value: T) -> Option<()> {
        let place = self.first.wrapping_add(self.filled);
        if self.filled == self.count {
            return None;
        }
        // SAFETY: the room is for `count` of them, aligned, and ours since the claim; this one is not filled yet.
        unsafe { place.write(value) };
        self.filled += 1;
        Some(())
    }

    /// What was put in.
    pub fn finish(self) -> &'m mut [T] {
        // SAFETY: so many were written; the room was split off, so nobody else refers to it while the claim lasts.
        unsafe { core::slice::from_raw_parts_mut(self.first, self.filled) }
    }
}

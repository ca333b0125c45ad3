//! SMEM channels of C tasks, with the lock among the image's tasks in front of the lock between participants.
//!
//! What you may rely on: the lock belongs to the task that took it; trying never waits.
//!
//! How it works: a cell a channel says which task has the lock or waits for it in the name of the participant. Tasks
//! that want to wait behind it look once a millisecond.

use core::cell::Cell;

use musubi_core::channel::Deadline;

use super::entered::Entered;
use super::failure::Failure;
use super::{Addressed, SEGMENTS_MAX, installed, session};
use crate::mdcom::contract::handles::Memory;
use crate::mdcom::contract::status::Status;

/// Who has a channel's lock. Used inside the monitor only.
struct Desk {
    /// The task that has it or waits for it, or 0.
    task: Cell<usize>,
    /// Whether it has it.
    holds: Cell<bool>,
}

// SAFETY: used inside the monitor only, so by one task at a time.
unsafe impl Sync for Desk {}

static DESKS: [Desk; SEGMENTS_MAX] = [const { Desk { task: Cell::new(0), holds: Cell::new(false) } }; SEGMENTS_MAX];

fn open(node: Entered<'_>, ch: u32) -> Result<(&'static Desk, &'static dyn Addressed), Failure> {
    let number = u16::try_from(ch).map_err(|_| Status::Channel)?;
    let smem = node.plan().smems.get(usize::from(number)).ok_or(Status::Channel)?;
    if !smem.domains.contains(&node.domain()) {
        return Err(Status::Channel.into());
    }
    let desk = DESKS.get(usize::from(number));
    let desk =
        desk.ok_or_else(|| Failure::saying(Status::System, c"the image has no room for channels of this number"))?;
    Ok((desk, node.segment(number)?))
}

/// The calling task.
fn me() -> Result<usize, Failure> {
    Ok(installed::system().ok_or(Status::NotInit)?.task())
}

/// Gives every lock back: the attachment ends.
pub(super) fn forget_all(node: Entered<'_>) {
    for (number, desk) in (0..).zip(&DESKS) {
        if desk.holds.replace(false)
            && let Ok((_, segment)) = open(node, number)
        {
            // It is held, so it cannot be refused.
            let _ = segment.unlock();
        }
        desk.task.set(0);
    }
}

/// `mdcom_smemch_get`.
pub(crate) fn memory(ch: u32) -> Result<Memory, Failure> {
    session::with(|node| {
        let (_, segment) = open(node, ch)?;
        Ok(Memory { address: segment.address(), bytes: segment.bytes() })
    })
}

/// `mdcom_smemch_trylock`.
pub(crate) fn try_lock(ch: u32) -> Result<(), Failure> {
    session::with(|node| {
        let (desk, segment) = open(node, ch)?;
        if desk.task.get() != 0 {
            return Err(Status::Locked.into());
        }
        segment.try_lock()?;
        desk.task.set(me()?);
        desk.holds.set(true);
        Ok(())
    })
}

/// `mdcom_smemch_lock`.
pub(crate) fn lock_until(ch: u32, timeout_ns: u64) -> Result<(), Failure> {
    if timeout_ns == 0 {
        return try_lock(ch);
    }
    session::with_rest(|node| {
        let (desk, segment) = open(node, ch)?;
        let (me, deadline_ns) = (me()?, session::deadline_ns(node, timeout_ns));
        wait_behind(node, desk, me, deadline_ns)?;
        desk.task.set(me);
        let taken = lock_in_slices(node, segment, deadline_ns);
        match taken {
            Ok(()) => desk.holds.set(true),
            Err(_) => desk.task.set(0),
        }
        taken
    })
}

/// Until no task of the image has the lock.
fn wait_behind(node: Entered<'_>, desk: &Desk, me: usize, deadline_ns: u64) -> Result<(), Failure> {
    while desk.task.get() != 0 {
        if desk.task.get() == me {
            return Err(Status::Locked.into());
        }
        if node.now_ns() >= deadline_ns {
            return Err(Status::Timeout.into());
        }
        session::look_later(node, deadline_ns);
        session::check()?;
    }
    Ok(())
}

/// The lock between participants. A slice that ends gives up the turn among them, so slices are long.
fn lock_in_slices(node: Entered<'_>, segment: &dyn Addressed, deadline_ns: u64) -> Result<(), Failure> {
    loop {
        let end = match session::slice(node, deadline_ns) {
            Deadline::At(at_ns) => at_ns,
            _ => deadline_ns,
        };
        match segment.lock(Deadline::At(end)) {
            Err(musubi_core::Error::Timeout) => {}
            done => return Ok(done?),
        }
        session::check()?;
        if node.now_ns() >= deadline_ns {
            return Err(Status::Timeout.into());
        }
    }
}

/// `mdcom_smemch_unlock`.
pub(crate) fn unlock(ch: u32) -> Result<(), Failure> {
    session::with(|node| {
        let (desk, segment) = open(node, ch)?;
        if desk.task.get() != me()? || !desk.holds.get() {
            return Err(Status::NotHeld.into());
        }
        segment.unlock()?;
        desk.holds.set(false);
        desk.task.set(0);
        Ok(())
    })
}

//! SMEM channels: one place a channel, with the lock of this process in front of the lock between processes.
//!
//! What you may rely on: the lock belongs to the thread that took it. Trying never waits (after the channel's first
//! use). A thread that waits for another process's turn does not keep others from trying or from reading the address.
//!
//! How it works: [`Desk`] says which thread of this process has the lock or waits for it in the name of the process;
//! only that thread touches the port's lock ([`SharedEnd`]). Threads that want to wait behind it sleep on a condition
//! variable.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use musubi_core::channel::{Attachment, SharedSegment};
use musubi_core::plan::SMEMS_MAX;
use musubi_linux::{Deadline, DeadlineExt, SharedEnd};

use super::failure::Failure;
use super::session::{self, Attached, deadline, lock};
use crate::mdcom::contract::handles::Memory;
use crate::mdcom::contract::status::Status;

/// How long the first use of a channel waits for its memory, in nanoseconds.
const MEMORY_NS_MAX: u64 = 500_000_000;
/// Pause between looks for the memory.
const MEMORY_PAUSE: Duration = Duration::from_millis(1);

static CHANNELS: [Place; SMEMS_MAX] = [const { Place::new() }; SMEMS_MAX];

struct Place {
    desk: Mutex<Option<Desk>>,
    left: Condvar,
    /// Taken after `desk` and never while waiting for it.
    end: Mutex<Option<SharedEnd>>,
}

/// An open channel, as the threads of this process share it.
#[derive(Clone, Copy, Debug)]
struct Desk {
    serial: u64,
    memory: Memory,
    /// Who has the lock, or waits for other processes.
    thread: Option<u64>,
    holds: bool,
}

impl Place {
    const fn new() -> Place {
        Place { desk: Mutex::new(None), left: Condvar::new(), end: Mutex::new(None) }
    }
}

/// A number of the calling thread that no other has.
fn me() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    thread_local! {
        static ME: u64 = NEXT.fetch_add(1, Ordering::Relaxed);
    }
    ME.with(|me| *me)
}

/// A place with an open channel, locked.
struct Open {
    place: &'static Place,
    desk: MutexGuard<'static, Option<Desk>>,
}

impl Open {
    fn desk(&mut self) -> Result<&mut Desk, Failure> {
        self.desk.as_mut().ok_or_else(session::absent)
    }
}

fn open(ch: u32) -> Result<Open, Failure> {
    let limit = Deadline::Forever.within_ns(MEMORY_NS_MAX);
    loop {
        session::check()?;
        let place = CHANNELS.get(ch as usize).ok_or(Status::Channel)?;
        let mut desk = lock(&place.desk);
        if desk.is_none() {
            *desk = open_first(ch as u16, place)?;
        }
        if desk.is_some() {
            return Ok(Open { place, desk });
        }
        drop(desk);
        if limit.passed() {
            return Err(Status::NotReady.into());
        }
        std::thread::sleep(MEMORY_PAUSE);
    }
}

/// Opens the channel; `None` if its memory is not there yet.
fn open_first(ch: u16, place: &Place) -> Result<Option<Desk>, Failure> {
    session::with(|Attached { participant, serial }| {
        let smem = participant.plan().smems.get(usize::from(ch)).ok_or(Status::Channel)?;
        if !smem.domains.contains(&participant.domain()) {
            return Err(Status::Channel.into());
        }
        let end = match Attachment::open_segment(participant, ch, Deadline::Poll) {
            Ok(end) => end,
            Err(musubi_linux::Error::TimedOut(_)) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let memory = Memory { address: end.address(), bytes: end.bytes() };
        *lock(&place.end) = Some(end);
        Ok(Some(Desk { serial: *serial, memory, thread: None, holds: false }))
    })
}

/// Closes every channel, gives its lock back, and wakes who waits for it.
pub(crate) fn close_all() {
    for place in &CHANNELS {
        let desk = lock(&place.desk).take();
        if desk.is_none() {
            continue;
        }
        place.left.notify_all();
        // A thread that waits for other processes has the end; it looks at the desk every millisecond.
        let end = lock(&place.end).take();
        if let Some(end) = end
            && end.holds()
        {
            let _ = end.unlock();
        }
    }
}

/// `mdcom_smemch_get`.
pub(crate) fn memory(ch: u32) -> Result<Memory, Failure> {
    Ok(open(ch)?.desk()?.memory)
}

/// `mdcom_smemch_trylock`.
pub(crate) fn try_lock(ch: u32) -> Result<(), Failure> {
    let mut open = open(ch)?;
    let place = open.place;
    let desk = open.desk()?;
    if desk.thread.is_some() {
        return Err(Status::Locked.into());
    }
    lock(&place.end).as_ref().ok_or_else(session::absent)?.try_lock()?;
    (desk.thread, desk.holds) = (Some(me()), true);
    Ok(())
}

/// `mdcom_smemch_lock`.
pub(crate) fn lock_until(ch: u32, timeout_ns: u64) -> Result<(), Failure> {
    if timeout_ns == 0 {
        return try_lock(ch);
    }
    let deadline = deadline(timeout_ns);
    let (place, serial) = take_desk(ch, deadline)?;
    let taken = match &*lock(&place.end) {
        Some(end) => end.lock_while(deadline, || session::check().is_ok()).map_err(Failure::from),
        None => Err(session::absent()),
    };
    let mut desk = lock(&place.desk);
    let Some(desk) = desk.as_mut().filter(|desk| desk.serial == serial) else { return Err(session::absent()) };
    match &taken {
        Ok(()) => desk.holds = true,
        Err(_) => {
            desk.thread = None;
            place.left.notify_one();
        }
    }
    taken
}

/// Becomes the thread that waits in the name of this process.
fn take_desk(ch: u32, deadline: Deadline) -> Result<(&'static Place, u64), Failure> {
    let mut open = open(ch)?;
    let serial = open.desk()?.serial;
    loop {
        let desk = open.desk()?;
        if desk.serial != serial {
            return Err(Status::Terminated.into());
        }
        match desk.thread {
            None => {
                desk.thread = Some(me());
                return Ok((open.place, serial));
            }
            Some(thread) if thread == me() => return Err(Status::Locked.into()),
            Some(_) => {}
        }
        open.desk = match deadline.left_ns() {
            Some(0) => return Err(Status::Timeout.into()),
            Some(ns) => {
                let waited = open.place.left.wait_timeout(open.desk, Duration::from_nanos(ns));
                waited.unwrap_or_else(PoisonError::into_inner).0
            }
            None => open.place.left.wait(open.desk).unwrap_or_else(PoisonError::into_inner),
        };
    }
}

/// `mdcom_smemch_unlock`.
pub(crate) fn unlock(ch: u32) -> Result<(), Failure> {
    let mut open = open(ch)?;
    let place = open.place;
    let desk = open.desk()?;
    if desk.thread != Some(me()) || !desk.holds {
        return Err(Status::NotHeld.into());
    }
    lock(&place.end).as_ref().ok_or_else(session::absent)?.unlock()?;
    (desk.thread, desk.holds) = (None, false);
    place.left.notify_one();
    Ok(())
}

//! SMEM channels for a process: the shared memory with the core's lock.
//!
//! What you may rely on: trying never waits; waiting is first come first served and keeps its deadline; a holder that
//! died is passed over as soon as its death is noticed. One thread at a time uses a [`SharedEnd`] (it is not `Sync`).
//!
//! How it works: [`musubi_core::lock::Bakery`] over the ticket lines of the living members. A waiter spins for the
//! domain's time, then sleeps on the ticket of the one that is first; who unlocks wakes those that show a ticket.
//!
//! What it does not do: keep a member that ignores the lock from writing; the memory is writable by all members.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};

use musubi_core::Error;
use musubi_core::channel::{Deadline, SharedSegment};
use musubi_core::layout::ticket;
use musubi_core::lock::{Bakery, Contender, OUTSIDE};
use musubi_core::words::{OwnWords, PeerWords};

use crate::os::clock::DeadlineExt;
use crate::os::futex::{self, Watch};
use crate::process::channel::segment::{Segment, Tickets};
use crate::process::channel::shelf::Shelf;
use crate::process::channel::wait::Spin;

/// How long a waiter sleeps at most before it looks at all tickets again, in nanoseconds.
const RELOOK_NS: u64 = 1_000_000;

/// How often taking the lock starts again because a member came meanwhile.
const NEWCOMERS_MAX: u32 = 64;

/// An SMEM channel with its lock.
#[derive(Debug)]
pub struct SharedEnd {
    state: RefCell<LockState>,
    spin: Spin,
    permits: Arc<Shelf<Permit>>,
}

/// The right to have a handle of a channel: a second handle of one participant would write the same ticket.
#[derive(Debug)]
pub(crate) struct Permit;

#[derive(Debug)]
struct LockState {
    bakery: Bakery<'static>,
    others: Vec<Contender<'static>>,
    version: Option<u32>,
    /// Keeps the memory behind `others`.
    tickets: Tickets,
    /// Keeps the memory of the channel and behind `bakery`.
    segment: Segment,
}

impl SharedEnd {
    /// The lock and memory of an open segment.
    ///
    /// # Errors
    /// [`crate::Error::Plan`] if the plan names a lock that this port does not have.
    pub(crate) fn new(
        segment: Segment,
        permit: Permit,
        spin: Spin,
        permits: Arc<Shelf<Permit>>,
    ) -> Result<SharedEnd, crate::Error> {
        let Some(ticket) = segment.own_ticket() else {
            permits.park(segment.smem(), permit);
            return Err(crate::Error::Plan);
        };
        let words = ticket.words();
        // SAFETY: `segment` keeps our section mapped and goes last; the port gives one `SharedEnd` a channel at a time,
        // so nothing else in this process writes the line.
        let own: OwnWords<'static> = unsafe { OwnWords::new(words.bytes_at(0, 0).cast(), words.len()) };
        let bakery = Bakery::new(segment.me().0, own);
        let state = LockState { bakery, others: Vec::new(), version: None, tickets: Tickets::from([]), segment };
        Ok(SharedEnd { state: RefCell::new(state), spin, permits })
    }

    /// Address of the memory, the same as long as the channel is open.
    pub fn address(&self) -> *mut u8 {
        self.state.borrow().segment.address()
    }

    /// Epoch of the memory's creator; when it changes, the contents are another memory's.
    pub fn generation(&self) -> u32 {
        self.state.borrow().segment.generation()
    }

    /// Whether we hold the lock.
    pub fn holds(&self) -> bool {
        self.state.borrow().bakery.holds()
    }

    /// [`SharedSegment::lock`] that ends like a deadline within a millisecond and the spinning time once `is_wanted` is
    /// false.
    ///
    /// # Errors
    /// As there.
    pub fn lock_while(&self, deadline: Deadline, is_wanted: impl Fn() -> bool) -> Result<(), Error> {
        let mut state = self.state.borrow_mut();
        while !state.segment.settled() {
            if deadline.passed() || !is_wanted() {
                return Err(Error::Timeout);
            }
            std::thread::sleep(std::time::Duration::from_nanos(RELOOK_NS));
        }
        state.begin()?;
        let entered = state.poll().or_else(|| self.spin.until(deadline, || state.poll()));
        if entered.is_some() {
            return Ok(());
        }
        loop {
            if state.poll().is_some() {
                return Ok(());
            }
            if deadline.passed() || !is_wanted() {
                state.bakery.abandon();
                return Err(Error::Timeout);
            }
            state.sleep(deadline);
        }
    }
}

impl Drop for SharedEnd {
    /// A handle that goes while it holds the lock gives it back; nobody else could.
    fn drop(&mut self) {
        let state = self.state.get_mut();
        state.bakery.abandon();
        let _ = state.unlock();
        self.permits.park(state.segment.smem(), Permit);
    }
}

impl LockState {
    /// Takes note of members that came or went.
    fn follow(&mut self) {
        if self.version == Some(self.segment.tickets_version()) {
            return;
        }
        let (version, tickets) = self.segment.tickets();
        self.others.clear();
        self.others.extend(tickets.iter().map(|peer| {
            let words = peer.words.words();
            // SAFETY: `tickets` is kept beside `others` and keeps the peer's section mapped.
            let line: PeerWords<'static> = unsafe { PeerWords::new(words.bytes_at(0, 0).cast(), words.len()) };
            Contender { participant: peer.participant, line, alive: true }
        }));
        self.tickets = tickets;
        self.version = Some(version);
    }

    /// Whether the members that we reckoned with are all there are. A member that came later has waited until our
    /// attendant knew it, so it sees our ticket.
    fn is_current(&self) -> bool {
        self.version == Some(self.segment.tickets_version())
    }

    fn try_lock(&mut self) -> Result<(), Error> {
        if !self.segment.settled() {
            return Err(Error::NotReady);
        }
        for _ in 0..NEWCOMERS_MAX {
            self.follow();
            self.bakery.try_lock(&self.others)?;
            if self.is_current() {
                return Ok(());
            }
            self.unlock()?;
        }
        Err(Error::NotReady)
    }

    /// Queues with a number above all that the present members show.
    fn begin(&mut self) -> Result<(), Error> {
        for _ in 0..NEWCOMERS_MAX {
            self.follow();
            self.bakery.begin(&self.others)?;
            if self.is_current() {
                return Ok(());
            }
            self.bakery.abandon();
        }
        Err(Error::NotReady)
    }

    /// One look of a waiter that has begun.
    fn poll(&mut self) -> Option<()> {
        self.follow();
        self.bakery.poll(&self.others).then_some(())
    }

    fn unlock(&mut self) -> Result<(), Error> {
        self.bakery.unlock()?;
        // The others show their ticket and then look at ours; we clear ours and then look at theirs.
        fence(Ordering::SeqCst);
        if self.others.iter().any(|other| other.line.look(ticket::TICKET) != OUTSIDE)
            && let Some(own) = self.segment.own_ticket()
        {
            futex::wake_shared(own.words().word(ticket::TICKET));
        }
        Ok(())
    }

    /// Sleeps until the first in the queue changes its ticket, a member comes or goes, or it is time to look again.
    fn sleep(&self, deadline: Deadline) {
        let first = self
            .others
            .iter()
            .map(|other| (other.line.look(ticket::TICKET), other))
            .filter(|(shown, _)| *shown != OUTSIDE)
            .min_by_key(|(shown, other)| (*shown, other.participant));
        let bell = first.map(|(expected, other)| Watch { word: other.line.word(ticket::TICKET), expected });
        let local = Watch { word: self.segment.tickets_version_word().into(), expected: self.version.unwrap_or(0) };
        futex::sleep(bell, local, deadline.within_ns(RELOOK_NS));
    }
}

impl SharedSegment for SharedEnd {
    fn bytes(&self) -> u32 {
        self.state.borrow().segment.bytes()
    }

    fn try_lock(&self) -> Result<(), Error> {
        self.state.borrow_mut().try_lock()
    }

    fn lock(&self, deadline: Deadline) -> Result<(), Error> {
        self.lock_while(deadline, || true)
    }

    fn unlock(&self) -> Result<(), Error> {
        self.state.borrow_mut().unlock()
    }

    fn read(&self, offset: u32, into: &mut [u8]) -> Result<(), Error> {
        let state = self.state.borrow();
        inside(state.segment.bytes(), offset, into.len())?;
        // SAFETY: the segment is mapped, in whole pages, for as long as `state` is borrowed.
        let words = unsafe { PeerWords::new(state.segment.address().cast(), state.segment.bytes().div_ceil(4)) };
        words.copy_bytes(offset, into);
        Ok(())
    }

    fn write(&self, offset: u32, from: &[u8]) -> Result<(), Error> {
        let state = self.state.borrow();
        inside(state.segment.bytes(), offset, from.len())?;
        let to = state.segment.address().wrapping_add(offset as usize);
        // SAFETY: `inside` checked that the bytes lie in the mapping, which no reference of this process covers: all
        // access is by copies like this one. Other processes may write at the same time; the lock is what keeps order.
        unsafe { std::ptr::copy_nonoverlapping(from.as_ptr(), to, from.len()) };
        Ok(())
    }
}

fn inside(bytes: u32, offset: u32, len: usize) -> Result<(), Error> {
    let fits = u32::try_from(len).ok().and_then(|len| offset.checked_add(len)).is_some_and(|end| end <= bytes);
    if fits { Ok(()) } else { Err(Error::TooLong) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_bytes_of_the_segment_are_inside() {
        for (offset, len) in [(0, 0), (0, 64), (63, 1), (64, 0), (10, 54)] {
            assert_eq!(inside(64, offset, len), Ok(()), "{len} at {offset}");
        }
        for (offset, len) in
            [(0, 65), (64, 1), (65, 0), (10, 55), (u32::MAX, 1), (1, usize::MAX), (1, u32::MAX as usize)]
        {
            assert_eq!(inside(64, offset, len), Err(Error::TooLong), "{len} at {offset}");
        }
    }
}

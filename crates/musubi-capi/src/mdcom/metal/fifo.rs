//! FIFO channels of C tasks.
//!
//! What you may rely on: a call is inside the monitor and leaves it only while it rests; then other tasks may use the
//! same channel. No call allocates.
//!
//! How it works: [`with`] finds the end, which its first use opens. A call that has to wait does so in the end itself,
//! whose board leaves the monitor meanwhile. One task at a time waits so at a channel, as an end announces one sleeper;
//! others at the same channel look once a millisecond.

use core::cell::{Cell, UnsafeCell};
use core::ffi::c_int;

use musubi_core::Error;
use musubi_core::channel::{Deadline, ReceivingEnd, SendingEnd};
use musubi_core::plan::FilterRule;

use super::entered::Entered;
use super::failure::Failure;
use super::{CHANNELS_MAX, HELD_MAX, Inside, installed, session};
use crate::mdcom::contract::abi::Usage;
use crate::mdcom::contract::handles::{self, Handles, Held, Memory, Place};
use crate::mdcom::contract::status::Status;

type Table = Handles<Held, [Place<Held>; HELD_MAX]>;
const NO_BLOCKS: Table = Handles::new([const { Place::NEW }; HELD_MAX]);
const _: () = assert!(CHANNELS_MAX <= handles::CHANNELS_MAX, "a name tells every channel");
const _: () = assert!(HELD_MAX <= handles::PLACES_MAX, "and every place");

/// What the channels share. Used inside the monitor only.
struct Desk {
    held: UnsafeCell<Table>,
    /// Channels at which a task waits.
    waited_for: [Cell<bool>; CHANNELS_MAX],
}

// SAFETY: used inside the monitor only, so by one task at a time.
unsafe impl Sync for Desk {}

static DESK: Desk = Desk { held: UnsafeCell::new(NO_BLOCKS), waited_for: [const { Cell::new(false) }; CHANNELS_MAX] };

/// Calls `by` with the table of blocks. It must not rest.
fn table<R>(_: Inside<'_>, by: impl FnOnce(&mut Table) -> R) -> R {
    // SAFETY: inside the monitor, which every `by` of this file neither leaves nor calls this function from.
    by(unsafe { &mut *DESK.held.get() })
}

/// An open channel.
#[derive(Clone, Copy)]
pub(crate) struct Channel<'m> {
    inside: Inside<'m>,
    number: u16,
    block_bytes: u32,
    /// The filter of the description.
    filter: FilterRule,
    end: End,
}

#[derive(Clone, Copy)]
enum End {
    Sending(&'static dyn SendingEnd),
    Receiving(&'static dyn ReceivingEnd),
}

/// Calls `by` with the channel, which is opened if it is not.
pub(crate) fn with<R>(ch: u32, by: impl FnOnce(&Channel<'_>) -> Result<R, Failure>) -> Result<R, Failure> {
    session::with(|node| by(&open(node, ch)?))
}

fn open<'m>(node: Entered<'m>, ch: u32) -> Result<Channel<'m>, Failure> {
    let number = u16::try_from(ch).map_err(|_| Status::Channel)?;
    let fifo = node.plan().fifos.get(usize::from(number)).ok_or(Status::Channel)?;
    if usize::from(number) >= CHANNELS_MAX {
        return Err(Failure::saying(Status::System, c"the image has no room for channels of this number"));
    }
    let end = match node.domain() {
        domain if domain == fifo.from => End::Sending(node.sending(number)?),
        domain if domain == fifo.to => End::Receiving(node.receiving(number)?),
        _ => return Err(Status::Channel.into()),
    };
    Ok(Channel { inside: node.inside(), number, block_bytes: fifo.block_bytes, filter: fifo.filter, end })
}

/// `mdcom_fifoch_alloc`.
pub(crate) fn allocate(ch: u32, timeout_ns: u64) -> Result<u64, Failure> {
    until(ch, timeout_ns, |channel, deadline| channel.allocate(deadline))
}

/// `mdcom_fifoch_wait`.
pub(crate) fn wait(ch: u32, timeout_ns: u64) -> Result<(), Failure> {
    until(ch, timeout_ns, |channel, deadline| {
        match channel.end {
            End::Sending(end) => end.wait(deadline),
            End::Receiving(end) => end.wait(deadline),
        }
        .map_err(Failure::from)
    })
}

/// Calls `attempt` until it has a result or the time is over.
fn until<R>(
    ch: u32,
    timeout_ns: u64,
    attempt: impl Fn(&Channel<'_>, Deadline) -> Result<R, Failure>,
) -> Result<R, Failure> {
    session::with_rest(|node| {
        let channel = open(node, ch)?;
        if timeout_ns == 0 {
            return attempt(&channel, Deadline::Poll);
        }
        let deadline_ns = session::deadline_ns(node, timeout_ns);
        loop {
            match channel.attempt_once(node, deadline_ns, &attempt) {
                Err(failure) if matches!(failure.status, Status::NoBlock | Status::Timeout) => {}
                done => return done,
            }
            session::check()?;
            if node.now_ns() >= deadline_ns {
                return Err(Status::Timeout.into());
            }
        }
    })
}

/// Forgets every block: their memory is about to be given up with the attachment.
pub(super) fn forget_all(node: Entered<'_>) {
    table(node.inside(), |table| *table = NO_BLOCKS);
}

impl Channel<'_> {
    /// One slice of a wait: in the end, or beside it if another task waits there.
    fn attempt_once<R>(
        &self,
        node: Entered<'_>,
        deadline_ns: u64,
        attempt: &impl Fn(&Channel<'_>, Deadline) -> Result<R, Failure>,
    ) -> Result<R, Failure> {
        let turn = &DESK.waited_for[usize::from(self.number)];
        if turn.get() {
            let result = attempt(self, Deadline::Poll);
            if result.is_err() {
                session::look_later(node, deadline_ns);
            }
            return result;
        }
        turn.set(true);
        let result = attempt(self, session::slice(node, deadline_ns));
        turn.set(false);
        result
    }

    fn sending(&self) -> Result<&'static dyn SendingEnd, Failure> {
        match self.end {
            End::Sending(end) => Ok(end),
            End::Receiving(_) => Err(Status::Side.into()),
        }
    }

    fn receiving(&self) -> Result<&'static dyn ReceivingEnd, Failure> {
        match self.end {
            End::Receiving(end) => Ok(end),
            End::Sending(_) => Err(Status::Side.into()),
        }
    }

    fn allocate(&self, deadline: Deadline) -> Result<u64, Failure> {
        let end = self.sending()?;
        let loan = end.allocate(deadline)?;
        // The table is asked now, as other tasks used it while this one rested.
        table(self.inside, |table| table.put(self.number, Held::Loan(loan))).map_err(|held| self.no_room(held))
    }

    /// Gives a block back that finds no place in the table.
    fn no_room(&self, held: Held) -> Failure {
        self.give_back(held);
        Failure::saying(Status::System, c"C tasks have too many blocks in hand")
    }

    fn give_back(&self, held: Held) {
        // It came from this very end, so it cannot be refused.
        match (self.end, held) {
            (End::Sending(end), Held::Loan(loan)) => drop(end.free(loan)),
            (End::Receiving(end), Held::Received(received)) => drop(end.free(received)),
            _ => {}
        }
    }

    /// Gives a block back at either side.
    pub(crate) fn free(&self, name: u64) -> Result<(), Failure> {
        let held = table(self.inside, |table| table.take(self.number, name)).ok_or(Status::Block)?;
        self.give_back(held);
        if matches!(self.end, End::Sending(_)) {
            // A task of this image may wait for just this block; the receiver does not tell it.
            wake();
        }
        Ok(())
    }

    /// Where the block of this name is.
    pub(crate) fn held(&self, name: u64) -> Result<Memory, Failure> {
        let memory = table(self.inside, |table| table.get(self.number, name).map(Held::memory));
        memory.ok_or_else(|| Status::Block.into())
    }

    /// Sends a block with this many bytes; `None`: all of it.
    pub(crate) fn enqueue(&self, name: u64, bytes: Option<usize>) -> Result<(), Failure> {
        let end = self.sending()?;
        // What is more than a u32 counts is more than any block has.
        let bytes = bytes.map_or(self.block_bytes, |bytes| u32::try_from(bytes).unwrap_or(u32::MAX));
        let send = |held| match held {
            Held::Loan(loan) => end.enqueue(loan, bytes).map_err(|(error, loan)| (error, Held::Loan(loan))),
            Held::Received(_) => Err((Error::NotHeld, held)),
        };
        // An end never rests while it enqueues.
        let sent = table(self.inside, |table| table.take_if(self.number, name, send));
        Ok(sent.ok_or(Status::Block)??)
    }

    /// The next message's block and bytes.
    pub(crate) fn dequeue(&self) -> Result<(u64, u32), Failure> {
        let end = self.receiving()?;
        if !table(self.inside, |table| table.has_room()) {
            return Err(Failure::saying(Status::System, c"C tasks have too many blocks in hand"));
        }
        let received = end.dequeue()?;
        let bytes = received.len();
        let name = table(self.inside, |table| table.put(self.number, Held::Received(received)));
        Ok((name.map_err(|held| self.no_room(held))?, bytes))
    }

    /// Tells the other side.
    pub(crate) fn notify(&self) {
        match self.end {
            // Whether the filter holds it back is not the caller's to know.
            End::Sending(end) => drop(end.notify()),
            End::Receiving(end) => end.notify(),
        }
    }

    /// Replaces the filter; `None`: by that of the description.
    pub(crate) fn set_filter(&self, rule: Option<FilterRule>) -> Result<(), Failure> {
        self.sending()?.set_filter(rule.unwrap_or(self.filter));
        Ok(())
    }

    /// `mdcom_fifoch_init`.
    pub(crate) fn reset(&self) {
        let mut from = 0;
        while let Some(held) = table(self.inside, |table| table.take_next(self.number, &mut from)) {
            self.give_back(held);
        }
        match self.end {
            End::Sending(end) => {
                end.set_filter(self.filter);
                end.reset();
            }
            End::Receiving(end) => end.reset(),
        }
        wake();
    }

    pub(crate) fn usage(&self) -> Usage {
        let usage = match self.end {
            End::Sending(end) => end.usage(),
            End::Receiving(end) => end.usage(),
        };
        Usage {
            blocks: usage.blocks,
            block_bytes: self.block_bytes,
            free: usage.free,
            queued: usage.queued,
            held: usage.held,
            connected: u32::from(usage.connected),
        }
    }

    /// There is none.
    pub(crate) fn event_fd(&self) -> Result<c_int, Failure> {
        Err(Failure::saying(Status::System, c"this target has no descriptors"))
    }

    /// Likewise.
    pub(crate) fn arm(&self) -> Result<u32, Failure> {
        Err(Failure::saying(Status::System, c"this target has no descriptors"))
    }
}

/// Makes tasks that rest look again.
fn wake() {
    if let Some(system) = installed::system() {
        system.wake();
    }
}

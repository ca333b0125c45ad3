//! FIFO channels: one place a channel, with the end that this process has of it.
//!
//! What you may rely on: a call holds its channel's lock for a bounded number of steps and never while it sleeps. No
//! call allocates, except the first on a channel.
//!
//! How it works: [`with`] looks the channel up, opens it if this is its first use, and calls a function with the end
//! under the lock; [`until`] does so again and again, spinning and then sleeping in between, in the three steps that
//! the port offers (prepare, sleep, finish).

use std::fmt;
use std::os::fd::{IntoRawFd, RawFd};
use std::sync::{Arc, Mutex, MutexGuard};

use musubi_core::Error;
use musubi_core::channel::{Attachment, Deadline, ReceivingEnd as _, SendingEnd as _};
use musubi_core::plan::{FIFOS_MAX, FilterRule};
use musubi_linux::sleep::Sleep;
use musubi_linux::{ReceivingEnd, RxLinks, RxSender, SendingEnd, TxLink, TxLinks};

use super::failure::Failure;
use super::session::{self, Attached, lock};
use crate::mdcom::contract::abi::{READY_BLOCK, READY_EVENT, READY_PEER, Usage};
use crate::mdcom::contract::handles::{self, Handles, Held, Memory};
use crate::mdcom::contract::status::Status;

/// The places, on a cache line each, so that threads on different channels do not meet.
static CHANNELS: [Place; FIFOS_MAX] = [const { Place(Mutex::new(None)) }; FIFOS_MAX];

#[repr(align(64))]
struct Place(Mutex<Option<Box<Channel>>>);

/// An open channel.
#[derive(Debug)]
pub(crate) struct Channel {
    serial: u64,
    block_bytes: u32,
    /// The filter of the description.
    filter: FilterRule,
    number: u16,
    /// Dropped before the end that they came from.
    blocks: Blocks,
    end: End,
}

type Blocks = Handles<Held, Vec<handles::Place<Held>>>;
const _: () = assert!(FIFOS_MAX <= handles::CHANNELS_MAX, "a name tells every channel");

#[allow(clippy::large_enum_variant, reason = "a channel is in a box as a whole")]
enum End {
    Sending(SendingEnd),
    Receiving(ReceivingEnd),
}

impl fmt::Debug for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            End::Sending(_) => "Sending",
            End::Receiving(_) => "Receiving",
        })
    }
}

/// A place with a channel in it, locked.
struct Open(MutexGuard<'static, Option<Box<Channel>>>);

impl Open {
    fn channel(&mut self) -> Result<&mut Channel, Failure> {
        self.0.as_deref_mut().ok_or_else(session::absent)
    }
}

/// Calls `by` with the channel, which is opened if it is not.
#[inline]
pub(crate) fn with<R>(ch: u32, by: impl FnOnce(&mut Channel) -> Result<R, Failure>) -> Result<R, Failure> {
    by(open(ch)?.channel()?)
}

#[inline]
fn open(ch: u32) -> Result<Open, Failure> {
    session::check()?;
    let place = CHANNELS.get(ch as usize).ok_or(Status::Channel)?;
    let mut channel = lock(&place.0);
    if channel.is_none() {
        *channel = Some(open_first(ch as u16)?);
    }
    Ok(Open(channel))
}

#[cold]
fn open_first(ch: u16) -> Result<Box<Channel>, Failure> {
    session::with(|Attached { participant, serial }| {
        let plan = participant.plan();
        let fifo = plan.fifos.get(usize::from(ch)).ok_or(Status::Channel)?;
        let end = match participant.domain() {
            domain if domain == fifo.from => End::Sending(participant.open_sending(ch)?),
            domain if domain == fifo.to => End::Receiving(participant.open_receiving(ch)?),
            _ => return Err(Status::Channel.into()),
        };
        // More can be held only of senders that have gone; only for these the table grows.
        let blocks = Blocks::with_room(fifo.blocks);
        let (block_bytes, filter) = (fifo.block_bytes, fifo.filter);
        Ok(Box::new(Channel { serial: *serial, block_bytes, filter, number: ch, blocks, end }))
    })
}

/// Closes every channel and wakes who waits at one.
pub(crate) fn close_all() {
    for place in &CHANNELS {
        let channel = lock(&place.0).take();
        if let Some(channel) = channel {
            channel.wake_waiting();
        }
    }
}

/// `mdcom_fifoch_alloc`.
pub(crate) fn allocate(ch: u32, timeout_ns: u64) -> Result<u64, Failure> {
    until(ch, timeout_ns, Channel::allocate)
}

/// `mdcom_fifoch_wait`.
pub(crate) fn wait(ch: u32, timeout_ns: u64) -> Result<(), Failure> {
    until(ch, timeout_ns, Channel::take_event)
}

/// Calls `attempt` until it has a result, sleeping in between; when the time is over, gives what it was refused with.
fn until<R>(ch: u32, timeout_ns: u64, attempt: impl Fn(&mut Channel) -> Result<R, Failure>) -> Result<R, Failure> {
    let mut opened = open(ch)?;
    let channel = opened.channel()?;
    let refused = match attempt(channel) {
        Err(failure) if would_wait(&failure) => failure,
        done => return done,
    };
    if timeout_ns == 0 {
        return Err(refused);
    }
    let deadline = session::deadline(timeout_ns);
    let (serial, spin) = (channel.serial, channel.end.spin());
    drop(opened);
    let look = || settled(again(ch, serial).and_then(|mut channel| attempt(channel.channel()?)));
    if let Some(done) = spin.until(deadline, look) {
        return done;
    }
    loop {
        let sleep = match again(ch, serial)?.channel()?.prepare(&attempt) {
            Prepared::Done(done) => return done,
            Prepared::Sleep(sleep) => sleep,
        };
        let in_time = sleep.sleep(deadline);
        let mut channel = again(ch, serial)?;
        channel.channel()?.end.finish_sleep();
        if let Some(done) = settled(attempt(channel.channel()?)) {
            return done;
        }
        if !in_time {
            return Err(Error::Timeout.into());
        }
    }
}

/// The channel after its lock was given up, if it is still of the same attachment.
fn again(ch: u32, serial: u64) -> Result<Open, Failure> {
    session::check()?;
    let place = CHANNELS.get(ch as usize).ok_or(Status::Channel)?;
    let channel = lock(&place.0);
    match &*channel {
        Some(open) if open.serial == serial => Ok(Open(channel)),
        _ => Err(Status::Terminated.into()),
    }
}

fn would_wait(failure: &Failure) -> bool {
    matches!(failure.status, Status::NoBlock | Status::Timeout)
}

fn settled<R>(result: Result<R, Failure>) -> Option<Result<R, Failure>> {
    match result {
        Err(failure) if would_wait(&failure) => None,
        done => Some(done),
    }
}

enum Prepared<R> {
    Done(Result<R, Failure>),
    Sleep(Sleeping),
}

/// A sleep that needs neither the lock nor the end.
enum Sleeping {
    Sender(Sleep<TxLink>, Arc<TxLinks>),
    Receiver(Sleep<RxSender>, Arc<RxLinks>),
}

impl Sleeping {
    fn sleep(&self, deadline: Deadline) -> bool {
        match self {
            Sleeping::Sender(sleep, links) => sleep.sleep(links.version_word(), deadline),
            Sleeping::Receiver(sleep, links) => sleep.sleep(links.version_word(), deadline),
        }
    }
}

impl End {
    fn spin(&self) -> musubi_linux::sleep::Spin {
        match self {
            End::Sending(end) => end.spin(),
            End::Receiving(end) => end.spin(),
        }
    }

    /// Announces a sleep, with which the end has also looked once more.
    fn prepare_sleep(&self) -> Sleeping {
        match self {
            End::Sending(end) => Sleeping::Sender(end.prepare_sleep().0, end.links()),
            End::Receiving(end) => Sleeping::Receiver(end.prepare_sleep().0, end.links()),
        }
    }

    fn finish_sleep(&self) {
        match self {
            End::Sending(end) => end.finish_sleep(),
            End::Receiving(end) => end.finish_sleep(),
        }
    }
}

impl Channel {
    fn prepare<R>(&mut self, attempt: impl Fn(&mut Channel) -> Result<R, Failure>) -> Prepared<R> {
        let sleep = self.end.prepare_sleep();
        match settled(attempt(self)) {
            Some(done) => {
                self.end.finish_sleep();
                Prepared::Done(done)
            }
            None => Prepared::Sleep(sleep),
        }
    }

    /// Makes every thread that sleeps at this channel look again.
    fn wake_waiting(&self) {
        match &self.end {
            End::Sending(end) => end.wake_sleepers(),
            End::Receiving(end) => end.wake_sleepers(),
        }
    }

    fn sending(&self) -> Result<&SendingEnd, Failure> {
        match &self.end {
            End::Sending(end) => Ok(end),
            End::Receiving(_) => Err(Status::Side.into()),
        }
    }

    fn receiving(&self) -> Result<&ReceivingEnd, Failure> {
        match &self.end {
            End::Receiving(end) => Ok(end),
            End::Sending(_) => Err(Status::Side.into()),
        }
    }

    /// A block, or [`Status::NoBlock`]; a loss is told when there is none.
    fn allocate(&mut self) -> Result<u64, Failure> {
        let loan = self.sending()?.allocate(Deadline::Poll)?;
        // SAFETY: it stays in `blocks`, which is dropped before the end, and a channel is dropped only when no call is in it.
        let loan = unsafe { loan.unbound() };
        self.hold(Held::Loan(loan))
    }

    /// Puts a block into the program's hands; gives its name.
    #[inline]
    fn hold(&mut self, held: Held) -> Result<u64, Failure> {
        self.blocks.put_growing(self.number, held).map_err(|held| {
            self.give_back(held);
            Status::Internal.into()
        })
    }

    fn give_back(&self, held: Held) {
        // It came from this very end, so it cannot be refused.
        match (&self.end, held) {
            (End::Sending(end), Held::Loan(loan)) => drop(end.free(loan)),
            (End::Receiving(end), Held::Received(received)) => drop(end.free(received)),
            _ => {}
        }
    }

    /// Gives a block back at either side.
    pub(crate) fn free(&mut self, name: u64) -> Result<(), Failure> {
        let held = self.blocks.take(self.number, name).ok_or(Status::Block)?;
        self.give_back(held);
        if let End::Sending(end) = &self.end {
            // A thread of this process may wait for just this block; the receiver does not tell it.
            end.wake_sleepers();
        }
        Ok(())
    }

    /// Where the block of this name is.
    #[inline]
    pub(crate) fn held(&mut self, name: u64) -> Result<Memory, Failure> {
        Ok(self.blocks.get(self.number, name).ok_or(Status::Block)?.memory())
    }

    /// Sends a block with this many bytes; `None`: all of it.
    pub(crate) fn enqueue(&mut self, name: u64, bytes: Option<usize>) -> Result<(), Failure> {
        let End::Sending(end) = &self.end else { return Err(Status::Side.into()) };
        // What is more than a u32 counts is more than any block has.
        let bytes = bytes.map_or(self.block_bytes, |bytes| u32::try_from(bytes).unwrap_or(u32::MAX));
        let sent = self.blocks.take_if(self.number, name, |held| match held {
            Held::Loan(loan) => end.enqueue(loan, bytes).map_err(|(error, loan)| (error, Held::Loan(loan))),
            Held::Received(_) => Err((Error::NotHeld, held)),
        });
        Ok(sent.ok_or(Status::Block)??)
    }

    /// The next message's block and bytes.
    pub(crate) fn dequeue(&mut self) -> Result<(u64, u32), Failure> {
        let received = self.receiving()?.dequeue()?;
        // SAFETY: as in `allocate`; the end keeps a sender's memory while a block of it is held.
        let received = unsafe { received.unbound() };
        let bytes = received.len();
        Ok((self.hold(Held::Received(received))?, bytes))
    }

    pub(crate) fn notify(&mut self) {
        match &self.end {
            End::Sending(end) => _ = end.notify(),
            End::Receiving(end) => end.notify(),
        }
    }

    /// Takes an event, or [`Status::Timeout`]; a loss is told when there is none.
    #[inline]
    fn take_event(&mut self) -> Result<(), Failure> {
        match &self.end {
            End::Sending(end) => Ok(end.wait(Deadline::Poll)?),
            End::Receiving(end) => Ok(end.wait(Deadline::Poll)?),
        }
    }

    /// Replaces the filter; `None`: by that of the description.
    pub(crate) fn set_filter(&mut self, rule: Option<FilterRule>) -> Result<(), Failure> {
        self.sending()?.set_filter(rule.unwrap_or(self.filter));
        Ok(())
    }

    /// `mdcom_fifoch_init`.
    pub(crate) fn reset(&mut self) {
        let mut from = 0;
        while let Some(held) = self.blocks.take_next(self.number, &mut from) {
            self.give_back(held);
        }
        match &self.end {
            End::Sending(end) => {
                end.set_filter(self.filter);
                end.reset();
            }
            End::Receiving(end) => end.reset(),
        }
        self.wake_waiting();
    }

    pub(crate) fn usage(&self) -> Usage {
        let usage = match &self.end {
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

    /// A descriptor that is the caller's to close.
    pub(crate) fn event_fd(&self) -> Result<RawFd, Failure> {
        let descriptor = match &self.end {
            End::Sending(end) => end.event_fd()?,
            End::Receiving(end) => end.event_fd()?,
        };
        Ok(descriptor.into_raw_fd())
    }

    /// Arms the descriptor; gives the bits of what is there already.
    pub(crate) fn arm(&self) -> Result<u32, Failure> {
        let bit = |is: bool, bit| if is { bit } else { 0 };
        Ok(match &self.end {
            End::Sending(end) => {
                end.arm();
                let ready = end.look();
                bit(ready.block, READY_BLOCK) | bit(ready.event, READY_EVENT) | bit(end.has_loss(), READY_PEER)
            }
            End::Receiving(end) => {
                let ready = end.arm();
                bit(ready, READY_EVENT) | bit(end.has_loss(), READY_PEER)
            }
        })
    }
}

//! What an interface asks of a port: ends of channels that know their peers, wait, and survive a peer's restart.
//!
//! What you may rely on: the interfaces (MDCOM, MCAPI, VI) are written against these traits only; each port (Linux
//! processes, UIO, bare metal) implements them around the core's [`crate::fifo`] and [`crate::lock`].
//!
//! How it works: an end is used from one thread at a time (`&self` with interior mutability, so that several blocks can
//! be out at once); every operation first takes note of peers that came or went. Losing a peer is reported once, as
//! [`Error::PeerGone`], by the first wait or allocation after it; then the end waits for the successor.

use core::task::{Context, Poll};

use crate::error::Error;
use crate::fifo::{Loan, Notified, Received};
use crate::plan::{FilterRule, Plan};
pub use crate::port::Deadline;

/// Most ends that one wait can be for.
pub const WAIT_MAX: usize = 60;

/// A participant's attachment to a system.
pub trait Attachment {
    /// Sending end of a FIFO channel.
    type Sending: SendingEnd;
    /// Receiving end of a FIFO channel.
    type Receiving: ReceivingEnd;
    /// SMEM channel.
    type Segment: SharedSegment;
    /// Why an end cannot be opened.
    type Error;

    /// The plan that this participant attached with.
    fn plan(&self) -> &Plan<'_>;
    /// Number of our domain.
    fn domain(&self) -> u16;
    /// Nanoseconds of the port's clock.
    fn now_ns(&self) -> u64;
    /// Lets this thread rest until an instant of the port's clock.
    fn sleep_until(&self, at_ns: u64);
    /// How many participants of a domain are attached, ourselves included.
    fn attached(&self, domain: u16) -> u16;
    /// Opens the sending end of a FIFO channel for this participant alone.
    ///
    /// # Errors
    /// Where our domain is not the sender, or another participant of it has the end.
    fn open_sending(&self, fifo: u16) -> Result<Self::Sending, Self::Error>;
    /// Opens the receiving end of a FIFO channel for this participant alone.
    ///
    /// # Errors
    /// Where our domain is not the receiver, or another participant of it has the end.
    fn open_receiving(&self, fifo: u16) -> Result<Self::Receiving, Self::Error>;
    /// Waits until one of `ends` (at most [`WAIT_MAX`]) has something to return for, or has lost its sender.
    ///
    /// # Errors
    /// [`Error::Timeout`]; [`Error::TooLong`] if there are more ends than can be waited for.
    fn wait_any(&self, ends: &[&Self::Receiving], deadline: Deadline) -> Result<(), Error>;
    /// Opens an SMEM channel, waiting until a member has made its memory.
    ///
    /// # Errors
    /// Where our domain is not a member, or the deadline has passed.
    fn open_segment(&self, smem: u16, deadline: Deadline) -> Result<Self::Segment, Self::Error>;
}

/// How full a channel is, as one end sees it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Blocks of the channel.
    pub blocks: u32,
    /// Blocks that can be allocated now; known to the sending end only, else 0.
    pub free: u32,
    /// Messages queued.
    pub queued: u32,
    /// Blocks in the program's hands at this end.
    pub held: u32,
    /// Whether a peer has the other end.
    pub connected: bool,
}

/// The sending end of a FIFO channel.
pub trait SendingEnd {
    /// Bytes of a block.
    fn block_bytes(&self) -> u32;
    /// How full the channel is.
    fn usage(&self) -> Usage;
    /// Takes a block, waiting for one until the deadline.
    ///
    /// # Errors
    /// [`Error::NoBlock`] at once with [`Deadline::Poll`], [`Error::Timeout`], or [`Error::PeerGone`].
    fn allocate(&self, deadline: Deadline) -> Result<Loan<'_>, Error>;
    /// Gives a block back unsent.
    ///
    /// # Errors
    /// The block, if it is not of this end.
    fn free<'l>(&self, loan: Loan<'l>) -> Result<(), Loan<'l>>;
    /// Enqueues a block with this many payload bytes.
    ///
    /// # Errors
    /// With the block: [`Error::TooLong`], [`Error::Throttled`], [`Error::NotHeld`].
    fn enqueue<'l>(&self, loan: Loan<'l>, bytes: u32) -> Result<(), (Error, Loan<'l>)>;
    /// Asks that the receiver be told; the filter decides when.
    fn notify(&self) -> Notified;
    /// Waits for an event of the receiver (its notify).
    ///
    /// # Errors
    /// [`Error::Timeout`], [`Error::PeerGone`].
    fn wait(&self, deadline: Deadline) -> Result<(), Error>;
    /// Ready once a block can be allocated; else `context` is woken when that changes.
    fn poll_block(&self, context: &mut Context<'_>) -> Poll<Result<(), Error>>;
    /// Replaces the notification filter.
    fn set_filter(&self, rule: FilterRule);
    /// Re-initialises the channel from this end.
    fn reset(&self);
}

/// The receiving end of a FIFO channel.
pub trait ReceivingEnd {
    /// Bytes of a block.
    fn block_bytes(&self) -> u32;
    /// How full the channel is.
    fn usage(&self) -> Usage;
    /// Waits for a notified message or an event of the sender.
    ///
    /// # Errors
    /// [`Error::Timeout`], [`Error::PeerGone`] once the messages of a sender that is gone have been dequeued.
    fn wait(&self, deadline: Deadline) -> Result<(), Error>;
    /// Whether [`ReceivingEnd::wait`] would return at once, with a message, an event or a loss. Takes nothing.
    fn is_ready(&self) -> bool;
    /// Priority class of the channel, 0 the most urgent.
    fn priority(&self) -> u8;
    /// Ready when [`ReceivingEnd::wait`] would return; else `context` is woken when that changes.
    fn poll_event(&self, context: &mut Context<'_>) -> Poll<Result<(), Error>>;
    /// Takes the next message.
    ///
    /// # Errors
    /// [`Error::Empty`]; [`Error::PeerFault`] if the sender announced what cannot be (skipped and counted).
    fn dequeue(&self) -> Result<Received<'_>, Error>;
    /// Gives a block back to the sender.
    ///
    /// # Errors
    /// The block, if it is not of this end.
    fn free<'r>(&self, received: Received<'r>) -> Result<(), Received<'r>>;
    /// Tells the sender.
    fn notify(&self);
    /// Re-initialises the channel from this end: everything held and queued goes back unread.
    fn reset(&self);
}

/// An SMEM channel: memory that all members may write, so its bytes are claims even under the lock.
pub trait SharedSegment {
    /// Payload bytes.
    fn bytes(&self) -> u32;
    /// Tries to take the lock; never waits longer than a few looks at each member.
    ///
    /// # Errors
    /// [`Error::Locked`]; [`Error::NotReady`] while a member's handshake is not finished.
    fn try_lock(&self) -> Result<(), Error>;
    /// Takes the lock, first come first served, until the deadline.
    ///
    /// # Errors
    /// [`Error::Timeout`].
    fn lock(&self, deadline: Deadline) -> Result<(), Error>;
    /// Gives the lock back.
    ///
    /// # Errors
    /// [`Error::NotHeld`]; nothing was changed.
    fn unlock(&self) -> Result<(), Error>;
    /// Copies bytes out; `offset` and length must lie inside.
    ///
    /// # Errors
    /// [`Error::TooLong`] if they do not.
    fn read(&self, offset: u32, into: &mut [u8]) -> Result<(), Error>;
    /// Copies bytes in; `offset` and length must lie inside.
    ///
    /// # Errors
    /// [`Error::TooLong`] if they do not.
    fn write(&self, offset: u32, from: &[u8]) -> Result<(), Error>;
}

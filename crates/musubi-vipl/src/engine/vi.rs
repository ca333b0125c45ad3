//! One VI: its states, what may be posted in which, and how a connection ends.
//!
//! What you may rely on: the state table of the standard, one function a row, tested row by row. Leaving `Connected` completes
//! every descriptor that was posted, in queue order, before the call returns; none is forgotten and none completes twice.
//!
//! How it works: what the peer says comes in by [`Vi::frame`], what this side has to say goes out in [`Vi::pump`]; both give
//! completions to [`LocalMemory`] as they happen and leave in [`Happened`] what queues and error handlers are to hear.
//!
//! Decided where the standard is silent: a descriptor with a mistake takes its turn, so everything before it completes first;
//! at the reliable levels it then ends the connection. A receive that was filled in part when the connection ended is flushed
//! with [`Status::PARTIAL_ERROR`] besides; so is a send of which a part had gone.

use super::attributes::ViAttributes;
use super::credit::Credit;
use super::descriptor::{Descriptor, Operation};
use super::frame::{LocalMemory, ViFrame, Wire};
use super::incoming::Incoming;
use super::lease::{Lease, LeaseWords};
use super::outgoing::Outgoing;
use super::protection::Protection;
use super::status::{AsyncError, Completion, Status};
use super::work_queue::{Dequeue, Oldest, Overrun, WorkQueue};

/// `VIP_VI_STATE`, with the values of `vipl.h`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum ViState {
    /// Not connected; receives can be posted.
    Idle = 0,
    /// Connected.
    Connected = 1,
    /// A connection was asked for.
    ConnectPending = 2,
    /// The connection was lost; [`Vi::disconnect`] makes it idle.
    Error = 3,
}

/// One of a VI's two queues.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Queue {
    /// Sends and RDMA operations.
    Send,
    /// Receives.
    Receive,
}

/// What this side knows of the other VI.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeerVi {
    /// Its attributes, as it said when the connection was made.
    pub attributes: ViAttributes,
}

/// `VIP_INVALID_STATE`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StateError;

/// What happened since it was last asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Happened {
    /// Descriptors of the send queue that completed.
    pub sends: u32,
    /// Descriptors of the receive queue that completed.
    pub receives: u32,
    /// What the error handler is to hear: a bit for each [`AsyncError`].
    errors: u16,
}

impl Happened {
    /// Whether nothing did.
    #[inline]
    pub fn is_nothing(&self) -> bool {
        self.sends == 0 && self.receives == 0 && self.errors == 0
    }

    /// Whether any error is to be told.
    pub fn has_errors(&self) -> bool {
        self.errors != 0
    }

    /// Whether this error is to be told.
    pub fn has(&self, error: AsyncError) -> bool {
        self.errors & (1 << error as u32) != 0
    }
}

/// One VI of this side.
#[derive(Debug)]
pub struct Vi {
    pub(super) attributes: ViAttributes,
    pub(super) state: ViState,
    pub(super) sends: WorkQueue,
    pub(super) receives: WorkQueue,
    pub(super) outgoing: Outgoing,
    pub(super) incoming: Incoming,
    pub(super) credit: Credit,
    /// Says to a peer that fetches what was offered whether the connection stands.
    lease: Option<Lease>,
    peer: Option<PeerVi>,
    happened: Happened,
}

impl Vi {
    /// An idle one, with room for so many descriptors in each queue.
    pub fn new(attributes: ViAttributes, descriptors_max: u32) -> Vi {
        Vi {
            attributes,
            state: ViState::Idle,
            sends: WorkQueue::new(descriptors_max),
            receives: WorkQueue::new(descriptors_max),
            outgoing: Outgoing::default(),
            incoming: Incoming::default(),
            credit: Credit::default(),
            lease: None,
            peer: None,
            happened: Happened::default(),
        }
    }

    /// Its state.
    pub fn state(&self) -> ViState {
        self.state
    }

    /// Its attributes.
    pub fn attributes(&self) -> &ViAttributes {
        &self.attributes
    }

    /// The other VI of its connection.
    pub fn peer(&self) -> Option<PeerVi> {
        self.peer
    }

    /// Whether nothing is posted to a queue.
    pub fn is_empty(&self, queue: Queue) -> bool {
        self.queue(queue).is_empty()
    }

    /// What happened since this was last asked.
    pub fn take_happened(&mut self) -> Happened {
        core::mem::take(&mut self.happened)
    }

    /// `VipSetViAttributes`.
    ///
    /// # Errors
    /// Unless it is idle.
    pub fn set_attributes(&mut self, attributes: ViAttributes) -> Result<(), StateError> {
        self.in_state(ViState::Idle)?;
        self.attributes = attributes;
        Ok(())
    }

    /// Whether `VipDestroyVi` may take it: idle, with nothing posted.
    ///
    /// # Errors
    /// Otherwise.
    pub fn check_destroyable(&self) -> Result<(), StateError> {
        self.in_state(ViState::Idle)?;
        if self.sends.is_empty() && self.receives.is_empty() { Ok(()) } else { Err(StateError) }
    }

    /// A connection is asked for.
    ///
    /// # Errors
    /// Unless it is idle.
    pub fn request(&mut self) -> Result<(), StateError> {
        self.in_state(ViState::Idle)?;
        self.state = ViState::ConnectPending;
        Ok(())
    }

    /// The connection that was asked for is there.
    ///
    /// # Errors
    /// Unless one was asked for.
    pub fn establish(&mut self, peer: PeerVi) -> Result<(), StateError> {
        self.in_state(ViState::ConnectPending)?;
        self.connect(peer);
        Ok(())
    }

    /// The connection that was asked for does not come about: it is idle again, its receives stay.
    ///
    /// # Errors
    /// Unless one was asked for.
    pub fn refuse(&mut self) -> Result<(), StateError> {
        self.in_state(ViState::ConnectPending)?;
        self.state = ViState::Idle;
        Ok(())
    }

    /// What this side offers of its connection stands under this lease: it is over before anything is flushed.
    pub fn offer_under(&mut self, lease: Lease) -> LeaseWords {
        self.lease.insert(lease).words()
    }

    /// `VipConnectAccept` with this VI.
    ///
    /// # Errors
    /// Unless it is idle.
    pub fn accept(&mut self, peer: PeerVi) -> Result<(), StateError> {
        self.in_state(ViState::Idle)?;
        self.connect(peer);
        Ok(())
    }

    /// `VipDisconnect`: it is idle, and everything that was posted has completed.
    pub fn disconnect(&mut self, memory: &mut impl LocalMemory) {
        self.flush(memory);
        self.state = ViState::Idle;
        self.peer = None;
    }

    /// The connection was lost: the peer went, disconnected, or cannot be reached.
    pub fn lose(&mut self, memory: &mut impl LocalMemory) {
        if self.state == ViState::Connected {
            self.end(AsyncError::ConnectionLost, memory);
        }
    }

    /// `VipPostRecv`, `VipPostSend` of what `write` makes of a place for a descriptor; it writes all of it. What was posted
    /// for sending goes out with the next [`Vi::pump`].
    ///
    /// # Errors
    /// [`Overrun`], which is to be told to the error handler too.
    #[inline]
    pub fn post(
        &mut self,
        queue: Queue,
        write: impl FnOnce(&mut Descriptor),
        memory: &mut impl LocalMemory,
    ) -> Result<(), Overrun> {
        let posted = match queue {
            Queue::Send => self.sends.post(write),
            Queue::Receive => self.receives.post(write),
        };
        if posted.is_err() {
            self.note(AsyncError::Overrun);
        }
        posted?;
        let has_use = match queue {
            Queue::Send => self.state == ViState::Connected,
            Queue::Receive => self.state != ViState::Error,
        };
        if !has_use {
            self.flush_queue(queue, memory);
        }
        Ok(())
    }

    /// Whether [`Vi::dequeue`] would give something back.
    pub fn has_complete(&self, queue: Queue) -> bool {
        self.queue(queue).has_complete()
    }

    /// `VipSendDone`, `VipRecvDone`: gives the oldest descriptor back, if it is complete.
    pub fn dequeue(&mut self, queue: Queue) -> Dequeue {
        match queue {
            Queue::Send => self.sends.dequeue(),
            Queue::Receive => self.receives.dequeue(),
        }
    }

    /// The same, with how it ended.
    #[inline]
    pub fn take(&mut self, queue: Queue) -> Oldest {
        match queue {
            Queue::Send => self.sends.take(),
            Queue::Receive => self.receives.take(),
        }
    }

    /// Descriptors of both queues that were ever posted, that completed, and of those that the end of a connection completed.
    pub fn totals(&self) -> [u64; 3] {
        let (sends, receives) = (self.sends.totals(), self.receives.totals());
        core::array::from_fn(|which| sends[which] + receives[which])
    }

    /// Whether one more can be posted to a queue.
    #[inline]
    pub fn has_room(&self, queue: Queue) -> bool {
        self.queue(queue).has_room()
    }

    /// Whether one descriptor is posted for sending that has not been taken back, and no more.
    #[inline]
    pub fn has_one_send(&self) -> bool {
        self.sends.has_one_open()
    }

    /// The last word of a connection that this side has ended, if the wire had no room for it yet: it goes with whoever
    /// carries frames, as the VI may be connected anew before there is room.
    pub fn take_farewell(&mut self) -> Option<ViFrame> {
        self.outgoing.farewell.take()
    }

    /// Whether something is left that waits for room.
    pub fn has_to_say(&self) -> bool {
        self.outgoing.has_to_say() || (self.state == ViState::Connected && self.sends.next().is_some())
    }

    /// Says what there is to say, as far as the wire has room.
    #[inline]
    pub fn pump(&mut self, protection: &Protection, wire: &mut impl Wire, memory: &mut impl LocalMemory) {
        self.say(protection, wire, memory);
        self.settle(memory);
    }

    /// Frames up to this number have been accepted by the remote side. What waited for that goes out.
    pub fn accepted(
        &mut self,
        number: u64,
        protection: &Protection,
        wire: &mut impl Wire,
        memory: &mut impl LocalMemory,
    ) {
        self.note_accepted(number);
        self.settle(memory);
        self.pump(protection, wire, memory);
    }

    /// The connection ends here and now: by a mistake, or because the peer said so.
    pub(super) fn end(&mut self, error: AsyncError, memory: &mut impl LocalMemory) {
        self.note(error);
        self.note(AsyncError::ConnectionLost);
        self.flush(memory);
        self.state = ViState::Error;
    }

    /// The error handler is to hear this.
    pub(super) fn note(&mut self, error: AsyncError) {
        self.happened.errors |= 1 << error as u32;
    }

    /// Tells what has completed.
    pub(super) fn settle(&mut self, memory: &mut impl LocalMemory) {
        let mut all_told = true;
        let mut tell = |descriptor: &Descriptor, completion: &Completion| {
            all_told &= memory.complete(descriptor, completion);
        };
        self.happened.sends += self.sends.settle(&mut tell);
        self.happened.receives += self.receives.settle(&mut tell);
        if !all_told {
            self.note(AsyncError::CompletionProtection);
        }
    }

    fn connect(&mut self, peer: PeerVi) {
        self.state = ViState::Connected;
        self.peer = Some(peer);
        self.outgoing = Outgoing::default();
        self.incoming = Incoming::default();
        self.credit = Credit::of(&self.receives);
    }

    /// Completes everything that was posted.
    fn flush(&mut self, memory: &mut impl LocalMemory) {
        self.lease = None;
        let partial = Status::FLUSHED.and(Status::PARTIAL_ERROR);
        if let Some(number) = self.outgoing.partly_sent(&self.sends) {
            let status = self.sends.descriptor(number).map_or(Status::FLUSHED, |send| Status::of_send(send.operation));
            self.sends.end_work(number, failed(status.and(partial)));
        }
        if let Some(number) = self.incoming.partly_filled() {
            self.receives.end_work(number, failed(Status::OP_RECEIVE.and(partial)));
        }
        self.flush_queue(Queue::Send, memory);
        self.flush_queue(Queue::Receive, memory);
        self.outgoing.forget();
        self.incoming = Incoming::default();
    }

    fn flush_queue(&mut self, queue: Queue, memory: &mut impl LocalMemory) {
        match queue {
            Queue::Send => self.sends.flush(|send| failed(Status::of_send(send.operation).and(Status::FLUSHED))),
            Queue::Receive => self.receives.flush(|_| failed(Status::OP_RECEIVE.and(Status::FLUSHED))),
        }
        self.settle(memory);
    }

    fn queue(&self, queue: Queue) -> &WorkQueue {
        match queue {
            Queue::Send => &self.sends,
            Queue::Receive => &self.receives,
        }
    }

    fn in_state(&self, state: ViState) -> Result<(), StateError> {
        if self.state == state { Ok(()) } else { Err(StateError) }
    }
}

/// A completion without data.
pub(super) fn failed(status: Status) -> Completion {
    Completion { bytes: 0, immediate: 0, status: status.and(Status::DONE) }
}

/// A completion of the send queue without a mistake.
pub(super) fn sent(operation: Operation, bytes: u32) -> Completion {
    Completion { bytes, immediate: 0, status: Status::of_send(operation).and(Status::DONE) }
}

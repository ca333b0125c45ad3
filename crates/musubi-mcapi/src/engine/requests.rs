//! Requests: what has begun and not been taken note of.
//!
//! What you may rely on: a request's name is never 0, its highest bit is 0, and it names no later request of the same
//! place until that place was used 32,767 times. A request completes once; completing one that has ended does nothing.
//!
//! How it works: a slab of places with generations. A request that waits for a peer's answer is also in that peer's list
//! of questions, and knows its place there, so it leaves the list in one step.

use alloc::vec::Vec;

use super::channel::end::ChannelRequest;
use super::{Engine, Outcome, RequestId};
use crate::{EndpointId, Error};
use musubi_transport::links::{Block, Links};

/// Most requests of a node at a time.
pub const REQUESTS_MAX: usize = 65_536;
const SLOT_BITS: u32 = 16;
const GENERATION_MAX: u16 = 0x7fff;

/// How often a program must have asked.
pub const OPEN_POLLS: u32 = 1000;
/// For how long, milliseconds.
pub const OPEN_POLLED_MS: u32 = 200;
const OPEN_POLLED_NS: u64 = OPEN_POLLED_MS as u64 * 1_000_000;

/// How often and since when a program has asked for a request.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Polled {
    times: u32,
    since_ns: u64,
}

impl Polled {
    /// Once more. True if that was often and long enough.
    pub fn once_more(&mut self, clock: impl FnOnce() -> u64) -> bool {
        self.times = self.times.saturating_add(1);
        if self.times == 1 {
            self.since_ns = clock();
            return false;
        }
        self.times > OPEN_POLLS && clock().saturating_sub(self.since_ns) >= OPEN_POLLED_NS
    }
}

/// What a pending request waits for.
#[derive(Clone, Copy, Debug)]
pub(super) enum Doing {
    /// An answer to a question for the endpoint at a port.
    Get { port: u32 },
    /// An answer with an attribute, of an endpoint or of the node.
    Attribute { of: Option<EndpointId>, number: u32 },
    /// A ping's answer.
    Ping { bytes: u32, started_ns: u64 },
    /// An answer with a part of a node's picture.
    Inspect { part: u32 },
    /// Its turn in the flow of messages to `to`.
    Send { to: EndpointId },
    /// That the receiving node has it.
    Confirm { bytes: u32 },
    /// A message at `at`.
    Receive { at: EndpointId },
    /// Something of a channel.
    Channel(ChannelRequest),
}

/// A request that has not completed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pending {
    pub doing: Doing,
    /// The peer (its place in the table) in whose list of questions this is, and where there.
    pub asked: Option<(u16, u32)>,
    /// The link with that peer took the question.
    pub said: bool,
    /// How often the program asked for it.
    pub polled: Polled,
}

#[derive(Debug)]
enum State<B> {
    Free,
    Pending(Pending),
    /// What came, and of what.
    Complete(Result<Outcome<B>, Error>, Option<Doing>),
}

#[derive(Debug)]
struct Slot<B> {
    generation: u16,
    state: State<B>,
}

/// The slab.
#[derive(Debug)]
pub(super) struct Requests<B> {
    slots: Vec<Slot<B>>,
    free: Vec<u16>,
}

/// How a request ended, and what it was for.
type Completed<B> = (Result<Outcome<B>, Error>, Option<Doing>);

impl<B> Requests<B> {
    pub fn new() -> Self {
        Requests { slots: Vec::new(), free: Vec::new() }
    }

    pub fn live(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    pub fn create(&mut self, doing: Doing) -> Result<RequestId, Error> {
        self.insert(State::Pending(Pending { doing, asked: None, said: false, polled: Polled::default() }))
    }

    /// A request that is complete from the beginning.
    pub fn create_complete(&mut self, result: Result<Outcome<B>, Error>) -> Result<RequestId, Error> {
        self.insert(State::Complete(result, None))
    }

    fn insert(&mut self, state: State<B>) -> Result<RequestId, Error> {
        let slot = match self.free.pop() {
            Some(slot) => slot,
            None if self.slots.len() == REQUESTS_MAX => return Err(Error::RequestLimit),
            None => {
                self.slots.push(Slot { generation: 0, state: State::Free });
                (self.slots.len() - 1) as u16
            }
        };
        let place = &mut self.slots[usize::from(slot)];
        place.generation = if place.generation == GENERATION_MAX { 1 } else { place.generation + 1 };
        place.state = state;
        Ok(RequestId(u32::from(place.generation) << SLOT_BITS | u32::from(slot)))
    }

    fn slot(&self, request: RequestId) -> Option<&Slot<B>> {
        let slot = self.slots.get(request.0 as usize & (REQUESTS_MAX - 1))?;
        (u32::from(slot.generation) == request.0 >> SLOT_BITS && !matches!(slot.state, State::Free)).then_some(slot)
    }

    fn slot_mut(&mut self, request: RequestId) -> Option<&mut Slot<B>> {
        let slot = self.slots.get_mut(request.0 as usize & (REQUESTS_MAX - 1))?;
        (u32::from(slot.generation) == request.0 >> SLOT_BITS && !matches!(slot.state, State::Free)).then_some(slot)
    }

    pub fn pending(&self, request: RequestId) -> Option<&Pending> {
        match &self.slot(request)?.state {
            State::Pending(pending) => Some(pending),
            _ => None,
        }
    }

    pub fn pending_mut(&mut self, request: RequestId) -> Option<&mut Pending> {
        match &mut self.slot_mut(request)?.state {
            State::Pending(pending) => Some(pending),
            _ => None,
        }
    }

    pub fn is_complete(&self, request: RequestId) -> Option<bool> {
        Some(matches!(self.slot(request)?.state, State::Complete(..)))
    }

    /// Completes a pending request; gives what it was waiting for, `None` if it is not pending.
    fn complete(&mut self, request: RequestId, result: Result<Outcome<B>, Error>) -> Option<Pending> {
        let slot = self.slot_mut(request)?;
        let State::Pending(pending) = slot.state else { return None };
        slot.state = State::Complete(result, Some(pending.doing));
        Some(pending)
    }

    /// Takes a completed request away: its result, and what it was for.
    fn take(&mut self, request: RequestId) -> Option<Completed<B>> {
        let slot = self.slot_mut(request)?;
        match core::mem::replace(&mut slot.state, State::Free) {
            State::Complete(result, doing) => {
                self.free.push(request.0 as u16);
                Some((result, doing))
            }
            other => {
                slot.state = other;
                None
            }
        }
    }

    /// All pending requests: what leaving goes through.
    pub fn all_pending(&self) -> Vec<RequestId> {
        let pending = self.slots.iter().enumerate().filter(|(_, slot)| matches!(slot.state, State::Pending(_)));
        pending.map(|(place, slot)| RequestId(u32::from(slot.generation) << SLOT_BITS | place as u32)).collect()
    }
}

impl<B: Block> Engine<B> {
    /// Whether a request has completed.
    ///
    /// # Errors
    /// [`Error::RequestInvalid`].
    pub fn is_complete(&self, request: RequestId) -> Result<bool, Error> {
        self.requests.is_complete(request).ok_or(Error::RequestInvalid)
    }

    /// Ends a request that has completed and gives what came of it; `None` while it has not.
    ///
    /// # Errors
    /// Outer: [`Error::RequestInvalid`]. Inner: why the operation failed, [`Error::RequestCancelled`] among others.
    pub fn take_outcome(&mut self, request: RequestId) -> Result<Option<Result<Outcome<B>, Error>>, Error> {
        match self.is_complete(request)? {
            true => Ok(self.requests.take(request).map(|(result, _)| result)),
            false => Ok(None),
        }
    }

    /// Cancels a request. It stays, completed with [`Error::RequestCancelled`], until it is taken or dropped.
    ///
    /// # Errors
    /// [`Error::RequestInvalid`], also if it had completed (then it stays as it was).
    pub fn cancel(&mut self, request: RequestId, links: &mut impl Links<Block = B>) -> Result<(), Error> {
        let pending = *self.requests.pending(request).ok_or(Error::RequestInvalid)?;
        match pending.doing {
            Doing::Get { port } => self.cancel_get(request, &pending, port, links),
            Doing::Send { to } => self.cancel_send(request, to),
            Doing::Receive { at } => self.cancel_receive(request, at),
            Doing::Channel(doing) => self.cancel_channel_request(request, doing, links),
            Doing::Attribute { .. } | Doing::Ping { .. } | Doing::Inspect { .. } | Doing::Confirm { .. } => {}
        }
        self.complete(request, Err(Error::RequestCancelled));
        self.settle(links);
        Ok(())
    }

    /// Forgets a request, completed or not (then it is cancelled first). A message or packet that it got goes to the next who
    /// receives.
    pub fn drop_request(&mut self, request: RequestId, links: &mut impl Links<Block = B>) {
        let _ = self.cancel(request, links);
        match self.requests.take(request) {
            Some((Ok(Outcome::Packet(packet)), Some(Doing::Channel(of)))) => self.packet_not_taken(of, packet),
            Some((Ok(Outcome::Message(message)), Some(Doing::Receive { at }))) => self.message_not_taken(at, message),
            _ => {}
        }
    }

    /// Number of requests that exist.
    pub fn requests(&self) -> usize {
        self.requests.live()
    }

    /// Completes a request, if it is pending: whoever waits for it will see.
    pub(super) fn complete(&mut self, request: RequestId, result: Result<Outcome<B>, Error>) {
        let Some(pending) = self.requests.complete(request, result) else { return };
        self.changes += 1;
        if let Some((peer, place)) = pending.asked {
            self.forget_question(peer, place);
        }
    }
}

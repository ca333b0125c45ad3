//! The requests of a node's program: what has begun, what came of it, and where that goes.
//!
//! What you may rely on: a number names one request; after that is gone, the number names nothing for thousands of
//! requests more. A program that tests and never waits loses nothing and leaks nothing.
//!
//! How it works: a request is *pending* while the engine has it. Once a program looks (test, wait, or the call that
//! began it) and the engine has finished, the outcome goes where the program wanted it and the request is *done*: it
//! keeps its status and size, and stands in a queue of [`DONE_MAX`]. Waiting takes it away; so does the queue, when so
//! many others have been done since. A cancelled request stands there too, so that who waits hears of it. What failed at
//! once has a queue of its own.
//!
//! What it does not do: lock. Whoever has it has the node's lock or needs nothing of the engine.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::ffi::c_void;

use musubi_mcapi::engine::{ChannelHandle, Outcome, RequestId};
use musubi_transport::links::Payload;

use super::packets_in_hand::PacketsInHand;
use super::port::{Block, NodeEngine};
use super::status::Status;

/// Requests that can be pending at a time: `MCA_MAX_REQUESTS`.
pub const PENDING_MAX: usize = 4096;
/// Requests that are done and remembered.
const DONE_MAX: usize = 16_384;
/// Operations that failed at once and are remembered: apart, as a program may try the same again and again.
const FAILED_MAX: usize = 256;

const SLOT_BITS: u32 = 16;
const GENERATION_MAX: u16 = 0x7FFF;

/// Where an outcome goes. The addresses are good until the request is done: the caller's promise.
#[derive(Debug)]
pub(crate) enum Goes {
    /// Nowhere.
    Nowhere,
    /// The size only; what was sent lies here.
    Sent { from: usize },
    /// Into a buffer.
    Message { buffer: *mut u8, size: usize },
    /// Its address goes here.
    Packet { place: *mut *mut c_void, handle: ChannelHandle },
    /// The endpoint goes here.
    Endpoint { place: *mut u32 },
}

/// What came of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Result {
    /// As for the program.
    pub(crate) status: Status,
    /// Bytes sent or received.
    pub(crate) size: Option<usize>,
}

impl Result {
    pub(crate) fn plain() -> Result {
        Result { status: Status::Success, size: None }
    }

    pub(crate) fn sent(bytes: usize) -> Result {
        Result { status: Status::Success, size: Some(bytes) }
    }

    pub(crate) fn failed(status: Status) -> Result {
        Result { status, size: None }
    }
}

/// How a request is.
#[derive(Debug)]
enum State {
    Free,
    Pending { request: RequestId, goes: Goes, waiter: u32 },
    Done { result: Result, asked: bool },
    Cancelled,
}

/// What somebody who looks sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Seen {
    /// Not complete. `waiter` is whoever waits, or 0.
    Pending { waiter: u32 },
    /// Complete; `asked`: this was told before.
    Done { result: Result, asked: bool },
    /// Cancelled, and not waited for since.
    Cancelled,
}

#[derive(Debug)]
struct Slot {
    generation: u16,
    state: State,
}

/// The requests of a node's program.
#[derive(Debug, Default)]
pub(crate) struct Requests {
    slots: Vec<Slot>,
    free: Vec<u16>,
    pending: usize,
    done: VecDeque<u32>,
    failed: VecDeque<u32>,
    waiters: u32,
}

// SAFETY: the addresses in it are written through only by `settle`, whose caller vouches for them on any thread.
unsafe impl Send for Requests {}

impl Requests {
    /// Whether another request may begin.
    pub(crate) fn room(&self) -> core::result::Result<(), Status> {
        if self.pending < PENDING_MAX { Ok(()) } else { Err(Status::RequestLimit) }
    }

    /// Number of requests that are pending.
    pub(crate) fn pending(&self) -> usize {
        self.pending
    }

    /// A request that the engine has.
    pub(crate) fn begin(&mut self, request: RequestId, goes: Goes) -> u32 {
        self.pending += 1;
        self.put(State::Pending { request, goes, waiter: 0 })
    }

    /// A request that is done already.
    pub(crate) fn begin_done(&mut self, result: Result) -> u32 {
        let number = self.put(State::Done { result, asked: false });
        self.remember(number);
        number
    }

    /// An operation that failed at once.
    pub(crate) fn begin_failed(&mut self, status: Status) -> u32 {
        let number = self.put(State::Done { result: Result::failed(status), asked: false });
        self.failed.push_back(number);
        if self.failed.len() > FAILED_MAX
            && let Some(oldest) = self.failed.pop_front()
        {
            self.forget(oldest);
        }
        number
    }

    fn put(&mut self, state: State) -> u32 {
        let slot = self.free.pop().unwrap_or_else(|| {
            // Never more than both limits together.
            self.slots.push(Slot { generation: 0, state: State::Free });
            (self.slots.len() - 1) as u16
        });
        let place = &mut self.slots[usize::from(slot)];
        place.generation = place.generation % GENERATION_MAX + 1;
        place.state = state;
        u32::from(place.generation) << SLOT_BITS | u32::from(slot)
    }

    fn slot(&mut self, number: u32) -> Option<&mut Slot> {
        let slot = self.slots.get_mut((number & ((1 << SLOT_BITS) - 1)) as usize)?;
        (u32::from(slot.generation) == number >> SLOT_BITS && !matches!(slot.state, State::Free)).then_some(slot)
    }

    /// How a request is; `None` if there is none of this number.
    pub(crate) fn seen(&mut self, number: u32) -> Option<Seen> {
        Some(match &self.slot(number)?.state {
            State::Free => return None,
            State::Pending { waiter, .. } => Seen::Pending { waiter: *waiter },
            State::Done { result, asked } => Seen::Done { result: *result, asked: *asked },
            State::Cancelled => Seen::Cancelled,
        })
    }

    /// Notes that a program was told.
    pub(crate) fn tell(&mut self, number: u32) {
        if let Some(Slot { state: State::Done { asked, .. }, .. }) = self.slot(number) {
            *asked = true;
        }
    }

    /// Looks whether the engine has finished a pending request, and if so puts the outcome where it goes.
    ///
    /// # Safety
    /// Where it goes is as the program promised when it began the request.
    pub(crate) unsafe fn settle(
        &mut self,
        number: u32,
        engine: &mut NodeEngine,
        held: &mut PacketsInHand,
    ) -> Option<Seen> {
        if let Some(Slot { state: State::Pending { request, goes, .. }, .. }) = self.slot(number) {
            let outcome = match engine.take_outcome(*request) {
                Ok(None) => return self.seen(number),
                Ok(Some(outcome)) => outcome.map_err(Status::from),
                Err(error) => Err(Status::from(error)),
            };
            // SAFETY: the caller's promise.
            let result = unsafe { deliver(outcome, goes, held) };
            if let Some(slot) = self.slot(number) {
                slot.state = State::Done { result, asked: false };
            }
            self.pending -= 1;
            self.remember(number);
        }
        self.seen(number)
    }

    fn remember(&mut self, number: u32) {
        self.done.push_back(number);
        if self.done.len() > DONE_MAX
            && let Some(oldest) = self.done.pop_front()
        {
            self.forget(oldest);
        }
    }

    /// Forgets the oldest of a queue, unless its number has come round and is another's by now.
    fn forget(&mut self, oldest: u32) {
        if !matches!(self.seen(oldest), Some(Seen::Pending { .. })) {
            self.remove(oldest);
        }
    }

    /// Forgets a request that is not pending.
    pub(crate) fn remove(&mut self, number: u32) {
        if let Some(slot) = self.slot(number) {
            slot.state = State::Free;
            self.free.push((number & ((1 << SLOT_BITS) - 1)) as u16);
        }
    }

    /// A number for somebody who waits.
    pub(crate) fn waiter(&mut self) -> u32 {
        self.waiters = self.waiters.wrapping_add(1).max(1);
        self.waiters
    }

    /// Notes who waits for a pending request; 0: nobody.
    pub(crate) fn wait(&mut self, number: u32, by: u32) {
        if let Some(Slot { state: State::Pending { waiter, .. }, .. }) = self.slot(number) {
            *waiter = by;
        }
    }

    /// The engine's name of a pending request.
    pub(crate) fn engines(&mut self, number: u32) -> Option<RequestId> {
        match &self.slot(number)?.state {
            State::Pending { request, .. } => Some(*request),
            _ => None,
        }
    }

    /// Whether a pending request sends.
    pub(crate) fn sends(&mut self, number: u32) -> bool {
        matches!(self.slot(number), Some(Slot { state: State::Pending { goes: Goes::Sent { .. }, .. }, .. }))
    }

    /// A pending request was cancelled.
    pub(crate) fn cancel(&mut self, number: u32) {
        if let Some(slot) = self.slot(number) {
            slot.state = State::Cancelled;
            self.pending -= 1;
            self.remember(number);
        }
    }

    /// Whether a buffer at this address is being sent.
    pub(crate) fn is_sending(&self, address: usize) -> bool {
        let sends =
            |slot: &Slot| matches!(slot.state, State::Pending { goes: Goes::Sent { from }, .. } if from == address);
        self.slots.iter().any(sends)
    }
}

/// Copies a message into a program's buffer.
///
/// # Safety
/// `buffer` is room for `size` bytes, or NULL if that is 0.
pub(crate) unsafe fn take_message(payload: &Payload<Block>, buffer: *mut u8, size: usize) -> Result {
    let copied = payload.len().min(size);
    if copied > 0 {
        // SAFETY: the caller's promise; not NULL, as the size is not 0.
        payload.copy_to(unsafe { core::slice::from_raw_parts_mut(buffer, copied) });
    }
    let status = if payload.len() > size { Status::MessageTruncated } else { Status::Success };
    Result { status, size: Some(copied) }
}

/// Puts an outcome where it goes.
///
/// # Safety
/// As [`Requests::settle`].
unsafe fn deliver(
    outcome: core::result::Result<Outcome<Block>, Status>,
    goes: &Goes,
    held: &mut PacketsInHand,
) -> Result {
    match (outcome, goes) {
        (Err(status), _) => Result::failed(status),
        (Ok(Outcome::Message(message)), Goes::Message { buffer, size }) => {
            // SAFETY: the caller's promise.
            unsafe { take_message(&message.payload, *buffer, *size) }
        }
        (Ok(Outcome::Packet(payload)), Goes::Packet { place, handle }) => {
            let size = payload.len();
            let address = held.keep(*handle, payload);
            // SAFETY: the caller's promise.
            unsafe { place.write(address.cast()) };
            Result::sent(size)
        }
        (Ok(Outcome::Endpoint(endpoint)), Goes::Endpoint { place }) => {
            // SAFETY: the caller's promise.
            unsafe { place.write(endpoint.bits()) };
            Result::plain()
        }
        (Ok(Outcome::Sent(bytes)), _) => Result::sent(bytes),
        (Ok(_), _) => Result::plain(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_done_stays_until_it_is_taken_or_many_more_are_done() {
        let mut requests = Requests::default();
        let first = requests.begin_done(Result::sent(7));
        assert_eq!(requests.seen(first), Some(Seen::Done { result: Result::sent(7), asked: false }));
        requests.tell(first);
        assert_eq!(requests.seen(first), Some(Seen::Done { result: Result::sent(7), asked: true }));
        for _ in 0..DONE_MAX - 1 {
            requests.begin_done(Result::plain());
        }
        assert!(requests.seen(first).is_some());
        requests.begin_done(Result::plain());
        assert!(requests.seen(first).is_none());
        assert!(requests.slots.len() <= DONE_MAX + 1);
        let kept = requests.begin_done(Result::sent(9));
        for _ in 0..2 * DONE_MAX {
            requests.begin_failed(Status::MemoryLimit);
        }
        assert!(requests.seen(kept).is_some(), "what failed at once pushes nothing else out");
        assert!(requests.slots.len() <= DONE_MAX + FAILED_MAX + 2);
    }

    #[test]
    fn a_number_is_not_another_requests() {
        let mut requests = Requests::default();
        assert_eq!((requests.seen(0), requests.seen(u32::MAX), requests.seen(0xdead_beef)), (None, None, None));
        let mut numbers = Vec::new();
        for _ in 0..100 {
            let number = requests.begin_done(Result::plain());
            assert!(number != 0 && number >> 31 == 0);
            requests.remove(number);
            assert_eq!(requests.seen(number), None);
            numbers.push(number);
        }
        numbers.sort_unstable();
        numbers.dedup();
        assert_eq!(numbers.len(), 100);
    }

    #[test]
    fn pending_requests_are_limited_and_survive_the_queue() {
        let mut requests = Requests::default();
        let pending = requests.begin(RequestId(1), Goes::Nowhere);
        for _ in 0..3 * DONE_MAX {
            requests.begin_done(Result::plain());
        }
        assert_eq!(requests.seen(pending), Some(Seen::Pending { waiter: 0 }));
        for number in 1..PENDING_MAX as u32 {
            assert_eq!(requests.room(), Ok(()));
            requests.begin(RequestId(number), Goes::Sent { from: 64 });
        }
        assert_eq!(requests.room(), Err(Status::RequestLimit));
        assert!(requests.is_sending(64) && !requests.is_sending(72));
        requests.cancel(pending);
        assert_eq!((requests.seen(pending), requests.room()), (Some(Seen::Cancelled), Ok(())));
    }
}

//! Beginning operations, and test, wait, wait_any, cancel.
//!
//! What you may rely on: beginning says at once what has completed at once, and then has filled what is to be filled. A
//! wait that times out changes nothing. Whoever waits hears of a cancellation.
//!
//! How it works: everything is done under the node's lock, with the table's ([`Requests`]) inside; a wait tries again
//! whenever the engine's changes have moved.

use alloc::vec::Vec;

use musubi_mcapi::Error;
use musubi_mcapi::engine::RequestId;
use musubi_transport::running::Ways;

use super::exports::{export, give};
use super::node::{NodeEngine, NodeLinks, ThreadNode, bound};
use super::requests::{Goes, PENDING_MAX, Requests, Result as Became, Seen};
use super::status::Status;
use crate::ffi::given;

/// What `mcapi_wait_any` gives if it fails: `MCAPI_RETURN_VALUE_INVALID`.
const RETURN_VALUE_INVALID: u32 = u32::MAX;
/// Most requests that one call can wait for: more do not exist.
const ANY_MAX: usize = 2 * PENDING_MAX;

/// What has begun.
pub(crate) enum Begun {
    /// It is done.
    Done(Became),
    /// The engine has it.
    Later(RequestId),
}

/// Begins an operation whose outcome goes to `goes`; its number goes to `number`, also if it failed at once.
///
/// # Safety
/// `number` is NULL or points to room for a request; `goes` is as the program promised.
pub(crate) unsafe fn begin(
    bound: &ThreadNode,
    number: *mut u32,
    goes: Goes,
    by: impl FnOnce(&mut NodeEngine, &mut NodeLinks) -> Result<Begun, Error>,
) -> Result<(), Status> {
    given(number)?;
    let (request, status) = bound.with(|engine, links| {
        let mut requests = bound.requests();
        if let Err(status) = requests.room() {
            return Ok((0, status));
        }
        let request = match by(engine, links) {
            Ok(Begun::Later(request)) => requests.begin(request, goes),
            Ok(Begun::Done(outcome)) => requests.begin_done(outcome),
            Err(error) => requests.begin_failed(error.into()),
        };
        // SAFETY: the caller's promise.
        let seen = unsafe { requests.settle(request, engine, &mut bound.held()) };
        Ok((request, status_of(seen)))
    })?;
    // SAFETY: the caller's promise, and it is not NULL.
    unsafe { number.write(request) };
    if status == Status::Success { Ok(()) } else { Err(status) }
}

fn status_of(seen: Option<Seen>) -> Status {
    match seen {
        Some(Seen::Pending { .. }) => Status::Pending,
        Some(Seen::Done { result, .. }) => result.status,
        Some(Seen::Cancelled) | None => Status::RequestInvalid,
    }
}

/// Looks at a request with the engine at hand.
fn settle(bound: &ThreadNode, number: u32, engine: &mut NodeEngine) -> Option<Seen> {
    // SAFETY: who began the request promised that where it goes is good until it is done.
    unsafe { bound.requests().settle(number, engine, &mut bound.held()) }
}

/// Writes the size, if there is one.
///
/// # Safety
/// `size` points to room for it.
unsafe fn tell_size(outcome: Became, size: *mut usize) {
    if let Some(bytes) = outcome.size {
        // SAFETY: the caller's promise.
        unsafe { size.write(bytes) };
    }
}

/// What a test says: the outcome, and whether the program heard a failure before.
fn test(bound: &ThreadNode, number: u32) -> Result<(Became, bool), Status> {
    let mut seen = bound.requests().seen(number);
    if let Some(Seen::Pending { .. }) = seen {
        seen = bound.look(|engine, links| {
            let seen = settle(bound, number, engine);
            if seen == Some(Seen::Pending { waiter: 0 })
                && let Some(request) = bound.requests().engines(number)
            {
                // For programs of one thread that do nothing else until one end of a channel is open.
                engine.polled(request, Ways::now_ns, links);
            }
            Ok(seen)
        })?;
    }
    match seen {
        Some(Seen::Done { result, asked }) => {
            bound.requests().tell(number);
            Ok((result, asked))
        }
        Some(Seen::Pending { .. }) => Err(Status::Pending),
        Some(Seen::Cancelled) | None => Err(Status::RequestInvalid),
    }
}

/// Whether a request has completed. A failed one is told with FALSE; a loop that asks on hears TRUE, and the status
/// again.
///
/// # Safety
/// Pointers are NULL or as include/mcapi.h says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcapi_test(request: *mut u32, size: *mut usize, mcapi_status: *mut u32) -> u8 {
    let mut heard = false;
    let by = || {
        bound(|bound| {
            given(request)?;
            given(size)?;
            // SAFETY: the caller's promise, and it is not NULL.
            let (outcome, asked) = test(bound, unsafe { request.read() })?;
            // SAFETY: the caller's promise, and it is not NULL.
            unsafe { tell_size(outcome, size) };
            heard = asked;
            if outcome.status == Status::Success { Ok(1) } else { Err(outcome.status) }
        })
    };
    // SAFETY: the caller's promise.
    let complete = unsafe { give(mcapi_status, 0, by) };
    if heard { 1 } else { complete }
}

/// Notes that the caller waits for all of these that are pending.
fn enlist(requests: &mut Requests, numbers: &[u32]) -> Result<u32, Status> {
    let waiter = requests.waiter();
    let taken = |seen| matches!(seen, Some(Seen::Pending { waiter }) if waiter != 0);
    if numbers.iter().any(|number| taken(requests.seen(*number))) {
        return Err(Status::WaitPending);
    }
    for number in numbers {
        requests.wait(*number, waiter);
    }
    Ok(waiter)
}

/// The first of these that is not pending: its place and how it is.
fn first(requests: &mut Requests, numbers: &[u32]) -> Option<(usize, Option<Seen>)> {
    let mut invalid = None;
    for (place, number) in numbers.iter().enumerate() {
        match requests.seen(*number) {
            Some(Seen::Pending { .. }) => {}
            None => invalid = invalid.or(Some((place, None))),
            complete => return Some((place, complete)),
        }
    }
    invalid
}

/// Waits until one of these is complete; gives its place and what came of it. A lone request is taken away then; of
/// several, one that failed stays, so that a test tells which it was.
fn wait(bound: &ThreadNode, numbers: &[u32], timeout_ms: u32) -> Result<(usize, Became), Status> {
    let at_once = {
        let mut requests = bound.requests();
        match first(&mut requests, numbers) {
            Some(found) => Err(found),
            None => Ok(enlist(&mut requests, numbers)?),
        }
    };
    let (place, seen) = match at_once {
        Err(found) => found,
        Ok(waiter) => {
            let waited = bound.wait(timeout_ms, |engine, _| {
                for number in numbers {
                    settle(bound, *number, engine);
                }
                first(&mut bound.requests(), numbers).map(Ok)
            });
            leave(&mut bound.requests(), numbers, waiter);
            waited?
        }
    };
    let mut requests = bound.requests();
    match seen {
        Some(Seen::Done { result, .. }) => {
            if result.status == Status::Success || numbers.len() == 1 {
                requests.remove(numbers[place]);
            }
            Ok((place, result))
        }
        Some(Seen::Cancelled) => {
            requests.remove(numbers[place]);
            Err(Status::RequestCancelled)
        }
        _ => Err(Status::RequestInvalid),
    }
}

/// The caller waits no longer.
fn leave(requests: &mut Requests, numbers: &[u32], by: u32) {
    for number in numbers {
        if requests.seen(*number) == Some(Seen::Pending { waiter: by }) {
            requests.wait(*number, 0);
        }
    }
}

/// The numbers of several requests.
///
/// # Safety
/// `requests` is NULL or so many pointers, each NULL or to a request.
unsafe fn numbers(count: usize, requests: *mut *mut u32) -> Result<Vec<u32>, Status> {
    given(requests)?;
    if count == 0 || count > ANY_MAX {
        return Err(Status::Parameter);
    }
    // SAFETY: the caller's promise, and it is not NULL.
    let pointers = unsafe { core::slice::from_raw_parts(requests, count) };
    let number = |pointer: &*mut u32| {
        given(*pointer)?;
        // SAFETY: the caller's promise, and it is not NULL.
        Ok(unsafe { pointer.read() })
    };
    pointers.iter().map(number).collect()
}

export! {
    /// Waits for a request.
    fn mcapi_wait(request: *mut u32, size: *mut usize, timeout: u32) -> u8, else 0; {
        bound(|bound| {
            given(request)?;
            given(size)?;
            // SAFETY: the caller's promise, and it is not NULL.
            let number = unsafe { request.read() };
            let (_, outcome) = wait(bound, &[number], timeout)?;
            // SAFETY: the caller's promise, and it is not NULL.
            unsafe { tell_size(outcome, size) };
            if outcome.status == Status::Success { Ok(1) } else { Err(outcome.status) }
        })
    }

    /// Waits for any of several requests.
    fn mcapi_wait_any(number: usize, requests: *mut *mut u32, size: *mut usize, timeout: u32)
        -> u32, else RETURN_VALUE_INVALID; {
        bound(|bound| {
            // SAFETY: the caller's promise.
            let numbers = unsafe { numbers(number, requests) }?;
            given(size)?;
            let (place, outcome) = wait(bound, &numbers, timeout)?;
            // SAFETY: the caller's promise, and it is not NULL.
            unsafe { tell_size(outcome, size) };
            if outcome.status == Status::Success { Ok(place as u32) } else { Err(outcome.status) }
        })
    }

    /// Cancels a request.
    fn mcapi_cancel(request: *mut u32); {
        bound(|bound| {
            given(request)?;
            // SAFETY: the caller's promise, and it is not NULL.
            let number = unsafe { request.read() };
            bound.with(|engine, links| {
                let mut requests = bound.requests();
                if requests.sends(number) {
                    // What was sent is the receiver's: there is nothing left to lose, whichever way it went.
                    // SAFETY: as in `settle`.
                    let seen = unsafe { requests.settle(number, engine, &mut bound.held()) };
                    if matches!(seen, Some(Seen::Done { result, .. }) if result.status != Status::Success) {
                        return Err(Error::RequestInvalid);
                    }
                }
                match requests.engines(number) {
                    Some(pending) => {
                        engine.cancel(pending, links)?;
                        engine.drop_request(pending, links);
                        requests.cancel(number);
                        Ok(())
                    }
                    None => forget(&mut requests, number),
                }
            })
        })
    }
}

/// Takes away a request whose outcome the program has.
fn forget(requests: &mut Requests, number: u32) -> Result<(), Error> {
    match requests.seen(number) {
        Some(Seen::Done { .. }) => {
            requests.remove(number);
            Ok(())
        }
        _ => Err(Error::RequestInvalid),
    }
}

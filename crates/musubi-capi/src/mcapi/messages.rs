//! Messages for C.
//!
//! How it works: a blocking call tries; only if that is in vain does it ask for the endpoint's timeout and wait, trying
//! again after each change. Over a network a message has been sent once the receiving node has it.

use core::ffi::c_void;

use musubi_mcapi::engine::Sending;
use musubi_mcapi::{EndpointId, Error};
use musubi_transport::links::Payload;
use musubi_transport::running::Running as _;

use super::endpoints::{fails_on_limit, named};
use super::exports::export;
use super::node::{Block, Node, NodeEngine, NodeLinks, ThreadNode, bound};
use super::requests::{Goes, Result as Became, take_message};
use super::status::Status;
use super::waiting::{Begun, begin};
use crate::ffi::{bytes, given};

/// Refuses a buffer to receive into that is NULL and not empty.
fn room(buffer: *mut c_void, size: usize) -> Result<(), Status> {
    if size > 0 {
        given(buffer)?;
    }
    Ok(())
}

/// Sends, waiting as long as the sending endpoint's attribute says.
fn send(bound: &ThreadNode, from: EndpointId, to: EndpointId, priority: u32, payload: &[u8]) -> Result<(), Status> {
    let tried = bound.with(|engine, links| {
        let sending = engine.send_message(from, to, priority, payload, links)?;
        let timeout_ms = if sending == Sending::Done { 0 } else { engine.endpoint_timeout_ms(from)? };
        Ok((sending, timeout_ms))
    })?;
    let (mut sending, timeout_ms) = tried;
    if sending == Sending::Blocked && fails_on_limit(bound, from)? {
        return Err(Status::MemoryLimit);
    }
    if sending == Sending::Done {
        return Ok(());
    }
    let sent = bound.wait(timeout_ms, |engine, links| {
        if sending == Sending::Blocked {
            match engine.send_message(from, to, priority, payload, links) {
                Ok(now) => sending = now,
                Err(error) => return Some(Err(error.into())),
            }
        }
        confirmed(engine, sending)
    });
    give_up(bound, sending, timeout_ms, sent)
}

/// What has become of something that was sent: `None` if that is not known yet.
pub(crate) fn confirmed(engine: &mut NodeEngine, sending: Sending) -> Option<Result<(), Status>> {
    match sending {
        Sending::Done => Some(Ok(())),
        Sending::Blocked => None,
        Sending::Confirming(request) => match engine.take_outcome(request) {
            Ok(None) => None,
            Ok(Some(outcome)) => Some(outcome.map(drop).map_err(Status::from)),
            Err(error) => Some(Err(error.into())),
        },
    }
}

/// Ends a send whose time is over: who does not wait at all takes the link's word.
pub(crate) fn give_up(
    bound: &ThreadNode,
    sending: Sending,
    timeout_ms: u32,
    sent: Result<(), Status>,
) -> Result<(), Status> {
    if let (Err(Status::Timeout), Sending::Confirming(request)) = (&sent, sending) {
        bound.with(|engine, links| {
            engine.drop_request(request, links);
            Ok(())
        })?;
        return if timeout_ms == 0 { Ok(()) } else { sent };
    }
    sent
}

/// Begins to send.
fn send_later(
    engine: &mut NodeEngine,
    links: &mut NodeLinks,
    (from, to): (EndpointId, EndpointId),
    priority: u32,
    payload: &[u8],
) -> Result<Begun, Error> {
    Ok(match engine.send_message(from, to, priority, payload, links)? {
        Sending::Done => Begun::Done(Became::sent(payload.len())),
        Sending::Confirming(request) => Begun::Later(request),
        Sending::Blocked => Begun::Later(engine.send_message_later(from, to, priority, payload.to_vec(), links)?),
    })
}

export! {
    /// Sends a message.
    fn mcapi_msg_send(send_endpoint: u32, receive_endpoint: u32, buffer: *const c_void, buffer_size: usize,
        priority: u32); {
        bound(|bound| {
            // SAFETY: the caller's promise.
            let payload = unsafe { bytes(buffer.cast(), buffer_size, Status::MessageSize) }?;
            send(bound, named(send_endpoint)?, named(receive_endpoint)?, priority, payload)
        })
    }

    /// Begins to send a message.
    fn mcapi_msg_send_i(send_endpoint: u32, receive_endpoint: u32, buffer: *const c_void, buffer_size: usize,
        priority: u32, request: *mut u32); {
        bound(|bound| {
            // SAFETY: the caller's promise.
            let payload = unsafe { bytes(buffer.cast(), buffer_size, Status::MessageSize) }?;
            let goes = Goes::Sent { from: buffer.addr() };
            let by = |engine: &mut NodeEngine, links: &mut NodeLinks| {
                let ends = (end(send_endpoint)?, end(receive_endpoint)?);
                send_later(engine, links, ends, priority, payload)
            };
            // SAFETY: the caller's promise; nothing is written but the number.
            unsafe { begin(bound, request, goes, by) }
        })
    }

    /// Receives a message.
    fn mcapi_msg_recv(receive_endpoint: u32, buffer: *mut c_void, buffer_size: usize, received_size: *mut usize); {
        bound(|bound| {
            room(buffer, buffer_size)?;
            given(received_size)?;
            let payload = receive(bound, named(receive_endpoint)?)?;
            // SAFETY: the caller's promise.
            let taken = unsafe { take_message(&payload, buffer.cast(), buffer_size) };
            // SAFETY: the caller's promise, and it is not NULL.
            unsafe { received_size.write(taken.size.unwrap_or(0)) };
            if taken.status == Status::Success { Ok(()) } else { Err(taken.status) }
        })
    }

    /// Begins to receive a message.
    fn mcapi_msg_recv_i(receive_endpoint: u32, buffer: *mut c_void, buffer_size: usize, request: *mut u32); {
        bound(|bound| {
            room(buffer, buffer_size)?;
            let goes = Goes::Message { buffer: buffer.cast(), size: buffer_size };
            let by = |engine: &mut NodeEngine, links: &mut NodeLinks| {
                Node::take_in(engine, links);
                Ok(Begun::Later(engine.receive_message_later(end(receive_endpoint)?, links)?))
            };
            // SAFETY: the caller's promise: the buffer is the library's until the request has completed.
            unsafe { begin(bound, request, goes, by) }
        })
    }

    /// Number of messages that wait.
    fn mcapi_msg_available(receive_endpoint: u32) -> u32, else 0; {
        bound(|bound| {
            let at = named(receive_endpoint)?;
            bound.count(|engine, _| engine.messages_available(at)).map(|count| count as u32)
        })
    }
}

/// Receives, waiting as long as the endpoint's attribute says.
fn receive(bound: &ThreadNode, at: EndpointId) -> Result<Payload<Block>, Status> {
    let tried = bound.with(|engine, links| {
        Node::take_in(engine, links);
        Ok(match engine.receive_message(at, links)? {
            Some(message) => Ok(message.payload),
            None => Err(engine.endpoint_timeout_ms(at)?),
        })
    })?;
    let timeout_ms = match tried {
        Ok(payload) => return Ok(payload),
        Err(timeout_ms) => timeout_ms,
    };
    bound.wait(timeout_ms, |engine, links| {
        // A more urgent one may have come right behind the first.
        Node::take_in(engine, links);
        match engine.receive_message(at, links) {
            Ok(message) => message.map(|message| Ok(message.payload)),
            Err(error) => Some(Err(error.into())),
        }
    })
}

/// As [`named`], for what is refused with the request at hand.
pub(crate) fn end(endpoint: u32) -> Result<EndpointId, Error> {
    EndpointId::from_bits(endpoint).ok_or(Error::EndpointInvalid)
}

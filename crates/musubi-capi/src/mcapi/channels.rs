//! Channels of both kinds for C: connect, open, close, count.

use musubi_mcapi::Error;
use musubi_mcapi::engine::{ChannelHandle, ChannelKind, Sending};

use super::endpoints::fails_on_limit;
use super::exports::export;
use super::messages::{confirmed, end, give_up};
use super::node::{NodeEngine, NodeLinks, ThreadNode, bound};
use super::requests::Goes;
use super::status::Status;
use super::waiting::{Begun, begin};
use crate::ffi::given;

use ChannelKind::{Packet, Scalar};

/// Begins to connect.
///
/// # Safety
/// `request` is NULL or points to room for a request.
unsafe fn connect(kind: ChannelKind, from: u32, to: u32, request: *mut u32) -> Result<(), Status> {
    let by = |engine: &mut NodeEngine, links: &mut NodeLinks| {
        Ok(Begun::Later(engine.connect(kind, end(from)?, end(to)?, links)?))
    };
    // SAFETY: the caller's promise; nothing else is written.
    bound(|bound| unsafe { begin(bound, request, Goes::Nowhere, by) })
}

/// Begins to open; the handle is there at once.
///
/// # Safety
/// Both are NULL or point to room for what they are for.
unsafe fn open(
    kind: ChannelKind,
    receives: bool,
    handle: *mut u32,
    endpoint: u32,
    request: *mut u32,
) -> Result<(), Status> {
    bound(|bound| {
        given(handle)?;
        let by = |engine: &mut NodeEngine, links: &mut NodeLinks| {
            let (channel, request) = engine.open(kind, receives, end(endpoint)?, links)?;
            // SAFETY: the caller's promise, and it is not NULL.
            unsafe { handle.write(channel.0) };
            Ok(Begun::Later(request))
        };
        // SAFETY: the caller's promise; nothing else is written.
        unsafe { begin(bound, request, Goes::Nowhere, by) }
    })
}

/// Begins to close.
///
/// # Safety
/// `request` is NULL or points to room for a request.
unsafe fn close(kind: ChannelKind, receives: bool, handle: u32, request: *mut u32) -> Result<(), Status> {
    let by = |engine: &mut NodeEngine, links: &mut NodeLinks| {
        Ok(Begun::Later(engine.close(kind, receives, ChannelHandle(handle), links)?))
    };
    // SAFETY: the caller's promise; nothing else is written.
    bound(|bound| unsafe { begin(bound, request, Goes::Nowhere, by) })
}

fn available(kind: ChannelKind, handle: u32) -> Result<u32, Status> {
    bound(|bound| {
        bound.count(|engine, _| engine.channel_available(kind, ChannelHandle(handle))).map(|count| count as u32)
    })
}

/// Sends by trying, as long as the sending endpoint's timeout says.
#[inline]
pub(crate) fn send(
    bound: &ThreadNode,
    handle: ChannelHandle,
    mut attempt: impl FnMut(&mut NodeEngine, &mut NodeLinks) -> Result<Sending, Error>,
) -> Result<(), Status> {
    let mut sending = bound.with(&mut attempt)?;
    if sending == Sending::Done {
        return Ok(());
    }
    let (from, timeout_ms) = timeout_ms(bound, handle)?;
    if sending == Sending::Blocked && fails_on_limit(bound, from)? {
        return Err(Status::MemoryLimit);
    }
    let sent = bound.wait(timeout_ms, |engine, links| {
        if sending == Sending::Blocked {
            match attempt(engine, links) {
                Ok(now) => sending = now,
                Err(error) => return Some(Err(error.into())),
            }
        }
        confirmed(engine, sending)
    });
    give_up(bound, sending, timeout_ms, sent)
}

/// Receives by trying, as long as the receiving endpoint's timeout says.
#[inline]
pub(crate) fn receive<R>(
    bound: &ThreadNode,
    handle: ChannelHandle,
    mut attempt: impl FnMut(&mut NodeEngine, &mut NodeLinks) -> Result<Option<R>, Error>,
) -> Result<R, Status> {
    if let Some(received) = bound.with(&mut attempt)? {
        return Ok(received);
    }
    let (_, timeout_ms) = timeout_ms(bound, handle)?;
    bound.wait(timeout_ms, |engine, links| attempt(engine, links).map_err(Status::from).transpose())
}

/// The endpoint of a channel's end, and its timeout.
fn timeout_ms(bound: &ThreadNode, handle: ChannelHandle) -> Result<(musubi_mcapi::EndpointId, u32), Status> {
    bound.with(|engine, _| {
        let endpoint = engine.channel_endpoint(handle)?;
        Ok((endpoint, engine.endpoint_timeout_ms(endpoint)?))
    })
}

/// Defines what both kinds have.
macro_rules! channels {
    ($kind:ident: $connect:ident $recv_open:ident $send_open:ident $available:ident $recv_close:ident $send_close:ident) => {
        export! {
            /// Begins to connect two endpoints.
            fn $connect(send_endpoint: u32, receive_endpoint: u32, request: *mut u32); {
                // SAFETY: the caller's promise.
                unsafe { connect($kind, send_endpoint, receive_endpoint, request) }
            }

            /// Begins to open the receiving end.
            fn $recv_open(receive_handle: *mut u32, receive_endpoint: u32, request: *mut u32); {
                // SAFETY: the caller's promise.
                unsafe { open($kind, true, receive_handle, receive_endpoint, request) }
            }

            /// Begins to open the sending end.
            fn $send_open(send_handle: *mut u32, send_endpoint: u32, request: *mut u32); {
                // SAFETY: the caller's promise.
                unsafe { open($kind, false, send_handle, send_endpoint, request) }
            }

            /// How many wait to be received.
            fn $available(receive_handle: u32) -> u32, else 0; { available($kind, receive_handle) }

            /// Begins to close the receiving end.
            fn $recv_close(receive_handle: u32, request: *mut u32); {
                // SAFETY: the caller's promise.
                unsafe { close($kind, true, receive_handle, request) }
            }

            /// Begins to close the sending end.
            fn $send_close(send_handle: u32, request: *mut u32); {
                // SAFETY: the caller's promise.
                unsafe { close($kind, false, send_handle, request) }
            }
        }
    };
}

channels!(Packet: mcapi_pktchan_connect_i mcapi_pktchan_recv_open_i mcapi_pktchan_send_open_i
    mcapi_pktchan_available mcapi_pktchan_recv_close_i mcapi_pktchan_send_close_i);
channels!(Scalar: mcapi_sclchan_connect_i mcapi_sclchan_recv_open_i mcapi_sclchan_send_open_i
    mcapi_sclchan_available mcapi_sclchan_recv_close_i mcapi_sclchan_send_close_i);

//! Packets for C: sent from the program's memory, received in the library's, released by address.

use core::ffi::c_void;

use musubi_mcapi::engine::{ChannelHandle, Sending};
use musubi_transport::links::Payload;
use musubi_transport::running::Ways;

use super::channels::{receive, send};
use super::exports::export;
use super::node::{NodeEngine, NodeLinks, bound};
use super::requests::{Goes, Result as Became};
use super::status::Status;
use super::waiting::{Begun, begin};
use crate::ffi::{bytes, given};

export! {
    /// Sends a packet.
    fn mcapi_pktchan_send(send_handle: u32, buffer: *const c_void, size: usize); {
        bound(|bound| {
            // SAFETY: the caller's promise.
            let payload = unsafe { bytes(buffer.cast(), size, Status::PacketSize) }?;
            let handle = ChannelHandle(send_handle);
            send(bound, handle, |engine, links| engine.send_packet(handle, payload, links))?;
            bound.sent.note(buffer.addr());
            Ok(())
        })
    }

    /// Begins to send a packet.
    fn mcapi_pktchan_send_i(send_handle: u32, buffer: *const c_void, size: usize, request: *mut u32); {
        bound(|bound| {
            // SAFETY: the caller's promise.
            let payload = unsafe { bytes(buffer.cast(), size, Status::PacketSize) }?;
            let handle = ChannelHandle(send_handle);
            let by = |engine: &mut NodeEngine, links: &mut NodeLinks| {
                let begun = match engine.send_packet(handle, payload, links)? {
                    Sending::Done => Begun::Done(Became::sent(payload.len())),
                    Sending::Confirming(request) => Begun::Later(request),
                    Sending::Blocked => Begun::Later(engine.send_packet_later(handle, payload.to_vec(), links)?),
                };
                bound.sent.note(buffer.addr());
                Ok(begun)
            };
            // SAFETY: the caller's promise; nothing is written but the number.
            unsafe { begin(bound, request, Goes::Sent { from: buffer.addr() }, by) }
        })
    }

    /// Receives a packet.
    fn mcapi_pktchan_recv(receive_handle: u32, buffer: *mut *mut c_void, received_size: *mut usize); {
        bound(|bound| {
            given(buffer)?;
            given(received_size)?;
            let handle = ChannelHandle(receive_handle);
            let payload = receive(bound, handle, |engine, links| engine.receive_packet(handle, links))?;
            let size = payload.len();
            let address = bound.held().keep(handle, payload);
            // SAFETY: the caller's promise, and it is not NULL.
            unsafe { buffer.write(address.cast()) };
            // SAFETY: the caller's promise, and it is not NULL.
            unsafe { received_size.write(size) };
            Ok(())
        })
    }

    /// Begins to receive a packet.
    fn mcapi_pktchan_recv_i(receive_handle: u32, buffer: *mut *mut c_void, request: *mut u32); {
        bound(|bound| {
            given(buffer)?;
            let handle = ChannelHandle(receive_handle);
            let by = |engine: &mut NodeEngine, links: &mut NodeLinks| {
                Ok(Begun::Later(engine.receive_packet_later(handle, links)?))
            };
            // SAFETY: the caller's promise: the place is the library's until the request has completed.
            unsafe { begin(bound, request, Goes::Packet { place: buffer, handle }, by) }
        })
    }

    /// Gives a received packet back.
    fn mcapi_pktchan_release(buffer: *mut c_void); {
        bound(|bound| {
            let packet = bound.held().release(buffer.addr(), bound.id()).ok_or(Status::BufferInvalid)?;
            let (handle, bytes) = (packet.handle, packet.bytes);
            // Its place must be free before the sender hears of it.
            let buffer = packet.into_buffer();
            bound.with(|engine, links| {
                if let Some(buffer) = buffer {
                    Ways::recycle(links, Payload::Owned(buffer));
                }
                engine.packet_released(handle, bytes, links);
                Ok(())
            })
        })
    }

    /// Whether a buffer that was sent is the sender's again.
    fn mcapi_pktchan_release_test(buffer: *mut c_void) -> u8, else 0; {
        bound(|bound| {
            given(buffer)?;
            if bound.requests().is_sending(buffer.addr()) {
                return Err(Status::Pending);
            }
            if bound.sent.knows(buffer.addr()) { Ok(1) } else { Err(Status::BufferInvalid) }
        })
    }
}

//! Connections of active endpoints: `fi_connect`, `fi_accept`, `fi_shutdown`, and the bytes that go with them.
//!
//! What you may rely on: up to [`crate::info::DATA_BYTES_MAX`] bytes go with a request, and with the answer, be it no.
//!
//! How it works: each waits in a thread of its own and ends in an event. A request's bytes stand behind the discriminator
//! of the VI that asks.

use core::ffi::c_void;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use musubi_transport::runtime::{Deadline, DeadlineExt};

use crate::abi::EOPBADSTATE;
use crate::addresses::{address, address_with, copied, give_address};
use crate::codes::code;
use crate::endpoint;
use crate::info::{ADDRESS_BYTES, port_of};
use crate::object::answer_int;

/// How long a connection may take to be made.
const CONNECT_TIME: Duration = Duration::from_secs(10);

pub(crate) unsafe extern "C" fn connect(
    fid: *mut c_void,
    to: *const c_void,
    data: *const c_void,
    data_bytes: usize,
) -> i32 {
    answer_int(|| {
        // SAFETY: libfabric's promise: an object of this table.
        let side = Arc::clone(unsafe { endpoint::of(fid) }.side()?);
        // SAFETY: libfabric's promise: as many bytes.
        let data = unsafe { copied(data, data_bytes)? };
        // SAFETY: libfabric's promise: an address of the format that was answered.
        let port = unsafe { port_of(to, ADDRESS_BYTES)? };
        let (local, remote) = (address_with(0, &data)?, address(port)?);
        std::thread::spawn(move || {
            let made = side.core.nic.request(side.vi, local, remote, Deadline::after(CONNECT_TIME));
            let data = side.core.nic.with(|nic| Ok(nic.take_connection_data(side.vi))).unwrap_or_default();
            side.connected(made.map(|_| ()), data);
        });
        Ok(())
    })
}

pub(crate) unsafe extern "C" fn accept(fid: *mut c_void, data: *const c_void, data_bytes: usize) -> i32 {
    answer_int(|| {
        // SAFETY: libfabric's promise: an object of this table.
        let endpoint = unsafe { endpoint::of(fid) };
        // SAFETY: libfabric's promise: as many bytes.
        let data = unsafe { copied(data, data_bytes)? };
        let side = Arc::clone(endpoint.side()?);
        let caller = endpoint.caller.lock().unwrap_or_else(PoisonError::into_inner).take().ok_or(EOPBADSTATE)?;
        std::thread::spawn(move || {
            let made = side.core.nic.accept_with(caller, side.vi, &data, Deadline::after(CONNECT_TIME));
            side.connected(made, Vec::new());
        });
        Ok(())
    })
}

pub(crate) unsafe extern "C" fn shutdown(fid: *mut c_void, _flags: u64) -> i32 {
    answer_int(|| {
        // SAFETY: libfabric's promise: an object of this table.
        let side = unsafe { endpoint::of(fid) }.side()?;
        side.core.nic.disconnect(side.vi).map_err(code)
    })
}

/// The address of an active endpoint: a place of this machine without a port.
pub(crate) unsafe extern "C" fn name(_fid: *mut c_void, to: *mut c_void, bytes: *mut usize) -> i32 {
    // SAFETY: libfabric's promises, handed on.
    answer_int(|| unsafe { give_address(0, to, bytes) })
}

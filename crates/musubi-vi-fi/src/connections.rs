//! Connections of active endpoints: `fi_connect`, `fi_accept`, `fi_shutdown`, and the bytes that go with them.
//!
//! What you may rely on: up to [`crate::info::DATA_BYTES_MAX`] bytes go with a request, and with the answer, be it no.
//!
//! How it works: each begins in the call, so that closing the endpoint ends it; a thread waits for the outcome, which is an event,
//! and then for the end of the connection. A request's bytes stand behind the discriminator
//! of the VI that asks.

use core::ffi::c_void;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use musubi_vipl::ViError;
use musubi_vipl::nic::{Awaited, CallerNumber};

use crate::abi::EOPBADSTATE;
use crate::addresses::{address, address_with, copied, give_address};
use crate::codes::code;
use crate::endpoint::{self, Side};
use crate::info::{ADDRESS_BYTES, port_of};
use crate::object::answer_int;
use crate::waiting::watching::await_that;

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
        // Begun here, so that closing the endpoint ends it.
        let begun = side.core.nic.node().with(|nic, links| nic.request(side.vi, local, remote, links));
        begun.map_err(ViError::from).flatten().map_err(code)?;
        std::thread::spawn(move || await_outcome(&side));
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
        let begun = side.core.nic.node().with(|nic, links| nic.accept_with(caller, side.vi, &data, links));
        begun.map_err(ViError::from).flatten().map_err(code)?;
        std::thread::spawn(move || await_confirmation(&side, caller));
        Ok(())
    })
}

/// Waits for what becomes of a request, and then for the end of what comes of it.
fn await_outcome(side: &Side) {
    await_until_late(side, Awaited::Outcome(side.vi));
    let node = side.core.nic.node();
    let outcome = node.with(|nic, links| {
        let outcome = nic.take_outcome(side.vi).unwrap_or_else(|| nic.give_up(side.vi, links));
        (outcome, nic.take_connection_data(side.vi))
    });
    if let Ok((outcome, data)) = outcome {
        side.connected(outcome.as_ref().map(|_| ()).map_err(|error| *error), data);
        side.tell_end(outcome.is_ok());
    }
}

/// The same on the other side, which has answered.
fn await_confirmation(side: &Side, caller: CallerNumber) {
    await_until_late(side, Awaited::Confirmation(caller));
    let confirmed = side.core.nic.node().with(|nic, links| {
        let confirmed = nic.accepted(caller);
        if confirmed.is_none() {
            nic.give_up_accepted(caller, links);
        }
        confirmed.unwrap_or(Err(ViError::Timeout))
    });
    if let Ok(confirmed) = confirmed {
        let is_made = confirmed.is_ok();
        side.connected(confirmed, Vec::new());
        side.tell_end(is_made);
    }
}

fn await_until_late(side: &Side, awaited: Awaited) {
    let until = Instant::now() + CONNECT_TIME;
    await_that(&side.core.nic, awaited, || side.is_open() && Instant::now() < until);
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

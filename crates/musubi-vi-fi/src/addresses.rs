//! Where endpoints are, for libfabric and for VIs, and the bytes that go with a request.
//!
//! How it works: a discriminator names the port, 0 of who asks, and has behind it what goes with the request.

use core::ffi::c_void;

use musubi_vipl::address::{Address, NicNumber};

use crate::abi::{EINVAL, ETOOSMALL};
use crate::info::{ADDRESS_BYTES, DATA_BYTES_MAX, sockaddr};
use crate::object::{give, take};

/// Bytes of a discriminator before what goes with a request.
const HEAD_BYTES: usize = 4;

/// Where a port is found on the NIC.
pub(crate) fn address(port: u16) -> Result<Address, i32> {
    address_with(port, &[])
}

/// The same with what a program sends with its request.
pub(crate) fn address_with(port: u16, data: &[u8]) -> Result<Address, i32> {
    let [high, low] = port.to_be_bytes();
    Address::new(NicNumber(0), &[&[b'f', b'i', high, low], data].concat()).ok_or(EINVAL)
}

/// What a program sent with its request from this address.
pub(crate) fn data_of(from: &Address) -> Vec<u8> {
    from.discriminator.get(HEAD_BYTES..).unwrap_or_default().to_vec()
}

/// A copy of what a program sends with a request or an answer.
///
/// # Safety
/// `data` is NULL or has as many bytes.
pub(crate) unsafe fn copied(data: *const c_void, bytes: usize) -> Result<Vec<u8>, i32> {
    if bytes > DATA_BYTES_MAX || (data.is_null() && bytes > 0) {
        return Err(EINVAL);
    }
    let mut copy = vec![0_u8; bytes];
    // SAFETY: the caller's promise; the copy has as many.
    unsafe { core::ptr::copy_nonoverlapping(data.cast(), copy.as_mut_ptr(), bytes) };
    Ok(copy)
}

/// Gives an address to a program that has this much room.
///
/// # Safety
/// `bytes` is NULL or how many there is room for at `to`.
pub(crate) unsafe fn give_address(port: u16, to: *mut c_void, bytes: *mut usize) -> Result<(), i32> {
    // SAFETY: the caller's promise.
    let room = unsafe { take(bytes)? };
    // SAFETY: likewise.
    unsafe { give(bytes, ADDRESS_BYTES)? };
    if room < ADDRESS_BYTES {
        return Err(ETOOSMALL);
    }
    // SAFETY: likewise; there is room for it.
    unsafe { give(to.cast(), sockaddr(port)) }
}

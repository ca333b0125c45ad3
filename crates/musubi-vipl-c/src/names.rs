//! The name service, and what the management information tells.
//!
//! How it works: names are those of the description's NICs; a name that is none of them is looked up as that of a host,
//! by the machines and addresses that the description gives; this machine's own names are the asking NIC's.
//!
//! What it does not do: ask a name server.

use core::ffi::{CStr, c_char, c_void};
use std::path::Path;

use musubi_vipl::address::NicNumber;

use crate::abi::{AutodiscoveryList, Handle, NetAddress, Ulong};
use crate::connections::{put_host, read_host};
use crate::nics;
use crate::status::{Status, answer};

/// `VIP_SMI_AUTODISCOVERY`.
const AUTODISCOVERY: Ulong = 1;

/// The name of this machine; none if it cannot be had.
fn own_host() -> String {
    const BYTES_MAX: usize = 256;
    let read = musubi_linux::descriptor::read_file(Path::new("/proc/sys/kernel/hostname"), BYTES_MAX);
    read.ok().and_then(|bytes| String::from_utf8(bytes).ok()).map(|name| name.trim().to_owned()).unwrap_or_default()
}

/// `VipNSInit`. There is nothing to begin: names come with the description.
///
/// # Safety
/// Any handle may be given.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn VipNSInit(nic_handle: Handle, _info: *mut c_void) -> u32 {
    answer(|| nics::of(nic_handle, |_| Ok(())))
}

/// `VipNSShutdown`.
///
/// # Safety
/// Any handle may be given.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn VipNSShutdown(nic_handle: Handle) -> u32 {
    answer(|| nics::of(nic_handle, |_| Ok(())))
}

/// `VipNSGetHostByName`.
///
/// # Safety
/// Pointers are NULL or as include/vipl.h says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn VipNSGetHostByName(
    nic_handle: Handle,
    name: *const c_char,
    address: *mut NetAddress,
    name_index: Ulong,
) -> u32 {
    answer(|| {
        nics::of(nic_handle, |open| {
            if name.is_null() || address.is_null() {
                return Err(Status::InvalidParameter);
            }
            // SAFETY: the caller's promise: a string that lives during the call.
            let name = unsafe { CStr::from_ptr(name) };
            let name = name.to_str().map_err(|_| Status::ErrorNameService)?;
            let host = own_host();
            let found =
                open.nic.with(|nic| Ok(nic.directory().named(name, &host, nic.number()).nth(name_index as usize)))?;
            let found = found.ok_or(Status::ErrorNameService)?;
            // SAFETY: the caller's promise; it is not NULL.
            unsafe { put_host(address, found) };
            Ok(())
        })
    })
}

/// `VipNSGetHostByAddr`.
///
/// # Safety
/// Pointers are NULL or as include/vipl.h says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn VipNSGetHostByAddr(
    nic_handle: Handle,
    address: *const NetAddress,
    name: *mut c_char,
    name_len: *mut Ulong,
) -> u32 {
    answer(|| {
        nics::of(nic_handle, |open| {
            let host: NicNumber = read_host(address)?;
            if name_len.is_null() {
                return Err(Status::InvalidParameter);
            }
            let entry = open.nic.with(|nic| Ok(nic.directory().nics.get(usize::from(host.0)).cloned()))?;
            let found = entry.ok_or(Status::ErrorNameService)?.name;
            // SAFETY: the caller's promise; it is not NULL.
            let room = unsafe { name_len.read() };
            let needed = found.len() as Ulong + 1;
            // SAFETY: as above.
            unsafe { name_len.write(needed) };
            if name.is_null() || room < needed {
                return Err(Status::ErrorResource);
            }
            // SAFETY: the caller's promise: it has room for `room` bytes, and no more than these are written.
            unsafe { core::ptr::copy_nonoverlapping(found.as_ptr(), name.cast::<u8>(), found.len()) };
            // SAFETY: as above.
            unsafe { name.wrapping_add(found.len()).write(0) };
            Ok(())
        })
    })
}

/// `VipQuerySystemManagementInfo`: of what the standard names, the list of NICs that can be reached.
///
/// # Safety
/// Pointers are NULL or as include/vipl.h says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn VipQuerySystemManagementInfo(nic_handle: Handle, info_type: Ulong, info: *mut c_void) -> u32 {
    answer(|| {
        nics::of(nic_handle, |open| {
            if info_type != AUTODISCOVERY {
                return Err(Status::ErrorNotSupported);
            }
            let list = info.cast::<AutodiscoveryList>();
            if list.is_null() || !list.is_aligned() {
                return Err(Status::InvalidParameter);
            }
            // SAFETY: the caller's promise; it is not NULL.
            let mut told = unsafe { list.read() };
            let (room, addresses) = (told.address_count, told.addresses);
            let count = open.nic.with(|nic| Ok(nic.directory().nics.len()))? as Ulong;
            (told.number_of_hops, told.address_count) = (1, count);
            // SAFETY: as above.
            unsafe { list.write(told) };
            if addresses.is_null() || room < count {
                return Err(Status::ErrorResource);
            }
            for number in 0..count {
                // SAFETY: the caller's promise: `addresses` has `room` pointers to addresses.
                let address = unsafe { addresses.wrapping_add(number as usize).read() };
                // SAFETY: as above: NULL, or an address with room for a host's bytes.
                unsafe { put_host(address, NicNumber(number as u16)) };
            }
            Ok(())
        })
    })
}

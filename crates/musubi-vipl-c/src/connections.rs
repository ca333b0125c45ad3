//! Making and ending connections.
//!
//! What you may rely on: addresses of variable length are read as far as their two lengths say, and written only where the program's
//! lengths leave room.

use std::time::Duration;

use musubi_transport::runtime::{Deadline, DeadlineExt};
use musubi_vipl::address::{Address, DISCRIMINATOR_BYTES_MAX, NicNumber};
use musubi_vipl::nic::{CallerNumber, ViNumber};

use crate::abi::{self, Handle, INFINITE, NetAddress, Ulong};
use crate::handles::{self, HandleKind};
use crate::nics;
use crate::notifying::say_errors;
use crate::status::{Status, answer};
use crate::vis::{put, told_remote};

/// How long a server waits until its client has confirmed.
const CONFIRM: Duration = Duration::from_secs(10);

/// Milliseconds, as a deadline.
pub(crate) fn deadline(time_out_ms: Ulong) -> Deadline {
    match time_out_ms {
        0 => Deadline::Poll,
        INFINITE => Deadline::Forever,
        ms => Deadline::after(Duration::from_millis(ms)),
    }
}

/// Reads an address that a program gives.
pub(crate) fn read_address(from: *const NetAddress) -> Result<Address, Status> {
    if from.is_null() || !from.is_aligned() {
        return Err(Status::InvalidParameter);
    }
    // SAFETY: the C program's promise: it is not NULL, so there are at least the two lengths.
    let [host_len, len] = unsafe { from.cast::<[u16; 2]>().read() }.map(usize::from);
    if host_len != NicNumber::BYTES || len > DISCRIMINATOR_BYTES_MAX {
        return Err(Status::InvalidParameter);
    }
    // SAFETY: as above; as many bytes as both lengths say lie behind them.
    let bytes = unsafe { core::slice::from_raw_parts(bytes_of(from), host_len + len) };
    let (host, discriminator) = bytes.split_at(host_len);
    let nic = NicNumber::of_host_address(host).ok_or(Status::NotReachable)?;
    Address::new(nic, discriminator).ok_or(Status::InvalidParameter)
}

/// Reads the host of an address whose name is asked for; its discriminator may be anything.
pub(crate) fn read_host(from: *const NetAddress) -> Result<NicNumber, Status> {
    if from.is_null() || !from.is_aligned() {
        return Err(Status::InvalidParameter);
    }
    // SAFETY: the C program's promise: it is not NULL, so there are at least the two lengths.
    let host_len = usize::from(unsafe { from.cast::<u16>().read() });
    if host_len != NicNumber::BYTES {
        return Err(Status::InvalidParameter);
    }
    // SAFETY: as above; as many bytes as the length says lie behind them.
    let host = unsafe { core::slice::from_raw_parts(bytes_of(from), host_len) };
    NicNumber::of_host_address(host).ok_or(Status::ErrorNameService)
}

/// Writes the host of an address; the discriminator is the program's to write.
///
/// # Safety
/// `to` is NULL or points to an address with room for a host's bytes.
pub(crate) unsafe fn put_host(to: *mut NetAddress, nic: NicNumber) {
    if to.is_null() {
        return;
    }
    let host = nic.to_host_address();
    // SAFETY: the caller's promise; it is not NULL.
    unsafe { to.cast::<u16>().write(host.len() as u16) };
    // SAFETY: as above.
    unsafe { core::ptr::copy_nonoverlapping(host.as_ptr(), bytes_of(to).cast_mut(), host.len()) };
}

/// The first byte behind the lengths.
fn bytes_of(address: *const NetAddress) -> *const u8 {
    address.cast::<u8>().wrapping_add(core::mem::offset_of!(NetAddress, host_address))
}

/// Writes an address: all of the host's bytes, and of the discriminator's as many as the standard's largest has.
///
/// # Safety
/// `to` is NULL or points to an address with room for `MaxDiscriminatorLen` bytes of discriminator.
unsafe fn put_address(to: *mut NetAddress, address: &Address) {
    if to.is_null() {
        return;
    }
    // SAFETY: here and below the caller's promise; it is not NULL.
    unsafe { put_host(to, address.nic) };
    // SAFETY: as above.
    unsafe { to.cast::<u16>().wrapping_add(1).write(address.discriminator.len() as u16) };
    let (from, behind) = (address.discriminator.as_ptr(), bytes_of(to).cast_mut().wrapping_add(NicNumber::BYTES));
    // SAFETY: as above.
    unsafe { core::ptr::copy_nonoverlapping(from, behind, address.discriminator.len()) };
}

/// `VipConnectWait`.
///
/// # Safety
/// Pointers are NULL or as include/vipl.h says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn VipConnectWait(
    nic_handle: Handle,
    local_addr: *const NetAddress,
    time_out: Ulong,
    remote_addr: *mut NetAddress,
    remote_vi_attributes: *mut abi::ViAttributes,
    conn_handle: *mut Handle,
) -> u32 {
    answer(|| {
        let (key, _) = handles::read(HandleKind::Nic, nic_handle)?;
        let open = nics::find(key)?;
        let local = read_address(local_addr)?;
        if conn_handle.is_null() {
            return Err(Status::InvalidParameter);
        }
        let (caller, remote, attributes) = open.nic.wait_caller(&local, deadline(time_out))?;
        // SAFETY: here and below the caller's promise.
        unsafe { put_address(remote_addr, &remote) };
        // SAFETY: as above.
        unsafe { put(remote_vi_attributes, told_remote(&attributes)) };
        // SAFETY: as above; it is not NULL.
        unsafe { conn_handle.write(handles::handle(HandleKind::Caller, key, caller.0)) };
        Ok(())
    })
}

/// `VipConnectAccept`.
///
/// # Safety
/// Any handles may be given.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn VipConnectAccept(conn_handle: Handle, vi_handle: Handle) -> u32 {
    answer(|| {
        let ((key, caller), (nic, vi)) =
            (handles::read(HandleKind::Caller, conn_handle)?, handles::read(HandleKind::Vi, vi_handle)?);
        if key != nic {
            return Err(Status::InvalidParameter);
        }
        let open = nics::find(key)?;
        Ok(open.nic.accept(CallerNumber(caller), ViNumber(vi), Deadline::after(CONFIRM))?)
    })
}

/// `VipConnectReject`.
///
/// # Safety
/// Any handle may be given.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn VipConnectReject(conn_handle: Handle) -> u32 {
    answer(|| {
        nics::of_kind(HandleKind::Caller, conn_handle, |open, caller| Ok(open.nic.reject(CallerNumber(caller))?))
    })
}

/// `VipConnectRequest`.
///
/// # Safety
/// Pointers are NULL or as include/vipl.h says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn VipConnectRequest(
    vi_handle: Handle,
    local_addr: *const NetAddress,
    remote_addr: *const NetAddress,
    time_out: Ulong,
    remote_vi_attributes: *mut abi::ViAttributes,
) -> u32 {
    answer(|| {
        let (key, vi) = handles::read(HandleKind::Vi, vi_handle)?;
        let open = nics::find(key)?;
        let (local, remote) = (read_address(local_addr)?, read_address(remote_addr)?);
        if time_out == 0 {
            return Err(Status::InvalidParameter);
        }
        let attributes = open.nic.request(ViNumber(vi), local, remote, deadline(time_out))?;
        // SAFETY: the caller's promise.
        unsafe { put(remote_vi_attributes, told_remote(&attributes)) };
        Ok(())
    })
}

/// `VipDisconnect`.
///
/// # Safety
/// Any handle may be given.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn VipDisconnect(vi_handle: Handle) -> u32 {
    answer(|| {
        nics::of_kind(HandleKind::Vi, vi_handle, |open, vi| {
            open.nic.disconnect(ViNumber(vi))?;
            say_errors(open);
            Ok(())
        })
    })
}

/// `VipConnectPeerRequest`.
///
/// # Safety
/// Pointers are NULL or as include/vipl.h says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn VipConnectPeerRequest(
    vi_handle: Handle,
    local_addr: *const NetAddress,
    remote_addr: *const NetAddress,
    time_out: Ulong,
) -> u32 {
    answer(|| {
        nics::of_kind(HandleKind::Vi, vi_handle, |open, vi| {
            let (local, remote) = (read_address(local_addr)?, read_address(remote_addr)?);
            let time_ns = match time_out {
                0 => return Err(Status::InvalidParameter),
                INFINITE => u64::MAX,
                ms => ms.saturating_mul(1_000_000),
            };
            Ok(open.nic.request_peer(ViNumber(vi), local, remote, time_ns)?)
        })
    })
}

/// `VipConnectPeerDone`.
///
/// # Safety
/// Pointers are NULL or as include/vipl.h says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn VipConnectPeerDone(vi_handle: Handle, remote_vi_attributes: *mut abi::ViAttributes) -> u32 {
    answer(|| {
        nics::of_kind(HandleKind::Vi, vi_handle, |open, vi| {
            let attributes = open.nic.poll_peer(ViNumber(vi))?.ok_or(Status::NotDone)?;
            // SAFETY: the caller's promise.
            unsafe { put(remote_vi_attributes, told_remote(&attributes)) };
            Ok(())
        })
    })
}

/// `VipConnectPeerWait`.
///
/// # Safety
/// Pointers are NULL or as include/vipl.h says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn VipConnectPeerWait(vi_handle: Handle, remote_vi_attributes: *mut abi::ViAttributes) -> u32 {
    answer(|| {
        let (key, vi) = handles::read(HandleKind::Vi, vi_handle)?;
        let attributes = nics::find(key)?.nic.wait_peer(ViNumber(vi), Deadline::Forever)?;
        // SAFETY: the caller's promise.
        unsafe { put(remote_vi_attributes, told_remote(&attributes)) };
        Ok(())
    })
}

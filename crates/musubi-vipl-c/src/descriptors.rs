//! Posting descriptors, and taking them back when they are complete.
//!
//! Decided where the standard is silent: an empty queue answers `VIP_DESCRIPTOR_ERROR` with a NULL descriptor, also to a wait, as nothing
//! could end it. Waiting on a queue that tells a completion queue is `VIP_ERROR_RESOURCE`: that one is waited for.

use core::ffi::c_void;

use musubi_transport::runtime::Deadline;
use musubi_vipl::engine::{Dequeue, MemoryHandle, Queue};
use musubi_vipl::nic::ViNumber;

use crate::abi::{self, Handle, Ulong};
use crate::connections::deadline;
use crate::handles::HandleKind;
use crate::nics;
use crate::notifying::say_errors;
use crate::status::{Status, answer};

#[inline]
fn post(vi_handle: Handle, queue: Queue, descriptor: *mut c_void, handle: abi::MemoryHandle) -> Result<(), Status> {
    nics::of_kind(HandleKind::Vi, vi_handle, |open, vi| {
        let place = (descriptor.expose_provenance() as u64, MemoryHandle(handle));
        // Only a handler hears more of it than the call's result.
        Ok(open.nic.post(ViNumber(vi), queue, place).inspect_err(|_| say_errors(open))?)
    })
}

/// Gives a descriptor back, by waiting until then or without.
#[inline]
fn take(vi_handle: Handle, queue: Queue, until: Option<Deadline>, to: *mut *mut c_void) -> Result<(), Status> {
    nics::of_kind(HandleKind::Vi, vi_handle, |open, vi| {
        let vi = ViNumber(vi);
        if to.is_null() {
            return Err(Status::InvalidParameter);
        }
        if until.is_some() && open.nic.with(|nic| nic.has_completion_queue(vi, queue))? {
            return Err(Status::ErrorResource);
        }
        let taken = match until {
            None => open.nic.dequeue(vi, queue)?,
            Some(deadline) => open.nic.wait(vi, queue, deadline)?,
        };
        let (descriptor, result) = match taken {
            Dequeue::Complete { address, is_error } => {
                let descriptor = core::ptr::with_exposed_provenance_mut(address as usize);
                if is_error {
                    say_errors(open);
                }
                (descriptor, if is_error { Err(Status::DescriptorError) } else { Ok(()) })
            }
            Dequeue::Empty => (core::ptr::null_mut(), Err(Status::DescriptorError)),
            Dequeue::Pending => return Err(Status::NotDone),
        };
        // SAFETY: the C program's promise; it is not NULL.
        unsafe { to.write(descriptor) };
        result
    })
}

/// `VipPostSend`.
///
/// # Safety
/// As include/vipl.h says of descriptors and of what they name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn VipPostSend(vi: Handle, descriptor: *mut c_void, memory_handle: abi::MemoryHandle) -> u32 {
    answer(|| post(vi, Queue::Send, descriptor, memory_handle))
}

/// `VipPostRecv`.
///
/// # Safety
/// As include/vipl.h says of descriptors and of what they name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn VipPostRecv(vi: Handle, descriptor: *mut c_void, memory_handle: abi::MemoryHandle) -> u32 {
    answer(|| post(vi, Queue::Receive, descriptor, memory_handle))
}

/// `VipSendDone`.
///
/// # Safety
/// Pointers are NULL or as include/vipl.h says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn VipSendDone(vi: Handle, descriptor: *mut *mut c_void) -> u32 {
    answer(|| take(vi, Queue::Send, None, descriptor))
}

/// `VipRecvDone`.
///
/// # Safety
/// Pointers are NULL or as include/vipl.h says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn VipRecvDone(vi: Handle, descriptor: *mut *mut c_void) -> u32 {
    answer(|| take(vi, Queue::Receive, None, descriptor))
}

/// `VipSendWait`.
///
/// # Safety
/// Pointers are NULL or as include/vipl.h says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn VipSendWait(vi: Handle, time_out: Ulong, descriptor: *mut *mut c_void) -> u32 {
    answer(|| take(vi, Queue::Send, Some(deadline(time_out)), descriptor))
}

/// `VipRecvWait`.
///
/// # Safety
/// Pointers are NULL or as include/vipl.h says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn VipRecvWait(vi: Handle, time_out: Ulong, descriptor: *mut *mut c_void) -> u32 {
    answer(|| take(vi, Queue::Receive, Some(deadline(time_out)), descriptor))
}

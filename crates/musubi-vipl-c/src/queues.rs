//! Completion queues.

use musubi_transport::runtime::Deadline;
use musubi_vipl::ViError;
use musubi_vipl::engine::Queue;
use musubi_vipl::nic::QueueNumber;

use crate::abi::{Boolean, Handle, Ulong};
use crate::connections::deadline;
use crate::handles::{self, HandleKind};
use crate::nics;
use crate::status::{Status, answer};

/// `VipCreateCQ`.
///
/// # Safety
/// Pointers are NULL or as include/vipl.h says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn VipCreateCQ(nic_handle: Handle, entry_count: Ulong, cq_handle: *mut Handle) -> u32 {
    answer(|| {
        nics::of(nic_handle, |open| {
            if cq_handle.is_null() {
                return Err(Status::InvalidParameter);
            }
            let queue = open.nic.with(|nic| nic.create_queue(entries(entry_count)))?;
            // SAFETY: the caller's promise; it is not NULL.
            unsafe { cq_handle.write(handles::handle(HandleKind::Queue, open.key, queue.0)) };
            Ok(())
        })
    })
}

/// `VipResizeCQ`.
///
/// # Safety
/// Any handle may be given.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn VipResizeCQ(cq_handle: Handle, entry_count: Ulong) -> u32 {
    answer(|| {
        nics::of_kind(HandleKind::Queue, cq_handle, |open, queue| {
            Ok(open.nic.with(|nic| nic.resize_queue(QueueNumber(queue), entries(entry_count)))?)
        })
    })
}

/// `VipDestroyCQ`.
///
/// # Safety
/// Any handle may be given.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn VipDestroyCQ(cq_handle: Handle) -> u32 {
    answer(|| {
        nics::of_kind(HandleKind::Queue, cq_handle, |open, queue| {
            open.nic.with(|nic| nic.destroy_queue(QueueNumber(queue)))?;
            open.handlers.forget_queue(QueueNumber(queue));
            Ok(())
        })
    })
}

/// More than 32 bits count are more than any limit.
fn entries(count: Ulong) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

#[inline]
fn take(cq_handle: Handle, until: Deadline, vi_handle: *mut Handle, recv_queue: *mut Boolean) -> Result<(), Status> {
    nics::of_kind(HandleKind::Queue, cq_handle, |open, queue| {
        if vi_handle.is_null() || recv_queue.is_null() {
            return Err(Status::InvalidParameter);
        }
        let (vi, queue) = match open.nic.wait_completion(QueueNumber(queue), until) {
            Err(ViError::Timeout) if until == Deadline::Poll => return Err(Status::NotDone),
            other => other?,
        };
        // SAFETY: the C program's promise; it is not NULL.
        unsafe { vi_handle.write(handles::handle(HandleKind::Vi, open.key, vi.0)) };
        // SAFETY: as above.
        unsafe { recv_queue.write(Boolean::from(queue == Queue::Receive)) };
        Ok(())
    })
}

/// `VipCQDone`.
///
/// # Safety
/// Pointers are NULL or as include/vipl.h says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn VipCQDone(cq_handle: Handle, vi_handle: *mut Handle, recv_queue: *mut Boolean) -> u32 {
    answer(|| take(cq_handle, Deadline::Poll, vi_handle, recv_queue))
}

/// `VipCQWait`.
///
/// # Safety
/// Pointers are NULL or as include/vipl.h says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn VipCQWait(
    cq_handle: Handle,
    time_out: Ulong,
    vi_handle: *mut Handle,
    recv_queue: *mut Boolean,
) -> u32 {
    answer(|| match take(cq_handle, deadline(time_out), vi_handle, recv_queue) {
        Err(Status::NotDone) => Err(Status::Timeout),
        other => other,
    })
}

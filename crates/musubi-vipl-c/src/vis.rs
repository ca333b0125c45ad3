//! VIs: making, asking, changing, ending them.

use std::sync::PoisonError;

use musubi_transport::Regulation;
use musubi_transport::runtime::Block;
use musubi_vipl::ViError;
use musubi_vipl::engine::{Reliability, TagHandle, ViAttributes};
use musubi_vipl::nic::{NicState, Notification, QueueNumber, ViNumber, Weight};

use crate::abi::{self, Boolean, Handle, Qos, Ulong};
use crate::handles::{self, HandleKind, NicKey};
use crate::memory::{tag, tag_handle};
use crate::nics::{self, NULL_TAG_VARIABLE, OpenNic};
use crate::qualities;
use crate::status::{Status, answer};

/// The class of VIs whose quality of service is NULL: best effort.
const BEST_EFFORT: u8 = musubi_transport::Priority::LEAST_URGENT.class();

/// Reads the attributes that a program gives, but for the quality of service, of which only the class is both sides' business.
pub(crate) fn read(open: &OpenNic, from: *const abi::ViAttributes) -> Result<ViAttributes, Status> {
    if from.is_null() {
        return Err(Status::InvalidParameter);
    }
    // SAFETY: the C program's promise; it is not NULL.
    let from = unsafe { from.read() };
    let reliability = Reliability::from_bits(from.reliability_level).ok_or(Status::InvalidReliabilityLevel)?;
    Ok(ViAttributes {
        reliability,
        transfer_bytes_max: u32::try_from(from.max_transfer_size).map_err(|_| Status::InvalidMtu)?,
        class: qualities::read(from.qos)?.map_or(BEST_EFFORT, |quality| quality.class as u8),
        tag: tag_of(open, from.ptag)?,
        remote_write: from.enable_rdma_write != 0,
        remote_read: from.enable_rdma_read != 0,
        credit: false,
    })
}

fn tag_of(open: &OpenNic, handle: Handle) -> Result<TagHandle, Status> {
    if handle.is_null() && std::env::var_os(NULL_TAG_VARIABLE).is_some_and(|value| value == "1") {
        let first = open.first_tag.lock().unwrap_or_else(PoisonError::into_inner);
        return first.ok_or(Status::InvalidPtag);
    }
    tag(open.key, handle)
}

/// The attributes of a VI of this side, for C.
fn told(open: &OpenNic, vi: ViNumber, attributes: &ViAttributes) -> abi::ViAttributes {
    let remote = told_remote(attributes);
    let qos = open.qualities.of_vi(vi).unwrap_or(remote.qos);
    abi::ViAttributes { ptag: tag_handle(open.key, attributes.tag), qos, ..remote }
}

/// The attributes of the other side's VI: its tag is no handle here, and of its quality of service the class is known.
pub(crate) fn told_remote(attributes: &ViAttributes) -> abi::ViAttributes {
    abi::ViAttributes {
        reliability_level: attributes.reliability.bit(),
        max_transfer_size: Ulong::from(attributes.transfer_bytes_max),
        qos: if attributes.class == BEST_EFFORT { core::ptr::null() } else { qualities::of_class(attributes.class) },
        ptag: core::ptr::null_mut(),
        enable_rdma_write: attributes.remote_write.into(),
        enable_rdma_read: attributes.remote_read.into(),
    }
}

/// The quality of service that attributes ask for, which [`read`] has found to be one.
fn quality(attributes: *const abi::ViAttributes) -> Result<Option<Qos>, Status> {
    // SAFETY: the C program's promise; `read` has seen that it is not NULL.
    qualities::read(unsafe { (*attributes).qos })
}

/// Has an idle VI keep to what its program asks for.
fn ask_for(nic: &mut NicState<Block>, vi: ViNumber, quality: Option<Qos>) -> Result<(), ViError> {
    nic.set_pace(vi, quality.map_or(Regulation::NONE, |quality| quality.regulation()))?;
    nic.set_weight(vi, quality.map_or(Weight::DEFAULT, |quality| quality.weight()))?;
    nic.set_notification(vi, quality.map_or_else(Notification::default, |quality| quality.notification()))
}

/// The completion queue of a handle, which may be NULL, else must be this NIC's.
fn queue(key: NicKey, handle: Handle) -> Result<Option<QueueNumber>, Status> {
    if handle.is_null() {
        return Ok(None);
    }
    match handles::read(HandleKind::Queue, handle)? {
        (nic, number) if nic == key => Ok(Some(QueueNumber(number))),
        _ => Err(Status::InvalidParameter),
    }
}

/// `VipCreateVi`.
///
/// # Safety
/// Pointers are NULL or as include/vipl.h says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn VipCreateVi(
    nic_handle: Handle,
    vi_attributes: *const abi::ViAttributes,
    send_cq: Handle,
    recv_cq: Handle,
    vi_handle: *mut Handle,
) -> u32 {
    answer(|| {
        nics::of(nic_handle, |open| {
            let attributes = read(open, vi_attributes)?;
            let (send, receive) = (queue(open.key, send_cq)?, queue(open.key, recv_cq)?);
            if vi_handle.is_null() {
                return Err(Status::InvalidParameter);
            }
            let quality = quality(vi_attributes)?;
            let vi = open.nic.with(|nic| {
                let vi = nic.create_vi(attributes, send, receive)?;
                ask_for(nic, vi, quality).map(|()| vi)
            })?;
            open.qualities.set(vi, quality);
            // SAFETY: the caller's promise; it is not NULL.
            unsafe { vi_handle.write(handles::handle(HandleKind::Vi, open.key, vi.0)) };
            Ok(())
        })
    })
}

/// `VipDestroyVi`.
///
/// # Safety
/// Any handle may be given.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn VipDestroyVi(vi_handle: Handle) -> u32 {
    answer(|| {
        nics::of_kind(HandleKind::Vi, vi_handle, |open, vi| {
            open.nic.with(|nic| nic.destroy_vi(ViNumber(vi)))?;
            open.handlers.forget_vi(ViNumber(vi));
            open.qualities.set(ViNumber(vi), None);
            Ok(())
        })
    })
}

/// `VipSetViAttributes`.
///
/// # Safety
/// Pointers are NULL or as include/vipl.h says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn VipSetViAttributes(vi_handle: Handle, vi_attributes: *const abi::ViAttributes) -> u32 {
    answer(|| {
        nics::of_kind(HandleKind::Vi, vi_handle, |open, vi| {
            let attributes = read(open, vi_attributes)?;
            let quality = quality(vi_attributes)?;
            open.nic.with(|nic| {
                nic.set_vi_attributes(ViNumber(vi), attributes)?;
                ask_for(nic, ViNumber(vi), quality)
            })?;
            open.qualities.set(ViNumber(vi), quality);
            Ok(())
        })
    })
}

/// `VipQueryVi`.
///
/// # Safety
/// Pointers are NULL or as include/vipl.h says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn VipQueryVi(
    vi_handle: Handle,
    state: *mut u32,
    vi_attributes: *mut abi::ViAttributes,
    send_queue_empty: *mut Boolean,
    recv_queue_empty: *mut Boolean,
) -> u32 {
    answer(|| {
        nics::of_kind(HandleKind::Vi, vi_handle, |open, vi| {
            let picture = open.nic.with(|nic| nic.query_vi(ViNumber(vi)))?;
            let told = told(open, ViNumber(vi), &picture.attributes);
            // SAFETY: here and below the caller's promise: NULL, or room for what is put there.
            unsafe { put(state, picture.state as u32) };
            // SAFETY: as above.
            unsafe { put(vi_attributes, told) };
            // SAFETY: as above.
            unsafe { put(send_queue_empty, picture.sends_empty.into()) };
            // SAFETY: as above.
            unsafe { put(recv_queue_empty, picture.receives_empty.into()) };
            Ok(())
        })
    })
}

/// Writes a result. NULL is left alone.
///
/// # Safety
/// `to` is NULL or points to room for a `T`.
#[inline]
pub(crate) unsafe fn put<T>(to: *mut T, value: T) {
    if !to.is_null() {
        // SAFETY: the caller's promise.
        unsafe { to.write(value) };
    }
}

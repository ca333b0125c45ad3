//! VIs: making, asking, changing, ending them.

use std::sync::PoisonError;

use musubi_vipl::engine::{Reliability, TagHandle, ViAttributes};
use musubi_vipl::nic::{QueueNumber, ViNumber};

use crate::abi::{self, Boolean, Handle, Qos, Ulong};
use crate::handles::{self, HandleKind, NicKey};
use crate::memory::{tag, tag_handle};
use crate::nics::{self, NULL_TAG_VARIABLE, OpenNic};
use crate::status::{Status, answer};

/// The class of VIs whose quality of service is NULL: best effort.
const BEST_EFFORT: u8 = musubi_transport::Priority::LEAST_URGENT.class();

/// What `VIP_QOS` points to for each class, for attributes that are told.
static QUALITIES: [Qos; musubi_transport::Priority::COUNT] = {
    let mut qualities = [Qos::of_class(0); musubi_transport::Priority::COUNT];
    let mut class = 0;
    while class < qualities.len() {
        qualities[class] = Qos::of_class(class as u32);
        class += 1;
    }
    qualities
};

/// Reads the attributes that a program gives.
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
        class: class(from.qos)?,
        tag: tag_of(open, from.ptag)?,
        remote_write: from.enable_rdma_write != 0,
        remote_read: from.enable_rdma_read != 0,
    })
}

fn class(qos: *const Qos) -> Result<u8, Status> {
    if qos.is_null() {
        return Ok(BEST_EFFORT);
    }
    if !qos.is_aligned() {
        return Err(Status::InvalidQos);
    }
    // SAFETY: the C program's promise: it is not NULL, so it points to a `VIP_MUSUBI_QOS`, which begins with its size.
    let size = unsafe { qos.cast::<u32>().read() } as usize;
    if size < core::mem::offset_of!(Qos, message_rate) {
        return Err(Status::InvalidQos);
    }
    let mut told = Qos::of_class(0);
    // SAFETY: as above: it has as many bytes as it says, and no more are copied than there is room for.
    unsafe {
        core::ptr::copy_nonoverlapping(qos.cast::<u8>(), (&raw mut told).cast::<u8>(), size.min(size_of::<Qos>()))
    };
    // What is asked for besides the class is not there yet.
    let plain = Qos { size: told.size, ..Qos::of_class(told.class) };
    match u8::try_from(told.class) {
        Ok(class) if told == plain && told.class < QUALITIES.len() as u32 => Ok(class),
        _ => Err(Status::InvalidQos),
    }
}

fn tag_of(open: &OpenNic, handle: Handle) -> Result<TagHandle, Status> {
    if handle.is_null() && std::env::var_os(NULL_TAG_VARIABLE).is_some_and(|value| value == "1") {
        let first = open.first_tag.lock().unwrap_or_else(PoisonError::into_inner);
        return first.ok_or(Status::InvalidPtag);
    }
    tag(open.key, handle)
}

/// The attributes of a VI of this side, for C.
fn told(key: NicKey, attributes: &ViAttributes) -> abi::ViAttributes {
    abi::ViAttributes { ptag: tag_handle(key, attributes.tag), ..told_remote(attributes) }
}

/// The attributes of the other side's VI: its tag is no handle here.
pub(crate) fn told_remote(attributes: &ViAttributes) -> abi::ViAttributes {
    let quality =
        QUALITIES.get(usize::from(attributes.class)).filter(|quality| quality.class != u32::from(BEST_EFFORT));
    abi::ViAttributes {
        reliability_level: attributes.reliability.bit(),
        max_transfer_size: Ulong::from(attributes.transfer_bytes_max),
        qos: quality.map_or(core::ptr::null(), core::ptr::from_ref),
        ptag: core::ptr::null_mut(),
        enable_rdma_write: attributes.remote_write.into(),
        enable_rdma_read: attributes.remote_read.into(),
    }
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
            let vi = open.nic.with(|nic| nic.create_vi(attributes, send, receive))?;
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
            Ok(open.nic.with(|nic| nic.set_vi_attributes(ViNumber(vi), attributes))?)
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
            let told = told(open.key, &picture.attributes);
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

//! Protection tags and registered memory.

use core::ffi::c_void;
use std::sync::PoisonError;

use musubi_linux::addresses::are_mapped;
use musubi_vipl::ViError;
use musubi_vipl::engine::{MemoryAttributes, MemoryHandle, TagHandle};

use crate::abi::{self, Handle, MemAttributes, Ulong};
use crate::handles::{self, HandleKind, NicKey};
use crate::nics::{self, OpenNic};
use crate::status::{Status, answer};

/// The tag of a handle, which must be this NIC's.
pub(crate) fn tag(key: NicKey, handle: Handle) -> Result<TagHandle, Status> {
    match handles::read(HandleKind::Tag, handle) {
        Ok((nic, number)) if nic == key => Ok(TagHandle(number)),
        _ => Err(Status::InvalidPtag),
    }
}

/// The handle of a tag.
pub(crate) fn tag_handle(key: NicKey, tag: TagHandle) -> Handle {
    handles::handle(HandleKind::Tag, key, tag.0)
}

fn attributes(key: NicKey, from: *const MemAttributes) -> Result<MemoryAttributes, Status> {
    if from.is_null() {
        return Err(Status::InvalidParameter);
    }
    // SAFETY: the C program's promise; it is not NULL.
    let from = unsafe { from.read() };
    Ok(MemoryAttributes {
        tag: tag(key, from.ptag)?,
        remote_write: from.enable_rdma_write != 0,
        remote_read: from.enable_rdma_read != 0,
    })
}

/// `VipCreatePtag`.
///
/// # Safety
/// Pointers are NULL or as include/vipl.h says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn VipCreatePtag(nic_handle: Handle, ptag: *mut Handle) -> u32 {
    answer(|| {
        nics::of(nic_handle, |open| {
            if ptag.is_null() {
                return Err(Status::InvalidParameter);
            }
            let tag = open.nic.with(|nic| nic.create_tag())?;
            open.first_tag.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(tag);
            // SAFETY: the caller's promise; it is not NULL.
            unsafe { ptag.write(tag_handle(open.key, tag)) };
            Ok(())
        })
    })
}

/// `VipDestroyPtag`.
///
/// # Safety
/// Any handle may be given.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn VipDestroyPtag(nic_handle: Handle, ptag: Handle) -> u32 {
    answer(|| {
        nics::of(nic_handle, |open| {
            let tag = tag(open.key, ptag)?;
            open.nic.with(|nic| nic.destroy_tag(tag))?;
            let mut first = open.first_tag.lock().unwrap_or_else(PoisonError::into_inner);
            *first = first.filter(|first| *first != tag);
            Ok(())
        })
    })
}

/// `VipRegisterMem`.
///
/// # Safety
/// Pointers are NULL or as include/vipl.h says; the memory is the program's, and stays until it is deregistered.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn VipRegisterMem(
    nic_handle: Handle,
    virtual_address: *mut c_void,
    length: Ulong,
    mem_attributes: *const MemAttributes,
    memory_handle: *mut abi::MemoryHandle,
) -> u32 {
    answer(|| {
        nics::of(nic_handle, |open| {
            let attributes = attributes(open.key, mem_attributes)?;
            if memory_handle.is_null() {
                return Err(Status::InvalidParameter);
            }
            let address = virtual_address.expose_provenance() as u64;
            let handle = register(open, address, length, attributes)?;
            // SAFETY: the caller's promise; it is not NULL.
            unsafe { memory_handle.write(handle.0) };
            Ok(())
        })
    })
}

fn register(open: &OpenNic, address: u64, bytes: u64, attributes: MemoryAttributes) -> Result<MemoryHandle, Status> {
    let handle = open.nic.with(|nic| {
        let handle = nic.permit(address, bytes, attributes)?;
        if !are_mapped(address, bytes) {
            nic.deregister(address, handle)?;
            return Err(ViError::Parameter);
        }
        // SAFETY: include/vipl.h asks the program for it: memory of its own that stays until it is deregistered, of which it
        // does not touch what is posted, and what peers may write only as it would what another thread writes. Its address
        // was exposed by the caller.
        unsafe { nic.memory().enter(handle, address, bytes) };
        Ok(handle)
    })?;
    Ok(handle)
}

/// `VipDeregisterMem`.
///
/// # Safety
/// Any address and handle may be given.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn VipDeregisterMem(
    nic_handle: Handle,
    virtual_address: *mut c_void,
    memory_handle: abi::MemoryHandle,
) -> u32 {
    answer(|| {
        nics::of(nic_handle, |open| {
            let address = virtual_address.addr() as u64;
            Ok(open.nic.with(|nic| nic.deregister(address, MemoryHandle(memory_handle)))?)
        })
    })
}

/// `VipQueryMem`.
///
/// # Safety
/// Pointers are NULL or as include/vipl.h says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn VipQueryMem(
    nic_handle: Handle,
    address: *mut c_void,
    memory_handle: abi::MemoryHandle,
    mem_attributes: *mut MemAttributes,
) -> u32 {
    answer(|| {
        nics::of(nic_handle, |open| {
            if mem_attributes.is_null() {
                return Err(Status::InvalidParameter);
            }
            let address = address.addr() as u64;
            let known = open.nic.with(|nic| nic.memory_attributes(address, MemoryHandle(memory_handle)))?;
            let told = MemAttributes {
                ptag: tag_handle(open.key, known.tag),
                enable_rdma_write: known.remote_write.into(),
                enable_rdma_read: known.remote_read.into(),
            };
            // SAFETY: the caller's promise; it is not NULL.
            unsafe { mem_attributes.write(told) };
            Ok(())
        })
    })
}

/// `VipSetMemAttributes`.
///
/// # Safety
/// Pointers are NULL or as include/vipl.h says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn VipSetMemAttributes(
    nic_handle: Handle,
    address: *mut c_void,
    memory_handle: abi::MemoryHandle,
    mem_attributes: *const MemAttributes,
) -> u32 {
    answer(|| {
        nics::of(nic_handle, |open| {
            let attributes = attributes(open.key, mem_attributes)?;
            let address = address.addr() as u64;
            let handle = MemoryHandle(memory_handle);
            Ok(open.nic.with(|nic| nic.set_memory_attributes(address, handle, attributes))?)
        })
    })
}

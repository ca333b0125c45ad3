//! Registered memory: `fi_mr_reg`, `fi_mr_regv`, `fi_mr_regattr` of one piece.
//!
//! What you may rely on: a descriptor of memory is a VI memory handle, looked up and never followed; so is a key.

use core::ffi::c_void;

use musubi_vipl::engine::{MemoryAttributes, MemoryHandle};

use crate::abi::{self, EINVAL, Iovec};
use crate::domain::Domain;
use crate::object::{self, ABSENT, CallTable, answer_int, give, make, take};

struct RegisteredPart {
    domain: Domain,
    address: u64,
    handle: MemoryHandle,
}

static FID: CallTable<6> = CallTable::new([close as *const (), ABSENT, ABSENT, ABSENT, ABSENT, ABSENT]);
/// `struct fi_ops_mr`.
pub(crate) static CALLS: CallTable<3> = CallTable::new([reg as *const (), regv as *const (), regattr as *const ()]);

unsafe extern "C" fn close(fid: *mut c_void) -> i32 {
    answer_int(|| {
        // SAFETY: libfabric's promise: an object of this table.
        let region = &unsafe { object::of::<RegisteredPart, 2>(fid) }.own;
        // The NIC may be closed.
        let _ = region.domain.core.nic.with(|nic| nic.deregister(region.address, region.handle));
        // SAFETY: likewise; the program ends it.
        unsafe { object::end::<RegisteredPart, 2>(fid) };
        Ok(())
    })
}

unsafe extern "C" fn reg(
    domain: *mut c_void,
    buffer: *const c_void,
    bytes: usize,
    access: u64,
    _offset: u64,
    _key: u64,
    _flags: u64,
    out: *mut *mut c_void,
    context: *mut c_void,
) -> i32 {
    // SAFETY: libfabric's promises, handed on.
    answer_int(|| unsafe { register(domain, &[Iovec { base: buffer.cast_mut(), bytes }], access, out, context) })
}

unsafe extern "C" fn regv(
    domain: *mut c_void,
    iov: *const Iovec,
    count: usize,
    access: u64,
    _offset: u64,
    _key: u64,
    _flags: u64,
    out: *mut *mut c_void,
    context: *mut c_void,
) -> i32 {
    answer_int(|| {
        if count != 1 {
            return Err(EINVAL);
        }
        // SAFETY: libfabric's promise: there is one.
        let piece = unsafe { take(iov)? };
        // SAFETY: likewise, handed on.
        unsafe { register(domain, &[piece], access, out, context) }
    })
}

unsafe extern "C" fn regattr(domain: *mut c_void, attr: *const abi::MrAttr, _flags: u64, out: *mut *mut c_void) -> i32 {
    answer_int(|| {
        // SAFETY: libfabric's promise.
        let attr = unsafe { take(attr)? };
        if attr.iov_count != 1 {
            return Err(EINVAL);
        }
        // SAFETY: likewise; there is one.
        let piece = unsafe { take(attr.iov)? };
        // SAFETY: likewise, handed on.
        unsafe { register(domain, &[piece], attr.access, out, attr.context) }
    })
}

/// # Safety
/// The domain is one, the memory is the program's until the region is closed, `out` is a place.
unsafe fn register(
    domain: *mut c_void,
    [piece]: &[Iovec; 1],
    access: u64,
    out: *mut *mut c_void,
    context: *mut c_void,
) -> Result<(), i32> {
    // SAFETY: the caller's promise.
    let domain = unsafe { object::of::<Domain, 2>(domain) }.own.clone();
    let (address, bytes) = (piece.base.expose_provenance() as u64, piece.bytes);
    let (remote_write, remote_read) = (access & abi::REMOTE_WRITE != 0, access & abi::REMOTE_READ != 0);
    let attributes = MemoryAttributes { tag: domain.tag, remote_write, remote_read };
    let handle = domain.core.nic.with(|nic| {
        let handle = nic.permit(address, bytes as u64, attributes)?;
        // SAFETY: the caller's promise: memory of its own that stays until the region is closed, of which it does not touch
        // what is posted. Its address has just been exposed.
        unsafe { nic.memory().enter(handle, address, bytes as u64) };
        Ok(handle)
    });
    let handle = handle.map_err(crate::codes::code)?;
    let word = handle.0 as usize;
    let region = make(abi::CLASS_MR, context, &FID, [word, word], RegisteredPart { domain, address, handle });
    // SAFETY: the caller's promise.
    unsafe { give(out, region) }
}

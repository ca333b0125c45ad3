//! What handles are: a kind, which opened NIC, and a number there; never an address.
//!
//! What you may rely on: a handle of one kind is none of another; what is no address of a process's can be no handle's neighbour:
//! the highest bits say the kind, and no program on a 64-bit Linux has memory there.

use core::ffi::c_void;

use crate::abi::Handle;
use crate::status::Status;

/// What a handle names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub(crate) enum HandleKind {
    Nic = 0x91,
    Vi = 0x92,
    Queue = 0x93,
    Tag = 0x94,
    Caller = 0x95,
}

/// Which opened NIC of the process, from 1 on; never given twice before 16,777,215 were opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NicKey(pub(crate) u32);

const KIND_SHIFT: u32 = 56;
const NIC_SHIFT: u32 = 32;
const NIC_MASK: u64 = (1 << (KIND_SHIFT - NIC_SHIFT)) - 1;

/// The handle of a number.
pub(crate) fn handle(kind: HandleKind, nic: NicKey, number: u32) -> Handle {
    let bits = (kind as u64) << KIND_SHIFT | (u64::from(nic.0) & NIC_MASK) << NIC_SHIFT | u64::from(number);
    core::ptr::without_provenance_mut::<c_void>(bits as usize)
}

/// The number of a handle of a kind.
///
/// # Errors
/// `VIP_INVALID_PARAMETER` if it is none of that kind.
#[inline]
pub(crate) fn read(kind: HandleKind, handle: Handle) -> Result<(NicKey, u32), Status> {
    let bits = handle.addr() as u64;
    if bits >> KIND_SHIFT == kind as u64 {
        return Ok((NicKey((bits >> NIC_SHIFT & NIC_MASK) as u32), bits as u32));
    }
    Err(Status::InvalidParameter)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handle_is_what_it_was_made_of_and_nothing_else() {
        let vi = handle(HandleKind::Vi, NicKey(7), 0x1234_5678);
        assert_eq!(read(HandleKind::Vi, vi), Ok((NicKey(7), 0x1234_5678)));
        assert_eq!(read(HandleKind::Queue, vi), Err(Status::InvalidParameter));
        let on_the_stack = 0_u64;
        let pointer = (&raw const on_the_stack).cast_mut().cast();
        assert_eq!(read(HandleKind::Vi, pointer), Err(Status::InvalidParameter));
        assert_eq!(read(HandleKind::Nic, core::ptr::null_mut()), Err(Status::InvalidParameter));
    }
}

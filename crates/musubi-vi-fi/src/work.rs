//! The descriptors of one endpoint: who asked for what, and where it is written for the VI.
//!
//! What you may rely on: a place is not used again before its completion was taken.
//!
//! How it works: registered lines, cut into places of a descriptor and the bytes of an injected message each.

use core::ffi::c_void;

use musubi_vipl::engine::{MemoryAttributes, MemoryHandle, TagHandle};
use musubi_vipl::memory::Lines;
use musubi_vipl::process::Nic;

use crate::abi::{EAGAIN, EINVAL};
use crate::codes::code;
use crate::info::{INJECT_BYTES, PIECES_MAX, QUEUE_SIZE};

/// A piece of a message: `VIP_DATA_SEGMENT`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub(crate) struct Piece {
    pub(crate) address: u64,
    pub(crate) handle: u32,
    pub(crate) bytes: u32,
}

/// `VIP_DESCRIPTOR` with its segments, and room for an injected message.
#[repr(C, align(64))]
#[derive(Clone, Copy)]
struct WorkPlace {
    next: u64,
    next_handle: u32,
    segments: u16,
    control: u16,
    reserved: u32,
    immediate: u32,
    length: u32,
    status: u32,
    pieces: [Piece; 1 + PIECES_MAX],
    injected: [u8; INJECT_BYTES],
}

const INJECTED_AT: u64 = core::mem::offset_of!(WorkPlace, injected) as u64;
/// Bits of the control word.
const WRITE_BIT: u16 = 1;
const READ_BIT: u16 = 2;
const IMMEDIATE_BIT: u16 = 4;

/// Who posted.
#[derive(Clone, Copy)]
pub(crate) struct Posted {
    pub(crate) context: usize,
    pub(crate) buffer: usize,
    pub(crate) is_silent: bool,
    /// What a completion says that it was.
    pub(crate) flags: u64,
}

/// How it ended.
pub(crate) struct Ended {
    pub(crate) posted: Posted,
    pub(crate) bytes: u32,
    pub(crate) immediate: u32,
    pub(crate) status: u32,
}

/// The bytes of what is to be posted.
pub(crate) enum WorkContent<'w> {
    Pieces(&'w [Piece]),
    Injected(&'w [u8]),
}

/// Which memory of the peer's it is about.
#[derive(Clone, Copy)]
pub(crate) enum RemoteMemory {
    None,
    Written(Piece),
    Read(Piece),
}

pub(crate) struct Work {
    pub(crate) handle: MemoryHandle,
    pub(crate) address: u64,
    free: Vec<u16>,
    posted: Vec<Posted>,
}

impl Work {
    pub(crate) fn new(nic: &Nic, tag: TagHandle) -> Result<Work, i32> {
        let attributes = MemoryAttributes { tag, remote_write: false, remote_read: false };
        let lines = Lines::zeroed(QUEUE_SIZE * size_of::<WorkPlace>());
        let (address, handle) = nic.with(|nic| nic.register_own(lines, attributes)).map_err(code)?;
        let none = Posted { context: 0, buffer: 0, is_silent: true, flags: 0 };
        Ok(Work { handle, address, free: (0..QUEUE_SIZE as u16).rev().collect(), posted: vec![none; QUEUE_SIZE] })
    }

    /// Writes a descriptor: where it lies.
    pub(crate) fn write(
        &mut self,
        what: &WorkContent<'_>,
        remote: RemoteMemory,
        immediate: Option<u32>,
        posted: Posted,
    ) -> Result<u64, i32> {
        let place = *self.free.last().ok_or(EAGAIN)?;
        let address = self.address + u64::from(place) * size_of::<WorkPlace>() as u64;
        let mut written = WorkPlace {
            next: 0,
            next_handle: 0,
            segments: 0,
            control: control(remote, immediate),
            reserved: 0,
            immediate: immediate.unwrap_or(0),
            length: 0,
            status: 0,
            pieces: [Piece::default(); 1 + PIECES_MAX],
            injected: [0; INJECT_BYTES],
        };
        let injected;
        let pieces = match what {
            WorkContent::Pieces(pieces) => *pieces,
            WorkContent::Injected(bytes) => {
                written.injected.get_mut(..bytes.len()).ok_or(EINVAL)?.copy_from_slice(bytes);
                let (address, bytes) = (address + INJECTED_AT, bytes.len() as u32);
                injected = [Piece { address, handle: self.handle.0, bytes }];
                &injected
            }
        };
        let first = match remote {
            RemoteMemory::None => 0,
            RemoteMemory::Written(place) | RemoteMemory::Read(place) => {
                written.pieces[0] = place;
                1
            }
        };
        written.pieces.get_mut(first..first + pieces.len()).ok_or(EINVAL)?.copy_from_slice(pieces);
        written.segments = (first + pieces.len()) as u16;
        written.length = pieces.iter().try_fold(0_u32, |sum, piece| sum.checked_add(piece.bytes)).ok_or(EINVAL)?;
        let to = core::ptr::with_exposed_provenance_mut::<WorkPlace>(address as usize);
        // SAFETY: a place of the lines that the NIC keeps until they are deregistered, when this is dropped; as the place is
        // free, no descriptor there is posted.
        unsafe { to.write_volatile(written) };
        self.free.pop();
        self.posted[usize::from(place)] = posted;
        Ok(address)
    }

    /// Takes what was written at this address back.
    pub(crate) fn take(&mut self, address: u64) -> Option<Ended> {
        let place = address.checked_sub(self.address)? / size_of::<WorkPlace>() as u64;
        let posted = *self.posted.get(place as usize)?;
        let from = core::ptr::with_exposed_provenance::<WorkPlace>(address as usize);
        // SAFETY: as in `write`; the NIC has said that it is complete.
        let read = unsafe { from.read_volatile() };
        self.free.push(place as u16);
        Some(Ended { posted, bytes: read.length, immediate: read.immediate, status: read.status })
    }
}

fn control(remote: RemoteMemory, immediate: Option<u32>) -> u16 {
    let operation = match remote {
        RemoteMemory::None => 0,
        RemoteMemory::Written(_) => WRITE_BIT,
        RemoteMemory::Read(_) => READ_BIT,
    };
    operation | if immediate.is_some() { IMMEDIATE_BIT } else { 0 }
}

/// The address of a buffer of the program's, which the VI will follow.
pub(crate) fn exposed(buffer: *const c_void) -> u64 {
    buffer.expose_provenance() as u64
}

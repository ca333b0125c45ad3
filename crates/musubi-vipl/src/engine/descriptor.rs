//! What a program wrote into a descriptor, read once and checked.
//!
//! What you may rely on: [`Descriptor::read`] accepts every sequence of bytes; what is not a descriptor of that queue is one
//! that completes with an error, in its turn. Nothing of it is read again later, so a peer that may write the region in which
//! descriptors lie cannot change one that was posted.
//!
//! How it works: `VIP_DESCRIPTOR` is a control segment of 32 bytes and behind it segments of 16, little-endian as on every
//! machine that Musubi runs on: `Next` at 0, `NextHandle` at 8, `SegCount` at 12, `Control` at 14, `Reserved` at 16,
//! `ImmediateData` at 20, `Length` at 24, `Status` at 28; a segment is an address, a handle and a length. An RDMA operation
//! has one address segment first.
//!
//! Decided where the standard is silent: the immediate and fence bits of a receive are ignored, as programs use descriptors
//! again for the other queue; so is the length of a receive, which completion overwrites. A length that is not the sum of
//! the segments is a length error. Reserved words are ignored, reserved bits of `Control` are a format error.

use super::attributes::Limits;
use super::protection::{MemoryHandle, RemotePlace};
use super::segments::{LocalPlace, Segments};
use super::status::Status;
use super::vi::Queue;

/// Bytes of a control segment.
pub const CONTROL_BYTES: usize = 32;
/// Bytes of a data or address segment.
pub const SEGMENT_BYTES: usize = 16;

/// What a descriptor asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Send, or receive.
    SendReceive,
    /// RDMA write.
    Write,
    /// RDMA read.
    Read,
}

mod control {
    pub const OPERATION: u16 = 0x3;
    pub const WRITE: u16 = 1;
    pub const READ: u16 = 2;
    pub const IMMEDIATE: u16 = 4;
    pub const FENCE: u16 = 8;
    pub const KNOWN: u16 = 0xf;
}

/// A descriptor that was posted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Descriptor {
    /// Where it lies: names it to the program.
    pub address: u64,
    /// The region that it lies in.
    pub handle: MemoryHandle,
    /// What it asks for.
    pub operation: Operation,
    /// What goes with the message.
    pub immediate: Option<u32>,
    /// Whether it waits for all earlier reads.
    pub fence: bool,
    /// Where the peer's memory is, of an RDMA operation.
    pub remote: RemotePlace,
    /// Places of this side.
    pub segments: Segments,
    /// Why it cannot be done, known from itself alone.
    pub refused: Option<Status>,
}

impl Descriptor {
    /// Segments that the control segment says there are: how many to read behind it.
    pub fn segment_count(control: &[u8; CONTROL_BYTES]) -> u16 {
        u16_at(control, 12)
    }

    /// Checks what was written at `address`: a control segment, and as many segments behind it as it says (or none, if those
    /// are more than `limits` allow).
    pub fn read(
        (address, handle): (u64, MemoryHandle),
        control: &[u8; CONTROL_BYTES],
        segments: &[[u8; SEGMENT_BYTES]],
        queue: Queue,
        limits: &Limits,
    ) -> Descriptor {
        let bits = u16_at(control, 14);
        let mut descriptor = Descriptor {
            address,
            handle,
            operation: operation(bits),
            immediate: None,
            fence: false,
            remote: RemotePlace::default(),
            segments: Segments::NONE,
            refused: None,
        };
        let count = Descriptor::segment_count(control);
        let is_known = bits & !control::KNOWN == 0 && bits & control::OPERATION != control::OPERATION;
        if !is_known || count > limits.segments || segments.len() != usize::from(count) {
            descriptor.refused = Some(Status::FORMAT_ERROR);
            return descriptor;
        }
        if queue == Queue::Send {
            descriptor.fence = bits & control::FENCE != 0;
            descriptor.immediate = (bits & control::IMMEDIATE != 0).then(|| u32_at(control, 20));
        }
        descriptor.refused = descriptor.take_segments(segments, queue).err().or_else(|| {
            let is_sum = queue == Queue::Receive || u32_at(control, 24) == descriptor.segments.bytes();
            (!is_sum).then_some(Status::LENGTH_ERROR)
        });
        descriptor
    }

    fn take_segments(&mut self, segments: &[[u8; SEGMENT_BYTES]], queue: Queue) -> Result<(), Status> {
        let mut local = segments;
        if self.operation != Operation::SendReceive {
            if queue == Queue::Receive || (self.operation == Operation::Read && self.immediate.is_some()) {
                return Err(Status::FORMAT_ERROR);
            }
            let (first, rest) = segments.split_first().ok_or(Status::FORMAT_ERROR)?;
            self.remote = RemotePlace { address: u64_at(first, 0), handle: MemoryHandle(u32_at(first, 8)) };
            local = rest;
        }
        for segment in local {
            let (address, handle, bytes) = (u64_at(segment, 0), MemoryHandle(u32_at(segment, 8)), u32_at(segment, 12));
            self.segments.push(LocalPlace { address, handle, bytes }).ok_or(Status::LENGTH_ERROR)?;
        }
        Ok(())
    }

    /// Bytes that it sends, or has room for.
    pub fn bytes(&self) -> u32 {
        self.segments.bytes()
    }
}

fn operation(bits: u16) -> Operation {
    match bits & control::OPERATION {
        control::WRITE => Operation::Write,
        control::READ => Operation::Read,
        _ => Operation::SendReceive,
    }
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    bytes.get(at..).and_then(<[u8]>::first_chunk).map_or(0, |chunk| u16::from_le_bytes(*chunk))
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..).and_then(<[u8]>::first_chunk).map_or(0, |chunk| u32::from_le_bytes(*chunk))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..).and_then(<[u8]>::first_chunk).map_or(0, |chunk| u64::from_le_bytes(*chunk))
}

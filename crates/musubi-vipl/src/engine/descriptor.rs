//! What a program wrote into a descriptor, read once and checked.
//!
//! What you may rely on: [`Descriptor::read`] accepts whatever was written; what is not a descriptor of that queue is one
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

/// What counts of a control segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ControlWords {
    /// `SegCount`: how many segments there are behind it.
    pub segments: u16,
    /// `Control`.
    pub control: u16,
    /// `ImmediateData`.
    pub immediate: u32,
    /// `Length`.
    pub length: u32,
}

/// A segment as it was written: an address, a handle, a length.
pub type SegmentWords = (u64, u32, u32);

impl Descriptor {
    /// Of nothing.
    pub const NONE: Descriptor = Descriptor {
        address: 0,
        handle: MemoryHandle::NONE,
        operation: Operation::SendReceive,
        immediate: None,
        fence: false,
        remote: RemotePlace { address: 0, handle: MemoryHandle::NONE },
        segments: Segments::NONE,
        refused: None,
    };

    /// Becomes what was written at `address`, checked: a control segment, and as many segments behind it as it says (or none,
    /// if those are more than `limits` allow).
    #[inline]
    pub fn read(
        &mut self,
        (address, handle): (u64, MemoryHandle),
        control: &ControlWords,
        segments: &[SegmentWords],
        queue: Queue,
        limits: &Limits,
    ) {
        let bits = control.control;
        self.address = address;
        self.handle = handle;
        self.operation = operation(bits);
        self.immediate = None;
        self.fence = false;
        self.remote = RemotePlace::default();
        self.segments.clear();
        let is_known = bits & !control::KNOWN == 0 && bits & control::OPERATION != control::OPERATION;
        if !is_known || control.segments > limits.segments || segments.len() != usize::from(control.segments) {
            self.refused = Some(Status::FORMAT_ERROR);
            return;
        }
        if queue == Queue::Send {
            self.fence = bits & control::FENCE != 0;
            self.immediate = (bits & control::IMMEDIATE != 0).then_some(control.immediate);
        }
        self.refused = self.take_segments(segments, queue).err().or_else(|| {
            let is_sum = queue == Queue::Receive || control.length == self.segments.bytes();
            (!is_sum).then_some(Status::LENGTH_ERROR)
        });
    }

    #[inline]
    fn take_segments(&mut self, segments: &[SegmentWords], queue: Queue) -> Result<(), Status> {
        let mut local = segments;
        if self.operation != Operation::SendReceive {
            if queue == Queue::Receive || (self.operation == Operation::Read && self.immediate.is_some()) {
                return Err(Status::FORMAT_ERROR);
            }
            let (first, rest) = segments.split_first().ok_or(Status::FORMAT_ERROR)?;
            self.remote = RemotePlace { address: first.0, handle: MemoryHandle(first.1) };
            local = rest;
        }
        for &(address, handle, bytes) in local {
            let handle = MemoryHandle(handle);
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

//! What the outgoing half of a session keeps of a frame, and of each piece that it was cut into.
//!
//! How it works: a frame's payload lies behind room for the headers, or stays where it lies, shared with who sends it. A piece
//! in the log is a number of bytes of a lane's frame; one that is ready is a part of a frame's bytes, behind own ones.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use super::record::Record;
use crate::Priority;
use crate::frame::Header;
use crate::links::SharedBytes;

pub(super) const LANES: usize = Priority::COUNT;
/// Room for the headers before a frame's payload.
pub(super) const BEFORE: usize = Record::BYTES + Header::BYTES;
/// A frame until it is acknowledged.
#[derive(Debug)]
pub(super) struct Frame {
    pub number: u64,
    pub class: Priority,
    /// Record, header, and the payload unless that is shared.
    pub buffer: Vec<u8>,
    pub shared: Option<SharedBytes>,
    /// Bytes behind the record's that have been cut into pieces.
    pub cut: usize,
    /// The regulator has let it pass, also where it goes again after a cut.
    pub admitted: bool,
}

impl Frame {
    /// Bytes of record, header and payload.
    #[inline]
    pub fn len(&self) -> usize {
        self.buffer.len() + self.shared().len()
    }

    /// Bytes that have not been cut into pieces.
    #[inline]
    pub fn uncut(&self) -> usize {
        self.len() - Record::BYTES - self.cut
    }

    #[inline]
    pub fn shared(&self) -> &[u8] {
        self.shared.as_deref().unwrap_or(&[])
    }

    /// The bytes from `start` to `end`, where they lie: in the buffer, then in shared memory.
    #[inline]
    pub fn parts(&self, start: usize, end: usize) -> [&[u8]; 2] {
        let own = self.buffer.len();
        let of_shared = start.max(own) - own..end.max(own) - own;
        [&self.buffer[start.min(own)..end.min(own)], &self.shared()[of_shared]]
    }
}

#[derive(Debug, Default)]
pub(super) struct Lane {
    pub frames: VecDeque<Frame>,
    /// Frames that have left at the front: the first of `frames` has this ordinal.
    pub popped: u64,
    /// The first frame that is not wholly cut.
    pub cursor: usize,
    /// Bytes of the first frame that are acknowledged.
    pub acknowledged: usize,
}

/// A numbered piece that is not yet acknowledged.
#[derive(Debug)]
pub(super) struct Logged {
    pub lane: u8,
    pub last: bool,
    pub bytes: u32,
}

/// What is ready to be written: own bytes, then a part of a frame's buffer.
#[derive(Debug)]
pub(super) struct Ready {
    pub own: [u8; Record::BYTES],
    pub own_length: u8,
    pub lane: u8,
    pub ordinal: u64,
    pub start: usize,
    pub end: usize,
}

impl Ready {
    pub fn len(&self) -> usize {
        usize::from(self.own_length) + self.end - self.start
    }
}

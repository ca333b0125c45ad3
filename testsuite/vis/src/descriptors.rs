//! A program's descriptors and buffers, in one region that it has registered.
//!
//! What you may rely on: descriptors have places of their own, apart from the buffers.

use alloc::vec::Vec;

use musubi_vipl::engine::{LocalPlace, MemoryHandle, RemotePlace};

use crate::part::Part;
use crate::{Failure, ensure, have};
use musubi_vipl::over::NicNode;

/// Bytes of the region.
pub(crate) const BYTES: usize = 64 << 10;
/// Bytes of a descriptor's place: room for a control segment and [`SEGMENTS_MAX`] others.
const PLACE_BYTES: usize = 256;
/// Places of descriptors, at the region's beginning.
pub(crate) const PLACES: usize = 64;
/// Segments of a descriptor, the address segment among them.
pub(crate) const SEGMENTS_MAX: usize = 14;
/// Where buffers begin: what goes out, and what comes in.
pub(crate) const OUT: usize = PLACES * PLACE_BYTES;
pub(crate) const INTO: usize = OUT + BUFFER_BYTES;
/// Bytes of each buffer.
pub(crate) const BUFFER_BYTES: usize = (BYTES - OUT) / 2;

/// What a descriptor asks for, as its control field has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asks {
    Message,
    Write(RemotePlace),
    Read(RemotePlace),
}

/// The control field's bit for immediate data.
const IMMEDIATE: u16 = 4;

/// A descriptor as it is to be written.
#[derive(Clone, Debug)]
pub(crate) struct Written {
    pub(crate) asks: Asks,
    pub(crate) immediate: Option<u32>,
    /// Offset in the region, and bytes.
    pub(crate) segments: Vec<(usize, usize)>,
}

impl Written {
    /// A message, or a receive, of one segment.
    pub(crate) fn message(offset: usize, bytes: usize) -> Written {
        Written { asks: Asks::Message, immediate: None, segments: alloc::vec![(offset, bytes)] }
    }

    /// Without data: only what is beside them.
    pub(crate) fn signal(immediate: u32) -> Written {
        Written { asks: Asks::Message, immediate: Some(immediate), segments: Vec::new() }
    }

    /// The bytes of it, in a region that begins at `base` under this handle.
    fn bytes(&self, base: u64, handle: MemoryHandle) -> Vec<u8> {
        let (operation, remote) = match self.asks {
            Asks::Message => (0, None),
            Asks::Write(place) => (1, Some(place)),
            Asks::Read(place) => (2, Some(place)),
        };
        let remote = remote.map(|place| (place.address, place.handle, 0));
        let own = self.segments.iter().map(|(offset, bytes)| (base + *offset as u64, handle, *bytes as u32));
        let segments: Vec<(u64, MemoryHandle, u32)> = remote.into_iter().chain(own).collect();
        let control = operation | if self.immediate.is_some() { IMMEDIATE } else { 0 };
        let length: usize = self.segments.iter().map(|(_, bytes)| bytes).sum();
        let mut written = alloc::vec![0; 12];
        written.extend((segments.len() as u16).to_le_bytes());
        written.extend(u16::to_le_bytes(control));
        written.extend([0; 4]);
        written.extend(self.immediate.unwrap_or(0).to_le_bytes());
        written.extend((length as u32).to_le_bytes());
        written.extend([0; 4]);
        for (address, handle, bytes) in segments {
            written.extend(address.to_le_bytes());
            written.extend(handle.0.to_le_bytes());
            written.extend(bytes.to_le_bytes());
        }
        written
    }
}

/// A descriptor that has completed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Done {
    /// Its place.
    pub(crate) place: usize,
    pub(crate) status: u32,
    pub(crate) bytes: u32,
    pub(crate) immediate: u32,
}

impl<R: NicNode> Part<'_, R> {
    /// The bytes of the region from an offset on.
    pub(crate) fn local(&self, offset: usize, bytes: usize) -> LocalPlace {
        let (address, handle) = self.region;
        LocalPlace { address: address + offset as u64, handle, bytes: bytes as u32 }
    }

    /// Copies bytes into the region.
    pub(crate) fn put(&self, offset: usize, bytes: &[u8]) -> Result<(), Failure> {
        self.put_at(self.local(offset, bytes.len()), bytes)
    }

    /// Bytes of the region.
    pub(crate) fn get(&self, offset: usize, bytes: usize) -> Result<Vec<u8>, Failure> {
        self.get_at(self.local(offset, bytes))
    }

    pub(crate) fn put_at(&self, place: LocalPlace, bytes: &[u8]) -> Result<(), Failure> {
        let is_put = have!(self.nic().with(|nic| Ok(nic.memory().copy_in(place, bytes))), "the NIC is open");
        ensure!(is_put, "the place is registered");
        Ok(())
    }

    pub(crate) fn get_at(&self, place: LocalPlace) -> Result<Vec<u8>, Failure> {
        let mut bytes = Vec::new();
        let is_read = have!(self.nic().with(|nic| Ok(nic.memory().copy_out(place, &mut bytes))), "the NIC is open");
        ensure!(is_read, "the place is registered");
        Ok(bytes)
    }

    /// Writes a descriptor into a place; gives its address.
    pub(crate) fn write(&self, place: usize, descriptor: &Written) -> Result<u64, Failure> {
        ensure!(place < PLACES && descriptor.segments.len() < SEGMENTS_MAX, "the case's descriptors have places");
        let (base, handle) = self.region;
        self.put(place * PLACE_BYTES, &descriptor.bytes(base, handle))?;
        Ok(base + (place * PLACE_BYTES) as u64)
    }

    /// What the completed descriptor at an address says.
    pub(crate) fn completed(&self, address: u64) -> Result<Done, Failure> {
        let offset = (address - self.region.0) as usize;
        let control = self.get(offset, 32)?;
        let word = |at: usize| control[at..].first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes));
        Ok(Done { place: offset / PLACE_BYTES, status: word(28), bytes: word(24), immediate: word(20) })
    }
}

//! Memory that is registered and has an owner.
//!
//! What you may rely on: a [`OwnRegion`] that is in hand is nobody else's: no NIC and no peer touches it. While a descriptor with it
//! is posted the region is not in hand, so it can be neither touched nor freed. A [`SharedRegion`] is what peers may touch at any
//! moment; so it is only copied in and out. Dropping either takes the registration back first.
//!
//! How it works: posting moves the bytes into the NIC's table of memory, a completion moves them out again: one word, no
//! copy. What a peer is told of a shared region is a [`RemoteRegion`], which is checked where the memory is, at each access.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use core::ops::{Deref, DerefMut, Range};

use super::failure::ViFailure;
use super::nic::NicCore;
use crate::engine::{LocalPlace, MemoryAttributes, MemoryHandle, RemotePlace};
use crate::memory::{Lent, Lines};
use crate::over::NicNode;

/// Registered memory of this program's own, for messages and for the near side of RDMA.
pub struct OwnRegion<R: NicNode> {
    nic: Arc<NicCore<R>>,
    /// None once it is lent, or not registered any more.
    lent: Option<Box<Lent>>,
}

impl<R: NicNode> OwnRegion<R> {
    pub(super) fn register(nic: &Arc<NicCore<R>>, bytes: Vec<u8>) -> Result<OwnRegion<R>, ViFailure> {
        let attributes = MemoryAttributes { tag: nic.tag, remote_write: false, remote_read: false };
        let address = bytes.as_ptr().addr() as u64;
        let handle = nic.with(|state, _| state.permit(address, bytes.len() as u64, attributes))??;
        Ok(OwnRegion::of_lent(nic, Box::new(Lent { handle, bytes })))
    }

    /// Takes the registration back and gives the memory.
    pub fn into_vec(mut self) -> Vec<u8> {
        self.deregister().map(|lent| lent.bytes).unwrap_or_default()
    }

    #[inline]
    pub(super) fn is_of(&self, nic: &Arc<NicCore<R>>) -> bool {
        Arc::ptr_eq(&self.nic, nic)
    }

    /// Parts with the bytes: there are some, in every region that a program has in hand.
    #[inline]
    pub(super) fn lend(mut self) -> Option<Box<Lent>> {
        self.lent.take()
    }

    /// The region whose bytes came back, if they did.
    pub(super) fn again(nic: &Arc<NicCore<R>>, lent: Option<Box<Lent>>) -> OwnRegion<R> {
        OwnRegion { nic: Arc::clone(nic), lent }
    }

    /// The region whose bytes came back.
    #[inline]
    pub(super) fn of_lent(nic: &Arc<NicCore<R>>, lent: Box<Lent>) -> OwnRegion<R> {
        OwnRegion { nic: Arc::clone(nic), lent: Some(lent) }
    }

    fn deregister(&mut self) -> Option<Box<Lent>> {
        let lent = self.lent.take()?;
        let address = lent.bytes.as_ptr().addr() as u64;
        // Once the NIC has ended there is nothing to take back.
        let _ = self.nic.aside(|state, _| state.deregister(address, lent.handle));
        Some(lent)
    }
}

impl<R: NicNode> Drop for OwnRegion<R> {
    fn drop(&mut self) {
        drop(self.deregister());
    }
}

impl<R: NicNode> Deref for OwnRegion<R> {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        self.lent.as_ref().map_or(&[], |lent| &lent.bytes)
    }
}

impl<R: NicNode> DerefMut for OwnRegion<R> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8] {
        self.lent.as_mut().map_or(&mut [], |lent| &mut lent.bytes)
    }
}

impl<R: NicNode> fmt::Debug for OwnRegion<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OwnRegion").field("bytes", &self.len()).finish_non_exhaustive()
    }
}

/// What peers may do with a [`SharedRegion`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Permission {
    /// Write it, through VIs that permit that too.
    pub write: bool,
    /// Read it, likewise.
    pub read: bool,
}

/// Registered memory that peers may write or read whenever they like.
pub struct SharedRegion<R: NicNode> {
    nic: Arc<NicCore<R>>,
    address: u64,
    handle: MemoryHandle,
    bytes: usize,
}

impl<R: NicNode> SharedRegion<R> {
    pub(super) fn register(
        nic: &Arc<NicCore<R>>,
        bytes: usize,
        permission: Permission,
    ) -> Result<SharedRegion<R>, ViFailure> {
        let attributes =
            MemoryAttributes { tag: nic.tag, remote_write: permission.write, remote_read: permission.read };
        let lines = Lines::zeroed(bytes);
        let (address, handle) = nic.with(|state, _| state.register_own(lines, attributes))??;
        Ok(SharedRegion { nic: Arc::clone(nic), address, handle, bytes })
    }

    /// Bytes of it.
    pub fn len(&self) -> usize {
        self.bytes
    }

    /// Whether it has none: never so.
    pub fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// What a peer must know to use it: to be sent to it in any way.
    pub fn remote(&self) -> RemoteRegion {
        RemoteRegion { address: self.address, handle: self.handle, bytes: self.bytes as u64 }
    }

    /// Copies bytes from `at` on, once everything that has come is taken in. A write of a peer that is larger than one piece
    /// may be there in part.
    ///
    /// # Errors
    /// [`ViFailure::Invalid`] if not all of them are in the region; [`ViFailure::Closed`].
    pub fn read(&self, at: usize, into: &mut [u8]) -> Result<(), ViFailure> {
        let place = self.place(at, into.len())?;
        let copy = |bytes: &[u8]| into.copy_from_slice(bytes);
        let copied = self.nic.node.with_arrivals(|state, _| state.memory().with_posted(place, copy))?;
        copied.ok_or(ViFailure::Invalid)
    }

    /// Copies bytes to `at`.
    ///
    /// # Errors
    /// As [`SharedRegion::read`].
    pub fn write(&self, at: usize, from: &[u8]) -> Result<(), ViFailure> {
        let place = self.place(at, from.len())?;
        let is_written = self.nic.with(|state, _| state.memory().copy_in(place, from))?;
        if is_written { Ok(()) } else { Err(ViFailure::Invalid) }
    }

    fn place(&self, at: usize, bytes: usize) -> Result<LocalPlace, ViFailure> {
        let end = at.checked_add(bytes).filter(|end| *end <= self.bytes);
        let length = u32::try_from(bytes).ok().filter(|_| end.is_some()).ok_or(ViFailure::Invalid)?;
        Ok(LocalPlace { address: self.address + at as u64, handle: self.handle, bytes: length })
    }
}

impl<R: NicNode> Drop for SharedRegion<R> {
    fn drop(&mut self) {
        let (address, handle) = (self.address, self.handle);
        // As of a region.
        let _ = self.nic.aside(|state, _| state.deregister(address, handle));
    }
}

impl<R: NicNode> fmt::Debug for SharedRegion<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedRegion").field("remote", &self.remote()).finish_non_exhaustive()
    }
}

/// A shared region of a peer, or a part of one: where RDMA goes to or comes from.
///
/// It is what the peer claims. The peer's NIC checks each access; one that it refuses changes nothing there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RemoteRegion {
    address: u64,
    handle: MemoryHandle,
    bytes: u64,
}

impl RemoteRegion {
    /// Bytes of [`RemoteRegion::to_bytes`].
    pub const BYTES: usize = 20;

    /// How it is sent: address, handle and length, little-endian.
    pub fn to_bytes(&self) -> [u8; RemoteRegion::BYTES] {
        let mut bytes = [0; RemoteRegion::BYTES];
        bytes[..8].copy_from_slice(&self.address.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.handle.0.to_le_bytes());
        bytes[12..].copy_from_slice(&self.bytes.to_le_bytes());
        bytes
    }

    /// What was sent so; the first bytes count. `None` if they are too few.
    pub fn from_bytes(bytes: &[u8]) -> Option<RemoteRegion> {
        let (address, rest) = bytes.split_first_chunk()?;
        let (handle, rest) = rest.split_first_chunk()?;
        let (length, _) = rest.split_first_chunk()?;
        Some(RemoteRegion {
            address: u64::from_le_bytes(*address),
            handle: MemoryHandle(u32::from_le_bytes(*handle)),
            bytes: u64::from_le_bytes(*length),
        })
    }

    /// Bytes of it.
    pub fn len(&self) -> u64 {
        self.bytes
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// A part of it; `None` if that is not within it.
    pub fn part(&self, range: Range<u64>) -> Option<RemoteRegion> {
        let bytes = range.end.checked_sub(range.start).filter(|_| range.end <= self.bytes)?;
        Some(RemoteRegion { address: self.address.checked_add(range.start)?, bytes, ..*self })
    }

    pub(super) fn place(&self) -> RemotePlace {
        RemotePlace { address: self.address, handle: self.handle }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_remote_region_is_read_back_and_cut_within_its_bounds() {
        let region = RemoteRegion { address: 0x0102_0304_0506_0708, handle: MemoryHandle(77), bytes: 100 };
        let mut sent = region.to_bytes().to_vec();
        sent.push(9);
        assert_eq!(RemoteRegion::from_bytes(&sent), Some(region));
        assert_eq!(RemoteRegion::from_bytes(&sent[..RemoteRegion::BYTES - 1]), None);
        assert_eq!(region.part(0..100), Some(region));
        let part = region.part(10..20).unwrap();
        assert_eq!((part.address, part.len()), (region.address + 10, 10));
        assert_eq!(part.part(5..10).unwrap().address, region.address + 15);
        assert_eq!((region.part(0..101), region.part(101..101)), (None, None));
        let backwards = Range { start: 6, end: 5 };
        assert_eq!(region.part(backwards), None);
        let last = RemoteRegion { address: u64::MAX, ..region };
        assert_eq!(last.part(1..2), None);
    }
}

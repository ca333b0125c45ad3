//! Protection tags and registered regions of one opened NIC: who may touch which bytes.
//!
//! What you may rely on: a check takes a constant number of steps and is made by this side, of what is registered at that
//! moment, whoever asks; a handle is looked up, never followed, so one that was given up, is another NIC's or made up reaches
//! no memory that is not registered here. It is refused unless it happens to be one in use: places are used again in turn, and a
//! place's handles come again after 4,095 registrations of it; NICs of one process count from different beginnings. Bounds
//! are exact to the byte, and no address that a peer names can overflow them.
//!
//! How it works: a table of regions with a free list. A handle is 32 bits, as it stands in descriptors and crosses the wire:
//! place and how often the place was used. Regions may overlap; each registration has a handle of its own. A descriptor
//! refers to regions by handle, so one whose region is given up while it is posted completes with a protection error instead
//! of keeping the region.
//!
//! What it does not do: pin pages, map memory, or know which addresses are the program's: who registers for C says so.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use super::attributes::{Limits, MemoryAttributes};

const PLACE_BITS: u32 = 20;
const PLACE_MASK: u32 = (1 << PLACE_BITS) - 1;
const USE_MASK: u32 = u32::MAX >> PLACE_BITS;
/// Odd, and spreads small numbers over the uses.
const NICS_APART: u32 = 0x9e5;

/// `VIP_MEM_HANDLE`: a registered region.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct MemoryHandle(pub u32);

impl MemoryHandle {
    /// Never a region's.
    pub const NONE: MemoryHandle = MemoryHandle(0);

    /// The place in tables of regions that it names; none for [`MemoryHandle::NONE`].
    #[inline]
    pub(crate) const fn place(self) -> Option<usize> {
        match self.0 & PLACE_MASK {
            0 => None,
            place => Some(place as usize - 1),
        }
    }
}

/// A protection tag of one opened NIC; 0 is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct TagHandle(pub u32);

/// Bytes of a peer's memory: `VIP_ADDRESS_SEGMENT`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RemotePlace {
    /// First byte, as the peer counts.
    pub address: u64,
    /// The peer's region.
    pub handle: MemoryHandle,
}

/// What is to be done with bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// By a VI of this side, for a message of its own.
    Local,
    /// Written by its peer.
    RemoteWrite,
    /// Read by its peer.
    RemoteRead,
}

/// The bytes are not the VI's to touch so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotPermitted;

/// Why a tag or region is not made, changed or given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RegistrationError {
    /// `VIP_INVALID_PARAMETER`: no such region, another address than it was registered with, no bytes.
    Parameter,
    /// `VIP_INVALID_PTAG`: no such tag.
    Tag,
    /// `VIP_ERROR_RESOURCE`: a limit is reached, or the tag is in use.
    Resource,
}

#[derive(Clone, Copy, Debug)]
struct Registered {
    address: u64,
    bytes: u64,
    attributes: MemoryAttributes,
}

#[derive(Clone, Copy, Debug)]
struct RegisteredPlace {
    uses: u32,
    region: Option<Registered>,
}

#[derive(Clone, Copy, Debug, Default)]
struct TagPlace {
    uses: u32,
    taken: bool,
    /// Regions and VIs that have it.
    users: u32,
}

/// All of one opened NIC.
#[derive(Debug)]
pub struct Protection {
    regions: Vec<RegisteredPlace>,
    /// Places that were given up, the longest unused first.
    free: VecDeque<u32>,
    /// How often places count as used that never were.
    uses: u32,
    tags: Vec<TagPlace>,
    count: u32,
    registered_bytes: u64,
    limits: Limits,
}

impl Protection {
    /// No tags and no regions, and at most as many as the limits say. `nic` is a number that no other NIC of the process has:
    /// handles of one seldom fit another.
    pub fn new(limits: &Limits, nic: u32) -> Protection {
        Protection {
            regions: Vec::new(),
            free: VecDeque::new(),
            uses: nic.wrapping_mul(NICS_APART) & USE_MASK,
            tags: Vec::new(),
            count: 0,
            registered_bytes: 0,
            limits: Limits { regions: limits.regions.min(PLACE_MASK), tags: limits.tags.min(PLACE_MASK), ..*limits },
        }
    }

    /// `VipCreatePtag`.
    ///
    /// # Errors
    /// [`RegistrationError::Resource`].
    pub fn create_tag(&mut self) -> Result<TagHandle, RegistrationError> {
        let index = match self.tags.iter().position(|place| !place.taken) {
            Some(index) => index,
            None if self.tags.len() >= self.limits.tags as usize => return Err(RegistrationError::Resource),
            None => {
                self.tags.push(TagPlace { uses: self.uses, ..TagPlace::default() });
                self.tags.len() - 1
            }
        };
        let place = &mut self.tags[index];
        *place = TagPlace { uses: (place.uses + 1) & USE_MASK, taken: true, users: 0 };
        Ok(TagHandle(place.uses << PLACE_BITS | (index as u32 + 1)))
    }

    /// `VipDestroyPtag`.
    ///
    /// # Errors
    /// [`RegistrationError::Tag`]; [`RegistrationError::Resource`] while a region or VI has it.
    pub fn destroy_tag(&mut self, tag: TagHandle) -> Result<(), RegistrationError> {
        let place = self.tag(tag)?;
        if place.users > 0 {
            return Err(RegistrationError::Resource);
        }
        place.taken = false;
        Ok(())
    }

    /// A VI gets this tag; until [`Protection::leave_tag`] it is in use.
    ///
    /// # Errors
    /// [`RegistrationError::Tag`].
    pub fn use_tag(&mut self, tag: TagHandle) -> Result<(), RegistrationError> {
        self.tag(tag)?.users += 1;
        Ok(())
    }

    /// Takes [`Protection::use_tag`] back.
    pub fn leave_tag(&mut self, tag: TagHandle) {
        if let Ok(place) = self.tag(tag) {
            place.users = place.users.saturating_sub(1);
        }
    }

    /// `VipRegisterMem`.
    ///
    /// # Errors
    /// Each [`RegistrationError`]; nothing was changed.
    pub fn register(
        &mut self,
        address: u64,
        bytes: u64,
        attributes: MemoryAttributes,
    ) -> Result<MemoryHandle, RegistrationError> {
        if bytes == 0 || address == 0 || address.checked_add(bytes - 1).is_none() {
            return Err(RegistrationError::Parameter);
        }
        self.tag(attributes.tag)?;
        let all_bytes = self.registered_bytes.checked_add(bytes).ok_or(RegistrationError::Resource)?;
        let limits = &self.limits;
        if self.count >= limits.regions || bytes > limits.region_bytes || all_bytes > limits.registered_bytes {
            return Err(RegistrationError::Resource);
        }
        self.use_tag(attributes.tag)?;
        (self.count, self.registered_bytes) = (self.count + 1, all_bytes);
        let index = self.free.pop_front().unwrap_or_else(|| {
            self.regions.push(RegisteredPlace { uses: self.uses, region: None });
            self.regions.len() as u32 - 1
        });
        let place = &mut self.regions[index as usize];
        place.uses = (place.uses + 1) & USE_MASK;
        place.region = Some(Registered { address, bytes, attributes });
        Ok(MemoryHandle(place.uses << PLACE_BITS | (index + 1)))
    }

    /// `VipDeregisterMem`.
    ///
    /// # Errors
    /// [`RegistrationError::Parameter`].
    pub fn deregister(&mut self, address: u64, handle: MemoryHandle) -> Result<(), RegistrationError> {
        let region = *self.registered(address, handle)?;
        let index = (handle.0 & PLACE_MASK) - 1;
        self.regions[index as usize].region = None;
        self.free.push_back(index);
        self.count -= 1;
        self.registered_bytes -= region.bytes;
        self.leave_tag(region.attributes.tag);
        Ok(())
    }

    /// `VipQueryMem`.
    ///
    /// # Errors
    /// [`RegistrationError::Parameter`].
    pub fn attributes(&self, address: u64, handle: MemoryHandle) -> Result<MemoryAttributes, RegistrationError> {
        let region = self.region(handle).filter(|region| region.address == address);
        region.map(|region| region.attributes).ok_or(RegistrationError::Parameter)
    }

    /// `VipSetMemAttributes`.
    ///
    /// # Errors
    /// [`RegistrationError::Parameter`], [`RegistrationError::Tag`]; nothing was changed.
    pub fn set_attributes(
        &mut self,
        address: u64,
        handle: MemoryHandle,
        attributes: MemoryAttributes,
    ) -> Result<(), RegistrationError> {
        let former = self.attributes(address, handle)?;
        self.use_tag(attributes.tag)?;
        self.registered(address, handle)?.attributes = attributes;
        self.leave_tag(former.tag);
        Ok(())
    }

    /// Whether a VI of this tag may have so many bytes touched so. No bytes may always be touched.
    ///
    /// # Errors
    /// [`NotPermitted`].
    #[inline]
    pub fn check(
        &self,
        tag: TagHandle,
        access: Access,
        handle: MemoryHandle,
        address: u64,
        bytes: u32,
    ) -> Result<(), NotPermitted> {
        if bytes == 0 {
            return Ok(());
        }
        let region = self.region(handle).ok_or(NotPermitted)?;
        let offset = address.checked_sub(region.address).ok_or(NotPermitted)?;
        let left = region.bytes.checked_sub(offset).ok_or(NotPermitted)?;
        let permitted = match access {
            Access::Local => true,
            Access::RemoteWrite => region.attributes.remote_write,
            Access::RemoteRead => region.attributes.remote_read,
        };
        let fits = u64::from(bytes) <= left && permitted && region.attributes.tag == tag;
        if fits { Ok(()) } else { Err(NotPermitted) }
    }

    #[inline]
    fn region(&self, handle: MemoryHandle) -> Option<&Registered> {
        let place = self.regions.get(((handle.0 & PLACE_MASK) as usize).wrapping_sub(1))?;
        place.region.as_ref().filter(|_| handle.0 >> PLACE_BITS == place.uses)
    }

    fn registered(&mut self, address: u64, handle: MemoryHandle) -> Result<&mut Registered, RegistrationError> {
        let index = ((handle.0 & PLACE_MASK) as usize).wrapping_sub(1);
        let place = self.regions.get_mut(index).filter(|place| handle.0 >> PLACE_BITS == place.uses);
        let region = place.and_then(|place| place.region.as_mut()).filter(|region| region.address == address);
        region.ok_or(RegistrationError::Parameter)
    }

    fn tag(&mut self, tag: TagHandle) -> Result<&mut TagPlace, RegistrationError> {
        let place = self.tags.get_mut(((tag.0 & PLACE_MASK) as usize).wrapping_sub(1));
        place.filter(|place| place.taken && tag.0 >> PLACE_BITS == place.uses).ok_or(RegistrationError::Tag)
    }
}

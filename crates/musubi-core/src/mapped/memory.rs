//! The memory that all participants map, and the private memory that a participant needs besides.
//!
//! What you may rely on: the own slot is written through the view for it only, peers' slots are read through theirs
//! only, so a port may map the two differently and have the processor's protection hold each participant to its slot.
//!
//! How it works: offsets are [`crate::layout`]'s; no length or place is ever taken from the memory itself.

use core::cell::UnsafeCell;
use core::marker::PhantomData;

use crate::layout;
use crate::plan::Plan;
use crate::words::{OwnWords, PeerWords};

/// Where a participant has the mapped memory.
#[derive(Clone, Copy, Debug)]
pub struct Memory<'m> {
    own_slot: *mut u32,
    all: *const u32,
    segments: *mut u32,
    lifetime: PhantomData<&'m UnsafeCell<u32>>,
}

// SAFETY: the addresses are those of memory that is shared between processors anyhow; all access is atomic, volatile or
// governed by the ownership of a block.
unsafe impl Send for Memory<'_> {}
// SAFETY: as above.
unsafe impl Sync for Memory<'_> {}

impl<'m> Memory<'m> {
    /// All of it at one address, which this program may write.
    ///
    /// # Safety
    /// For all of `'m`, `base` is aligned to 64, better to a page, and valid for reads and writes of
    /// [`layout::mapped_bytes`] bytes of the plan; nothing in this program writes the slot of `participant` but the one
    /// [`super::Participant`] that attaches with it, and no reference covers any of it.
    pub unsafe fn whole(base: *mut u8, plan: &Plan<'_>, participant: u16) -> Option<Memory<'m>> {
        let own = usize::try_from(layout::slot_offset(plan, participant)?).ok()?;
        let segments = usize::try_from(layout::segment_offset(plan, 0)?).ok()?;
        let (own, segments) = (base.wrapping_add(own), base.wrapping_add(segments));
        // SAFETY: the parts lie inside the whole, for which the caller vouches.
        Some(unsafe { Self::parts(own, base, segments) })
    }

    /// The own slot and the segments at addresses that may be written, and all of it (the own slot included) at one
    /// that need only be readable.
    ///
    /// # Safety
    /// As for [`Memory::whole`], with `own_slot` valid for reads and writes of [`layout::slot_bytes`], `segments` of
    /// what lies from [`layout::segment_offset`] of channel 0 on, and `all` for reads of everything. `segments` is not
    /// used if the plan has no SMEM channel.
    pub const unsafe fn parts(own_slot: *mut u8, all: *const u8, segments: *mut u8) -> Memory<'m> {
        Memory { own_slot: own_slot.cast(), all: all.cast(), segments: segments.cast(), lifetime: PhantomData }
    }

    /// Words of our own slot; `from` and `words` in words from its begin.
    pub(super) fn own(&self, from: u32, words: u32) -> OwnWords<'m> {
        // SAFETY: the callers stay inside the slot, whose root and banks have the lengths of `layout`; the maker vouches
        // for the memory and for us being the only writer.
        unsafe { OwnWords::new(self.own_slot.wrapping_add(from as usize), words) }
    }

    /// Words of anybody's slot; `from_bytes` from the begin of the memory.
    pub(super) fn peer(&self, from_bytes: u64, words: u32) -> PeerWords<'m> {
        let base = self.all.wrapping_add((from_bytes / 4) as usize);
        // SAFETY: the callers take places and lengths from `layout`, so all lies inside what the maker vouches for.
        unsafe { PeerWords::new(base, words) }
    }

    /// Words of a segment, which all its members write; `from_bytes` from the begin of the segments.
    pub(super) fn segment(&self, from_bytes: u64, words: u32) -> OwnWords<'m> {
        let base = self.segments.wrapping_add((from_bytes / 4) as usize);
        // SAFETY: as for `peer`; stores through it are atomic or under the channel's lock.
        unsafe { OwnWords::new(base, words) }
    }
}

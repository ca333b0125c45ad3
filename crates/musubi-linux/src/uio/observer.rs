//! Looking at a chip's shared memory from Linux, read-only.
//!
//! What you may rely on: an observer writes nothing and takes no slot. The sections of incarnations that have ended can
//! be read as long as their banks have not been taken anew.

use musubi_core::layout::{self, Part, header, root};
use musubi_core::plan::Plan;
use musubi_core::words::PeerWords;

use super::Device;
use crate::error::Error;
use crate::os::mapping::Mapping;

/// A view of the shared memory.
#[derive(Debug)]
pub struct Observer {
    plan: &'static Plan<'static>,
    mapping: Mapping,
}

impl Observer {
    /// Maps all of the memory that a device has, to read it.
    ///
    /// # Errors
    /// What the kernel refused.
    pub fn new(plan: &'static Plan<'static>, device: &Device) -> Result<Observer, Error> {
        Ok(Observer { plan, mapping: device.map_all()? })
    }

    /// The incarnation that a participant's root names; 0: none yet.
    pub fn epoch(&self, participant: u16) -> u32 {
        let slot = layout::slot_offset(self.plan, participant);
        let root = slot.and_then(|slot| self.words(slot, root::WORDS));
        root.filter(|root| root.get(root::MAGIC) == layout::ROOT_MAGIC).map_or(0, |root| root.get(root::EPOCH))
    }

    /// A part of the section of a participant's incarnation; `None` if that section is not there (any more).
    pub fn part(&self, participant: u16, epoch: u32, part: Part) -> Option<PeerWords<'_>> {
        let domain = self.plan.domain_of(participant)?;
        let section = layout::slot_offset(self.plan, participant)? + layout::bank_offset(self.plan, domain, epoch)?;
        let head = self.words(section, header::WORDS)?;
        let is_it = head.get(header::MAGIC) == layout::MAGIC && head.get(header::EPOCH) == epoch;
        let mut found = None;
        layout::walk(self.plan, domain, |at, offset, bytes| {
            if at == part {
                found = Some((offset, bytes));
            }
        })?;
        let (offset, bytes) = found.filter(|_| is_it)?;
        self.words(section + u64::from(offset), bytes / 4)
    }

    fn words(&self, offset: u64, words: u32) -> Option<PeerWords<'_>> {
        let begin = usize::try_from(offset).ok()?;
        let end = begin.checked_add(words as usize * 4)?;
        let first = self.mapping.address().wrapping_add(begin).cast_const().cast::<u32>();
        // SAFETY: the words lie inside the mapping, which lives as long as we do and stays readable; others store there
        // at any time, which is what the view is for.
        (end <= self.mapping.bytes()).then(|| unsafe { PeerWords::new(first, words) })
    }
}

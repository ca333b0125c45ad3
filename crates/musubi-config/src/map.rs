//! Where everything lies in the shared memory: the participants' slots or sections, then the SMEM channels' segments.
//!
//! What you may rely on: regions are in this order, each begins on a page, none overlaps another; checks and generated
//! files use this map. Where a region lies in mapped memory is what ports with fixed addresses go by: the core's
//! [`layout::slot_offset`] and [`layout::segment_offset`], which this map asks and does not compute again.
//!
//! How it works: with an address map, participants have slots, in which each incarnation takes one of two banks. Without
//! one, each region is a memory object of its own; the map then shows lengths only, one after the other.

use musubi_core::layout;

use crate::Description;

/// The memory map of a description.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryMap {
    base: Option<u64>,
    regions: Vec<Region>,
}

/// One region of a memory map.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Region {
    /// What lies there.
    pub content: Content,
    /// `domain.slot` of a section or slot, the channel's name of a segment.
    pub name: String,
    /// Offset from the map's begin, in bytes.
    pub offset: u64,
    /// Length in bytes, a multiple of the page size.
    pub bytes: u64,
}

/// What lies in a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// A participant's section, which only that participant writes.
    Section {
        /// Global number of the participant.
        participant: u16,
        /// Number of its domain.
        domain: u16,
        /// Its number within the domain.
        slot: u16,
    },
    /// A participant's root page and the two banks of its section, which only that participant writes.
    Slot {
        /// Global number of the participant.
        participant: u16,
        /// Number of its domain.
        domain: u16,
        /// Its number within the domain.
        slot: u16,
    },
    /// An SMEM channel's payload, which all members write.
    Segment {
        /// Number of the channel.
        smem: u16,
    },
}

impl MemoryMap {
    /// Lays a description out.
    pub fn of(description: &Description) -> MemoryMap {
        let mut map = MemoryMap { base: description.address_map.map(|map| map.base), regions: Vec::new() };
        description.with_plan(|plan| {
            let mut participant = 0;
            for (domain, entry) in (0u16..).zip(plan.domains) {
                for slot in 0..entry.participants {
                    let name = format!("{}.{slot}", entry.name);
                    if map.base.is_some() {
                        let place = (layout::slot_offset(plan, participant), layout::slot_bytes(plan, domain));
                        map.append(Content::Slot { participant, domain, slot }, name, place);
                    } else {
                        let bytes = layout::section_bytes(plan, domain).map(u64::from);
                        map.append(Content::Section { participant, domain, slot }, name, (None, bytes));
                    }
                    participant += 1;
                }
            }
            for (smem, entry) in (0u16..).zip(plan.smems) {
                let offset = map.base.and_then(|_| layout::segment_offset(plan, smem));
                let bytes = layout::segment_bytes(entry.bytes).map(u64::from);
                map.append(Content::Segment { smem }, entry.name.to_owned(), (offset, bytes));
            }
        });
        map
    }

    /// Appends a region at the core's place; without one it follows what is there. The lengths of a description were
    /// checked; what does not fit in one that was not is shown as the longest there is.
    fn append(&mut self, content: Content, name: String, (offset, bytes): (Option<u64>, Option<u64>)) {
        let offset = offset.unwrap_or_else(|| self.bytes());
        self.regions.push(Region { content, name, offset, bytes: bytes.unwrap_or(u64::from(u32::MAX)) });
    }

    /// First address, if the description fixes one.
    pub fn base(&self) -> Option<u64> {
        self.base
    }

    /// The regions, in ascending order.
    pub fn regions(&self) -> &[Region] {
        &self.regions
    }

    /// Length of all regions together, in bytes.
    pub fn bytes(&self) -> u64 {
        self.regions.last().map_or(0, |last| last.offset + last.bytes)
    }
}

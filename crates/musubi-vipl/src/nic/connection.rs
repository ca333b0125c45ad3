//! One connection of a VI, as frames know it.

use musubi_transport::Priority;

use crate::wire::{ViName, WriteHead};

/// The way to the other VI.
#[derive(Clone, Copy, Debug)]
pub(super) struct Connection {
    /// Place of the other node.
    pub(super) peer: u16,
    /// This end's name.
    pub(super) here: ViName,
    /// The other end's.
    pub(super) there: ViName,
    /// Of all its frames.
    pub(super) class: Priority,
    /// The head of a write of ours has gone, and not all of its parts.
    pub(super) has_begun_write: bool,
    /// The write of the other side that has begun.
    pub(super) write: Option<WriteHead>,
}

/// Names of ends: the VI's place, and how many connections the NIC had begun before.
#[derive(Debug)]
pub(super) struct Names {
    begun: u16,
}

impl Names {
    pub(super) fn new(incarnation: u32) -> Names {
        Names { begun: (incarnation >> 16) as u16 }
    }

    /// A new one for the VI in this place; never 0.
    pub(super) fn next(&mut self, place: u16) -> ViName {
        self.begun = self.begun.wrapping_add(1);
        ViName(u32::from(self.begun) << 16 | (u32::from(place) + 1))
    }
}

impl ViName {
    /// The place of the VI that has this name, if any has.
    #[inline]
    pub(super) fn place(self) -> Option<u16> {
        (self.0 as u16).checked_sub(1)
    }
}

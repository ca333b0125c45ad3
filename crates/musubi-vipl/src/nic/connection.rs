//! One connection of a VI, as frames know it.

use alloc::boxed::Box;

use musubi_transport::Priority;

use super::offers::TheirLease;
use crate::engine::LeaseWords;
use crate::wire::{ViName, WriteHead};

/// The way to the other VI.
#[derive(Debug)]
pub(super) struct Connection {
    /// Place of the other node.
    pub(super) peer: u16,
    /// This end's name.
    pub(super) here: ViName,
    /// The other end's.
    pub(super) there: ViName,
    /// Of all its frames.
    pub(super) class: Priority,
    /// Whether the other side bounds what it takes of that class.
    pub(super) is_bounded: bool,
    /// What is next waits for its credit, and was counted.
    pub(super) is_held: bool,
    /// The head of a write of ours has gone, and not all of its parts.
    pub(super) has_begun_write: bool,
    /// The write of the other side that has begun.
    pub(super) write: Option<WriteHead>,
    /// A part was offered, and the other side has not said since that it has a message.
    pub(super) has_offered: bool,
    /// Under which what this side offers stands.
    pub(super) lease: LeaseWords,
    /// What the other side's last offer stands under, once it has made one.
    pub(super) theirs: Option<Box<TheirLease>>,
}

impl Connection {
    /// One that has just been made.
    pub(super) fn new(peer: u16, (here, there): (ViName, ViName), class: Priority, lease: LeaseWords) -> Connection {
        let (write, theirs) = (None, None);
        let (has_begun_write, has_offered, is_bounded, is_held) = (false, false, false, false);
        Connection { peer, here, there, class, is_bounded, is_held, has_begun_write, write, has_offered, lease, theirs }
    }
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

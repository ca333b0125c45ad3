//! The links of a node by their peers.
//!
//! What you may rely on: a link is found in one step, and keeps its place for the node's life.
//!
//! How it works: a list, and beside it the place in that list by the node's index.

use std::ops::{Deref, DerefMut};

use super::link::Link;
use crate::NodeId;

const _: () = assert!(NodeId::COUNT < u16::MAX as usize, "a place fits into 16 bits");

/// All links: a slice, in the order in which they were made. A link's place in it never changes.
#[derive(Debug, Default)]
pub(super) struct LinkTable {
    links: Vec<Link>,
    /// By [`NodeId::index`]: where in `links`, plus one; 0 for none.
    places: Vec<u16>,
}

impl LinkTable {
    /// Where the link with a node is.
    pub(super) fn find(&self, peer: NodeId) -> Option<usize> {
        let place = *self.places.get(peer.index())?;
        usize::from(place).checked_sub(1)
    }

    /// One more; there is none with that node.
    pub(super) fn add(&mut self, link: Link) -> usize {
        let at = link.peer.index();
        self.links.push(link);
        if self.places.len() <= at {
            self.places.resize(at + 1, 0);
        }
        self.places[at] = self.links.len() as u16;
        self.links.len() - 1
    }
}

impl Deref for LinkTable {
    type Target = [Link];

    fn deref(&self) -> &[Link] {
        &self.links
    }
}

impl DerefMut for LinkTable {
    fn deref_mut(&mut self) -> &mut [Link] {
        &mut self.links
    }
}

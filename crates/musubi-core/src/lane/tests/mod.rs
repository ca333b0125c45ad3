//! Tests of the lanes: against a model, with hostile words, and (under loom) in every interleaving.

use std::vec;
use std::vec::Vec;

use super::*;
use crate::layout::LinkShape;
use crate::sync::AtomicU32;
use crate::words::OwnWords;
use crate::{Error, layout};

#[cfg(not(loom))]
mod behaviour;
#[cfg(not(loom))]
mod exact;
#[cfg(not(loom))]
mod meetings;
#[cfg(loom)]
mod models;

/// Fresh words; Miri would take seconds to make them one by one.
#[cfg(not(loom))]
fn zeroed(words: u32) -> Vec<AtomicU32> {
    let words = std::boxed::Box::<[AtomicU32]>::new_zeroed_slice(words as usize);
    // SAFETY: all bits zero are a valid `AtomicU32`.
    unsafe { words.assume_init() }.into_vec()
}

#[cfg(loom)]
fn zeroed(words: u32) -> Vec<AtomicU32> {
    (0..words).map(|_| AtomicU32::new(0)).collect()
}

/// The sections of both nodes.
struct Memory {
    sections: [Vec<AtomicU32>; 2],
    shape: LinkShape,
}

impl Memory {
    fn new(slots: u32, blocks: u32, block_bytes: u32) -> Memory {
        let shape = LinkShape { slots, blocks, block_bytes };
        let words = shape.section_bytes().unwrap() / 4;
        Memory { sections: [zeroed(words), zeroed(words)], shape }
    }

    /// The side of one node.
    fn side(&self, node: usize) -> (Link<'_>, Returns<'_>) {
        let (own, peer) = (&self.sections[node], &self.sections[1 - node]);
        Link::new(OwnWords::of(own), OwnWords::of(peer).as_peer(), self.shape).unwrap()
    }
}

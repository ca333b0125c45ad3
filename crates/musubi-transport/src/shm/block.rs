//! Payload that lies in the sender's memory.

use musubi_linux::node::Lent;

use crate::links;

/// A block of a peer's, in our hands until dropped.
#[derive(Debug)]
pub struct Block(pub(super) Lent);

impl links::Block for Block {
    fn len(&self) -> usize {
        self.0.len()
    }

    fn copy_to(&self, offset: usize, into: &mut [u8]) -> usize {
        self.0.copy_to(offset, into)
    }

    fn address(&self) -> *const u8 {
        self.0.address()
    }

    fn may_be_kept(&self) -> bool {
        self.0.may_be_kept()
    }
}

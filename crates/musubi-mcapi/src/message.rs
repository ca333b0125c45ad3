//! Messages in hand.

use alloc::vec;
use alloc::vec::Vec;

use crate::engine;
use crate::running::Running;

use crate::EndpointId;

/// A message that was received. Its memory goes back when it is dropped.
#[derive(Debug)]
pub struct Message<R: Running> {
    inner: engine::Message<R::Block>,
}

impl<R: Running> Message<R> {
    pub(crate) fn new(inner: engine::Message<R::Block>) -> Message<R> {
        Message { inner }
    }

    /// The endpoint that it was sent from.
    pub fn from(&self) -> EndpointId {
        self.inner.from
    }

    /// Its priority.
    pub fn priority(&self) -> u8 {
        self.inner.priority
    }

    /// Number of bytes.
    pub fn len(&self) -> usize {
        self.inner.payload.len()
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Copies as much as fits; gives the number of bytes.
    pub fn copy_to(&self, into: &mut [u8]) -> usize {
        self.inner.payload.copy_to(into)
    }

    /// A copy of all bytes.
    pub fn to_vec(&self) -> Vec<u8> {
        let mut bytes = vec![0; self.len()];
        self.copy_to(&mut bytes);
        bytes
    }
}

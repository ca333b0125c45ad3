//! Messages in hand.

use alloc::vec;
use alloc::vec::Vec;

use crate::engine;
use crate::running::Running;

use crate::EndpointId;

/// A message that was received. Its memory goes back when it is dropped.
///
/// ```
/// # use std::sync::Arc;
/// # use musubi_mcapi::{Deadline, Error, Node, Topology};
/// # fn main() -> Result<(), Error> {
/// # let mut system = Topology::single_machine();
/// # system.system = format!("doc-message-{}", std::process::id());
/// # let system = Arc::new(system);
/// let node = Node::initialize(&system, 0, 1)?;
/// let (from, inbox) = (node.create_endpoint(None)?, node.create_endpoint(Some(5))?);
/// from.send(&inbox, 1, b"urgent", Deadline::Forever)?;
/// let message = inbox.receive(Deadline::Forever)?;
/// let mut start = [0; 3];
/// assert_eq!(message.copy_to(&mut start), 3);
/// assert_eq!((&start, message.len(), message.priority()), (b"urg", 6, 1));
/// # Ok(())
/// # }
/// ```
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

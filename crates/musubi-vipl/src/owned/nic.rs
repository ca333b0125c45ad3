//! An opened NIC, from which everything else is made.
//!
//! What you may rely on: it stays open as long as anything made from it lives, so no VI, region or queue is ever without its NIC.
//! Clones are handles of the same.
//!
//! How it works: what is made from one [`Nic`] shares one protection tag: its VIs use its regions, and their peers its shared
//! regions. [`Nic::apart`] gives another tag on the same NIC.

use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use core::fmt;

use super::completion_queue::CompletionQueue;
use super::connecting::Listener;
use super::failure::ViFailure;
use super::region::{OwnRegion, Permission, SharedRegion};
use super::vi::{Idle, Vi, ViOptions};
use crate::address::{Address, NicNumber};
use crate::engine::TagHandle;
use crate::over::{NicNode, StateOf};

/// What all that is made from one [`Nic`] shares.
pub struct NicCore<R: NicNode> {
    pub(super) node: R,
    pub(super) tag: TagHandle,
    pub(super) number: NicNumber,
}

impl<R: NicNode> NicCore<R> {
    /// Does something with the NIC's state.
    #[inline]
    pub(super) fn with<T>(&self, by: impl FnOnce(&mut StateOf<R>, &mut R::Ways) -> T) -> Result<T, ViFailure> {
        Ok(self.node.with(by)?)
    }

    /// The same for something that is dropped.
    pub(super) fn aside<T>(&self, by: impl FnOnce(&mut StateOf<R>, &mut R::Ways) -> T) -> Result<T, ViFailure> {
        Ok(self.node.with_aside(by)?)
    }

    fn new(node: R) -> Result<Arc<NicCore<R>>, ViFailure> {
        let (tag, number) = node.with(|state, _| (state.create_tag(), state.number()))?;
        Ok(Arc::new(NicCore { node, tag: tag?, number }))
    }
}

impl<R: NicNode> Drop for NicCore<R> {
    fn drop(&mut self) {
        // All that had it has gone before.
        let _ = self.node.with_aside(|state, _| state.destroy_tag(self.tag));
    }
}

impl<R: NicNode> fmt::Debug for NicCore<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NicCore").field("number", &self.number).finish_non_exhaustive()
    }
}

/// An opened NIC.
pub struct Nic<R: NicNode> {
    core: Arc<NicCore<R>>,
}

impl<R: NicNode> Nic<R> {
    /// The NIC of a node that runs.
    ///
    /// # Errors
    /// [`ViFailure::Limit`] if it has as many tags as it may; [`ViFailure::Closed`].
    pub fn of(node: R) -> Result<Nic<R>, ViFailure> {
        Ok(Nic { core: NicCore::new(node)? })
    }

    /// The same NIC with a protection tag of its own: what is made from one `Nic` is of no use to what is made from another, nor
    /// to its peers.
    ///
    /// # Errors
    /// As [`Nic::of`].
    pub fn apart(&self) -> Result<Nic<R>, ViFailure> {
        Nic::of(self.core.node.clone())
    }

    /// Which NIC of the system this is.
    pub fn number(&self) -> NicNumber {
        self.core.number
    }

    /// What listens by a name at a NIC of the system.
    ///
    /// # Errors
    /// [`ViFailure::NobodyThere`] if the system has no NIC of that name; [`ViFailure::Invalid`] for a name of a listener that is longer
    /// than [`crate::address::DISCRIMINATOR_BYTES_MAX`].
    pub fn address(&self, nic: &str, listener: &[u8]) -> Result<Address, ViFailure> {
        let number = self.core.with(|state, _| state.directory().find(nic))?.ok_or(ViFailure::NobodyThere)?;
        Address::new(number, listener).ok_or(ViFailure::Invalid)
    }

    // ---- memory ----

    /// A region of so many zeroed bytes.
    ///
    /// # Errors
    /// [`ViFailure::Invalid`] for none; [`ViFailure::Limit`]; [`ViFailure::Closed`].
    pub fn region(&self, bytes: usize) -> Result<OwnRegion<R>, ViFailure> {
        self.register(vec![0; bytes])
    }

    /// Registers memory as it is, without a copy: a vector or a boxed slice. [`OwnRegion::into_vec`] gives it back.
    ///
    /// # Errors
    /// As [`Nic::region`]; the memory is freed.
    pub fn register(&self, bytes: impl Into<Vec<u8>>) -> Result<OwnRegion<R>, ViFailure> {
        OwnRegion::register(&self.core, bytes.into())
    }

    /// A region of so many zeroed bytes that peers of this `Nic`'s VIs may write or read.
    ///
    /// # Errors
    /// As [`Nic::region`].
    pub fn share(&self, bytes: usize, permission: Permission) -> Result<SharedRegion<R>, ViFailure> {
        SharedRegion::register(&self.core, bytes, permission)
    }

    // ---- VIs, queues, listeners ----

    /// A VI whose completions are taken from its own queues.
    ///
    /// # Errors
    /// [`ViFailure::Invalid`] or [`ViFailure::Mismatch`] for options that cannot be; [`ViFailure::Limit`]; [`ViFailure::Closed`].
    pub fn vi(&self, options: ViOptions) -> Result<Vi<Idle, R>, ViFailure> {
        Vi::create(&self.core, options, None, None)
    }

    /// A VI that tells of its completions in a completion queue: of its sends, its receives, or both.
    ///
    /// # Errors
    /// As [`Nic::vi`]; [`ViFailure::Invalid`] for a queue that was not made from this `Nic`.
    pub fn vi_telling(
        &self,
        options: ViOptions,
        sends: Option<&CompletionQueue<R>>,
        receives: Option<&CompletionQueue<R>>,
    ) -> Result<Vi<Idle, R>, ViFailure> {
        Vi::create(&self.core, options, sends, receives)
    }

    /// A queue in which completions of many VIs come together.
    ///
    /// # Errors
    /// [`ViFailure::Limit`]; [`ViFailure::Closed`].
    pub fn completion_queue(&self) -> Result<CompletionQueue<R>, ViFailure> {
        CompletionQueue::create(&self.core)
    }

    /// Listens by a name, until the listener is dropped.
    ///
    /// # Errors
    /// [`ViFailure::Invalid`] for a name that is longer than [`crate::address::DISCRIMINATOR_BYTES_MAX`]; [`ViFailure::Limit`];
    /// [`ViFailure::Closed`].
    pub fn listen(&self, name: &[u8]) -> Result<Listener<R>, ViFailure> {
        Listener::begin(&self.core, name)
    }
}

impl<R: NicNode> Clone for Nic<R> {
    fn clone(&self) -> Nic<R> {
        Nic { core: Arc::clone(&self.core) }
    }
}

impl<R: NicNode> fmt::Debug for Nic<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Nic").field("number", &self.core.number).finish_non_exhaustive()
    }
}

//! What a program makes, asks, changes and ends: tags, registered memory, completion queues, VIs.

use alloc::vec::Vec;

use musubi_transport::Priority;
use musubi_transport::links::Block;

use super::{NicState, QueueNumber, ViEntry, ViNumber, ViPicture, Weight};
use crate::engine::{
    CompletionQueue, CompletionSource, MemoryAttributes, MemoryHandle, Queue, TagHandle, Vi, ViAttributes,
};
use crate::error::ViError;
use crate::memory::{Lines, RegisteredMemory};

impl<B: Block> NicState<B> {
    // ---- tags and memory ----

    /// `VipCreatePtag`.
    ///
    /// # Errors
    /// [`ViError::Resource`].
    pub fn create_tag(&mut self) -> Result<TagHandle, ViError> {
        Ok(self.protection.create_tag()?)
    }

    /// `VipDestroyPtag`.
    ///
    /// # Errors
    /// [`ViError::Tag`]; [`ViError::Resource`] while a region or VI has it.
    pub fn destroy_tag(&mut self, tag: TagHandle) -> Result<(), ViError> {
        Ok(self.protection.destroy_tag(tag)?)
    }

    /// `VipRegisterMem`, first part: a handle for bytes that VIs of the attributes' tag may use, once somebody vouches for them by
    /// [`RegisteredMemory::enter`].
    ///
    /// # Errors
    /// [`ViError::Parameter`] for no bytes or bytes at no address, [`ViError::Tag`], [`ViError::Resource`].
    pub fn permit(&mut self, address: u64, bytes: u64, attributes: MemoryAttributes) -> Result<MemoryHandle, ViError> {
        Ok(self.protection.register(address, bytes, attributes)?)
    }

    /// Where who registers vouches for memory.
    pub fn memory(&mut self) -> &mut RegisteredMemory {
        &mut self.memory
    }

    /// Registers memory that this NIC owns from now on, until it is deregistered: where it lies, and its handle.
    ///
    /// # Errors
    /// As [`NicState::permit`].
    pub fn register_own(
        &mut self,
        mut lines: Lines,
        attributes: MemoryAttributes,
    ) -> Result<(u64, MemoryHandle), ViError> {
        let address = lines.address();
        let handle = self.permit(address, lines.bytes(), attributes)?;
        self.memory.adopt(handle, lines);
        Ok((address, handle))
    }

    /// `VipDeregisterMem`. Descriptors that name the region complete with an error in their turn.
    ///
    /// # Errors
    /// [`ViError::Parameter`].
    pub fn deregister(&mut self, address: u64, handle: MemoryHandle) -> Result<(), ViError> {
        self.protection.deregister(address, handle)?;
        self.memory.leave(handle);
        Ok(())
    }

    /// `VipQueryMem`.
    ///
    /// # Errors
    /// [`ViError::Parameter`].
    pub fn memory_attributes(&self, address: u64, handle: MemoryHandle) -> Result<MemoryAttributes, ViError> {
        Ok(self.protection.attributes(address, handle)?)
    }

    /// `VipSetMemAttributes`.
    ///
    /// # Errors
    /// [`ViError::Parameter`], [`ViError::Tag`].
    pub fn set_memory_attributes(
        &mut self,
        address: u64,
        handle: MemoryHandle,
        attributes: MemoryAttributes,
    ) -> Result<(), ViError> {
        Ok(self.protection.set_attributes(address, handle, attributes)?)
    }

    // ---- completion queues ----

    /// `VipCreateCQ`.
    ///
    /// # Errors
    /// [`ViError::Parameter`] for no entries; [`ViError::Resource`].
    pub fn create_queue(&mut self, entries: u32) -> Result<QueueNumber, ViError> {
        self.check_entries(entries)?;
        self.queues.insert(CompletionQueue::new(entries)).map(QueueNumber).ok_or(ViError::Resource)
    }

    /// `VipResizeCQ`.
    ///
    /// # Errors
    /// [`ViError::Parameter`] if there is no such queue, or for no entries; [`ViError::Resource`], also if more are in it.
    pub fn resize_queue(&mut self, queue: QueueNumber, entries: u32) -> Result<(), ViError> {
        let queue = self.queues.get_mut(queue.0).ok_or(ViError::Parameter)?;
        if entries == 0 {
            return Err(ViError::Parameter);
        }
        if entries > self.limits.completion_entries {
            return Err(ViError::Resource);
        }
        queue.resize(entries).map_err(|_| ViError::Resource)
    }

    /// `VipDestroyCQ`.
    ///
    /// # Errors
    /// [`ViError::Parameter`] if there is no such queue; [`ViError::Resource`] while a VI is bound to it.
    pub fn destroy_queue(&mut self, queue: QueueNumber) -> Result<(), ViError> {
        if self.queues.get(queue.0).ok_or(ViError::Parameter)?.is_bound() {
            return Err(ViError::Resource);
        }
        self.queues.remove(queue.0);
        Ok(())
    }

    /// Whether a completion queue has something to tell; false of none.
    pub fn has_completion(&self, queue: QueueNumber) -> bool {
        self.queues.get(queue.0).is_some_and(|queue| !queue.is_empty())
    }

    /// `VipCQDone`: which queue of which VI has a completion.
    ///
    /// # Errors
    /// [`ViError::Parameter`] if there is no such queue.
    pub fn take_completion(&mut self, queue: QueueNumber) -> Result<Option<(ViNumber, Queue)>, ViError> {
        let taken = self.queues.get_mut(queue.0).ok_or(ViError::Parameter)?.pop();
        Ok(taken.map(|source| (ViNumber(source.vi), source.queue)))
    }

    /// Whether there is such a queue.
    ///
    /// # Errors
    /// [`ViError::Parameter`] if not.
    pub fn check_queue(&self, queue: QueueNumber) -> Result<(), ViError> {
        self.queues.get(queue.0).map(|_| ()).ok_or(ViError::Parameter)
    }

    fn check_entries(&self, entries: u32) -> Result<(), ViError> {
        match entries {
            0 => Err(ViError::Parameter),
            _ if entries > self.limits.completion_entries => Err(ViError::Resource),
            _ => Ok(()),
        }
    }

    // ---- VIs ----

    /// `VipCreateVi`.
    ///
    /// # Errors
    /// [`ViError::Parameter`] for a queue that is none, [`ViError::Tag`], [`ViError::TransferBytes`], [`ViError::RemoteRead`] on an
    /// unreliable VI, [`ViError::Quality`], [`ViError::Resource`].
    pub fn create_vi(
        &mut self,
        attributes: ViAttributes,
        send_queue: Option<QueueNumber>,
        receive_queue: Option<QueueNumber>,
    ) -> Result<ViNumber, ViError> {
        self.check_attributes(&attributes)?;
        for queue in [send_queue, receive_queue].into_iter().flatten() {
            self.queues.get(queue.0).ok_or(ViError::Parameter)?;
        }
        self.protection.use_tag(attributes.tag)?;
        let vi = Vi::new(attributes, self.limits.descriptors);
        let entry = ViEntry {
            vi,
            send_queue,
            receive_queue,
            connection: None,
            attempt: None,
            pace: None,
            policy: None,
            weight: Weight::DEFAULT,
            told: Vec::new(),
        };
        let Some(number) = self.vis.insert(entry) else {
            self.protection.leave_tag(attributes.tag);
            return Err(ViError::Resource);
        };
        for queue in [send_queue, receive_queue].into_iter().flatten() {
            if let Some(queue) = self.queues.get_mut(queue.0) {
                queue.bind();
            }
        }
        self.review_holding();
        Ok(ViNumber(number))
    }

    /// `VipDestroyVi`.
    ///
    /// # Errors
    /// [`ViError::Parameter`] if there is no such VI; [`ViError::State`] unless it is idle with nothing posted.
    pub fn destroy_vi(&mut self, vi: ViNumber) -> Result<(), ViError> {
        self.vis.get(vi.0).ok_or(ViError::Parameter)?.vi.check_destroyable()?;
        let Some(entry) = self.vis.remove(vi.0) else { return Err(ViError::Parameter) };
        self.count_gone(&entry);
        self.protection.leave_tag(entry.vi.attributes().tag);
        for queue in [Queue::Send, Queue::Receive] {
            let bound = entry.completion_queue(queue).and_then(|bound| self.queues.get_mut(bound.0));
            if let Some(bound) = bound {
                bound.unbind(CompletionSource { vi: vi.0, queue });
            }
        }
        self.review_holding();
        Ok(())
    }

    /// `VipSetViAttributes`.
    ///
    /// # Errors
    /// As [`NicState::create_vi`]; [`ViError::State`] unless it is idle.
    pub fn set_vi_attributes(&mut self, vi: ViNumber, attributes: ViAttributes) -> Result<(), ViError> {
        let former = *self.vis.get(vi.0).ok_or(ViError::Parameter)?.vi.attributes();
        self.check_attributes(&attributes)?;
        self.protection.use_tag(attributes.tag)?;
        let set = self.vis.get_mut(vi.0).ok_or(ViError::Parameter)?.vi.set_attributes(attributes);
        self.protection.leave_tag(if set.is_ok() { former.tag } else { attributes.tag });
        self.review_holding();
        Ok(set?)
    }

    /// `VipQueryVi`.
    ///
    /// # Errors
    /// [`ViError::Parameter`] if there is no such VI.
    pub fn query_vi(&self, vi: ViNumber) -> Result<ViPicture, ViError> {
        let ViEntry { vi, .. } = self.vis.get(vi.0).ok_or(ViError::Parameter)?;
        Ok(ViPicture {
            state: vi.state(),
            attributes: *vi.attributes(),
            sends_empty: vi.is_empty(Queue::Send),
            receives_empty: vi.is_empty(Queue::Receive),
        })
    }

    /// Whether this queue of the VI tells a completion queue.
    ///
    /// # Errors
    /// [`ViError::Parameter`] if there is no such VI.
    pub fn has_completion_queue(&self, vi: ViNumber, queue: Queue) -> Result<bool, ViError> {
        Ok(self.vis.get(vi.0).ok_or(ViError::Parameter)?.completion_queue(queue).is_some())
    }

    fn check_attributes(&self, attributes: &ViAttributes) -> Result<(), ViError> {
        if attributes.transfer_bytes_max > self.limits.transfer_bytes || attributes.transfer_bytes_max == 0 {
            return Err(ViError::TransferBytes);
        }
        if attributes.remote_read && !attributes.reliability.is_reliable() {
            return Err(ViError::RemoteRead);
        }
        Priority::new(attributes.class).map(|_| ()).ok_or(ViError::Quality)
    }
}

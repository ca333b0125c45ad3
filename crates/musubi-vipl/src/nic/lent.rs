//! Descriptors whose memory the NIC has while they are posted, so that nobody else can touch or free it.
//!
//! What you may rely on: memory that was lent is touched from [`NicState::post_lent`] until [`NicState::take_lent`] gives it back with
//! the completion, and by nobody else meanwhile; whatever becomes of the VI, it comes back once or is freed with the VI. Such a
//! descriptor never finds its completion queue full. Nothing is allocated for one, once the queues are as long as they get.
//!
//! How it works: the engine's own [`Descriptor`] is made here instead of being read from memory, and its completion is taken
//! from the work queue instead of being written there. The table of registered memory has the bytes until then.
//!
//! What it does not do: several segments: a descriptor has one place, of one region.

use alloc::boxed::Box;

use musubi_transport::links::{Block, Links};

use super::frames::Edge;
use super::{NicState, QueueNumber, ViEntry, ViNumber};
use crate::engine::{Completion, Descriptor, LocalPlace, MemoryHandle, Oldest, Operation, Queue, RemotePlace};
use crate::error::ViError;
use crate::memory::Lent;
use crate::slots::Slots;

/// What is to be done with lent memory.
#[derive(Clone, Copy, Debug)]
pub struct LentWork {
    /// Of a receive [`Operation::SendReceive`].
    pub operation: Operation,
    /// What goes with the message.
    pub immediate: Option<u32>,
    /// Whether it waits for all earlier reads.
    pub fence: bool,
    /// The peer's memory, of an RDMA operation.
    pub remote: RemotePlace,
    /// First byte within the region.
    pub offset: u32,
    /// How many.
    pub bytes: u32,
}

/// What has become of the oldest descriptor of a queue.
#[derive(Debug)]
pub enum LentBack {
    /// It is complete.
    Complete {
        /// Its memory.
        lent: Box<Lent>,
        /// What it asked for.
        operation: Operation,
        /// How it ended.
        completion: Completion,
    },
    /// Something is posted and not complete.
    Pending,
    /// Nothing is posted.
    Empty,
}

impl<B: Block> NicState<B> {
    /// As [`NicState::post`], of memory that is lent. The caller sees to it that the work lies within it.
    ///
    /// # Errors
    /// With the memory: [`ViError::Parameter`] if there is no such VI; [`ViError::Resource`] if the queue, or its completion
    /// queue, has no room.
    #[inline]
    pub fn post_lent(
        &mut self,
        vi: ViNumber,
        queue: Queue,
        (lent, work): (Box<Lent>, &LentWork),
        links: &mut impl Links<Block = B>,
    ) -> Result<(), (ViError, Box<Lent>)> {
        let Some(entry) = self.vis.get_mut(vi.0) else { return Err((ViError::Parameter, lent)) };
        let bound = entry.completion_queue(queue).and_then(|bound| self.queues.get_mut(bound.0));
        if !entry.vi.has_room(queue) || bound.is_some_and(|bound| !bound.reserve()) {
            return Err((ViError::Resource, lent));
        }
        let (handle, address) = (lent.handle, lent.bytes.as_ptr().addr() as u64);
        self.memory.lend(lent);
        let write = |descriptor: &mut Descriptor| write(descriptor, work, (address, handle));
        // It has room, as was just seen.
        let _ = entry.vi.post(queue, write, &mut Edge::<B>::of(&self.memory));
        let place = Slots::<ViEntry>::place(vi.0);
        if queue == Queue::Send || entry.vi.has_receives_to_tell() {
            self.pump(place, links);
        } else {
            self.settle(place);
        }
        self.carry_local(links);
        Ok(())
    }

    /// Gives the oldest descriptor's memory back, if it is complete.
    ///
    /// # Errors
    /// [`ViError::Parameter`] if there is no such VI, or its descriptors are not of lent memory.
    #[inline]
    pub fn take_lent(&mut self, vi: ViNumber, queue: Queue) -> Result<LentBack, ViError> {
        let entry = self.vis.get_mut(vi.0).ok_or(ViError::Parameter)?;
        let (handle, operation, completion) = match entry.vi.take(queue) {
            Oldest::Complete { region, operation, completion } => (region, operation, completion),
            Oldest::Pending => return Ok(LentBack::Pending),
            Oldest::Empty => return Ok(LentBack::Empty),
        };
        if let Some(bound) = entry.completion_queue(queue).and_then(|bound| self.queues.get_mut(bound.0)) {
            bound.release();
        }
        let lent = self.memory.take_back(handle).ok_or(ViError::Parameter)?;
        Ok(LentBack::Complete { lent, operation, completion })
    }

    /// The next completion that a completion queue tells of; `None` if it has none.
    ///
    /// # Errors
    /// [`ViError::Parameter`] if there is no such queue.
    pub fn take_lent_of(&mut self, queue: QueueNumber) -> Result<Option<(ViNumber, LentBack)>, ViError> {
        while let Some((vi, of)) = self.take_completion(queue)? {
            if let Ok(back @ LentBack::Complete { .. }) = self.take_lent(vi, of) {
                return Ok(Some((vi, back)));
            }
        }
        Ok(None)
    }

    /// Ends a VI in whatever state it is. What was lent to it is given up and freed.
    pub fn end_lent(&mut self, vi: ViNumber, links: &mut impl Links<Block = B>) {
        // There is such a VI, or nothing is to be done.
        let _ = self.disconnect(vi, links);
        for queue in [Queue::Send, Queue::Receive] {
            while let Ok(LentBack::Complete { lent, .. }) = self.take_lent(vi, queue) {
                let address = lent.bytes.as_ptr().addr() as u64;
                let _ = self.deregister(address, lent.handle);
            }
        }
        let _ = self.destroy_vi(vi);
    }
}

/// Writes all of a descriptor of a region that lies at an address.
#[inline]
fn write(descriptor: &mut Descriptor, work: &LentWork, (address, handle): (u64, MemoryHandle)) {
    descriptor.address = 0;
    descriptor.handle = MemoryHandle::NONE;
    descriptor.operation = work.operation;
    descriptor.immediate = work.immediate;
    descriptor.fence = work.fence;
    descriptor.remote = work.remote;
    descriptor.refused = None;
    descriptor.segments.clear();
    let place = LocalPlace { address: address + u64::from(work.offset), handle, bytes: work.bytes };
    // One place has no more bytes than 32 bits count.
    let _ = descriptor.segments.push(place);
}

//! One queue of a VI: descriptors in the order in which they were posted.
//!
//! What you may rely on: descriptors complete, and are given back, in that order, whatever order their work ended in; a
//! descriptor is told to be complete once. Every operation takes a constant number of steps, but [`WorkQueue::settle`] one
//! for each descriptor that completes.
//!
//! How it works: entries have numbers that rise by one. `told` is the first that the program was not told of; behind it,
//! `next` is the first whose work has not begun.

use alloc::collections::VecDeque;

use super::descriptor::Descriptor;
use super::status::Completion;

/// The queue is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Overrun;

/// Why nothing is dequeued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dequeue {
    /// The oldest descriptor is complete: where it lies, and whether with an error.
    Complete {
        /// Where it lies.
        address: u64,
        /// Whether `VipSendDone` and its like say `VIP_DESCRIPTOR_ERROR`.
        is_error: bool,
    },
    /// Something is posted and not complete: `VIP_NOT_DONE`.
    Pending,
    /// Nothing is posted: `VIP_DESCRIPTOR_ERROR` without a descriptor.
    Empty,
}

#[derive(Debug)]
struct Posted {
    descriptor: Descriptor,
    completion: Option<Completion>,
}

/// Descriptors of one queue.
#[derive(Debug)]
pub(super) struct WorkQueue {
    entries: VecDeque<Posted>,
    /// Number of the first entry.
    first: u64,
    /// First that the program was not told of.
    told: u64,
    /// First whose work has not begun.
    next: u64,
    limit: u32,
}

impl WorkQueue {
    /// An empty one.
    pub(super) fn new(limit: u32) -> WorkQueue {
        WorkQueue { entries: VecDeque::new(), first: 0, told: 0, next: 0, limit }
    }

    /// Puts a descriptor behind the others; gives its number.
    pub(super) fn post(&mut self, descriptor: Descriptor) -> Result<u64, Overrun> {
        if self.entries.len() >= self.limit as usize {
            return Err(Overrun);
        }
        self.entries.push_back(Posted { descriptor, completion: None });
        Ok(self.end() - 1)
    }

    /// Whether nothing is posted.
    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The number that the next posted descriptor gets.
    fn end(&self) -> u64 {
        self.first + self.entries.len() as u64
    }

    /// The first descriptor whose work has not begun.
    #[inline]
    pub(super) fn next(&self) -> Option<(u64, &Descriptor)> {
        let entry = self.entries.get((self.next - self.first) as usize)?;
        Some((self.next, &entry.descriptor))
    }

    /// The work of [`WorkQueue::next`] has begun.
    pub(super) fn begin_next(&mut self) {
        self.next += 1;
    }

    /// The first descriptor that the program was not told of, if its work has begun or not.
    pub(super) fn oldest(&self) -> Option<(u64, &Descriptor)> {
        let entry = self.entries.get((self.told - self.first) as usize)?;
        Some((self.told, &entry.descriptor))
    }

    /// A descriptor by number.
    pub(super) fn descriptor(&self, number: u64) -> Option<&Descriptor> {
        let index = number.checked_sub(self.first)?;
        self.entries.get(index as usize).map(|entry| &entry.descriptor)
    }

    /// The work of this descriptor has ended. What ended already stays as it ended.
    pub(super) fn end_work(&mut self, number: u64, completion: Completion) {
        let index = number.wrapping_sub(self.first) as usize;
        if let Some(entry) = self.entries.get_mut(index)
            && entry.completion.is_none()
        {
            entry.completion = Some(completion);
        }
    }

    /// Tells of every descriptor, in order, whose work has ended with all before it; gives how many.
    pub(super) fn settle(&mut self, mut tell: impl FnMut(&Descriptor, &Completion)) -> u32 {
        let mut count = 0;
        while let Some(entry) = self.entries.get((self.told - self.first) as usize) {
            let Some(completion) = entry.completion else { break };
            tell(&entry.descriptor, &completion);
            self.told += 1;
            self.next = self.next.max(self.told);
            count += 1;
        }
        count
    }

    /// Ends the work of every descriptor that has not ended, as `how` says.
    pub(super) fn flush(&mut self, how: impl Fn(&Descriptor) -> Completion) {
        for entry in self.entries.iter_mut().skip((self.told - self.first) as usize) {
            entry.completion.get_or_insert_with(|| how(&entry.descriptor));
        }
    }

    /// Whether the oldest descriptor is complete.
    pub(super) fn has_complete(&self) -> bool {
        self.first < self.told
    }

    /// Gives the oldest descriptor back, if it is complete.
    pub(super) fn dequeue(&mut self) -> Dequeue {
        if self.entries.is_empty() {
            return Dequeue::Empty;
        }
        if self.first == self.told {
            return Dequeue::Pending;
        }
        let Some(Posted { descriptor, completion }) = self.entries.pop_front() else { return Dequeue::Empty };
        self.first += 1;
        let is_error = completion.is_some_and(|completion| completion.status.is_error());
        Dequeue::Complete { address: descriptor.address, is_error }
    }
}

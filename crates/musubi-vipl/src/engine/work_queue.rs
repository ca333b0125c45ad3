//! One queue of a VI: descriptors in the order in which they were posted.
//!
//! What you may rely on: descriptors complete, and are given back, in that order, whatever order their work ended in; a
//! descriptor is told to be complete once. Every operation takes a constant number of steps, but [`WorkQueue::settle`] one
//! for each descriptor that completes.
//!
//! How it works: descriptors have numbers that rise by one, and lie in a ring of places, used again and again, at the number's
//! last bits. `told` is the first that the program was not told of; behind it, `next` is the first whose work has not begun.
//! A descriptor is written where it stays, and what is read of it is read as it was written: whoever loads as one word what was
//! stored as two waits until all stores before those have reached the cache, those to other cores' lines among them.

use alloc::vec::Vec;

use super::descriptor::{Descriptor, Operation};
use super::protection::MemoryHandle;
use super::status::Completion;

/// Places of a ring that is made.
const PLACES_MIN: usize = 16;

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

/// The oldest descriptor of a queue, with what is known of its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Oldest {
    /// It is complete.
    Complete {
        /// The region of its first place.
        region: MemoryHandle,
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

#[derive(Debug)]
struct Posted {
    descriptor: Descriptor,
    /// How its work ended, if it has.
    completion: Completion,
    has_ended: bool,
}

impl Posted {
    const NONE: Posted = Posted { descriptor: Descriptor::NONE, completion: Completion::NONE, has_ended: false };
}

/// Descriptors of one queue.
#[derive(Debug)]
pub(super) struct WorkQueue {
    /// None, or a power of two.
    ring: Vec<Posted>,
    /// Number of the oldest.
    first: u64,
    /// First that the program was not told of.
    told: u64,
    /// First whose work has not begun.
    next: u64,
    /// The number that the next posted descriptor gets.
    end: u64,
    /// How many ended because the connection did.
    flushed: u64,
    limit: u32,
}

impl WorkQueue {
    /// An empty one.
    pub(super) fn new(limit: u32) -> WorkQueue {
        WorkQueue { ring: Vec::new(), first: 0, told: 0, next: 0, end: 0, flushed: 0, limit }
    }

    /// Puts a descriptor behind the others, as `write` writes it.
    #[inline]
    pub(super) fn post(&mut self, write: impl FnOnce(&mut Descriptor)) -> Result<(), Overrun> {
        let count = (self.end - self.first) as usize;
        if count >= self.limit as usize {
            return Err(Overrun);
        }
        if count == self.ring.len() {
            self.grow();
        }
        let place = self.place(self.end);
        if let Some(posted) = self.ring.get_mut(place) {
            write(&mut posted.descriptor);
            posted.has_ended = false;
        }
        self.end += 1;
        Ok(())
    }

    /// Makes the ring twice as long; every descriptor keeps its number.
    #[cold]
    fn grow(&mut self) {
        let places = (self.ring.len() * 2).max(PLACES_MIN);
        let mut ring = Vec::with_capacity(places);
        ring.resize_with(places, || Posted::NONE);
        for number in self.first..self.end {
            let from = self.place(number);
            let posted = self.ring.get_mut(from).map(|posted| core::mem::replace(posted, Posted::NONE));
            if let (Some(posted), Some(place)) = (posted, ring.get_mut(number as usize & (places - 1))) {
                *place = posted;
            }
        }
        self.ring = ring;
    }

    /// Where a number's descriptor lies.
    #[inline]
    fn place(&self, number: u64) -> usize {
        number as usize & self.ring.len().wrapping_sub(1)
    }

    #[inline]
    fn posted(&self, number: u64) -> Option<&Posted> {
        if number < self.first || number >= self.end {
            return None;
        }
        self.ring.get(self.place(number))
    }

    /// Whether one descriptor is posted that the program was not told of, and no more.
    #[inline]
    pub(super) fn has_one_open(&self) -> bool {
        self.end - self.told == 1
    }

    /// Whether nothing is posted.
    pub(super) fn is_empty(&self) -> bool {
        self.first == self.end
    }

    /// The first descriptor whose work has not begun.
    #[inline]
    pub(super) fn next(&self) -> Option<(u64, &Descriptor)> {
        Some((self.next, &self.posted(self.next)?.descriptor))
    }

    /// The number of [`WorkQueue::next`], posted or not.
    pub(super) fn next_number(&self) -> u64 {
        self.next
    }

    /// The number that the next posted descriptor gets.
    pub(super) fn end_number(&self) -> u64 {
        self.end
    }

    /// The work of [`WorkQueue::next`] has begun.
    pub(super) fn begin_next(&mut self) {
        self.next += 1;
    }

    /// The first descriptor that the program was not told of, if its work has begun or not.
    pub(super) fn oldest(&self) -> Option<(u64, &Descriptor)> {
        Some((self.told, &self.posted(self.told)?.descriptor))
    }

    /// A descriptor by number.
    #[inline]
    pub(super) fn descriptor(&self, number: u64) -> Option<&Descriptor> {
        Some(&self.posted(number)?.descriptor)
    }

    /// The work of this descriptor has ended. What ended already stays as it ended.
    #[inline]
    pub(super) fn end_work(&mut self, number: u64, completion: Completion) {
        if number < self.first || number >= self.end {
            return;
        }
        let place = self.place(number);
        if let Some(posted) = self.ring.get_mut(place)
            && !posted.has_ended
        {
            posted.completion = completion;
            posted.has_ended = true;
        }
    }

    /// Tells of every descriptor, in order, whose work has ended with all before it; gives how many.
    #[inline]
    pub(super) fn settle(&mut self, mut tell: impl FnMut(&Descriptor, &Completion)) -> u32 {
        let told = self.told;
        while let Some(posted) = self.posted(self.told).filter(|posted| posted.has_ended) {
            tell(&posted.descriptor, &posted.completion);
            self.told += 1;
        }
        self.next = self.next.max(self.told);
        (self.told - told) as u32
    }

    /// Ends the work of every descriptor that has not ended, as `how` says.
    pub(super) fn flush(&mut self, how: impl Fn(&Descriptor) -> Completion) {
        for number in self.told..self.end {
            self.flushed += u64::from(self.posted(number).is_some_and(|posted| !posted.has_ended));
            if let Some(completion) = self.descriptor(number).map(&how) {
                self.end_work(number, completion);
            }
        }
    }

    /// Descriptors that were posted, that completed, and of those that the end of a connection completed.
    pub(super) fn totals(&self) -> [u64; 3] {
        [self.end, self.told, self.flushed]
    }

    /// Whether the oldest descriptor is complete.
    pub(super) fn has_complete(&self) -> bool {
        self.first < self.told
    }

    /// Whether one more can be posted.
    #[inline]
    pub(super) fn has_room(&self) -> bool {
        self.end - self.first < u64::from(self.limit)
    }

    /// As [`WorkQueue::dequeue`], with how it ended.
    #[inline]
    pub(super) fn take(&mut self) -> Oldest {
        if self.first == self.told {
            return if self.is_empty() { Oldest::Empty } else { Oldest::Pending };
        }
        let Some(Posted { descriptor, completion, .. }) = self.posted(self.first) else { return Oldest::Empty };
        let region = descriptor.segments.places().first().map_or(MemoryHandle::NONE, |place| place.handle);
        let taken = Oldest::Complete { region, operation: descriptor.operation, completion: *completion };
        self.first += 1;
        taken
    }

    /// Gives the oldest descriptor back, if it is complete.
    #[inline]
    pub(super) fn dequeue(&mut self) -> Dequeue {
        if self.first == self.told {
            return if self.is_empty() { Dequeue::Empty } else { Dequeue::Pending };
        }
        let Some(posted) = self.posted(self.first) else { return Dequeue::Empty };
        let given =
            Dequeue::Complete { address: posted.descriptor.address, is_error: posted.completion.status.is_error() };
        self.first += 1;
        given
    }
}

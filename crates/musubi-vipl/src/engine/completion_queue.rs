//! Completions of several queues in one: which VI, and which of its queues.
//!
//! What you may rely on: entries come out in the order in which they went in; one that finds no room is reported, never
//! dropped in silence.
//!
//! How it works: a bounded ring. Programs dequeue the descriptor itself from the VI, once for each entry.

use alloc::collections::VecDeque;

use super::status::AsyncError;
use super::vi::Queue;

/// Which queue of which VI has a completion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CompletionSource {
    /// The VI.
    pub vi: u32,
    /// Which of its queues.
    pub queue: Queue,
}

/// It holds more entries than the new size has room for, or that is 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooSmall;

/// One completion queue.
#[derive(Debug)]
pub struct CompletionQueue {
    entries: VecDeque<CompletionSource>,
    room: u32,
    /// Entries that are kept free for what is posted.
    reserved: u32,
    /// Queues of VIs that are bound to it.
    bound: u32,
}

impl CompletionQueue {
    /// With room for so many entries. Memory is taken as entries come.
    pub fn new(room: u32) -> CompletionQueue {
        CompletionQueue { entries: VecDeque::new(), room, reserved: 0, bound: 0 }
    }

    /// Takes note of a completion.
    ///
    /// # Errors
    /// [`AsyncError::Overrun`]: there is no room, which is to be told to the error handler.
    pub fn push(&mut self, source: CompletionSource) -> Result<(), AsyncError> {
        if self.entries.len() >= self.room as usize {
            return Err(AsyncError::Overrun);
        }
        self.entries.push_back(source);
        Ok(())
    }

    /// Keeps an entry free for one more descriptor, if all that are kept leave one: who asks for each before it posts has no overrun.
    #[must_use]
    pub fn reserve(&mut self) -> bool {
        let has_room = self.reserved < self.room;
        self.reserved += u32::from(has_room);
        has_room
    }

    /// Takes [`CompletionQueue::reserve`] back: the descriptor has been dequeued.
    pub fn release(&mut self) {
        self.reserved = self.reserved.saturating_sub(1);
    }

    /// `VipCQDone`.
    pub fn pop(&mut self) -> Option<CompletionSource> {
        self.entries.pop_front()
    }

    /// Entries in it.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// `VipResizeCQ`: entries stay.
    ///
    /// # Errors
    /// [`TooSmall`]; nothing was changed.
    pub fn resize(&mut self, room: u32) -> Result<(), TooSmall> {
        if room == 0 || self.entries.len() > room as usize {
            return Err(TooSmall);
        }
        self.room = room;
        Ok(())
    }

    /// A queue of a VI is bound to it.
    pub fn bind(&mut self) {
        self.bound += 1;
    }

    /// Takes [`CompletionQueue::bind`] back, and entries of that VI's queue out.
    pub fn unbind(&mut self, source: CompletionSource) {
        self.bound = self.bound.saturating_sub(1);
        self.entries.retain(|entry| *entry != source);
    }

    /// Whether a queue is bound to it, so that it may not be destroyed.
    pub fn is_bound(&self) -> bool {
        self.bound > 0
    }
}

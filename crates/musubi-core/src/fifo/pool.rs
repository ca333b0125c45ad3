//! The sender's private account of its blocks: free, held by the program, or sent.
//!
//! What you may rely on: each call takes a constant number of steps except [`Pool::reclaim`], one pass over the blocks.
//!
//! How it works: an entry a block; the free ones form a doubly linked list in order of return, so that any free block
//! can be taken out at once: the one that lies beside its announcement if it is free, else the longest unused.

/// One block's account. An array of these, one a block, is the only memory besides the channel's own that a sender needs.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    previous: u16,
    next: u16,
    /// The position it was sent at, or [`FREE`], or [`HELD`].
    state: u32,
}

impl Entry {
    /// What an account holds before the sender takes it over. All bits zero, so a static of it needs no initial value.
    pub const NEW: Entry = Entry { previous: 0, next: 0, state: 0 };
}

const NONE: u16 = u16::MAX;
const FREE: u32 = u32::MAX;
const HELD: u32 = u32::MAX - 1;

/// The account of all blocks of a channel.
#[derive(Debug)]
pub(super) struct Pool<S> {
    entries: S,
    first: u16,
    last: u16,
    free: u32,
    held: u32,
}

impl<S: AsMut<[Entry]> + AsRef<[Entry]>> Pool<S> {
    /// All blocks free. `entries` has one entry a block.
    pub fn new(entries: S) -> Self {
        let blocks = entries.as_ref().len();
        let mut pool = Pool { entries, first: NONE, last: NONE, free: 0, held: 0 };
        for block in 0..blocks as u16 {
            pool.append(block);
        }
        pool
    }

    /// Number of free blocks.
    pub fn free(&self) -> u32 {
        self.free
    }

    /// Number of blocks that the program holds.
    pub fn held(&self) -> u32 {
        self.held
    }

    /// Number of blocks.
    pub fn blocks(&self) -> u32 {
        self.entries.as_ref().len() as u32
    }

    /// Takes a free block, `wanted` if that is free; it is held from now on.
    #[inline(always)]
    pub fn take(&mut self, wanted: u32) -> Option<u32> {
        let block = if self.entry(wanted).state == FREE { wanted as u16 } else { self.first };
        if block == NONE {
            return None;
        }
        self.unlink(block);
        self.entry_mut(block).state = HELD;
        self.held += 1;
        Some(u32::from(block))
    }

    /// Whether the program holds this block.
    #[inline(always)]
    pub fn is_held(&self, block: u32) -> bool {
        self.entries.as_ref().get(block as usize).is_some_and(|e| e.state == HELD)
    }

    /// A held block goes out at a position. Gives whether it was held.
    #[inline(always)]
    pub fn send(&mut self, block: u32, position: u32) -> bool {
        let held = self.is_held(block);
        if held {
            self.entry_mut(block as u16).state = position;
            self.held -= 1;
        }
        held
    }

    /// A held block comes back unsent. Gives whether it was held.
    pub fn put_back(&mut self, block: u32) -> bool {
        let held = self.is_held(block);
        if held {
            self.release(block as u16);
            self.held -= 1;
        }
        held
    }

    /// A sent block comes back. Gives whether it was out.
    pub fn returned(&mut self, block: u32) -> bool {
        let out = self.entries.as_ref().get(block as usize).is_some_and(|e| e.state < HELD);
        if out {
            self.release(block as u16);
        }
        out
    }

    /// Takes back every sent block whose position `is_gone` accepts; gives how many.
    pub fn reclaim(&mut self, is_gone: impl Fn(u32) -> bool) -> u32 {
        let mut count = 0;
        for block in 0..self.blocks() as u16 {
            let state = self.entry(u32::from(block)).state;
            if state < HELD && is_gone(state) {
                self.release(block);
                count += 1;
            }
        }
        count
    }

    fn release(&mut self, block: u16) {
        self.entry_mut(block).state = FREE;
        self.append(block);
    }

    fn append(&mut self, block: u16) {
        let last = self.last;
        *self.entry_mut(block) = Entry { previous: last, next: NONE, state: FREE };
        match last {
            NONE => self.first = block,
            last => self.entry_mut(last).next = block,
        }
        self.last = block;
        self.free += 1;
    }

    #[inline(always)]
    fn unlink(&mut self, block: u16) {
        let Entry { previous, next, .. } = *self.entry_mut(block);
        match previous {
            NONE => self.first = next,
            previous => self.entry_mut(previous).next = next,
        }
        match next {
            NONE => self.last = previous,
            next => self.entry_mut(next).previous = previous,
        }
        self.free -= 1;
    }

    fn entry(&self, block: u32) -> &Entry {
        &self.entries.as_ref()[block as usize]
    }

    fn entry_mut(&mut self, block: u16) -> &mut Entry {
        &mut self.entries.as_mut()[usize::from(block)]
    }
}

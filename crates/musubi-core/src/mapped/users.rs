//! Who uses a participant's storage.
//!
//! What you may rely on: the storage is free when its last holder has left and the last pulse is gone, not before.

use crate::sync::{AtomicU32, Ordering};

/// The counts of claimed storage: who is attached by it, and who else refers to it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Users<'m> {
    /// The participant, its clones, ends and segments.
    holders: &'m AtomicU32,
    /// All holders together count as one here; each pulse is one more.
    users: &'m AtomicU32,
}

impl<'m> Users<'m> {
    /// The first holder of storage that nobody uses; `None` if somebody does.
    pub fn claim(holders: &'m AtomicU32, users: &'m AtomicU32) -> Option<Users<'m>> {
        users.compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed).ok()?;
        holders.store(1, Ordering::Relaxed);
        Some(Users { holders, users })
    }

    /// One more holder.
    pub fn join(self) {
        self.holders.fetch_add(1, Ordering::Relaxed);
    }

    /// Gives whether this was the last holder. If so, [`Users::end`] follows.
    pub fn leave(self) -> bool {
        self.holders.fetch_sub(1, Ordering::AcqRel) == 1
    }

    /// One more that is not a holder.
    pub fn refer(self) {
        self.users.fetch_add(1, Ordering::Relaxed);
    }

    /// One less; the last one makes the storage free.
    pub fn end(self) {
        self.users.fetch_sub(1, Ordering::AcqRel);
    }

    /// Whether there is a holder.
    pub fn are_attached(self) -> bool {
        self.holders.load(Ordering::Acquire) != 0
    }
}

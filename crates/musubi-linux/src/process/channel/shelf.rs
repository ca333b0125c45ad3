//! Keeping the state of ends while no handle is open.
//!
//! What you may rely on: what was parked is there until it is taken or the shelf is closed; a closed shelf drops what is
//! parked, now and later.
//!
//! How it works: a handle's state goes back to the shelf when the handle is dropped. When the participant leaves, the
//! shelf is closed, which closes the ends.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Where things wait, one a channel; `None` once the participant has left.
#[derive(Debug)]
pub(crate) struct Shelf<T>(Mutex<Option<HashMap<u16, T>>>);

impl<T> Shelf<T> {
    /// A shelf with these things on it.
    pub(crate) fn of(things: impl IntoIterator<Item = (u16, T)>) -> Arc<Shelf<T>> {
        Arc::new(Shelf(Mutex::new(Some(things.into_iter().collect()))))
    }

    /// Drops everything that is parked, and from now on whatever comes.
    pub(crate) fn close(&self) {
        let parked = self.lock().take();
        drop(parked);
    }

    /// Puts what belongs to a channel back.
    pub(crate) fn park(&self, channel: u16, thing: T) {
        let mut parked = self.lock();
        // What finds no place is dropped after the lock, which closes its end.
        let _closed = match &mut *parked {
            Some(parked) => parked.insert(channel, thing),
            None => Some(thing),
        };
        drop(parked);
    }

    /// Takes what belongs to a channel.
    pub(crate) fn take(&self, channel: u16) -> Option<T> {
        self.lock().as_mut()?.remove(&channel)
    }

    fn lock(&self) -> MutexGuard<'_, Option<HashMap<u16, T>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_parked_is_taken_once_and_from_its_own_channel() {
        let shelf = Shelf::of([(1, "one")]);
        shelf.park(2, "two");
        assert_eq!((shelf.take(3), shelf.take(1), shelf.take(1)), (None, Some("one"), None));
        shelf.park(2, "newer");
        assert_eq!((shelf.take(2), shelf.take(2)), (Some("newer"), None));
    }

    #[test]
    fn a_closed_shelf_drops_what_is_there_and_what_comes() {
        let thing = Arc::new(());
        let shelf = Shelf::of([(1, Arc::clone(&thing))]);
        shelf.close();
        assert_eq!(Arc::strong_count(&thing), 1);
        shelf.park(2, Arc::clone(&thing));
        assert_eq!((Arc::strong_count(&thing), shelf.take(2)), (1, None));
    }
}

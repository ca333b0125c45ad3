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

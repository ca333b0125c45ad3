//! The one handle that a channel's record may have at a time.
//!
//! What you may rely on: while a handle exists the participant stays attached. Of two that open at once one succeeds.
//! The last one that goes takes the participant with it.

use crate::error::Error;
use crate::mapped::Host;
use crate::mapped::shared::Shared;
use crate::sync::{AtomicU32, Ordering};

/// A record's handle; dropping it gives the record back.
#[derive(Debug)]
pub(in crate::mapped) struct Handle<'m, B: Host> {
    pub shared: &'m Shared<'m, B>,
    /// 1 while the handle exists.
    taken: &'m AtomicU32,
}

impl<'m, B: Host> Handle<'m, B> {
    /// Takes a record's handle.
    pub fn take(shared: &'m Shared<'m, B>, taken: &'m AtomicU32) -> Result<Self, Error> {
        if taken.swap(1, Ordering::AcqRel) != 0 {
            return Err(Error::InUse);
        }
        shared.here.users.join();
        Ok(Handle { shared, taken })
    }
}

impl<B: Host> Drop for Handle<'_, B> {
    fn drop(&mut self) {
        self.taken.store(0, Ordering::Release);
        if self.shared.here.users.leave() {
            self.shared.end();
        }
    }
}

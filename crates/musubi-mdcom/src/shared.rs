//! SMEM channels: shared memory with a lock (seed 000, section 4.1.1).

use core::marker::PhantomData;
use core::mem::size_of;

use musubi_core::Error;
use musubi_core::channel::{Attachment, SharedSegment};

use crate::{Payload, Wait};

/// An SMEM channel that holds a `T`.
#[derive(Debug)]
pub struct Shared<'a, A: Attachment, T> {
    attachment: &'a A,
    segment: A::Segment,
    holds: PhantomData<fn(T) -> T>,
}

/// The lock of an SMEM channel in our hands; dropping it unlocks (`mdcom_smemch_unlock`).
#[must_use = "dropping the guard unlocks at once"]
#[derive(Debug)]
pub struct Guard<'g, S: SharedSegment, T> {
    segment: &'g S,
    holds: PhantomData<fn(T) -> T>,
}

impl<'a, A: Attachment, T: Payload> Shared<'a, A, T> {
    pub(crate) fn new(attachment: &'a A, segment: A::Segment) -> Self {
        Shared { attachment, segment, holds: PhantomData }
    }

    /// Tries to take the lock (`mdcom_smemch_trylock`).
    ///
    /// # Errors
    /// [`Error::Locked`]; [`Error::NotReady`] while a member is being linked.
    pub fn try_lock(&mut self) -> Result<Guard<'_, A::Segment, T>, Error> {
        self.segment.try_lock()?;
        Ok(Guard { segment: &self.segment, holds: PhantomData })
    }

    /// Takes the lock, first come first served.
    ///
    /// # Errors
    /// [`Error::Timeout`].
    pub fn lock(&mut self, wait: Wait) -> Result<Guard<'_, A::Segment, T>, Error> {
        self.segment.lock(wait.deadline(self.attachment))?;
        Ok(Guard { segment: &self.segment, holds: PhantomData })
    }
}

impl<S: SharedSegment, T: Payload> Guard<'_, S, T> {
    /// The value, copied out.
    pub fn read(&self) -> T {
        let mut value = T::new_zeroed();
        // The type was checked against the channel when it was opened.
        let _ = self.segment.read(0, value.as_mut_bytes());
        value
    }

    /// Replaces the value.
    pub fn write(&mut self, value: &T) {
        debug_assert!(size_of::<T>() <= self.segment.bytes() as usize);
        let _ = self.segment.write(0, value.as_bytes());
    }

    /// Copies bytes out.
    ///
    /// # Errors
    /// [`Error::TooLong`] if they do not lie inside the channel.
    pub fn read_bytes(&self, offset: u32, into: &mut [u8]) -> Result<(), Error> {
        self.segment.read(offset, into)
    }

    /// Copies bytes in.
    ///
    /// # Errors
    /// [`Error::TooLong`] if they do not lie inside the channel.
    pub fn write_bytes(&mut self, offset: u32, from: &[u8]) -> Result<(), Error> {
        self.segment.write(offset, from)
    }
}

impl<S: SharedSegment, T> Drop for Guard<'_, S, T> {
    fn drop(&mut self) {
        // The guard is the proof that the lock is held.
        let _ = self.segment.unlock();
    }
}

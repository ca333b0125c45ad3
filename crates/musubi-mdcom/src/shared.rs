//! SMEM channels: shared memory with a lock (seed 000, section 4.1.1).

use core::marker::PhantomData;
use core::mem::size_of;

use musubi_core::Error;
use musubi_core::channel::{Attachment, SharedSegment};

use crate::{Payload, Wait};

/// An SMEM channel that holds a `T`.
///
/// ```
/// # use musubi_linux::{Options, Participant};
/// # let plan = musubi_config::load("../../examples/talk.toml".as_ref()).unwrap().leak();
/// # let instance = format!("doc-shared-{}", std::process::id());
/// # let at = |domain| Participant::attach(Options { instance: Some(instance.clone()), ..Options::new(plan, domain) });
/// # let (control, panel) = (at("control")?, at("panel")?);
/// use musubi_mdcom::{Error, Mdcom, Wait};
///
/// let mut ours = Mdcom::init(&control).shared::<[u32; 4]>("parameters", Wait::Forever)?;
/// let mut theirs = Mdcom::init(&panel).shared::<[u32; 4]>("parameters", Wait::Forever)?;
/// let mut guard = ours.lock(Wait::Forever)?;
/// guard.write(&[1, 2, 3, 4]);
/// assert_eq!(theirs.try_lock().unwrap_err(), Error::Locked);
/// drop(guard);
/// assert_eq!(theirs.lock(Wait::Forever)?.read(), [1, 2, 3, 4]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Shared<'a, A: Attachment, T> {
    attachment: &'a A,
    segment: A::Segment,
    holds: PhantomData<fn(T) -> T>,
}

/// The lock of an SMEM channel in our hands; dropping it unlocks (`mdcom_smemch_unlock`).
///
/// ```
/// # use musubi_linux::{Options, Participant};
/// # let plan = musubi_config::load("../../examples/talk.toml".as_ref()).unwrap().leak();
/// # let instance = format!("doc-guard-{}", std::process::id());
/// # let at = |domain| Participant::attach(Options { instance: Some(instance.clone()), ..Options::new(plan, domain) });
/// # let (control, panel) = (at("control")?, at("panel")?);
/// use musubi_mdcom::{Mdcom, Wait};
///
/// # let _panel = panel;
/// let mut shared = Mdcom::init(&control).shared::<[u8; 8]>("parameters", Wait::Forever)?;
/// let mut guard = shared.lock(Wait::Forever)?;
/// guard.write_bytes(2, b"abc")?;
/// let mut part = [0; 2];
/// guard.read_bytes(3, &mut part)?;
/// assert_eq!(&part, b"bc");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
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

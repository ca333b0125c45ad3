//! The sending end of a FIFO channel and the blocks it hands out.

use core::future::poll_fn;
use core::marker::PhantomData;
use core::mem::size_of;
use core::ops::{Deref, DerefMut};

use musubi_core::Error;
use musubi_core::channel::{Attachment, Deadline, SendingEnd, Usage};
use musubi_core::fifo::{Loan, Notified};
use musubi_core::plan::FilterRule;

use crate::{Bytes, Payload, Wait};

/// The sending end of a FIFO channel; `T` is the message type or [`Bytes`].
///
/// ```
/// # use musubi_linux::{Options, Participant};
/// # let plan = musubi_config::load("../../examples/talk.toml".as_ref()).unwrap().leak();
/// # let instance = format!("doc-sender-{}", std::process::id());
/// # let at = |domain| Participant::attach(Options { instance: Some(instance.clone()), ..Options::new(plan, domain) });
/// # let (control, panel) = (at("control")?, at("panel")?);
/// use musubi_mdcom::{FilterRule, Mdcom, Wait};
///
/// let sender = Mdcom::init(&control).sender("greetings")?;
/// let receiver = Mdcom::init(&panel).receiver("greetings")?;
/// // Every second message wakes the receiver.
/// sender.set_filter(FilterRule { every: 2, ..FilterRule::EACH });
/// sender.send(b"one", Wait::Forever)?;
/// sender.send(b"two", Wait::Forever)?;
/// receiver.wait(Wait::Forever)?;
/// assert_eq!(sender.sense().queued, 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Sender<'a, A: Attachment, T> {
    attachment: &'a A,
    end: A::Sending,
    carries: PhantomData<fn(T)>,
}

/// A block in our hands, to be filled and enqueued; it goes back to the pool when it is dropped.
///
/// ```
/// # use musubi_linux::{Options, Participant};
/// # let plan = musubi_config::load("../../examples/talk.toml".as_ref()).unwrap().leak();
/// # let instance = format!("doc-block-{}", std::process::id());
/// # let at = |domain| Participant::attach(Options { instance: Some(instance.clone()), ..Options::new(plan, domain) });
/// # let (control, panel) = (at("control")?, at("panel")?);
/// use musubi_mdcom::{Mdcom, Wait};
///
/// let sender = Mdcom::init(&control).sender("greetings")?;
/// let receiver = Mdcom::init(&panel).receiver("greetings")?;
/// let mut block = sender.alloc(Wait::Forever)?;
/// block[..5].copy_from_slice(b"hello");
/// block.enqueue(5).map_err(|rejected| rejected.error)?;
/// sender.notify();
/// assert_eq!(receiver.next(Wait::Forever)?.len(), 5);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use = "an allocated block is meant to be enqueued"]
#[derive(Debug)]
pub struct Block<'s, E: SendingEnd, T> {
    end: &'s E,
    loan: Option<Loan<'s>>,
    carries: PhantomData<fn(T)>,
}

/// Why a block was not enqueued, with the block itself.
///
/// ```
/// # use musubi_linux::{Options, Participant};
/// # let plan = musubi_config::load("../../examples/talk.toml".as_ref()).unwrap().leak();
/// # let instance = format!("doc-rejected-{}", std::process::id());
/// # let at = |domain| Participant::attach(Options { instance: Some(instance.clone()), ..Options::new(plan, domain) });
/// # let (control, panel) = (at("control")?, at("panel")?);
/// use musubi_mdcom::{Error, Mdcom, Wait};
///
/// let sender = Mdcom::init(&control).sender("greetings")?;
/// # let _panel = panel;
/// let block = sender.alloc(Wait::Forever)?;
/// let rejected = block.enqueue(65).unwrap_err();
/// assert_eq!(rejected.error, Error::TooLong);
/// // The block is still ours.
/// rejected.block.enqueue(64).map_err(|rejected| rejected.error)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Rejected<B> {
    /// The reason.
    pub error: Error,
    /// The block, unchanged.
    pub block: B,
}

impl<'a, A: Attachment, T> Sender<'a, A, T> {
    pub(crate) fn new(attachment: &'a A, end: A::Sending) -> Self {
        Sender { attachment, end, carries: PhantomData }
    }

    /// Takes a block (`mdcom_fifo_alloc`). Several may be out at once.
    ///
    /// # Errors
    /// [`Error::NoBlock`] with [`Wait::Poll`], [`Error::Timeout`], or once [`Error::PeerGone`] after a receiver has gone.
    #[inline(always)]
    pub fn alloc(&self, wait: Wait) -> Result<Block<'_, A::Sending, T>, Error> {
        let loan = match self.end.allocate(Deadline::Poll) {
            // Only who has to wait needs to know the time.
            Err(Error::NoBlock) if wait != Wait::Poll => self.end.allocate(wait.deadline(self.attachment))?,
            done => done?,
        };
        Ok(Block { end: &self.end, loan: Some(loan), carries: PhantomData })
    }

    /// Takes a block as soon as there is one, under any executor.
    ///
    /// # Errors
    /// Once [`Error::PeerGone`] after a receiver has gone.
    pub async fn alloc_async(&self) -> Result<Block<'_, A::Sending, T>, Error> {
        loop {
            poll_fn(|context| self.end.poll_block(context)).await?;
            match self.alloc(Wait::Poll) {
                Err(Error::NoBlock) => {}
                done => return done,
            }
        }
    }

    /// The same wait as an instant, so that two steps do not take twice the time. A poll stays one.
    fn absolute(&self, wait: Wait) -> Wait {
        match wait {
            Wait::For(_) => Wait::from_deadline(wait.deadline(self.attachment)),
            other => other,
        }
    }

    /// Enqueues a block, waiting until the regulator admits it if `wait` allows.
    fn enqueue_in_time(&self, block: Block<'_, A::Sending, T>, bytes: u32, wait: Wait) -> Result<(), Error> {
        let mut block = block;
        let deadline = wait.deadline(self.attachment);
        loop {
            let retry_ns = match block.enqueue_bytes(bytes) {
                Ok(()) => return Ok(()),
                Err(Rejected { error: Error::Throttled { retry_ns }, block: back }) => {
                    block = back;
                    retry_ns
                }
                Err(rejected) => return Err(rejected.error),
            };
            let at_ns = self.attachment.now_ns().saturating_add(retry_ns);
            let admitted_in_time = match deadline {
                Deadline::Poll => false,
                Deadline::At(ns) => at_ns <= ns,
                Deadline::Forever => true,
            };
            if !admitted_in_time {
                return Err(Error::Throttled { retry_ns });
            }
            self.attachment.sleep_until(at_ns);
        }
    }

    /// Asks that the receiver be told (`mdcom_fifo_notify`); the filter decides when.
    #[inline(always)]
    pub fn notify(&self) -> Notified {
        self.end.notify()
    }

    /// Waits for an event of the receiver (`mdcom_fifo_wait` on the sending side).
    ///
    /// # Errors
    /// [`Error::Timeout`], [`Error::PeerGone`].
    pub fn wait(&self, wait: Wait) -> Result<(), Error> {
        self.end.wait(wait.deadline(self.attachment))
    }

    /// Replaces the notification filter (`mdcom_filter_set`); what the old one held back is raised.
    pub fn set_filter(&self, rule: FilterRule) {
        self.end.set_filter(rule);
    }

    /// Re-initialises the channel from this end (`mdcom_fifo_init`): queued messages are void.
    ///
    /// Takes `&mut self`, so no block can be in hand.
    pub fn reset(&mut self) {
        self.end.reset();
    }

    /// How full the channel is (`mdcom_sense_fifo`).
    pub fn sense(&self) -> Usage {
        self.end.usage()
    }

    /// Bytes of a block.
    pub fn block_bytes(&self) -> u32 {
        self.end.block_bytes()
    }
}

impl<A: Attachment> Sender<'_, A, Bytes> {
    /// Sends a copy of `bytes`: allocate, write, enqueue, notify; waits for a block, and for the regulator.
    ///
    /// # Errors
    /// [`Error::TooLong`], and those of [`Sender::alloc`] and [`Block::enqueue`].
    pub fn send(&self, bytes: &[u8], wait: Wait) -> Result<Notified, Error> {
        if bytes.len() > self.end.block_bytes() as usize {
            return Err(Error::TooLong);
        }
        let wait = self.absolute(wait);
        let mut block = self.alloc(wait)?;
        block[..bytes.len()].copy_from_slice(bytes);
        self.enqueue_in_time(block, bytes.len() as u32, wait)?;
        Ok(self.notify())
    }
}

impl<A: Attachment, T: Payload> Sender<'_, A, T> {
    /// Sends a value: allocate, write, enqueue, notify; waits for a block, and for the regulator.
    ///
    /// # Errors
    /// Those of [`Sender::alloc`] and [`Block::enqueue`].
    pub fn send(&self, value: T, wait: Wait) -> Result<Notified, Error> {
        let wait = self.absolute(wait);
        let mut block = self.alloc(wait)?;
        *block = value;
        self.enqueue_in_time(block, size_of::<T>() as u32, wait)?;
        Ok(self.notify())
    }
}

impl<'s, E: SendingEnd, T> Block<'s, E, T> {
    #[inline(always)]
    fn enqueue_bytes(mut self, bytes: u32) -> Result<(), Rejected<Self>> {
        let Some(loan) = self.loan.take() else { return Ok(()) };
        let end = self.end;
        end.enqueue(loan, bytes).map_err(|(error, loan)| {
            self.loan = Some(loan);
            Rejected { error, block: self }
        })
    }

    /// Gives the block back unsent (`mdcom_fifo_free`); the same as dropping it.
    pub fn free(self) {}

    fn memory(&self) -> &[u8] {
        self.loan.as_deref().unwrap_or_default()
    }

    fn memory_mut(&mut self) -> &mut [u8] {
        self.loan.as_deref_mut().unwrap_or_default()
    }
}

impl<E: SendingEnd> Block<'_, E, Bytes> {
    /// Enqueues the first `bytes` bytes of the block (`mdcom_fifo_enqueue`).
    ///
    /// # Errors
    /// With the block: [`Error::TooLong`], [`Error::Throttled`].
    #[inline(always)]
    pub fn enqueue(self, bytes: u32) -> Result<(), Rejected<Self>> {
        self.enqueue_bytes(bytes)
    }
}

impl<E: SendingEnd, T: Payload> Block<'_, E, T> {
    /// Enqueues the value (`mdcom_fifo_enqueue`).
    ///
    /// # Errors
    /// With the block: [`Error::Throttled`].
    #[inline(always)]
    pub fn enqueue(self) -> Result<(), Rejected<Self>> {
        self.enqueue_bytes(size_of::<T>() as u32)
    }
}

impl<E: SendingEnd, T> Drop for Block<'_, E, T> {
    #[inline(always)]
    fn drop(&mut self) {
        if let Some(loan) = self.loan.take() {
            // The loan came from this very end, so it cannot be refused.
            let _ = self.end.free(loan);
        }
    }
}

impl<E: SendingEnd> Deref for Block<'_, E, Bytes> {
    type Target = [u8];
    #[inline(always)]
    fn deref(&self) -> &[u8] {
        self.memory()
    }
}

impl<E: SendingEnd> DerefMut for Block<'_, E, Bytes> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [u8] {
        self.memory_mut()
    }
}

/// The type fits every block of the channel: checked when the end was opened, and blocks are aligned to 16 bytes.
const FITS: &str = "opened with a type that fits";

impl<E: SendingEnd, T: Payload> Deref for Block<'_, E, T> {
    type Target = T;
    #[inline(always)]
    fn deref(&self) -> &T {
        T::ref_from_prefix(self.memory()).map(|(value, _)| value).unwrap_or_else(|_| unreachable!("{FITS}"))
    }
}

impl<E: SendingEnd, T: Payload> DerefMut for Block<'_, E, T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut T {
        T::mut_from_prefix(self.memory_mut()).map(|(value, _)| value).unwrap_or_else(|_| unreachable!("{FITS}"))
    }
}

//! The receiving end of a FIFO channel and the messages it hands out.

use core::future::poll_fn;
use core::marker::PhantomData;
use core::mem::size_of;

use musubi_core::Error;
use musubi_core::channel::{Attachment, Deadline, ReceivingEnd, Usage};
use musubi_core::fifo::Received;

use crate::{Bytes, Payload, Wait};

/// The receiving end of a FIFO channel; `T` is the message type or [`Bytes`].
///
/// ```
/// # use musubi_linux::{Options, Participant};
/// # let plan = musubi_config::load("../../examples/talk.toml".as_ref()).unwrap().leak();
/// # let instance = format!("doc-receiver-{}", std::process::id());
/// # let at = |domain| Participant::attach(Options { instance: Some(instance.clone()), ..Options::new(plan, domain) });
/// # let (control, panel) = (at("control")?, at("panel")?);
/// use musubi_mdcom::{Mdcom, Wait};
///
/// // Any plain data that fits a block; here a number.
/// let sender = Mdcom::init(&panel).sender_of::<u64>("readings")?;
/// let receiver = Mdcom::init(&control).receiver_of::<u64>("readings")?;
/// sender.send(2150, Wait::Forever)?;
/// assert_eq!(receiver.recv(Wait::Forever)?, 2150);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Receiver<'a, A: Attachment, T> {
    attachment: &'a A,
    end: A::Receiving,
    carries: PhantomData<fn() -> T>,
}

/// A received block in our hands; it goes back to the sender when it is dropped.
///
/// ```
/// # use musubi_linux::{Options, Participant};
/// # let plan = musubi_config::load("../../examples/talk.toml".as_ref()).unwrap().leak();
/// # let instance = format!("doc-message-{}", std::process::id());
/// # let at = |domain| Participant::attach(Options { instance: Some(instance.clone()), ..Options::new(plan, domain) });
/// # let (control, panel) = (at("control")?, at("panel")?);
/// use musubi_mdcom::{Mdcom, Wait};
///
/// let sender = Mdcom::init(&control).sender("greetings")?;
/// let receiver = Mdcom::init(&panel).receiver("greetings")?;
/// sender.send(b"hello", Wait::Forever)?;
/// let message = receiver.next(Wait::Forever)?;
/// let mut bytes = [0; 64];
/// assert_eq!(message.read_into(&mut bytes)?, b"hello");
/// message.free();
/// assert_eq!(receiver.sense().held, 0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// The bytes are in the sender's memory and its claim, so they are copied out; there is no reference to them.
#[must_use = "a message that is dropped unread is lost"]
#[derive(Debug)]
pub struct Message<'r, E: ReceivingEnd, T> {
    end: &'r E,
    received: Option<Received<'r>>,
    carries: PhantomData<fn() -> T>,
}

impl<'a, A: Attachment, T> Receiver<'a, A, T> {
    pub(crate) fn new(attachment: &'a A, end: A::Receiving) -> Self {
        Receiver { attachment, end, carries: PhantomData }
    }

    pub(crate) fn parts(&self) -> (&A, &A::Receiving) {
        (self.attachment, &self.end)
    }

    /// Waits for a notified message or an event of the sender (`mdcom_fifo_wait`).
    ///
    /// # Errors
    /// [`Error::Timeout`]; once [`Error::PeerGone`] when a sender has gone and its messages have been dequeued.
    #[inline(always)]
    pub fn wait(&self, wait: Wait) -> Result<(), Error> {
        match self.end.wait(Deadline::Poll) {
            // Only who has to wait needs to know the time.
            Err(Error::Timeout) if wait != Wait::Poll => self.end.wait(wait.deadline(self.attachment)),
            done => done,
        }
    }

    /// [`Receiver::wait`] under any executor.
    ///
    /// # Errors
    /// Once [`Error::PeerGone`].
    pub async fn event(&self) -> Result<(), Error> {
        poll_fn(|context| self.end.poll_event(context)).await
    }

    /// Takes the next message without waiting (`mdcom_fifo_dequeue`). Several may be out at once.
    ///
    /// # Errors
    /// [`Error::Empty`]; [`Error::PeerFault`] if the sender announced what cannot be (skipped and counted).
    #[inline(always)]
    pub fn dequeue(&self) -> Result<Message<'_, A::Receiving, T>, Error> {
        let received = self.end.dequeue()?;
        Ok(Message { end: &self.end, received: Some(received), carries: PhantomData })
    }

    /// Waits until a message can be taken, and takes it.
    ///
    /// # Errors
    /// Those of [`Receiver::wait`]; [`Error::PeerFault`].
    #[inline(always)]
    pub fn next(&self, wait: Wait) -> Result<Message<'_, A::Receiving, T>, Error> {
        match self.dequeue() {
            Err(Error::Empty) => self.next_later(wait),
            done => done,
        }
    }

    /// [`Receiver::next`] when there was none at the first look.
    fn next_later(&self, wait: Wait) -> Result<Message<'_, A::Receiving, T>, Error> {
        let wait = Wait::from_deadline(wait.deadline(self.attachment));
        loop {
            self.wait(wait)?;
            match self.dequeue() {
                // An event without a message.
                Err(Error::Empty) => {}
                done => return done,
            }
        }
    }

    /// [`Receiver::next`] under any executor.
    ///
    /// # Errors
    /// Once [`Error::PeerGone`]; [`Error::PeerFault`].
    pub async fn next_async(&self) -> Result<Message<'_, A::Receiving, T>, Error> {
        loop {
            self.event().await?;
            match self.dequeue() {
                Err(Error::Empty) => {}
                done => return done,
            }
        }
    }

    /// Tells the sender (the last step of the paper's figure 4).
    pub fn notify(&self) {
        self.end.notify();
    }

    /// Re-initialises the channel from this end (`mdcom_fifo_init`): everything queued goes back unread.
    ///
    /// Takes `&mut self`, so no message can be in hand.
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

impl<A: Attachment, T: Payload> Receiver<'_, A, T> {
    /// Waits for a message and gives its value.
    ///
    /// # Errors
    /// Those of [`Receiver::next`]; [`Error::PeerFault`] if it is not as long as a `T`.
    pub fn recv(&self, wait: Wait) -> Result<T, Error> {
        self.next(wait)?.read()
    }
}

impl<'r, E: ReceivingEnd, T> Message<'r, E, T> {
    /// Payload bytes.
    pub fn len(&self) -> u32 {
        self.received.as_ref().map_or(0, Received::len)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Copies payload bytes from `offset` on; gives how many there were, at most `into.len()`.
    #[inline(always)]
    pub fn copy_to(&self, offset: u32, into: &mut [u8]) -> usize {
        self.received.as_ref().map_or(0, |received| received.copy_to(offset, into))
    }

    /// Address of the payload, for DMA and foreign code; what lies there is the sender's claim and may change.
    #[inline(always)]
    pub fn address(&self) -> *const u8 {
        self.received.as_ref().map_or(core::ptr::null(), Received::address)
    }

    /// The payload in place, if the plan declares the sender's domain trusted.
    pub fn trusted_bytes(&self) -> Option<&[u8]> {
        self.received.as_ref().and_then(Received::trusted_bytes)
    }

    /// Gives the block back (`mdcom_fifo_free`); the same as dropping it.
    pub fn free(self) {}
}

impl<E: ReceivingEnd, T: Payload> Message<'_, E, T> {
    /// The value, copied out once.
    ///
    /// # Errors
    /// [`Error::PeerFault`] if the message is not as long as a `T`.
    #[inline(always)]
    pub fn read(&self) -> Result<T, Error> {
        if self.len() as usize != size_of::<T>() {
            return Err(Error::PeerFault);
        }
        let mut value = T::new_zeroed();
        self.copy_to(0, value.as_mut_bytes());
        Ok(value)
    }
}

impl<E: ReceivingEnd> Message<'_, E, Bytes> {
    /// Copies the whole payload into the front of `into` and gives that part.
    ///
    /// # Errors
    /// [`Error::TooLong`] if `into` is shorter than the message.
    pub fn read_into<'b>(&self, into: &'b mut [u8]) -> Result<&'b mut [u8], Error> {
        let part = into.get_mut(..self.len() as usize).ok_or(Error::TooLong)?;
        self.copy_to(0, part);
        Ok(part)
    }
}

impl<E: ReceivingEnd, T> Drop for Message<'_, E, T> {
    #[inline(always)]
    fn drop(&mut self) {
        if let Some(received) = self.received.take() {
            // It came from this very end, so it cannot be refused.
            let _ = self.end.free(received);
        }
    }
}

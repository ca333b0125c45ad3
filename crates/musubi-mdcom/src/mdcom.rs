//! Opening channels by name or number, and what is known of the peers.

use core::fmt;
use core::mem::{align_of, size_of};

use musubi_core::channel::{Attachment, ReceivingEnd, SendingEnd, SharedSegment};

use crate::{Bytes, Payload, Receiver, Sender, Shared, Wait};

/// Alignment of every payload in bytes (docs/layout.md).
const PAYLOAD_ALIGN: usize = 16;

/// MDCOM on a participant's attachment.
///
/// ```
/// use musubi_linux::{Options, Participant};
/// use musubi_mdcom::{Channel, Mdcom, OpenError};
///
/// let plan = musubi_config::load("../../examples/talk.toml".as_ref()).unwrap().leak();
/// // Other runs of the same system do not meet this one.
/// let instance = Some(format!("doc-mdcom-{}", std::process::id()));
/// let participant = Participant::attach(Options { instance, ..Options::new(plan, "control") })?;
/// let mdcom = Mdcom::init(&participant);
/// assert_eq!(mdcom.sense_process("panel")?, 0);
/// // By name, or by the number that the generated files have.
/// drop(mdcom.sender("greetings")?);
/// assert!(matches!(mdcom.sender(Channel::Number(9)), Err(OpenError::Unknown)));
/// assert!(matches!(mdcom.sender_of::<[u64; 16]>("greetings"), Err(OpenError::TypeDoesNotFit { .. })));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Mdcom<'a, A> {
    attachment: &'a A,
}

impl<A> Clone for Mdcom<'_, A> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<A> Copy for Mdcom<'_, A> {}

/// A channel or domain, by its name in the description or its number in the generated files.
#[derive(Clone, Copy, Debug)]
pub enum Channel<'n> {
    /// By name.
    Name(&'n str),
    /// By number.
    Number(u16),
}

impl<'n> From<&'n str> for Channel<'n> {
    fn from(name: &'n str) -> Self {
        Channel::Name(name)
    }
}

impl From<u16> for Channel<'_> {
    fn from(number: u16) -> Self {
        Channel::Number(number)
    }
}

impl Channel<'_> {
    fn resolve(self, named: impl Fn(&str) -> Option<u16>, count: usize) -> Option<u16> {
        match self {
            Channel::Name(name) => named(name),
            Channel::Number(number) => (usize::from(number) < count).then_some(number),
        }
    }
}

/// Why a channel could not be opened. `E` is the port's error.
#[derive(Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum OpenError<E> {
    /// The plan has no channel or domain of this kind with this name or number.
    Unknown,
    /// The type does not fit the channel: larger than a block, or aligned to more than 16 bytes.
    TypeDoesNotFit {
        /// Bytes of the type.
        type_bytes: usize,
        /// Bytes of a block.
        block_bytes: u32,
    },
    /// The port refused.
    Port(E),
}

impl<E: fmt::Display> fmt::Display for OpenError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OpenError::Unknown => f.write_str("the description has no such channel"),
            OpenError::TypeDoesNotFit { type_bytes, block_bytes } => {
                write!(f, "a type of {type_bytes} bytes does not fit a block of {block_bytes} bytes aligned to 16")
            }
            OpenError::Port(error) => error.fmt(f),
        }
    }
}

impl<E: fmt::Debug + fmt::Display> core::error::Error for OpenError<E> {}

impl<'a, A: Attachment> Mdcom<'a, A> {
    /// MDCOM on this attachment (`mdcom_init`).
    pub fn init(attachment: &'a A) -> Self {
        Mdcom { attachment }
    }

    /// How many participants of a domain are attached (`mdcom_sense_process`).
    ///
    /// # Errors
    /// [`OpenError::Unknown`].
    pub fn sense_process<'n>(&self, domain: impl Into<Channel<'n>>) -> Result<u16, OpenError<A::Error>> {
        let plan = self.attachment.plan();
        let number = domain.into().resolve(|name| plan.domain(name), plan.domains.len());
        number.map(|number| self.attachment.attached(number)).ok_or(OpenError::Unknown)
    }

    /// The sending end of a channel of bytes.
    ///
    /// # Errors
    /// [`OpenError`].
    pub fn sender<'n>(&self, fifo: impl Into<Channel<'n>>) -> Result<Sender<'a, A, Bytes>, OpenError<A::Error>> {
        let end = self.attachment.open_sending(self.fifo(fifo.into())?).map_err(OpenError::Port)?;
        Ok(Sender::new(self.attachment, end))
    }

    /// The sending end of a channel whose every message is a `T`.
    ///
    /// # Errors
    /// [`OpenError`].
    pub fn sender_of<'n, T: Payload>(
        &self,
        fifo: impl Into<Channel<'n>>,
    ) -> Result<Sender<'a, A, T>, OpenError<A::Error>> {
        let end = self.attachment.open_sending(self.fifo(fifo.into())?).map_err(OpenError::Port)?;
        fits::<T, _>(end.block_bytes())?;
        Ok(Sender::new(self.attachment, end))
    }

    /// The receiving end of a channel of bytes.
    ///
    /// # Errors
    /// [`OpenError`].
    pub fn receiver<'n>(&self, fifo: impl Into<Channel<'n>>) -> Result<Receiver<'a, A, Bytes>, OpenError<A::Error>> {
        let end = self.attachment.open_receiving(self.fifo(fifo.into())?).map_err(OpenError::Port)?;
        Ok(Receiver::new(self.attachment, end))
    }

    /// The receiving end of a channel whose every message is a `T`.
    ///
    /// # Errors
    /// [`OpenError`].
    pub fn receiver_of<'n, T: Payload>(
        &self,
        fifo: impl Into<Channel<'n>>,
    ) -> Result<Receiver<'a, A, T>, OpenError<A::Error>> {
        let end = self.attachment.open_receiving(self.fifo(fifo.into())?).map_err(OpenError::Port)?;
        fits::<T, _>(end.block_bytes())?;
        Ok(Receiver::new(self.attachment, end))
    }

    /// An SMEM channel that holds a `T` at its beginning (`mdcom_smemch_get`).
    ///
    /// # Errors
    /// [`OpenError`].
    pub fn shared<'n, T: Payload>(
        &self,
        smem: impl Into<Channel<'n>>,
        wait: Wait,
    ) -> Result<Shared<'a, A, T>, OpenError<A::Error>> {
        let plan = self.attachment.plan();
        let number = smem.into().resolve(|name| plan.smem(name), plan.smems.len()).ok_or(OpenError::Unknown)?;
        let deadline = wait.deadline(self.attachment);
        let segment = self.attachment.open_segment(number, deadline).map_err(OpenError::Port)?;
        fits::<T, _>(segment.bytes())?;
        Ok(Shared::new(self.attachment, segment))
    }

    fn fifo(&self, fifo: Channel<'_>) -> Result<u16, OpenError<A::Error>> {
        let plan = self.attachment.plan();
        fifo.resolve(|name| plan.fifo(name), plan.fifos.len()).ok_or(OpenError::Unknown)
    }
}

fn fits<T, E>(block_bytes: u32) -> Result<(), OpenError<E>> {
    if size_of::<T>() <= block_bytes as usize && align_of::<T>() <= PAYLOAD_ALIGN {
        Ok(())
    } else {
        Err(OpenError::TypeDoesNotFit { type_bytes: size_of::<T>(), block_bytes })
    }
}

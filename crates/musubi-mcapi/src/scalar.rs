//! Scalar channels: words of one size.
//!
//! ```
//! # use std::sync::Arc;
//! # use musubi_mcapi::{Deadline, Error, Node, ScalarReceiver, ScalarSender, Topology};
//! # fn main() -> Result<(), Error> {
//! # let mut system = Topology::single_machine();
//! # system.system = format!("doc-scalar-{}", std::process::id());
//! # let system = Arc::new(system);
//! let node = Node::initialize(&system, 0, 1)?;
//! let (from, to) = (node.create_endpoint(None)?, node.create_endpoint(None)?);
//! node.connect_scalars(&from, &to)?.wait(Deadline::Forever)?;
//! let mut sender = ScalarSender::<u32>::open(&from)?;
//! let receiver = ScalarReceiver::<u32>::open(&to)?.wait(Deadline::Forever)?;
//! let sender = sender.wait(Deadline::Forever)?;
//!
//! sender.send(42, Deadline::Forever)?;
//! assert_eq!(receiver.receive(Deadline::Forever)?, 42);
//! # Ok(())
//! # }
//! ```

use core::future::poll_fn;
use core::marker::PhantomData;
use core::task::Poll;

use crate::engine::{ChannelKind, Sending};
use crate::running::Running;

use crate::channel::{Closing, End, Opening};
use crate::endpoint::{Endpoint, Named};
use crate::packet::went;
use crate::{EndpointId, Error};

mod sealed {
    pub trait Sealed {}
}

/// The words of scalar channels: `u8`, `u16`, `u32`, `u64`.
pub trait Scalar: sealed::Sealed + Copy + Send + Sync + 'static {
    /// Bytes of a word.
    const BYTES: u8;
    #[doc(hidden)]
    fn widen(self) -> u64;
    #[doc(hidden)]
    fn narrow(value: u64) -> Self;
}

macro_rules! scalars {
    ($($word:ty),*) => {$(
        impl sealed::Sealed for $word {}
        impl Scalar for $word {
            const BYTES: u8 = size_of::<$word>() as u8;
            #[inline]
            fn widen(self) -> u64 {
                self.into()
            }
            #[inline]
            fn narrow(value: u64) -> $word {
                value as $word
            }
        }
    )*};
}
scalars!(u8, u16, u32, u64);

/// The sending end of a scalar channel.
#[derive(Debug)]
pub struct ScalarSender<T, R: Running> {
    end: End<R>,
    word: PhantomData<T>,
}

impl<T: Scalar, R: Running> ScalarSender<T, R> {
    /// Opens an endpoint of this node as the sending end; it may be connected before or after.
    ///
    /// # Errors
    /// [`Error::EndpointInvalid`], [`Error::ChannelType`], [`Error::ChannelDirection`], [`Error::ChannelOpen`],
    /// [`Error::ChannelOpenPending`].
    pub fn open(endpoint: &Endpoint<R>) -> Result<Opening<ScalarSender<T, R>, R>, Error> {
        End::open(endpoint, ChannelKind::Scalar, false, |end| ScalarSender { end, word: PhantomData })
    }

    /// Sends a word, as soon as the receiver has room.
    ///
    /// # Errors
    /// [`Error::Timeout`], [`Error::Transmission`] if the channel has broken, [`Error::ChannelInvalid`] if the receiver has
    /// closed it.
    #[inline]
    pub fn send(&self, word: T, deadline: R::Deadline) -> Result<(), Error> {
        let handle = self.end.handle;
        let runtime = &self.end.endpoint.node().runtime;
        match runtime.with(|engine, links| engine.send_scalar(handle, T::BYTES, word.widen(), links))?? {
            Sending::Blocked => self.send_later(word, deadline),
            _ => Ok(()),
        }
    }

    /// [`ScalarSender::send`], tried in vain.
    #[cold]
    fn send_later(&self, word: T, deadline: R::Deadline) -> Result<(), Error> {
        let handle = self.end.handle;
        let runtime = &self.end.endpoint.node().runtime;
        runtime.wait_for(deadline, |engine, links| match engine.send_scalar(handle, T::BYTES, word.widen(), links) {
            Ok(Sending::Blocked) => None,
            Ok(_) => Some(Ok(())),
            Err(error) => Some(Err(error)),
        })?
    }

    /// Sends a word if it can go now; true if it went.
    ///
    /// # Errors
    /// As [`ScalarSender::send`], but never a timeout.
    #[inline]
    pub fn try_send(&self, word: T) -> Result<bool, Error> {
        went(self.send(word, R::POLL))
    }

    /// Closes this end.
    ///
    /// # Errors
    /// [`Error::ChannelInvalid`] if it is closed already.
    pub fn close(self) -> Result<Closing<R>, Error> {
        self.end.close()
    }
}

impl<T, R: Running> Named for ScalarSender<T, R> {
    fn name(&self) -> EndpointId {
        self.end.name()
    }
}

/// The receiving end of a scalar channel.
#[derive(Debug)]
pub struct ScalarReceiver<T, R: Running> {
    end: End<R>,
    word: PhantomData<T>,
}

impl<T: Scalar, R: Running> ScalarReceiver<T, R> {
    /// Opens an endpoint of this node as the receiving end; it may be connected before or after.
    ///
    /// # Errors
    /// As [`ScalarSender::open`].
    pub fn open(endpoint: &Endpoint<R>) -> Result<Opening<ScalarReceiver<T, R>, R>, Error> {
        End::open(endpoint, ChannelKind::Scalar, true, |end| ScalarReceiver { end, word: PhantomData })
    }

    /// The next word.
    ///
    /// # Errors
    /// [`Error::Timeout`]; [`Error::ScalarSize`] if the sender sent one of another size, which stays where it is;
    /// [`Error::ChannelInvalid`] once the sender has closed and everything is read; [`Error::Transmission`].
    #[inline]
    pub fn receive(&self, deadline: R::Deadline) -> Result<T, Error> {
        let handle = self.end.handle;
        let word = self
            .runtime()
            .wait_for(deadline, |engine, links| engine.receive_scalar(handle, T::BYTES, links).transpose())??;
        Ok(T::narrow(word))
    }

    /// The next word if there is one.
    ///
    /// # Errors
    /// As [`ScalarReceiver::receive`], but never a timeout.
    #[inline]
    pub fn try_receive(&self) -> Result<Option<T>, Error> {
        match self.receive(R::POLL) {
            Ok(word) => Ok(Some(word)),
            Err(Error::Timeout) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The next word, without blocking the thread.
    ///
    /// # Errors
    /// As [`ScalarReceiver::receive`], but never a timeout.
    pub async fn next(&self) -> Result<T, Error> {
        let handle = self.end.handle;
        poll_fn(|context| {
            // In this order: what comes after the waker is registered wakes it.
            if let Err(error) = self.runtime().wake_when_changed(context.waker()) {
                return Poll::Ready(Err(error.into()));
            }
            let taken = self.runtime().with_aside(|engine, links| engine.receive_scalar(handle, T::BYTES, links));
            match taken.map_err(Error::from).and_then(|taken| taken) {
                Ok(Some(word)) => Poll::Ready(Ok(T::narrow(word))),
                Ok(None) => Poll::Pending,
                Err(error) => Poll::Ready(Err(error)),
            }
        })
        .await
    }

    /// Number of words that are here.
    ///
    /// # Errors
    /// [`Error::ChannelInvalid`].
    pub fn available(&self) -> Result<usize, Error> {
        self.end.available()
    }

    /// Closes this end; what is unread is dropped.
    ///
    /// # Errors
    /// [`Error::ChannelInvalid`] if it is closed already.
    pub fn close(self) -> Result<Closing<R>, Error> {
        self.end.close()
    }

    fn runtime(&self) -> &R {
        &self.end.endpoint.node().runtime
    }
}

impl<T, R: Running> Named for ScalarReceiver<T, R> {
    fn name(&self) -> EndpointId {
        self.end.name()
    }
}

//! Packet channels.
//!
//! What you may rely on: packets arrive in order, once. Over shared memory a received [`Packet`] lies where the sender
//! put it; it is copied nowhere unless the program copies it. Packets not yet dropped hold the sender back, never lose
//! data. They may be dropped in any order, also after the channel was closed.
//!
//! ```
//! # use std::sync::Arc;
//! # use musubi_mcapi::{Deadline, Error, Node, PacketReceiver, PacketSender, Topology};
//! # fn main() -> Result<(), Error> {
//! # let mut system = Topology::single_machine();
//! # system.system = format!("doc-packet-{}", std::process::id());
//! # let system = Arc::new(system);
//! let node = Node::initialize(&system, 0, 1)?;
//! let (from, to) = (node.create_endpoint(None)?, node.create_endpoint(None)?);
//! node.connect_packets(&from, &to)?.wait(Deadline::Forever)?;
//! let (mut sender, mut receiver) = (PacketSender::open(&from)?, PacketReceiver::open(&to)?);
//! let (sender, receiver) = (sender.wait(Deadline::Forever)?, receiver.wait(Deadline::Forever)?);
//!
//! sender.send(&[7; 3000], Deadline::Forever)?;
//! let packet = receiver.receive(Deadline::Forever)?;
//! assert_eq!(packet.len(), 3000);
//! assert!(packet.to_vec().iter().all(|byte| *byte == 7));
//!
//! // What can be shared is not copied on its way to a network.
//! let picture = Arc::new(vec![8; 500_000]);
//! sender.send_shared(Arc::clone(&picture), Deadline::Forever)?;
//! assert_eq!(receiver.receive(Deadline::Forever)?.to_vec(), *picture);
//! // Several at once cost fewer system calls.
//! assert_eq!(sender.send_burst(&[vec![1].into(), vec![2; 100].into()], Deadline::Forever)?, 2);
//! # Ok(())
//! # }
//! ```

use alloc::vec;
use alloc::vec::Vec;

use crate::engine::{ChannelHandle, ChannelKind, Outcome, Sending};
use crate::running::Running;
use musubi_transport::links::{Block as _, Payload, SharedBytes};
use musubi_transport::running::Ways as _;

use crate::channel::{Closing, End, Opening};
use crate::endpoint::{Endpoint, Named};
use crate::request::Request;
use crate::{EndpointId, Error};

/// The sending end of a packet channel.
#[derive(Debug)]
pub struct PacketSender<R: Running> {
    end: End<R>,
}

impl<R: Running> PacketSender<R> {
    /// Opens an endpoint of this node as the sending end; it may be connected before or after.
    ///
    /// # Errors
    /// [`Error::EndpointInvalid`], [`Error::ChannelType`], [`Error::ChannelDirection`], [`Error::ChannelOpen`],
    /// [`Error::ChannelOpenPending`].
    pub fn open(endpoint: &Endpoint<R>) -> Result<Opening<PacketSender<R>, R>, Error> {
        End::open(endpoint, ChannelKind::Packet, false, |end| PacketSender { end })
    }

    /// Sends a packet, as soon as the receiver has room. Over a network it is on its way then; if it is lost, that breaks
    /// the channel, and both sides are told.
    ///
    /// # Errors
    /// [`Error::PacketSize`], [`Error::Timeout`], [`Error::Transmission`] if the channel has broken,
    /// [`Error::ChannelInvalid`] if the receiver has closed it.
    pub fn send(&self, bytes: &[u8], deadline: R::Deadline) -> Result<(), Error> {
        let handle = self.end.handle;
        self.runtime().wait_for(deadline, |engine, links| match engine.send_packet(handle, bytes, links) {
            Ok(Sending::Blocked) => None,
            Ok(_) => Some(Ok(())),
            Err(error) => Some(Err(error)),
        })?
    }

    /// As [`PacketSender::send`], of a packet in memory that the node shares with the program: over a network it is not
    /// copied but kept where it lies until the receiving node has acknowledged it, or the link is lost. Within shared memory,
    /// and where it is short, it is copied as ever. A vector is given away; who keeps a clone of an
    /// [`Arc`](alloc::sync::Arc) may send the same packet again, and sees by its count when the node needs it no longer.
    ///
    /// # Errors
    /// As [`PacketSender::send`].
    pub fn send_shared(&self, bytes: impl Into<SharedBytes>, deadline: R::Deadline) -> Result<(), Error> {
        let (handle, bytes) = (self.end.handle, bytes.into());
        self.runtime().wait_for(deadline, |engine, links| match engine.send_packet_shared(handle, &bytes, links) {
            Ok(Sending::Blocked) => None,
            Ok(_) => Some(Ok(())),
            Err(error) => Some(Err(error)),
        })?
    }

    /// As [`PacketSender::send_shared`], of several packets, in order: over a network they go out together, in fewer and
    /// larger writes than one by one. Gives how many went: all of them, or those before the deadline passed or the channel
    /// ended, if there were any; then the next call says why.
    ///
    /// # Errors
    /// As [`PacketSender::send`], if none went. If one is too large, none goes.
    pub fn send_burst(&self, packets: &[SharedBytes], deadline: R::Deadline) -> Result<usize, Error> {
        let (handle, mut gone) = (self.end.handle, 0);
        let ended = self.runtime().wait_for(deadline, |engine, links| {
            match engine.send_packets_shared(handle, &packets[gone..], links) {
                Ok(more) => gone += more,
                Err(error) => return Some(Err(error)),
            }
            (gone == packets.len()).then_some(Ok(()))
        });
        match ended.map_err(Error::from).and_then(|ended| ended) {
            Err(error) if gone == 0 => Err(error),
            _ => Ok(gone),
        }
    }

    /// Sends a packet if it can go now; true if it went.
    ///
    /// # Errors
    /// As [`PacketSender::send`], but never a timeout.
    pub fn try_send(&self, bytes: &[u8]) -> Result<bool, Error> {
        went(self.send(bytes, R::POLL))
    }

    /// Begins to send a packet; complete when the receiving node has it. It is shared as by [`PacketSender::send_shared`]; a
    /// request that is dropped before may leave it with the link for longer.
    ///
    /// # Errors
    /// As [`PacketSender::send`]; [`Error::RequestLimit`], [`Error::MemoryLimit`].
    pub fn request_send(&self, bytes: impl Into<SharedBytes>) -> Result<Request<(), R>, Error> {
        let handle = self.end.handle;
        self.end.endpoint.node().request(|engine, links| engine.send_packet_later(handle, bytes, links), |_| Ok(()))
    }

    /// Closes this end.
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

impl<R: Running> Named for PacketSender<R> {
    fn name(&self) -> EndpointId {
        self.end.name()
    }
}

/// What a call with [`Deadline::Poll`] came to.
pub(crate) fn went(result: Result<(), Error>) -> Result<bool, Error> {
    match result {
        Ok(()) => Ok(true),
        Err(Error::Timeout) => Ok(false),
        Err(error) => Err(error),
    }
}

/// The receiving end of a packet channel.
#[derive(Debug)]
pub struct PacketReceiver<R: Running> {
    end: End<R>,
}

impl<R: Running> PacketReceiver<R> {
    /// Opens an endpoint of this node as the receiving end; it may be connected before or after.
    ///
    /// # Errors
    /// As [`PacketSender::open`].
    pub fn open(endpoint: &Endpoint<R>) -> Result<Opening<PacketReceiver<R>, R>, Error> {
        End::open(endpoint, ChannelKind::Packet, true, |end| PacketReceiver { end })
    }

    /// The next packet.
    ///
    /// # Errors
    /// [`Error::Timeout`]; [`Error::ChannelInvalid`] once the sender has closed and everything is read;
    /// [`Error::Transmission`] once everything is read that came before the channel broke.
    pub fn receive(&self, deadline: R::Deadline) -> Result<Packet<R>, Error> {
        let (handle, runtime) = (self.end.handle, &self.end.endpoint.node().runtime);
        let payload =
            runtime.wait_for(deadline, |engine, links| engine.receive_packet(handle, links).transpose())??;
        Ok(Packet { payload: Some(payload), node: runtime.clone(), handle })
    }

    /// The next packet if there is one.
    ///
    /// # Errors
    /// As [`PacketReceiver::receive`], but never a timeout.
    pub fn try_receive(&self) -> Result<Option<Packet<R>>, Error> {
        match self.receive(R::POLL) {
            Ok(packet) => Ok(Some(packet)),
            Err(Error::Timeout) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Begins to receive: takes the next packet that is here or comes.
    ///
    /// # Errors
    /// As [`PacketReceiver::receive`]; [`Error::RequestLimit`].
    pub fn request_receive(&self) -> Result<Request<Packet<R>, R>, Error> {
        let handle = self.end.handle;
        let node = self.end.endpoint.node();
        let runtime = node.runtime.clone();
        node.request(
            |engine, links| engine.receive_packet_later(handle, links),
            move |outcome| match outcome {
                Outcome::Packet(payload) => Ok(Packet { payload: Some(payload), node: runtime, handle }),
                _ => Err(Error::General),
            },
        )
    }

    /// Number of packets that are here.
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
}

impl<R: Running> Named for PacketReceiver<R> {
    fn name(&self) -> EndpointId {
        self.end.name()
    }
}

/// A packet in hand. Dropping it gives its buffer back to the channel.
#[derive(Debug)]
pub struct Packet<R: Running> {
    /// Always there until it is dropped.
    payload: Option<Payload<R::Block>>,
    node: R,
    handle: ChannelHandle,
}

impl<R: Running> Packet<R> {
    /// Number of bytes.
    pub fn len(&self) -> usize {
        self.payload.as_ref().map_or(0, Payload::len)
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Copies as much as fits; gives the number of bytes.
    pub fn copy_to(&self, into: &mut [u8]) -> usize {
        self.payload.as_ref().map_or(0, |payload| payload.copy_to(into))
    }

    /// Copies from `offset`, as much as there is and fits, without touching the rest; gives the number of bytes.
    pub fn copy_from(&self, offset: usize, into: &mut [u8]) -> usize {
        match &self.payload {
            Some(Payload::Lent(block)) => block.copy_to(offset, into),
            _ => {
                let rest = self.bytes().and_then(|bytes| bytes.get(offset..)).unwrap_or(&[]);
                let count = rest.len().min(into.len());
                into[..count].copy_from_slice(&rest[..count]);
                count
            }
        }
    }

    /// A copy of all bytes.
    pub fn to_vec(&self) -> Vec<u8> {
        let mut bytes = vec![0; self.len()];
        self.copy_to(&mut bytes);
        bytes
    }

    /// The bytes where they lie, if they are this node's own: not of a packet that lies in memory its sender can write.
    pub fn bytes(&self) -> Option<&[u8]> {
        match self.payload.as_ref()? {
            Payload::Short(short) => Some(short.bytes()),
            Payload::Owned(bytes) => Some(bytes),
            Payload::Lent(_) => None,
        }
    }

    /// Where the bytes lie, if that is memory which the sender can write; readable until the packet is dropped.
    pub fn address(&self) -> Option<*const u8> {
        match self.payload.as_ref()? {
            Payload::Lent(block) => Some(block.address()),
            _ => None,
        }
    }
}

impl<R: Running> Drop for Packet<R> {
    fn drop(&mut self) {
        let bytes = self.len();
        let Some(payload) = self.payload.take() else { return };
        let handle = self.handle;
        // If the node has ended, there is nothing to give back to.
        let _ = self.node.with_aside(|engine, links| {
            // First: a block's place must be free before the sender hears of it.
            links.recycle(payload);
            engine.packet_released(handle, bytes, links);
        });
    }
}

//! One rendezvous connection: packets with descriptors, never waiting.
//!
//! What you may rely on: no call here waits; what cannot be sent yet stands in an outbox whose length the plan bounds,
//! because a newer announcement of a thing replaces an older one. Descriptors that do not belong to a message are
//! closed.

use std::collections::VecDeque;
use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recvmsg, sendmsg, socket_with,
};

use crate::error::{Error, Tried};
use crate::os::credentials::Credentials;
use crate::os::descriptor::Descriptor;
use crate::os::forks::Kept;
use crate::process::rendezvous::message::{self, FDS_MAX, Garbage, Message};

/// How far a connection has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// It came to us and has said nothing yet.
    Accepted,
    /// We went to this participant, which has not answered yet.
    Dialed(u16),
    /// It belongs to this participant number and epoch.
    Linked(u16, u32),
    /// Somebody looks from outside.
    Observer,
}

/// A connection and what waits to be sent on it.
#[derive(Debug)]
pub(crate) struct Connection {
    socket: Kept,
    pub(crate) stage: Stage,
    pub(crate) credentials: Credentials,
    /// When it was made.
    pub(crate) since_ns: u64,
    outbox: VecDeque<Outgoing>,
}

/// A message with its descriptor.
#[derive(Clone, Debug)]
pub(crate) struct Outgoing {
    pub(crate) message: Message,
    pub(crate) fd: Option<Arc<Descriptor>>,
}

/// What came.
#[derive(Debug)]
pub(crate) enum Incoming {
    Message(Message, Option<Descriptor>),
    Nothing,
    Closed,
    /// Descriptors were lost: more than belong to any message, or this process has none left.
    Truncated,
    Garbage(Garbage),
}

/// What became of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sent {
    /// On its way.
    Done,
    /// In the outbox; to be continued when the socket is writable.
    Waiting,
    /// The connection is broken.
    Broken,
}

impl Connection {
    pub(crate) fn new(socket: Kept, stage: Stage, credentials: Credentials, since_ns: u64) -> Connection {
        Connection { socket, stage, credentials, since_ns, outbox: VecDeque::new() }
    }

    /// Sends now if nothing waits, else later, in order.
    pub(crate) fn send(&mut self, outgoing: Outgoing) -> Sent {
        if !self.outbox.is_empty() {
            self.outbox.retain(|waiting| !replaces(&outgoing.message, &waiting.message));
            self.outbox.push_back(outgoing);
            return Sent::Waiting;
        }
        match transmit(self.socket.as_fd(), &outgoing) {
            Ok(()) => Sent::Done,
            Err(Errno::AGAIN) => {
                self.outbox.push_back(outgoing);
                Sent::Waiting
            }
            Err(_) => Sent::Broken,
        }
    }

    /// Sends what waits, as far as the socket takes it.
    pub(crate) fn flush(&mut self) -> Sent {
        while let Some(outgoing) = self.outbox.front() {
            match transmit(self.socket.as_fd(), outgoing) {
                Ok(()) => drop(self.outbox.pop_front()),
                Err(Errno::AGAIN) => return Sent::Waiting,
                Err(_) => return Sent::Broken,
            }
        }
        Sent::Done
    }

    /// Takes one packet.
    pub(crate) fn receive(&self) -> Incoming {
        let mut bytes = [0; message::BYTES + 1];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FDS_MAX))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let flags = RecvFlags::DONTWAIT | RecvFlags::CMSG_CLOEXEC;
        let received = loop {
            match recvmsg(&self.socket, &mut [IoSliceMut::new(&mut bytes)], &mut control, flags) {
                Err(Errno::INTR) => (),
                Err(Errno::AGAIN) => return Incoming::Nothing,
                Err(_) => return Incoming::Closed,
                Ok(received) => break received,
            }
        };
        let mut fds = take_fds(&mut control);
        if received.bytes == 0 {
            return Incoming::Closed;
        }
        if received.flags.contains(ReturnFlags::CTRUNC) {
            return Incoming::Truncated;
        }
        match message::parse(&bytes[..received.bytes.min(bytes.len())]) {
            Ok(message) if message.fds() == fds.len() => Incoming::Message(message, fds.pop()),
            Ok(_) => Incoming::Garbage(Garbage::Foreign),
            Err(garbage) => Incoming::Garbage(garbage),
        }
    }
}

impl AsFd for Connection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Whether `newer` makes a waiting `older` pointless: they speak of the same end or segment.
fn replaces(newer: &Message, older: &Message) -> bool {
    match (newer, older) {
        (Message::End { fifo, direction, .. }, Message::End { fifo: f, direction: d, .. })
        | (Message::End { fifo, direction, .. }, Message::Doorbell { fifo: f, direction: d, .. })
        | (Message::Doorbell { fifo, direction, .. }, Message::Doorbell { fifo: f, direction: d, .. }) => {
            (fifo, direction) == (f, d)
        }
        (Message::Segment { smem, .. }, Message::Segment { smem: s, .. }) => smem == s,
        _ => false,
    }
}

pub(crate) fn take_fds(control: &mut RecvAncillaryBuffer<'_>) -> Vec<Descriptor> {
    let mut fds = Vec::new();
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(rights) = message {
            fds.extend(rights.map(Descriptor::from));
        }
    }
    fds
}

fn transmit(socket: BorrowedFd<'_>, outgoing: &Outgoing) -> Result<(), Errno> {
    let bytes = outgoing.message.bytes();
    let fds: Vec<BorrowedFd<'_>> = outgoing.fd.iter().map(|fd| fd.as_fd()).collect();
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !fds.is_empty() {
        control.push(SendAncillaryMessage::ScmRights(&fds));
    }
    let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
    loop {
        match sendmsg(socket, &[IoSlice::new(&bytes)], &mut control, flags) {
            Err(Errno::INTR) => (),
            Err(errno) => return Err(errno),
            Ok(_) => return Ok(()),
        }
    }
}

/// A packet socket that never waits.
pub(crate) fn new_socket() -> Result<Kept, Error> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None).tried("creating a socket")?;
    Ok(Kept::new(socket.into()))
}

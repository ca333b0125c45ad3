//! One rendezvous connection: packets with descriptors, never waiting.
//!
//! What you may rely on: no call here waits; what cannot be sent yet stands in an outbox whose length the plan bounds,
//! because a newer announcement of a thing replaces an older one. Descriptors go only to who reads; those that came and do
//! not belong to a message are closed.

use std::collections::VecDeque;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use rustix::io::Errno;

use crate::os::credentials::Credentials;
use crate::os::descriptor::Descriptor;
use crate::os::forks::Kept;
use crate::os::packet_socket::{self, Received, unread_bytes};
use crate::process::rendezvous::message::{self, Garbage, Message};

/// Most descriptors unread on one connection.
pub(crate) const UNREAD_MAX: usize = 16;

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

impl Stage {
    /// Who is at the other end, if that is known.
    pub(crate) fn participant(self) -> Option<u16> {
        match self {
            Stage::Dialed(participant) | Stage::Linked(participant, _) => Some(participant),
            Stage::Accepted | Stage::Observer => None,
        }
    }
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
    /// Descriptors sent since the peer had last read everything.
    unread: usize,
    /// Something that came on it, or should have gone, was lost: see [`super::asking_again`].
    pub(crate) incomplete: bool,
    /// When to try again, if what waits in the outbox is held back by something else than a full socket.
    pub(crate) retry: Option<Retry>,
}

/// When to try again to send.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Retry {
    pub(crate) due_ns: u64,
    pause_ns: u64,
}

/// First pause before a packet that was held back is tried again, in nanoseconds; doubles each time.
const PAUSE_NS_MIN: u64 = 1_000_000;
/// Longest such pause, in nanoseconds.
const PAUSE_NS_MAX: u64 = 100_000_000;

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
    /// Descriptors were lost, because this process has none left.
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
    /// In the outbox until [`Connection::retry`]: the peer has to read first, or the kernel has no room ("why").
    Held(Option<Errno>),
    /// The connection is broken.
    Broken(Errno),
}

impl Connection {
    pub(crate) fn new(socket: Kept, stage: Stage, credentials: Credentials, since_ns: u64) -> Connection {
        Connection {
            socket,
            stage,
            credentials,
            since_ns,
            outbox: VecDeque::new(),
            unread: 0,
            incomplete: false,
            retry: None,
        }
    }

    /// Sends now if nothing waits, else later, in order.
    pub(crate) fn send(&mut self, outgoing: Outgoing, now_ns: u64) -> Sent {
        let waits = !self.outbox.is_empty();
        self.outbox.retain(|waiting| !replaces(&outgoing.message, &waiting.message));
        self.outbox.push_back(outgoing);
        match self.retry {
            Some(_) => Sent::Held(None),
            None if waits => Sent::Waiting,
            None => self.flush(now_ns),
        }
    }

    /// Sends what waits, as far as the socket takes it and the peer reads it.
    pub(crate) fn flush(&mut self, now_ns: u64) -> Sent {
        while let Some(outgoing) = self.outbox.front() {
            let carries = outgoing.fd.is_some();
            if carries && self.unread >= UNREAD_MAX && self.unread() >= UNREAD_MAX {
                return self.hold(None, now_ns);
            }
            match transmit(self.socket.as_fd(), &self.outbox[0]) {
                Ok(()) => drop(self.outbox.pop_front()),
                Err(Errno::AGAIN) => {
                    self.retry = None;
                    return Sent::Waiting;
                }
                Err(errno @ (Errno::TOOMANYREFS | Errno::NOBUFS | Errno::NOMEM)) => {
                    return self.hold(Some(errno), now_ns);
                }
                Err(errno) => return Sent::Broken(errno),
            }
            self.unread += usize::from(carries);
        }
        self.retry = None;
        Sent::Done
    }

    fn hold(&mut self, why: Option<Errno>, now_ns: u64) -> Sent {
        let pause_ns = self.retry.map_or(PAUSE_NS_MIN, |retry| (retry.pause_ns * 2).min(PAUSE_NS_MAX));
        self.retry = Some(Retry { due_ns: now_ns + pause_ns, pause_ns });
        Sent::Held(why)
    }

    /// How many descriptors that we sent the peer may not have read.
    pub(crate) fn unread(&mut self) -> usize {
        if self.unread > 0 && unread_bytes(&self.socket) == 0 {
            self.unread = 0;
        }
        self.unread
    }

    pub(crate) fn into_socket(self) -> Kept {
        self.socket
    }

    /// Takes one packet.
    pub(crate) fn receive(&self) -> Incoming {
        let mut bytes = [0; message::BYTES + 1];
        let (count, mut fds) = match packet_socket::receive(self.socket.as_fd(), &mut bytes) {
            Received::Packet(count, fds) => (count, fds),
            Received::Nothing => return Incoming::Nothing,
            Received::Closed => return Incoming::Closed,
            Received::Truncated => return Incoming::Truncated,
            Received::Excess => return Incoming::Garbage(Garbage::Foreign),
        };
        match message::parse(&bytes[..count]) {
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

fn transmit(socket: BorrowedFd<'_>, outgoing: &Outgoing) -> Result<(), Errno> {
    match &outgoing.fd {
        Some(fd) => packet_socket::send(socket, &outgoing.message.bytes(), &[fd.as_fd()]),
        None => packet_socket::send(socket, &outgoing.message.bytes(), &[]),
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

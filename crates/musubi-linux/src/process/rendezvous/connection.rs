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

#[cfg(test)]
mod tests {
    use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

    use super::*;
    use crate::direction::Direction;

    fn pair() -> [Connection; 2] {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let (one, other) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None).unwrap();
        [one, other].map(|fd| Connection::new(Kept::new(fd.into()), Stage::Accepted, Credentials::own(), 0))
    }

    fn end(fifo: u16, direction: Direction, serial: u32) -> Outgoing {
        Outgoing { message: Message::End { fifo, direction, open: true, serial }, fd: None }
    }

    fn segment(smem: u16, generation: u32) -> Outgoing {
        let fd = Some(Arc::new(Descriptor::event().unwrap()));
        Outgoing { message: Message::Segment { smem, generation }, fd }
    }

    /// All that has come, with whether it carried a descriptor.
    fn taken(connection: &Connection) -> Vec<(Message, bool)> {
        let next = || match connection.receive() {
            Incoming::Message(message, fd) => Some((message, fd.is_some())),
            Incoming::Nothing => None,
            other => panic!("{other:?}"),
        };
        std::iter::from_fn(next).take(1_000).collect()
    }

    #[test]
    fn a_stage_names_a_participant_once_one_is_known() {
        assert_eq!((Stage::Accepted.participant(), Stage::Observer.participant()), (None, None));
        assert_eq!((Stage::Dialed(3).participant(), Stage::Linked(4, 9).participant()), (Some(3), Some(4)));
    }

    #[test]
    fn messages_come_in_order_with_their_descriptors_and_then_the_end() {
        let [mut one, other] = pair();
        assert_eq!(one.send(segment(1, 7), 0), Sent::Done);
        assert_eq!(one.send(Outgoing { message: Message::Ready, fd: None }, 0), Sent::Done);
        assert_eq!(taken(&other), [(Message::Segment { smem: 1, generation: 7 }, true), (Message::Ready, false)]);
        drop(one);
        assert!(matches!(other.receive(), Incoming::Closed));
    }

    #[test]
    fn what_is_no_message_or_has_other_descriptors_than_it_should_is_garbage() {
        let [one, other] = pair();
        let fd = Descriptor::event().unwrap();
        let (ready, segment) = (Message::Ready.bytes(), segment(1, 7).message.bytes());
        let too_long = [&ready[..], &[0]].concat();
        let cases: [(&[u8], &[BorrowedFd<'_>]); 4] =
            [(&ready, &[fd.as_fd()]), (&segment, &[]), (&segment, &[fd.as_fd(), fd.as_fd()]), (&too_long, &[])];
        for (bytes, fds) in cases {
            packet_socket::send(one.as_fd(), bytes, fds).unwrap();
            assert!(matches!(other.receive(), Incoming::Garbage(Garbage::Foreign)), "{} descriptors", fds.len());
        }
    }

    #[test]
    fn who_does_not_read_has_a_bounded_number_of_descriptors_and_is_tried_less_and_less() {
        let [mut one, other] = pair();
        for smem in 0..UNREAD_MAX as u16 {
            assert_eq!(one.send(segment(smem, 1), 0), Sent::Done);
        }
        assert_eq!(one.unread(), UNREAD_MAX);
        assert_eq!(one.send(segment(99, 1), 0), Sent::Held(None));
        let mut pauses_ms = Vec::new();
        for now_ns in (1..9).map(|round| round * 1_000_000_000) {
            assert_eq!(one.flush(now_ns), Sent::Held(None));
            pauses_ms.push((one.retry.unwrap().due_ns - now_ns) / 1_000_000);
        }
        assert_eq!(pauses_ms, [2, 4, 8, 16, 32, 64, 100, 100]);
        assert_eq!(taken(&other).len(), UNREAD_MAX);
        assert_eq!((one.flush(0), one.retry.is_none(), one.unread()), (Sent::Done, true, 1));
        assert_eq!(taken(&other), [(Message::Segment { smem: 99, generation: 1 }, true)]);
        assert_eq!(one.unread(), 0);
    }

    #[test]
    fn what_waits_is_told_as_it_is_now_and_once() {
        let [mut one, other] = pair();
        for smem in 0..=UNREAD_MAX as u16 {
            let _ = one.send(segment(smem, 1), 0);
        }
        let _ = taken(&other);
        // The last one is still held, so all that follows waits behind it.
        use Direction::{Receive, Send};
        let later =
            [end(1, Send, 1), end(1, Receive, 2), end(2, Send, 3), segment(5, 1), end(1, Send, 4), segment(5, 2)];
        later.into_iter().for_each(|outgoing| assert_eq!(one.send(outgoing, 0), Sent::Held(None)));
        assert_eq!(one.flush(0), Sent::Done);
        let said: Vec<Message> = taken(&other).into_iter().map(|(message, _)| message).collect();
        let wanted =
            [segment(UNREAD_MAX as u16, 1), end(1, Receive, 2), end(2, Send, 3), end(1, Send, 4), segment(5, 2)];
        assert_eq!(said, wanted.map(|outgoing| outgoing.message));
    }
}

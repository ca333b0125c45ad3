//! The link with one node: its session, the connection that carries it now, and when the next one is tried.
//!
//! What you may rely on: no call waits. One look reads at most [`READS_MAX`] times and about [`LOOK_BYTES`], so that other links
//! have their turn; pauses between two tries double from [`PAUSE_NS_MIN`] to [`PAUSE_NS_MAX`].
//!
//! How it works: what the session has ready is written at once, from the thread that asks, until the kernel takes no
//! more; then the connection is watched for room. What comes is read into the session's own memory if the middle of a
//! large piece is next, else through a buffer that all links share.

use std::io::{self, IoSlice};
use std::sync::Arc;

use musubi_linux::descriptor::Descriptor;
use musubi_linux::round_trip::round_trip_ns;
use rustix::event::epoll;

use super::sockets::Got;
use super::stream::Stream;
use super::tokens::token_of;
use crate::limits::{LOOK_BYTES, READY_BYTES};
use crate::session::{Broken, Session, State};
use crate::status::LinkStatus;
use crate::{NodeId, Priority};

/// Bytes of the buffer that links share for reading.
pub(super) const READ_BYTES: usize = 64 * 1024;
/// Reads at one look at one link, so that others have their turn.
const READS_MAX: usize = 8;
/// First pause between two attempts to connect, nanoseconds; each next one is twice as long.
const PAUSE_NS_MIN: u64 = 10_000_000;
/// Longest one.
const PAUSE_NS_MAX: u64 = 500_000_000;

/// How long the acknowledgement of anything but messages waits after the last frame, nanoseconds.
const ACKNOWLEDGE_NS: u64 = 100_000;
/// The same in a stream, whose acknowledgements go by bytes and with its credit: only its end waits so long, and a timer
/// is set that much more rarely.
const ACKNOWLEDGE_STREAM_NS: u64 = 1_000_000;

/// Why a connection has ended.
#[derive(Debug)]
pub(super) enum End {
    /// The other side has closed it.
    Closed,
    /// The system says so.
    Failed(io::Error),
    /// The session has let go of it.
    Broken(Broken),
}

impl From<io::Error> for End {
    fn from(error: io::Error) -> End {
        End::Failed(error)
    }
}

impl From<Broken> for End {
    fn from(broken: Broken) -> End {
        End::Broken(broken)
    }
}

/// When this node tries to connect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dial {
    /// There is no need.
    Idle,
    /// At this instant.
    At(u64),
    /// The acceptor tries.
    Underway,
}

/// The link with one node.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) peer: NodeId,
    pub(super) session: Session,
    pub(super) dial: Dial,
    /// The engine wants a link.
    pub(super) wanted: bool,
    /// Between the engine's being told of its begin and of its end.
    pub(super) known: bool,
    /// In the list of those that may have something to report.
    pub(super) noisy: bool,
    /// In the list of those that may have to send acknowledgements.
    pub(super) touched: bool,
    /// When what came is to be acknowledged, if nothing goes there before that could carry the acknowledgement.
    pub(super) acknowledge_ns: u64,
    /// Until when a spinning caller looks at it, nanoseconds; 0 if it is not in that list.
    pub(super) hot_until_ns: u64,
    epoll: Arc<Descriptor>,
    stream: Option<Stream>,
    /// The last connection used TLS.
    encrypted: bool,
    /// The connection takes no more; it is watched for room.
    full: bool,
    pause_ns: u64,
}

impl Link {
    pub(super) fn new(peer: NodeId, session: Session, epoll: Arc<Descriptor>) -> Link {
        Link {
            peer,
            session,
            dial: Dial::Idle,
            wanted: false,
            known: false,
            noisy: false,
            touched: false,
            acknowledge_ns: u64::MAX,
            hot_until_ns: 0,
            epoll,
            stream: None,
            encrypted: false,
            full: false,
            pause_ns: PAUSE_NS_MIN,
        }
    }

    /// Whether a connection carries it.
    pub(super) fn is_connected(&self) -> bool {
        self.stream.is_some()
    }

    /// Whether a connection takes no more at the moment.
    pub(super) fn is_full(&self) -> bool {
        self.full
    }

    /// How it does, for tools.
    pub(super) fn status(&self) -> LinkStatus {
        let (counts, state) = (self.session.counts(), self.session.state());
        LinkStatus {
            node: self.peer,
            kind: if self.encrypted { 3 } else { 2 },
            state: match self.session.is_up() {
                true if self.is_connected() && state == State::Live => 1,
                true => 3,
                false if self.is_connected() || self.dial != Dial::Idle => 2,
                false => 0,
            },
            rtt_ns: self.stream.as_ref().and_then(|stream| round_trip_ns(stream.socket())).unwrap_or(0),
            frames_sent: counts.frames_sent,
            frames_received: counts.frames_received,
            bytes_sent: counts.bytes_sent,
            bytes_received: counts.bytes_received,
            connections: counts.connections,
            resumed: counts.resumed,
            cuts: counts.cuts,
            repeated: counts.repeated,
            violations: counts.violations,
            silences: counts.silences,
            refused: counts.refused.iter().map(|(_, count)| count).sum(),
            waited: Some(Priority::all().map(|class| self.session.class_counts(class).waited).sum()),
        }
    }

    /// The connection's socket, to wait for.
    pub(super) fn stream(&self) -> Option<&Stream> {
        self.stream.as_ref()
    }

    /// This connection carries the session from now on.
    pub(super) fn attach(&mut self, stream: Stream) -> io::Result<()> {
        self.detach();
        let data = epoll::EventData::new_u64(token_of(self.peer));
        epoll::add(&self.epoll, &stream, data, epoll::EventFlags::IN)?;
        self.encrypted = stream.is_encrypted();
        (self.stream, self.full, self.dial) = (Some(stream), false, Dial::Idle);
        Ok(())
    }

    /// No connection carries it any more.
    pub(super) fn detach(&mut self) {
        if let Some(mut stream) = self.stream.take() {
            // Said explicitly: a forked child may keep the descriptor open. It was registered, so this cannot fail.
            let _ = epoll::delete(&self.epoll, &stream);
            stream.end();
        }
    }

    /// Reads what is there; false if that was nothing. Under TLS, all that was read from the socket is taken in, as
    /// nothing tells us again of that.
    pub(super) fn read(&mut self, now_ns: u64, buffer: &mut [u8; READ_BYTES]) -> Result<bool, End> {
        let Some(stream) = &mut self.stream else { return Ok(false) };
        let mut looked_bytes = 0;
        for read in 0.. {
            stream.look_at_socket(read < READS_MAX);
            let (got, room) = match self.session.landing() {
                Some(parts) => {
                    let room = parts.iter().map(|part| part.len()).sum();
                    let got = stream.read_parts(parts)?;
                    if let Got::Bytes(bytes) = got {
                        self.session.landed(now_ns, bytes)?;
                    }
                    (got, room)
                }
                None => {
                    let got = stream.read(buffer)?;
                    if let Got::Bytes(bytes) = got {
                        self.session.input(now_ns, &buffer[..bytes])?;
                    }
                    (got, buffer.len())
                }
            };
            match got {
                Got::Bytes(_) if stream.is_encrypted() => {}
                Got::Bytes(bytes) if bytes == room && read + 1 < READS_MAX && looked_bytes + bytes < LOOK_BYTES => {
                    looked_bytes += bytes;
                }
                Got::Nothing if read == 0 => return Ok(false),
                Got::Bytes(_) | Got::Nothing => break,
                Got::End => return Err(End::Closed),
            }
        }
        if self.session.state() == State::Live {
            self.pause_ns = PAUSE_NS_MIN;
        }
        Ok(true)
    }

    /// Writes what the session has, as much as the connection takes.
    pub(super) fn write(&mut self, now_ns: u64) -> Result<(), End> {
        self.write_by(now_ns, READY_BYTES)
    }

    /// The same, making so many bytes ready at a time.
    pub(super) fn write_by(&mut self, now_ns: u64, ready_bytes: usize) -> Result<(), End> {
        let Some(stream) = &mut self.stream else { return Ok(()) };
        let mut full = false;
        loop {
            stream.flush()?;
            if stream.is_behind() {
                full = true;
                break;
            }
            if self.session.fill(now_ns, ready_bytes) == 0 {
                break;
            }
            // A list of slices takes as long to make as a small frame to send.
            let written = match self.session.only_frame() {
                Some([whole, []]) => stream.write(&[IoSlice::new(whole)])?,
                Some([head, payload]) => stream.write(&[IoSlice::new(head), IoSlice::new(payload)])?,
                None => stream.write_parts(self.session.slices())?,
            };
            self.session.consumed(now_ns, written);
            if written == 0 {
                full = true;
                break;
            }
        }
        self.watch(full)?;
        if self.session.state() == State::Ended && !full { Err(End::Closed) } else { Ok(()) }
    }

    /// Watches for room while there is none.
    fn watch(&mut self, full: bool) -> io::Result<()> {
        let Some(stream) = self.stream.as_ref().filter(|_| full != self.full) else { return Ok(()) };
        self.full = full;
        let flags = if full { epoll::EventFlags::IN | epoll::EventFlags::OUT } else { epoll::EventFlags::IN };
        Ok(epoll::modify(&self.epoll, stream, epoll::EventData::new_u64(token_of(self.peer)), flags)?)
    }

    /// Whether a connection is to be sought.
    pub(super) fn lacks_connection(&self) -> bool {
        self.stream.is_none() && (self.wanted || self.session.is_up())
    }

    /// Plans the next attempt, if one is needed and none is planned. The node with the larger number lets the other one
    /// begin, so that both rarely meet half-way.
    pub(super) fn plan_dial(&mut self, now_ns: u64, me: NodeId) {
        if self.lacks_connection() && self.dial == Dial::Idle {
            let courtesy_ns = if self.known && me > self.peer { PAUSE_NS_MIN } else { 0 };
            self.dial = Dial::At(now_ns + courtesy_ns);
        }
    }

    /// Plans the one after an attempt that failed.
    pub(super) fn plan_again(&mut self, now_ns: u64) {
        self.dial = Dial::Idle;
        if self.lacks_connection() {
            self.dial = Dial::At(now_ns + self.pause_ns);
            self.pause_ns = (2 * self.pause_ns).min(PAUSE_NS_MAX);
        }
    }

    /// Whether so many attempts in a row have come to nothing that the pause between them is the longest.
    pub(super) fn is_tried_in_vain(&self) -> bool {
        self.pause_ns == PAUSE_NS_MAX
    }

    /// A frame came. A sender may wait for the acknowledgement of one that is `awaited`; all others can wait for what goes there
    /// anyway (credit, packets), as each costs both sides a system call and the other one perhaps a wake-up.
    pub(super) fn came(&mut self, now_ns: u64, awaited: bool) {
        let patient = !awaited && self.acknowledge_ns > now_ns;
        let patience_ns = if self.acknowledge_ns == u64::MAX { ACKNOWLEDGE_NS } else { ACKNOWLEDGE_STREAM_NS };
        self.acknowledge_ns = if patient { now_ns + patience_ns } else { now_ns };
    }

    /// When something other than an acknowledgement is due without anything happening.
    pub(super) fn deadline_ns(&self) -> u64 {
        let due_ns = self.session.deadline_ns();
        match self.dial {
            Dial::At(at_ns) => at_ns.min(due_ns),
            _ => due_ns,
        }
    }
}

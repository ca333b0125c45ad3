//! Binding names and connecting to them.
//!
//! What you may rely on: a bound name is ours until the socket is closed; connecting to an abstract name never waits.
//!
//! How it works: everybody listens before it connects to the others. So of any two participants, the one that listened
//! later finds the other; "nobody listens there" is a final answer, because who comes later will call us.

use rustix::io::Errno;
use rustix::net::{bind, connect, listen};

use crate::error::{Error, Tried};
use crate::os::credentials::Credentials;
use crate::os::forks::Kept;
use crate::process::rendezvous::connection::new_socket;
use crate::process::rendezvous::socket_names;
use std::os::fd::AsFd;

/// Connections that may wait to be accepted.
const BACKLOG: i32 = 128;
/// First pause before a busy participant is called again, in nanoseconds; doubles each time.
pub(crate) const PAUSE_NS_MIN: u64 = 1_000_000;
/// Longest such pause, in nanoseconds.
pub(crate) const PAUSE_NS_MAX: u64 = 100_000_000;

/// A call to a participant that may be there.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Dial {
    /// Connected, and waiting for the answer on this connection.
    pub(crate) connection: Option<u32>,
    /// When to call (again) if not connected.
    pub(crate) due_ns: u64,
    pub(crate) pause_ns: u64,
}

impl Dial {
    pub(crate) fn at(due_ns: u64) -> Dial {
        Dial { connection: None, due_ns, pause_ns: PAUSE_NS_MIN }
    }

    /// Calls again after a pause.
    pub(crate) fn postpone(&mut self, now_ns: u64) {
        self.connection = None;
        self.due_ns = now_ns + self.pause_ns;
        self.pause_ns = (self.pause_ns * 2).min(PAUSE_NS_MAX);
    }
}

/// What is behind a name.
#[derive(Debug)]
pub(crate) enum Answer {
    /// Nobody.
    Absent,
    /// Somebody who cannot take the call now.
    Busy,
    /// Connected, with whom.
    Connected(Kept, Credentials),
}

/// Connects to a name.
pub(crate) fn call(name: &str) -> Result<Answer, Error> {
    let socket = new_socket()?;
    match connect(&socket, &socket_names::address(name)?) {
        Ok(()) => (),
        Err(Errno::CONNREFUSED) => return Ok(Answer::Absent),
        Err(Errno::AGAIN | Errno::INTR) => return Ok(Answer::Busy),
        Err(errno) => return Err(errno).tried("connecting to a participant"),
    }
    let credentials = Credentials::of_peer(socket.as_fd());
    Ok(credentials.map_or(Answer::Absent, |credentials| Answer::Connected(socket, credentials)))
}

/// Takes a name; `None` if another socket has it.
pub(crate) fn claim(name: &str) -> Result<Option<Kept>, Error> {
    let socket = new_socket()?;
    match bind(&socket, &socket_names::address(name)?) {
        Ok(()) => Ok(Some(socket)),
        Err(Errno::ADDRINUSE) => Ok(None),
        Err(errno) => Err(errno).tried("binding a socket name"),
    }
}

/// Begins to take calls on a claimed name.
pub(crate) fn answer_calls(claimed: &Kept) -> Result<(), Error> {
    listen(claimed, BACKLOG).tried("listening")
}

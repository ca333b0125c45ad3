//! Packets with descriptors between processes, over sockets with abstract names.
//!
//! What you may rely on: nothing here waits, and no call ends a process by a signal. A bound name is ours until the socket
//! is closed. Descriptors that came with a packet are closed unless somebody takes
//! them; that does not wait either (`closing.rs`).
//!
//! What it does not do: know what is in a packet. Both rendezvous, of participants and of nodes, stand on it.

use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, RecvMsg, ReturnFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketAddrUnix, SocketFlags, SocketType, bind, connect, listen, recvmsg, sendmsg,
    socket_with,
};

use crate::error::{Error, Tried};
use crate::os::credentials::Credentials;
use crate::os::descriptor::Descriptor;
use crate::os::forks::Kept;

/// Most descriptors that come with one packet; one with more is [`Received::Excess`].
pub(crate) const FDS_MAX: usize = 2;
/// Connections that may wait to be accepted.
const BACKLOG: i32 = 128;

/// What came.
#[derive(Debug)]
pub(crate) enum Received {
    /// A packet, cut to the room there was: its bytes, and its descriptors.
    Packet(usize, Vec<Descriptor>),
    Nothing,
    Closed,
    /// Descriptors were lost, because this process has none left.
    Truncated,
    /// There were more than [`FDS_MAX`].
    Excess,
}

/// Sends a packet with at most [`FDS_MAX`] descriptors.
pub(crate) fn send(socket: BorrowedFd<'_>, bytes: &[u8], fds: &[BorrowedFd<'_>]) -> Result<(), Errno> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FDS_MAX))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !fds.is_empty() && !control.push(SendAncillaryMessage::ScmRights(fds)) {
        return Err(Errno::INVAL);
    }
    let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
    loop {
        match sendmsg(socket, &[IoSlice::new(bytes)], &mut control, flags) {
            Err(Errno::INTR) => (),
            sent => return sent.map(drop),
        }
    }
}

/// Takes one packet. Give a byte more room than any packet has, so that a longer one can be told. One with too many
/// descriptors stays where it is: nothing can be received after it.
///
/// A packet is looked at first, which gives copies of its descriptors, and then taken without any: the end of one for which
/// there is no room would be ours to wait for.
pub(crate) fn receive(socket: BorrowedFd<'_>, into: &mut [u8]) -> Received {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FDS_MAX))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let room = into.len();
    let received = match receive_into(socket, into, &mut control, RecvFlags::PEEK) {
        Ok(received) => received,
        Err(Errno::AGAIN) => return Received::Nothing,
        Err(_) => return Received::Closed,
    };
    let fds = take_fds(&mut control);
    if received.bytes == 0 {
        return Received::Closed;
    }
    let is_cut = received.flags.contains(ReturnFlags::CTRUNC);
    // Where the buffer begins decides whether there is room for one more.
    if fds.len() > FDS_MAX || (is_cut && fds.len() == FDS_MAX) {
        return Received::Excess;
    }
    // It is there, and nobody else takes it.
    let _ = receive_into(socket, into, &mut RecvAncillaryBuffer::default(), RecvFlags::empty());
    if is_cut { Received::Truncated } else { Received::Packet(received.bytes.min(room), fds) }
}

fn receive_into(
    socket: BorrowedFd<'_>,
    into: &mut [u8],
    control: &mut RecvAncillaryBuffer<'_>,
    more: RecvFlags,
) -> Result<RecvMsg, Errno> {
    let flags = RecvFlags::DONTWAIT | RecvFlags::CMSG_CLOEXEC | more;
    loop {
        match recvmsg(socket, &mut [IoSliceMut::new(into)], control, flags) {
            Err(Errno::INTR) => (),
            received => return received,
        }
    }
}

fn take_fds(control: &mut RecvAncillaryBuffer<'_>) -> Vec<Descriptor> {
    let mut fds = Vec::new();
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(rights) = message {
            fds.extend(rights.map(Descriptor::of_others));
        }
    }
    fds
}

/// Bytes of memory of what was sent on a socket and not read at the other end; 0 where the kernel does not say.
pub(crate) fn unread_bytes(socket: &Kept) -> u32 {
    let mut bytes: libc::c_int = 0;
    // SAFETY: the call writes one `int` at the address of `bytes`, which is one and outlives the call.
    let result = unsafe { libc::ioctl(socket.as_fd().as_raw_fd(), libc::TIOCOUTQ, &raw mut bytes) };
    if result == 0 { bytes.unsigned_abs() } else { 0 }
}

/// A packet socket that never waits.
fn new_socket() -> Result<OwnedFd, Error> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None).tried("creating a socket (socket)")
}

/// The socket address of a name.
pub(crate) fn address(name: &str) -> Result<SocketAddrUnix, Error> {
    SocketAddrUnix::new_abstract_name(name.as_bytes()).tried("making a socket address")
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
    let socket = Kept::new(Descriptor::of_others(new_socket()?));
    match connect(&socket, &address(name)?) {
        Ok(()) => (),
        Err(Errno::CONNREFUSED) => return Ok(Answer::Absent),
        Err(Errno::AGAIN | Errno::INTR) => return Ok(Answer::Busy),
        Err(errno) => return Err(errno).tried("connecting to a participant (connect)"),
    }
    let credentials = Credentials::of_peer(socket.as_fd());
    Ok(credentials.map_or(Answer::Absent, |credentials| Answer::Connected(socket, credentials)))
}

/// Takes a name; `None` if another socket has it.
pub(crate) fn claim(name: &str) -> Result<Option<Kept>, Error> {
    let socket = Kept::new(Descriptor::from(new_socket()?));
    match bind(&socket, &address(name)?) {
        Ok(()) => Ok(Some(socket)),
        Err(Errno::ADDRINUSE) => Ok(None),
        Err(errno) => Err(errno).tried("binding a socket name (bind)"),
    }
}

/// Begins to take calls on a claimed name.
pub(crate) fn answer_calls(claimed: &Kept) -> Result<(), Error> {
    listen(claimed, BACKLOG).tried("taking calls (listen)")
}

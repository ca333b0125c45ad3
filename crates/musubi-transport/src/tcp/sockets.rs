//! Non-blocking TCP sockets by raw system calls.
//!
//! What you may rely on: nothing here waits, raises `SIGPIPE`, or refers to the C library's `send` and `recv`, which a
//! program may have defined for itself.

use std::io::{self, IoSlice, IoSliceMut};
use std::net::SocketAddr;
use std::os::fd::AsFd;

use musubi_linux::descriptor::Descriptor;
use rustix::io::Errno;
use rustix::net::{self, RecvFlags, SendAncillaryBuffer, SendFlags, Shutdown, SocketFlags, SocketType, sockopt};

use crate::limits::{KERNEL_BYTES, KERNEL_BYTES_WITHIN};

/// Congestion control of a connection within this machine: one that every kernel has and that does not pace. The
/// system's may be one that does (BBR), which costs a timer for every write and rest where nothing is congested.
const WITHIN_CONGESTION: &str = "reno";
/// Connections that the kernel holds for the listener until it accepts them; at most what `net.core.somaxconn` says, which
/// is as many since Linux 5.4. Who comes when there are more is heard when its system tries again, after a second.
const BACKLOG: i32 = 4096;
/// Most pieces of memory in one write.
pub(super) const SLICES_MAX: usize = 64;

const FLAGS: SocketFlags = SocketFlags::NONBLOCK.union(SocketFlags::CLOEXEC);

/// What a try to read gave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Got {
    /// So many bytes; at least one.
    Bytes(usize),
    /// Nothing is there now.
    Nothing,
    /// The other side has ended its direction.
    End,
}

/// A socket that takes connections to `address`.
pub(super) fn listen(address: SocketAddr) -> io::Result<Descriptor> {
    let socket = stream_socket(address)?;
    sockopt::set_socket_reuseaddr(&socket, true)?;
    net::bind(&socket, &address)?;
    net::listen(&socket, BACKLOG)?;
    Ok(socket)
}

/// A socket that begins to connect to `address`; it is writable when that has succeeded or failed.
pub(super) fn connect(address: SocketAddr) -> io::Result<Descriptor> {
    let socket = stream_socket(address)?;
    match net::connect(&socket, &address) {
        Ok(()) | Err(Errno::INPROGRESS) => Ok(socket),
        Err(error) => Err(error.into()),
    }
}

/// The next connection, if one is there, and from where it comes.
pub(super) fn accept(listener: &Descriptor) -> io::Result<Option<(Descriptor, SocketAddr)>> {
    match net::acceptfrom_with(listener, FLAGS) {
        Ok((socket, Some(address))) => {
            let socket = Descriptor::from(socket);
            // Without it answers may be late, no more.
            let _ = sockopt::set_tcp_nodelay(&socket, true);
            Ok(Some((socket, SocketAddr::try_from(address)?)))
        }
        Ok((socket, None)) => {
            drop(Descriptor::from(socket));
            Ok(None)
        }
        Err(Errno::AGAIN) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// How a connection attempt ended, once the socket is writable.
pub(super) fn connected(socket: &Descriptor) -> io::Result<()> {
    Ok(sockopt::socket_error(socket)??)
}

/// This side's and the other side's address.
pub(super) fn addresses(socket: &Descriptor) -> io::Result<(SocketAddr, SocketAddr)> {
    let remote = net::getpeername(socket)?.ok_or(Errno::NOTCONN)?;
    Ok((SocketAddr::try_from(net::getsockname(socket)?)?, SocketAddr::try_from(remote)?))
}

/// Buffers are bounded before the connection stands, as the window that the peer is offered depends on them.
fn stream_socket(address: SocketAddr) -> io::Result<Descriptor> {
    let family = if address.is_ipv4() { net::AddressFamily::INET } else { net::AddressFamily::INET6 };
    let socket = Descriptor::from(net::socket_with(family, SocketType::STREAM, FLAGS, None)?);
    sockopt::set_tcp_nodelay(&socket, true)?;
    let within = address.ip().is_loopback();
    let (send_bytes, receive_bytes) = if within { KERNEL_BYTES_WITHIN } else { KERNEL_BYTES };
    sockopt::set_socket_send_buffer_size(&socket, send_bytes)?;
    sockopt::set_socket_recv_buffer_size(&socket, receive_bytes)?;
    if within {
        // Not everybody may choose every one; then the system's remains.
        let _ = sockopt::set_tcp_congestion(&socket, WITHIN_CONGESTION);
    }
    Ok(socket)
}

/// What the beginning of a connection is, where TLS is needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FirstRecord {
    /// A whole record with a client's hello, as far as its first bytes say.
    Whole,
    /// It may become one.
    Missing,
    /// It cannot become one.
    NoTls,
    /// The other side has ended its direction before that.
    End,
}

/// Whether a whole first record of TLS has come; reads nothing. So a hello that comes byte by byte costs no more than its
/// descriptor, and what is none costs nothing that a hello needs.
pub(super) fn first_record(socket: &Descriptor) -> io::Result<FirstRecord> {
    const RECORD_HEAD_BYTES: u64 = 5;
    let mut head = [0; 6];
    let peeked = net::recv(socket, &mut head, RecvFlags::DONTWAIT | RecvFlags::PEEK);
    let there = match got(peeked.map(|(_, bytes)| bytes))? {
        Got::Bytes(there) => there,
        Got::Nothing => return Ok(FirstRecord::Missing),
        Got::End => return Ok(FirstRecord::End),
    };
    let Some(record_bytes) = hello_bytes(&head[..there]) else { return Ok(FirstRecord::NoTls) };
    let whole = there == head.len() && rustix::io::ioctl_fionread(socket)? >= RECORD_HEAD_BYTES + record_bytes;
    Ok(if whole { FirstRecord::Whole } else { FirstRecord::Missing })
}

/// Bytes of the record that begins like this, as far as they have come; `None` if it is no client's hello.
fn hello_bytes(head: &[u8]) -> Option<u64> {
    const HANDSHAKE: u8 = 0x16;
    const VERSION_MAJOR: u8 = 3;
    const CLIENT_HELLO: u8 = 1;
    // A message of the handshake has four bytes before what it says.
    const RECORD_BYTES: std::ops::RangeInclusive<u64> = 4..=1 << 14;
    let is = |at: usize, byte: u8| head.get(at).is_none_or(|there| *there == byte);
    let &[_, _, _, high, low, ..] = head else {
        return (is(0, HANDSHAKE) && is(1, VERSION_MAJOR)).then_some(0);
    };
    let bytes = u64::from(u16::from_be_bytes([high, low]));
    (is(0, HANDSHAKE) && is(1, VERSION_MAJOR) && is(5, CLIENT_HELLO) && RECORD_BYTES.contains(&bytes)).then_some(bytes)
}

/// Whether accepting failed for the connection that was to be accepted only; the next one may be there.
pub(super) fn is_of_one_connection(error: &io::Error) -> bool {
    let of_one = [
        Errno::CONNABORTED,
        Errno::CONNRESET,
        Errno::INTR,
        Errno::PROTO,
        Errno::NOPROTOOPT,
        Errno::NETDOWN,
        Errno::NETUNREACH,
        Errno::HOSTDOWN,
        Errno::HOSTUNREACH,
        Errno::NONET,
        Errno::OPNOTSUPP,
    ];
    Errno::from_io_error(error).is_some_and(|error| of_one.contains(&error))
}

/// Whether descriptors, or memory for sockets, are short.
pub(super) fn is_shortage(error: &io::Error) -> bool {
    let shortages = [Errno::MFILE, Errno::NFILE, Errno::NOBUFS, Errno::NOMEM];
    Errno::from_io_error(error).is_some_and(|error| shortages.contains(&error))
}

/// Reads what is there.
pub(super) fn receive(socket: &Descriptor, into: &mut [u8]) -> io::Result<Got> {
    got(net::recv(socket, into, RecvFlags::DONTWAIT).map(|(_, bytes)| bytes))
}

/// Reads what is there into several places, each filled before the next.
pub(super) fn receive_parts(socket: &Descriptor, parts: &mut [IoSliceMut<'_>]) -> io::Result<Got> {
    got(rustix::io::readv(socket, parts))
}

fn got(result: Result<usize, Errno>) -> io::Result<Got> {
    match result {
        Ok(0) => Ok(Got::End),
        Ok(bytes) => Ok(Got::Bytes(bytes)),
        Err(Errno::AGAIN | Errno::INTR) => Ok(Got::Nothing),
        Err(error) => Err(error.into()),
    }
}

/// Writes as much as there is room for; 0 if there is none.
pub(super) fn send(socket: impl AsFd, parts: &[IoSlice<'_>]) -> io::Result<usize> {
    let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
    let result = match parts {
        [] => return Ok(0),
        [one] => net::send(socket, one, flags),
        several => net::sendmsg(socket, several, &mut SendAncillaryBuffer::default(), flags),
    };
    match result {
        Ok(bytes) => Ok(bytes),
        Err(Errno::AGAIN | Errno::INTR) => Ok(0),
        Err(error) => Err(error.into()),
    }
}

/// Says that nothing more is written. A connection that has ended already is no mistake.
pub(super) fn end(socket: &Descriptor) {
    let _ = net::shutdown(socket, Shutdown::Write);
}

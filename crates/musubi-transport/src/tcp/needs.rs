//! System calls without which there are no links over TCP, tried once a process: a filter (seccomp) or an old kernel that
//! refuses one is named at the start, instead of being met later where nobody can be told.
//!
//! What you may rely on: nothing is left of the trial, and it fails for refused calls only: a machine without a loopback
//! interface passes. Calls that have a substitute or do no harm are not asked for (`epoll_pwait2`, `shutdown`).
//!
//! How it works: a connection of this process with itself, over the loopback interface.

use std::io::{IoSlice, IoSliceMut};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::OnceLock;

use musubi_linux::descriptor::Descriptor;
use musubi_linux::epoll::NO_EVENT;
use rustix::event::{PollFd, PollFlags, Timespec, epoll, poll};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvFlags, SendAncillaryBuffer, SendFlags, SocketFlags, SocketType, acceptfrom_with, bind, connect,
    getpeername, getsockname, listen, recv, send, sendmsg, socket_with, sockopt,
};

use super::Error;

/// Longest wait for the connection with ourselves.
const CONNECTED: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };
const FLAGS: SocketFlags = SocketFlags::NONBLOCK.union(SocketFlags::CLOEXEC);

/// Why a trial has ended early.
enum TrialEnd {
    Refused(&'static str, Errno),
    /// It cannot be made here; what is missing shows where it is used.
    Elsewhere,
}

/// Whether everything is there.
///
/// # Errors
/// [`Error::Refused`] names the first call that is refused.
pub(super) fn check() -> Result<(), Error> {
    static ANSWER: OnceLock<Result<(), (&'static str, Errno)>> = OnceLock::new();
    let tried = || match waiting().and_then(|()| connection()) {
        Err(TrialEnd::Refused(call, errno)) => Err((call, errno)),
        Ok(()) | Err(TrialEnd::Elsewhere) => Ok(()),
    };
    ANSWER.get_or_init(tried).map_err(|(call, errno)| Error::Refused(call, errno.into()))
}

/// An answer of the kernel: refused, or not to be had here, or what it is.
fn tried<T>(call: &'static str, answer: Result<T, Errno>) -> Result<T, TrialEnd> {
    answer.map_err(|errno| match errno {
        Errno::PERM | Errno::ACCESS | Errno::NOSYS => TrialEnd::Refused(call, errno),
        _ => TrialEnd::Elsewhere,
    })
}

/// The same of a call whose other answers do not matter.
fn is_there<T>(call: &'static str, answer: Result<T, Errno>) -> Result<(), TrialEnd> {
    match tried(call, answer) {
        Err(TrialEnd::Refused(call, errno)) => Err(TrialEnd::Refused(call, errno)),
        Ok(_) | Err(TrialEnd::Elsewhere) => Ok(()),
    }
}

fn waiting() -> Result<(), TrialEnd> {
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    let set = tried("epoll_create1", Descriptor::epoll())?;
    let event = tried("eventfd2", Descriptor::event())?;
    tried("epoll_ctl", epoll::add(&set, &event, epoll::EventData::new_u64(0), epoll::EventFlags::IN))?;
    is_there("epoll_pwait", epoll::wait(&set, &mut [NO_EVENT], Some(&now)))?;
    is_there("ppoll", poll(&mut [PollFd::new(&event, PollFlags::IN)], Some(&now)))?;
    is_there("write", rustix::io::write(&event, &1_u64.to_ne_bytes()))?;
    is_there("read", rustix::io::read(&event, &mut [0; 8]))
}

fn connection() -> Result<(), TrialEnd> {
    let socket =
        || tried("socket", socket_with(AddressFamily::INET, SocketType::STREAM, FLAGS, None)).map(Descriptor::from);
    let (listener, caller) = (socket()?, socket()?);
    is_there("setsockopt", sockopt::set_socket_reuseaddr(&listener, true))?;
    tried("bind", bind(&listener, &SocketAddr::from((Ipv4Addr::LOCALHOST, 0))))?;
    tried("listen", listen(&listener, 1))?;
    let address = tried("getsockname", getsockname(&listener))?;
    is_there("connect", connect(&caller, &address))?;
    // It may time out, or be interrupted; then there is nobody to accept.
    let _ = poll(&mut [PollFd::new(&listener, PollFlags::IN)], Some(&CONNECTED));
    let (called, _) = tried("accept4", acceptfrom_with(&listener, FLAGS))?;
    let called = Descriptor::from(called);
    is_there("getsockopt", sockopt::socket_error(&caller))?;
    is_there("getpeername", getpeername(&called))?;
    is_there("sendto", send(&caller, b"?", SendFlags::NOSIGNAL))?;
    let parts = [IoSlice::new(b"!"), IoSlice::new(b"!")];
    is_there("sendmsg", sendmsg(&caller, &parts, &mut SendAncillaryBuffer::default(), SendFlags::NOSIGNAL))?;
    is_there("ioctl", rustix::io::ioctl_fionread(&called))?;
    is_there("recvfrom", recv(&called, &mut [0; 1], RecvFlags::DONTWAIT).map(|_| ()))?;
    is_there("readv", rustix::io::readv(&called, &mut [IoSliceMut::new(&mut [0; 1])]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_missing_here() {
        check().unwrap();
    }
}

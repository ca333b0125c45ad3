//! System calls without which nothing works, tried once a process: a filter (seccomp) or an old kernel that refuses one
//! is named at the start, instead of being met later where nobody can be told.
//!
//! What you may rely on: nothing is left of the trial. Calls that have a substitute are not asked for (`epoll_pwait2`,
//! `futex_waitv`, `pidfd_open`), nor are those that the start itself makes and names.

use std::os::fd::AsFd;
use std::sync::OnceLock;
use std::sync::atomic::AtomicU32;

use rustix::event::{PollFd, PollFlags, epoll, poll};
use rustix::fs::fstatfs;
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketAddrUnix, SocketFlags, SocketType, accept_with, connect, socket_with,
    socketpair,
};
use rustix::thread::{ClockId, NanosleepRelativeResult, clock_nanosleep_relative, futex};
use rustix::time::Timespec;

use crate::error::{Error, Tried};
use crate::os::credentials::Credentials;
use crate::os::descriptor::Descriptor;
use crate::os::epoll::NO_EVENT;

/// A call, and the error that refused it.
type Missing = (&'static str, Errno);

/// Whether everything is there.
///
/// # Errors
/// [`Error::System`] names the first call that is refused.
pub fn check() -> Result<(), Error> {
    static ANSWER: OnceLock<Result<(), Missing>> = OnceLock::new();
    match ANSWER.get_or_init(|| sockets().and_then(|()| waiting())) {
        Ok(()) => Ok(()),
        Err((call, errno)) => Err(*errno).tried(call),
    }
}

/// What the rendezvous is made of.
fn sockets() -> Result<(), Missing> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let (one, other) =
        socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None).map_err(named("socketpair"))?;
    let (one, other) = (Descriptor::from(one), Descriptor::from(other));
    let mut none = rustix::net::SendAncillaryBuffer::default();
    let packet = [std::io::IoSlice::new(b"?")];
    rustix::net::sendmsg(&one, &packet, &mut none, SendFlags::NOSIGNAL).map_err(named("sendmsg"))?;
    let (mut byte, mut none) = ([0; 1], rustix::net::RecvAncillaryBuffer::default());
    let into = &mut [std::io::IoSliceMut::new(&mut byte)];
    rustix::net::recvmsg(&other, into, &mut none, RecvFlags::DONTWAIT).map_err(named("recvmsg"))?;
    // The socket of a pair cannot accept; that is what it has to say.
    match accept_with(&one, flags) {
        Err(Errno::INVAL | Errno::AGAIN | Errno::OPNOTSUPP) | Ok(_) => (),
        Err(errno) => return Err(("accept4", errno)),
    }
    // Nobody of ours has this name. Whatever the kernel says of it, the call is there: a stranger may listen under the name
    // and answer nothing.
    let nobody = SocketAddrUnix::new_abstract_name(b"musubi//nobody").map_err(named("connect"))?;
    let caller = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None).map_err(named("socket"))?;
    if let Err(errno @ (Errno::NOSYS | Errno::PERM | Errno::ACCESS)) = connect(Descriptor::from(caller), &nobody) {
        return Err(("connect", errno));
    }
    match Credentials::of_peer(one.as_fd()) {
        Some(_) => Ok(()),
        None => Err(("getsockopt (SO_PEERCRED)", Errno::OPNOTSUPP)),
    }
}

/// What threads sleep on, and how memory of others is checked.
fn waiting() -> Result<(), Missing> {
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    let epoll = Descriptor::epoll().map_err(named("epoll_create1"))?;
    let event = Descriptor::event().map_err(named("eventfd2"))?;
    let token = epoll::EventData::new_u64(0);
    epoll::add(&epoll, &event, token, epoll::EventFlags::IN).map_err(named("epoll_ctl"))?;
    let mut events = [NO_EVENT; 1];
    match epoll::wait(&epoll, &mut events, Some(&now)) {
        Ok(_) | Err(Errno::INTR) => (),
        Err(errno) => return Err(("epoll_pwait", errno)),
    }
    match poll(&mut [PollFd::new(&event, PollFlags::IN)], Some(&now)) {
        Ok(_) | Err(Errno::INTR) => (),
        Err(errno) => return Err(("ppoll", errno)),
    }
    // The standard library takes it for granted that one can sleep, and panics else.
    match clock_nanosleep_relative(ClockId::Monotonic, &now) {
        NanosleepRelativeResult::Ok | NanosleepRelativeResult::Interrupted(_) => (),
        NanosleepRelativeResult::Err(errno) => return Err(("clock_nanosleep", errno)),
    }
    futex::wake(&AtomicU32::new(0), futex::Flags::PRIVATE, 1).map_err(named("futex"))?;
    fstatfs(&event).map_err(named("fstatfs"))?;
    Ok(())
}

fn named(call: &'static str) -> impl Fn(Errno) -> Missing {
    move |errno| (call, errno)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_missing_here() {
        check().unwrap();
    }

    #[test]
    fn a_stranger_who_listens_under_the_name_that_is_tried_keeps_nobody_from_starting() {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = || socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None).unwrap();
        let name = SocketAddrUnix::new_abstract_name(b"musubi//nobody").unwrap();
        let stranger = socket();
        rustix::net::bind(&stranger, &name).unwrap();
        rustix::net::listen(&stranger, 0).unwrap();
        let mut callers = Vec::new();
        let refused = loop {
            callers.push(socket());
            match connect(callers.last().unwrap(), &name) {
                Ok(()) => assert!(callers.len() < 64, "the queue is short"),
                Err(errno) => break errno,
            }
        };
        assert_eq!(refused, Errno::AGAIN);
        assert_eq!(sockets(), Ok(()));
    }
}

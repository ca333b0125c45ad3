//! Descriptors that other processes gave us are closed by a thread of its own, since closing one may wait.
//!
//! What you may rely on: [`close_elsewhere`] never waits, as long as fewer than [`PLACES`] closings are held up. Memory of
//! the kernel (memfds) is closed at once. No thread is left [`REST`] after the last was closed.
//!
//! How it works: who gives us a descriptor chooses what its end does. That of a TCP socket may linger until somebody reads, a
//! file's of a FUSE or network file system asks a server that need not answer; and a packet socket takes with it what
//! nobody has read from it. So what is to be closed stands in a fixed table of atomics, from which threads take it that
//! live little longer than there is something in it: one that rests is woken, else there is one more, as whoever gives many has
//! many closed. Who takes one while others wait sees to another thread first, since this end may wait. No lock: a child made by `fork` may use it at once.
//!
//! What it does not do: end what never ends. Its thread and its descriptor are lost until the giver, or the process, ends.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicI32, AtomicU32, Ordering};
use std::time::Duration;

use rustix::fs::fcntl_get_seals;
use rustix::io::Errno;
use rustix::thread::futex::{self as kernel, Flags};
use rustix::time::Timespec;

use crate::os::signals;

/// Most descriptors that wait to be closed; with more, whoever closes one may have to wait.
const PLACES: usize = 1024;
/// Most threads that close at a time, and so most that may be held up before others are.
const THREADS_MAX: u32 = 32;
/// Stack of such a thread in bytes.
const STACK_BYTES: usize = 64 << 10;
/// How long a thread waits for more before it ends.
const REST: Duration = Duration::from_millis(50);
const FREE: i32 = -1;

static WAITING: [AtomicI32; PLACES] = [const { AtomicI32::new(FREE) }; PLACES];
static THREADS: AtomicU32 = AtomicU32::new(0);
/// Those of them that rest; written by each of them.
static RESTING: AtomicU32 = AtomicU32::new(0);
/// How often somebody who rests was to be woken; written by who puts something down.
static NEWS: AtomicU32 = AtomicU32::new(0);

/// Closes what another process gave us.
pub(super) fn close_elsewhere(fd: OwnedFd) {
    if closes_at_once(fd.as_fd()) {
        return close(fd);
    }
    if let Err(fd) = put(fd) {
        return close(fd);
    }
    summon();
}

/// Sees to it that a thread looks at the table that is not held up.
fn summon() {
    if RESTING.load(Ordering::SeqCst) > 0 {
        NEWS.fetch_add(1, Ordering::SeqCst);
        let _ = kernel::wake(&NEWS, Flags::PRIVATE, 1);
    } else if enter() {
        let closer = std::thread::Builder::new().name("musubi-close".to_owned()).stack_size(STACK_BYTES);
        if closer.spawn(close_all).is_err() {
            // No thread to be had: better late than never.
            close_all();
        }
    }
}

/// In a child made by `fork` none of the threads is there.
pub(super) fn in_child() {
    THREADS.store(0, Ordering::Relaxed);
    RESTING.store(0, Ordering::Relaxed);
}

/// Whether it is memory of the kernel, which has nobody to ask. Asking for seals asks no file system.
fn closes_at_once(fd: BorrowedFd<'_>) -> bool {
    fcntl_get_seals(fd).is_ok()
}

/// One thread more, unless there are enough.
fn enter() -> bool {
    let more = |threads| (threads < THREADS_MAX).then_some(threads + 1);
    THREADS.fetch_update(Ordering::SeqCst, Ordering::SeqCst, more).is_ok()
}

fn close_all() {
    signals::leave_to_program();
    loop {
        while let Some(fd) = take() {
            if !is_empty() {
                summon();
            }
            close(fd);
        }
        if rest() {
            continue;
        }
        THREADS.fetch_sub(1, Ordering::SeqCst);
        // What was put down since we looked may have found as many threads as there may be.
        if is_empty() || !enter() {
            return;
        }
    }
}

/// Waits for more; whether there may be some.
fn rest() -> bool {
    let span = Timespec { tv_sec: 0, tv_nsec: REST.subsec_nanos().into() };
    let seen = NEWS.load(Ordering::SeqCst);
    RESTING.fetch_add(1, Ordering::SeqCst);
    // Who has put something down since then has seen that somebody rests.
    let has_more = !is_empty()
        || matches!(kernel::wait(&NEWS, Flags::PRIVATE, seen, Some(&span)), Ok(()) | Err(Errno::AGAIN | Errno::INTR));
    RESTING.fetch_sub(1, Ordering::SeqCst);
    has_more
}

/// Whether nothing waits to be closed.
fn is_empty() -> bool {
    WAITING.iter().all(|place| place.load(Ordering::SeqCst) == FREE)
}

fn put(fd: OwnedFd) -> Result<(), OwnedFd> {
    let raw = fd.as_raw_fd();
    let free = |place: &&AtomicI32| place.compare_exchange(FREE, raw, Ordering::SeqCst, Ordering::Relaxed).is_ok();
    match WAITING.iter().find(free) {
        Some(_) => {
            // The table has it from now on.
            let _ = std::os::fd::IntoRawFd::into_raw_fd(fd);
            Ok(())
        }
        None => Err(fd),
    }
}

fn take() -> Option<OwnedFd> {
    let taken = WAITING.iter().map(|place| place.swap(FREE, Ordering::SeqCst)).find(|raw| *raw != FREE)?;
    Some(owned(taken))
}

fn owned(raw: RawFd) -> OwnedFd {
    // SAFETY: only `put` fills the table, with a descriptor that it owned and gave up; who took it out is the only owner.
    unsafe { OwnedFd::from_raw_fd(raw) }
}

/// Without the C library, as [`super::descriptor`] says.
fn close(fd: OwnedFd) {
    let raw = std::os::fd::IntoRawFd::into_raw_fd(fd);
    // SAFETY: it was ours, open, and nobody uses it any more.
    unsafe { rustix::io::close(raw) };
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::net::{TcpListener, TcpStream};
    use std::sync::mpsc;
    use std::time::Duration;

    use rustix::net::sockopt::set_socket_linger;
    use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

    use super::*;
    use crate::os::descriptor::Descriptor;
    use crate::os::forks::Kept;
    use crate::os::packet_socket::{self, Answer, Received};

    /// A socket whose end waits for an hour, or until the other one, which does not read, is dropped.
    fn lingering() -> (OwnedFd, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut one = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (other, _) = listener.accept().unwrap();
        one.set_nonblocking(true).unwrap();
        while one.write(&[0; 1 << 16]).is_ok() {}
        set_socket_linger(&one, Some(Duration::from_secs(3600))).unwrap();
        (one.into(), other)
    }

    fn pair() -> [OwnedFd; 2] {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let (one, other) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None).unwrap();
        [one, other]
    }

    /// Does on a thread what must end.
    fn ends<T: Send + 'static>(what: impl FnOnce() -> T + Send + 'static) -> T {
        let (done, is_done) = mpsc::channel();
        std::thread::spawn(move || done.send(what()));
        is_done.recv_timeout(Duration::from_secs(30)).expect("something waits for a descriptor's end")
    }

    #[test]
    fn a_descriptor_whose_end_lingers_is_closed_elsewhere() {
        let (socket, _reader) = lingering();
        ends(move || drop(Descriptor::of_others(socket)));
    }

    #[test]
    fn more_ends_that_linger_than_there_are_threads_keep_nobody() {
        let all: Vec<_> = (0..THREADS_MAX + 8).map(|_| lingering()).collect();
        let (sockets, readers): (Vec<_>, Vec<_>) = all.into_iter().unzip();
        ends(move || sockets.into_iter().for_each(|socket| drop(Descriptor::of_others(socket))));
        // Those that have waited for a thread are closed as well: nothing is left to read of them but what was sent.
        for reader in readers {
            reader.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
            std::io::copy(&mut &reader, &mut std::io::sink()).unwrap();
        }
    }

    /// On a connection that is dropped: unread, one descriptor too many, and before a listener that takes no calls.
    #[test]
    fn descriptors_that_nobody_has_read_keep_nobody() {
        for descriptors in [1, packet_socket::FDS_MAX] {
            let [one, other] = pair();
            let (sockets, _readers): (Vec<_>, Vec<_>) = (0..descriptors).map(|_| lingering()).unzip();
            packet_socket::send(one.as_fd(), b"?", &sockets.iter().map(AsFd::as_fd).collect::<Vec<_>>()).unwrap();
            drop(sockets);
            ends(move || drop(Kept::new(Descriptor::of_others(other))));
        }
        let name = format!("musubi//closing/{}", std::process::id());
        let listener = packet_socket::claim(&name).unwrap().unwrap();
        packet_socket::answer_calls(&listener).unwrap();
        let Ok(Answer::Connected(caller, _)) = packet_socket::call(&name) else { panic!("nobody takes calls") };
        let (socket, _reader) = lingering();
        packet_socket::send(caller.as_fd(), b"?", &[socket.as_fd()]).unwrap();
        drop(socket);
        ends(move || drop(listener));
        assert!(packet_socket::claim(&name).unwrap().is_some(), "the name is free at once");
    }

    #[test]
    fn descriptors_that_are_too_many_keep_nobody() {
        for too_many in 1..4 {
            let [one, other] = pair();
            let (sockets, _readers): (Vec<_>, Vec<_>) =
                (0..packet_socket::FDS_MAX + too_many).map(|_| lingering()).unzip();
            send_many(&one, &sockets);
            drop(sockets);
            let other = Kept::new(Descriptor::of_others(other));
            let received = ends(move || packet_socket::receive(other.as_fd(), &mut [0; 8]));
            assert!(matches!(received, Received::Excess), "{too_many} too many: {received:?}");
        }
    }

    fn send_many(socket: &OwnedFd, fds: &[OwnedFd]) {
        use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
        let fds: Vec<_> = fds.iter().map(AsFd::as_fd).collect();
        let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(8))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        assert!(control.push(SendAncillaryMessage::ScmRights(&fds)));
        sendmsg(socket, &[std::io::IoSlice::new(b"?")], &mut control, SendFlags::NOSIGNAL).unwrap();
    }

    #[test]
    fn each_of_many_is_closed() {
        for _ in 0..200 {
            let [one, other] = pair();
            drop(Descriptor::of_others(one));
            // Its end is seen at the other one.
            let mut ends = [rustix::event::PollFd::new(&other, rustix::event::PollFlags::IN)];
            let patience = Timespec { tv_sec: 30, tv_nsec: 0 };
            assert_eq!(rustix::event::poll(&mut ends, Some(&patience)), Ok(1));
        }
    }

    #[test]
    fn memory_is_closed_at_once() {
        let memory = crate::os::sealed::new_common("musubi-test", 4096).unwrap();
        assert!(closes_at_once(memory.as_fd()));
        let [one, _other] = pair();
        assert!(!closes_at_once(one.as_fd()));
    }
}

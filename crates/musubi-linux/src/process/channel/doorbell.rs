//! The doorbell between processes: a futex for a thread that sleeps, a datagram for one that watches descriptors.
//!
//! What you may rely on: ringing never waits, whatever the other side does or claims; at most two system calls.

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicU32, Ordering};

use musubi_core::layout::waiting;
use musubi_core::port::Doorbell;
use rustix::net::sockopt::{socket_domain, socket_type};
use rustix::net::{AddressFamily, SendFlags, SocketType, send};

use crate::os::descriptor::Descriptor;
use crate::os::futex;

/// How to ring the other side of one link.
#[derive(Clone, Copy, Debug, Default)]
pub struct LinkDoorbell<'a> {
    /// The socket that the other side gave, if it watches descriptors.
    pub socket: Option<&'a Descriptor>,
}

impl Doorbell for LinkDoorbell<'_> {
    #[inline]
    fn ring(&self, bell: &AtomicU32, waiting: u32) {
        if waiting & waiting::ASLEEP != 0 {
            bell.fetch_add(1, Ordering::SeqCst);
            futex::wake_shared(bell);
        }
        if waiting & waiting::ARMED != 0
            && let Some(socket) = self.socket
        {
            ring_socket(socket.as_fd());
        }
    }
}

/// Makes the other end of a doorbell socket readable. A full socket is readable already, a broken one has nobody.
pub fn ring_socket(socket: BorrowedFd<'_>) {
    let _ = send(socket, &[1], SendFlags::DONTWAIT | SendFlags::NOSIGNAL);
}

/// Whether a descriptor that a peer sent is a socket on which [`ring_socket`] cannot wait.
pub(crate) fn is_doorbell(fd: BorrowedFd<'_>) -> bool {
    matches!(socket_domain(fd), Ok(AddressFamily::UNIX)) && matches!(socket_type(fd), Ok(SocketType::DGRAM))
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::{UnixDatagram, UnixStream};

    use super::*;

    #[test]
    fn who_sleeps_is_rung_by_its_word_and_who_watches_by_its_socket() {
        let (ours, theirs) = UnixDatagram::pair().unwrap();
        theirs.set_nonblocking(true).unwrap();
        let socket = Descriptor::from(std::os::fd::OwnedFd::from(ours));
        let bell = AtomicU32::new(7);
        for (bits, rings, sends) in [
            (0, 0, false),
            (waiting::ASLEEP, 1, false),
            (waiting::ARMED, 0, true),
            (waiting::ASLEEP | waiting::ARMED, 1, true),
            (!(waiting::ASLEEP | waiting::ARMED), 0, false),
        ] {
            let before = bell.load(Ordering::Relaxed);
            LinkDoorbell { socket: Some(&socket) }.ring(&bell, bits);
            assert_eq!(bell.load(Ordering::Relaxed) - before, rings, "{bits:#x}");
            assert_eq!(theirs.recv(&mut [0; 4]).is_ok(), sends, "{bits:#x}");
            LinkDoorbell::default().ring(&bell, bits);
        }
    }

    #[test]
    fn only_a_socket_for_datagrams_within_the_machine_is_a_doorbell() {
        assert!(is_doorbell(UnixDatagram::pair().unwrap().0.as_fd()));
        assert!(!is_doorbell(UnixStream::pair().unwrap().0.as_fd()));
        assert!(!is_doorbell(std::net::UdpSocket::bind("127.0.0.1:0").unwrap().as_fd()));
        assert!(!is_doorbell(Descriptor::event().unwrap().as_fd()));
    }
}

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

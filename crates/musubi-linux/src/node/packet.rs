//! The messages of nodes as packets.

use std::os::fd::BorrowedFd;

use super::hello::{Garbage, HELLO_BYTES, Hello};
use crate::os::descriptor::Descriptor;
use crate::os::packet_socket::{self, Received};

/// What came.
#[derive(Debug)]
pub(super) enum Packet {
    Hello(Hello, Vec<Descriptor>),
    Nothing,
    Closed,
    /// We had no room for its descriptors.
    Missed,
    Garbage(Garbage),
}

/// Sends a message with descriptors; whether it is on its way.
pub(super) fn send(socket: BorrowedFd<'_>, hello: &Hello, fds: &[BorrowedFd<'_>]) -> bool {
    packet_socket::send(socket, &hello.bytes(), fds).is_ok()
}

/// Takes one packet.
pub(super) fn receive(socket: BorrowedFd<'_>) -> Packet {
    let mut bytes = [0; HELLO_BYTES + 1];
    let (count, fds) = match packet_socket::receive(socket, &mut bytes) {
        Received::Packet(count, fds) => (count, fds),
        Received::Nothing => return Packet::Nothing,
        Received::Closed => return Packet::Closed,
        Received::Truncated => return Packet::Missed,
        Received::Excess => return Packet::Garbage(Garbage::Foreign),
    };
    match Hello::parse(&bytes[..count]) {
        Ok(hello) => Packet::Hello(hello, fds),
        Err(garbage) => Packet::Garbage(garbage),
    }
}

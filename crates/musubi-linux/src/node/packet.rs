//! Packets with descriptors on a socket that never waits.

use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::BorrowedFd;

use rustix::io::Errno;
use rustix::net::{
    RecvAncillaryBuffer, RecvFlags, ReturnFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};

use super::hello::{Garbage, HELLO_BYTES, Hello};
use crate::os::descriptor::Descriptor;
use crate::process::rendezvous::connection::take_fds;

/// What came.
#[derive(Debug)]
pub(super) enum Packet {
    Hello(Hello, Vec<Descriptor>),
    Nothing,
    Closed,
    Garbage(Garbage),
}

/// Sends a message with descriptors; whether it is on its way.
pub(super) fn send(socket: BorrowedFd<'_>, hello: &Hello, fds: &[BorrowedFd<'_>]) -> bool {
    let bytes = hello.bytes();
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !fds.is_empty() {
        control.push(SendAncillaryMessage::ScmRights(fds));
    }
    let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
    loop {
        match sendmsg(socket, &[IoSlice::new(&bytes)], &mut control, flags) {
            Err(Errno::INTR) => (),
            sent => return sent.is_ok(),
        }
    }
}

/// Takes one packet.
pub(super) fn receive(socket: BorrowedFd<'_>) -> Packet {
    let mut bytes = [0; HELLO_BYTES + 1];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let flags = RecvFlags::DONTWAIT | RecvFlags::CMSG_CLOEXEC;
    let received = loop {
        match recvmsg(socket, &mut [IoSliceMut::new(&mut bytes)], &mut control, flags) {
            Err(Errno::INTR) => (),
            Err(Errno::AGAIN) => return Packet::Nothing,
            Err(_) => return Packet::Closed,
            Ok(received) => break received,
        }
    };
    let fds = take_fds(&mut control);
    if received.bytes == 0 {
        return Packet::Closed;
    }
    if received.flags.contains(ReturnFlags::CTRUNC) {
        return Packet::Garbage(Garbage::Foreign);
    }
    match Hello::parse(&bytes[..received.bytes.min(bytes.len())]) {
        Ok(hello) => Packet::Hello(hello, fds),
        Err(garbage) => Packet::Garbage(garbage),
    }
}

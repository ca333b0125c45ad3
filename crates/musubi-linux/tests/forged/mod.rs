//! A participant made by hand: it holds the name of a slot and says what the test wants it to say.
#![allow(dead_code, reason = "each test binary uses a part")]

use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use musubi_core::layout::{self, header};
use musubi_core::plan::Plan;
use musubi_linux::message::{self, Message, Party};
use musubi_linux::names::Names;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{FallocateFlags, MemfdFlags, SealFlags, fallocate, fcntl_add_seals, ftruncate, memfd_create};
use rustix::net::sockopt::set_socket_linger;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, SocketAddrUnix, SocketFlags, SocketType, accept_with, bind, connect, listen, recvmsg, sendmsg,
    socket_with,
};

use crate::system::*;

/// A bare connection to a participant's socket.
pub fn knock(instance: &str, participant: u16) -> OwnedFd {
    let fd = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None).unwrap();
    let name = Names::new(PLAN.name, Some(instance)).unwrap().participant(participant);
    connect(&fd, &SocketAddrUnix::new_abstract_name(name.as_bytes()).unwrap()).unwrap();
    fd
}

/// Calls a participant that takes no calls until nobody more can; gives those who wait.
pub fn fill_the_queue(instance: &str, participant: u16) -> Vec<OwnedFd> {
    let name = Names::new(PLAN.name, Some(instance)).unwrap().participant(participant);
    let address = SocketAddrUnix::new_abstract_name(name.as_bytes()).unwrap();
    let mut queued = Vec::new();
    loop {
        let caller =
            socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC, None)
                .unwrap();
        match connect(&caller, &address) {
            Ok(()) => queued.push(caller),
            Err(errno) => break assert_eq!(errno, rustix::io::Errno::AGAIN),
        }
    }
    queued
}

pub fn post(socket: &OwnedFd, bytes: &[u8], fds: &[BorrowedFd<'_>]) -> bool {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(8))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !fds.is_empty() {
        control.push(SendAncillaryMessage::ScmRights(fds));
    }
    sendmsg(socket, &[IoSlice::new(bytes)], &mut control, SendFlags::NOSIGNAL).is_ok()
}

pub fn take(socket: &OwnedFd) -> Option<(Message, Option<OwnedFd>)> {
    let mut bytes = [0; message::BYTES];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let received = recvmsg(socket, &mut [IoSliceMut::new(&mut bytes)], &mut control, RecvFlags::CMSG_CLOEXEC).ok()?;
    let mut fds = Vec::new();
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(rights) = message {
            fds.extend(rights);
        }
    }
    Some((message::parse(&bytes[..received.bytes]).ok()?, fds.pop()))
}

/// A forged gateway: it holds the name, and its section can have flaws.
pub struct Forged {
    pub plan: &'static Plan<'static>,
    pub instance: String,
    pub party: Party,
    pub name: OwnedFd,
}

/// What is wrong with a section.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Flaw {
    None,
    NotSealed,
    WritableByOthers,
    Short,
    Long,
    Sparse,
    File,
    Magic,
    Epoch,
    Slot,
    Plan,
    /// No memory, but a socket whose end waits.
    Lingers,
}

impl Forged {
    /// The gateway.
    pub fn new(instance: &str) -> Forged {
        Forged::of(&PLAN, 1, instance)
    }

    /// Any participant of any plan.
    pub fn of(plan: &'static Plan<'static>, participant: u16, instance: &str) -> Forged {
        let name = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None).unwrap();
        let path = Names::new(plan.name, Some(instance)).unwrap().participant(participant);
        bind(&name, &SocketAddrUnix::new_abstract_name(path.as_bytes()).unwrap()).unwrap();
        listen(&name, 64).unwrap();
        let domain = plan.domain_of(participant).unwrap();
        let section_bytes = layout::section_bytes(plan, domain).unwrap();
        let party = Party { hash: plan.hash, participant, domain, epoch: 5, section_bytes };
        Forged { plan, instance: instance.to_owned(), party, name }
    }

    pub fn section(&self, flaw: Flaw) -> OwnedFd {
        if flaw == Flaw::File {
            return std::fs::File::open("/proc/self/exe").unwrap().into();
        }
        if flaw == Flaw::Lingers {
            return lingering();
        }
        let bytes = match flaw {
            Flaw::Short => self.party.section_bytes - 1024,
            Flaw::Long => self.party.section_bytes + 4096,
            _ => self.party.section_bytes,
        };
        let fd = memfd_create("forged", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING).unwrap();
        ftruncate(&fd, u64::from(bytes)).unwrap();
        if flaw != Flaw::Sparse {
            fallocate(&fd, FallocateFlags::empty(), 0, u64::from(bytes)).unwrap();
        }
        rustix::io::pwrite(&fd, &self.header(flaw), 0).unwrap();
        let shape = SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL;
        match flaw {
            Flaw::NotSealed => (),
            Flaw::WritableByOthers => fcntl_add_seals(&fd, shape).unwrap(),
            _ => fcntl_add_seals(&fd, shape | SealFlags::FUTURE_WRITE).unwrap(),
        }
        fd
    }

    fn header(&self, flaw: Flaw) -> Vec<u8> {
        let off = |flawed: Flaw| u32::from(flawed == flaw);
        let mut words = [0u32; header::WORDS as usize];
        words[header::MAGIC as usize] = layout::MAGIC + off(Flaw::Magic);
        words[header::VERSION as usize] = layout::VERSION;
        words[header::PLAN_LOW as usize] = self.plan.hash as u32 + off(Flaw::Plan);
        words[header::PLAN_HIGH as usize] = (self.plan.hash >> 32) as u32;
        words[header::SECTION_BYTES as usize] = self.party.section_bytes;
        words[header::PARTICIPANT as usize] = u32::from(self.party.participant) + off(Flaw::Slot);
        words[header::DOMAIN as usize] = u32::from(self.party.domain);
        words[header::EPOCH as usize] = self.party.epoch + off(Flaw::Epoch);
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    /// Calls the Master and gives its answer.
    pub fn call(&self, flaw: Flaw) -> (OwnedFd, Option<Message>) {
        let socket = knock(&self.instance, 0);
        let section = self.section(flaw);
        post(&socket, &Message::Hello(self.party).bytes(), &[section.as_fd()]);
        let answer = take(&socket).map(|(message, _)| message);
        (socket, answer)
    }

    /// Takes the next call, which must come soon.
    pub fn next_call(&self) -> OwnedFd {
        let soon = rustix::time::Timespec { tv_sec: 5, tv_nsec: 0 };
        let mut fds = [PollFd::new(&self.name, PollFlags::IN)];
        assert_eq!(poll(&mut fds, Some(&soon)).unwrap(), 1, "nobody called");
        accept_with(&self.name, SocketFlags::CLOEXEC).unwrap()
    }

    /// Becomes a peer.
    pub fn linked(&self) -> OwnedFd {
        let (socket, answer) = self.call(Flaw::None);
        assert!(matches!(answer, Some(Message::Welcome(_))), "{answer:?}");
        post(&socket, &Message::Ready.bytes(), &[]);
        socket
    }
}

/// A socket whose end waits for an hour, as nobody reads what was sent.
fn lingering() -> OwnedFd {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let one = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    // It lives as long as the test.
    std::mem::forget(listener.accept().unwrap());
    one.set_nonblocking(true).unwrap();
    while std::io::Write::write(&mut &one, &[0; 1 << 16]).is_ok() {}
    set_socket_linger(&one, Some(std::time::Duration::from_secs(3600))).unwrap();
    one.into()
}

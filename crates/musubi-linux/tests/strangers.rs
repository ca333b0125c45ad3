//! Those who are no participants, or lie: what they send, and what becomes of those they send it to.

mod actor;
mod system;

use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use actor::Actor;
use musubi_core::layout::{self, header, tx};
use musubi_linux::message::{self, Message, Party, Refusal};
use musubi_linux::names::Names;
use musubi_linux::{Direction, Participant};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{FallocateFlags, MemfdFlags, SealFlags, fallocate, fcntl_add_seals, ftruncate, memfd_create};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, SocketAddrUnix, SocketFlags, SocketType, accept, bind, connect, listen, recvmsg, sendmsg, socket,
    socket_with, socketpair,
};
use system::*;

#[test]
fn actor() {
    actor::play();
}

/// A bare connection to a participant's socket.
fn knock(instance: &str, participant: u16) -> OwnedFd {
    let fd = socket(AddressFamily::UNIX, SocketType::SEQPACKET, None).unwrap();
    let name = Names::new(PLAN.name, Some(instance)).unwrap().participant(participant);
    connect(&fd, &SocketAddrUnix::new_abstract_name(name.as_bytes()).unwrap()).unwrap();
    fd
}

fn post(socket: &OwnedFd, bytes: &[u8], fds: &[BorrowedFd<'_>]) -> bool {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(8))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !fds.is_empty() {
        control.push(SendAncillaryMessage::ScmRights(fds));
    }
    sendmsg(socket, &[IoSlice::new(bytes)], &mut control, SendFlags::NOSIGNAL).is_ok()
}

fn take(socket: &OwnedFd) -> Option<(Message, Option<OwnedFd>)> {
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

#[test]
fn garbage_disturbs_nobody() {
    let instance = instance();
    let (mut control, mut gateway) = (Actor::start(), Actor::start());
    control.attach(CONTROL, &instance);
    gateway.attach(GATEWAY, &instance);
    assert_eq!(control.ask(&format!("claim {TELEMETRY} send")), "claimed");
    let descriptors_before = control.ask("descriptors");

    let party = Party { hash: PLAN.hash, participant: 2, domain: STORAGE, epoch: 7, section_bytes: 4096 };
    let templates = [
        Message::Hello(party),
        Message::Welcome(party),
        Message::Ready,
        Message::Observe { hash: 3 },
        Message::End { fifo: 0, direction: Direction::Receive, open: true, serial: 1 },
        Message::Segment { smem: 0, generation: 5 },
        Message::Doorbell { fifo: 0, direction: Direction::Receive, serial: 1 },
    ];
    let file = std::fs::File::open("/proc/self/status").unwrap();
    let (pipe, _other) = rustix::pipe::pipe().unwrap();
    let mut next = numbers();
    for round in 0..600 {
        let socket = knock(&instance, 0);
        for _ in 0..next() % 4 {
            let mut bytes = templates[(next() % 7) as usize].bytes().to_vec();
            if !next().is_multiple_of(3) {
                let at = (next() % bytes.len() as u64) as usize;
                bytes[at] = next() as u8;
            }
            if next().is_multiple_of(8) {
                bytes.resize((next() % 300) as usize, 0xa5);
            }
            let fds: Vec<BorrowedFd<'_>> =
                (0..next() % 5).map(|i| if i % 2 == 0 { file.as_fd() } else { pipe.as_fd() }).collect();
            post(&socket, &bytes, &fds);
        }
        if round % 100 == 0 {
            assert_eq!(control.ask("peers"), "[1]");
        }
    }
    let counts: Vec<u32> = control.ask("strangers").split(' ').map(|count| count.parse().unwrap()).collect();
    println!("garbage and refusals: {counts:?}");
    assert!(counts[0] > 100 && counts[1] > 0);
    assert!(gateway.ask("wait 0 100").starts_with('0'), "the gateway is as linked as before");
    eventually("the descriptors' end", || control.ask("descriptors") == descriptors_before);
    let mut storage = Actor::start();
    storage.attach(STORAGE, &instance);
    assert!(control.ask("wait 2 2000").starts_with('2'));
}

#[test]
fn a_flood_of_silent_callers_keeps_nobody_out() {
    let instance = instance();
    let control = Participant::attach(options(CONTROL, &instance)).unwrap();
    let silent: Vec<OwnedFd> = (0..200)
        .map(|index| {
            if index % 20 == 0 {
                std::thread::sleep(Duration::from_millis(2));
            }
            knock(&instance, 0)
        })
        .collect();
    let mut gateway = Actor::start();
    gateway.attach(GATEWAY, &instance);
    control.wait_for(GATEWAY, within(2_000)).unwrap();
    eventually("the deadline of the silent", || control.strangers().garbage >= 200);
    drop(silent);
}

#[test]
fn a_slot_cannot_be_claimed_without_its_name() {
    let instance = instance();
    let control = Participant::attach(options(CONTROL, &instance)).unwrap();
    let mut gateway = Actor::start();
    gateway.attach(GATEWAY, &instance);
    // This process says it is the gateway; the gateway's name is held by another process.
    let party = Party { hash: PLAN.hash, participant: 1, domain: GATEWAY, epoch: 7, section_bytes: 4096 };
    let socket = knock(&instance, 0);
    let memfd = memfd_create("x", MemfdFlags::CLOEXEC).unwrap();
    post(&socket, &Message::Hello(party).bytes(), &[memfd.as_fd()]);
    let answer = take(&socket).map(|(message, _)| message);
    assert!(matches!(answer, Some(Message::Refuse { reason: Refusal::Slot, .. })), "{answer:?}");
    assert_eq!(control.peers().len(), 1);
}

#[test]
fn a_section_can_only_be_read() {
    let instance = instance();
    let control = Participant::attach(options(CONTROL, &instance)).unwrap();
    let socket = knock(&instance, 0);
    post(&socket, &Message::Observe { hash: PLAN.hash }.bytes(), &[]);
    let Some((Message::Welcome(party), Some(fd))) = take(&socket) else { panic!("no section") };
    assert_eq!(party.epoch, control.epoch());
    let bytes = party.section_bytes as usize;
    try_everything(&fd, bytes);
}

/// Every way to write that a holder of the descriptor has.
fn try_everything(fd: &OwnedFd, bytes: usize) {
    use rustix::fs::{FallocateFlags, SealFlags, fallocate, fcntl_add_seals, ftruncate};
    use rustix::io::{Errno, pwrite};
    use rustix::mm::{Advice, MapFlags, MprotectFlags, ProtFlags, madvise, mmap, mprotect};
    let read_write = ProtFlags::READ | ProtFlags::WRITE;
    let map = |fd: BorrowedFd<'_>, protection| {
        // SAFETY: a fresh mapping at an address of the kernel's choice.
        unsafe { mmap(std::ptr::null_mut(), bytes, protection, MapFlags::SHARED, fd, 0) }
    };
    assert_eq!(map(fd.as_fd(), read_write).unwrap_err(), Errno::PERM);
    let readable = map(fd.as_fd(), ProtFlags::READ).unwrap();
    // SAFETY: if it worked, only this mapping would change.
    let widened = unsafe { mprotect(readable, bytes, MprotectFlags::READ | MprotectFlags::WRITE) };
    assert_eq!(widened.unwrap_err(), Errno::ACCESS);
    // SAFETY: if it worked, only the pages of this mapping would change.
    let punched = unsafe { madvise(readable, bytes, Advice::LinuxRemove) };
    assert!(punched.is_err());
    assert_eq!(pwrite(fd, b"x", 0).unwrap_err(), Errno::PERM);
    assert_eq!(ftruncate(fd, 0).unwrap_err(), Errno::PERM);
    assert_eq!(ftruncate(fd, bytes as u64 * 2).unwrap_err(), Errno::PERM);
    let hole = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    assert_eq!(fallocate(fd, hole, 0, 4096).unwrap_err(), Errno::PERM);
    assert_eq!(fcntl_add_seals(fd, SealFlags::WRITE).unwrap_err(), Errno::PERM);
    use std::os::fd::AsRawFd;
    let path = format!("/proc/self/fd/{}", fd.as_raw_fd());
    let reopened = std::fs::OpenOptions::new().read(true).write(true).open(&path).unwrap();
    assert_eq!(map(reopened.as_fd(), read_write).unwrap_err(), Errno::PERM);
    assert_eq!(pwrite(&reopened, b"x", 0).unwrap_err(), Errno::PERM);
    assert!(std::fs::OpenOptions::new().write(true).truncate(true).open(&path).is_err());
}

// ---- a gateway made by hand ----

/// A forged gateway: it holds the name, and its section can have flaws.
struct Forged {
    instance: String,
    party: Party,
    name: OwnedFd,
}

/// What is wrong with a section.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Flaw {
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
}

impl Forged {
    fn new(instance: &str) -> Forged {
        let name = socket(AddressFamily::UNIX, SocketType::SEQPACKET, None).unwrap();
        let path = Names::new(PLAN.name, Some(instance)).unwrap().participant(1);
        bind(&name, &SocketAddrUnix::new_abstract_name(path.as_bytes()).unwrap()).unwrap();
        listen(&name, 64).unwrap();
        let section_bytes = layout::section_bytes(&PLAN, GATEWAY).unwrap();
        let party = Party { hash: PLAN.hash, participant: 1, domain: GATEWAY, epoch: 5, section_bytes };
        Forged { instance: instance.to_owned(), party, name }
    }

    fn section(&self, flaw: Flaw) -> OwnedFd {
        if flaw == Flaw::File {
            return std::fs::File::open("/proc/self/exe").unwrap().into();
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
        words[header::PLAN_LOW as usize] = PLAN.hash as u32 + off(Flaw::Plan);
        words[header::PLAN_HIGH as usize] = (PLAN.hash >> 32) as u32;
        words[header::SECTION_BYTES as usize] = self.party.section_bytes;
        words[header::PARTICIPANT as usize] = u32::from(self.party.participant) + off(Flaw::Slot);
        words[header::DOMAIN as usize] = u32::from(self.party.domain);
        words[header::EPOCH as usize] = self.party.epoch + off(Flaw::Epoch);
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    /// Calls the Master and gives its answer.
    fn call(&self, flaw: Flaw) -> (OwnedFd, Option<Message>) {
        let socket = knock(&self.instance, 0);
        let section = self.section(flaw);
        post(&socket, &Message::Hello(self.party).bytes(), &[section.as_fd()]);
        let answer = take(&socket).map(|(message, _)| message);
        (socket, answer)
    }

    /// Takes the next call, which must come soon.
    fn next_call(&self) -> OwnedFd {
        let soon = rustix::time::Timespec { tv_sec: 5, tv_nsec: 0 };
        let mut fds = [PollFd::new(&self.name, PollFlags::IN)];
        assert_eq!(poll(&mut fds, Some(&soon)).unwrap(), 1, "nobody called");
        accept(&self.name).unwrap()
    }

    /// Becomes a peer.
    fn linked(&self) -> OwnedFd {
        let (socket, answer) = self.call(Flaw::None);
        assert!(matches!(answer, Some(Message::Welcome(_))), "{answer:?}");
        post(&socket, &Message::Ready.bytes(), &[]);
        socket
    }
}

#[test]
fn sections_that_lie_are_refused() {
    let instance = instance();
    let control = Participant::attach(options(CONTROL, &instance)).unwrap();
    let forged = Forged::new(&instance);
    use Flaw::*;
    for flaw in [NotSealed, WritableByOthers, Short, Long, Sparse, File, Magic, Epoch, Slot, Plan] {
        let (_socket, answer) = forged.call(flaw);
        let refused = matches!(answer, Some(Message::Refuse { reason: Refusal::Section, .. }));
        assert!(refused, "{flaw:?}: {answer:?}");
        assert!(control.peers().is_empty());
    }
    let (_socket, answer) = forged.call(None);
    assert!(matches!(answer, Some(Message::Welcome(_))), "{answer:?}");
    eventually("the peer", || control.peers().len() == 1);
}

#[test]
fn a_peer_that_talks_nonsense_is_cut_off() {
    let instance = instance();
    let control = Participant::attach(options(CONTROL, &instance)).unwrap();
    let send = control.claim_end(TELEMETRY, Direction::Send).unwrap();
    let forged = Forged::new(&instance);
    let end = |fifo, direction| Message::End { fifo, direction, open: true, serial: 1 };
    let bell = Message::Doorbell { fifo: TELEMETRY, direction: Direction::Receive, serial: 1 };
    let segment = |generation| Message::Segment { smem: PARAMETERS, generation };
    let (pipe, _other) = rustix::pipe::pipe().unwrap();
    let flags = SocketFlags::CLOEXEC;
    let (stream, _other) = socketpair(AddressFamily::UNIX, SocketType::STREAM, flags, None).unwrap();
    let memfd = memfd_create("unsealed", MemfdFlags::ALLOW_SEALING).unwrap();
    ftruncate(&memfd, 12_288).unwrap();
    let nonsense: Vec<(Vec<u8>, Vec<BorrowedFd<'_>>)> = vec![
        (vec![1, 2, 3], vec![]),
        (end(TELEMETRY, Direction::Send).bytes().to_vec(), vec![]),
        (end(STREAM, Direction::Receive).bytes().to_vec(), vec![]),
        (end(77, Direction::Receive).bytes().to_vec(), vec![]),
        (Message::Ready.bytes().to_vec(), vec![pipe.as_fd()]),
        (Message::Hello(forged.party).bytes().to_vec(), vec![pipe.as_fd()]),
        (Message::Observe { hash: PLAN.hash }.bytes().to_vec(), vec![]),
        (bell.bytes().to_vec(), vec![]),
        (bell.bytes().to_vec(), vec![pipe.as_fd()]),
        (bell.bytes().to_vec(), vec![stream.as_fd()]),
        (segment(3).bytes().to_vec(), vec![memfd.as_fd()]),
        (segment(0).bytes().to_vec(), vec![memfd.as_fd()]),
        (Message::Segment { smem: 9, generation: 3 }.bytes().to_vec(), vec![memfd.as_fd()]),
    ];
    for (index, (bytes, fds)) in nonsense.iter().enumerate() {
        let socket = forged.linked();
        post(&socket, &end(TELEMETRY, Direction::Receive).bytes(), &[]);
        eventually("the link", || send.own().words().get(tx::LINK_EPOCH) == forged.party.epoch);
        let before = control.strangers().garbage;
        post(&socket, bytes, fds);
        eventually("the cut", || control.peers().is_empty());
        assert_eq!(control.strangers().garbage, before + 1, "nonsense number {index}");
        assert_eq!(send.own().words().get(tx::LINK_EPOCH), 0, "nonsense number {index}");
    }
}

#[test]
fn copies_of_old_news_change_nothing() {
    let instance = instance();
    let control = Participant::attach(options(CONTROL, &instance)).unwrap();
    let send = control.claim_end(TELEMETRY, Direction::Send).unwrap();
    let links = send.tx_links().unwrap();
    let forged = Forged::new(&instance);
    let (first, second) = (forged.linked(), forged.linked());
    let tell = |socket: &OwnedFd, open, serial| {
        post(socket, &Message::End { fifo: TELEMETRY, direction: Direction::Receive, open, serial }.bytes(), &[]);
    };
    let serial = || links.lock().receiver.as_ref().map(|link| link.serial);
    tell(&first, true, 7);
    eventually("the link", || serial() == Some(7));
    tell(&second, true, 7);
    tell(&second, false, 7);
    eventually("the close", || serial().is_none());
    tell(&first, true, 7);
    tell(&first, true, 6);
    tell(&first, true, 8);
    eventually("the next opening", || serial() == Some(8));
    assert_eq!(links.lock().gone, 1);
    tell(&second, true, 9);
    eventually("an opening that implies a close", || serial() == Some(9));
    assert_eq!(links.lock().gone, 2);
    drop(first);
    std::thread::sleep(Duration::from_millis(20));
    assert_eq!((control.peers().len(), serial()), (1, Some(9)), "one connection is enough");
    drop(second);
    eventually("the end", || control.peers().is_empty() && serial().is_none());
}

#[test]
fn a_peer_has_few_connections_and_one_life() {
    let instance = instance();
    let control = Participant::attach(options(CONTROL, &instance)).unwrap();
    let mut forged = Forged::new(&instance);
    let held: Vec<OwnedFd> = (0..4).map(|_| forged.linked()).collect();
    let (_socket, answer) = forged.call(Flaw::None);
    assert!(matches!(answer, Some(Message::Refuse { reason: Refusal::Busy, .. })), "{answer:?}");
    // A new epoch takes the place of the old one, whose connections are cut.
    forged.party.epoch = 6;
    let _next = forged.linked();
    eventually("the successor", || control.peers().len() == 1 && control.peers()[0].epoch == 6);
    for socket in &held {
        eventually("the cut", || {
            let packet = take(socket);
            packet.is_none()
        });
    }
}

#[test]
fn whoever_is_busy_is_called_again() {
    let instance = instance();
    let forged = Forged::new(&instance);
    // Nobody takes calls and the queue is full, as with a stopped participant that many have called.
    let path = Names::new(PLAN.name, Some(&instance)).unwrap().participant(1);
    let address = SocketAddrUnix::new_abstract_name(path.as_bytes()).unwrap();
    let mut queued = Vec::new();
    loop {
        let caller = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::NONBLOCK, None).unwrap();
        match connect(&caller, &address) {
            Ok(()) => queued.push(caller),
            Err(errno) => break assert_eq!(errno, rustix::io::Errno::AGAIN),
        }
    }
    let control = Participant::attach(options(CONTROL, &instance)).unwrap();
    assert!(control.peers().is_empty());
    for _ in queued {
        forged.next_call();
    }
    // It is called again; it dies before it answers, and is called once more.
    drop(forged.next_call());
    let call = forged.next_call();
    let hello = take(&call).map(|(message, _)| message);
    assert!(matches!(hello, Some(Message::Hello(party)) if party.epoch == control.epoch()), "{hello:?}");
    let section = forged.section(Flaw::None);
    post(&call, &Message::Welcome(forged.party).bytes(), &[section.as_fd()]);
    eventually("the peer", || control.peers().len() == 1);
}

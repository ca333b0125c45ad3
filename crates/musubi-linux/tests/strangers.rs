//! Those who are no participants, or lie: what they send, and what becomes of those they send it to.

mod actor;
mod system;

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use actor::Actor;
use actor::forged::{Flaw, Forged, fill_the_queue, knock, post, take};
use musubi_core::layout::tx;
use musubi_linux::message::{Message, Party, Refusal};
use musubi_linux::{Direction, Participant};
use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use system::*;

#[test]
fn actor() {
    actor::play();
}

#[test]
fn garbage_disturbs_nobody() {
    let instance = instance();
    let (mut control, mut gateway) = (Actor::start(), Actor::start());
    control.attach(CONTROL, &instance);
    gateway.attach(GATEWAY, &instance);
    assert_eq!(control.ask(&format!("claim {TELEMETRY} send")), "claimed");
    let descriptors_before = control.settled_descriptors().to_string();

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

#[test]
fn sections_that_lie_are_refused() {
    let instance = instance();
    let control = Participant::attach(options(CONTROL, &instance)).unwrap();
    let forged = Forged::new(&instance);
    use Flaw::*;
    for flaw in [NotSealed, WritableByOthers, Short, Long, File, Magic, Epoch, Slot, Plan] {
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
fn a_section_with_missing_pages_has_them_before_it_is_read() {
    let instance = instance();
    let control = Participant::attach(options(CONTROL, &instance)).unwrap();
    let forged = Forged::new(&instance);
    let section = forged.section(Flaw::Sparse);
    let bytes_present = || rustix::fs::fstat(&section).unwrap().st_blocks as u32 * 512;
    assert!(bytes_present() < forged.party.section_bytes);
    let socket = knock(&instance, 0);
    post(&socket, &Message::Hello(forged.party).bytes(), &[section.as_fd()]);
    let answer = take(&socket).map(|(message, _)| message);
    assert!(matches!(answer, Some(Message::Welcome(_))), "{answer:?}");
    assert!(bytes_present() >= forged.party.section_bytes, "{} bytes", bytes_present());
    assert_eq!(control.peers().len(), 1);
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
        (Message::Ready.bytes().to_vec(), vec![pipe.as_fd(); 3]),
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
    let queued = fill_the_queue(&instance, 1);
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

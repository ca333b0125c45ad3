//! Participants in processes of their own: start orders, deaths, stops, users, strangers.

mod actor;
mod system;

use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use actor::Actor;
use musubi_core::layout::tx;
use musubi_linux::message::{self, Message, Party};
use musubi_linux::names::Names;
use musubi_linux::{Direction, Error, Observer, Options, Participant};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, SocketAddrUnix, SocketType, connect, recvmsg, sendmsg, socket,
};
use rustix::process::{Pid, Signal, kill_process};
use system::*;

#[test]
fn actor() {
    actor::play();
}

// ---- start orders ----

#[test]
fn any_start_order() {
    let orders = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]];
    let mut actors = [Actor::start(), Actor::start(), Actor::start()];
    for order in orders {
        let instance = instance();
        for domain in order {
            actors[usize::from(domain)].attach(domain, &instance);
        }
        assert!(!actors[0].ask("wait 1 2000").starts_with("error"));
        assert!(!actors[0].ask("wait 2 2000").starts_with("error"));
        assert!(!actors[1].ask("wait 0 2000").starts_with("error"));
        assert!(!actors[2].ask("wait 0 2000").starts_with("error"));
        assert_eq!(actors[1].ask("peers"), "[0]", "gateway and storage share nothing");
        assert_eq!(actors[0].ask("peers"), "[1, 2]");
        actors.iter_mut().for_each(|actor| assert_eq!(actor.ask("leave"), "left"));
    }
}

#[test]
fn both_start_at_once() {
    let (mut control, mut gateway) = (Actor::start(), Actor::start());
    let mut slowest = Duration::ZERO;
    for round in 0..200 {
        let instance = instance();
        let begin = Instant::now();
        control.say(&format!("attach 0 {instance} plan 2000"));
        gateway.say(&format!("attach 1 {instance} plan 2000"));
        let answers = (control.hear(), gateway.hear());
        assert!(answers.0.starts_with("attached 0") && answers.1.starts_with("attached 1"), "{round}: {answers:?}");
        let waits = (control.ask("wait 1 2000"), gateway.ask("wait 0 2000"));
        assert!(!waits.0.starts_with("error") && !waits.1.starts_with("error"), "{round}: {waits:?}");
        slowest = slowest.max(begin.elapsed());
        let segments = (control.ask("segment 2000"), gateway.ask("segment 2000"));
        assert_eq!(segments.0, segments.1, "one memory, round {round}");
        assert_eq!((control.ask("leave"), gateway.ask("leave")), ("left".to_owned(), "left".to_owned()));
    }
    println!("slowest of 200: {slowest:?}");
}

// ---- deaths ----

#[test]
fn a_kill_is_noticed_and_the_successor_is_another() {
    let instance = instance();
    let control = Participant::attach(options(CONTROL, &instance)).unwrap();
    let send = control.claim_end(TELEMETRY, Direction::Send).unwrap();
    let mut epochs = Vec::new();
    for round in 0..20 {
        let mut gateway = Actor::start();
        let (_, epoch) = gateway.attach(GATEWAY, &instance);
        assert_eq!(gateway.ask(&format!("claim {TELEMETRY} receive")), "claimed");
        eventually("the receiver", || send.own().words().get(tx::LINK_EPOCH) == epoch);
        let begin = Instant::now();
        gateway.kill();
        eventually("the death", || send.own().words().get(tx::LINK_EPOCH) == 0);
        let noticed = begin.elapsed();
        eventually("the end of the peer", || control.peers().is_empty());
        assert!(noticed < Duration::from_millis(100), "round {round}: {noticed:?}");
        if round % 5 == 0 {
            println!("death noticed after {noticed:?}");
        }
        assert!(!epochs.contains(&epoch));
        epochs.push(epoch);
    }
    assert_eq!(send.tx_links().unwrap().lock().gone, 20);
}

#[test]
fn a_forked_child_does_not_hide_the_death() {
    let instance = instance();
    let control = Participant::attach(options(CONTROL, &instance)).unwrap();
    let mut gateway = Actor::start();
    gateway.attach(GATEWAY, &instance);
    assert_eq!(gateway.ask(&format!("claim {TELEMETRY} receive")), "claimed");
    let child: i32 = gateway.ask("fork").strip_prefix("forked ").unwrap().parse().unwrap();
    gateway.kill();
    eventually("the death", || control.peers().is_empty());
    // The child lives on and keeps neither the slot nor the end.
    let mut successor = Actor::start();
    successor.attach(GATEWAY, &instance);
    assert_eq!(successor.ask(&format!("claim {TELEMETRY} receive")), "claimed");
    kill_process(Pid::from_raw(child).unwrap(), Signal::KILL).unwrap();
}

#[test]
fn a_raw_clone_does_not_hide_the_death_either() {
    let instance = instance();
    let control = Participant::attach(options(CONTROL, &instance)).unwrap();
    let mut gateway = Actor::start();
    gateway.attach(GATEWAY, &instance);
    let child: i32 = gateway.ask("clone").strip_prefix("forked ").unwrap().parse().unwrap();
    let begin = Instant::now();
    gateway.kill();
    eventually("the death", || control.peers().is_empty());
    println!("noticed by pidfd after {:?}", begin.elapsed());
    kill_process(Pid::from_raw(child).unwrap(), Signal::KILL).unwrap();
}

#[test]
fn a_stopped_peer_does_not_hold_up_others() {
    let instance = instance();
    let mut gateway = Actor::start();
    gateway.attach(GATEWAY, &instance);
    gateway.signal(Signal::STOP);
    let begin = Instant::now();
    let control = Participant::attach(options(CONTROL, &instance)).unwrap();
    let took = begin.elapsed();
    println!("attached beside a stopped peer after {took:?}");
    assert!(took < Duration::from_millis(1_500), "{took:?}");
    assert!(control.peers().is_empty());
    let segment = control.open_segment(PARAMETERS, within(0)).unwrap();
    assert!(!segment.settled(), "the stopped peer may hold the lock");
    gateway.signal(Signal::CONT);
    control.wait_for(GATEWAY, within(2_000)).unwrap();
    eventually("the settling", || segment.settled());

    gateway.signal(Signal::STOP);
    eventually("the stall", || control.peers().first().is_some_and(|peer| peer.stalled));
    assert_eq!(control.peers().len(), 1, "stopped is not dead");
    gateway.signal(Signal::CONT);
    eventually("the heartbeat", || control.peers().first().is_some_and(|peer| !peer.stalled));
    gateway.signal(Signal::STOP);
    gateway.kill();
    eventually("the death of a stopped one", || control.peers().is_empty());
}

#[test]
fn a_segment_survives_the_master() {
    let instance = instance();
    let (mut control, mut gateway) = (Actor::start(), Actor::start());
    let (_, epoch) = control.attach(CONTROL, &instance);
    gateway.attach(GATEWAY, &instance);
    assert_eq!(control.ask("segment 2000"), format!("generation {epoch} settled true"));
    assert!(gateway.ask("segment 2000").starts_with(&format!("generation {epoch}")));
    assert_eq!(control.ask("write 42"), "written");
    control.kill();
    assert_eq!(gateway.ask("read"), "42");
    let mut control = Actor::start();
    control.attach(CONTROL, &instance);
    assert_eq!(control.ask("segment 2000"), format!("generation {epoch} settled true"));
    assert_eq!(control.ask("read"), "42");
    assert_eq!(control.ask("write 43"), "written");
    assert_eq!(gateway.ask("read"), "43");
    control.kill();
    gateway.kill();
    // Nobody kept it: the next Master makes another.
    let mut control = Actor::start();
    let (_, next) = control.attach(CONTROL, &instance);
    assert_eq!(control.ask("segment 2000"), format!("generation {next} settled true"));
    assert_eq!(control.ask("read"), "0");
}

#[test]
fn a_member_that_was_stopped_takes_the_masters_new_segment() {
    let instance = instance();
    let (mut control, mut gateway) = (Actor::start(), Actor::start());
    let (_, first) = control.attach(CONTROL, &instance);
    gateway.attach(GATEWAY, &instance);
    assert!(gateway.ask("segment 2000").starts_with(&format!("generation {first}")));
    gateway.signal(Signal::STOP);
    control.kill();
    let mut control = Actor::start();
    let (_, second) = control.attach(CONTROL, &instance);
    assert_eq!(control.ask("segment 2000"), format!("generation {second} settled false"));
    assert_eq!(control.ask("write 9"), "written");
    gateway.signal(Signal::CONT);
    eventually("the new generation", || gateway.ask("generation") == second.to_string());
    assert_eq!(gateway.ask("read"), "9", "at the same address");
}

// ---- who may not ----

#[test]
fn slots_are_counted() {
    let instance = instance();
    let mut storages = [Actor::start(), Actor::start(), Actor::start()];
    assert_eq!(storages[0].attach(STORAGE, &instance).0, 2);
    assert_eq!(storages[1].attach(STORAGE, &instance).0, 3);
    let answer = storages[2].ask(&format!("attach 2 {instance} plan 50"));
    assert!(answer.contains("all 2 slots of domain storage are taken"), "{answer}");
    assert_eq!(storages[0].ask(&format!("claim {STREAM} send")), "claimed");
    assert!(storages[1].ask(&format!("claim {STREAM} send")).contains("in use"));
    storages[2].say(&format!("attach 2 {instance} plan 5000"));
    storages[0].kill();
    assert!(storages[2].hear().starts_with("attached 2"));
    assert_eq!(storages[1].ask(&format!("claim {STREAM} send")), "claimed");
}

#[test]
fn plans_must_be_equal() {
    let instance = instance();
    let control = Participant::attach(options(CONTROL, &instance)).unwrap();
    let mut gateway = Actor::start();
    let answer = gateway.ask(&format!("attach 1 {instance} other 2000"));
    assert!(answer.contains("1111222233334444") && answer.contains("5555666677778888"), "{answer}");
    let error = control.wait_for(GATEWAY, within(100)).unwrap_err();
    assert!(matches!(error, Error::PlanMismatch { participant: 1, theirs: 0x5555_6666_7777_8888, .. }), "{error}");
    let mut observer = Observer::new(&OTHER_PLAN, Some(&instance)).unwrap();
    assert!(matches!(observer.refresh(within(2_000)), Err(Error::PlanMismatch { .. })));
}

#[test]
fn users_must_be_named() {
    let own = rustix::process::geteuid();
    let options = Options { plan: &PLAN_OF_NOBODY, ..options(GATEWAY, &instance()) };
    match Participant::attach(options) {
        Err(Error::UserNotAllowed { uid, domain }) => assert_eq!((uid, domain.as_str()), (own.as_raw(), "gateway")),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_foreign_user_is_kept_out() {
    if !rustix::process::geteuid().is_root() {
        println!("SKIPPED: needs root to act as another user");
        return;
    }
    const NOBODY: u32 = 65534;
    let first = instance();
    let mut foreign = Actor::start_as(Some(NOBODY));
    let control = Participant::attach(options(CONTROL, &first)).unwrap();
    // Its own copy of the plan lets everybody be themselves; the plan of the others decides.
    let answer = foreign.ask(&format!("attach 1 {first} plan 2000"));
    println!("{answer}");
    // It sees a slot held by a user that its plan does not allow, and tells it nothing; nor is it let in.
    assert!(control.peers().is_empty());
    foreign.say("leave");
    assert_eq!(foreign.hear(), "left");

    // A squatter on the slot of the Master is named.
    let second = instance();
    assert!(foreign.ask(&format!("attach 0 {second} plan 2000")).starts_with("attached"));
    match Participant::attach(options(CONTROL, &second)) {
        Err(Error::NameForeign { uid, .. }) => assert_eq!(uid, NOBODY),
        other => panic!("{other:?}"),
    }
    // Where the plan names it, it is let in.
    let third = instance();
    let own = Options { plan: &PLAN_OF_NOBODY, ..options(CONTROL, &third) };
    let control = Participant::attach(own).unwrap();
    let mut allowed = Actor::start_as(Some(NOBODY));
    let answer = allowed.ask(&format!("attach 1 {third} nobody 2000"));
    assert!(answer.starts_with("attached") || answer.contains("refused user"), "{answer}");
    let _ = control;
}

// ---- strangers ----

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

/// A fixed stream of numbers (xorshift), so that a failure can be repeated.
fn numbers() -> impl FnMut() -> u64 {
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    }
}

#[test]
fn garbage_disturbs_nobody() {
    let instance = instance();
    let control = Participant::attach(options(CONTROL, &instance)).unwrap();
    let mut gateway = Actor::start();
    gateway.attach(GATEWAY, &instance);
    let _send = control.claim_end(TELEMETRY, Direction::Send).unwrap();
    let descriptors_before = open_descriptors();

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
            assert_eq!(control.peers().len(), 1);
        }
    }
    println!("{:?}", control.strangers());
    assert!(control.strangers().garbage > 100);
    assert_eq!(gateway.ask("wait 0 100").split(' ').next(), Some("0"), "the gateway is as linked as before");
    eventually("the descriptors' end", || open_descriptors() <= descriptors_before + 2);
    let mut storage = Actor::start();
    storage.attach(STORAGE, &instance);
    control.wait_for(STORAGE, within(2_000)).unwrap();
}

fn open_descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
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
    let memfd = rustix::fs::memfd_create("x", rustix::fs::MemfdFlags::CLOEXEC).unwrap();
    post(&socket, &Message::Hello(party).bytes(), &[memfd.as_fd()]);
    let answer = take(&socket).map(|(message, _)| message);
    assert!(matches!(answer, Some(Message::Refuse { reason: message::Refusal::Slot, .. })), "{answer:?}");
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

// ---- what is left, what is seen ----

#[test]
fn nothing_is_left_behind() {
    let listing = |directory: &str| {
        let mut names: Vec<_> = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        names
    };
    let ours = |names: Vec<std::ffi::OsString>| {
        names.into_iter().filter(|name| name.to_string_lossy().contains("musubi")).collect::<Vec<_>>()
    };
    let instance = instance();
    let (mut control, mut gateway) = (Actor::start(), Actor::start());
    control.attach(CONTROL, &instance);
    gateway.attach(GATEWAY, &instance);
    control.ask("segment 2000");
    gateway.ask("segment 2000");
    let named = || std::fs::read_to_string("/proc/net/unix").unwrap().lines().filter(|l| l.contains(&instance)).count();
    assert!(named() >= 2);
    control.kill();
    gateway.kill();
    assert_eq!(named(), 0);
    assert!(ours(listing("/dev/shm")).is_empty() && ours(listing("/run")).is_empty());
}

#[test]
fn an_observer_sees_from_outside() {
    let instance = instance();
    let mut control = Actor::start();
    let (_, epoch) = control.attach(CONTROL, &instance);
    assert_eq!(control.ask(&format!("claim {TELEMETRY} send")), "claimed");
    let mut observer = Observer::new(&PLAN, Some(&instance)).unwrap();
    observer.refresh(within(2_000)).unwrap();
    let seen = observer.participants();
    assert_eq!(seen.len(), 1);
    assert_eq!((seen[0].section.epoch(), seen[0].pid, seen[0].alive()), (epoch, control.pid(), true));
    assert!(seen[0].heartbeat_age_ms() < 1_000);
    assert_eq!(observer.holders(TELEMETRY, Direction::Send).count(), 1);
    assert_eq!(observer.holders(TELEMETRY, Direction::Receive).count(), 0);
    control.kill();
    assert!(!observer.participants()[0].alive());
    observer.refresh(within(2_000)).unwrap();
    assert!(observer.participants().is_empty());
}

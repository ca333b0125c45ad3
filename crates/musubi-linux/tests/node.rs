//! Those who call a node and are none, or lie: what they send, and what becomes of them.

use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use musubi_core::layout::LinkShape;
use musubi_linux::Error;
use musubi_linux::node::{self, Dialed, Event, HELLO_BYTES, Hello, Kind, Presence, Refused, Source};
use rustix::event::{EventfdFlags, eventfd};
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, ftruncate, memfd_create};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags,
    SocketAddrUnix, SocketFlags, SocketType, connect, recvmsg, sendmsg, socket_with,
};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

mod neighbours;

use neighbours::{HASH, SHAPE, options};

const SECOND_NS: u64 = 1_000_000_000;

/// A bare connection to a node's socket.
fn knock(test: &str, number: u16) -> OwnedFd {
    let fd = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None).unwrap();
    let name = node::name(&options(test, number).system, number).unwrap();
    connect(&fd, &SocketAddrUnix::new_abstract_name(name.as_bytes()).unwrap()).unwrap();
    fd
}

fn post(socket: &OwnedFd, bytes: &[u8], fds: &[BorrowedFd<'_>]) {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(8))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !fds.is_empty() {
        control.push(SendAncillaryMessage::ScmRights(fds));
    }
    sendmsg(socket, &[IoSlice::new(bytes)], &mut control, SendFlags::NOSIGNAL).unwrap();
}

/// What a node answered; `None` if it hung up.
fn answer(socket: &OwnedFd) -> Option<Kind> {
    let mut bytes = [0; HELLO_BYTES];
    let mut control = RecvAncillaryBuffer::default();
    let got = recvmsg(socket, &mut [IoSliceMut::new(&mut bytes)], &mut control, RecvFlags::DONTWAIT);
    let count = got.expect("neither an answer nor an end").bytes;
    (count > 0).then(|| Hello::parse(&bytes[..count]).unwrap().kind)
}

fn call_of(from: u16) -> Hello {
    Hello { kind: Kind::Call, hash: HASH, from, to: 1, incarnation: 3, shape: SHAPE, frames: 1 }
}

fn bell() -> OwnedFd {
    eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).unwrap()
}

fn memory(seals: SealFlags, bytes: u32) -> OwnedFd {
    let fd = memfd_create("stranger", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING).unwrap();
    ftruncate(&fd, u64::from(bytes)).unwrap();
    fcntl_add_seals(&fd, seals).unwrap();
    fd
}

#[test]
fn what_is_no_call_is_cut_off_and_counted() {
    let mut own = Presence::open(options("garbage", 1)).unwrap();
    for bytes in [&[7][..], &[0; HELLO_BYTES], &[0xff; 200], &call_of(2).bytes()[..63]] {
        let caller = knock("garbage", 1);
        post(&caller, bytes, &[]);
        own.ready(Source::Listener, 0);
        assert_eq!(answer(&caller), None);
    }
    // A node's answer to what nobody asked.
    let caller = knock("garbage", 1);
    post(&caller, &Hello { kind: Kind::Welcome, ..call_of(2) }.bytes(), &[]);
    own.ready(Source::Listener, 0);
    assert_eq!((answer(&caller), own.counts().garbage, own.counts().refused), (None, 5, 0));
    assert!(own.next_event().is_none());
}

#[test]
fn who_does_not_fit_is_told_why() {
    let mut own = Presence::open(options("unfit", 1)).unwrap();
    // It holds the number it claims, so only what is wrong below is wrong.
    let _named = Presence::open(options("unfit", 2)).unwrap();
    let sound = SHAPE.section_bytes().unwrap();
    let sealed = SealFlags::FUTURE_WRITE | SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL;
    let mut version = call_of(2).bytes();
    version[4] = 9;
    let cases: Vec<(Vec<u8>, Vec<OwnedFd>, Refused)> = vec![
        (version.to_vec(), vec![], Refused::Version),
        (Hello { frames: 2, ..call_of(2) }.bytes().to_vec(), vec![], Refused::Version),
        (Hello { shape: LinkShape { slots: 32, ..SHAPE }, ..call_of(2) }.bytes().to_vec(), vec![], Refused::Version),
        (Hello { hash: 5, ..call_of(2) }.bytes().to_vec(), vec![], Refused::Description),
        (Hello { to: 3, ..call_of(2) }.bytes().to_vec(), vec![], Refused::Node),
        (call_of(1).bytes().to_vec(), vec![], Refused::Node),
        (call_of(100).bytes().to_vec(), vec![], Refused::Node),
        // Nobody holds number 3.
        (call_of(3).bytes().to_vec(), vec![], Refused::Node),
        (call_of(2).bytes().to_vec(), vec![], Refused::Memory),
        (call_of(2).bytes().to_vec(), vec![bell()], Refused::Memory),
        (call_of(2).bytes().to_vec(), vec![bell(), bell()], Refused::Memory),
        (call_of(2).bytes().to_vec(), vec![memory(SealFlags::SHRINK, sound), bell()], Refused::Memory),
        (call_of(2).bytes().to_vec(), vec![memory(sealed, sound - 4096), bell()], Refused::Memory),
        // Right length and seals, but no pages and no header.
        (call_of(2).bytes().to_vec(), vec![memory(sealed, sound), bell()], Refused::Memory),
    ];
    let count = cases.len() as u32;
    for (number, (bytes, fds, reason)) in cases.into_iter().enumerate() {
        let caller = knock("unfit", 1);
        post(&caller, &bytes, &fds.iter().map(|fd| fd.as_fd()).collect::<Vec<_>>());
        own.ready(Source::Listener, 0);
        assert_eq!(answer(&caller), Some(Kind::Refuse(reason)), "case {number}");
        assert_eq!(answer(&caller), None, "case {number}");
        assert_eq!(own.counts().last, Some(reason));
    }
    assert_eq!((own.counts().refused, own.counts().garbage), (count, 0));
    assert!(own.next_event().is_none());
}

/// Named in a process that runs one test alone, as limits are a process's.
const ALONE: &str = "MUSUBI_TEST_ALONE";

#[test]
fn what_we_have_no_descriptors_for_is_no_fault_of_the_caller() {
    const TEST: &str = "what_we_have_no_descriptors_for_is_no_fault_of_the_caller";
    if std::env::var_os(ALONE).is_none() {
        let mut again = std::process::Command::new(std::env::current_exe().unwrap());
        assert!(again.args(["--exact", TEST, "--test-threads=1"]).env(ALONE, "1").status().unwrap().success());
        return;
    }
    let mut own = Presence::open(options("shortage", 1)).unwrap();
    let _named = Presence::open(options("shortage", 2)).unwrap();
    let call = |caller: &OwnedFd| {
        let sealed = SealFlags::FUTURE_WRITE | SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL;
        let (memory, bell) = (memory(sealed, SHAPE.section_bytes().unwrap()), bell());
        post(caller, &call_of(2).bytes(), &[memory.as_fd(), bell.as_fd()]);
    };
    let caller = knock("shortage", 1);
    call(&caller);
    let now = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: Some(128), ..now }).unwrap();
    let mut filler: Vec<OwnedFd> = std::iter::from_fn(|| rustix::io::dup(&caller).ok()).collect();
    // Room for the connection, and for nothing that comes on it.
    filler.pop();
    own.ready(Source::Listener, 0);
    assert_eq!(answer(&caller), Some(Kind::Refuse(Refused::Busy)));
    drop(filler);
    // With room it is heard: this memory has no header.
    let caller = knock("shortage", 1);
    call(&caller);
    own.ready(Source::Listener, 0);
    assert_eq!(answer(&caller), Some(Kind::Refuse(Refused::Memory)));
}

#[test]
fn the_silent_and_the_many_are_bounded() {
    let mut own = Presence::open(options("silent", 1)).unwrap();
    let mut callers: Vec<OwnedFd> = Vec::new();
    for _ in 0..20 {
        callers.extend((0..10).map(|_| knock("silent", 1)));
        own.ready(Source::Listener, 5);
    }
    let open = |callers: &[OwnedFd]| {
        let mut bytes = [0; 1];
        callers.iter().filter(|fd| rustix::net::recv(fd, &mut bytes, RecvFlags::DONTWAIT).is_err()).count()
    };
    assert_eq!((open(&callers), own.counts().silent), (64, 136));
    assert_eq!(own.deadline_ns(), 5 + SECOND_NS);
    own.tick(4 + SECOND_NS);
    assert_eq!(open(&callers), 64);
    own.tick(5 + SECOND_NS);
    assert_eq!((open(&callers), own.counts().silent, own.deadline_ns()), (0, 200, u64::MAX));
}

#[test]
fn another_user_is_refused() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: only root can become another user");
        return;
    }
    let mut own = Presence::open(options("users", 1)).unwrap();
    let stranger = std::thread::spawn(|| {
        // Of this thread alone.
        let uid = rustix::process::Uid::from_raw(54_321);
        rustix::thread::set_thread_res_uid(uid, uid, uid).unwrap();
        // The name has our user's number in it.
        let fd = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None).unwrap();
        let name = node::name(&options("users", 1).system, 1).unwrap().replace("/u54321/", "/u0/");
        connect(&fd, &SocketAddrUnix::new_abstract_name(name.as_bytes()).unwrap()).unwrap();
        post(&fd, &call_of(2).bytes(), &[]);
        fd
    });
    let stranger = stranger.join().unwrap();
    own.ready(Source::Listener, 0);
    assert_eq!(answer(&stranger), Some(Kind::Refuse(Refused::User)));
}

#[test]
fn a_stranger_on_a_nodes_name_gets_nothing() {
    let mut own = Presence::open(options("squatter", 1)).unwrap();
    assert_eq!(own.dial(2, 0), Dialed::Absent);
    assert!(matches!(Presence::open(options("squatter", 1)), Err(Error::NodeOccupied { .. })));
    if rustix::process::geteuid().is_root() {
        let name = node::name(&options("squatter", 2).system, 2).unwrap();
        let squat = move || {
            let uid = rustix::process::Uid::from_raw(54_321);
            rustix::thread::set_thread_res_uid(uid, uid, uid).unwrap();
            let fd = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None).unwrap();
            rustix::net::bind(&fd, &SocketAddrUnix::new_abstract_name(name.as_bytes()).unwrap()).unwrap();
            rustix::net::listen(&fd, 8).unwrap();
            fd
        };
        let _squatter = std::thread::spawn(squat).join().unwrap();
        assert_eq!((own.dial(2, 0), own.counts().squatters), (Dialed::Absent, 1));
        assert!(matches!(Presence::open(options("squatter", 2)), Err(Error::NameForeign { uid: 54_321, .. })));
    }
}

#[test]
fn a_call_that_is_not_answered_fails_in_time() {
    let mut own = Presence::open(options("unanswered", 1)).unwrap();
    let other = Presence::open(options("unanswered", 2)).unwrap();
    assert_eq!((own.dial(2, 0), own.dial(2, 0)), (Dialed::Begun, Dialed::Begun));
    own.tick(SECOND_NS - 1);
    assert!(own.next_event().is_none());
    own.tick(SECOND_NS);
    assert!(matches!(own.next_event(), Some(Event::Failed { peer: 2, refused: None })));
    drop(other);
    assert_eq!(own.dial(2, 0), Dialed::Absent);
}

#[test]
fn a_call_that_made_way_for_one_that_came_to_nothing_fails() {
    let mut own = Presence::open(options("crossed", 5)).unwrap();
    let mut other = Presence::open(options("crossed", 2)).unwrap();
    assert_eq!((own.dial(2, 0), other.dial(5, 0)), (Dialed::Begun, Dialed::Begun));
    // The other's call counts, and the other hangs up before it is answered.
    other.tick(SECOND_NS);
    own.ready(Source::Listener, 0);
    assert!(matches!(own.next_event(), Some(Event::Failed { peer: 2, refused: None })));
}

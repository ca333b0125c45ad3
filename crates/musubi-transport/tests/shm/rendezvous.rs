//! A neighbour of the same user that answers and calls with anything, or not at all: what it costs the other nodes.
//!
//! How it works: node 2 is made by hand, in a process of its own. It holds its number, as only then it is heard; it answers who calls it in one way,
//! and calls nodes 1 and 3 with what that way sends. Meanwhile nodes 1 and 3 exchange messages, while node 1 starts, after it
//! has started anew, and on. Node 1 wants a link with node 2 all the time.

use std::io::{BufRead, BufReader, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use musubi_core::layout::{LINK_MAGIC, LINK_VERSION, link};
use musubi_linux::node::{self as place, HELLO_BYTES, Hello, Kind, Refused};
use musubi_mcapi::EndpointId;
use musubi_mcapi::engine::{Outcome, RequestId, Sending};
use musubi_mcapi::process::Running as Node;
use musubi_transport::frame::VERSION;
use musubi_transport::runtime::{Deadline, DeadlineExt, Options};
use musubi_transport::shm::records::SHAPE;
use musubi_transport::topology::Topology;
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, ftruncate, memfd_create};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags,
    SocketAddrUnix, SocketFlags, SocketType, accept_with, bind, connect, listen, recvmsg, sendmsg, socket_with,
};

use super::driver::{PATIENCE, node, system};

/// Memory that comes with a hello.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Half {
    Sound,
    NotSealed,
    TooShort,
    Huge,
    NoHeader,
    OfAnother,
    OtherVersion,
    Pipe,
    Nothing,
}

/// How node 2 meets others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Manner {
    Refuse(Refused),
    Hand(Half),
    /// Sound memory, but what should ring it is something else.
    BadBell,
    OtherHash,
    OtherHelloVersion,
    OtherFrames,
    /// It says that it is node 3.
    OtherName,
    Garbage,
    TooLong,
    HangUp,
    Nothing,
    /// A link that is sound, on whose socket garbage follows.
    GarbageLater,
    /// Each time another of these, with bytes changed and descriptors of all kinds.
    Anything(u32),
}

const MANNERS: [Manner; 29] = [
    Manner::Refuse(Refused::Version),
    Manner::Refuse(Refused::Description),
    Manner::Refuse(Refused::User),
    Manner::Refuse(Refused::Node),
    Manner::Refuse(Refused::Memory),
    Manner::Refuse(Refused::Crossed),
    Manner::Refuse(Refused::Busy),
    Manner::Hand(Half::NotSealed),
    Manner::Hand(Half::TooShort),
    Manner::Hand(Half::Huge),
    Manner::Hand(Half::NoHeader),
    Manner::Hand(Half::OfAnother),
    Manner::Hand(Half::OtherVersion),
    Manner::Hand(Half::Pipe),
    Manner::Hand(Half::Nothing),
    Manner::Hand(Half::Sound),
    Manner::BadBell,
    Manner::OtherHash,
    Manner::OtherHelloVersion,
    Manner::OtherFrames,
    Manner::OtherName,
    Manner::Garbage,
    Manner::TooLong,
    Manner::HangUp,
    Manner::Nothing,
    Manner::GarbageLater,
    Manner::Anything(1),
    Manner::Anything(2),
    Manner::Anything(3),
];

/// Names the system and the manner to the process that is node 2.
const LIAR: &str = "MUSUBI_TEST_LIAR";
/// Calls of each other node before it looks who calls it; it keeps more of them open than anybody takes.
const CALLS_AT_ONCE: usize = 40;
const OPEN_MAX: usize = 400;
/// What that process prints when it has met somebody.
const MET: &str = "met somebody";

/// Node 2 as it is made by hand, in a process of its own: who is who is told by processes.
struct Liar(Child);

impl Liar {
    fn start(topology: &Arc<Topology>, manner: Manner) -> Liar {
        let place = MANNERS.iter().position(|other| *other == manner).unwrap();
        let mut child = Command::new(std::env::current_exe().unwrap());
        child.args(["--exact", "rendezvous::liar", "--test-threads=1", "--nocapture"]);
        child.env(LIAR, format!("{place} {}", topology.system)).stdout(Stdio::piped());
        let liar = Liar(child.spawn().unwrap());
        eventually("node 2 has its name", || knock(topology, 2).is_some());
        liar
    }

    /// Ends it; it has met somebody.
    fn end(mut self) {
        let mut lines = BufReader::new(self.0.stdout.take().unwrap()).lines();
        assert!(lines.any(|line| line.unwrap().contains(MET)), "nobody was met");
    }
}

impl Drop for Liar {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

/// Node 2, if this process is to be it.
#[test]
fn liar() {
    let Ok(task) = std::env::var(LIAR) else { return };
    let (place, system) = task.split_once(' ').unwrap();
    let manner = MANNERS[place.parse::<usize>().unwrap()];
    let topology = Topology { system: system.to_owned(), ..Topology::single_machine() };
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let listener = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None).unwrap();
    bind(&listener, &address(&topology, 2)).unwrap();
    listen(&listener, 64).unwrap();
    let mut random = Random(manner.seed());
    let (mut open, mut met, mut has_told) = (Vec::new(), 0, false);
    loop {
        let soon = Timespec { tv_sec: 0, tv_nsec: 10_000_000 };
        poll(&mut [PollFd::new(&listener, PollFlags::IN)], Some(&soon)).unwrap();
        while let Ok(call) = accept_with(&listener, SocketFlags::CLOEXEC) {
            if let Some(hello) = take(&call) {
                meet(&topology, manner, Kind::Welcome, hello.from, &call, &mut random);
                (open, met) = (kept(open, manner, call), met + 1);
            }
        }
        // Who says nothing keeps what it has; the others call on and on.
        let calls = if manner == Manner::Nothing && open.len() >= OPEN_MAX / 2 { 0 } else { CALLS_AT_ONCE };
        for other in [1, 3].repeat(calls) {
            if let Some(call) = knock(&topology, other) {
                meet(&topology, manner, Kind::Call, node(other).index() as u16, &call, &mut random);
                (open, met) = (kept(open, manner, call), met + 1);
            }
        }
        if met > 0 && !std::mem::replace(&mut has_told, true) {
            println!("{MET}");
        }
    }
}

/// Waits until something is so.
fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < end, "{what}: not in time");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Connections that stay open: the last ones, as who wants to be heard again and again closes the first.
fn kept(mut open: Vec<OwnedFd>, manner: Manner, call: OwnedFd) -> Vec<OwnedFd> {
    if manner != Manner::HangUp {
        open.push(call);
    }
    if open.len() > OPEN_MAX {
        open.remove(0);
    }
    open
}

/// A sequence that a seed determines (xorshift, Marsaglia 2003).
struct Random(u32);

impl Random {
    fn next(&mut self) -> u32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 17;
        self.0 ^= self.0 << 5;
        self.0
    }

    fn below(&mut self, end: usize) -> usize {
        self.next() as usize % end
    }
}

impl Manner {
    fn seed(self) -> u32 {
        match self {
            Manner::Anything(seed) => seed.wrapping_mul(0x9e37_79b1) | 1,
            _ => 1,
        }
    }
}

fn address(topology: &Topology, number: u32) -> SocketAddrUnix {
    let name = place::name(&topology.system, node(number).index() as u16).unwrap();
    SocketAddrUnix::new_abstract_name(name.as_bytes()).unwrap()
}

/// A connection to a node, if it is there and has room.
fn knock(topology: &Topology, number: u32) -> Option<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let call = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None).unwrap();
    connect(&call, &address(topology, number)).ok().map(|()| call)
}

/// What a caller said; its descriptors are closed.
fn take(call: &OwnedFd) -> Option<Hello> {
    let mut bytes = [0; HELLO_BYTES];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(4))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut ready = [PollFd::new(call, PollFlags::IN)];
    poll(&mut ready, Some(&Timespec { tv_sec: 0, tv_nsec: 50_000_000 })).unwrap();
    let got = recvmsg(call, &mut [IoSliceMut::new(&mut bytes)], &mut control, RecvFlags::DONTWAIT).ok()?;
    control.drain().for_each(drop);
    Hello::parse(&bytes[..got.bytes]).ok()
}

fn post(call: &OwnedFd, bytes: &[u8], fds: &[BorrowedFd<'_>]) {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(8))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !fds.is_empty() {
        control.push(SendAncillaryMessage::ScmRights(fds));
    }
    // Who has hung up meanwhile does not hear it.
    let _ = sendmsg(call, &[IoSlice::new(bytes)], &mut control, SendFlags::NOSIGNAL | SendFlags::DONTWAIT);
}

/// Says what there is to say to the node of this index, as the caller or as the one that was called.
fn meet(topology: &Topology, manner: Manner, kind: Kind, to: u16, call: &OwnedFd, random: &mut Random) {
    let hello = Hello {
        kind,
        hash: topology.hash,
        from: node(2).index() as u16,
        to,
        incarnation: 5,
        shape: SHAPE,
        frames: VERSION,
    };
    let say = |hello: Hello, half: Half| {
        let (memory, bell) = (half.memory(&hello), bell());
        let fds: Vec<BorrowedFd<'_>> = memory.iter().chain([&bell]).map(AsFd::as_fd).collect();
        post(call, &hello.bytes(), &fds);
    };
    match manner {
        Manner::Refuse(reason) => post(call, &Hello { kind: Kind::Refuse(reason), ..hello }.bytes(), &[]),
        Manner::Hand(half) => say(hello, half),
        Manner::BadBell => {
            let (memory, (pipe, _other)) = (Half::Sound.memory(&hello), rustix::pipe::pipe().unwrap());
            let fds: Vec<BorrowedFd<'_>> = memory.iter().chain([&pipe]).map(AsFd::as_fd).collect();
            post(call, &hello.bytes(), &fds);
        }
        Manner::OtherHash => say(Hello { hash: !topology.hash, ..hello }, Half::Sound),
        Manner::OtherHelloVersion => {
            let mut bytes = hello.bytes();
            bytes[4] = 9;
            post(call, &bytes, &[]);
        }
        Manner::OtherFrames => say(Hello { frames: VERSION + 1, ..hello }, Half::Sound),
        Manner::OtherName => say(Hello { from: node(3).index() as u16, ..hello }, Half::Sound),
        Manner::Garbage => post(call, b"what?", &[]),
        Manner::TooLong => post(call, &[0xa5; 4 * HELLO_BYTES], &[]),
        Manner::HangUp | Manner::Nothing => {}
        Manner::GarbageLater => {
            say(hello, Half::Sound);
            for _ in 0..3 {
                post(call, &hello.bytes(), &[bell().as_fd()]);
            }
        }
        Manner::Anything(_) => say_anything(topology, hello, call, random),
    }
}

/// Some of the other manners one after another, with a byte changed now and then and descriptors of all kinds.
fn say_anything(topology: &Topology, hello: Hello, call: &OwnedFd, random: &mut Random) {
    for _ in 0..random.below(4) {
        let mut bytes = hello.bytes().to_vec();
        match random.below(6) {
            0 => {
                let manner = MANNERS[random.below(MANNERS.len() - 3)];
                meet(topology, manner, hello.kind, hello.to, call, random);
                continue;
            }
            1 => bytes.resize(random.below(3 * HELLO_BYTES), 0xa5),
            2 => {}
            _ => {
                let at = random.below(bytes.len());
                bytes[at] = random.next() as u8;
            }
        }
        let halves = [Half::Sound, Half::NotSealed, Half::TooShort, Half::NoHeader, Half::OfAnother, Half::Pipe];
        let fds: Vec<OwnedFd> = (0..random.below(6))
            .filter_map(|_| if random.below(2) == 0 { Some(bell()) } else { halves[random.below(6)].memory(&hello) })
            .collect();
        post(call, &bytes, &fds.iter().map(AsFd::as_fd).collect::<Vec<_>>());
    }
}

fn bell() -> OwnedFd {
    eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).unwrap()
}

impl Half {
    /// The descriptor; `None` if there is to be none, or this kernel has no such memory.
    fn memory(self, hello: &Hello) -> Option<OwnedFd> {
        let bytes = u64::from(SHAPE.section_bytes().unwrap());
        let mut flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let mut seals = SealFlags::FUTURE_WRITE | SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL;
        let (mut length, mut of, mut version) = (bytes, hello.from, LINK_VERSION);
        match self {
            Half::Sound | Half::NoHeader => {}
            Half::NotSealed => seals = SealFlags::empty(),
            Half::TooShort => length -= 4096,
            Half::Huge => {
                flags |= MemfdFlags::HUGETLB | MemfdFlags::HUGE_2MB;
                length = bytes.next_multiple_of(2 << 20);
            }
            Half::OfAnother => of += 1,
            Half::OtherVersion => version += 1,
            Half::Pipe => return Some(rustix::pipe::pipe().unwrap().0),
            Half::Nothing => return None,
        }
        let memory = memfd_create("liar", flags).ok()?;
        ftruncate(&memory, length).ok()?;
        if self != Half::NoHeader && self != Half::Huge {
            write_header(&memory, &Hello { from: of, ..*hello }, version);
        }
        fcntl_add_seals(&memory, seals).unwrap();
        Some(memory)
    }
}

/// What a link's section begins with.
fn write_header(memory: &OwnedFd, hello: &Hello, version: u32) {
    let mut words = [0; 16];
    let fields = [
        (link::MAGIC, LINK_MAGIC),
        (link::VERSION, version),
        (link::HASH_LOW, hello.hash as u32),
        (link::HASH_HIGH, (hello.hash >> 32) as u32),
        (link::NODE, u32::from(hello.from)),
        (link::PEER, u32::from(hello.to)),
        (link::INCARNATION, hello.incarnation),
        (link::SLOTS, hello.shape.slots),
        (link::BLOCKS, hello.shape.blocks),
        (link::BLOCK_BYTES, hello.shape.block_bytes),
    ];
    fields.into_iter().for_each(|(at, value)| words[at as usize] = value);
    let bytes: Vec<u8> = words.iter().flat_map(|word: &u32| word.to_ne_bytes()).collect();
    rustix::io::pwrite(memory, &bytes, 0).unwrap();
}

fn start(topology: &Arc<Topology>, number: u32) -> Node {
    Node::start(Arc::clone(topology), node(number), Options::default()).unwrap()
}

fn soon() -> Deadline {
    Deadline::after(PATIENCE)
}

/// Asks for node 2's endpoint at this port.
fn ask_for_two(of: &Node, port: u32) -> RequestId {
    of.with(|engine, links| engine.get_endpoint((0, 2), port, links)).unwrap().unwrap()
}

/// Sends messages to and fro, each whole and in order.
fn exchange(one: &Node, other: &Node, rounds: u32, manner: Manner) {
    let create = |of: &Node| of.with(|engine, links| engine.create_endpoint(None, links)).unwrap().unwrap();
    let ends = [create(one), create(other)];
    for round in 0..rounds {
        for (from, to, [source, target]) in [(one, other, ends), (other, one, [ends[1], ends[0]])] {
            let payload = round.to_le_bytes().repeat(50);
            let sent =
                from.wait_for(soon(), |engine, links| match engine.send_message(source, target, 0, &payload, links) {
                    Ok(Sending::Blocked) => None,
                    other => Some(other),
                });
            assert!(matches!(sent, Ok(Ok(Sending::Done | Sending::Confirming(_)))), "{manner:?}: {sent:?}");
            let came = to.wait_for(soon(), |engine, links| engine.receive_message(target, links).unwrap());
            let (came, mut bytes) = (came.expect("in time"), [0; 300]);
            let length = came.payload.copy_to(&mut bytes);
            assert_eq!(&bytes[..length], &payload, "{manner:?}");
        }
    }
    let delete = |of: &Node, end: EndpointId| of.with(|engine, links| engine.delete_endpoint(end, links)).unwrap();
    delete(one, ends[0]).unwrap();
    delete(other, ends[1]).unwrap();
}

fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

/// What node 2 does, whoever it is, keeps node 1 neither from starting nor from speaking to node 3; and when node 2 is an
/// honest one, it is linked, and what was asked of it is answered.
fn endure(manner: Manner) {
    let topology = system(&format!("liar-{manner:?}").replace(['(', ')'], "-").to_lowercase());
    let honest = start(&topology, 3);
    let liar = Liar::start(&topology, manner);
    for restart in 0..2 {
        let ours = start(&topology, 1);
        let wanted = ask_for_two(&ours, 7);
        exchange(&ours, &honest, 20, manner);
        std::thread::sleep(Duration::from_millis(50));
        exchange(&ours, &honest, 20, manner);
        let is_answered = ours.with(|engine, _| engine.is_complete(wanted)).unwrap().unwrap_or(true);
        assert!(!is_answered, "{manner:?}, restart {restart}: nobody has made that endpoint");
    }
    let ours = start(&topology, 1);
    let wanted = ask_for_two(&ours, 7);
    exchange(&ours, &honest, 5, manner);
    liar.end();
    let successor = start(&topology, 2);
    let there = successor.with(|engine, links| engine.create_endpoint(Some(7), links)).unwrap().unwrap();
    let found = ours.wait_for(soon(), |engine, _| engine.take_outcome(wanted).unwrap()).expect("the successor answers");
    assert!(matches!(found, Ok(Outcome::Endpoint(found)) if found == there), "{manner:?}: {found:?}");
    exchange(&ours, &successor, 5, manner);
}

#[test]
fn no_manner_of_a_neighbour_keeps_others_from_starting_or_speaking() {
    endure(Manner::HangUp);
    let before = descriptors();
    for manner in MANNERS {
        endure(manner);
    }
    // What neighbours gave is closed a little later.
    let begin = Instant::now();
    while descriptors() > before + 8 {
        assert!(begin.elapsed() < Duration::from_secs(30), "{before} descriptors have become {}", descriptors());
        std::thread::sleep(Duration::from_millis(5));
    }
}

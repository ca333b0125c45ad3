//! An opened NIC and a linked peer that sends any frames: no panic, no byte outside what is registered for the peer, every call
//! ends.
//!
//! How it works: the input is a row of calls of the program and frames of the peer. A frame is for an end of ours that exists, as
//! the frames that we sent say, or for anything. Memory of another tag must not change.
#![no_main]

use std::sync::Arc;

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use musubi_transport::frame::Header;
use musubi_transport::links::{Links, Loss, NoBlock, Payload, Reach, Report, Sent};
use musubi_transport::protocol::Protocol;
use musubi_transport::topology::ClassIntake;
use musubi_transport::{NodeId, Priority, Regulation};
use musubi_vipl::address::{Address, Directory, NicEntry, NicNumber};
use musubi_vipl::engine::{LocalPlace, MemoryAttributes, MemoryHandle, Queue, Reliability, TagHandle, ViAttributes};
use musubi_vipl::memory::Lines;
use musubi_vipl::nic::{CallerNumber, NicState, ViNumber};

/// Bytes that the peer may reach, and as many that it may not.
const BYTES: usize = 4096;

#[derive(Arbitrary, Debug)]
enum Step {
    Frame { kind: u8, class: u8, status: u8, flags: u8, to: u8, words: [u32; 4], payload: Vec<u8> },
    Create { level: u8 },
    Destroy { vi: u8 },
    Request { vi: u8, peer: bool },
    Listen { accepts: bool, vi: u8 },
    Disconnect { vi: u8 },
    Post { vi: u8, receives: bool, control: u16, count: u8, length: u16, offset: u16 },
    Done { vi: u8 },
    Down,
    Acknowledged { number: u8 },
    Room,
    Tick { ns: u32 },
}

/// What the peer was sent: it numbers every other frame, and takes some only.
#[derive(Default)]
struct Peer {
    is_up: bool,
    sent: u64,
    /// Ends that we named.
    names: Vec<u32>,
}

impl Links for Peer {
    type Block = NoBlock;

    fn send(&mut self, _: NodeId, header: &Header, _: &[u8]) -> Sent {
        if !self.is_up {
            return Sent::NoLink;
        }
        self.sent += 1;
        // Frames of the connection manager say whom they are from.
        if header.kind >= 10 && header.from != 0 {
            self.names.push(header.from);
        }
        match self.sent % 5 {
            0 => Sent::Full,
            1 | 2 => Sent::Numbered(self.sent),
            _ => Sent::Delivered,
        }
    }

    fn want(&mut self, _: NodeId, _: bool) {}

    fn knows(&self, _: NodeId) -> bool {
        true
    }

    fn is_drained(&mut self, _: NodeId) -> bool {
        true
    }

    fn reach(&mut self, _: NodeId) -> Option<Arc<dyn Reach>> {
        Some(Arc::new(Anything))
    }
}

/// Memory of the peer's process: most addresses can be read, and what is there depends on nothing.
#[derive(Debug)]
struct Anything;

impl Reach for Anything {
    fn fetch(&self, address: u64, into: &mut [u8]) -> bool {
        into.fill(address as u8);
        !address.is_multiple_of(3)
    }
}

struct World {
    nic: NicState<NoBlock>,
    peer: Peer,
    tag: TagHandle,
    base: u64,
    handle: MemoryHandle,
    vis: Vec<ViNumber>,
    callers: Vec<CallerNumber>,
    now_ns: u64,
}

/// What both take of the class of all VIs.
const INTAKE: ClassIntake = ClassIntake {
    class: match Priority::new(3) {
        Some(class) => class,
        None => Priority::LEAST_URGENT,
    },
    regulation: Regulation { messages_per_s: 1_000_000, messages_burst: 8, bytes_per_s: 1 << 30, bytes_burst: 4096 },
};

fn node(nic: u16) -> NodeId {
    NodeId::of_slot(nic, 0).expect("within the limits")
}

fn at(nic: u16) -> Address {
    Address::new(NicNumber(nic), b"x").expect("short enough")
}

impl World {
    fn new() -> World {
        let mut nic = <NicState<NoBlock> as Protocol>::new(node(0), 77);
        let entry = |number| NicEntry {
            name: format!("nic{number}"),
            hosts: Vec::new(),
            slots: 1,
            is_trusted: true,
            intakes: vec![INTAKE],
        };
        nic.describe(Directory { nics: (0..2).map(entry).collect() });
        let tag = nic.create_tag().expect("the first");
        let attributes = MemoryAttributes { tag, remote_write: true, remote_read: true };
        let (base, handle) = nic.register_own(Lines::zeroed(BYTES), attributes).expect("the first");
        let (vis, callers) = (Vec::new(), Vec::new());
        World { nic, peer: Peer::default(), tag, base, handle, vis, callers, now_ns: 1 }
    }

    fn vi(&self, at: u8) -> ViNumber {
        self.vis.get(usize::from(at) % self.vis.len().max(1)).copied().unwrap_or(ViNumber(u32::from(at)))
    }

    fn report(&mut self, report: Report<NoBlock>) {
        self.nic.report(self.now_ns, report, &mut self.peer);
    }

    fn step(&mut self, step: Step) {
        match step {
            Step::Frame { kind, class, status, flags, to, words: [from, any, tag, value], payload } => {
                let payload: Vec<u8> = payload.into_iter().take(600).collect();
                let name = self.peer.names.get(usize::from(to)).copied().unwrap_or(any);
                let class = Priority::new(class % 8).unwrap_or(Priority::LEAST_URGENT);
                let length = payload.len() as u32;
                let header = Header { kind: 1 + kind % 21, class, status, flags, length, from, to: name, tag, value };
                if let Some(header) = Header::decode(&header.encode(), NicState::<NoBlock>::KINDS) {
                    let payload = Payload::Owned(payload);
                    self.report(Report::Frame { peer: node(1), header, payload });
                }
            }
            Step::Down => {
                self.peer.is_up = false;
                self.report(Report::Down { peer: node(1), loss: Loss::Cut });
                self.up();
            }
            Step::Acknowledged { number } => {
                self.report(Report::Acknowledged { peer: node(1), number: u64::from(number) });
            }
            Step::Room => self.report(Report::Room { peer: node(1) }),
            Step::Tick { ns } => {
                self.now_ns += u64::from(ns);
                self.nic.tick(self.now_ns, &mut self.peer);
            }
            step => self.call(step),
        }
    }

    fn up(&mut self) {
        self.peer.is_up = true;
        self.report(Report::Up { peer: node(1), incarnation: 1 });
    }

    /// What the program does. Refusals are fine.
    fn call(&mut self, step: Step) {
        match step {
            Step::Create { level } => {
                let reliability = Reliability::ALL[usize::from(level) % 3];
                let attributes = ViAttributes {
                    reliability,
                    transfer_bytes_max: 8192,
                    class: 3,
                    tag: self.tag,
                    remote_write: true,
                    remote_read: reliability.is_reliable(),
                    credit: level >= 128,
                };
                let created = self.nic.create_vi(attributes, None, None);
                self.vis.extend(created.ok().filter(|_| self.vis.len() < 8));
            }
            Step::Destroy { vi } => {
                let vi = self.vi(vi);
                if self.nic.destroy_vi(vi).is_ok() {
                    self.vis.retain(|one| *one != vi);
                }
            }
            Step::Request { vi, peer: false } => drop(self.nic.request(self.vi(vi), at(0), at(1), &mut self.peer)),
            Step::Request { vi, peer: true } => {
                let until_ns = self.now_ns + 1000;
                let _ = self.nic.request_peer(self.vi(vi), at(0), at(1), until_ns, &mut self.peer);
            }
            Step::Listen { accepts, vi } => self.serve(accepts, vi),
            Step::Disconnect { vi } => drop(self.nic.disconnect(self.vi(vi), &mut self.peer)),
            Step::Post { vi, receives, control, count, length, offset } => {
                self.write(control, u16::from(count), u32::from(length), u64::from(offset));
                let queue = if receives { Queue::Receive } else { Queue::Send };
                let _ = self.nic.post(self.vi(vi), queue, (self.base, self.handle), &mut self.peer);
            }
            Step::Done { vi } => {
                let _ = self.nic.dequeue(self.vi(vi), Queue::Send);
                let _ = self.nic.dequeue(self.vi(vi), Queue::Receive);
                self.nic.take_news();
            }
            _ => {}
        }
    }

    fn serve(&mut self, accepts: bool, vi: u8) {
        let Ok(listener) = self.nic.listen(&at(0)) else { return };
        self.callers.extend(self.nic.next_caller(listener).map(|caller| caller.0));
        self.nic.end_listening(self.now_ns, listener);
        let Some(caller) = self.callers.pop() else { return };
        let done = match accepts {
            true => self.nic.accept(caller, self.vi(vi), &mut self.peer),
            false => self.nic.reject(caller, &mut self.peer),
        };
        if done.is_err() {
            let _ = self.nic.reject(caller, &mut self.peer);
        }
    }

    /// A descriptor at the begin of our memory, all of whose segments are alike.
    fn write(&mut self, control: u16, count: u16, length: u32, offset: u64) {
        let mut bytes = vec![0; 32];
        bytes[12..14].copy_from_slice(&count.to_le_bytes());
        bytes[14..16].copy_from_slice(&control.to_le_bytes());
        bytes[24..28].copy_from_slice(&(length * u32::from(count)).to_le_bytes());
        for _ in 0..count {
            bytes.extend((self.base + offset).to_le_bytes());
            bytes.extend(self.handle.0.to_le_bytes());
            bytes.extend(length.to_le_bytes());
        }
        let place = LocalPlace { address: self.base, handle: self.handle, bytes: bytes.len() as u32 };
        // As long as it fits.
        let _ = self.nic.memory().copy_in(place, &bytes);
    }
}

fuzz_target!(|steps: Vec<Step>| {
    let mut world = World::new();
    let guarded = world.nic.create_tag().expect("the second");
    let attributes = MemoryAttributes { tag: guarded, remote_write: true, remote_read: true };
    let (address, handle) = world.nic.register_own(Lines::zeroed(BYTES), attributes).expect("there is room");
    world.up();
    for step in steps.into_iter().take(200) {
        world.step(step);
    }
    for vi in world.vis.clone() {
        world.nic.disconnect(vi, &mut world.peer).expect("every VI can be disconnected");
    }
    let mut seen = Vec::new();
    let place = LocalPlace { address, handle, bytes: BYTES as u32 };
    assert!(world.nic.memory().copy_out(place, &mut seen));
    assert!(seen.iter().all(|byte| *byte == 0), "memory of another tag has changed");
});

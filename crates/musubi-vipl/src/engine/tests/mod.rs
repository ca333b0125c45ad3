//! Two VIs over a line in memory: what the tests of the engine share.

mod credit;
mod hostile;
mod levels;
mod machine;
mod protection;
mod reading;
mod runs;

extern crate std;

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;
use std::vec::Vec;

use super::descriptor::{ControlWords, Descriptor, SegmentWords};
use super::*;

/// Where a side's memory begins.
const BASE: u64 = 0x1_0000;
/// Bytes of it.
const BYTES: usize = 8192;

const LIMITS: Limits = Limits { descriptors: 64, segments: 8, ..Limits::DEFAULT };

fn attributes(reliability: Reliability) -> ViAttributes {
    let tag = TagHandle(0);
    ViAttributes {
        reliability,
        transfer_bytes_max: 4096,
        class: 3,
        tag,
        remote_write: true,
        remote_read: true,
        credit: false,
    }
}

/// A side's memory, and what its descriptors were completed with, in order.
#[derive(Clone, Default)]
struct Ram {
    bytes: Rc<RefCell<Vec<u8>>>,
    completed: Rc<RefCell<Vec<(u64, Completion)>>>,
}

impl Ram {
    fn read(&self, address: u64, bytes: u32) -> Vec<u8> {
        let from = (address - BASE) as usize;
        self.bytes.borrow()[from..from + bytes as usize].to_vec()
    }

    fn write(&self, address: u64, bytes: &[u8]) {
        let from = (address - BASE) as usize;
        self.bytes.borrow_mut()[from..from + bytes.len()].copy_from_slice(bytes);
    }
}

impl LocalMemory for Ram {
    type Payload = [u8];

    fn bytes(payload: &[u8]) -> u32 {
        payload.len() as u32
    }

    fn place(&mut self, mut payload: &[u8], into: impl Iterator<Item = LocalPlace>) -> bool {
        for place in into {
            let (now, later) = payload.split_at(place.bytes as usize);
            self.write(place.address, now);
            payload = later;
        }
        assert!(payload.is_empty(), "places for all of it");
        true
    }

    fn complete(&mut self, descriptor: &Descriptor, completion: &Completion) -> bool {
        assert!(completion.status.has(Status::DONE));
        self.completed.borrow_mut().push((descriptor.address, *completion));
        true
    }
}

/// One direction of the line.
struct Line {
    ram: Ram,
    frames: VecDeque<(ViFrame, Vec<u8>)>,
    /// Frames that it takes until it is full.
    room: usize,
    payload_bytes_max: u32,
    /// Whether it numbers what it takes, and how far it is.
    numbers: Option<u64>,
}

impl Wire for Line {
    fn payload_bytes_max(&self) -> u32 {
        self.payload_bytes_max
    }

    fn hand(&mut self, frame: &ViFrame, payload: Places<'_>) -> Handed {
        if self.frames.len() >= self.room {
            return Handed::Full;
        }
        let mut bytes = Vec::new();
        payload.for_each(|place| bytes.extend(self.ram.read(place.address, place.bytes)));
        assert!(bytes.len() as u32 <= self.payload_bytes_max);
        self.frames.push_back((*frame, bytes));
        match &mut self.numbers {
            None => Handed::Accepted,
            Some(number) => {
                *number += 1;
                Handed::Numbered(*number)
            }
        }
    }
}

/// One side: a VI, what it registered, its memory, and its way to the other.
struct Side {
    vi: Vi,
    protection: Protection,
    ram: Ram,
    line: Line,
    /// All of the memory.
    handle: MemoryHandle,
    tag: TagHandle,
}

impl Side {
    fn new(attributes: ViAttributes) -> Side {
        let ram = Ram { bytes: Rc::new(RefCell::new(std::vec![0; BYTES])), ..Ram::default() };
        let mut protection = Protection::new(&LIMITS, 0);
        let tag = protection.create_tag().unwrap();
        let permits = MemoryAttributes { tag, remote_write: true, remote_read: true };
        let handle = protection.register(BASE, BYTES as u64, permits).unwrap();
        let line = Line {
            ram: ram.clone(),
            frames: VecDeque::new(),
            room: usize::MAX,
            payload_bytes_max: 1024,
            numbers: None,
        };
        let vi = Vi::new(ViAttributes { tag, ..attributes }, LIMITS.descriptors);
        Side { vi, protection, ram, line, handle, tag }
    }

    fn post(&mut self, queue: Queue, descriptor: Descriptor) {
        self.vi.post(queue, |place| *place = descriptor, &mut self.ram).unwrap();
        self.pump();
    }

    fn pump(&mut self) {
        self.vi.pump(&self.protection, &mut self.line, &mut self.ram);
    }

    fn hear(&mut self, frame: &ViFrame, payload: &[u8]) {
        self.vi.frame(frame, payload, &self.protection, &mut self.line, &mut self.ram);
    }

    /// A descriptor of this side's memory.
    fn message(&self, name: u64, operation: Operation, places: &[(u64, u32)]) -> Descriptor {
        let mut segments = Segments::NONE;
        for &(address, bytes) in places {
            segments.push(LocalPlace { address, handle: self.handle, bytes }).unwrap();
        }
        let remote = RemotePlace::default();
        Descriptor {
            address: name,
            handle: self.handle,
            operation,
            immediate: None,
            fence: false,
            remote,
            segments,
            refused: None,
        }
    }

    /// The statuses that descriptors completed with, and their names.
    fn completed(&self) -> Vec<(u64, Status)> {
        self.ram.completed.borrow_mut().drain(..).map(|(name, completion)| (name, completion.status)).collect()
    }
}

/// Two sides that are connected.
fn connected(reliability: Reliability) -> (Side, Side) {
    connected_as(attributes(reliability))
}

fn connected_as(attributes: ViAttributes) -> (Side, Side) {
    let (mut one, mut other) = (Side::new(attributes), Side::new(attributes));
    let peer = PeerVi { attributes };
    one.vi.request().unwrap();
    one.vi.establish(peer).unwrap();
    other.vi.accept(peer).unwrap();
    (one, other)
}

/// Carries frames both ways until nothing moves.
fn carry(one: &mut Side, other: &mut Side) {
    while carry_one_way(one, other) | carry_one_way(other, one) {}
}

/// Carries what one side has to say; whether there was anything.
fn carry_one_way(from: &mut Side, to: &mut Side) -> bool {
    from.pump();
    let mut moved = false;
    while let Some((frame, payload)) = from.line.frames.pop_front() {
        to.hear(&frame, &payload);
        moved = true;
    }
    if let Some(number) = from.line.numbers {
        from.vi.accepted(number, &from.protection, &mut from.line, &mut from.ram);
    }
    moved
}

fn send(side: &Side, name: u64, at: u64, bytes: u32) -> Descriptor {
    side.message(name, Operation::SendReceive, &[(at, bytes)])
}

const DONE_RECEIVE: Status = Status(0x1_0001);

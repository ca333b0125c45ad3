//! Engines joined by links in memory: every rule of the engine, one by one and at random.

mod attributes;
mod borders;
mod conversations;
mod cost;
mod endpoints;
mod hostile;
mod messages;
mod model;
mod nodes;
mod pictures;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::vec::Vec;

use super::{Engine, Message, Outcome, RequestId, Sending};
use crate::engine::frame::{Header, KINDS, Kind};
use crate::{EndpointId, Error, NodeId};
use musubi_transport::Priority;
use musubi_transport::links::{Block, Links, Loss, Payload, Report, Sent, Short};
use musubi_transport::status::{AcceptorStatus, LinkStatus, LoggedEvent, WakeStatus};

/// A block that counts how many of its kind there are.
#[derive(Debug)]
pub struct TestBlock {
    bytes: Vec<u8>,
    may_be_kept: bool,
    alive: Arc<AtomicUsize>,
}

impl Drop for TestBlock {
    fn drop(&mut self) {
        self.alive.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Block for TestBlock {
    fn len(&self) -> usize {
        self.bytes.len()
    }
    fn copy_to(&self, offset: usize, into: &mut [u8]) -> usize {
        let count = into.len().min(self.bytes.len() - offset);
        into[..count].copy_from_slice(&self.bytes[offset..][..count]);
        count
    }
    fn address(&self) -> *const u8 {
        self.bytes.as_ptr()
    }
    fn may_be_kept(&self) -> bool {
        self.may_be_kept
    }
}

/// One direction between two nodes.
#[derive(Debug, Default)]
pub struct Wire {
    pub up: bool,
    /// Frames are numbered and confirmed, as over a network.
    pub numbered: bool,
    /// Nothing more is taken for now.
    pub full: bool,
    last: u64,
    /// It has said what was connected when the link began. That is neither numbered nor counted.
    begun: bool,
    frames: VecDeque<(Header, Vec<u8>, u64)>,
    /// Numbers delivered and not yet confirmed, with their classes.
    unconfirmed: Vec<(Priority, u64)>,
}

/// The links of one node.
#[derive(Debug, Default)]
pub struct Outs {
    pub wires: BTreeMap<NodeId, Wire>,
    pub wanted: BTreeSet<NodeId>,
    pub sent: u64,
    pub log: Vec<LoggedEvent>,
}

impl Links for Outs {
    type Block = TestBlock;

    fn send(&mut self, peer: NodeId, header: &Header, payload: &[u8]) -> Sent {
        assert_eq!(header.length as usize, payload.len());
        assert!(payload.len() <= KINDS.shape(header.kind).expect("a kind").payload_max as usize);
        let Some(wire) = self.wires.get_mut(&peer).filter(|wire| wire.up) else { return Sent::NoLink };
        if wire.full {
            return Sent::Full;
        }
        if header.kind == Kind::Connected as u8 && header.from == 0 {
            wire.begun = true;
            return Sent::Delivered;
        }
        self.sent += 1;
        wire.last += 1;
        wire.frames.push_back((*header, payload.to_vec(), wire.last));
        if wire.numbered { Sent::Numbered(wire.last) } else { Sent::Delivered }
    }

    fn want(&mut self, peer: NodeId, wanted: bool) {
        match wanted {
            true => self.wanted.insert(peer),
            false => self.wanted.remove(&peer),
        };
    }

    fn knows(&self, peer: NodeId) -> bool {
        peer.domain() == 0
    }

    fn link(&self, peer: NodeId) -> Option<LinkStatus> {
        self.wires.get(&peer).map(|wire| link_picture(peer, wire.last))
    }

    fn acceptor(&self) -> Option<AcceptorStatus> {
        Some(AcceptorStatus {
            accepted: self.sent,
            identity: 3,
            memory_strangers: u64::MAX,
            ..AcceptorStatus::default()
        })
    }

    fn wakes(&self) -> Option<WakeStatus> {
        Some(WakeStatus { woken: self.sent, frames: 5, raised: u64::MAX, deferred: 3 })
    }

    fn log(&self) -> Vec<LoggedEvent> {
        self.log.clone()
    }
}

pub fn link_picture(node: NodeId, frames_sent: u64) -> LinkStatus {
    LinkStatus {
        node,
        kind: 3,
        state: 1,
        rtt_ns: 70_000,
        frames_sent,
        frames_received: 2,
        bytes_sent: 3,
        bytes_received: 4,
        connections: 5,
        resumed: 6,
        cuts: 7,
        repeated: 8,
        violations: 9,
        silences: 10,
        refused: 11,
        waited: Some(12),
    }
}

/// Some nodes, numbered from 0.
pub struct World {
    pub engines: Vec<Engine<TestBlock>>,
    pub outs: Vec<Outs>,
    pub now_ns: u64,
    /// Payloads beyond a few bytes are lent; these blocks may be kept.
    pub blocks_may_be_kept: bool,
    pub blocks: Arc<AtomicUsize>,
    /// Confirmations are given as soon as a frame is delivered.
    pub confirms: bool,
}

pub fn node(number: usize) -> NodeId {
    NodeId::new(0, number as u32).unwrap()
}

impl World {
    /// So many nodes, all linked with one another.
    pub fn linked(count: usize, numbered: bool) -> World {
        let mut world = World::apart(count);
        for (a, b) in pairs(count) {
            world.link(a, b, numbered);
        }
        world
    }

    pub fn apart(count: usize) -> World {
        World {
            engines: (0..count).map(|number| Engine::new(node(number), 7 + number as u32)).collect(),
            outs: (0..count).map(|_| Outs::default()).collect(),
            now_ns: 1,
            blocks_may_be_kept: true,
            blocks: Arc::default(),
            confirms: true,
        }
    }

    pub fn on<R>(&mut self, at: usize, act: impl FnOnce(&mut Engine<TestBlock>, &mut Outs) -> R) -> R {
        act(&mut self.engines[at], &mut self.outs[at])
    }

    pub fn report(&mut self, at: usize, report: Report<TestBlock>) {
        let now_ns = self.now_ns;
        self.on(at, |engine, links| engine.report(now_ns, report, links));
    }

    pub fn wire(&mut self, from: usize, to: usize) -> &mut Wire {
        self.outs[from].wires.entry(node(to)).or_default()
    }

    pub fn link(&mut self, a: usize, b: usize, numbered: bool) {
        for (from, to) in [(a, b), (b, a)] {
            *self.wire(from, to) = Wire { up: true, numbered, ..Wire::default() };
        }
        for (from, to) in [(a, b), (b, a)] {
            let incarnation = self.engines[to].incarnation();
            self.report(from, Report::Up { peer: node(to), incarnation });
        }
        for (from, to) in [(a, b), (b, a)] {
            while self.wire(from, to).begun {
                self.deliver(from, to);
            }
        }
    }

    /// Ends the link on both sides; frames under way are lost.
    pub fn cut(&mut self, a: usize, b: usize, loss: Loss) {
        for (from, to) in [(a, b), (b, a)] {
            *self.wire(from, to) = Wire::default();
        }
        for (from, to) in [(a, b), (b, a)] {
            self.report(from, Report::Down { peer: node(to), loss });
        }
    }

    pub fn set_full(&mut self, from: usize, to: usize, full: bool) {
        self.wire(from, to).full = full;
        if !full {
            self.report(from, Report::Room { peer: node(to) });
        }
    }

    fn payload(&self, bytes: Vec<u8>) -> Payload<TestBlock> {
        match Short::new(&bytes) {
            Some(short) => Payload::Short(short),
            None => {
                self.blocks.fetch_add(1, Ordering::Relaxed);
                let (may_be_kept, alive) = (self.blocks_may_be_kept, self.blocks.clone());
                Payload::Lent(TestBlock { bytes, may_be_kept, alive })
            }
        }
    }

    /// Delivers one frame; false if there is none.
    pub fn deliver(&mut self, from: usize, to: usize) -> bool {
        let wire = self.wire(from, to);
        let Some((header, bytes, number)) = wire.frames.pop_front() else {
            let begun = core::mem::take(&mut wire.begun);
            if begun {
                self.has_begun(from, to);
            }
            return begun;
        };
        if wire.numbered {
            wire.unconfirmed.push((header.class, number));
        }
        let payload = self.payload(bytes);
        let peer = node(from);
        self.report(to, Report::Frame { peer, header, payload });
        if self.confirms {
            self.confirm(from, to);
        }
        true
    }

    /// Says that a node has told what was connected when the link began.
    pub fn has_begun(&mut self, from: usize, to: usize) {
        let (header, payload) = (Header::new(Kind::Connected as u8), Payload::Short(Short::EMPTY));
        self.report(to, Report::Frame { peer: node(from), header, payload });
    }

    /// Confirms what was delivered: the last of each class.
    pub fn confirm(&mut self, from: usize, to: usize) {
        let delivered = core::mem::take(&mut self.wire(from, to).unconfirmed);
        for class in Priority::all() {
            if let Some((_, number)) = delivered.iter().rev().find(|(of, _)| *of == class) {
                self.report(from, Report::Acknowledged { peer: node(to), number: *number });
            }
        }
    }

    /// Delivers all frames, and those they bring about.
    pub fn run(&mut self) {
        let count = self.engines.len();
        let mut rounds = 0;
        loop {
            let mut any = false;
            for (a, b) in pairs(count) {
                any |= self.deliver(a, b) | self.deliver(b, a);
            }
            if !any {
                return;
            }
            rounds += 1;
            assert!(rounds < 1_000_000, "nodes that never stop talking");
        }
    }

    /// Lets time pass: every engine's tick, and what comes of it.
    pub fn tick(&mut self) {
        self.now_ns += 2_000_000;
        let now_ns = self.now_ns;
        for at in 0..self.engines.len() {
            self.on(at, |engine, links| engine.tick(now_ns, links));
        }
        self.run();
    }

    pub fn create(&mut self, at: usize, port: u32) -> EndpointId {
        self.on(at, |engine, links| engine.create_endpoint(Some(port), links)).unwrap()
    }

    /// An endpoint that another node has asked for and got.
    pub fn get(&mut self, at: usize, of: usize, port: u32) -> RequestId {
        self.on(at, |engine, links| engine.get_endpoint((0, of as u32), port, links)).unwrap()
    }

    pub fn send(&mut self, at: usize, from: EndpointId, to: EndpointId, bytes: &[u8]) -> Result<Sending, Error> {
        self.on(at, |engine, links| engine.send_message(from, to, 0, bytes, links))
    }

    pub fn send_later(
        &mut self,
        at: usize,
        from: EndpointId,
        to: EndpointId,
        bytes: &[u8],
    ) -> Result<RequestId, Error> {
        self.on(at, |engine, links| engine.send_message_later(from, to, 0, bytes.to_vec(), links))
    }

    pub fn receive(&mut self, at: usize, endpoint: EndpointId) -> Option<Message<TestBlock>> {
        self.on(at, |engine, links| engine.receive_message(endpoint, links)).unwrap()
    }

    /// The bytes of the next message.
    pub fn read(&mut self, at: usize, endpoint: EndpointId) -> Option<Vec<u8>> {
        self.receive(at, endpoint).map(|message| bytes(&message.payload))
    }

    /// What came of a request; `None` while it is pending.
    pub fn outcome(&mut self, at: usize, request: RequestId) -> Option<Result<Outcome<TestBlock>, Error>> {
        self.engines[at].take_outcome(request).unwrap()
    }

    pub fn endpoint_of(&mut self, at: usize, request: RequestId) -> EndpointId {
        match self.outcome(at, request) {
            Some(Ok(Outcome::Endpoint(endpoint))) => endpoint,
            other => panic!("{other:?}"),
        }
    }

    /// The value of an attribute, asked for by any node.
    pub fn attribute(&mut self, at: usize, endpoint: EndpointId, number: u32, size: usize) -> Result<Vec<u8>, Error> {
        let request = self.on(at, |engine, links| engine.endpoint_attribute(endpoint, number, size, links))?;
        self.run();
        match self.outcome(at, request).expect("answered") {
            Ok(Outcome::Attribute(value)) => Ok(value),
            Ok(other) => panic!("{other:?}"),
            Err(error) => Err(error),
        }
    }

    pub fn word(&mut self, at: usize, endpoint: EndpointId, number: u32) -> u32 {
        u32::from_ne_bytes(self.attribute(at, endpoint, number, 4).unwrap().try_into().unwrap())
    }
}

pub fn pairs(count: usize) -> Vec<(usize, usize)> {
    (0..count).flat_map(|a| (a + 1..count).map(move |b| (a, b))).collect()
}

pub fn bytes(payload: &Payload<TestBlock>) -> Vec<u8> {
    let mut bytes = std::vec![0; payload.len()];
    payload.copy_to(&mut bytes);
    bytes
}

/// Numbers that look random and repeat with their seed (xorshift, Marsaglia 2003).
pub struct Dice(pub u64);

impl Dice {
    pub fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % sides
    }
}

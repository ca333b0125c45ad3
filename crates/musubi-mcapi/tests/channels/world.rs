//! Some nodes with their engines, and links between them that a test rules: what arrives when, what is lost.
//!
//! How it works: frames lie in queues, one a direction and class; `step` delivers the first of one that a given number chooses,
//! so frames of different classes overtake each other. Links of [`Mode::Memory`] say `Delivered` and keep one order for all
//! classes; links of [`Mode::Network`] number frames and confirm them later. A link that breaks loses what is under way, but
//! memory of the dead is drained first.

use std::collections::{BTreeMap, VecDeque};

use musubi_mcapi::engine::frame::{Header, KINDS, Kind};
use musubi_mcapi::engine::{ChannelHandle, ChannelKind, Engine, Outcome, RequestId, Sending};
use musubi_mcapi::{EndpointId, Error, NodeId};
use musubi_transport::Priority;
use musubi_transport::links::{Block, Links, Loss, Payload, Report, Sent, Short};

/// Payload in place.
#[derive(Debug)]
pub struct InPlace {
    bytes: Vec<u8>,
    may_be_kept: bool,
}

impl Block for InPlace {
    fn len(&self) -> usize {
        self.bytes.len()
    }
    fn copy_to(&self, offset: usize, into: &mut [u8]) -> usize {
        let from = &self.bytes[offset.min(self.bytes.len())..];
        let count = from.len().min(into.len());
        into[..count].copy_from_slice(&from[..count]);
        count
    }
    fn address(&self) -> *const u8 {
        self.bytes.as_ptr()
    }
    fn may_be_kept(&self) -> bool {
        self.may_be_kept
    }
}

/// What kind of links there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    Memory,
    Network,
}

#[derive(Debug)]
struct InFlight {
    header: Header,
    payload: Vec<u8>,
    number: u64,
}

/// One direction of a link.
#[derive(Debug, Default)]
struct Direction {
    queues: [VecDeque<InFlight>; Priority::COUNT],
    /// Confirmations that are on their way back.
    confirmed: VecDeque<u64>,
    numbered: u64,
    was_full: bool,
}

/// What lies between the engines.
#[derive(Debug)]
pub struct Net {
    pub mode: Mode,
    /// Frames that one class of a direction takes before it is full.
    pub room: usize,
    /// Whether blocks may be kept.
    pub kept: bool,
    /// A node to which nothing is delivered but by [`World::take_some`].
    pub slow: Option<usize>,
    up: BTreeMap<(usize, usize), ()>,
    wanted: BTreeMap<(usize, usize), ()>,
    directions: BTreeMap<(usize, usize), Direction>,
    pub frames: BTreeMap<u8, usize>,
    /// Number of the latest connection that was asked for.
    pub connection: u32,
}

/// The links of one node.
pub struct Port<'n> {
    net: &'n mut Net,
    me: usize,
}

pub fn node(index: usize) -> NodeId {
    NodeId::new(1, index as u32).unwrap()
}

impl Links for Port<'_> {
    type Block = InPlace;

    fn send(&mut self, peer: NodeId, header: &Header, payload: &[u8]) -> Sent {
        let to = peer.node() as usize;
        assert_ne!(to, self.me, "frames to itself stay in the engine");
        assert_eq!(header.length as usize, payload.len());
        assert_eq!(Header::decode(&header.encode(), &KINDS), Some(*header), "a frame that the peer could not decode");
        if !self.net.up.contains_key(&pair(self.me, to)) {
            return Sent::NoLink;
        }
        let (mode, room) = (self.net.mode, self.net.room);
        let direction = self.net.directions.entry((self.me, to)).or_default();
        let class = if mode == Mode::Memory { 0 } else { header.class.index() };
        if direction.queues[class].len() >= room {
            direction.was_full = true;
            return Sent::Full;
        }
        if header.kind == Kind::ConnectAccept as u8 {
            self.net.connection = header.tag;
        }
        *self.net.frames.entry(header.kind).or_default() += 1;
        direction.numbered += 1;
        let number = direction.numbered;
        direction.queues[class].push_back(InFlight { header: *header, payload: payload.to_vec(), number });
        if mode == Mode::Memory { Sent::Delivered } else { Sent::Numbered(number) }
    }

    fn want(&mut self, peer: NodeId, wanted: bool) {
        let key = (self.me, peer.node() as usize);
        if wanted {
            self.net.wanted.insert(key, ());
        } else {
            self.net.wanted.remove(&key);
        }
    }

    fn knows(&self, peer: NodeId) -> bool {
        peer.domain() == 1
    }
}

fn pair(a: usize, b: usize) -> (usize, usize) {
    (a.min(b), a.max(b))
}

/// The whole.
pub struct World {
    pub engines: Vec<Option<Engine<InPlace>>>,
    pub net: Net,
    incarnation: u32,
    now_ns: u64,
}

/// Something that can happen next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Event {
    Deliver(usize, usize, usize),
    Confirm(usize, usize),
    Link(usize, usize),
    Room(usize, usize),
}

impl World {
    pub fn new(nodes: usize, mode: Mode) -> World {
        let net = Net {
            mode,
            room: usize::MAX,
            kept: true,
            slow: None,
            up: BTreeMap::new(),
            wanted: BTreeMap::new(),
            directions: BTreeMap::new(),
            frames: BTreeMap::new(),
            connection: 0,
        };
        let mut world = World { engines: Vec::new(), net, incarnation: 0, now_ns: 0 };
        for index in 0..nodes {
            world.engines.push(None);
            world.start(index);
        }
        world
    }

    pub fn start(&mut self, index: usize) {
        self.incarnation += 1;
        self.engines[index] = Some(Engine::new(node(index), self.incarnation));
    }

    pub fn call<R>(&mut self, index: usize, call: impl FnOnce(&mut Engine<InPlace>, &mut Port<'_>) -> R) -> R {
        let engine = self.engines[index].as_mut().expect("the node is alive");
        call(engine, &mut Port { net: &mut self.net, me: index })
    }

    fn report(&mut self, to: usize, report: Report<InPlace>) {
        self.now_ns += 1000;
        let now_ns = self.now_ns;
        self.call(to, |engine, links| {
            engine.report(now_ns, report, links);
            engine.tick(now_ns, links);
        });
    }

    fn events(&self) -> Vec<Event> {
        let mut events = Vec::new();
        for ((from, to), direction) in &self.net.directions {
            if self.net.slow == Some(*to) {
                continue;
            }
            let filled = (0..direction.queues.len()).filter(|class| !direction.queues[*class].is_empty());
            events.extend(filled.map(|class| Event::Deliver(*from, *to, class)));
            if !direction.confirmed.is_empty() {
                events.push(Event::Confirm(*from, *to));
            }
            if direction.was_full && direction.queues.iter().all(|queue| queue.len() * 2 <= self.net.room) {
                events.push(Event::Room(*from, *to));
            }
        }
        let linkable = |key: &&(usize, usize)| !self.net.up.contains_key(&pair(key.0, key.1));
        events.extend(self.net.wanted.keys().filter(linkable).map(|(from, to)| Event::Link(*from, *to)));
        events
    }

    /// Lets one of the possible events happen; false if there is none.
    pub fn step(&mut self, choice: usize) -> bool {
        let events = self.events();
        let Some(event) = events.get(choice % events.len().max(1)).copied() else { return false };
        self.happen(event);
        true
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Deliver(from, to, class) => self.deliver(from, to, class),
            Event::Confirm(from, to) => {
                let number = self.net.directions.get_mut(&(from, to)).unwrap().confirmed.pop_front().unwrap();
                self.report(from, Report::Acknowledged { peer: node(to), number });
            }
            Event::Link(from, to) => self.link(from, to),
            Event::Room(from, to) => {
                self.net.directions.get_mut(&(from, to)).unwrap().was_full = false;
                self.report(from, Report::Room { peer: node(to) });
            }
        }
    }

    /// The slow node takes so many frames of another's, and its confirmations and the news of room come back.
    pub fn take_some(&mut self, from: usize, to: usize, count: usize) {
        for _ in 0..count {
            let Some(direction) = self.net.directions.get_mut(&(from, to)) else { return };
            let Some(class) = direction.queues.iter().position(|queue| !queue.is_empty()) else { break };
            self.deliver(from, to, class);
        }
        let slow = self.net.slow.take();
        for event in self.events() {
            match event {
                Event::Confirm(at, of) if (at, of) == (from, to) => self.happen(event),
                Event::Room(at, of) if (at, of) == (from, to) => self.happen(event),
                _ => {}
            }
        }
        self.net.slow = slow;
    }

    fn deliver(&mut self, from: usize, to: usize, class: usize) {
        let direction = self.net.directions.get_mut(&(from, to)).unwrap();
        let frame = direction.queues[class].pop_front().unwrap();
        if self.net.mode == Mode::Network {
            direction.confirmed.push_back(frame.number);
        }
        let payload = match Short::new(&frame.payload) {
            Some(short) => Payload::Short(short),
            None if self.net.mode == Mode::Network => Payload::Owned(frame.payload),
            None => Payload::Lent(InPlace { bytes: frame.payload, may_be_kept: self.net.kept }),
        };
        self.report(to, Report::Frame { peer: node(from), header: frame.header, payload });
    }

    fn link(&mut self, from: usize, to: usize) {
        self.net.wanted.remove(&(from, to));
        if self.engines[to].is_none() {
            self.report(from, Report::Absent { peer: node(to) });
            return;
        }
        self.net.wanted.remove(&(to, from));
        self.net.up.insert(pair(from, to), ());
        self.net.directions.remove(&(from, to));
        self.net.directions.remove(&(to, from));
        for (me, peer) in [(from, to), (to, from)] {
            let incarnation = self.engines[peer].as_ref().unwrap().incarnation();
            self.report(me, Report::Up { peer: node(peer), incarnation });
        }
    }

    /// Lets everything happen that can, in one order, and time pass until nothing is due.
    pub fn settle(&mut self) {
        for _ in 0..1_000_000 {
            if !self.step(0) && !self.pass_time() {
                return;
            }
        }
        panic!("it never becomes quiet");
    }

    /// Lets time pass until an engine has something to do; false if none ever has.
    fn pass_time(&mut self) -> bool {
        let now_ns = self.now_ns;
        let alive: Vec<usize> = (0..self.engines.len()).filter(|at| self.engines[*at].is_some()).collect();
        let due_ns = alive.iter().map(|at| self.call(*at, |engine, links| engine.tick(now_ns, links))).min();
        let Some(due_ns) = due_ns.filter(|due_ns| *due_ns != u64::MAX) else { return false };
        self.now_ns = now_ns.max(due_ns);
        let now_ns = self.now_ns;
        for at in alive {
            self.call(at, |engine, links| engine.tick(now_ns, links));
        }
        true
    }

    /// Ends the link of two nodes. What lies in memory is drained first; what a network has not delivered is lost.
    pub fn cut(&mut self, a: usize, b: usize, loss: Loss) {
        if self.net.up.remove(&pair(a, b)).is_none() {
            return;
        }
        for (from, to) in [(a, b), (b, a)] {
            while self.net.mode == Mode::Memory
                && self.engines[to].is_some()
                && self.net.directions.get(&(from, to)).is_some_and(|direction| !direction.queues[0].is_empty())
            {
                self.deliver(from, to, 0);
            }
            if self.engines[to].is_some() {
                self.report(to, Report::Down { peer: node(from), loss });
            }
        }
        self.net.directions.remove(&(a, b));
        self.net.directions.remove(&(b, a));
    }

    /// A node dies.
    pub fn kill(&mut self, index: usize) {
        self.engines[index] = None;
        self.net.wanted.retain(|(from, _), ()| *from != index);
        for other in 0..self.engines.len() {
            if other != index {
                self.cut(index, other, Loss::Gone);
            }
        }
    }

    /// Hands a frame that no engine would send to a node.
    pub fn forge(&mut self, from: usize, to: usize, header: Header, payload: &[u8]) {
        let header = Header { length: payload.len() as u32, ..header };
        let payload = Payload::Short(Short::new(payload).unwrap());
        self.report(to, Report::Frame { peer: node(from), header, payload });
    }

    pub fn sent(&self, kind: Kind) -> usize {
        self.net.frames.get(&(kind as u8)).copied().unwrap_or(0)
    }
}

/// What tests ask of a node's program.
impl World {
    pub fn create(&mut self, at: usize) -> EndpointId {
        self.call(at, |engine, links| engine.create_endpoint(None, links)).unwrap()
    }

    pub fn connect(&mut self, at: usize, kind: ChannelKind, from: EndpointId, to: EndpointId) -> RequestId {
        self.call(at, |engine, links| engine.connect(kind, from, to, links)).unwrap()
    }

    pub fn try_open(
        &mut self,
        at: usize,
        kind: ChannelKind,
        receives: bool,
        endpoint: EndpointId,
    ) -> Result<(ChannelHandle, RequestId), Error> {
        self.call(at, |engine, links| engine.open(kind, receives, endpoint, links))
    }

    pub fn open(
        &mut self,
        at: usize,
        kind: ChannelKind,
        receives: bool,
        endpoint: EndpointId,
    ) -> (ChannelHandle, RequestId) {
        self.try_open(at, kind, receives, endpoint).unwrap()
    }

    pub fn close(
        &mut self,
        at: usize,
        kind: ChannelKind,
        receives: bool,
        handle: ChannelHandle,
    ) -> Result<RequestId, Error> {
        self.call(at, |engine, links| engine.close(kind, receives, handle, links))
    }

    pub fn pending(&mut self, at: usize, request: RequestId) -> bool {
        self.call(at, |engine, _| !engine.is_complete(request).unwrap())
    }

    pub fn outcome(&mut self, at: usize, request: RequestId) -> Result<Outcome<InPlace>, Error> {
        self.call(at, |engine, _| engine.take_outcome(request)).unwrap().expect("the request is complete")
    }

    pub fn done(&mut self, at: usize, request: RequestId) {
        let outcome = self.outcome(at, request);
        assert!(matches!(outcome, Ok(Outcome::Plain)), "{outcome:?}");
    }

    pub fn failed(&mut self, at: usize, request: RequestId) -> Error {
        self.outcome(at, request).expect_err("the request has failed")
    }

    pub fn cancel(&mut self, at: usize, request: RequestId) {
        self.call(at, |engine, links| engine.cancel(request, links)).unwrap();
        assert_eq!(self.failed(at, request), Error::RequestCancelled);
    }

    pub fn send(&mut self, at: usize, handle: ChannelHandle, packet: &[u8]) -> Result<Sending, Error> {
        self.call(at, |engine, links| engine.send_packet(handle, packet, links))
    }

    pub fn send_later(&mut self, at: usize, handle: ChannelHandle, packet: &[u8]) -> Result<RequestId, Error> {
        self.call(at, |engine, links| engine.send_packet_later(handle, packet.to_vec(), links))
    }

    pub fn receive(&mut self, at: usize, handle: ChannelHandle) -> Result<Option<Vec<u8>>, Error> {
        let packet = self.call(at, |engine, links| engine.receive_packet(handle, links))?;
        Ok(packet.map(|packet| bytes(&packet)))
    }

    pub fn release(&mut self, at: usize, handle: ChannelHandle, length: usize) {
        self.call(at, |engine, links| engine.packet_released(handle, length, links));
    }

    pub fn send_scalar(&mut self, at: usize, handle: ChannelHandle, size: u8, value: u64) -> Result<Sending, Error> {
        self.call(at, |engine, links| engine.send_scalar(handle, size, value, links))
    }

    pub fn receive_scalar(&mut self, at: usize, handle: ChannelHandle, size: u8) -> Result<Option<u64>, Error> {
        self.call(at, |engine, links| engine.receive_scalar(handle, size, links))
    }

    /// Two endpoints, connected and open.
    pub fn channel(&mut self, kind: ChannelKind, sender: usize, receiver: usize) -> Channel {
        let (from, to) = (self.create(sender), self.create(receiver));
        self.channel_of(kind, (sender, from), (receiver, to))
    }

    pub fn channel_of(
        &mut self,
        kind: ChannelKind,
        (sender, from): (usize, EndpointId),
        (receiver, to): (usize, EndpointId),
    ) -> Channel {
        let connecting = self.connect(sender, kind, from, to);
        let (sending, opening) = self.open(sender, kind, false, from);
        let (receiving, opening_too) = self.open(receiver, kind, true, to);
        self.settle();
        self.done(sender, connecting);
        self.done(sender, opening);
        self.done(receiver, opening_too);
        Channel { kind, sender, receiver, from, to, sending, receiving }
    }

    /// Closes both ends.
    pub fn close_both(&mut self, channel: &Channel) {
        let Channel { kind, sender, receiver, sending, receiving, .. } = *channel;
        let first = self.close(sender, kind, false, sending).unwrap();
        let second = self.close(receiver, kind, true, receiving).unwrap();
        self.settle();
        self.done(sender, first);
        self.done(receiver, second);
    }
}

/// An open channel.
#[derive(Clone, Copy, Debug)]
pub struct Channel {
    pub kind: ChannelKind,
    pub sender: usize,
    pub receiver: usize,
    pub from: EndpointId,
    pub to: EndpointId,
    pub sending: ChannelHandle,
    pub receiving: ChannelHandle,
}

pub fn bytes(payload: &Payload<InPlace>) -> Vec<u8> {
    let mut bytes = vec![0; payload.len()];
    assert_eq!(payload.copy_to(&mut bytes), bytes.len());
    bytes
}

//! A memory, hosts with a clock that stands unless somebody rests, and a protocol that keeps what it hears.

use std::cell::Cell;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Wake, Waker};

use musubi_core::lane::Region;
use musubi_core::mapped::Host;
use musubi_core::port::Coherence;
use musubi_transport::frame::{Header, Kinds, Shape};
use musubi_transport::links::{Links, Loss, NoBlock, Payload, Report, Sent};
use musubi_transport::mapped::{self, Options, Table};
use musubi_transport::protocol::Protocol;
use musubi_transport::running::Running as _;
use musubi_transport::{NodeId, Priority};

/// Questions for the time and rests after which a test gives up: what would hang fails.
const PATIENCE: u32 = 200_000;
/// The instant at which the clock begins.
pub const BEGIN_NS: u64 = 1_000;

/// What a protocol hears.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Heard {
    Up(NodeId, u32),
    Down(NodeId, Loss),
    Frame(NodeId, Header, Vec<u8>),
    Room(NodeId),
    Absent(NodeId),
}

/// Keeps what it hears. A frame of kind 1 exists if `MORE`: a peer without it takes one for a fault.
#[derive(Debug)]
pub struct Keeper<const MORE: bool> {
    pub me: NodeId,
    pub incarnation: u32,
    pub heard: VecDeque<Heard>,
    pub payload_max: u32,
    /// Whether payloads that came by value were those of short frames, and no others.
    pub short_is_short: bool,
    pub changes: u64,
    pub ticks: u32,
    /// Changes something so many times, once a tick.
    pub restless: u32,
    /// When something is due.
    pub due_ns: u64,
    pub over: Vec<u32>,
    /// So often it was asked for a request.
    asked: Cell<u32>,
    pub has_ended: bool,
}

const FIRST: Option<Shape> = Some(Shape { payload_max: 1 << 20, awaited: false });

impl<const MORE: bool> Protocol for Keeper<MORE> {
    type Block = NoBlock;
    type Request = u32;
    const KINDS: &'static Kinds =
        &Kinds { least_urgent: Priority::LEAST_URGENT, shapes: if MORE { &[FIRST, FIRST] } else { &[FIRST] } };

    fn new(me: NodeId, incarnation: u32) -> Self {
        let (heard, over) = (VecDeque::new(), Vec::new());
        let (changes, due_ns) = (0, u64::MAX);
        Keeper {
            me,
            incarnation,
            heard,
            payload_max: 0,
            short_is_short: true,
            changes,
            ticks: 0,
            restless: 0,
            due_ns,
            over,
            asked: Cell::new(0),
            has_ended: false,
        }
    }
    fn limit_payload(&mut self, bytes: u32) {
        self.payload_max = bytes;
    }
    fn changes(&self) -> u64 {
        self.changes
    }
    fn is_timed(_: &Header) -> bool {
        false
    }
    fn word(&mut self, _: u64, _: NodeId, _: &Header, _: u64, _: &mut impl Links<Block = NoBlock>) {
        unreachable!("mapped links report frames whole")
    }
    fn frame(&mut self, _: u64, _: NodeId, _: &Header, _: Payload<NoBlock>, _: &mut impl Links<Block = NoBlock>) {
        unreachable!("mapped links report frames whole")
    }
    fn report(&mut self, _: u64, report: Report<NoBlock>, _: &mut impl Links<Block = NoBlock>) {
        self.changes += 1;
        self.heard.push_back(match report {
            Report::Up { peer, incarnation } => Heard::Up(peer, incarnation),
            Report::Down { peer, loss } => Heard::Down(peer, loss),
            Report::Room { peer } => Heard::Room(peer),
            Report::Absent { peer } => Heard::Absent(peer),
            Report::Acknowledged { .. } => unreachable!("what is sent is delivered"),
            Report::Frame { peer, header, payload } => {
                let mut bytes = vec![0; payload.len()];
                assert_eq!(payload.copy_to(&mut bytes), bytes.len());
                self.short_is_short &= matches!(payload, Payload::Short(_)) == (bytes.len() <= 95);
                Heard::Frame(peer, header, bytes)
            }
        });
    }
    fn tick(&mut self, _: u64, _: &mut impl Links<Block = NoBlock>) -> u64 {
        self.ticks += 1;
        if self.restless > 0 {
            self.restless -= 1;
            self.changes += 1;
        }
        self.due_ns
    }
    fn end(&mut self) {
        self.has_ended = true;
    }
    fn is_over(&self, request: u32) -> bool {
        self.asked.set(self.asked.get() + 1);
        assert!(self.asked.get() < PATIENCE, "it asks for ever");
        self.over.contains(&request)
    }
}

/// What happens while somebody rests; it is given the question whether the rest is still needed.
pub type Event = Box<dyn FnOnce(&dyn Fn() -> bool) + Send>;

/// Clock and bells of all nodes.
#[derive(Debug)]
pub struct Desk {
    now_ns: AtomicU64,
    rings: Vec<AtomicU32>,
    asked: AtomicU32,
}

/// What one node runs on.
pub struct Seat {
    pub desk: Arc<Desk>,
    pub can_be_woken: bool,
    /// Until when each rest was to last.
    rests: Mutex<Vec<u64>>,
    events: Mutex<VecDeque<Event>>,
    roused: AtomicU32,
}

impl std::fmt::Debug for Seat {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Seat")
    }
}

impl Coherence for Seat {}

impl Host for Seat {
    fn now_ns(&self) -> u64 {
        assert!(self.desk.asked.fetch_add(1, Ordering::Relaxed) < PATIENCE, "it looks for ever");
        self.desk.now_ns.load(Ordering::Relaxed)
    }
    fn has_common_clock(&self) -> bool {
        true
    }
    fn ring(&self, participant: u16) {
        self.desk.rings[usize::from(participant)].fetch_add(1, Ordering::Relaxed);
    }
    fn can_be_woken(&self) -> bool {
        self.can_be_woken
    }
    /// The next event, if one is left; else the time passes.
    fn rest(&self, until_ns: u64, still_needed: &dyn Fn() -> bool) {
        self.rests.lock().unwrap().push(until_ns);
        let event = self.events.lock().unwrap().pop_front();
        match event {
            Some(event) => event(still_needed),
            None if still_needed() => self.desk.pass_to(until_ns),
            None => {}
        }
    }
    fn rouse(&self) {
        self.roused.fetch_add(1, Ordering::Relaxed);
    }
}

impl Desk {
    /// Lets the time pass until then.
    pub fn pass_to(&self, ns: u64) {
        assert_ne!(ns, u64::MAX, "a rest without an end");
        self.now_ns.fetch_max(ns, Ordering::Relaxed);
    }
    pub fn now_ns(&self) -> u64 {
        self.now_ns.load(Ordering::Relaxed)
    }
    /// How often the node at this place was rung since the last call.
    pub fn rings(&self, place: usize) -> u32 {
        self.rings[place].swap(0, Ordering::Relaxed)
    }
}

impl Seat {
    pub fn then(&self, event: impl FnOnce(&dyn Fn() -> bool) + Send + 'static) {
        self.events.lock().unwrap().push_back(Box::new(event));
    }
    /// The rests since the last call.
    pub fn rests(&self) -> Vec<u64> {
        std::mem::take(&mut *self.rests.lock().unwrap())
    }
    /// How often those that rest were roused since the last call.
    pub fn roused(&self) -> u32 {
        self.roused.swap(0, Ordering::Relaxed)
    }
}

pub type Running<const MORE: bool> = mapped::Node<Keeper<MORE>, Seat>;
pub type Node = Running<false>;

/// Memory for the nodes of a table, and what they run on.
pub struct World {
    pub table: Table<'static>,
    pub desk: Arc<Desk>,
    base: usize,
}

pub fn id(node: u32) -> NodeId {
    NodeId::new(1, node).unwrap()
}

impl World {
    /// Nodes 0, 1 and so on of domain 1, at these places.
    pub fn of(count: u32) -> World {
        World::with(Table::new((0..count).map(id).collect::<Vec<_>>().leak()))
    }

    pub fn with(table: Table<'static>) -> World {
        let bytes = Region::bytes(table.nodes.len() as u16, table.shape).unwrap() as usize;
        // Lines of their own; leaked, as a board's memory is not given back either.
        let memory = vec![[0u64; 8]; bytes / 64 + 1].leak().as_mut_ptr() as usize;
        let rings = table.nodes.iter().map(|_| AtomicU32::new(0)).collect();
        let desk = Desk { now_ns: AtomicU64::new(BEGIN_NS), rings, asked: AtomicU32::new(0) };
        World { table, desk: Arc::new(desk), base: memory.next_multiple_of(64) }
    }

    pub fn region(&self, place: usize) -> Region<'static> {
        let count = self.table.nodes.len() as u16;
        // SAFETY: the memory is as long as the shape says, zero before, and lives for ever. One thread does everything, and
        // a former run of the place is not called any more.
        unsafe { Region::whole(self.base as *mut u8, count, place as u16, self.table.shape) }.unwrap()
    }

    pub fn seat(&self, can_be_woken: bool) -> &'static Seat {
        let (rests, events) = (Mutex::new(Vec::new()), Mutex::new(VecDeque::new()));
        let desk = Arc::clone(&self.desk);
        Box::leak(Box::new(Seat { desk, can_be_woken, rests, events, roused: AtomicU32::new(0) }))
    }

    /// Starts the node of a place, on a host that can be woken.
    pub fn start<const MORE: bool>(&self, place: usize) -> (Running<MORE>, &'static Seat) {
        let seat = self.seat(true);
        (self.start_on(place, seat, 3), seat)
    }

    pub fn start_on<const MORE: bool>(&self, place: usize, seat: &'static Seat, looks: u32) -> Running<MORE> {
        Running::start(self.table, self.region(place), seat, Options { looks }).unwrap()
    }

    /// Two nodes that are linked, of which nobody has been rung or has heard anything.
    pub fn pair() -> (World, [(Node, &'static Seat); 2]) {
        let world = World::of(2);
        let nodes = [world.start(0), world.start(1)];
        settle(&[&nodes[0].0, &nodes[1].0]);
        for (place, (node, seat)) in nodes.iter().enumerate() {
            assert_eq!(heard(node), [Heard::Up(id(1 - place as u32), 1)]);
            world.desk.rings(place);
            seat.rests();
            seat.roused();
        }
        (world, nodes)
    }
}

/// Lets nodes look until everything that was said has been heard.
pub fn settle<const MORE: bool>(nodes: &[&Running<MORE>]) {
    for _ in 0..4 {
        nodes.iter().for_each(|node| node.serve().unwrap());
    }
}

/// What a node has heard since the last call; it does not look.
pub fn heard<const MORE: bool>(node: &Running<MORE>) -> Vec<Heard> {
    node.with(|keeper, _| keeper.heard.drain(..).collect()).unwrap()
}

pub fn header(class: u8, bytes: usize, value: u32) -> Header {
    let class = Priority::new(class).unwrap();
    Header { class, length: bytes as u32, value, ..Header::new(0) }
}

/// Bytes that tell which frame they belong to.
pub fn text(value: u32, bytes: usize) -> Vec<u8> {
    (0..bytes).map(|at| (value as usize * 31 + at * 7) as u8).collect()
}

/// Sends a frame of data.
pub fn send<const MORE: bool>(node: &Running<MORE>, to: NodeId, bytes: usize, value: u32) -> Sent {
    node.with(|_, links| links.send(to, &header(2, bytes, value), &text(value, bytes))).unwrap()
}

/// What the other side hears of it.
pub fn frame(from: NodeId, bytes: usize, value: u32) -> Heard {
    Heard::Frame(from, header(2, bytes, value), text(value, bytes))
}

/// Counts.
#[derive(Debug, Default)]
pub struct Alarm(AtomicU32);

impl Wake for Alarm {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

impl Alarm {
    pub fn new() -> (Arc<Alarm>, Waker) {
        let alarm = Arc::new(Alarm::default());
        (Arc::clone(&alarm), Waker::from(alarm))
    }
    /// How often it was woken since the last call.
    pub fn count(&self) -> u32 {
        self.0.swap(0, Ordering::Relaxed)
    }
}

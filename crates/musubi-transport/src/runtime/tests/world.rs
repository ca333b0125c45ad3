//! A carrier that keeps what it is asked, a protocol that keeps what it hears, and a node of both without its thread.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Wake, Waker};

use musubi_linux::descriptor::Descriptor;
use rustix::event::epoll;

use crate::carrier::{Describe, Drive, Frames};
use crate::frame::{Header, Kinds, Shape};
use crate::links::{Links, NoBlock, Payload, Report, Sent, SharedBytes};
use crate::protocol::Protocol;
use crate::runtime::bells::ring;
use crate::runtime::node_links::{Block, NodeLinks, TOKEN_OTHERS};
use crate::runtime::shared::Shared;
use crate::runtime::{Options, Wiring};
use crate::status::{AcceptorStatus, LinkStatus, LoggedEvent};
use crate::topology::{ClassRule, Topology};
use crate::{NodeId, Priority};

/// Looks after which a test gives up: what would hang fails.
const PATIENCE: u32 = 100_000;

/// What a carrier is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    Send(NodeId, usize),
    SendShared(NodeId, usize),
    Hold,
    Release,
    Want(NodeId, bool),
    Poll,
    Ready(u64),
    Flush,
    Prepare,
    Finish,
    Tick,
    Leave,
    Recycle(usize),
}

/// What a carrier is asked, and what it answers.
#[derive(Debug)]
pub struct Wire {
    asked: Vec<Asked>,
    pub at_hand: VecDeque<Report<NoBlock>>,
    /// What the next [`Drive::poll`], or a descriptor that is ready, puts there.
    pub coming: VecDeque<Report<NoBlock>>,
    /// So often something comes while sleep is announced.
    pub news: u32,
    pub holds: bool,
    pub has_delivered: bool,
    pub deadline_ns: u64,
    /// The last time that it was told.
    pub now_ns: u64,
    pub bell: Descriptor,
    patience: u32,
}

/// The test's handle of a carrier.
#[derive(Clone, Debug)]
pub struct Handle(Arc<Mutex<Wire>>);

impl Handle {
    pub fn new(wiring: &Wiring, number: u64) -> Handle {
        let bell = Descriptor::event().unwrap();
        let token = epoll::EventData::new_u64((TOKEN_OTHERS + number) << 56 | 7);
        epoll::add(&wiring.epoll, &bell, token, epoll::EventFlags::IN).unwrap();
        let (at_hand, coming) = (VecDeque::new(), VecDeque::new());
        let (news, holds, has_delivered) = (0, false, true);
        let (deadline_ns, now_ns) = (u64::MAX, 0);
        let asked = Vec::new();
        let patience = PATIENCE;
        let wire = Wire { asked, at_hand, coming, news, holds, has_delivered, deadline_ns, now_ns, bell, patience };
        Handle(Arc::new(Mutex::new(wire)))
    }

    pub fn wire(&self) -> MutexGuard<'_, Wire> {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// What it was asked since the last call.
    pub fn asked(&self) -> Vec<Asked> {
        std::mem::take(&mut self.wire().asked)
    }

    /// How often it was asked this since the last call of [`Handle::asked`], which this is one of.
    pub fn times(&self, what: Asked) -> usize {
        self.asked().into_iter().filter(|asked| *asked == what).count()
    }

    fn note(&self, asked: Asked) -> MutexGuard<'_, Wire> {
        let mut wire = self.wire();
        wire.asked.push(asked);
        wire
    }

    fn note_at(&self, now_ns: u64, asked: Asked) -> MutexGuard<'_, Wire> {
        let mut wire = self.note(asked);
        wire.now_ns = now_ns;
        wire
    }
}

impl Frames for Handle {
    type Block = NoBlock;

    fn send(&mut self, now_ns: u64, peer: NodeId, header: &Header, payload: &[u8]) -> Sent {
        assert_eq!(header.length as usize, payload.len());
        drop(self.note_at(now_ns, Asked::Send(peer, payload.len())));
        Sent::Delivered
    }
    fn send_shared(&mut self, now_ns: u64, peer: NodeId, header: &Header, payload: &SharedBytes) -> Sent {
        assert_eq!(header.length as usize, payload.len());
        drop(self.note_at(now_ns, Asked::SendShared(peer, payload.len())));
        Sent::Delivered
    }
    fn hold(&mut self) {
        drop(self.note(Asked::Hold));
    }
    fn release(&mut self, now_ns: u64) {
        drop(self.note_at(now_ns, Asked::Release));
    }
    fn next_report(&mut self, _: u64) -> Option<Report<NoBlock>> {
        let mut wire = self.wire();
        wire.patience -= 1;
        assert!(wire.patience > 0, "it looks for ever");
        wire.at_hand.pop_front()
    }
    fn recycle(&mut self, buffer: Vec<u8>) {
        drop(self.note(Asked::Recycle(buffer.len())));
    }
}

impl Drive for Handle {
    fn want(&mut self, now_ns: u64, peer: NodeId, wanted: bool) {
        drop(self.note_at(now_ns, Asked::Want(peer, wanted)));
    }
    fn poll(&mut self, now_ns: u64) {
        let mut wire = self.note_at(now_ns, Asked::Poll);
        let coming = std::mem::take(&mut wire.coming);
        wire.at_hand.extend(coming);
    }
    fn ready(&mut self, now_ns: u64, token: u64) {
        let mut wire = self.note_at(now_ns, Asked::Ready(token));
        let coming = std::mem::take(&mut wire.coming);
        wire.at_hand.extend(coming);
        crate::runtime::bells::silence(&wire.bell);
    }
    fn flush(&mut self, now_ns: u64) {
        drop(self.note_at(now_ns, Asked::Flush));
    }
    fn prepare_sleep(&mut self) -> bool {
        let mut wire = self.note(Asked::Prepare);
        let came = wire.news > 0;
        wire.news = wire.news.saturating_sub(1);
        came
    }
    fn finish_sleep(&mut self) {
        drop(self.note(Asked::Finish));
    }
    fn holds_reports(&self) -> bool {
        self.wire().holds
    }
    fn has_delivered(&self) -> bool {
        self.wire().has_delivered
    }
    fn deadline_ns(&self) -> u64 {
        self.wire().deadline_ns
    }
    fn tick(&mut self, now_ns: u64) {
        drop(self.note_at(now_ns, Asked::Tick));
    }
    fn leave(&mut self, now_ns: u64) {
        drop(self.note_at(now_ns, Asked::Leave));
    }
}

impl Describe for Handle {
    fn link(&self, node: NodeId) -> Option<LinkStatus> {
        Some(LinkStatus {
            node,
            kind: 2,
            state: 1,
            rtt_ns: 3,
            frames_sent: 4,
            frames_received: 5,
            bytes_sent: 6,
            bytes_received: 7,
            connections: 8,
            resumed: 9,
            cuts: 10,
            repeated: 11,
            violations: 12,
            silences: 13,
            refused: 14,
            waited: None,
        })
    }
    fn describe_acceptor(&self, door: &mut AcceptorStatus) {
        door.accepted += 1;
    }
    fn log(&self) -> Vec<LoggedEvent> {
        vec![LoggedEvent { age_ns: 1, times: 2, text: "it happened".into() }]
    }
}

/// Keeps what it hears.
#[derive(Debug)]
pub struct Diary {
    /// Classes of the frames that came, in order.
    pub frames: Vec<u8>,
    pub changes: u64,
    pub ticks: u32,
    /// Changes something so many times, once a tick.
    pub restless: u32,
    pub due_ns: u64,
    pub over: Vec<u32>,
    pub has_ended: bool,
}

impl Protocol for Diary {
    type Block = Block;
    type Request = u32;
    const KINDS: &'static Kinds = &Kinds {
        least_urgent: Priority::LEAST_URGENT,
        shapes: &[Some(Shape { payload_max: 1 << 20, awaited: false })],
    };

    fn new(_: NodeId, _: u32) -> Self {
        let (frames, over) = (Vec::new(), Vec::new());
        Diary { frames, changes: 0, ticks: 0, restless: 0, due_ns: u64::MAX, over, has_ended: false }
    }
    fn limit_payload(&mut self, _: u32) {}
    fn changes(&self) -> u64 {
        self.changes
    }
    /// Frames with a flag are.
    fn is_timed(header: &Header) -> bool {
        header.flags != 0
    }
    fn word(&mut self, _: u64, _: NodeId, _: &Header, _: u64, _: &mut impl Links<Block = Block>) {
        unreachable!("there is no shared memory");
    }
    fn frame(&mut self, _: u64, _: NodeId, _: &Header, _: Payload<Block>, _: &mut impl Links<Block = Block>) {
        unreachable!("there is no shared memory");
    }
    /// Frames whose status is 0 are news; others nobody waits for.
    fn report(&mut self, _: u64, report: Report<Block>, _: &mut impl Links<Block = Block>) {
        let Report::Frame { header, .. } = report else {
            self.changes += 1;
            return;
        };
        self.frames.push(header.class.class());
        self.changes += u64::from(header.status == 0);
    }
    fn tick(&mut self, _: u64, _: &mut impl Links<Block = Block>) -> u64 {
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
        self.over.contains(&request)
    }
}

pub fn id(node: u32) -> NodeId {
    NodeId::new(0, node).unwrap()
}

pub fn class(number: u8) -> Priority {
    Priority::new(number).unwrap()
}

pub fn header(number: u8, bytes: usize) -> Header {
    Header { class: class(number), length: bytes as u32, ..Header::new(0) }
}

/// A frame from node 2.
pub fn frame(number: u8) -> Report<NoBlock> {
    Report::Frame { peer: id(2), header: header(number, 0), payload: Payload::Owned(Vec::new()) }
}

pub fn wiring(rules: Vec<ClassRule>) -> Wiring {
    let mut topology = Topology::single_machine();
    if !rules.is_empty() {
        for node in 1..=3 {
            let rules = if node == 1 { rules.clone() } else { Vec::new() };
            topology.nodes.insert(id(node), crate::topology::Place { rules, ..Default::default() });
        }
    }
    Wiring::new(Arc::new(topology), id(1), Diary::KINDS).unwrap()
}

/// A node without its background thread.
pub fn node_with(spin_ns: u64, rules: Vec<ClassRule>) -> (Shared<Diary>, Handle) {
    let wiring = wiring(rules);
    let handle = Handle::new(&wiring, 0);
    let links = NodeLinks::of_network(&wiring, Box::new(handle.clone()));
    let shared = Shared::new(wiring, links, Options { spin_ns, ..Options::default() }).unwrap();
    (shared, handle)
}

pub fn node() -> (Shared<Diary>, Handle) {
    node_with(0, Vec::new())
}

/// Tokens of the descriptors that are ready; nothing is silenced.
pub fn ready_tokens(shared: &Shared<Diary>) -> Vec<u64> {
    let events = shared.await_events(Some(0));
    let mut tokens = events.tokens[..events.count].to_vec();
    tokens.sort_unstable();
    tokens
}

/// Whether it has been rung; silences it.
pub fn rang(event: &Descriptor) -> bool {
    rustix::io::read(event, &mut [0; 8]).is_ok()
}

/// Makes the carrier's descriptor readable.
pub fn ring_wire(handle: &Handle) {
    ring(&handle.wire().bell);
}

/// Counts how often it is woken.
#[derive(Debug, Default)]
pub struct Alarm(std::sync::atomic::AtomicU32);

impl Wake for Alarm {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    }
}

impl Alarm {
    pub fn new() -> (Arc<Alarm>, Waker) {
        let alarm = Arc::new(Alarm::default());
        (Arc::clone(&alarm), Waker::from(alarm))
    }
    /// How often it was woken since the last call.
    pub fn count(&self) -> u32 {
        self.0.swap(0, std::sync::atomic::Ordering::Relaxed)
    }
}

/// Longest that anything takes that another thread is to do.
pub const PATIENCE_S: u64 = 20;

/// Waits for what another thread is to do. Such threads are not waited for where it fails: they may be stuck.
pub fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let end = std::time::Instant::now() + std::time::Duration::from_secs(PATIENCE_S);
    while !is_so() {
        assert!(std::time::Instant::now() < end, "{what}");
        std::thread::yield_now();
    }
}

/// What a thread gives, which is to end soon.
pub fn result<R>(thread: std::thread::JoinHandle<R>) -> R {
    until("the thread ends", || thread.is_finished());
    thread.join().unwrap()
}

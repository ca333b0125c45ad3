//! The links of a node, of all kinds, as the one [`Links`] that its engine sees.
//!
//! How it works: shared memory has a place of its own, as nothing may stand between a program and its lanes; every other kind
//! is a carrier behind a pointer, known by its index. Which of them reaches a peer is looked up in the system once and kept
//! in a table. The clock is read where
//! threads begin and end to wait or look in vain, not between what has come and what is sent for it: a reading that is as
//! old as the last look does for everything but questions of how long something took.

use std::sync::Arc;

use musubi_linux::clock::now_ns;

use super::wiring::Wiring;
use crate::carrier::{Carrier, Describe, Drive, Frames};
use crate::frame::Header;
use crate::links::{Links, NoBlock, Payload, Reach, Report, Sent, SharedBytes};
use crate::notifier::{Notifier, WakeCounts};
use crate::protocol::Protocol;
use crate::shm::ShmCarrier;
use crate::status::{AcceptorStatus, LinkStatus, LoggedEvent, WakeStatus};
use crate::tcp::TcpCarrier;
use crate::topology::{Topology, Way};
use crate::{LinkError, NodeId, Priority, notices};

pub use crate::shm::Block;

/// Highest byte of tokens of shared memory's descriptors.
const TOKEN_MEMORY: u64 = 1;
/// Highest byte of tokens of the first other carrier's descriptors; the next has the next.
pub const TOKEN_OTHERS: u64 = crate::tcp::CARRIER;

/// Of looks that found nothing, one in this many is made all the same.
const LOOKS_IN_VAIN: u32 = 16;

/// Bytes sent over the network after which a thread that never waits looks at the links all the same. What peers
/// acknowledge frees memory that the next frames then find in the processor's cache; and news are not to wait for its end.
const SENT_UNSEEN_BYTES: usize = 256 * 1024;
/// Bytes that are shared count for one in so many of those: they free no memory that the next frames would find.
const SHARED_COUNTS_PART: usize = 4;

/// How a peer is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Route {
    Unknown,
    Nowhere,
    Memory,
    /// The carrier of this index.
    Other(u8),
}

/// The links of a network: sockets, or what a test puts in their place.
type Network = Box<dyn Carrier<Block = NoBlock>>;

/// All links of a node.
pub struct NodeLinks {
    topology: Arc<Topology>,
    me: NodeId,
    pub(super) memory: Option<ShmCarrier>,
    /// All but shared memory.
    others: Vec<Network>,
    /// Which of them is TCP.
    tcp: Option<u8>,
    /// All peers are reached by this one, wherever the system says that they are.
    only: Option<u8>,
    routes: Vec<Route>,
    now_ns: u64,
    network_unflushed: bool,
    /// The network has just been read, or will be by the sleep that follows: the next poll passes it over.
    network_read: bool,
    /// Bytes sent over the network since it was last looked at.
    sent_unseen_bytes: usize,
    /// First looks of waits into the network, one after the other, that found nothing.
    looks_in_vain: u32,
    /// How often the node's threads were woken: its runtime counts, its links say so to tools.
    pub(super) wakes: WakeStatus,
    class_wakes: Vec<(Priority, WakeCounts)>,
}

impl std::fmt::Debug for NodeLinks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (memory, others) = (self.memory.is_some(), self.others.len());
        f.debug_struct("NodeLinks").field("memory", &memory).field("others", &others).finish_non_exhaustive()
    }
}

impl NodeLinks {
    /// The links that the system says this node has.
    pub(super) fn of_system(wiring: &Wiring, is_one_of_several: bool) -> Result<NodeLinks, LinkError> {
        let Wiring { topology, me, incarnation, epoll, kinds } = wiring;
        let mut links = NodeLinks::without(wiring);
        let place = topology.nodes.get(me);
        let by_memory = |peer: NodeId| peer != *me && topology.way(*me, peer) == Some(Way::SharedMemory);
        let has_memory = topology.nodes.is_empty() || place.is_some_and(|place| place.shared_memory.is_some());
        if has_memory || topology.nodes.keys().any(|peer| by_memory(*peer)) {
            let memory = ShmCarrier::open(Arc::clone(topology), *me, *incarnation, Arc::clone(epoll), kinds);
            let is_news = |error: &LinkError| !is_one_of_several || *error != LinkError::NodeRuns;
            links.memory = Some(memory.inspect_err(|error| {
                if is_news(error) {
                    says_why_not(*me, error);
                }
            })?);
        }
        if TcpCarrier::is_needed(topology, *me) || place.is_some_and(|place| place.tcp.is_some()) {
            let network = TcpCarrier::open(Arc::clone(topology), *me, *incarnation, Arc::clone(epoll), kinds);
            links.tcp = Some(links.add(Box::new(network.map_err(|error| {
                if is_one_of_several && matches!(error, crate::tcp::Error::AddressInUse(_)) {
                    return LinkError::NodeRuns;
                }
                says_why_not(*me, &error);
                LinkError::Unavailable
            })?)));
        }
        Ok(links)
    }

    /// Links of one kind only.
    pub(super) fn of_network(wiring: &Wiring, network: Network) -> NodeLinks {
        let mut links = NodeLinks::without(wiring);
        links.only = Some(links.add(network));
        links
    }

    /// Takes a carrier in; gives its index.
    pub(super) fn add(&mut self, carrier: Network) -> u8 {
        self.others.push(carrier);
        self.others.len() as u8 - 1
    }

    fn without(wiring: &Wiring) -> NodeLinks {
        NodeLinks {
            topology: Arc::clone(&wiring.topology),
            me: wiring.me,
            memory: None,
            others: Vec::new(),
            tcp: None,
            only: None,
            routes: vec![Route::Unknown; NodeId::COUNT],
            now_ns: now_ns(),
            network_unflushed: false,
            network_read: false,
            sent_unseen_bytes: 0,
            looks_in_vain: 0,
            wakes: WakeStatus::default(),
            class_wakes: Vec::new(),
        }
    }

    /// The time now, in nanoseconds of the monotonic clock.
    pub fn now_ns(&mut self) -> u64 {
        self.now_ns = now_ns();
        self.now_ns
    }

    /// Takes note of what the notifier counts.
    #[cold]
    pub(super) fn count_wakes(&mut self, notifier: &Notifier) {
        let WakeCounts { frames, raised, deferred, .. } = notifier.totals();
        self.class_wakes.clear();
        self.class_wakes.extend(notifier.by_class());
        self.wakes = WakeStatus { frames, raised, deferred, ..self.wakes };
    }

    /// The time when the clock was last read.
    #[inline]
    pub(super) fn last_ns(&self) -> u64 {
        self.now_ns
    }

    #[inline(always)]
    fn route(&mut self, peer: NodeId) -> Route {
        match self.routes[peer.index()] {
            Route::Unknown => self.find_route(peer),
            known => known,
        }
    }

    #[cold]
    fn find_route(&mut self, peer: NodeId) -> Route {
        let route = match self.topology.way(self.me, peer) {
            _ if !self.topology.has(peer) => Route::Nowhere,
            way => match (self.only, way) {
                (Some(only), _) => Route::Other(only),
                (None, Some(Way::SharedMemory)) => Route::Memory,
                (None, Some(Way::Tcp(_))) => self.tcp.map_or(Route::Nowhere, Route::Other),
                (None, None) => Route::Nowhere,
            },
        };
        self.routes[peer.index()] = route;
        route
    }

    #[inline(never)]
    fn send_by_other(&mut self, carrier: u8, peer: NodeId, header: Header, payload: &[u8]) -> Sent {
        let now_ns = self.now_ns;
        let Some(carrier) = self.other_to_send(carrier, payload.len()) else { return Sent::NoLink };
        carrier.send(now_ns, peer, &header, payload)
    }

    #[inline]
    fn other_to_send(&mut self, carrier: u8, bytes: usize) -> Option<&mut Network> {
        let carrier = self.others.get_mut(usize::from(carrier))?;
        self.network_unflushed = true;
        self.sent_unseen_bytes += bytes;
        Some(carrier)
    }

    /// Looks at everything that can be looked at cheaply. The clock is read by the caller, and before: what has come is
    /// on its way to somebody who waits.
    #[inline(always)]
    pub(super) fn poll(&mut self) {
        let just_read = std::mem::take(&mut self.network_read);
        self.sent_unseen_bytes = 0;
        if !just_read {
            self.others.iter_mut().for_each(|carrier| carrier.poll(self.now_ns));
        }
        if let Some(memory) = &mut self.memory {
            memory.poll(self.now_ns);
        }
    }

    /// Whether so much was sent without a look that one is due.
    #[inline]
    pub(super) fn owes_look(&self) -> bool {
        self.sent_unseen_bytes >= SENT_UNSEEN_BYTES
    }

    /// Before the first look of a wait. If that sleeps at once, a look into the network is a system call that the sleep
    /// makes needless, as it ends at once if something is there. So the look is left out where such looks found nothing
    /// (in a stream they do), but for one in [`LOOKS_IN_VAIN`].
    #[inline]
    pub(super) fn before_look(&mut self, sleeps_at_once: bool) {
        self.network_read = sleeps_at_once && !self.looks_in_vain.is_multiple_of(LOOKS_IN_VAIN);
        if !self.others.is_empty() && !self.network_read {
            self.now_ns();
        }
    }

    /// After that look: whether it found something.
    #[inline]
    pub(super) fn note_look(&mut self, found: bool) {
        self.looks_in_vain = if found { 0 } else { self.looks_in_vain.wrapping_add(1) };
    }

    /// Whether [`NodeLinks::poll`] makes system calls.
    #[inline]
    pub(super) fn polls_the_kernel(&self) -> bool {
        !self.others.is_empty()
    }

    /// The next report that is no frame of shared memory's lanes: of memory what is not asked for by place, then of the
    /// network.
    #[inline]
    pub(super) fn next_of_rest(&mut self) -> Option<Report<Block>> {
        match self.memory.as_mut().and_then(ShmCarrier::next_of_rest) {
            Some(report) => Some(report),
            None => self.others.iter_mut().find_map(|carrier| carrier.next_report(self.now_ns)).map(without_blocks),
        }
    }

    /// When what is reported came: what is a matter of time gets a fresh reading, everything else the last one.
    #[inline]
    pub(super) fn time_of<P: Protocol<Block = Block>>(&mut self, report: &Report<Block>) -> u64 {
        match report {
            Report::Frame { header, .. } => self.time_of_frame::<P>(header),
            Report::Acknowledged { .. } | Report::Room { .. } => self.now_ns,
            Report::Up { .. } | Report::Down { .. } | Report::Absent { .. } => self.now_ns(),
        }
    }

    #[inline]
    pub(super) fn time_of_frame<P: Protocol>(&mut self, header: &Header) -> u64 {
        if P::is_timed(header) { self.now_ns() } else { self.now_ns }
    }

    /// Sends and rings what sends have left to do; true if something may be due earlier than it was: something went to the
    /// network, or is held back by a rule.
    #[inline(always)]
    pub(super) fn flush(&mut self) -> bool {
        if let Some(memory) = &mut self.memory {
            memory.flush(self.now_ns);
        }
        let held = self.memory.as_mut().is_some_and(ShmCarrier::take_held);
        self.network_unflushed && self.flush_network() || held
    }

    #[cold]
    fn flush_network(&mut self) -> bool {
        self.network_unflushed = false;
        self.others.iter_mut().for_each(|carrier| carrier.flush(self.now_ns));
        true
    }

    /// Sends everything that was held back, acknowledgements included.
    pub(super) fn flush_all(&mut self) {
        self.network_unflushed = true;
        self.flush();
    }

    /// Whether the end of this process would lose nothing of what was sent.
    pub(super) fn has_delivered(&self) -> bool {
        self.others.iter().all(|carrier| carrier.has_delivered())
    }

    /// Takes back the memory of a payload that is no longer needed: that of the network is used again.
    pub fn recycle(&mut self, payload: Payload<Block>) {
        // Whichever of them made it: what they read into is alike.
        if let (Payload::Owned(buffer), Some(carrier)) = (payload, self.others.first_mut()) {
            carrier.recycle(buffer);
        }
    }

    /// Whether the kernel, not a peer, wakes who sleeps on some of the links.
    pub(super) fn has_network(&self) -> bool {
        !self.others.is_empty()
    }

    /// Frames of which classes are rung for from the next sleep on: see [`Drive::ring_for`].
    pub(super) fn ring_for(&mut self, classes: u8) {
        if let Some(memory) = &mut self.memory {
            memory.ring_for(classes);
        }
    }

    /// See [`Drive::left_unseen`].
    pub(super) fn left_unseen(&self) -> u32 {
        self.memory.as_ref().map_or(0, |memory| memory.left_unseen())
    }

    /// Announces sleep at all links; true if something came meanwhile.
    pub(super) fn prepare_sleep(&mut self) -> bool {
        // All of them, as all are told when it is over.
        let memory = self.memory.as_mut().is_some_and(|memory| memory.prepare_sleep());
        self.others.iter_mut().fold(memory, |came, carrier| carrier.prepare_sleep() | came)
    }

    pub(super) fn finish_sleep(&mut self) {
        if let Some(memory) = &mut self.memory {
            memory.finish_sleep();
        }
        self.others.iter_mut().for_each(|carrier| carrier.finish_sleep());
    }

    /// When [`NodeLinks::tick`] has something to do.
    pub(super) fn deadline_ns(&self) -> u64 {
        let memory_ns = self.memory.as_ref().map_or(u64::MAX, |memory| memory.deadline_ns());
        self.others.iter().map(|carrier| carrier.deadline_ns()).fold(memory_ns, u64::min)
    }

    /// Does what is due by time.
    pub(super) fn tick(&mut self) {
        let now_ns = self.now_ns();
        if now_ns < self.deadline_ns() {
            return;
        }
        if let Some(memory) = &mut self.memory {
            memory.tick(now_ns);
        }
        self.others.iter_mut().for_each(|carrier| carrier.tick(now_ns));
    }

    /// A descriptor is ready.
    pub(super) fn ready(&mut self, token: u64) {
        let number = token >> 56;
        if let (TOKEN_MEMORY, Some(memory)) = (number, &mut self.memory) {
            memory.ready(self.now_ns, token);
        } else if let Some(carrier) = self.others.get_mut(number.wrapping_sub(TOKEN_OTHERS) as usize) {
            carrier.ready(self.now_ns, token);
            self.network_read = true;
        }
    }

    /// Whether who sleeps on the links would not be rung for room that a sender waits for now; says so once.
    #[inline]
    pub(super) fn take_newly_blocked(&mut self) -> bool {
        self.memory.as_mut().is_some_and(ShmCarrier::take_newly_blocked)
    }

    /// Whether links have reports at hand of which no descriptor tells any more.
    #[inline]
    pub(super) fn holds_reports(&self) -> bool {
        self.others.iter().any(|carrier| carrier.holds_reports())
            || self.memory.as_ref().is_some_and(|memory| memory.holds_reports())
    }

    /// Ends all links; nothing can be sent any more. Those of the network, whose goodbyes take their time, are handed out to
    /// be ended without the node's lock.
    pub(super) fn close(&mut self) -> Leaving {
        let now_ns = self.now_ns();
        if let Some(mut memory) = self.memory.take() {
            memory.flush(now_ns);
            memory.leave(now_ns);
        }
        Leaving(std::mem::take(&mut self.others))
    }
}

/// Links that are to be ended.
pub(super) struct Leaving(Vec<Network>);

impl Leaving {
    /// Says goodbye.
    pub(super) fn leave(self) {
        for mut carrier in self.0 {
            let now_ns = now_ns();
            carrier.flush(now_ns);
            carrier.leave(now_ns);
        }
    }
}

/// Says what a program hears as one code only.
pub(super) fn says_why_not(me: NodeId, error: &dyn core::fmt::Display) {
    notices::say(|| format!("node {me} does not start: {error}"));
}

impl Links for NodeLinks {
    type Block = Block;

    #[inline(always)]
    fn send(&mut self, peer: NodeId, header: &Header, payload: &[u8]) -> Sent {
        match self.route(peer) {
            Route::Memory => match &mut self.memory {
                Some(memory) => memory.send(self.now_ns, peer, header, payload),
                None => Sent::NoLink,
            },
            Route::Other(carrier) => self.send_by_other(carrier, peer, *header, payload),
            Route::Nowhere | Route::Unknown => Sent::NoLink,
        }
    }

    fn send_shared(&mut self, peer: NodeId, header: &Header, payload: &SharedBytes) -> Sent {
        let Route::Other(carrier) = self.route(peer) else { return self.send(peer, header, payload) };
        let now_ns = self.now_ns;
        let bytes = payload.len() / SHARED_COUNTS_PART;
        let Some(carrier) = self.other_to_send(carrier, bytes) else { return Sent::NoLink };
        carrier.send_shared(now_ns, peer, header, payload)
    }

    fn hold(&mut self) {
        self.others.iter_mut().for_each(|carrier| carrier.hold());
    }

    fn release(&mut self) {
        let now_ns = self.now_ns;
        self.others.iter_mut().for_each(|carrier| carrier.release(now_ns));
    }

    fn want(&mut self, peer: NodeId, wanted: bool) {
        let now_ns = self.now_ns();
        match (self.route(peer), &mut self.memory) {
            (Route::Memory, Some(memory)) => memory.want(now_ns, peer, wanted),
            (Route::Other(carrier), _) => match self.others.get_mut(usize::from(carrier)) {
                Some(carrier) => carrier.want(now_ns, peer, wanted),
                None => return,
            },
            _ => return,
        }
        // New links may have new deadlines: see `Shared::settle`.
        self.network_unflushed = true;
    }

    fn knows(&self, peer: NodeId) -> bool {
        self.topology.has(peer)
    }

    fn is_drained(&mut self, peer: NodeId) -> bool {
        match (self.route(peer), &mut self.memory) {
            (Route::Memory, Some(memory)) => memory.is_drained(peer),
            _ => false,
        }
    }

    fn reach(&mut self, peer: NodeId) -> Option<Arc<dyn Reach>> {
        match self.route(peer) {
            Route::Memory => self.memory.as_ref()?.reach(peer),
            Route::Other(_) | Route::Nowhere | Route::Unknown => None,
        }
    }

    fn link(&self, peer: NodeId) -> Option<LinkStatus> {
        match self.routes[peer.index()] {
            Route::Memory => self.memory.as_ref()?.link(peer),
            Route::Other(carrier) => self.others.get(usize::from(carrier))?.link(peer),
            Route::Nowhere | Route::Unknown => None,
        }
    }

    fn acceptor(&self) -> Option<AcceptorStatus> {
        let mut acceptor = AcceptorStatus::default();
        if let Some(memory) = &self.memory {
            memory.describe_acceptor(&mut acceptor);
        }
        self.others.iter().for_each(|carrier| carrier.describe_acceptor(&mut acceptor));
        Some(acceptor)
    }

    fn wakes(&self) -> Option<WakeStatus> {
        Some(self.wakes)
    }

    fn class_wakes(&self) -> Vec<(Priority, WakeCounts)> {
        self.class_wakes.clone()
    }

    fn log(&self) -> Vec<LoggedEvent> {
        self.others.iter().flat_map(|carrier| carrier.log()).collect()
    }
}

/// The same report of links that have no payload in place.
fn without_blocks(report: Report<NoBlock>) -> Report<Block> {
    match report {
        Report::Up { peer, incarnation } => Report::Up { peer, incarnation },
        Report::Down { peer, loss } => Report::Down { peer, loss },
        Report::Frame { peer, header, payload } => {
            let payload = match payload {
                Payload::Short(short) => Payload::Short(short),
                Payload::Owned(bytes) => Payload::Owned(bytes),
                Payload::Lent(none) => match none {},
            };
            Report::Frame { peer, header, payload }
        }
        Report::Acknowledged { peer, number } => Report::Acknowledged { peer, number },
        Report::Room { peer } => Report::Room { peer },
        Report::Absent { peer } => Report::Absent { peer },
    }
}

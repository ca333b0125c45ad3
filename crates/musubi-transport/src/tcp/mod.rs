//! Links over TCP, plain or through TLS.
//!
//! What you may rely on: no call waits, but for [`TcpCarrier::open`] (which may ask the resolver for this node's own
//! address) and [`Carrier::leave`] (at most [`LEAVE_NS_MAX`], for the peers' goodbyes). A frame that finds nothing before it
//! is written within the call that sends it, by one system call; several that one call sends are written together. An urgent frame overtakes whatever has not been handed
//! to the kernel; the kernel is given at most what its bounded buffers take (docs/wire.md states the bound). A connection that is not
//! loopback on both sides uses TLS 1.3 with certificates both ways, unless the description says `insecure`.
//!
//! A node that cannot be reached is reported absent as often as it is tried for without a link that waits: when every
//! address of it has refused or, each within 2 s, not answered; when somebody connects and then is silent for `silence_ms`; and
//! after some half a second of connections that end before they carry anything. So nobody waits longer than that (and than
//! the resolver, where the description has a name) to learn that a message cannot go.
//!
//! How it works: one [`Session`] a peer survives its connections. New ones come through the *acceptor*, a thread of its own
//! that accepts, dials, makes handshakes and refuses; the node meets a connection only when it is known who speaks. Both
//! nodes dial as long as there is none, with pauses from 10 to 500 ms; if both succeed, the session keeps the one that the node
//! with the smaller number dialed. Sockets in use are read by spinning callers directly; all are watched by the node's
//! epoll instance, level-triggered.
//!
//! What it does not do: find nodes that the description does not name; keep a link up that nobody wants.

mod acceptor;
mod admission;
mod error;
mod event_log;
mod link;
mod names;
mod pending;
mod sockets;
mod stream;
mod tls;

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;

use musubi_linux::clock;
use musubi_linux::descriptor::Descriptor;
use rustix::event::{PollFd, PollFlags, Timespec, epoll, poll};

pub use acceptor::{ACCEPT_NS, ACCEPTS_BURST};
pub use admission::{HALF_OPEN_MAX, HANDSHAKES_OF_ADDRESS_MAX};
pub use error::Error;
pub use event_log::{Counters, Entry, EventLog};

use crate::NodeId;
use crate::carrier::Carrier;
use crate::frame::{Header, Kinds};
use crate::links::{NoBlock, Report, Sent, SharedBytes};
use crate::picture::{DoorPicture, LinkPicture, LogPicture};
use crate::session::{Broken, Counts, Hello, Identity, Reason, Session, State};
use crate::topology::{Topology, Way};
use acceptor::{Acceptor, Arrival, Us};
use link::{BURST_BYTES, Dial, End, Link, READ_BYTES, READY_BYTES};
use stream::Stream;
use tls::Tls;

/// This carrier's number: the highest byte of its tokens.
pub const CARRIER: u64 = 2;
/// Longest time that leaving waits for the peers' goodbyes, nanoseconds.
pub const LEAVE_NS_MAX: u64 = 250_000_000;
/// Links that a spinning caller looks at.
const HOT_MAX: usize = 4;
/// How long after its last frame a link is one of them, nanoseconds.
const HOT_NS: u64 = 1_000_000;
/// The acceptor's token, beyond all nodes'.
const ACCEPTOR: u64 = CARRIER << 56 | u32::MAX as u64;

/// All links over TCP of one node.
#[derive(Debug)]
pub struct TcpCarrier {
    us: Arc<Us>,
    kinds: &'static Kinds,
    event_log: Arc<EventLog>,
    epoll: Arc<Descriptor>,
    /// `None` once the node has left.
    acceptor: Option<Acceptor>,
    links: Vec<Link>,
    /// By [`NodeId::index`]: where in `links`, plus one; 0 for none.
    places: Vec<u16>,
    buffer: Box<[u8; READ_BYTES]>,
    /// Links that may have something to report.
    noisy: VecDeque<usize>,
    /// Links that may have acknowledgements to send.
    touched: Vec<usize>,
    /// Links that a spinning caller looks at.
    hot: Vec<usize>,
    /// The link that was last read: the next one that needs memory is likely the same.
    read_last: usize,
    /// What is sent is held back, while it is not too much.
    holding: bool,
    /// Links with frames that are held back, and the bytes of all of them.
    held: Vec<usize>,
    held_bytes: usize,
    /// Nodes that could not be reached.
    absent: VecDeque<NodeId>,
    /// Nothing but acknowledgements is due before.
    due_ns: u64,
    /// No acknowledgement is due before. Apart from the other, because most go with a frame and then are not due at all.
    acknowledge_ns: u64,
}

const _: () = assert!(NodeId::COUNT < u16::MAX as usize, "a place fits into 16 bits");

fn token_of(peer: NodeId) -> u64 {
    CARRIER << 56 | peer.index() as u64
}

impl TcpCarrier {
    /// Whether `me` can have links over TCP.
    pub fn is_needed(topology: &Topology, me: NodeId) -> bool {
        topology.named().into_iter().any(|peer| matches!(topology.way(me, peer), Some(Way::Tcp(_))))
    }

    /// Opens the carrier of node `me`, which listens from now on if it has an address. Waits for the resolver if that is
    /// a name. Descriptors are registered with `epoll` under tokens whose highest byte is [`CARRIER`].
    ///
    /// # Errors
    /// If the address cannot be listened at, or certificates are missing or wrong.
    pub fn open(
        topology: Arc<Topology>,
        me: NodeId,
        incarnation: u32,
        epoll: Arc<Descriptor>,
        kinds: &'static Kinds,
    ) -> Result<TcpCarrier, Error> {
        let tls = Tls::load(&topology, me)?;
        let listener = match topology.nodes.get(&me).and_then(|place| place.tcp.as_deref()) {
            Some(place) => Some(listen(&topology, place, tls.is_some())?),
            None => None,
        };
        let identity = Identity { system: topology.system.clone(), hash: topology.hash, node: me, incarnation };
        let us = Arc::new(Us { topology, identity, tls });
        let event_log = Arc::new(EventLog::default());
        let acceptor = Acceptor::open(Arc::clone(&us), listener, Arc::clone(&event_log))?;
        epoll::add(&epoll, acceptor.bell(), epoll::EventData::new_u64(ACCEPTOR), epoll::EventFlags::IN)?;
        Ok(TcpCarrier {
            us,
            kinds,
            event_log,
            epoll,
            acceptor: Some(acceptor),
            links: Vec::new(),
            places: Vec::new(),
            buffer: Box::new([0; READ_BYTES]),
            noisy: VecDeque::new(),
            touched: Vec::new(),
            hot: Vec::with_capacity(HOT_MAX),
            read_last: 0,
            holding: false,
            held: Vec::new(),
            held_bytes: 0,
            absent: VecDeque::new(),
            due_ns: u64::MAX,
            acknowledge_ns: u64::MAX,
        })
    }

    /// Counts and log of this node's connections; may be read at any time, by any thread.
    pub fn event_log(&self) -> Arc<EventLog> {
        Arc::clone(&self.event_log)
    }

    /// What the session with each node has done.
    pub fn sessions(&self) -> impl Iterator<Item = (NodeId, State, Counts)> {
        self.links.iter().map(|link| (link.peer, link.session.state(), link.session.counts()))
    }

    /// Breaks the connection with `peer`, if there is one, as a fault of the network would: to try out what survives that.
    pub fn break_connection(&mut self, now_ns: u64, peer: NodeId) {
        if let Some(place) = self.find(peer).filter(|&place| self.links[place].is_connected()) {
            self.ended(now_ns, place, Err(End::Closed));
        }
    }

    fn find(&self, peer: NodeId) -> Option<usize> {
        let place = *self.places.get(peer.index())?;
        usize::from(place).checked_sub(1)
    }

    /// The link with a node; made if there is a way to it and none yet.
    fn link_with(&mut self, peer: NodeId) -> Option<usize> {
        if let Some(place) = self.find(peer) {
            return Some(place);
        }
        let me = self.us.identity.node;
        if !matches!(self.us.topology.way(me, peer)?, Way::Tcp(_)) || self.acceptor.is_none() {
            return None;
        }
        let session = Session::new(&self.us.identity, peer, &self.us.topology.network, self.kinds);
        self.links.push(Link::new(peer, session, Arc::clone(&self.epoll)));
        if self.places.len() <= peer.index() {
            self.places.resize(peer.index() + 1, 0);
        }
        self.places[peer.index()] = self.links.len() as u16;
        Some(self.links.len() - 1)
    }

    /// After anything that a session was told: what it has to say is looked at, and when it is due.
    #[inline]
    fn settle(&mut self, place: usize) {
        let link = &mut self.links[place];
        if !link.noisy {
            link.noisy = true;
            self.noisy.push_back(place);
        }
        self.due_ns = self.due_ns.min(link.deadline_ns());
    }

    /// A link in use: spinning callers look at it.
    #[inline]
    fn warm(&mut self, now_ns: u64, place: usize) {
        let link = &mut self.links[place];
        if link.hot_until_ns == 0 {
            if self.hot.len() == HOT_MAX {
                let coldest = (0..HOT_MAX).min_by_key(|&at| self.links[self.hot[at]].hot_until_ns).unwrap_or(0);
                let cooled = self.hot.swap_remove(coldest);
                self.links[cooled].hot_until_ns = 0;
            }
            self.hot.push(place);
        }
        self.links[place].hot_until_ns = now_ns + HOT_NS;
    }

    /// Reads, unless the engine has not taken in yet what was read before: so a peer that sends faster than that fills the
    /// kernel's buffers and not our memory. The descriptor stays ready.
    fn read_in_turn(&mut self, now_ns: u64, place: usize) {
        if !self.links[place].session.has_report() {
            self.read(now_ns, place);
        }
    }

    fn read(&mut self, now_ns: u64, place: usize) {
        let link = &mut self.links[place];
        let came = link.read(now_ns, &mut self.buffer);
        match came {
            Ok(false) if !link.is_full() => return,
            Ok(true) => {
                self.read_last = place;
                self.warm(now_ns, place);
            }
            _ => {}
        }
        // A welcome that came lets out what has waited for it; an acknowledgement may have made room.
        let result = came.and_then(|_| self.write_ready(now_ns, place));
        self.ended(now_ns, place, result);
        self.settle(place);
    }

    /// Goes on writing, unless there is neither room nor anything to write.
    fn write_ready(&mut self, now_ns: u64, place: usize) -> Result<(), End> {
        let link = &mut self.links[place];
        if link.is_full() || link.session.has_output() || link.session.state() == State::Ended {
            return link.write(now_ns);
        }
        Ok(())
    }

    /// Lets the session with `peer` take a frame of so many bytes, and writes it if it finds nothing before it and is not
    /// to be held back.
    #[inline]
    fn send_by(&mut self, now_ns: u64, peer: NodeId, bytes: usize, enqueue: impl FnOnce(&mut Session) -> Sent) -> Sent {
        let Some(place) = self.find(peer) else { return Sent::NoLink };
        let sent = enqueue(&mut self.links[place].session);
        if let Sent::Numbered(_) = sent {
            if self.holding {
                self.hold_back(now_ns, place, bytes)
            } else {
                self.write_sent(now_ns, place, READY_BYTES)
            }
        }
        sent
    }

    /// Writes what a session was given to send.
    #[inline]
    fn write_sent(&mut self, now_ns: u64, place: usize, ready_bytes: usize) {
        let link = &mut self.links[place];
        let written = if link.is_full() { Ok(()) } else { link.write_by(now_ns, ready_bytes) };
        // Read only here, as the peer has the frame now: nobody waits for it.
        let now_ns = clock::now_ns();
        self.ended(now_ns, place, written);
        self.warm(now_ns, place);
        self.due_ns = self.due_ns.min(self.links[place].deadline_ns());
    }

    /// Leaves a frame of so many bytes unwritten, unless that is enough for a write.
    fn hold_back(&mut self, now_ns: u64, place: usize, bytes: usize) {
        if !self.held.contains(&place) {
            self.held.push(place);
        }
        self.held_bytes += bytes;
        if self.held_bytes >= BURST_BYTES {
            self.write_held(now_ns);
        }
    }

    fn write_held(&mut self, now_ns: u64) {
        self.held_bytes = 0;
        while let Some(place) = self.held.pop() {
            self.write_sent(now_ns, place, BURST_BYTES);
        }
    }

    /// Writes what a session has to say.
    #[inline]
    fn write(&mut self, now_ns: u64, place: usize) {
        let result = self.links[place].write(now_ns);
        self.ended(now_ns, place, result);
    }

    /// A connection may have ended: says so, and plans the next one.
    #[inline]
    fn ended(&mut self, now_ns: u64, place: usize, result: Result<(), End>) {
        if let Err(end) = result {
            self.end_connection(now_ns, place, &end);
            self.settle(place);
        }
    }

    #[cold]
    fn end_connection(&mut self, now_ns: u64, place: usize, end: &End) {
        let me = self.us.identity.node;
        let (state, peer) = (self.links[place].session.state(), self.links[place].peer);
        self.links[place].detach();
        let mut hopeless = false;
        match end {
            End::Closed if state == State::Ended => {}
            End::Closed => self.event_log.note(format!("node {peer} has closed the connection")),
            End::Failed(error) => hopeless = self.note_failure(peer, error),
            End::Broken(Broken::Refused(reason)) => {
                hopeless = is_final(*reason);
                let text = format!("node {peer} refuses: {}", event_log::explained(*reason));
                if hopeless { self.event_log.note_hopeless(me, text) } else { self.event_log.note(text) }
            }
            End::Broken(Broken::Silent) => self.event_log.note(format!("node {peer} is silent")),
            End::Broken(Broken::Protocol) => self.event_log.note(format!("node {peer} broke the protocol")),
        }
        let link = &mut self.links[place];
        if !matches!(end, End::Broken(_)) {
            link.session.disconnected(now_ns);
        }
        let was_live = matches!(state, State::Live | State::Ended);
        if was_live {
            link.plan_dial(now_ns, me)
        } else {
            link.plan_again(now_ns)
        }
        // A session that is up has `known` set, and waits.
        if hopeless || matches!(end, End::Broken(Broken::Silent)) || self.links[place].is_tried_in_vain() {
            self.report_absent(place);
        }
    }

    /// True if it was TLS: the peer does not believe our certificate, as we learn after we believed its.
    fn note_failure(&mut self, peer: NodeId, error: &std::io::Error) -> bool {
        let Some((fault, why)) = tls::explained(error) else {
            self.event_log.note(format!("connection with node {peer}: {error}"));
            return false;
        };
        self.event_log.count(|counters| counters.count_tls(fault));
        self.event_log.note_hopeless(self.us.identity.node, format!("connection with node {peer}: {why}"));
        true
    }

    /// Nobody is there, as far as can be known, and there is no link that waits for it.
    fn report_absent(&mut self, place: usize) {
        let link = &self.links[place];
        if link.wanted && !link.known && !self.absent.contains(&link.peer) {
            self.absent.push_back(link.peer);
        }
    }

    fn look_at_acceptor(&mut self, now_ns: u64) {
        let arrivals = self.acceptor.as_ref().map(Acceptor::arrivals).unwrap_or_default();
        for arrival in arrivals {
            match arrival {
                Arrival::Called { stream, remote, hello } => self.called(now_ns, stream, remote, &hello),
                Arrival::Reached { peer, stream } => self.reached(now_ns, peer, stream),
                Arrival::Unreachable { peer } => self.unreachable(now_ns, peer),
            }
        }
    }

    fn called(&mut self, now_ns: u64, mut stream: Stream, remote: SocketAddr, hello: &Hello) {
        let peer = hello.identity.node;
        let Some(place) = self.link_with(peer) else { return };
        if let Err(reason) = self.links[place].session.accept(now_ns, hello) {
            self.event_log.refused(reason, format_args!("node {peer} at {}", remote.ip()));
            return acceptor::tell(&mut stream, &self.us.identity, Some(peer), reason);
        }
        if let (Dial::Underway, Some(acceptor)) = (self.links[place].dial, &self.acceptor) {
            acceptor.forget(peer);
        }
        self.attach(now_ns, place, stream);
    }

    fn reached(&mut self, now_ns: u64, peer: NodeId, stream: Stream) {
        let Some(place) = self.find(peer) else { return };
        let link = &mut self.links[place];
        link.dial = Dial::Idle;
        if link.lacks_connection() {
            link.session.dial(now_ns);
            self.attach(now_ns, place, stream);
        }
    }

    fn attach(&mut self, now_ns: u64, place: usize, stream: Stream) {
        let attached = self.links[place].attach(stream).map_err(End::Failed);
        self.ended(now_ns, place, attached);
        self.write(now_ns, place);
        // What came before the connection was watched makes nothing ready if TLS has it.
        self.read(now_ns, place);
        // Also where nothing came: an answer is awaited for some time only.
        self.settle(place);
    }

    fn unreachable(&mut self, now_ns: u64, peer: NodeId) {
        let Some(place) = self.find(peer) else { return };
        self.links[place].plan_again(now_ns);
        self.settle(place);
        self.report_absent(place);
    }

    fn do_what_is_due(&mut self, now_ns: u64, place: usize) {
        let link = &mut self.links[place];
        if link.session.deadline_ns() <= now_ns {
            // What lies unread is not silence.
            self.read(now_ns, place);
            let link = &mut self.links[place];
            let result = link.session.tick(now_ns).map_err(End::Broken);
            let result = result.and_then(|()| self.write_ready(now_ns, place));
            self.ended(now_ns, place, result);
            self.settle(place);
        }
        let (me, link) = (self.us.identity.node, &mut self.links[place]);
        link.plan_dial(now_ns, me);
        if let (Dial::At(at_ns), Some(acceptor)) = (link.dial, &self.acceptor)
            && at_ns <= now_ns
        {
            link.dial = if link.lacks_connection() { Dial::Underway } else { Dial::Idle };
            if link.dial == Dial::Underway {
                acceptor.dial(link.peer);
            }
        }
    }

    /// Waits until the goodbyes have been exchanged, or the time for it is over.
    fn wait_for_goodbyes(&mut self) {
        let until_ns = clock::now_ns() + LEAVE_NS_MAX;
        loop {
            let now_ns = clock::now_ns();
            let staying = |link: &&Link| link.is_connected() && !link.session.has_left();
            let waiting: Vec<usize> = (0..self.links.len()).filter(|&at| staying(&&self.links[at])).collect();
            if waiting.is_empty() || now_ns >= until_ns {
                return;
            }
            let streams = waiting.iter().filter_map(|&place| self.links[place].stream().map(|stream| (place, stream)));
            let flags = |place: usize| if self.links[place].is_full() { PollFlags::OUT } else { PollFlags::empty() };
            let mut watched: Vec<PollFd<'_>> =
                streams.map(|(place, stream)| PollFd::new(stream, flags(place) | PollFlags::IN)).collect();
            let timeout = Timespec { tv_sec: 0, tv_nsec: (until_ns - now_ns) as i64 };
            // A signal ends it early; then it is looked and waited again.
            let _ = poll(&mut watched, Some(&timeout));
            let now_ns = clock::now_ns();
            for place in waiting {
                self.read(now_ns, place);
                // Nobody takes them in any more.
                while self.links[place].session.next_report().is_some() {}
            }
        }
    }
}

/// What keeps the links over TCP of node `me` from being opened, found by trying: for people whose node does not start.
pub fn obstacle(topology: &Arc<Topology>, me: NodeId) -> Option<Error> {
    let epoll = match Descriptor::epoll() {
        Ok(epoll) => Arc::new(epoll),
        Err(error) => return Some(error.into()),
    };
    TcpCarrier::open(Arc::clone(topology), me, 1, epoll, Kinds::NONE).err()
}

/// Reasons that trying again does not change.
fn is_final(reason: Reason) -> bool {
    use Reason::*;
    matches!(reason, Garbage | Version | System | Plan | Recipient | UnknownNode | Identity)
}

fn listen(topology: &Topology, place: &str, has_keys: bool) -> Result<Descriptor, Error> {
    let addresses = names::resolve(place).map_err(|error| Error::Address(place.into(), error))?;
    let none = || std::io::Error::from(std::io::ErrorKind::AddrNotAvailable);
    let address = *addresses.first().ok_or_else(|| Error::Address(place.into(), none()))?;
    if tls::needed(&topology.network, address.ip(), address.ip()) && !has_keys {
        return Err(Error::NoKeys(address));
    }
    sockets::listen(address).map_err(|error| match error.kind() {
        std::io::ErrorKind::AddrInUse => Error::AddressInUse(address),
        _ => Error::Listen(address, error),
    })
}

impl Carrier for TcpCarrier {
    type Block = NoBlock;

    fn send(&mut self, now_ns: u64, peer: NodeId, header: &Header, payload: &[u8]) -> Sent {
        self.send_by(now_ns, peer, payload.len(), |session| session.enqueue(header, payload))
    }

    fn send_shared(&mut self, now_ns: u64, peer: NodeId, header: &Header, payload: &SharedBytes) -> Sent {
        self.send_by(now_ns, peer, payload.len(), |session| session.enqueue_shared(header, payload))
    }

    fn hold(&mut self) {
        self.holding = true;
    }

    fn release(&mut self, now_ns: u64) {
        self.holding = false;
        self.write_held(now_ns);
    }

    fn want(&mut self, now_ns: u64, peer: NodeId, wanted: bool) {
        let Some(place) = (if wanted { self.link_with(peer) } else { self.find(peer) }) else { return };
        let me = self.us.identity.node;
        let link = &mut self.links[place];
        link.wanted = wanted;
        link.plan_dial(now_ns, me);
        self.due_ns = self.due_ns.min(link.deadline_ns());
    }

    fn next_report(&mut self, now_ns: u64) -> Option<Report<NoBlock>> {
        if let Some(peer) = self.absent.pop_front() {
            return Some(Report::Absent { peer });
        }
        while let Some(&place) = self.noisy.front() {
            let link = &mut self.links[place];
            if let Some(report) = link.session.next_report() {
                match &report {
                    Report::Frame { header, .. } => {
                        let awaited = self.kinds.shape(header.kind).is_some_and(|shape| shape.awaited);
                        link.came(now_ns, awaited);
                        if !link.touched {
                            link.touched = true;
                            self.touched.push(place);
                        }
                        self.acknowledge_ns = self.acknowledge_ns.min(link.acknowledge_ns);
                    }
                    Report::Up { .. } => link.known = true,
                    Report::Down { .. } => link.known = false,
                    _ => {}
                }
                return Some(report);
            }
            link.noisy = false;
            self.noisy.pop_front();
        }
        None
    }

    fn poll(&mut self, now_ns: u64) {
        let mut at = 0;
        while let Some(&place) = self.hot.get(at) {
            let link = &mut self.links[place];
            if link.hot_until_ns <= now_ns || !link.is_connected() {
                link.hot_until_ns = 0;
                self.hot.swap_remove(at);
                continue;
            }
            self.read_in_turn(now_ns, place);
            at += 1;
        }
    }

    fn ready(&mut self, now_ns: u64, token: u64) {
        if token == ACCEPTOR {
            return self.look_at_acceptor(now_ns);
        }
        let peer = NodeId::from_index((token & u64::from(u32::MAX)) as usize);
        if let Some(place) = peer.and_then(|peer| self.find(peer)) {
            self.read_in_turn(now_ns, place);
        }
    }

    fn flush(&mut self, now_ns: u64) {
        let mut at = 0;
        while let Some(&place) = self.touched.get(at) {
            let link = &mut self.links[place];
            if link.acknowledge_ns > now_ns {
                at += 1;
                continue;
            }
            (link.touched, link.acknowledge_ns) = (false, u64::MAX);
            self.touched.swap_remove(at);
            link.session.flush();
            if !link.is_full() && link.session.has_output() {
                self.write(now_ns, place);
            }
        }
        let touched = self.touched.iter().map(|&place| self.links[place].acknowledge_ns);
        self.acknowledge_ns = touched.min().unwrap_or(u64::MAX);
    }

    fn recycle(&mut self, buffer: Vec<u8>) {
        if let Some(link) = self.links.get_mut(self.read_last) {
            link.session.recycle(buffer);
        }
    }

    fn prepare_sleep(&mut self) -> bool {
        // Descriptors are watched level-triggered; what lies in them ends the sleep at once.
        !self.absent.is_empty() || !self.noisy.is_empty()
    }

    fn finish_sleep(&mut self) {}

    fn holds_reports(&self) -> bool {
        !self.absent.is_empty() || self.noisy.iter().any(|&place| self.links[place].session.has_report())
    }

    fn has_delivered(&self) -> bool {
        self.links.iter().all(|link| !link.is_connected() || link.session.has_delivered())
    }

    fn deadline_ns(&self) -> u64 {
        self.due_ns.min(self.acknowledge_ns)
    }

    fn tick(&mut self, now_ns: u64) {
        if now_ns >= self.acknowledge_ns {
            self.flush(now_ns);
        }
        if now_ns < self.due_ns {
            return;
        }
        (0..self.links.len()).for_each(|place| self.do_what_is_due(now_ns, place));
        self.due_ns = self.links.iter().map(Link::deadline_ns).min().unwrap_or(u64::MAX);
    }

    fn link(&self, peer: NodeId) -> Option<LinkPicture> {
        self.find(peer).map(|place| self.links[place].picture())
    }

    fn describe_door(&self, door: &mut DoorPicture) {
        self.event_log.counters().describe(door);
    }

    fn log(&self) -> Vec<LogPicture> {
        let now_ns = clock::now_ns();
        let told = |entry: Entry| LogPicture {
            age_ns: now_ns.saturating_sub(entry.at_ns),
            times: entry.times,
            text: entry.text,
        };
        self.event_log.log().into_iter().map(told).collect()
    }

    fn leave(&mut self, now_ns: u64) {
        // First, so that nobody calls or is called any more.
        if let Some(acceptor) = self.acceptor.take() {
            // It was registered, so this cannot fail.
            let _ = epoll::delete(&self.epoll, acceptor.bell());
        }
        for place in 0..self.links.len() {
            self.links[place].wanted = false;
            self.links[place].session.leave();
            self.write(now_ns, place);
        }
        self.wait_for_goodbyes();
        self.links.iter_mut().for_each(Link::detach);
    }
}

impl Drop for TcpCarrier {
    fn drop(&mut self) {
        if let Some(acceptor) = &self.acceptor {
            // It was registered, so this cannot fail.
            let _ = epoll::delete(&self.epoll, acceptor.bell());
        }
        self.links.iter_mut().for_each(Link::detach);
    }
}

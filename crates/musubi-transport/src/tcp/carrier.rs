//! The carrier of one node: what the runtime asks of its links over TCP.
//!
//! What you may rely on: no call waits, but for [`TcpCarrier::open`] and [`Drive::leave`] (see [`super`]).
//!
//! How it works: what moves bytes is in [`super::traffic`], what begins and ends connections in [`super::connections`].

use std::collections::VecDeque;
use std::sync::Arc;

use musubi_linux::clock;
use musubi_linux::descriptor::Descriptor;
use rustix::event::epoll;

use super::acceptor::Acceptor;
use super::exchange::Us;
use super::link::{End, Link, READ_BYTES};
use super::table::LinkTable;
use super::tls::{self, Tls};
use super::tokens::{ACCEPTOR, peer_of};
use super::{Entry, Error, EventLog, names, needs, sockets};
use crate::NodeId;
use crate::carrier::{Describe, Drive, Frames};
use crate::frame::{Header, Kinds};
use crate::links::{NoBlock, Report, Sent, SharedBytes};
use crate::session::{Counts, Identity, Session, State};
use crate::status::{AcceptorStatus, LinkStatus, LoggedEvent};
use crate::topology::{Topology, Way};

/// Links that a spinning caller looks at.
pub(super) const HOT_MAX: usize = 4;

/// All links over TCP of one node.
#[derive(Debug)]
pub struct TcpCarrier {
    pub(super) us: Arc<Us>,
    pub(super) kinds: &'static Kinds,
    pub(super) event_log: Arc<EventLog>,
    pub(super) epoll: Arc<Descriptor>,
    /// `None` once the node has left.
    pub(super) acceptor: Option<Acceptor>,
    pub(super) links: LinkTable,
    pub(super) buffer: Box<[u8; READ_BYTES]>,
    /// Links that may have something to report.
    pub(super) noisy: VecDeque<usize>,
    /// Links that may have acknowledgements to send.
    pub(super) touched: Vec<usize>,
    /// Links that a spinning caller looks at.
    pub(super) hot: Vec<usize>,
    /// The link that was last read: the next one that needs memory is likely the same.
    pub(super) read_last: usize,
    /// What is sent is held back, while it is not too much.
    pub(super) holding: bool,
    /// Links with frames that are held back, and the bytes of all of them.
    pub(super) held: Vec<usize>,
    pub(super) held_bytes: usize,
    /// Nodes that could not be reached.
    pub(super) absent: VecDeque<NodeId>,
    /// Nothing but acknowledgements is due before.
    pub(super) due_ns: u64,
    /// No acknowledgement is due before. Apart from the other, because most go with a frame and then are not due at all.
    pub(super) acknowledge_ns: u64,
}

impl TcpCarrier {
    /// Whether `me` can have links over TCP.
    pub fn is_needed(topology: &Topology, me: NodeId) -> bool {
        topology.named().into_iter().any(|peer| matches!(topology.way(me, peer), Some(Way::Tcp(_))))
    }

    /// Opens the carrier of node `me`, which listens from now on if it has an address. Waits for the resolver if that is
    /// a name. Descriptors are registered with `epoll` under tokens whose highest byte is [`super::CARRIER`].
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
        needs::check()?;
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
            links: LinkTable::default(),
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

    pub(super) fn find(&self, peer: NodeId) -> Option<usize> {
        self.links.find(peer)
    }

    /// The link with a node; made if there is a way to it and none yet.
    pub(super) fn link_with(&mut self, peer: NodeId) -> Option<usize> {
        if let Some(place) = self.find(peer) {
            return Some(place);
        }
        let me = self.us.identity.node;
        if !matches!(self.us.topology.way(me, peer)?, Way::Tcp(_)) || self.acceptor.is_none() {
            return None;
        }
        let mut session = Session::new(&self.us.identity, peer, &self.us.topology.network, self.kinds);
        session.regulate(self.us.topology.rules_of(me));
        Some(self.links.add(Link::new(peer, session, Arc::clone(&self.epoll))))
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

impl Frames for TcpCarrier {
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

    fn recycle(&mut self, buffer: Vec<u8>) {
        if let Some(link) = self.links.get_mut(self.read_last) {
            link.session.recycle(buffer);
        }
    }
}

impl Drive for TcpCarrier {
    fn want(&mut self, now_ns: u64, peer: NodeId, wanted: bool) {
        let Some(place) = (if wanted { self.link_with(peer) } else { self.find(peer) }) else { return };
        let me = self.us.identity.node;
        let link = &mut self.links[place];
        link.wanted = wanted;
        link.plan_dial(now_ns, me);
        self.due_ns = self.due_ns.min(link.deadline_ns());
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
        let peer = peer_of(token);
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

impl Describe for TcpCarrier {
    fn link(&self, peer: NodeId) -> Option<LinkStatus> {
        self.find(peer).map(|place| self.links[place].status())
    }

    fn describe_acceptor(&self, acceptor: &mut AcceptorStatus) {
        self.event_log.counters().describe(acceptor);
    }

    fn log(&self) -> Vec<LoggedEvent> {
        let now_ns = clock::now_ns();
        let told = |entry: Entry| LoggedEvent {
            age_ns: now_ns.saturating_sub(entry.at_ns),
            times: entry.times,
            text: entry.text,
        };
        self.event_log.log().into_iter().map(told).collect()
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

//! One simulated node: a real engine, real sessions, and what an owner of both does between them.

use std::collections::{BTreeMap, VecDeque};

use musubi_mcapi::engine::Engine;
use musubi_mcapi::engine::frame::KINDS;
use musubi_transport::NodeId;
use musubi_transport::frame::Header;
use musubi_transport::links::{Links, NoBlock, Sent, SharedBytes};
use musubi_transport::session::{Identity, Session};
use musubi_transport::topology;

/// The link with one other node.
#[derive(Debug)]
pub struct Link {
    pub session: Session,
    pub connection: Option<usize>,
    pub wanted: bool,
    /// Not dialed again before.
    pub dial_after_ns: u64,
    pub failures: u32,
    /// The timer event that is under way for it.
    pub timer_ns: u64,
    marked: bool,
}

/// All links of a node: what its engine calls.
#[derive(Debug)]
pub struct Net {
    identity: Identity,
    network: topology::Network,
    nodes: usize,
    pub links: BTreeMap<usize, Link>,
    /// Links that have something to be done.
    marked: VecDeque<usize>,
}

impl Net {
    pub fn new(me: usize, incarnation: u32, network: &topology::Network, nodes: usize) -> Net {
        let identity = Identity { system: "simulation".into(), hash: 1, node: id(me), incarnation };
        Net { identity, network: network.clone(), nodes, links: BTreeMap::new(), marked: VecDeque::new() }
    }

    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    /// The link with a node, a new one if there is none.
    pub fn link(&mut self, peer: usize) -> &mut Link {
        self.links.entry(peer).or_insert_with(|| Link {
            session: Session::new(&self.identity, id(peer), &self.network, &KINDS),
            connection: None,
            wanted: false,
            dial_after_ns: 0,
            failures: 0,
            timer_ns: u64::MAX,
            marked: false,
        })
    }

    /// Something is to be done for a link.
    pub fn mark(&mut self, peer: usize) {
        let link = self.link(peer);
        if !core::mem::replace(&mut link.marked, true) {
            self.marked.push_back(peer);
        }
    }

    /// Whether there is one.
    pub fn has_marked(&self) -> bool {
        !self.marked.is_empty()
    }

    /// The next link for which something is to be done.
    pub fn next_marked(&mut self) -> Option<usize> {
        let peer = self.marked.pop_front()?;
        self.link(peer).marked = false;
        Some(peer)
    }
}

impl Links for Net {
    type Block = NoBlock;

    fn send(&mut self, peer: NodeId, header: &Header, payload: &[u8]) -> Sent {
        let Some(link) = self.links.get_mut(&peer.index()) else { return Sent::NoLink };
        let sent = link.session.enqueue(header, payload);
        self.mark(peer.index());
        sent
    }

    fn send_shared(&mut self, peer: NodeId, header: &Header, payload: &SharedBytes) -> Sent {
        let Some(link) = self.links.get_mut(&peer.index()) else { return Sent::NoLink };
        let sent = link.session.enqueue_shared(header, payload);
        self.mark(peer.index());
        sent
    }

    fn want(&mut self, peer: NodeId, wanted: bool) {
        self.link(peer.index()).wanted = wanted;
        self.mark(peer.index());
    }

    fn knows(&self, peer: NodeId) -> bool {
        peer.index() < self.nodes
    }
}

/// A node, alive.
#[derive(Debug)]
pub struct Node {
    pub engine: Engine<NoBlock>,
    pub net: Net,
    /// The engine's timer event that is under way.
    pub timer_ns: u64,
}

impl Node {
    pub fn new(me: usize, incarnation: u32, network: &topology::Network, nodes: usize) -> Node {
        let net = Net::new(me, incarnation, network, nodes);
        Node { engine: Engine::new(id(me), incarnation), net, timer_ns: u64::MAX }
    }
}

/// The name of the node at a place.
pub fn id(place: usize) -> NodeId {
    NodeId::from_index(place).expect("fewer nodes than names")
}

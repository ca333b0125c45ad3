//! Which node is where, and what holds for the links between nodes.
//!
//! What you may rely on: two nodes that were given one description agree on how they reach each other ([`Topology::way`]), as
//! nothing but the description decides it. A description without nodes stands for all nodes, on this machine.
//!
//! How it works: plain data, made from a description (`musubi-config`) or by [`Topology::single_machine`]. The hash of a
//! description goes into every handshake; nodes whose hashes differ refuse each other.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

use musubi_core::plan::{FilterRule, Regulation};

use crate::limits::TOOL_NODE_TCP;
use crate::{NodeId, Priority};

/// A system of nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Topology {
    /// Name of the system; systems of one name on one machine are one.
    pub system: String,
    /// Hash of the description; 0 for the built-in single machine.
    pub hash: u64,
    /// Nodes and their places. If empty, every node of the limits exists, on this machine, by shared memory.
    pub nodes: BTreeMap<NodeId, Place>,
    /// What holds for links over a network.
    pub network: Network,
}

/// Where a node is.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Place {
    /// Name for people; may be empty.
    pub name: String,
    /// On the machine of this name it can be reached by shared memory.
    pub shared_memory: Option<String>,
    /// `host:port` where it listens.
    pub tcp: Option<String>,
    /// Its certificate chain and key, PEM files; by default `<NAME or DOMAIN-NODE>.crt` and `.key` in the key directory.
    pub certificate: Option<String>,
    /// See `certificate`.
    pub key: Option<String>,
    /// What holds for frames of some classes, at most one rule a class; usually none.
    pub rules: Vec<ClassRule>,
    /// What the node takes of some classes, at most one a class; usually none. Only NICs of the VI Architecture keep to it.
    pub intakes: Vec<ClassIntake>,
}

/// What one node takes of the frames of one class, from all others together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClassIntake {
    /// Which.
    pub class: Priority,
    /// Messages and bytes.
    pub regulation: Regulation,
}

/// What holds at one node for the frames of one class.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClassRule {
    /// Which. Of [`Priority::MOST_URGENT`] only NICs of the VI Architecture have one, as others need its frames to go on.
    pub class: Priority,
    /// What the node may put onto each of its links.
    pub regulation: Regulation,
    /// How often frames that arrive wake its threads.
    pub filter: FilterRule,
}

/// What holds for links over a network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Network {
    /// Links to other machines may go without TLS.
    pub insecure: bool,
    /// Links within this machine (loopback) use TLS too.
    pub tls_on_loopback: bool,
    /// Directory of `ca.crt`, node certificates and keys.
    pub keys: Option<String>,
    /// A heartbeat is sent when nothing else was for this long, milliseconds.
    pub heartbeat_ms: u32,
    /// A connection on which nothing came for this long is cut, milliseconds.
    pub silence_ms: u32,
    /// A link that cannot be brought back within this time is given up, milliseconds.
    pub resume_ms: u32,
    /// Large frames are cut into pieces of this many bytes; an urgent frame waits for at most one.
    pub piece_bytes: u32,
    /// Bytes that a link keeps until they are acknowledged; more is refused until then.
    pub window_bytes: u32,
    /// Whether classes have priority over one another. Off only to measure what it does.
    pub priorities: bool,
}

impl Default for Network {
    fn default() -> Self {
        Network {
            insecure: false,
            tls_on_loopback: false,
            keys: None,
            heartbeat_ms: 250,
            silence_ms: 1000,
            resume_ms: 5000,
            piece_bytes: 16 * 1024,
            window_bytes: 4 * 1024 * 1024,
            priorities: true,
        }
    }
}

/// How two nodes reach each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way<'t> {
    /// Both are on one machine.
    SharedMemory,
    /// The other listens here; `None` if only it can begin.
    Tcp(Option<&'t str>),
}

impl<'t> Way<'t> {
    fn without_address(self) -> Way<'t> {
        match self {
            Way::SharedMemory => Way::SharedMemory,
            Way::Tcp(_) => Way::Tcp(None),
        }
    }
}

impl Topology {
    /// All nodes on this machine, by shared memory: what holds where there is no description.
    pub fn single_machine() -> Topology {
        Topology { system: String::from("default"), hash: 0, nodes: BTreeMap::new(), network: Network::default() }
    }

    /// Whether a node is of this system. Those kept for tools are of every system.
    pub fn has(&self, node: NodeId) -> bool {
        self.nodes.is_empty() || self.nodes.contains_key(&node) || node.is_tool()
    }

    /// The rules of a node.
    pub fn rules_of(&self, node: NodeId) -> &[ClassRule] {
        self.nodes.get(&node).map_or(&[], |place| &place.rules)
    }

    /// How `me` reaches `peer`; `None` if one is not of the system or there is no way.
    pub fn way(&self, me: NodeId, peer: NodeId) -> Option<Way<'_>> {
        if self.nodes.is_empty() || me == peer {
            return Some(Way::SharedMemory);
        }
        match (me.is_tool(), peer.is_tool()) {
            (false, false) => {}
            (true, false) => return self.way_of_tool(me, peer),
            // Seen from the node: it does not begin, so it needs no address.
            (false, true) => return self.way_of_tool(peer, me).map(Way::without_address),
            (true, true) => return None,
        }
        let (mine, theirs) = (self.nodes.get(&me)?, self.nodes.get(&peer)?);
        if mine.shared_memory.is_some() && mine.shared_memory == theirs.shared_memory {
            return Some(Way::SharedMemory);
        }
        if mine.tcp.is_none() && theirs.tcp.is_none() {
            return None;
        }
        Some(Way::Tcp(theirs.tcp.as_deref()))
    }

    /// A tool has no place of its own: its number says how it reaches others, which decides nothing about where it runs.
    fn way_of_tool(&self, tool: NodeId, peer: NodeId) -> Option<Way<'_>> {
        let place = self.nodes.get(&peer)?;
        if tool.node() >= TOOL_NODE_TCP {
            return place.tcp.as_deref().map(|address| Way::Tcp(Some(address)));
        }
        place.shared_memory.as_ref().map(|_| Way::SharedMemory)
    }

    /// All nodes that the description names.
    pub fn named(&self) -> Vec<NodeId> {
        self.nodes.keys().copied().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tools_reach_every_place_by_one_number_or_the_other() {
        let id = |domain, node| NodeId::new(domain, node).unwrap();
        let place = |shared: Option<&str>, tcp: Option<&str>| Place {
            shared_memory: shared.map(String::from),
            tcp: tcp.map(String::from),
            ..Place::default()
        };
        let (near, far, both) = (id(0, 1), id(1, 1), id(2, 1));
        let mut topology = Topology::single_machine();
        topology.nodes.insert(near, place(Some("a"), None));
        topology.nodes.insert(far, place(None, Some("h:1")));
        topology.nodes.insert(both, place(Some("b"), Some("h:2")));
        let (memory, network) = (id(31, 1008), id(31, 1016));
        assert!(topology.has(memory) && topology.has(network) && !topology.has(id(31, 1007)));
        assert_eq!(
            [near, far, both].map(|peer| topology.way(memory, peer)),
            [Some(Way::SharedMemory), None, Some(Way::SharedMemory)]
        );
        assert_eq!(
            [near, far, both].map(|peer| topology.way(network, peer)),
            [None, Some(Way::Tcp(Some("h:1"))), Some(Way::Tcp(Some("h:2")))]
        );
        assert_eq!(topology.way(both, memory), Some(Way::SharedMemory));
        assert_eq!(topology.way(both, network), Some(Way::Tcp(None)));
        assert_eq!(topology.way(memory, network), None);
    }

    #[test]
    fn two_nodes_reach_each_other_as_their_places_say() {
        let id = |node| NodeId::new(0, node).unwrap();
        let place = |shared: Option<&str>, tcp: Option<&str>| Place {
            shared_memory: shared.map(String::from),
            tcp: tcp.map(String::from),
            ..Place::default()
        };
        let mut topology = Topology::single_machine();
        assert_eq!(topology.way(id(1), id(2)), Some(Way::SharedMemory));
        assert!(topology.has(id(99)) && topology.named().is_empty() && topology.rules_of(id(1)).is_empty());
        let places =
            [(None, None), (Some("a"), Some("h:1")), (Some("a"), None), (Some("b"), Some("h:3")), (None, None)];
        for (node, (shared, tcp)) in (0..).zip(places) {
            topology.nodes.insert(id(node), place(shared, tcp));
        }
        assert_eq!(topology.named(), [0, 1, 2, 3, 4].map(id));
        assert_eq!(topology.way(id(1), id(2)), Some(Way::SharedMemory));
        assert_eq!(topology.way(id(1), id(3)), Some(Way::Tcp(Some("h:3"))));
        assert_eq!(topology.way(id(3), id(2)), Some(Way::Tcp(None)), "only the other can begin");
        assert_eq!(topology.way(id(2), id(3)), Some(Way::Tcp(Some("h:3"))));
        assert_eq!(topology.way(id(0), id(4)), None, "nobody could begin, and none is on a machine");
        assert_eq!(topology.way(id(0), id(2)), None);
        assert_eq!(topology.way(id(0), id(0)), Some(Way::SharedMemory), "itself");
        assert_eq!((topology.way(id(1), id(5)), topology.has(id(5))), (None, false));
        let rule = ClassRule {
            class: Priority::new(2).unwrap(),
            regulation: Regulation { messages_per_s: 1, messages_burst: 1, bytes_per_s: 0, bytes_burst: 0 },
            filter: FilterRule { every: 1, level: 0, interval_ns_min: 0, latest_ns: 0 },
        };
        topology.nodes.get_mut(&id(1)).unwrap().rules.push(rule.clone());
        assert_eq!((topology.rules_of(id(1)), topology.rules_of(id(2))), (&[rule][..], &[][..]));
    }
}

//! What is said about a node's links, and about those whom it did not let in.
//!
//! What you may rely on: the names of fields are those of the command's JSON. They are written here, apart from those of
//! [`musubi_transport::status`], so that a name that changes there changes nothing for programs that read the JSON.

use std::collections::BTreeMap;

use musubi_transport::NodeId;
use musubi_transport::status::{AcceptorStatus, LinkStatus, LoggedEvent};
use serde::Serialize;

const NS_PER_S: f64 = 1e9;

/// The link of one node with another.
#[derive(Debug, Serialize)]
pub struct Link {
    pub node: String,
    pub with: String,
    /// `shm`, `tcp` or `tls`.
    pub way: &'static str,
    pub state: &'static str,
    pub rtt_ns: Option<u64>,
    pub frames_sent: u64,
    pub frames_received: u64,
    pub bytes_sent: u64,
    pub bytes_received: u64,
    pub connections: u64,
    pub resumed: u64,
    pub cuts: u64,
    pub repeated: u64,
    pub violations: u64,
    pub silences: u64,
    pub refused: u64,
    /// Frames that waited until the rule of their class let them go.
    pub waited: Option<u64>,
}

/// What became of a node's connections.
#[derive(Debug, Serialize)]
pub struct Door {
    pub node: String,
    pub accepted: u64,
    pub admitted: u64,
    pub dialed: u64,
    pub dials_failed: u64,
    pub hung_up: u64,
    pub throttled: u64,
    /// By the words of [`REASONS`].
    pub refused: BTreeMap<&'static str, u64>,
}

/// Something that happened to a node's connections.
#[derive(Debug, Serialize)]
pub struct Event {
    pub node: String,
    pub age_s: f64,
    pub times: u64,
    pub text: String,
}

/// Why a connection is refused: for programs, for people, and where the count is.
type Reason = (&'static str, &'static str, fn(&AcceptorStatus) -> u64);

/// The gravest first.
const REASONS: [Reason; 23] = [
    ("wrong_certificate", "has the certificate of another node", |door| door.identity),
    ("other_authority", "TLS: has a certificate of another authority", |door| door.other_authority),
    ("expired", "TLS: has a certificate that is not valid now", |door| door.expired),
    ("no_certificate", "TLS: has no certificate", |door| door.no_certificate),
    ("disbelieved", "TLS: does not believe this node's certificate", |door| door.disbelieved),
    ("other_tls", "TLS: failed in another way", |door| door.other_tls),
    ("garbage", "does not speak the protocol", |door| door.garbage),
    ("time_out", "did not say in time who it is", |door| door.time_out),
    ("busy", "too many connections at a time", |door| door.busy),
    ("version", "speaks another version of the protocol", |door| door.version),
    ("system", "is of another system", |door| door.system),
    ("plan", "has another description of the system", |door| door.plan),
    ("recipient", "means another node", |door| door.recipient),
    ("unknown_node", "is no node that has a way to this one", |door| door.unknown_node),
    ("crossed", "both dialed, the other connection was kept", |door| door.crossed),
    ("stale", "a newer connection came first", |door| door.stale),
    ("session_unknown", "the session had been given up", |door| door.session_unknown),
    ("leaving", "the node was leaving", |door| door.leaving),
    ("shm_refused", "shared memory: may not be linked, or not then", |door| door.memory_refused),
    ("shm_garbage", "shared memory: sent what no node sends", |door| door.memory_garbage),
    ("shm_silent", "shared memory: was silent, or one too many", |door| door.memory_silent),
    ("shm_fault", "shared memory: broke the protocol", |door| door.memory_faults),
    ("shm_stranger", "shared memory: is not reached this way", |door| door.memory_strangers),
];

/// Those of a node, tools left out.
pub fn of(id: NodeId, links: &[LinkStatus]) -> impl Iterator<Item = Link> {
    links.iter().filter(|link| !link.node.is_tool()).map(move |link| Link {
        node: id.to_string(),
        with: link.node.to_string(),
        way: ["unknown", "shm", "tcp", "tls"].get(link.kind as usize).copied().unwrap_or("unknown"),
        state: ["none", "stands", "sought", "broken"].get(link.state as usize).copied().unwrap_or("unknown"),
        rtt_ns: Some(link.rtt_ns).filter(|time_ns| *time_ns > 0),
        frames_sent: link.frames_sent,
        frames_received: link.frames_received,
        bytes_sent: link.bytes_sent,
        bytes_received: link.bytes_received,
        connections: link.connections,
        resumed: link.resumed,
        cuts: link.cuts,
        repeated: link.repeated,
        violations: link.violations,
        silences: link.silences,
        refused: link.refused,
        waited: link.waited,
    })
}

impl Door {
    pub fn new(id: NodeId, door: AcceptorStatus) -> Door {
        Door {
            node: id.to_string(),
            accepted: door.accepted,
            admitted: door.admitted,
            dialed: door.dialed,
            dials_failed: door.dials_failed,
            hung_up: door.hung_up,
            throttled: door.throttled,
            refused: REASONS.iter().map(|(word, _, count)| (*word, count(&door))).collect(),
        }
    }

    /// What a person reads of each reason, and how often it applied.
    pub fn refusals(&self) -> impl Iterator<Item = (&'static str, u64)> {
        REASONS.iter().map(|(word, text, _)| (*text, self.refused.get(word).copied().unwrap_or(0)))
    }
}

impl Event {
    pub fn new(id: NodeId, entry: &LoggedEvent) -> Event {
        let age_s = entry.age_ns as f64 / NS_PER_S;
        Event { node: id.to_string(), age_s, times: entry.times, text: entry.text.clone() }
    }
}

//! Connections between nodes: bytes in order within one, late or never, and no order between two.

use std::collections::BTreeMap;

use musubi_transport::session::Greeting;

use super::random::Random;

/// Bytes that may be under way in one direction: what a socket holds.
pub const SOCKET_BYTES: usize = 64 * 1024;

/// One end of a connection.
#[derive(Debug)]
pub struct End {
    pub node: usize,
    pub life: u32,
    pub open: bool,
    /// Bytes that this end has written and that have not arrived.
    pub under_way: usize,
    /// When what was written last arrives: nothing later may arrive earlier.
    arrives_ns: u64,
}

/// A connection; end 0 dialed.
#[derive(Debug)]
pub struct Connection {
    pub ends: [End; 2],
    /// The dialed end has not understood who it is yet.
    pub greeting: Option<Greeting>,
    /// What this connection adds to every way: some are slow from the beginning, so that later ones overtake them.
    lag_ns: u64,
}

/// All connections there ever were, and what is wrong with the ways between nodes.
#[derive(Debug, Default)]
pub struct Network {
    pub connections: Vec<Connection>,
    /// Pairs between which nothing arrives until then.
    blocked: BTreeMap<(usize, usize), u64>,
}

const LATENCY_NS: u64 = 50_000;
const LAG_NS: u64 = 400_000_000;

impl Network {
    /// A connection from `dialer` to whatever runs as `dialed` when its first bytes arrive there.
    pub fn dial(&mut self, dialer: (usize, u32), dialed: (usize, u32), random: &mut Random) -> usize {
        let end = |(node, life)| End { node, life, open: true, under_way: 0, arrives_ns: 0 };
        let lag_ns = if random.chance(1, 10) { random.below(LAG_NS) } else { 0 };
        let ends = [end(dialer), end(dialed)];
        self.connections.push(Connection { ends, greeting: Some(Greeting::new()), lag_ns });
        self.connections.len() - 1
    }

    /// When something that end `side` writes now arrives at the other.
    pub fn arrival_ns(&mut self, now_ns: u64, connection: usize, side: usize, random: &mut Random) -> u64 {
        let connection = &mut self.connections[connection];
        let pair = pair(connection.ends[0].node, connection.ends[1].node);
        let leaves_ns = self.blocked.get(&pair).copied().unwrap_or(0).max(now_ns);
        let latency_ns = LATENCY_NS + random.below(LATENCY_NS) + connection.lag_ns;
        if connection.greeting.is_none() {
            // Once it works, it works at the speed of the others.
            connection.lag_ns = 0;
        }
        let end = &mut connection.ends[side];
        end.arrives_ns = end.arrives_ns.max(leaves_ns + latency_ns);
        end.arrives_ns
    }

    /// Nothing written from now on arrives between two nodes before `until_ns`.
    pub fn block(&mut self, one: usize, other: usize, until_ns: u64) {
        self.blocked.insert(pair(one, other), until_ns);
    }

    /// All ways are free again.
    pub fn heal(&mut self) {
        self.blocked.clear();
    }
}

fn pair(one: usize, other: usize) -> (usize, usize) {
    (one.min(other), one.max(other))
}

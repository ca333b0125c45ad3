//! All nodes, the ways between them, and time: events from a heap, one after the other.
//!
//! What you may rely on: a run is a function of its plan. Nothing here looks at a clock, a thread or an address.
//!
//! How it works: an event touches a node or two; then those nodes do what an owner of an engine does until nothing is
//! left: give it what the sessions report, let it tick, write out what the sessions have, set timers. After each event
//! the node's counters and memory are checked, and what programs receive or are told goes to the [`Oracle`].

use std::collections::BTreeMap;

use musubi_mcapi::EndpointId;
use musubi_transport::links::{NoBlock, Report};
use musubi_transport::session::{Greeting, Hello, State};
use musubi_transport::topology;

use super::channels::Job;
use super::network::{Network, SOCKET_BYTES};
use super::node::{Node, id};
use super::oracle::{Oracle, Verdict};
use super::program::Program;
use super::random::{Digest, Random};
use super::{Mistake, Plan};

pub const MILLISECOND_NS: u64 = 1_000_000;
/// A node that nobody answered for is tried again after this long at first, and at most.
const RETRY_NS: u64 = 5 * MILLISECOND_NS;
const RETRY_NS_MAX: u64 = 80 * MILLISECOND_NS;
pub const FAULT_NS: u64 = 15 * MILLISECOND_NS;
/// What one write takes from a session.
const WRITE_BYTES: usize = 8 * 1024;

#[derive(Debug)]
pub enum Event {
    /// Bytes arrive at an end of a connection.
    Arrive { connection: usize, side: usize, bytes: Vec<u8> },
    /// An end of a connection learns that the other has closed.
    Close { connection: usize, side: usize },
    /// Something is due for a link.
    Link { node: usize, life: u32, peer: usize },
    /// Something is due for an engine.
    Engine { node: usize, life: u32 },
    /// A program does something.
    Act { node: usize, life: u32 },
    /// A channel's job goes on.
    Turn { job: usize },
    /// Something breaks.
    Fault,
    /// A dead node comes back.
    Return { node: usize },
}

pub struct World {
    pub plan: Plan,
    pub random: Random,
    pub now_ns: u64,
    pub events: u64,
    pub digest: Digest,
    queue: BTreeMap<(u64, u64), Event>,
    queued: u64,
    pub nodes: Vec<Option<Node>>,
    pub lives: Vec<u32>,
    pub programs: Vec<Program>,
    pub network: Network,
    pub settings: topology::Network,
    pub oracle: Oracle,
    /// Endpoints that exist, and the event at which they came to be.
    pub endpoints: BTreeMap<EndpointId, u64>,
    /// Nothing new is begun any more.
    pub closing: bool,
    mistakes: u64,
    held: Option<Report<NoBlock>>,
    pub deaths: u64,
    pub cuts: u64,
    pub jobs: Vec<Option<Job>>,
    /// Items of channels that were received, channels that ended in peace and otherwise.
    pub items: u64,
    pub channels_done: u64,
    pub channels_broken: u64,
}

impl World {
    pub fn new(plan: Plan) -> World {
        let settings = topology::Network {
            heartbeat_ms: 100,
            silence_ms: 300,
            resume_ms: 800,
            piece_bytes: 1024,
            window_bytes: 64 * 1024,
            ..topology::Network::default()
        };
        let mut world = World {
            random: Random::new(plan.seed),
            now_ns: 0,
            events: 0,
            digest: Digest::default(),
            queue: BTreeMap::new(),
            queued: 0,
            nodes: (0..plan.nodes).map(|_| None).collect(),
            lives: vec![0; plan.nodes],
            programs: (0..plan.nodes).map(|_| Program::default()).collect(),
            network: Network::default(),
            settings,
            oracle: Oracle::default(),
            endpoints: BTreeMap::new(),
            closing: false,
            mistakes: 0,
            held: None,
            deaths: 0,
            cuts: 0,
            jobs: (0..plan.nodes.div_ceil(2)).map(|_| None).collect(),
            items: 0,
            channels_done: 0,
            channels_broken: 0,
            plan,
        };
        for node in 0..world.plan.nodes {
            world.at(0, Event::Return { node });
        }
        for job in 0..world.jobs.len() {
            world.at(1, Event::Turn { job });
        }
        world.at(FAULT_NS, Event::Fault);
        world
    }

    pub fn at(&mut self, time_ns: u64, event: Event) {
        self.queued += 1;
        self.queue.insert((time_ns, self.queued), event);
    }

    /// Takes the next event. Always there is one.
    pub fn step(&mut self) -> Verdict {
        let Some(((time_ns, _), event)) = self.queue.pop_first() else { return Err("nothing is due any more".into()) };
        self.now_ns = time_ns;
        self.events += 1;
        self.digest.add(time_ns);
        match event {
            Event::Arrive { connection, side, bytes } => self.arrive(connection, side, &bytes),
            Event::Close { connection, side } => self.closed(connection, side),
            Event::Link { node, life, peer } => self.link_due(node, life, peer),
            Event::Engine { node, life } => {
                if let Some(alive) = self.alive(node, life) {
                    alive.timer_ns = u64::MAX;
                }
                self.drive(node)
            }
            Event::Act { node, life } => self.act(node, life),
            Event::Turn { job } => self.turn(job),
            Event::Fault => self.fault(),
            Event::Return { node } => self.revive(node),
        }
    }

    /// The node in this run of it.
    pub fn alive(&mut self, node: usize, life: u32) -> Option<&mut Node> {
        if self.lives[node] == life { self.nodes[node].as_mut() } else { None }
    }

    /// Lets a node do everything that can be done now.
    pub fn drive(&mut self, node: usize) -> Verdict {
        loop {
            while let Some(peer) = self.nodes[node].as_mut().and_then(|node| node.net.next_marked()) {
                self.serve(node, peer);
            }
            let Some(Node { engine, net, timer_ns }) = &mut self.nodes[node] else { return Ok(()) };
            let due_ns = engine.tick(self.now_ns, net);
            let earlier = due_ns < *timer_ns;
            if earlier {
                *timer_ns = due_ns;
                self.at(due_ns.max(self.now_ns + 1), Event::Engine { node, life: self.lives[node] });
            }
            let Some(Node { net, .. }) = &mut self.nodes[node] else { return Ok(()) };
            if !net.has_marked() {
                return self.check(node);
            }
        }
    }

    /// No node has seen another break the rules, and memory is within its limits.
    fn check(&mut self, node: usize) -> Verdict {
        let Some(alive) = &self.nodes[node] else { return Ok(()) };
        if self.programs[node].leaving {
            // Its engine knows nobody any more, but what others say to it is not wrong.
            return Ok(());
        }
        let counters = alive.engine.counters();
        let broken =
            counters.overruns + counters.not_theirs + counters.malformed + counters.unlinked + counters.contradictory;
        if broken + counters.crowded_out > 0 {
            return Err(format!("node {node} holds that rules were broken: {counters:?}"));
        }
        let bound = self.settings.window_bytes as usize + musubi_transport::session::CONTROL_BYTES + 5 * (1 << 20);
        for (peer, link) in &alive.net.links {
            if link.session.unacknowledged_bytes() > bound {
                return Err(format!("link {node} to {peer} keeps {} bytes", link.session.unacknowledged_bytes()));
            }
            if link.session.counts().violations > 0 {
                return Err(format!("node {node} holds that {peer} broke the protocol of links"));
            }
        }
        Ok(())
    }

    /// Does what there is to be done for one link of a node.
    fn serve(&mut self, node: usize, peer: usize) {
        while let Some(report) = self.link(node, peer).and_then(|link| link.session.next_report()) {
            self.report(node, report);
        }
        let leaving = self.programs[node].leaving;
        let now_ns = self.now_ns;
        let Some(link) = self.link(node, peer) else { return };
        let needed = (link.wanted || link.session.is_up()) && !leaving;
        if link.session.state() == State::Disconnected && needed && link.dial_after_ns <= now_ns {
            link.session.dial(now_ns);
            let dialer = (node, self.lives[node]);
            let connection = self.network.dial(dialer, (peer, 0), &mut self.random);
            self.replace_connection(node, peer, connection);
        }
        self.write(node, peer);
        self.set_timer(node, peer, needed);
    }

    fn report(&mut self, node: usize, report: Report<NoBlock>) {
        self.digest_report(node, &report);
        for report in self.mistaken(report) {
            if let Some(Node { engine, net, .. }) = &mut self.nodes[node] {
                engine.report(self.now_ns, report, net);
            }
        }
    }

    fn digest_report(&mut self, node: usize, report: &Report<NoBlock>) {
        let what = match report {
            Report::Up { peer, incarnation } => peer.index() as u64 | u64::from(*incarnation) << 32,
            Report::Down { peer, .. } => 1 << 20 | peer.index() as u64,
            Report::Frame { peer, header, .. } => {
                self.digest.add(u64::from(header.kind) << 32 | u64::from(header.length));
                2 << 20 | peer.index() as u64
            }
            Report::Acknowledged { number, .. } => 3 << 60 | number,
            Report::Room { peer } => 4 << 20 | peer.index() as u64,
            Report::Absent { peer } => 5 << 20 | peer.index() as u64,
        };
        self.digest.add((node as u64) << 40 ^ what);
    }

    /// What becomes of a report where a mistake has been planted; everywhere else it stays.
    fn mistaken(&mut self, report: Report<NoBlock>) -> Vec<Report<NoBlock>> {
        let Some((mistake, kind, first)) = self.plan.mistake else { return vec![report] };
        if !matches!(&report, Report::Frame { header, .. } if header.kind == kind as u8) {
            return vec![report];
        }
        self.mistakes += 1;
        if self.mistakes < first || self.mistakes > first + 200 {
            return self.held.take().into_iter().chain([report]).collect();
        }
        match mistake {
            Mistake::Drop if self.mistakes.is_multiple_of(4) => vec![],
            Mistake::Double if self.mistakes.is_multiple_of(4) => vec![mistake.copy(&report), report],
            Mistake::Swap => match self.held.take() {
                Some(held) if same_way(&held, &report) => vec![report, held],
                Some(held) => {
                    self.held = Some(report);
                    vec![held]
                }
                None => {
                    self.held = Some(report);
                    vec![]
                }
            },
            _ => vec![report],
        }
    }

    fn link(&mut self, node: usize, peer: usize) -> Option<&mut super::node::Link> {
        self.nodes[node].as_mut().map(|node| node.net.link(peer))
    }

    /// Writes out what a session has, as far as the connection takes it.
    fn write(&mut self, node: usize, peer: usize) {
        loop {
            let now_ns = self.now_ns;
            let Some(link) = self.nodes[node].as_mut().map(|node| node.net.link(peer)) else { return };
            let Some(connection) = link.connection else { return };
            let side = self.side(node, connection);
            let Some(link) = self.link(node, peer) else { return };
            link.session.flush();
            let ready = link.session.fill(now_ns, WRITE_BYTES);
            let ended = ready == 0 && link.session.state() == State::Ended;
            if ended {
                link.connection = None;
                link.session.disconnected(now_ns);
                return self.close(connection, side);
            }
            if ready == 0 || self.network.connections[connection].ends[side].under_way >= SOCKET_BYTES {
                return;
            }
            let Some(link) = self.link(node, peer) else { return };
            let bytes: Vec<u8> = link.session.slices().flatten().copied().collect();
            link.session.consumed(now_ns, bytes.len());
            self.put(connection, side, bytes);
        }
    }

    /// Bytes go from an end of a connection to the other, at times in two parts.
    fn put(&mut self, connection: usize, side: usize, bytes: Vec<u8>) {
        self.network.connections[connection].ends[side].under_way += bytes.len();
        let cut = if self.random.chance(1, 8) { self.random.place(bytes.len()) } else { 0 };
        let (first, rest) = bytes.split_at(cut);
        for part in [first, rest] {
            if !part.is_empty() {
                let arrival_ns = self.network.arrival_ns(self.now_ns, connection, side, &mut self.random);
                self.at(arrival_ns, Event::Arrive { connection, side: 1 - side, bytes: part.to_vec() });
            }
        }
    }

    pub fn side(&self, node: usize, connection: usize) -> usize {
        usize::from(self.network.connections[connection].ends[0].node != node)
    }

    fn replace_connection(&mut self, node: usize, peer: usize, connection: usize) {
        let former = self.link(node, peer).and_then(|link| link.connection.replace(connection));
        if let Some(former) = former {
            let side = self.side(node, former);
            self.close(former, side);
        }
    }

    /// An end of a connection is closed by its node; the other learns it after all that was written.
    pub fn close(&mut self, connection: usize, side: usize) {
        if core::mem::take(&mut self.network.connections[connection].ends[side].open) {
            let arrival_ns = self.network.arrival_ns(self.now_ns, connection, side, &mut self.random);
            self.at(arrival_ns, Event::Close { connection, side: 1 - side });
        }
    }

    fn set_timer(&mut self, node: usize, peer: usize, needed: bool) {
        let (now_ns, life) = (self.now_ns, self.lives[node]);
        let Some(link) = self.link(node, peer) else { return };
        let mut due_ns = link.session.deadline_ns();
        if needed && link.session.state() == State::Disconnected {
            due_ns = due_ns.min(link.dial_after_ns);
        }
        if due_ns < link.timer_ns {
            link.timer_ns = due_ns;
            self.at(due_ns.max(now_ns + 1), Event::Link { node, life, peer });
        }
    }

    fn link_due(&mut self, node: usize, life: u32, peer: usize) -> Verdict {
        let now_ns = self.now_ns;
        let Some(alive) = self.alive(node, life) else { return Ok(()) };
        let link = alive.net.link(peer);
        link.timer_ns = u64::MAX;
        if link.session.tick(now_ns).is_err() {
            self.lost(node, peer);
        }
        if let Some(alive) = self.alive(node, life) {
            alive.net.mark(peer);
        }
        self.drive(node)
    }

    /// A link has let go of its connection, or lost it.
    pub fn lost(&mut self, node: usize, peer: usize) {
        let now_ns = self.now_ns;
        let wait = self.random.below(RETRY_NS);
        let Some(link) = self.link(node, peer) else { return };
        if link.session.state() != State::Disconnected {
            link.session.disconnected(now_ns);
        }
        link.failures += 1;
        link.dial_after_ns = now_ns + wait + (RETRY_NS << link.failures.min(8)).min(RETRY_NS_MAX);
        if let Some(connection) = link.connection.take() {
            let side = self.side(node, connection);
            self.close(connection, side);
        }
    }

    fn arrive(&mut self, connection: usize, side: usize, bytes: &[u8]) -> Verdict {
        let writer = &mut self.network.connections[connection].ends[1 - side];
        writer.under_way -= bytes.len();
        let (writer, writer_life) = (writer.node, writer.life);
        let node = self.network.connections[connection].ends[side].node;
        if let Some(alive) = self.alive(writer, writer_life) {
            alive.net.mark(node);
        }
        let here = &mut self.network.connections[connection].ends[side];
        if side == 1 && here.life == 0 && self.nodes[node].is_some() {
            here.life = self.lives[node];
        }
        if here.life != self.lives[node] || self.nodes[node].is_none() {
            // Nobody is there: the writer learns it.
            self.close(connection, side);
        } else if here.open {
            self.digest.add((connection as u64) << 32 | bytes.len() as u64);
            match self.network.connections[connection].greeting.take() {
                Some(greeting) if side == 1 => self.greet(connection, node, greeting, bytes),
                greeting => {
                    self.network.connections[connection].greeting = greeting;
                    self.input(connection, node, writer, bytes);
                }
            }
        }
        self.drive(node)?;
        self.drive(writer)
    }

    fn input(&mut self, connection: usize, node: usize, peer: usize, bytes: &[u8]) {
        let now_ns = self.now_ns;
        let Some(link) = self.link(node, peer).filter(|link| link.connection == Some(connection)) else { return };
        let result = link.session.input(now_ns, bytes);
        if link.session.state() == State::Live {
            link.failures = 0;
        }
        if let Some(alive) = self.nodes[node].as_mut() {
            alive.net.mark(peer);
        }
        if result.is_err() {
            self.lost(node, peer);
        }
    }

    /// First bytes of a connection that somebody dialed.
    fn greet(&mut self, connection: usize, node: usize, mut greeting: Greeting, bytes: &[u8]) {
        let Ok(hello) = greeting.input(bytes) else { return self.close(connection, 1) };
        let Some(hello) = hello else {
            self.network.connections[connection].greeting = Some(greeting);
            return;
        };
        let peer = hello.identity.node.index();
        let now_ns = self.now_ns;
        let Some(Node { net, .. }) = self.nodes[node].as_mut() else { return };
        let refusal = net.link(peer).session.accept(now_ns, &hello).err();
        net.mark(peer);
        match refusal {
            None => self.replace_connection(node, peer, connection),
            Some(reason) => {
                let refusal = Hello::refusal(net.identity(), id(peer), reason).encode();
                self.digest.add(reason as u64);
                self.put(connection, 1, refusal.to_vec());
                self.close(connection, 1);
            }
        }
    }

    /// An end learns that the other has closed.
    fn closed(&mut self, connection: usize, side: usize) -> Verdict {
        let [_, dialed] = &self.network.connections[connection].ends;
        let nobody = dialed.life == 0;
        let here = &self.network.connections[connection].ends[side];
        let there = self.network.connections[connection].ends[1 - side].node;
        let (node, life, open) = (here.node, here.life, here.open);
        if !open || self.alive(node, life).is_none() {
            return Ok(());
        }
        self.close(connection, side);
        let Some(link) = self.link(node, there).filter(|link| link.connection == Some(connection)) else {
            return Ok(());
        };
        let unanswered = link.session.state() == State::Dialing && nobody;
        self.lost(node, there);
        if let Some(Node { engine, net, .. }) = self.nodes[node].as_mut() {
            net.mark(there);
            if unanswered {
                engine.report(self.now_ns, Report::Absent { peer: id(there) }, net);
            }
        }
        self.drive(node)
    }

    /// From now on nothing breaks, and nothing new begins.
    pub fn wind_down(&mut self) {
        self.closing = true;
        self.network.heal();
    }
}

/// Both are frames of one class between the same nodes.
fn same_way(one: &Report<NoBlock>, other: &Report<NoBlock>) -> bool {
    let way = |report: &Report<NoBlock>| match report {
        Report::Frame { peer, header, .. } => Some((*peer, header.kind, header.class, header.from, header.to)),
        _ => None,
    };
    way(one) == way(other)
}

//! What the simulated programs do: at random, and they keep account of it.

use musubi_mcapi::engine::{Message, Outcome, RequestId, Sending};
use musubi_mcapi::{EndpointId, Error};
use musubi_transport::links::{NoBlock, Payload};

use super::node::Node;
use super::oracle::{Stream, Told, Verdict};
use super::world::{Event, World};

/// A program acts so often, on average.
const ACT_NS: u64 = 6_000_000;
/// Endpoints of others that a program remembers.
const KNOWN_MAX: usize = 24;
const PENDING_MAX: usize = 32;
/// Nodes that a program has to do with.
const NEIGHBOURS: usize = 4;

/// What a request is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Intent {
    Get,
    Send(u64),
    Receive(EndpointId),
}

/// A program of one node.
#[derive(Debug, Default)]
pub struct Program {
    pub leaving: bool,
    own: Vec<EndpointId>,
    known: Vec<EndpointId>,
    pending: Vec<(RequestId, Intent)>,
}

impl Program {
    /// The program of a node that leaves.
    pub fn leaving() -> Program {
        Program { leaving: true, ..Program::default() }
    }

    /// Nothing that will complete by itself is pending.
    pub fn is_idle(&self) -> bool {
        !self.pending.iter().any(|(_, intent)| matches!(intent, Intent::Send(_)))
    }
}

impl World {
    fn endpoints_of_a_node(&self) -> usize {
        (self.plan.endpoints / self.plan.nodes).max(1)
    }

    /// A node has begun: its endpoints are created.
    pub fn begin(&mut self, node: usize) -> Verdict {
        for port in 1..=self.endpoints_of_a_node() {
            self.create(node, Some(port as u32))?;
        }
        Ok(())
    }

    fn create(&mut self, node: usize, port: Option<u32>) -> Verdict {
        let Some(Node { engine, net, .. }) = &mut self.nodes[node] else { return Ok(()) };
        let endpoint = engine.create_endpoint(port, net).map_err(|error| format!("create: {error}"))?;
        self.endpoints.insert(endpoint, self.events);
        self.programs[node].own.push(endpoint);
        Ok(())
    }

    /// Whoever still waits that something is sent, and for whom, in words.
    pub fn stuck(&self) -> String {
        let mut text = String::new();
        for (node, program) in self.programs.iter().enumerate() {
            let sends = program.pending.iter().filter_map(|(request, intent)| match intent {
                Intent::Send(number) => Some((request, *number)),
                _ => None,
            });
            for (request, number) in sends {
                let to = self.oracle.destination(number);
                let there = to.is_some_and(|to| self.endpoints.contains_key(&to));
                let link = to.zip(self.nodes[node].as_ref()).and_then(|(to, node)| {
                    let session = &node.net.links.get(&to.node().index())?.session;
                    Some((session.state(), session.is_up(), session.unacknowledged_bytes(), session.counts()))
                });
                text += &format!("\n  node {node} {request:?} {number} to {to:?} (there: {there}), link {link:?}");
            }
        }
        text
    }

    /// A program's turn.
    pub fn act(&mut self, node: usize, life: u32) -> Verdict {
        if self.alive(node, life).is_none() || self.programs[node].leaving {
            return Ok(());
        }
        let wait = 1 + self.random.below(2 * ACT_NS);
        self.at(self.now_ns + wait, Event::Act { node, life });
        self.poll(node)?;
        self.receive(node)?;
        if !self.closing {
            match self.random.below(100) {
                0..45 => self.send(node)?,
                45..65 => self.send_later(node)?,
                65..80 => self.get(node)?,
                80..88 => self.receive_later(node)?,
                88..94 => self.cancel(node)?,
                94..95 => self.recreate(node)?,
                _ => {}
            }
        }
        self.drive(node)
    }

    /// Takes what has completed.
    fn poll(&mut self, node: usize) -> Verdict {
        let mut at = 0;
        while let Some((request, intent)) = self.programs[node].pending.get(at).copied() {
            let Some(Node { engine, .. }) = &mut self.nodes[node] else { return Ok(()) };
            match engine.take_outcome(request).map_err(|error| format!("{intent:?} of node {node}: {error}"))? {
                None => at += 1,
                Some(outcome) => {
                    self.programs[node].pending.remove(at);
                    self.completed(node, intent, outcome)?;
                }
            }
        }
        Ok(())
    }

    fn completed(&mut self, node: usize, intent: Intent, outcome: Result<Outcome<NoBlock>, Error>) -> Verdict {
        match (intent, outcome) {
            (Intent::Get, Ok(Outcome::Endpoint(endpoint))) => {
                let program = &mut self.programs[node];
                if program.known.len() < KNOWN_MAX {
                    program.known.push(endpoint);
                } else {
                    let place = self.random.place(KNOWN_MAX);
                    program.known[place] = endpoint;
                }
                Ok(())
            }
            (Intent::Send(number), Ok(Outcome::Sent(_))) => self.told(number, Told::Delivered),
            (Intent::Send(number), Err(_)) => self.told(number, Told::Lost),
            (Intent::Receive(at), Ok(Outcome::Message(message))) => self.received(at, &message),
            (Intent::Get | Intent::Receive(_), Err(_)) => Ok(()),
            (intent, outcome) => Err(format!("{intent:?} gave {outcome:?}")),
        }
    }

    fn told(&mut self, number: u64, told: Told) -> Verdict {
        self.digest.add(number << 1 | u64::from(told == Told::Delivered));
        self.oracle.told(number, told)
    }

    fn received(&mut self, at: EndpointId, message: &Message<NoBlock>) -> Verdict {
        let bytes = match &message.payload {
            Payload::Short(short) => short.bytes(),
            Payload::Owned(bytes) => bytes,
            Payload::Lent(block) => match *block {},
        };
        let number = bytes.first_chunk::<8>().map(|number| u64::from_le_bytes(*number));
        let number = number.ok_or_else(|| format!("a message of {} bytes from {}", bytes.len(), message.from))?;
        if bytes != payload(number, bytes.len()) {
            return Err(format!("{number} has other bytes than were sent"));
        }
        self.digest.add(number);
        self.oracle.received(number, at)
    }

    /// Takes what lies at one endpoint, or at times at all.
    fn receive(&mut self, node: usize) -> Verdict {
        let count = self.programs[node].own.len();
        let first = self.random.place(count);
        let some = if self.closing || self.random.chance(1, 2) { count } else { 1 + count / 4 };
        for place in 0..some {
            let at = self.programs[node].own[(first + place) % count];
            loop {
                let Some(Node { engine, net, .. }) = &mut self.nodes[node] else { return Ok(()) };
                match engine.receive_message(at, net).map_err(|error| format!("receive: {error}"))? {
                    Some(message) => self.received(at, &message)?,
                    None => break,
                }
            }
        }
        Ok(())
    }

    /// Something to be sent: from, to, priority, number, bytes.
    fn something(&mut self, node: usize) -> Option<(EndpointId, EndpointId, u32, u64, Vec<u8>)> {
        let program = &self.programs[node];
        if program.known.is_empty() || program.pending.len() >= PENDING_MAX {
            return None;
        }
        let to = program.known[self.random.place(program.known.len())];
        let from = program.own[self.random.place(program.own.len())];
        let length = match self.random.below(20) {
            0 => self.random.below(30_000),
            1..4 => self.random.below(2_000),
            _ => self.random.below(64),
        };
        let number = self.oracle.number();
        Some((from, to, self.random.below(4) as u32, number, payload(number, 8 + length as usize)))
    }

    fn stream(&self, node: usize, to: EndpointId, priority: u32) -> Stream {
        Stream { node, life: self.lives[node], to, priority: priority as u8 }
    }

    fn send(&mut self, node: usize) -> Verdict {
        let Some((from, to, priority, number, bytes)) = self.something(node) else { return Ok(()) };
        let stream = self.stream(node, to, priority);
        let Some(Node { engine, net, .. }) = &mut self.nodes[node] else { return Ok(()) };
        match engine.send_message(from, to, priority, &bytes, net) {
            Ok(Sending::Done) => {
                self.oracle.sent(number, stream, self.events);
                self.told(number, Told::Delivered)
            }
            Ok(Sending::Confirming(request)) => {
                self.oracle.sent(number, stream, self.events);
                self.programs[node].pending.push((request, Intent::Send(number)));
                Ok(())
            }
            Ok(Sending::Blocked) => Ok(()),
            Err(error) => self.refused(node, to, error),
        }
    }

    fn send_later(&mut self, node: usize) -> Verdict {
        let Some((from, to, priority, number, bytes)) = self.something(node) else { return Ok(()) };
        let stream = self.stream(node, to, priority);
        let Some(Node { engine, net, .. }) = &mut self.nodes[node] else { return Ok(()) };
        match engine.send_message_later(from, to, priority, bytes, net) {
            Ok(request) => {
                self.oracle.sent(number, stream, self.events);
                self.programs[node].pending.push((request, Intent::Send(number)));
                Ok(())
            }
            Err(error) => self.refused(node, to, error),
        }
    }

    fn refused(&mut self, node: usize, to: EndpointId, error: Error) -> Verdict {
        match error {
            Error::EndpointInvalid | Error::Transmission | Error::MemoryLimit => {
                self.programs[node].known.retain(|known| *known != to);
                Ok(())
            }
            error => Err(format!("node {node} may not send to {to}: {error}")),
        }
    }

    fn get(&mut self, node: usize) -> Verdict {
        let nodes = self.plan.nodes;
        let neighbour = (node + 1 + self.random.place(NEIGHBOURS) * 7) % nodes;
        let port = 1 + self.random.place(self.endpoints_of_a_node()) as u32;
        if self.programs[node].pending.len() >= PENDING_MAX {
            return Ok(());
        }
        let Some(Node { engine, net, .. }) = &mut self.nodes[node] else { return Ok(()) };
        let request = engine.get_endpoint((0, neighbour as u32), port, net).map_err(|error| format!("get: {error}"))?;
        self.programs[node].pending.push((request, Intent::Get));
        Ok(())
    }

    fn receive_later(&mut self, node: usize) -> Verdict {
        let at = self.programs[node].own[self.random.place(self.programs[node].own.len())];
        if self.programs[node].pending.len() >= PENDING_MAX {
            return Ok(());
        }
        let Some(Node { engine, net, .. }) = &mut self.nodes[node] else { return Ok(()) };
        let request = engine.receive_message_later(at, net).map_err(|error| format!("receive later: {error}"))?;
        self.programs[node].pending.push((request, Intent::Receive(at)));
        Ok(())
    }

    fn cancel(&mut self, node: usize) -> Verdict {
        let pending = &self.programs[node].pending;
        if pending.is_empty() {
            return Ok(());
        }
        let (request, _) = pending[self.random.place(pending.len())];
        let Some(Node { engine, net, .. }) = &mut self.nodes[node] else { return Ok(()) };
        match engine.cancel(request, net) {
            Ok(()) | Err(Error::RequestInvalid) => Ok(()),
            Err(error) => Err(format!("cancel: {error}")),
        }
    }

    /// Deletes an endpoint and creates its successor at any port.
    fn recreate(&mut self, node: usize) -> Verdict {
        let place = self.random.place(self.programs[node].own.len());
        let endpoint = self.programs[node].own.remove(place);
        let Some(Node { engine, net, .. }) = &mut self.nodes[node] else { return Ok(()) };
        engine.delete_endpoint(endpoint, net).map_err(|error| format!("delete: {error}"))?;
        self.endpoints.remove(&endpoint);
        self.create(node, None)
    }
}

/// Bytes that tell their number.
fn payload(number: u64, length: usize) -> Vec<u8> {
    let mut bytes = vec![number as u8; length];
    bytes[..8].copy_from_slice(&number.to_le_bytes());
    bytes
}

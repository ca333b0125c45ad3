//! Random operations against a simple model: what was sent arrives once and in order, or its loss was reported.
//!
//! How it works: every message says which flow it is of (from, to, priority) and its number there. The model knows what
//! the sender was told of each. Nodes are cut off from one another, die and return; links are full for a while, some
//! confirm, some deliver at once; endpoints are deleted and created anew. In the end everything is let through and read.

use super::*;
use crate::engine::{LEFT_OVER_BYTES_MAX, LEFT_OVER_COST};
use crate::limits::MESSAGE_CREDIT;

const NODES: usize = 3;
const PORTS: usize = 2;

/// What the sender of a message was told.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Told {
    Pending,
    Sent,
    Lost,
}

#[derive(Debug)]
struct Record {
    told: Told,
    received: bool,
    /// Its receiver died, or its endpoint was deleted, after it was sent.
    may_be_lost: bool,
}

#[derive(Debug, Default)]
struct Flow {
    records: Vec<Record>,
    /// The least number that may still come.
    next: usize,
}

type Key = (EndpointId, EndpointId, u8);

struct Play {
    world: World,
    dice: Dice,
    numbered: bool,
    endpoints: [[EndpointId; PORTS]; NODES],
    old: Vec<EndpointId>,
    flows: BTreeMap<Key, Flow>,
    /// Sends that are not complete: where, and what.
    sends: Vec<(usize, RequestId, Key, usize)>,
    receives: Vec<(usize, RequestId, EndpointId)>,
    incarnation: u32,
}

impl Play {
    fn new(seed: u64, numbered: bool) -> Play {
        let mut world = World::linked(NODES, numbered);
        world.confirms = false;
        let endpoints = std::array::from_fn(|at| std::array::from_fn(|port| world.create(at, 1 + port as u32)));
        let (old, flows, sends, receives) = (Vec::new(), BTreeMap::new(), Vec::new(), Vec::new());
        Play { world, dice: Dice(seed), numbered, endpoints, old, flows, sends, receives, incarnation: 100 }
    }

    fn some_pair(&mut self) -> (usize, usize) {
        let a = self.dice.roll(NODES);
        (a, (a + 1 + self.dice.roll(NODES - 1)) % NODES)
    }

    fn send(&mut self) {
        let at = self.dice.roll(NODES);
        let from = self.endpoints[at][self.dice.roll(PORTS)];
        let to = match self.dice.roll(20) {
            0 if !self.old.is_empty() => self.old[self.dice.roll(self.old.len())],
            _ => self.endpoints[self.dice.roll(NODES)][self.dice.roll(PORTS)],
        };
        let priority = self.dice.roll(4) as u8;
        let key = (from, to, priority);
        let number = self.flows.entry(key).or_default().records.len();
        let mut bytes = (number as u32).to_le_bytes().to_vec();
        bytes.resize(4 + [0, 10, 500][self.dice.roll(3)], 0);
        let priority = u32::from(priority);
        let told = if self.dice.roll(2) == 0 {
            match self.world.on(at, |engine, links| engine.send_message(from, to, priority, &bytes, links)) {
                Ok(Sending::Done) => Told::Sent,
                Ok(Sending::Confirming(request)) => self.follow(at, request, key, number),
                Ok(Sending::Blocked) | Err(Error::Transmission | Error::EndpointInvalid) => return,
                Err(other) => panic!("{other}"),
            }
        } else {
            match self.world.on(at, |engine, links| engine.send_message_later(from, to, priority, bytes, links)) {
                Ok(request) => self.follow(at, request, key, number),
                Err(Error::MemoryLimit | Error::Transmission | Error::EndpointInvalid) => return,
                Err(other) => panic!("{other}"),
            }
        };
        // A name may come again with a later run of its node; whoever knew the earlier one takes it for that.
        let may_be_lost = !self.endpoints[to.node().node() as usize].contains(&to) || self.old.contains(&to);
        let flow = self.flows.entry(key).or_default();
        flow.records.push(Record { told, received: false, may_be_lost });
    }

    fn follow(&mut self, at: usize, request: RequestId, key: Key, number: usize) -> Told {
        self.sends.push((at, request, key, number));
        Told::Pending
    }

    /// Takes note of sends that have completed.
    fn look(&mut self) {
        let (world, flows) = (&mut self.world, &mut self.flows);
        self.sends.retain(|(at, request, key, number)| {
            let told = match world.outcome(*at, *request) {
                None => return true,
                Some(Ok(Outcome::Sent(_))) => Told::Sent,
                Some(Err(Error::Transmission | Error::EndpointInvalid | Error::RequestCancelled)) => Told::Lost,
                other => panic!("{other:?}"),
            };
            flows.get_mut(key).unwrap().records[*number].told = told;
            false
        });
        let done: Vec<_> = self
            .receives
            .iter()
            .copied()
            .filter(|(at, request, _)| world.engines[*at].is_complete(*request).unwrap())
            .collect();
        self.receives.retain(|receive| !done.contains(receive));
        for (at, request, to) in done {
            match self.world.outcome(at, request) {
                Some(Ok(Outcome::Message(message))) => self.received(to, &message),
                Some(Err(Error::EndpointDeleted)) => {}
                other => panic!("{other:?}"),
            }
        }
    }

    fn received(&mut self, to: EndpointId, message: &Message<TestBlock>) {
        let key = (message.from, to, message.priority);
        let number = u32::from_le_bytes(bytes(&message.payload)[..4].try_into().unwrap()) as usize;
        let flow = self.flows.get_mut(&key).expect("a flow that was begun");
        assert!(number >= flow.next, "{key:?}: {number} after {}", flow.next);
        flow.next = number + 1;
        flow.records[number].received = true;
    }

    fn receive(&mut self) {
        let at = self.dice.roll(NODES);
        let to = self.endpoints[at][self.dice.roll(PORTS)];
        // Requests that wait are looked at before anything is taken after them.
        self.look();
        if self.dice.roll(4) == 0 {
            let request = self.world.on(at, |engine, links| engine.receive_message_later(to, links)).unwrap();
            self.receives.push((at, request, to));
            return;
        }
        for _ in 0..self.dice.roll(20) {
            let Some(message) = self.world.receive(at, to) else { return };
            self.received(to, &message);
        }
    }

    fn cancel(&mut self) {
        self.look();
        if self.dice.roll(2) == 0 && !self.sends.is_empty() {
            let (at, request, ..) = self.sends[self.dice.roll(self.sends.len())];
            self.world.on(at, |engine, links| engine.cancel(request, links)).unwrap();
        } else if !self.receives.is_empty() {
            let (at, request, _) = self.receives.remove(self.dice.roll(self.receives.len()));
            self.world.on(at, |engine, links| engine.drop_request(request, links));
        }
    }

    /// What was delivered at once stays so when the link ends.
    fn drain(&mut self, a: usize, b: usize) {
        if !self.numbered {
            while self.world.deliver(a, b) | self.world.deliver(b, a) {}
        }
    }

    fn cut(&mut self) {
        let (a, b) = self.some_pair();
        if !self.world.wire(a, b).up {
            return;
        }
        self.drain(a, b);
        self.world.cut(a, b, Loss::Cut);
        if self.dice.roll(2) == 0 {
            self.world.report(a, Report::Absent { peer: node(b) });
        }
    }

    fn link(&mut self) {
        let (a, b) = self.some_pair();
        if !self.world.wire(a, b).up {
            self.world.link(a, b, self.numbered);
        }
    }

    fn die(&mut self) {
        let dead = self.dice.roll(NODES);
        for other in (0..NODES).filter(|other| *other != dead) {
            self.drain(dead, other);
        }
        self.look();
        self.sends.retain(|(at, ..)| *at != dead);
        self.receives.retain(|(at, ..)| *at != dead);
        self.incarnation += 1;
        self.world.engines[dead] = Engine::new(node(dead), self.incarnation);
        for other in (0..NODES).filter(|other| *other != dead) {
            *self.world.wire(dead, other) = Wire::default();
            *self.world.wire(other, dead) = Wire::default();
            self.world.report(other, Report::Down { peer: node(dead), loss: Loss::Gone });
        }
        for port in 0..PORTS {
            self.let_go(dead, port);
            self.endpoints[dead][port] = self.world.create(dead, 1 + port as u32);
        }
    }

    /// What was sent to an endpoint and not read may be lost with it.
    fn let_go(&mut self, at: usize, port: usize) {
        let gone = self.endpoints[at][port];
        self.old.push(gone);
        for (_, flow) in self.flows.iter_mut().filter(|(key, _)| key.1 == gone) {
            flow.records.iter_mut().for_each(|record| record.may_be_lost = true);
        }
    }

    fn delete(&mut self) {
        let (at, port) = (self.dice.roll(NODES), self.dice.roll(PORTS));
        self.let_go(at, port);
        let endpoint = self.endpoints[at][port];
        self.world.on(at, |engine, links| engine.delete_endpoint(endpoint, links)).unwrap();
        self.endpoints[at][port] = self.world.create(at, 1 + port as u32);
    }

    fn step(&mut self) {
        match self.dice.roll(1000) {
            0..300 => self.send(),
            300..500 => self.receive(),
            500..800 => {
                let (a, b) = self.some_pair();
                for _ in 0..self.dice.roll(8) {
                    self.world.deliver(a, b);
                }
            }
            800..880 => {
                let (a, b) = self.some_pair();
                self.world.confirm(a, b);
            }
            880..920 => {
                let (a, b) = self.some_pair();
                let full = self.dice.roll(2) == 0;
                self.world.set_full(a, b, full);
            }
            920..940 => self.cancel(),
            940..970 => self.link(),
            970..985 => {
                self.world.now_ns += 1_000_000;
                let now_ns = self.world.now_ns;
                let at = self.dice.roll(NODES);
                self.world.on(at, |engine, links| engine.tick(now_ns, links));
            }
            985..992 => self.cut(),
            992..994 => self.die(),
            994..996 => self.delete(),
            _ => self.look(),
        }
        self.check_bounds();
    }

    fn check_bounds(&self) {
        for engine in &self.world.engines {
            assert_eq!(engine.counters().overruns, 0);
            assert_eq!(engine.counters().malformed + engine.counters().not_theirs, 0);
        }
        for (at, own) in self.endpoints.iter().enumerate() {
            for endpoint in own {
                let queued = self.world.engines[at].messages_available(*endpoint).unwrap();
                let most = NODES * (MESSAGE_CREDIT as usize + LEFT_OVER_BYTES_MAX / LEFT_OVER_COST);
                assert!(queued <= most, "{queued} messages");
            }
        }
    }

    /// Lets everything through and reads everything.
    fn finish(mut self) {
        self.world.confirms = true;
        for (a, b) in pairs(NODES) {
            if !self.world.wire(a, b).up {
                self.world.link(a, b, self.numbered);
            }
            self.world.set_full(a, b, false);
            self.world.set_full(b, a, false);
        }
        for _ in 0..600 {
            self.world.tick();
            for (a, b) in pairs(NODES) {
                self.world.confirm(a, b);
                self.world.confirm(b, a);
            }
            self.look();
            for (at, to) in
                self.endpoints.iter().enumerate().flat_map(|(at, own)| own.map(|to| (at, to))).collect::<Vec<_>>()
            {
                while let Some(message) = self.world.receive(at, to) {
                    self.received(to, &message);
                }
            }
        }
        assert!(self.sends.is_empty(), "{} sends never end", self.sends.len());
        let dropped: u64 = self.world.engines.iter().map(|engine| engine.counters().left_over_dropped).sum();
        let is_missing = |record: &Record| record.told == Told::Sent && !record.received && !record.may_be_lost;
        let missing: Vec<_> = self.flows.iter().filter(|(_, flow)| flow.records.iter().any(is_missing)).collect();
        let count =
            missing.iter().flat_map(|(_, flow)| &flow.records).filter(|record| is_missing(record)).count() as u64;
        assert!(count <= dropped, "{count} messages were said to be sent and are not there: {missing:?}");
        let received = self.flows.values().flat_map(|flow| &flow.records).filter(|record| record.received).count();
        assert!(received > 100, "{received} received");
    }
}

#[test]
fn random_operations_keep_every_promise() {
    for seed in 1..=40_u64 {
        for numbered in [false, true] {
            let mut play = Play::new(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15), numbered);
            for _ in 0..6000 {
                play.step();
            }
            std::println!("seed {seed}, numbered {numbered}");
            play.finish();
        }
    }
}

//! Whole lives of several nodes with deaths, cuts and simultaneous requests, in an order that a seed gives.
//!
//! What must hold in the end: every attempt has ended, every VI is idle, connected or in error, whoever is connected is so with
//! somebody who is connected with it, and every descriptor that was posted has completed or is still posted, once.

use super::*;

const NODES: [(u16, u16); 4] = [(0, 0), (1, 0), (1, 1), (2, 0)];
const VIS: usize = 3;

struct Life {
    world: World,
    dice: Dice,
    vis: BTreeMap<NodeId, Vec<ViNumber>>,
    callers: BTreeMap<NodeId, Vec<CallerNumber>>,
    accepting: BTreeMap<NodeId, Vec<CallerNumber>>,
    posted: BTreeMap<(NodeId, ViNumber), usize>,
    completed: BTreeMap<(NodeId, ViNumber), usize>,
}

impl Life {
    fn new(seed: u64) -> Life {
        let mut life = Life {
            world: World::new(&[]),
            dice: Dice::new(seed),
            vis: BTreeMap::new(),
            callers: BTreeMap::new(),
            accepting: BTreeMap::new(),
            posted: BTreeMap::new(),
            completed: BTreeMap::new(),
        };
        NODES.iter().for_each(|(nic, slot)| life.start(node(*nic, *slot)));
        life
    }

    fn start(&mut self, node: NodeId) {
        self.world.start(node);
        let attributes = |number| ViAttributes { credit: number == 0, ..PLAIN() };
        let vis = (0..VIS).map(|number| self.world.host(node).vi(attributes(number))).collect();
        self.vis.insert(node, vis);
        self.callers.insert(node, Vec::new());
        self.accepting.insert(node, Vec::new());
        self.posted.retain(|(of, _), _| *of != node);
        self.completed.retain(|(of, _), _| *of != node);
    }

    fn someone(&mut self) -> NodeId {
        let (nic, slot) = NODES[self.dice.below(NODES.len() as u64) as usize];
        node(nic, slot)
    }

    fn step(&mut self) {
        let here = self.someone();
        if !self.world.hosts.contains_key(&here) {
            return self.start(here);
        }
        let vi = self.vis[&here][self.dice.below(VIS as u64) as usize];
        let nic = here.slot().unwrap().0;
        let port = alloc::format!("{}", self.dice.below(2));
        let now_ns = self.world.now_ns;
        match self.dice.below(24) {
            0..=1 => {
                let Host { nic: state, .. } = self.world.host(here);
                let listener = state.listen(&at(nic, &port)).unwrap();
                let caller = state.next_caller(listener);
                state.end_listening(now_ns, listener);
                self.callers.get_mut(&here).unwrap().extend(caller.map(|caller| caller.0));
            }
            2..=4 => {
                let to = at(self.dice.below(u64::from(NICS)) as u16, &port);
                let Host { nic: state, wires, .. } = self.world.host(here);
                let _ = state.request(vi, at(nic, "c"), to, wires);
            }
            5..=7 => {
                let other = self.dice.below(u64::from(NICS)) as u16;
                let (local, remote) = (alloc::format!("p{other}"), alloc::format!("p{nic}"));
                let until_ns = now_ns + 1 + self.dice.below(1_000);
                let Host { nic: state, wires, .. } = self.world.host(here);
                let _ = state.request_peer(vi, at(nic, &local), at(other, &remote), until_ns, wires);
            }
            8..=9 => {
                let Some(caller) = self.callers.get_mut(&here).unwrap().pop() else { return };
                let rejects = self.dice.below(4) == 0;
                let Host { nic: state, wires, .. } = self.world.host(here);
                if rejects {
                    state.reject(caller, wires).unwrap();
                } else if state.accept(caller, vi, wires).is_ok() {
                    self.accepting.get_mut(&here).unwrap().push(caller);
                } else {
                    let _ = state.reject(caller, wires);
                }
            }
            10 => {
                let Host { nic: state, wires, .. } = self.world.host(here);
                let _ = state.give_up(vi, wires);
            }
            11 => {
                let Host { nic: state, wires, .. } = self.world.host(here);
                state.disconnect(vi, wires).unwrap();
            }
            12 if self.dice.below(4) == 0 => self.world.kill(here),
            13 if self.dice.below(2) == 0 => {
                let other = self.someone();
                self.world.cut(here, other);
            }
            14..=16 => self.post(here, vi),
            17 => self.world.link(),
            18 => {
                self.world.now_ns += self.dice.below(GRACE);
                self.world.tick();
            }
            _ => {
                for _ in 0..self.dice.below(4) {
                    self.world.carry_one(here);
                }
            }
        }
        self.drain();
    }

    fn post(&mut self, here: NodeId, vi: ViNumber) {
        let queue = if self.dice.below(3) == 0 { Queue::Send } else { Queue::Receive };
        let index = self.dice.below(100) as usize;
        let bytes = self.dice.below(200) as u32;
        self.world.host(here).post_plain(vi, queue, index, 0, bytes);
        *self.posted.entry((here, vi)).or_default() += 1;
    }

    /// What programs do all the time: they take what has completed.
    fn drain(&mut self) {
        for (node, host) in &mut self.world.hosts {
            for vi in &self.vis[node] {
                for queue in [Queue::Send, Queue::Receive] {
                    while let Ok(Dequeue::Complete { .. }) = host.nic.dequeue(*vi, queue) {
                        *self.completed.entry((*node, *vi)).or_default() += 1;
                    }
                }
            }
            self.accepting.get_mut(node).unwrap().retain(|caller| host.nic.accepted(*caller).is_none());
            host.errors();
        }
    }

    /// Lets everything come to rest, with nobody listening any more.
    fn rest(&mut self) {
        for _ in 0..4 {
            self.world.settle();
            self.world.now_ns += 10 * GRACE;
            self.world.tick();
        }
        for (node, callers) in core::mem::take(&mut self.callers) {
            let Some(Host { nic, wires, .. }) = self.world.hosts.get_mut(&node) else { continue };
            callers.into_iter().for_each(|caller| nic.reject(caller, wires).unwrap());
        }
        self.world.settle();
        self.drain();
    }

    fn check(&mut self) {
        let mut ends = BTreeMap::new();
        for (node, host) in &self.world.hosts {
            for (number, entry) in host.nic.vis.iter() {
                assert_ne!(entry.vi.state(), ViState::ConnectPending, "{node} {number}: {:?}", entry.attempt);
                if entry.vi.state() == ViState::Connected {
                    let connection = entry.connection.as_ref().unwrap();
                    let peer = host.nic.carriage.peers[usize::from(connection.peer)].node;
                    ends.insert((*node, connection.here), (peer, connection.there));
                }
                let left = if entry.vi.is_empty(Queue::Receive) { 0 } else { 1 };
                let key = (*node, ViNumber(number));
                let (posted, completed) = (self.posted.get(&key), self.completed.get(&key));
                let (posted, completed) = (posted.copied().unwrap_or(0), completed.copied().unwrap_or(0));
                assert!(completed + left <= posted || left == 0, "{key:?}");
                assert!(completed <= posted, "{key:?}");
            }
        }
        for (end, other) in &ends {
            assert_eq!(ends.get(other), Some(end), "connected with who is not: {end:?} {other:?}");
        }
        for (node, host) in &mut self.world.hosts {
            for vi in self.vis[node].clone() {
                host.nic.disconnect(vi, &mut host.wires).unwrap();
                let mut completed = self.completed.get(&(*node, vi)).copied().unwrap_or(0);
                for queue in [Queue::Send, Queue::Receive] {
                    while let Ok(Dequeue::Complete { .. }) = host.nic.dequeue(vi, queue) {
                        completed += 1;
                    }
                }
                assert_eq!(completed, self.posted.get(&(*node, vi)).copied().unwrap_or(0), "{node} {vi:?}");
                host.nic.destroy_vi(vi).unwrap();
            }
            assert!(host.wires.wanted.is_empty());
        }
    }
}

const GRACE: u64 = super::super::connecting::GRACE_NS;

#[test]
fn every_life_ends_in_order() {
    let seeds = if cfg!(miri) { 0..2 } else { 0..400 };
    for seed in seeds {
        let mut life = Life::new(seed);
        for _ in 0..if cfg!(miri) { 60 } else { 400 } {
            life.step();
        }
        std::println!("seed {seed}");
        life.rest();
        life.check();
    }
}

//! NICs over links in memory: what the tests of connections and frames share.
//!
//! How it works: a [`World`] has some NICs, each with memory of its own, and carries what their links were given, in any order
//! that a test wants; links can end and come back, take only so many frames, and number them.

mod connecting;
mod counts;
mod credit;
mod data;
mod hostile;
mod intake;
mod lent;
mod notifying;
mod offers;
mod pacing;
mod runs;
mod turns;

extern crate std;

use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::sync::Arc;
use alloc::vec::Vec;

use musubi_linux::peer_memory::PeerMemory;
use musubi_transport::Priority;
use musubi_transport::frame::Header;
use musubi_transport::links::{Links, Loss, NoBlock, Payload, Reach, Report, Sent};
use musubi_transport::protocol::Protocol;
use musubi_transport::topology::ClassIntake;

use super::*;
use crate::address::{Address, NicEntry};
use crate::engine::{LocalPlace, MemoryAttributes, Reliability, Status};
use crate::memory::Lines;

/// NICs of each world, each with so many slots.
const NICS: u16 = 3;
const SLOTS: u16 = 2;
/// Bytes of a NIC's memory: descriptors first, from [`BUFFERS`] on buffers.
const BYTES: usize = 1 << 16;
const BUFFERS: usize = 1 << 14;

/// This process's memory, by the kernel, as other processes' is read.
#[derive(Debug)]
struct OwnReach(PeerMemory);

impl Reach for OwnReach {
    fn fetch(&self, address: u64, into: &mut [u8]) -> bool {
        self.0.read(address, into)
    }
}

/// What one NIC's links were given and told.
#[derive(Debug, Default)]
struct Wires {
    me: Option<NodeId>,
    up: BTreeSet<NodeId>,
    wanted: BTreeSet<NodeId>,
    /// Who is to be told absent.
    tried: Vec<NodeId>,
    out: VecDeque<(NodeId, Header, Vec<u8>)>,
    /// Frames that are taken at most until some were carried.
    room: usize,
    full: BTreeSet<NodeId>,
    /// Whether memory of others can be read: all of them are of this process.
    reaches: bool,
    /// The last number of each peer, if frames are numbered.
    numbers: Option<BTreeMap<NodeId, u64>>,
}

impl Links for Wires {
    type Block = NoBlock;

    fn send(&mut self, peer: NodeId, header: &Header, payload: &[u8]) -> Sent {
        assert_eq!(header.length as usize, payload.len());
        assert!(Header::from_words(header.to_words(), NicState::<NoBlock>::KINDS).is_some(), "{header:?}");
        if !self.up.contains(&peer) {
            return Sent::NoLink;
        }
        if self.out.len() >= self.room {
            self.full.insert(peer);
            return Sent::Full;
        }
        self.out.push_back((peer, *header, payload.to_vec()));
        match &mut self.numbers {
            None => Sent::Delivered,
            Some(numbers) => {
                let number = numbers.entry(peer).or_default();
                *number += 1;
                Sent::Numbered(*number)
            }
        }
    }

    fn want(&mut self, peer: NodeId, wanted: bool) {
        assert_ne!(Some(peer), self.me, "no link with oneself");
        if wanted && self.wanted.insert(peer) && !self.up.contains(&peer) {
            self.tried.push(peer);
        }
        if !wanted {
            self.wanted.remove(&peer);
        }
    }

    fn knows(&self, _: NodeId) -> bool {
        true
    }

    fn is_drained(&mut self, _: NodeId) -> bool {
        self.reaches
    }

    fn reach(&mut self, _: NodeId) -> Option<Arc<dyn Reach>> {
        self.reaches.then(|| Arc::new(OwnReach(PeerMemory::own())) as Arc<dyn Reach>)
    }
}

/// One NIC with its links and memory.
struct Host {
    nic: NicState<NoBlock>,
    wires: Wires,
    /// Where its memory begins.
    base: u64,
    handle: MemoryHandle,
    tag: TagHandle,
}

impl Host {
    fn new(node: NodeId, incarnation: u32) -> Host {
        let mut nic = NicState::new(node, incarnation);
        nic.describe(Host::directory(&[], &[]));
        let tag = nic.create_tag().unwrap();
        let attributes = MemoryAttributes { tag, remote_write: true, remote_read: true };
        let (base, handle) = nic.register_own(Lines::zeroed(BYTES), attributes).unwrap();
        let wires = Wires { me: Some(node), room: usize::MAX, ..Wires::default() };
        Host { nic, wires, base, handle, tag }
    }

    /// The NICs of the world; some take no more than this.
    fn directory(intakes: &[ClassIntake], take: &[u16]) -> Directory {
        let entry = |number| NicEntry {
            name: alloc::format!("nic{number}"),
            hosts: Vec::new(),
            slots: SLOTS,
            is_trusted: true,
            intakes: if take.contains(&number) { intakes.to_vec() } else { Vec::new() },
        };
        Directory { nics: (0..NICS).map(entry).collect() }
    }

    fn vi(&mut self, attributes: ViAttributes) -> ViNumber {
        self.nic.create_vi(ViAttributes { tag: self.tag, ..attributes }, None, None).unwrap()
    }

    fn state(&self, vi: ViNumber) -> ViState {
        self.nic.query_vi(vi).unwrap().state
    }

    fn address(&self, offset: usize) -> u64 {
        self.base + offset as u64
    }

    fn place(&self, offset: usize, bytes: usize) -> LocalPlace {
        LocalPlace { address: self.address(offset), handle: self.handle, bytes: bytes as u32 }
    }

    fn get(&mut self, offset: usize, bytes: usize) -> Vec<u8> {
        let mut got = Vec::new();
        let place = self.place(offset, bytes);
        assert!(self.nic.memory().copy_out(place, &mut got));
        got
    }

    fn put(&mut self, offset: usize, bytes: &[u8]) {
        let place = self.place(offset, bytes.len());
        assert!(self.nic.memory().copy_in(place, bytes));
    }

    /// Writes a descriptor into place `index`: control bits, and segments of (where, how many bytes).
    fn write(&mut self, index: usize, control: u16, segments: &[(u64, MemoryHandle, u32)], immediate: u32) {
        let data = segments.iter().skip(usize::from(control & 3 != 0));
        let length: u32 = data.map(|segment| segment.2).sum();
        let at = index * 128;
        self.put(at, &[0; 128]);
        let mut put = |offset: usize, bytes: &[u8]| self.put(at + offset, bytes);
        put(12, &(segments.len() as u16).to_le_bytes());
        put(14, &control.to_le_bytes());
        put(20, &immediate.to_le_bytes());
        put(24, &length.to_le_bytes());
        for (place, (address, handle, bytes)) in segments.iter().enumerate() {
            put(32 + 16 * place, &address.to_le_bytes());
            put(40 + 16 * place, &handle.0.to_le_bytes());
            put(44 + 16 * place, &bytes.to_le_bytes());
        }
    }

    /// Posts the descriptor in place `index`.
    fn post(&mut self, vi: ViNumber, queue: Queue, index: usize) -> Result<(), ViError> {
        let address = self.address(index * 128);
        self.nic.post(vi, queue, (address, self.handle), &mut self.wires)
    }

    /// Posts a receive, or send, of so many bytes of the buffers.
    fn post_plain(&mut self, vi: ViNumber, queue: Queue, index: usize, offset: usize, bytes: u32) {
        let address = self.address(BUFFERS + offset);
        let handle = self.handle;
        self.write(index, 0, &[(address, handle, bytes)], 0);
        self.post(vi, queue, index).unwrap();
    }

    /// What has completed: the place of the descriptor, its length and status.
    fn done(&mut self, vi: ViNumber, queue: Queue) -> Option<(usize, u32, Status)> {
        match self.nic.dequeue(vi, queue).unwrap() {
            Dequeue::Complete { address, is_error } => {
                let at = (address - self.address(0)) as usize;
                let mut word = |offset: usize| u32::from_le_bytes(self.get(at + offset, 4).try_into().unwrap());
                let status = Status(word(28));
                assert_eq!(is_error, status.is_error());
                Some((at / 128, word(24), status))
            }
            _ => None,
        }
    }

    fn all_done(&mut self, vi: ViNumber, queue: Queue) -> Vec<(usize, Status)> {
        core::iter::from_fn(|| self.done(vi, queue)).map(|(index, _, status)| (index, status)).collect()
    }

    fn errors(&mut self) -> Vec<AsyncError> {
        core::iter::from_fn(|| self.nic.take_news()).map(|news| news.error).collect()
    }
}

/// Some NICs and what is between them.
struct World {
    hosts: BTreeMap<NodeId, Host>,
    now_ns: u64,
    born: u32,
}

fn node(nic: u16, slot: u16) -> NodeId {
    NodeId::of_slot(nic, slot).unwrap()
}

fn at(nic: u16, discriminator: &str) -> Address {
    Address::new(NicNumber(nic), discriminator.as_bytes()).unwrap()
}

fn attributes(reliability: Reliability) -> ViAttributes {
    ViAttributes {
        reliability,
        transfer_bytes_max: 8192,
        class: 3,
        tag: TagHandle(0),
        remote_write: true,
        remote_read: reliability.is_reliable(),
        credit: false,
    }
}

const PLAIN: fn() -> ViAttributes = || attributes(Reliability::Delivery);

impl World {
    /// With these nodes, none of which is linked with another.
    fn new(nodes: &[NodeId]) -> World {
        let mut world = World { hosts: BTreeMap::new(), now_ns: 1, born: 0 };
        nodes.iter().for_each(|node| world.start(*node));
        world
    }

    fn start(&mut self, node: NodeId) {
        self.born += 1;
        self.hosts.insert(node, Host::new(node, self.born << 8 | 1));
    }

    fn host(&mut self, node: NodeId) -> &mut Host {
        self.hosts.get_mut(&node).unwrap()
    }

    fn report(&mut self, node: NodeId, report: Report<NoBlock>) {
        let now_ns = self.now_ns;
        let Host { nic, wires, .. } = self.host(node);
        nic.report(now_ns, report, wires);
    }

    fn tick(&mut self) {
        let now_ns = self.now_ns;
        for Host { nic, wires, .. } in self.hosts.values_mut() {
            nic.tick(now_ns, wires);
        }
    }

    /// Links two nodes that live, if one of them wants it; tells who wants somebody that does not live.
    fn link(&mut self) {
        let tried: Vec<(NodeId, NodeId)> = self
            .hosts
            .iter_mut()
            .flat_map(|(node, host)| core::mem::take(&mut host.wires.tried).into_iter().map(|peer| (*node, peer)))
            .collect();
        for (node, peer) in tried {
            if !self.hosts.contains_key(&peer) {
                self.report(node, Report::Absent { peer });
            } else if !self.host(node).wires.up.contains(&peer) {
                self.connect_links(node, peer);
            }
        }
    }

    fn connect_links(&mut self, one: NodeId, other: NodeId) {
        self.host(one).wires.up.insert(other);
        self.host(other).wires.up.insert(one);
        self.report(one, Report::Up { peer: other, incarnation: 1 });
        self.report(other, Report::Up { peer: one, incarnation: 1 });
    }

    /// The link of two nodes ends; what is under way is lost.
    fn cut(&mut self, one: NodeId, other: NodeId) {
        for (node, peer) in [(one, other), (other, one)] {
            let Some(host) = self.hosts.get_mut(&node) else { continue };
            if host.wires.up.remove(&peer) {
                host.wires.out.retain(|(to, ..)| *to != peer);
                host.wires.full.remove(&peer);
                if let Some(numbers) = &mut host.wires.numbers {
                    numbers.remove(&peer);
                }
                if host.wires.wanted.contains(&peer) {
                    host.wires.tried.push(peer);
                }
                self.report(node, Report::Down { peer, loss: Loss::Cut });
            }
        }
    }

    /// A node is no more.
    fn kill(&mut self, node: NodeId) {
        let peers: Vec<NodeId> = self.host(node).wires.up.iter().copied().collect();
        self.hosts.remove(&node);
        for peer in peers {
            self.cut(peer, node);
        }
    }

    /// Carries one frame of a node, and tells what comes of it; whether there was one.
    fn carry_one(&mut self, node: NodeId) -> bool {
        let host = self.host(node);
        let Some((peer, header, payload)) = host.wires.out.pop_front() else { return false };
        let number = host.wires.numbers.as_mut().map(|_| ());
        self.report(peer, Report::Frame { peer: node, header, payload: Payload::Owned(payload) });
        if number.is_some() {
            let sent = self.host(node).wires.numbers.as_ref().and_then(|numbers| numbers.get(&peer)).copied();
            let left = self.host(node).wires.out.iter().filter(|(to, ..)| *to == peer).count() as u64;
            if let Some(number) = sent {
                self.report(node, Report::Acknowledged { peer, number: number - left });
            }
        }
        for peer in core::mem::take(&mut self.host(node).wires.full) {
            self.report(node, Report::Room { peer });
        }
        true
    }

    /// Carries everything until nothing moves.
    fn settle(&mut self) {
        for _ in 0..100_000 {
            self.link();
            let nodes: Vec<NodeId> = self.hosts.keys().copied().collect();
            let moved = nodes.into_iter().filter(|node| self.carry_one(*node)).count();
            if moved == 0 && self.hosts.values().all(|host| host.wires.tried.is_empty()) {
                return;
            }
        }
        panic!("it never comes to rest");
    }

    /// A client at one node and a server at another, each with a VI.
    fn connect(&mut self, client: NodeId, server: NodeId, attributes: ViAttributes) -> (ViNumber, ViNumber) {
        let (a, b) = (self.host(client).vi(attributes), self.host(server).vi(attributes));
        self.connect_vis((client, a), (server, b));
        (a, b)
    }

    fn connect_vis(&mut self, (client, a): (NodeId, ViNumber), (server, b): (NodeId, ViNumber)) {
        let nic_of = |node: NodeId| node.slot().unwrap().0;
        let port = at(nic_of(server), "port");
        let listener = self.host(server).nic.listen(&port).unwrap();
        let Host { nic, wires, .. } = self.host(client);
        nic.request(a, at(nic_of(client), "client"), port, wires).unwrap();
        self.settle();
        let (caller, from, _) = self.host(server).nic.next_caller(listener).unwrap();
        assert_eq!(from, at(nic_of(client), "client"));
        let Host { nic, wires, .. } = self.host(server);
        nic.accept(caller, b, wires).unwrap();
        self.settle();
        assert_eq!(self.host(server).nic.accepted(caller), Some(Ok(())));
        assert!(matches!(self.host(client).nic.take_outcome(a), Some(Ok(_))));
        let now_ns = self.now_ns;
        self.host(server).nic.end_listening(now_ns, listener);
    }

    fn disconnect(&mut self, node: NodeId, vi: ViNumber) {
        let Host { nic, wires, .. } = self.host(node);
        nic.disconnect(vi, wires).unwrap();
        self.settle();
    }
}

/// A pseudo-random sequence (xorshift).
struct Dice(u64);

impl Dice {
    fn new(seed: u64) -> Dice {
        Dice(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

//! Random programs on three nodes, over links that delay, fill up, overtake, and break, and nodes that die and come back.
//!
//! What is checked: of what a sender was told had been taken, the receiver gets each item once and in order; what it does not
//! get is behind a loss that was reported, or a close of its own. A receiver that is told that the sender has closed has got
//! everything. In quietness both ends of a connection name each other, and every request that exists is one a program has.
//! In the end every end can be brought back to what it was, and nothing is left.

use musubi_mcapi::engine::inspect::{ChannelPicture, Part};
use musubi_mcapi::engine::{ChannelHandle, ChannelKind, Outcome, RequestId, Sending, endpoint_status};
use musubi_mcapi::{EndpointId, Error};
use musubi_transport::links::Loss;

use super::world::{Mode, World, bytes};

const NODES: usize = 3;
const ENDS: usize = 2;
const STEPS: usize = 1500;
/// Some of these once found something.
const SEEDS: core::ops::Range<u64> = 150..210;

struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % bound
    }
}

/// What a program began.
#[derive(Clone, Copy, Debug)]
enum Begun {
    Connect,
    Open(usize),
    Close(usize),
    Send { stream: u32, item: u32 },
    Receive(usize),
}

/// What a program knows of one of its endpoints.
#[derive(Clone, Copy, Debug)]
struct End {
    id: EndpointId,
    opened: Option<Opened>,
}

#[derive(Clone, Copy, Debug)]
struct Opened {
    kind: ChannelKind,
    receives: bool,
    handle: ChannelHandle,
    /// Of what is sent through it.
    stream: u32,
    unreleased: u32,
    /// It has been seen open.
    open: bool,
}

/// What went through one opening of a sending end.
#[derive(Debug, Default)]
struct Stream {
    to: Option<EndpointId>,
    /// Items that were taken, and whether each was taken back later.
    items: Vec<bool>,
    received: u32,
    /// The receiver gave the connection up, maybe before it heard that this end was open: what is sent may go nowhere.
    given_up: bool,
}

struct Programs {
    world: World,
    random: Random,
    ends: Vec<[End; ENDS]>,
    /// In the order in which it was begun.
    begun: Vec<Vec<(RequestId, Begun)>>,
    streams: Vec<Stream>,
    received: usize,
    gives_up: bool,
    gave_up: usize,
}

impl Programs {
    fn new(seed: u64) -> Programs {
        let mode = if seed.is_multiple_of(2) { Mode::Memory } else { Mode::Network };
        let mut world = World::new(NODES, mode);
        world.net.room = [usize::MAX, 2, 5, 20][(seed / 2 % 4) as usize];
        world.net.kept = seed.is_multiple_of(3);
        let ends = (0..NODES).map(|at| fresh(&mut world, at)).collect();
        let begun = (0..NODES).map(|_| Vec::new()).collect();
        Programs {
            world,
            random: Random(seed),
            ends,
            begun,
            streams: Vec::new(),
            received: 0,
            gives_up: false,
            gave_up: 0,
        }
    }

    fn act(&mut self) {
        let at = self.random.below(NODES);
        let end = self.random.below(ENDS);
        self.collect(at);
        match self.random.below(100) {
            0..=4 => self.connect(at),
            5..=14 => self.open(at, end),
            15 => self.close(at, end),
            16..=17 => self.cancel(at),
            18..=39 => self.send(at, end),
            40..=61 => self.receive(at, end),
            62 => self.calamity(at),
            63..=65 if self.gives_up => self.give_up(at, end),
            _ => {
                for _ in 0..3 {
                    let choice = self.random.below(1000);
                    self.world.step(choice);
                }
            }
        }
        self.collect(at);
    }

    fn connect(&mut self, at: usize) {
        let [from, to] = [(); 2].map(|()| {
            let (node, end) = (self.random.below(NODES), self.random.below(ENDS));
            self.ends[node][end].id
        });
        let kind = self.kind();
        if let Ok(request) = self.world.call(at, |engine, links| engine.connect(kind, from, to, links)) {
            self.begun[at].push((request, Begun::Connect));
        }
    }

    fn kind(&mut self) -> ChannelKind {
        if self.random.below(3) == 0 { ChannelKind::Scalar } else { ChannelKind::Packet }
    }

    fn open(&mut self, at: usize, end: usize) {
        let id = self.ends[at][end].id;
        // Mostly what fits.
        let picture = self.picture(at, id);
        let (kind, receives) = match picture {
            Some(picture) if self.random.below(10) > 0 => role(&picture),
            _ => (self.kind(), self.random.below(2) == 0),
        };
        let Ok((handle, request)) = self.world.try_open(at, kind, receives, id) else { return };
        assert!(self.ends[at][end].opened.is_none(), "opened twice");
        let stream = self.streams.len() as u32;
        self.streams.push(Stream::default());
        self.begun[at].push((request, Begun::Open(end)));
        self.ends[at][end].opened = Some(Opened { kind, receives, handle, stream, unreleased: 0, open: false });
    }

    fn close(&mut self, at: usize, end: usize) {
        let Some(opened) = self.ends[at][end].opened else { return };
        match self.world.close(at, opened.kind, opened.receives, opened.handle) {
            Ok(request) => {
                self.begun[at].push((request, Begun::Close(end)));
            }
            Err(error) => assert_eq!(error, Error::ChannelNotOpen),
        }
    }

    /// Gives a connection up, if nobody has used it.
    fn give_up(&mut self, at: usize, end: usize) {
        let id = self.ends[at][end].id;
        let Some(picture) = self.picture(at, id).filter(|picture| role(picture).1) else {
            return self.world.call(at, |engine, links| engine.release_endpoint(id, links)).unwrap();
        };
        let sender = self.ends[picture.other.node().node() as usize].iter().find(|end| end.id == picture.other);
        let stream = sender.and_then(|end| end.opened).map(|opened| opened.stream as usize);
        self.world.call(at, |engine, links| engine.release_endpoint(id, links)).unwrap();
        if self.picture(at, id).is_none() {
            self.gave_up += 1;
            if let Some(stream) = stream {
                self.streams[stream].given_up = true;
            }
        }
    }

    fn cancel(&mut self, at: usize) {
        let count = self.begun[at].len();
        if count == 0 {
            return;
        }
        let place = self.random.below(count);
        let (request, begun) = self.begun[at][place];
        if self.world.call(at, |engine, links| engine.cancel(request, links)).is_err() {
            return;
        }
        match begun {
            Begun::Open(end) => self.ends[at][end].opened = None,
            Begun::Send { stream, item } => self.streams[stream as usize].items[item as usize] = true,
            // The close goes on, but nobody is told of its end: the handle says so.
            Begun::Close(_) | Begun::Connect | Begun::Receive(_) => {}
        }
    }

    fn send(&mut self, at: usize, end: usize) {
        let Some(opened) = self.ends[at][end].opened.filter(|opened| opened.open && !opened.receives) else { return };
        let item = self.streams[opened.stream as usize].items.len() as u32;
        if item == 0 {
            let id = self.ends[at][end].id;
            self.streams[opened.stream as usize].to = self.picture(at, id).map(|picture| picture.other);
        }
        let value = u64::from(opened.stream) << 32 | u64::from(item);
        let taken = match opened.kind {
            ChannelKind::Scalar => self.world.send_scalar(at, opened.handle, 8, value),
            ChannelKind::Packet => {
                let mut packet = value.to_le_bytes().to_vec();
                packet.resize(8 + [0, 50, 300, 60_000][self.random.below(4)], item as u8);
                if self.random.below(3) == 0 {
                    self.send_later(at, &opened, item, &packet);
                    return;
                }
                self.world.send(at, opened.handle, &packet)
            }
        };
        match taken {
            Ok(Sending::Done) => self.streams[opened.stream as usize].items.push(false),
            Ok(Sending::Blocked) => {}
            Ok(Sending::Confirming(_)) => panic!("channels do not confirm"),
            Err(error) => assert!(matches!(error, Error::ChannelInvalid | Error::Transmission)),
        }
    }

    fn send_later(&mut self, at: usize, opened: &Opened, item: u32, packet: &[u8]) {
        match self.world.send_later(at, opened.handle, packet) {
            Ok(request) => {
                self.streams[opened.stream as usize].items.push(false);
                self.begun[at].push((request, Begun::Send { stream: opened.stream, item }));
            }
            Err(error) => {
                assert!(matches!(error, Error::ChannelInvalid | Error::Transmission | Error::MemoryLimit), "{error}");
            }
        }
    }

    fn receive(&mut self, at: usize, end: usize) {
        let Some(opened) = self.ends[at][end].opened.filter(|opened| opened.open && opened.receives) else { return };
        if opened.unreleased > 0 && self.random.below(2) == 0 {
            self.release(at, end);
            // Within a node that lets the next one come.
            self.collect(at);
        }
        if opened.kind == ChannelKind::Packet && self.random.below(4) == 0 {
            let waiting = self.world.call(at, |engine, links| engine.receive_packet_later(opened.handle, links));
            if let Ok(request) = waiting {
                self.begun[at].push((request, Begun::Receive(end)));
            }
            return;
        }
        let received = match opened.kind {
            ChannelKind::Packet => self.world.receive(at, opened.handle),
            ChannelKind::Scalar => {
                let scalar = self.world.receive_scalar(at, opened.handle, 8);
                scalar.map(|scalar| scalar.map(|value| value.to_le_bytes().to_vec()))
            }
        };
        match received {
            Ok(Some(item)) => self.came(at, end, &item),
            Ok(None) => {}
            Err(Error::ChannelInvalid) => self.all_was_received(at, end),
            Err(error) => assert_eq!(error, Error::Transmission),
        }
    }

    fn release(&mut self, at: usize, end: usize) {
        let Some(opened) = self.ends[at][end].opened.as_mut() else { return };
        opened.unreleased -= 1;
        let handle = opened.handle;
        self.world.release(at, handle, 8);
    }

    fn came(&mut self, at: usize, end: usize, item: &[u8]) {
        let value = u64::from_le_bytes(item[..8].try_into().unwrap());
        assert!(item[8..].iter().all(|byte| *byte == value as u8));
        let stream = &mut self.streams[(value >> 32) as usize];
        let number = value as u32;
        assert!(number >= stream.received, "item {number} came twice or late");
        let skipped = &stream.items[stream.received as usize..number as usize];
        assert!(stream.given_up || skipped.iter().all(|taken_back| *taken_back), "an item was lost");
        assert_eq!(stream.to, Some(self.ends[at][end].id), "an item came to another end");
        stream.received = number + 1;
        self.received += 1;
        if let Some(opened) = self.ends[at][end].opened.as_mut().filter(|opened| opened.kind == ChannelKind::Packet) {
            opened.unreleased += 1;
        }
    }

    /// A receiving end that is open says that the other one has been closed.
    fn all_was_received(&mut self, at: usize, end: usize) {
        let opened = self.ends[at][end].opened.unwrap();
        let closing = self.begun[at].iter().any(|(_, begun)| matches!(begun, Begun::Close(of) if *of == end));
        let status = self.picture(at, self.ends[at][end].id).map_or(0, |picture| picture.status);
        if closing || status & endpoint_status::OPEN == 0 {
            return;
        }
        let to = Some(self.ends[at][end].id);
        assert!(opened.receives);
        for stream in self.streams.iter_mut().filter(|stream| stream.to == to) {
            let rest = &stream.items[stream.received as usize..];
            assert!(stream.given_up || rest.iter().all(|taken_back| *taken_back), "the close came before an item");
        }
    }

    fn calamity(&mut self, at: usize) {
        let other = (at + 1 + self.random.below(NODES - 1)) % NODES;
        match self.random.below(6) {
            0..=3 => {}
            4 => {
                let loss = if self.random.below(2) == 0 { Loss::Cut } else { Loss::Gone };
                self.world.cut(at, other, loss);
                self.forget_streams(|node, peer| (node, peer) == (at, other) || (node, peer) == (other, at));
            }
            _ => {
                self.forget_streams(|node, peer| node == at || peer == at);
                self.world.kill(at);
                self.world.start(at);
                self.ends[at] = fresh(&mut self.world, at);
                self.begun[at].clear();
            }
        }
    }

    /// What was sent between these nodes may be lost; that is reported, so nobody may be told that it was all.
    fn forget_streams(&mut self, lost: impl Fn(usize, usize) -> bool) {
        let ends = self.ends.clone();
        for (node, ends) in ends.iter().enumerate() {
            for opened in ends.iter().filter_map(|end| end.opened) {
                let stream = &mut self.streams[opened.stream as usize];
                if stream.to.is_some_and(|to| lost(node, to.node().node() as usize)) {
                    stream.items.iter_mut().skip(stream.received as usize).for_each(|item| *item = true);
                }
            }
        }
    }

    /// Takes what has come of the requests of a program.
    fn collect(&mut self, at: usize) {
        for (request, begun) in self.begun[at].clone() {
            let Some(outcome) = self.world.call(at, |engine, _| engine.take_outcome(request)).unwrap() else {
                continue;
            };
            self.begun[at].retain(|(other, _)| *other != request);
            match begun {
                Begun::Connect => {}
                Begun::Open(end) => self.opened(at, end, outcome.map(|_| ())),
                Begun::Close(end) => self.closed(at, end, outcome.map(|_| ())),
                Begun::Send { stream, item } => {
                    if outcome.is_err() {
                        self.streams[stream as usize].items[item as usize] = true;
                    }
                }
                Begun::Receive(end) => {
                    if let Ok(Outcome::Packet(packet)) = outcome {
                        self.came(at, end, &bytes(&packet));
                    }
                }
            }
        }
        for end in 0..ENDS {
            let Some(opened) = self.ends[at][end].opened else { continue };
            if self.world.call(at, |engine, _| engine.channel_endpoint(opened.handle)).is_err() {
                self.over(at, end);
            }
        }
    }

    fn opened(&mut self, at: usize, end: usize, outcome: Result<(), Error>) {
        match outcome {
            Ok(()) => self.ends[at][end].opened.as_mut().unwrap().open = true,
            Err(Error::RequestCancelled) => {}
            Err(error) => {
                assert!(matches!(error, Error::ChannelType | Error::ChannelDirection | Error::Transmission), "{error}");
                self.ends[at][end].opened = None;
            }
        }
    }

    fn closed(&mut self, at: usize, end: usize, outcome: Result<(), Error>) {
        match outcome {
            Ok(()) => self.over(at, end),
            Err(error) => assert_eq!(error, Error::RequestCancelled),
        }
    }

    /// An opening is no more. What was sent to it and not read has been dropped.
    fn over(&mut self, at: usize, end: usize) {
        let End { id, opened } = self.ends[at][end];
        self.ends[at][end].opened = None;
        if opened.is_some_and(|opened| opened.receives && opened.open) {
            for stream in self.streams.iter_mut().filter(|stream| stream.to == Some(id)) {
                stream.items.fill(true);
            }
        }
    }

    fn picture(&mut self, at: usize, endpoint: EndpointId) -> Option<ChannelPicture> {
        let picture = self.world.call(at, |engine, links| engine.picture(0, links));
        let part = Part::decode(&picture).unwrap();
        assert_eq!(part.next, None);
        part.channels.into_iter().find(|channel| channel.endpoint == endpoint)
    }

    fn settle(&mut self) {
        loop {
            for at in 0..NODES {
                self.collect(at);
            }
            let choice = self.random.below(1000);
            if !self.world.step(choice) {
                break;
            }
        }
        for at in 0..NODES {
            self.collect(at);
            let exist = self.world.call(at, |engine, _| engine.requests());
            assert_eq!(exist, self.begun[at].len(), "a request that no program has: {:?}", self.begun[at]);
        }
        self.ends_name_each_other();
    }

    /// Unless an end is open and has been told that the other one is lost.
    fn ends_name_each_other(&mut self) {
        for at in 0..NODES {
            for end in 0..ENDS {
                let Some(mine) = self.picture(at, self.ends[at][end].id) else { continue };
                let peer = mine.other.node().node() as usize;
                let theirs = self.picture(peer, mine.other);
                if theirs.is_some_and(|theirs| theirs.other == mine.endpoint) {
                    let (mine, theirs) = (role(&mine), role(&theirs.unwrap()));
                    assert!(mine.0 == theirs.0 && mine.1 != theirs.1, "ends of different channels");
                } else {
                    let opened = self.ends[at][end].opened.expect("a program has an end that is only connected here");
                    assert!(opened.open, "{mine:?} {theirs:?}");
                }
            }
        }
    }

    /// Brings every end back to what it was at first.
    fn end(&mut self) {
        self.settle();
        for _ in 0..4 {
            for at in 0..NODES {
                for end in 0..ENDS {
                    self.advance(at, end);
                }
                self.settle();
            }
        }
        for at in 0..NODES {
            for (request, _) in core::mem::take(&mut self.begun[at]) {
                self.world.call(at, |engine, links| engine.drop_request(request, links));
            }
        }
        for at in 0..NODES {
            for end in 0..ENDS {
                let id = self.ends[at][end].id;
                let deleted = self.world.call(at, |engine, links| engine.delete_endpoint(id, links));
                assert_eq!(deleted, Ok(()), "{:?} {:?}", self.ends[at][end], self.begun[at]);
            }
            assert_eq!(self.world.call(at, |engine, _| engine.requests()), 0, "requests leak");
            let counters = self.world.call(at, |engine, _| engine.counters());
            let refused = (counters.contradictory, counters.overruns, counters.malformed, counters.not_theirs);
            assert_eq!(refused, (0, 0, 0, 0), "nobody breaks the rules here");
        }
    }

    /// One step towards being as new: connected ends are opened, open ones read to the end and closed.
    fn advance(&mut self, at: usize, end: usize) {
        let End { id, opened } = self.ends[at][end];
        match (opened, self.picture(at, id)) {
            (None, Some(picture)) => {
                let (kind, receives) = role(&picture);
                if let Ok((handle, request)) = self.world.try_open(at, kind, receives, id) {
                    let stream = self.streams.len() as u32;
                    self.streams.push(Stream::default());
                    self.begun[at].push((request, Begun::Open(end)));
                    let opened = Opened { kind, receives, handle, stream, unreleased: 0, open: false };
                    self.ends[at][end].opened = Some(opened);
                }
            }
            (Some(opened), _) if opened.open => {
                for _ in 0..600 {
                    self.collect(at);
                    self.receive(at, end);
                    let choice = self.random.below(1000);
                    self.world.step(choice);
                }
                self.close(at, end);
            }
            _ => {}
        }
    }
}

fn fresh(world: &mut World, at: usize) -> [End; ENDS] {
    [(); ENDS].map(|()| End { id: world.create(at), opened: None })
}

fn role(picture: &ChannelPicture) -> (ChannelKind, bool) {
    let kind =
        if picture.status & endpoint_status::SCALAR_CHANNEL != 0 { ChannelKind::Scalar } else { ChannelKind::Packet };
    (kind, picture.status & endpoint_status::RECEIVE != 0)
}

/// Runs programs with these seeds: how much they received, and how many connections they gave up.
fn run(seeds: core::ops::Range<u64>, gives_up: bool) -> (usize, usize) {
    let (mut received, mut gave_up) = (0, 0);
    for seed in seeds {
        let run = || {
            let mut programs = Programs { gives_up, ..Programs::new(seed) };
            for step in 0..STEPS {
                programs.act();
                if step % 100 == 99 {
                    programs.settle();
                }
            }
            programs.end();
            (programs.received, programs.gave_up)
        };
        let counts = std::panic::catch_unwind(run).unwrap_or_else(|_| panic!("seed {seed}"));
        received += counts.0;
        gave_up += counts.1;
    }
    (received, gave_up)
}

#[test]
fn random_programs() {
    let (received, _) = run(SEEDS, false);
    assert!(received > 30 * SEEDS.count(), "only {received} items came: the test tests little");
}

#[test]
fn random_programs_that_give_connections_up() {
    let (received, gave_up) = run(SEEDS, true);
    assert!(received > 10 * SEEDS.count(), "only {received} items came: the test tests little");
    assert!(gave_up > SEEDS.count(), "only {gave_up} connections were given up");
}

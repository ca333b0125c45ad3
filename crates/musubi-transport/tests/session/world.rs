//! Two sessions, the connections between them, and what has been sent and has come.

use std::collections::VecDeque;

use musubi_mcapi::engine::frame::{Header, Kind};
use musubi_transport::frame::Kinds;
use musubi_transport::links::{NoBlock, Payload, Report, Sent};
use musubi_transport::session::{Broken, Greeting, Hello, Identity, Session, State};
use musubi_transport::topology::Network;
use musubi_transport::{NodeId, Priority};

/// MCAPI's frames, in every class that there is.
pub static KINDS: Kinds =
    Kinds { least_urgent: Priority::LEAST_URGENT, shapes: musubi_mcapi::engine::frame::KINDS.shapes };

/// One direction of a connection.
#[derive(Default)]
pub struct Stream {
    pub bytes: VecDeque<u8>,
    /// Its writer has closed: what is in it may still be read.
    pub closed: bool,
}

/// A connection that somebody dialed.
pub struct Connection {
    pub dialer: usize,
    /// From each side to the other.
    pub streams: [Stream; 2],
    pub greeting: Option<Greeting>,
}

/// Two nodes and all connections between them.
pub struct World {
    pub now_ns: u64,
    pub sessions: [Session; 2],
    /// The connection that each session uses.
    pub used: [Option<usize>; 2],
    pub connections: Vec<Connection>,
    /// By side and class: numbers that were taken in the current link, and how many of them have come.
    pub sent: [[Vec<u64>; Priority::COUNT]; 2],
    pub came: [[usize; Priority::COUNT]; 2],
    pub next: u64,
    pub downs: usize,
    /// Most bytes that are made ready at a time.
    pub ready_bytes: usize,
}

pub fn identity(side: usize, incarnation: u32) -> Identity {
    let node = NodeId::new(1, side as u32).unwrap();
    Identity { system: "test".into(), hash: 7, node, incarnation }
}

pub fn network() -> Network {
    Network { piece_bytes: 300, window_bytes: 20_000, ..Network::default() }
}

pub fn session(side: usize, incarnation: u32) -> Session {
    Session::new(&identity(side, incarnation), identity(1 - side, 0).node, &network(), &KINDS)
}

pub fn header(class: u8, length: usize, value: u64) -> Header {
    let (class, length) = (Priority::new(class).unwrap(), length as u32);
    Header { class, length, tag: value as u32, value: (value >> 32) as u32, ..Header::new(Kind::Packet as u8) }
}

/// Bytes that tell which frame they belong to.
pub fn payload(value: u64, length: usize) -> Vec<u8> {
    (0..length).map(|at| (value as usize * 31 + at) as u8).collect()
}

pub fn bytes_of(payload: &Payload<NoBlock>) -> &[u8] {
    match payload {
        Payload::Short(short) => short.bytes(),
        Payload::Owned(bytes) => bytes,
        Payload::Lent(block) => match *block {},
    }
}

impl World {
    pub fn new() -> World {
        World::of(&network(), 1000)
    }

    pub fn of(network: &Network, ready_bytes: usize) -> World {
        let session = |side| Session::new(&identity(side, 1), identity(1 - side, 0).node, network, &KINDS);
        World {
            now_ns: 0,
            sessions: [session(0), session(1)],
            used: [None, None],
            connections: Vec::new(),
            sent: Default::default(),
            came: Default::default(),
            next: 0,
            downs: 0,
            ready_bytes,
        }
    }

    pub fn dial(&mut self, side: usize) {
        if self.sessions[side].state() != State::Disconnected {
            return;
        }
        let greeting = Some(Greeting::new());
        self.connections.push(Connection { dialer: side, streams: Default::default(), greeting });
        self.used[side] = Some(self.connections.len() - 1);
        self.sessions[side].dial(self.now_ns);
        self.write(side, usize::MAX);
    }

    pub fn close(&mut self, side: usize, connection: usize) {
        self.connections[connection].streams[side].closed = true;
        if self.used[side] == Some(connection) {
            self.used[side] = None;
        }
    }

    pub fn send(&mut self, side: usize, class: u8, length: usize) {
        let (header, payload) = (header(class, length, self.next), payload(self.next, length));
        let sent = match self.next.is_multiple_of(2) {
            true => self.sessions[side].enqueue(&header, &payload),
            false => self.sessions[side].enqueue_shared(&header, &payload.into()),
        };
        match sent {
            Sent::Numbered(_) => self.sent[side][usize::from(class)].push(self.next),
            Sent::Full | Sent::NoLink => {}
            Sent::Delivered => unreachable!(),
        }
        self.next += 1;
    }

    /// Writes up to so many bytes.
    pub fn write(&mut self, side: usize, most: usize) {
        let Some(connection) = self.used[side] else { return };
        let filled = self.sessions[side].fill(self.now_ns, most.min(self.ready_bytes));
        assert_eq!(filled, self.ready(side), "what is ready is what there is to write");
        if let Some(only) = self.sessions[side].only_frame() {
            assert!(self.sessions[side].slices().eq(only.into_iter().filter(|part| !part.is_empty())));
        }
        let mut left = most;
        let mut written = 0;
        for slice in self.sessions[side].slices() {
            let part = &slice[..slice.len().min(left)];
            self.connections[connection].streams[side].bytes.extend(part);
            (left, written) = (left - part.len(), written + part.len());
        }
        let before = self.sessions[side].counts().bytes_sent;
        self.sessions[side].consumed(self.now_ns, written);
        assert_eq!(self.ready(side), filled - written);
        assert!(filled == written || self.sessions[side].has_output());
        assert_eq!(self.sessions[side].counts().bytes_sent, before + written as u64);
    }

    /// Bytes that are ready to be written.
    pub fn ready(&self, side: usize) -> usize {
        self.sessions[side].slices().map(<[u8]>::len).sum()
    }

    /// Lets up to so many bytes of a connection arrive at a side.
    pub fn read(&mut self, side: usize, connection: usize, most: usize) {
        let stream = &mut self.connections[connection].streams[1 - side];
        let mut count = most.min(stream.bytes.len());
        if let Some(greeting) = &self.connections[connection].greeting
            && self.connections[connection].dialer != side
        {
            count = count.min(greeting.missing());
        }
        let stream = &mut self.connections[connection].streams[1 - side];
        let bytes: Vec<u8> = stream.bytes.drain(..count).collect();
        let over = stream.closed && stream.bytes.is_empty();
        if self.connections[connection].dialer != side && self.connections[connection].greeting.is_some() {
            self.greet(side, connection, &bytes);
        } else if self.used[side] == Some(connection) {
            let result = self.input(side, &bytes);
            assert_ne!(result, Err(Broken::Protocol));
            if result.is_err() || self.sessions[side].state() == State::Ended {
                self.write(side, usize::MAX);
                self.close(side, connection);
            }
        }
        if over && self.used[side] == Some(connection) {
            self.sessions[side].disconnected(self.now_ns);
            self.close(side, connection);
        }
        self.reports(side);
    }

    /// By turns as bytes, and read to where they belong.
    pub fn input(&mut self, side: usize, bytes: &[u8]) -> Result<(), Broken> {
        let session = &mut self.sessions[side];
        let Some(parts) = session.landing() else { return session.input(self.now_ns, bytes) };
        let mut rest = bytes;
        for part in parts {
            let (here, behind) = rest.split_at(rest.len().min(part.len()));
            part[..here.len()].copy_from_slice(here);
            rest = behind;
        }
        session.landed(self.now_ns, bytes.len() - rest.len())?;
        session.input(self.now_ns, rest)
    }

    pub fn greet(&mut self, side: usize, connection: usize, bytes: &[u8]) {
        let greeting = self.connections[connection].greeting.as_mut().unwrap();
        let Some(hello) = greeting.input(bytes).unwrap() else { return };
        self.connections[connection].greeting = None;
        match self.sessions[side].accept(self.now_ns, &hello) {
            Ok(()) => {
                if let Some(former) = self.used[side].take() {
                    self.close(side, former);
                }
                self.used[side] = Some(connection);
                self.write(side, usize::MAX);
            }
            Err(reason) => {
                let refusal = Hello::refusal(&identity(side, 1), hello.identity.node, reason);
                self.connections[connection].streams[side].bytes.extend(refusal.encode());
                self.close(side, connection);
            }
        }
    }

    pub fn reports(&mut self, side: usize) {
        while let Some(report) = self.sessions[side].next_report() {
            match report {
                Report::Frame { header, payload: came, .. } => {
                    let value = u64::from(header.tag) | u64::from(header.value) << 32;
                    let class = header.class.index();
                    let place = self.came[side][class];
                    assert_eq!(self.sent[1 - side][class].get(place), Some(&value), "side {side} class {class}");
                    assert_eq!(bytes_of(&came), payload(value, header.length as usize));
                    self.came[side][class] += 1;
                }
                Report::Down { .. } => self.downs += 1,
                _ => {}
            }
        }
    }

    pub fn cut(&mut self) {
        for connection in &mut self.connections {
            for stream in &mut connection.streams {
                stream.bytes.clear();
                stream.closed = true;
            }
        }
        for side in 0..2 {
            if self.used[side].take().is_some() {
                self.sessions[side].disconnected(self.now_ns);
            }
        }
    }

    /// Everything that can still happen happens.
    pub fn settle(&mut self) {
        for round in 0..10_000 {
            if self.used == [None, None] || self.sessions.iter().all(|session| session.state() == State::Disconnected) {
                self.dial(round % 2);
            }
            for side in 0..2 {
                self.sessions[side].flush();
                self.write(side, 1000);
                for connection in 0..self.connections.len() {
                    self.read(side, connection, 1000);
                }
            }
            if self.sessions.iter().all(|session| session.state() == State::Live && session.unacknowledged_bytes() == 0)
            {
                return;
            }
        }
        let states = self.sessions.each_ref().map(|session| (session.state(), session.unacknowledged_bytes()));
        panic!("it never settles: {states:?}");
    }

    /// A connection again after a cut, and what may go on it now; what a rule holds stays.
    pub fn settle_held(&mut self) {
        for _ in 0..100 {
            self.dial(0);
            for side in 0..2 {
                self.write(side, usize::MAX);
                for connection in 0..self.connections.len() {
                    self.read(1 - side, connection, usize::MAX);
                }
                self.sessions[1 - side].flush();
            }
            if self.sessions.iter().all(|session| session.state() == State::Live && !session.has_output()) {
                return;
            }
        }
        panic!("it never settles");
    }
}

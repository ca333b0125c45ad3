//! An engine and a linked peer that sends any frames: no panic, memory within the limits, every call ends.
//!
//! How it works: the input is a row of calls of the program and frames of the peer; a frame's numbers are drawn from those
//! that exist, so that many of them mean something.
#![no_main]

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use musubi_fuzz::nodes::{Peer, identity};
use musubi_mcapi::EndpointId;
use musubi_mcapi::engine::frame::{Header, KINDS, Kind};
use musubi_mcapi::engine::{ChannelHandle, ChannelKind, Engine, RequestId};
use musubi_transport::links::{Loss, Payload, Report, Short};

#[derive(Arbitrary, Debug)]
enum Step {
    Frame { head: [u8; 8], from: Name, to: Name, tag: u8, value: u8, payload: Vec<u8> },
    Raw { head: [u8; 24] },
    Create,
    Delete { at: u8 },
    Get { port: u8 },
    Send { from: u8, to: Name, length: u8, later: bool },
    Receive { at: u8, later: bool },
    Connect { from: Name, to: Name, scalar: bool },
    Open { at: u8, receives: bool, scalar: bool },
    Close { handle: u8, receives: bool, scalar: bool },
    SendPacket { handle: u8 },
    ReceivePacket { handle: u8 },
    Cancel { request: u8 },
    Down { gone: bool },
    Acknowledged { number: u8 },
    Room,
    Tick,
}

/// An endpoint of ours, of the peer's, or anything.
#[derive(Arbitrary, Clone, Copy, Debug)]
enum Name {
    Ours(u8),
    Theirs(u8),
    Any(u32),
}

struct World {
    engine: Engine<musubi_transport::links::NoBlock>,
    peer: Peer,
    ours: Vec<EndpointId>,
    handles: Vec<ChannelHandle>,
    requests: Vec<RequestId>,
}

impl World {
    fn bits(&self, name: Name) -> u32 {
        match name {
            Name::Ours(at) => self.ours.get(usize::from(at) % self.ours.len().max(1)).map_or(0, |id| id.bits()),
            Name::Theirs(slot) => EndpointId::new(identity(1).node, u16::from(slot % 4), 1).bits(),
            Name::Any(bits) => bits,
        }
    }

    fn endpoint(&self, name: Name) -> EndpointId {
        EndpointId::from_bits(self.bits(name)).unwrap_or(EndpointId::new(identity(1).node, 0, 1))
    }

    fn our(&self, at: u8) -> EndpointId {
        self.endpoint(Name::Ours(at))
    }

    fn request(&mut self, request: Result<RequestId, musubi_mcapi::Error>) {
        self.requests.extend(request.ok());
    }

    fn handle(&self, at: u8) -> ChannelHandle {
        self.handles.get(usize::from(at) % self.handles.len().max(1)).copied().unwrap_or(ChannelHandle(u32::from(at)))
    }

    fn frame(&mut self, header: Option<Header>, payload: &[u8]) {
        let Some(header) = header else { return };
        let bytes: Vec<u8> = payload.iter().copied().cycle().take((header.length as usize).min(2000)).collect();
        let header = Header { length: bytes.len() as u32, ..header };
        let payload = Short::new(&bytes).map_or(Payload::Owned(bytes), Payload::Short);
        self.engine.report(2, Report::Frame { peer: identity(1).node, header, payload }, &mut self.peer);
    }

    /// What the peer and the link do; the rest is the program's.
    fn step(&mut self, step: Step) {
        match step {
            Step::Frame { head, from, to, tag, value, payload } => {
                let mut bytes = [0; Header::BYTES];
                bytes[..8].copy_from_slice(&head);
                let at = |bits: u32| bits.to_le_bytes();
                // A tag or value is a small number, or one of ours.
                let tag = self.requests.get(usize::from(tag)).map_or(u32::from(tag), |request| request.0);
                bytes[0] = 1 + head[0] % 22;
                bytes[1] = head[1] % 5;
                for (place, word) in [self.bits(from), self.bits(to), tag, u32::from(value)].into_iter().enumerate() {
                    bytes[8 + 4 * place..][..4].copy_from_slice(&at(word));
                }
                bytes[4..8].copy_from_slice(&at(payload.len() as u32));
                self.frame(Header::decode(&bytes, &KINDS), &payload);
            }
            Step::Raw { head } => self.frame(Header::decode(&head, &KINDS), &[7]),
            Step::Down { gone } => {
                let loss = if gone { Loss::Gone } else { Loss::Cut };
                self.engine.report(3, Report::Down { peer: identity(1).node, loss }, &mut self.peer);
                self.up();
            }
            Step::Acknowledged { number } => {
                let number = u64::from(number);
                self.engine.report(3, Report::Acknowledged { peer: identity(1).node, number }, &mut self.peer);
            }
            Step::Room => self.engine.report(3, Report::Room { peer: identity(1).node }, &mut self.peer),
            Step::Tick => drop(self.engine.tick(4, &mut self.peer)),
            step => self.call(step),
        }
    }

    /// What the program does.
    fn call(&mut self, step: Step) {
        match step {
            Step::Create => {
                let created = self.engine.create_endpoint(None, &mut self.peer);
                self.ours.extend(created.ok().filter(|_| self.ours.len() < 8));
            }
            Step::Delete { at } => drop(self.engine.delete_endpoint(self.our(at), &mut self.peer)),
            Step::Get { port } => {
                let request = self.engine.get_endpoint((0, 1), u32::from(port), &mut self.peer);
                self.request(request);
            }
            Step::Send { from, to, length, later } => {
                let (from, to, bytes) = (self.our(from), self.endpoint(to), vec![1; usize::from(length)]);
                if later {
                    let request = self.engine.send_message_later(from, to, 1, bytes, &mut self.peer);
                    self.request(request);
                } else {
                    let _ = self.engine.send_message(from, to, 1, &bytes, &mut self.peer);
                }
            }
            Step::Receive { at, later: true } => {
                let request = self.engine.receive_message_later(self.our(at), &mut self.peer);
                self.request(request);
            }
            Step::Receive { at, later: false } => drop(self.engine.receive_message(self.our(at), &mut self.peer)),
            Step::Cancel { request } => {
                if let Some(request) = self.requests.get(usize::from(request)).copied() {
                    let _ = self.engine.cancel(request, &mut self.peer);
                    let _ = self.engine.take_outcome(request);
                }
            }
            step => self.call_channel(step),
        }
    }

    fn call_channel(&mut self, step: Step) {
        let kind = |scalar: bool| if scalar { ChannelKind::Scalar } else { ChannelKind::Packet };
        match step {
            Step::Connect { from, to, scalar } => {
                let (from, to) = (self.endpoint(from), self.endpoint(to));
                let request = self.engine.connect(kind(scalar), from, to, &mut self.peer);
                self.request(request);
            }
            Step::Open { at, receives, scalar } => {
                let opened = self.engine.open(kind(scalar), receives, self.our(at), &mut self.peer);
                if let Ok((handle, request)) = opened {
                    self.handles.push(handle);
                    self.requests.push(request);
                }
            }
            Step::Close { handle, receives, scalar } => {
                let request = self.engine.close(kind(scalar), receives, self.handle(handle), &mut self.peer);
                self.request(request);
            }
            Step::SendPacket { handle } => {
                let handle = self.handle(handle);
                let _ = self.engine.send_packet(handle, &[1; 100], &mut self.peer);
                let _ = self.engine.send_scalar(handle, 4, 7, &mut self.peer);
                let request = self.engine.send_packet_later(handle, vec![2; 100], &mut self.peer);
                self.request(request);
            }
            Step::ReceivePacket { handle } => {
                let handle = self.handle(handle);
                if let Ok(Some(payload)) = self.engine.receive_packet(handle, &mut self.peer) {
                    self.engine.packet_released(handle, payload.len(), &mut self.peer);
                }
                let _ = self.engine.receive_scalar(handle, 4, &mut self.peer);
            }
            _ => {}
        }
    }

    fn up(&mut self) {
        self.peer.begin();
        let peer = identity(1).node;
        self.engine.report(1, Report::Up { peer, incarnation: 1 }, &mut self.peer);
        // None of its endpoints is connected: messages may go.
        let (header, payload) = (Header::new(Kind::Connected as u8), Payload::Short(Short::EMPTY));
        self.engine.report(1, Report::Frame { peer, header, payload }, &mut self.peer);
    }
}

fuzz_target!(|steps: Vec<Step>| {
    let engine = Engine::new(identity(0).node, 1);
    let (ours, handles, requests) = (Vec::new(), Vec::new(), Vec::new());
    let mut world = World { engine, peer: Peer::default(), ours, handles, requests };
    world.up();
    for step in steps.into_iter().take(400) {
        world.step(step);
    }
    world.engine.end();
});

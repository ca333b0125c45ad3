//! What the data path of a channel costs in the engine, without links: to be run alone and optimized,
//! `cargo test --release -p musubi-transport --test channels cost -- --ignored --nocapture`.

use std::time::{Duration, Instant};

use musubi_mcapi::engine::{ChannelKind, Engine, Sending};
use musubi_transport::NodeId;
use musubi_transport::frame::Header;
use musubi_transport::links::{Links, NoBlock, Payload, Report, Sent, Short};

use super::world::node;

const ITEMS: usize = 2_000_000;

/// Links that put what is sent into a list.
#[derive(Default)]
struct List {
    frames: Vec<(Header, Short)>,
}

impl Links for List {
    type Block = NoBlock;

    fn send(&mut self, _: NodeId, header: &Header, payload: &[u8]) -> Sent {
        self.frames.push((*header, Short::new(payload).unwrap()));
        Sent::Delivered
    }
    fn want(&mut self, _: NodeId, _: bool) {}
    fn knows(&self, _: NodeId) -> bool {
        true
    }
}

struct Side {
    engine: Engine<NoBlock>,
    list: List,
}

fn deliver(from: &mut Side, to: &mut Side) {
    let peer = from.engine.me();
    for (header, payload) in from.list.frames.drain(..) {
        to.engine.report(0, Report::Frame { peer, header, payload: Payload::Short(payload) }, &mut to.list);
    }
}

fn sides() -> (Side, Side) {
    let side = |index: u32| Side { engine: Engine::new(node(index as usize), index + 1), list: List::default() };
    let (mut a, mut b) = (side(0), side(1));
    a.engine.report(0, Report::Up { peer: node(1), incarnation: 2 }, &mut a.list);
    b.engine.report(0, Report::Up { peer: node(0), incarnation: 1 }, &mut b.list);
    deliver(&mut a, &mut b);
    deliver(&mut b, &mut a);
    (a, b)
}

/// Nanoseconds an item for sending, for taking the frame in, for receiving.
fn measure(kind: ChannelKind) -> [f64; 3] {
    let (mut a, mut b) = sides();
    // Others that are idle: they must not cost anything.
    for _ in 0..500 {
        a.engine.create_endpoint(None, &mut a.list).unwrap();
        b.engine.create_endpoint(None, &mut b.list).unwrap();
    }
    let from = a.engine.create_endpoint(None, &mut a.list).unwrap();
    let to = b.engine.create_endpoint(None, &mut b.list).unwrap();
    a.engine.connect(kind, from, to, &mut a.list).unwrap();
    let (sending, _) = a.engine.open(kind, false, from, &mut a.list).unwrap();
    let (receiving, _) = b.engine.open(kind, true, to, &mut b.list).unwrap();
    for _ in 0..4 {
        deliver(&mut a, &mut b);
        deliver(&mut b, &mut a);
    }
    let batch = if kind == ChannelKind::Scalar { 128 } else { 8 };
    let mut spent = [Duration::ZERO; 3];
    for _ in 0..ITEMS / batch {
        let begin = Instant::now();
        for n in 0..batch as u64 {
            let sent = match kind {
                ChannelKind::Scalar => a.engine.send_scalar(sending, 8, n, &mut a.list),
                ChannelKind::Packet => a.engine.send_packet(sending, &[n as u8; 64], &mut a.list),
            };
            assert_eq!(sent, Ok(Sending::Done));
        }
        let sent = Instant::now();
        deliver(&mut a, &mut b);
        let delivered = Instant::now();
        for n in 0..batch as u64 {
            match kind {
                ChannelKind::Scalar => {
                    assert_eq!(b.engine.receive_scalar(receiving, 8, &mut b.list), Ok(Some(n)));
                }
                ChannelKind::Packet => {
                    assert!(b.engine.receive_packet(receiving, &mut b.list).unwrap().is_some());
                    b.engine.packet_released(receiving, 64, &mut b.list);
                }
            }
        }
        let received = Instant::now();
        deliver(&mut b, &mut a);
        for (sum, part) in spent.iter_mut().zip([sent - begin, delivered - sent, received - delivered]) {
            *sum += part;
        }
    }
    spent.map(|spent| spent.as_nanos() as f64 / ITEMS as f64)
}

#[test]
#[ignore = "a measurement"]
fn cost_of_an_item() {
    for kind in [ChannelKind::Scalar, ChannelKind::Packet] {
        let [send, frame, receive] = measure(kind);
        println!("{kind:?}: send {send:.1} ns, frame in {frame:.1} ns, receive {receive:.1} ns");
    }
}

//! What a message of one byte costs in the engines of its sender and receiver, without links: `cargo run --release -p
//! musubi-transport --example message_cost`.
#![forbid(unsafe_code)]

use musubi_mcapi::engine::{Engine, Sending};
use musubi_transport::NodeId;
use musubi_transport::frame::Header;
use musubi_transport::links::{Links, NoBlock, Payload, Report, Sent, Short};

/// Keeps the last frames that were sent.
struct Direct(Vec<Header>);

impl Links for Direct {
    type Block = NoBlock;
    fn send(&mut self, _: NodeId, header: &Header, _: &[u8]) -> Sent {
        self.0.push(*header);
        Sent::Delivered
    }
    fn want(&mut self, _: NodeId, _: bool) {}
    fn knows(&self, _: NodeId) -> bool {
        true
    }
}

const MESSAGES: u32 = 10_000_000;

fn main() {
    let nodes = [NodeId::new(0, 0).unwrap(), NodeId::new(0, 1).unwrap()];
    let mut engines = nodes.map(|node| Engine::<NoBlock>::new(node, 1));
    let mut links = [Direct(Vec::new()), Direct(Vec::new())];
    for (at, other) in [(0, 1), (1, 0)] {
        engines[at].report(0, Report::Up { peer: nodes[other], incarnation: 1 }, &mut links[at]);
    }
    // What each says of its connected endpoints: that there are none.
    for (at, other) in [(0, 1), (1, 0)] {
        while let Some(header) = links[at].0.pop() {
            let payload = Payload::Short(Short::EMPTY);
            engines[other].report(0, Report::Frame { peer: nodes[at], header, payload }, &mut links[other]);
        }
    }
    let from = engines[0].create_endpoint(Some(1), &mut links[0]).unwrap();
    let to = engines[1].create_endpoint(Some(1), &mut links[1]).unwrap();
    let begin = std::time::Instant::now();
    for number in 0..MESSAGES {
        let byte = [number as u8];
        assert_eq!(engines[0].send_message(from, to, 0, &byte, &mut links[0]), Ok(Sending::Done));
        let header = links[0].0.pop().unwrap();
        let payload = Payload::Short(Short::new(&byte).unwrap());
        engines[1].report(1, Report::Frame { peer: nodes[0], header, payload }, &mut links[1]);
        let message = engines[1].receive_message(to, &mut links[1]).unwrap().unwrap();
        assert_eq!(message.payload.len(), 1);
        while let Some(header) = links[1].0.pop() {
            let payload = Payload::Short(Short::EMPTY);
            engines[0].report(1, Report::Frame { peer: nodes[1], header, payload }, &mut links[0]);
        }
    }
    println!("{:.1} ns a message", begin.elapsed().as_nanos() as f64 / f64::from(MESSAGES));
}

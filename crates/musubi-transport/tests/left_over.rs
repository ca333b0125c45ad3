//! Reports that a thread has read from the kernel and not taken in: whoever sleeps on the links is told of them.
#![cfg(feature = "std")]

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use musubi_mcapi::engine::frame::{Header, Kind, class_of};
use musubi_mcapi::process::Running as Node;
use musubi_mcapi::{EndpointId, Error, NodeId};
use musubi_transport::carrier::{Describe, Drive, Frames};
use musubi_transport::links::{NoBlock, Payload, Report, Sent, Short};
use musubi_transport::runtime::{Deadline, DeadlineExt, Options};
use musubi_transport::topology::Topology;

/// More than one look takes in.
const MANY: usize = 300;

type Queue = Arc<Mutex<VecDeque<Report<NoBlock>>>>;

/// Links whose only descriptor is one that somebody else has just emptied: what is in `kernel` wakes nobody.
#[derive(Debug)]
struct Scripted {
    kernel: Queue,
    read: VecDeque<Report<NoBlock>>,
}

impl Frames for Scripted {
    type Block = NoBlock;

    fn send(&mut self, _: u64, _: NodeId, _: &Header, _: &[u8]) -> Sent {
        Sent::Delivered
    }

    fn next_report(&mut self, _: u64) -> Option<Report<NoBlock>> {
        self.read.pop_front()
    }
}

impl Drive for Scripted {
    fn want(&mut self, _: u64, _: NodeId, _: bool) {}

    fn poll(&mut self, _: u64) {
        self.read.extend(self.kernel.lock().unwrap().drain(..));
    }

    fn ready(&mut self, _: u64, _: u64) {}

    fn flush(&mut self, _: u64) {}

    fn prepare_sleep(&mut self) -> bool {
        !self.read.is_empty()
    }

    fn finish_sleep(&mut self) {}

    fn holds_reports(&self) -> bool {
        !self.read.is_empty()
    }

    fn deadline_ns(&self) -> u64 {
        u64::MAX
    }

    fn tick(&mut self, _: u64) {}

    fn leave(&mut self, _: u64) {}
}

impl Describe for Scripted {}

fn receive(node: &Node, at: EndpointId, deadline: Deadline) -> Result<usize, Error> {
    let message = node.wait_for(deadline, |engine, links| engine.receive_message(at, links).transpose())??;
    Ok(message.payload.len())
}

#[test]
fn a_sleeper_is_told_of_what_another_thread_has_left() {
    let (me, peer) = (NodeId::new(0, 1).unwrap(), NodeId::new(0, 2).unwrap());
    let kernel = Queue::default();
    kernel.lock().unwrap().push_back(Report::Up { peer, incarnation: 1 });
    let of_node = Arc::clone(&kernel);
    let links = move |_: &_| Ok(Box::new(Scripted { kernel: of_node, read: VecDeque::new() }) as Box<_>);
    let node = Node::start_with(Arc::new(Topology::single_machine()), me, Options::default(), links).unwrap();
    let create = || node.with(|engine, links| engine.create_endpoint(None, links)).unwrap().unwrap();
    let (inbox, other) = (create(), create());
    assert_eq!(receive(&node, other, Deadline::Poll), Err(Error::Timeout));
    thread::scope(|scope| {
        let sleeper = scope.spawn(|| receive(&node, inbox, Deadline::after(Duration::from_secs(10))));
        thread::sleep(Duration::from_millis(50));
        let from = EndpointId::new(peer, 1, 1);
        let header = Header {
            class: class_of(0),
            length: 4,
            from: from.bits(),
            to: inbox.bits(),
            ..Header::new(Kind::Message as u8)
        };
        let nothing_new = (0..MANY).map(|_| Report::Acknowledged { peer, number: 77 });
        let payload = Payload::Short(Short::new(b"text").unwrap());
        let begin = Instant::now();
        kernel.lock().unwrap().extend(nothing_new.chain([Report::Frame { peer, header, payload }]));
        assert_eq!(receive(&node, other, Deadline::Poll), Err(Error::Timeout));
        assert_eq!(sleeper.join().unwrap(), Ok(4));
        assert!(begin.elapsed() < Duration::from_secs(5), "it was found at the deadline only");
    });
}

//! Nodes whose classes have rules, over TCP and over shared memory, by counts.

#[path = "../../musubi-transport/tests/loopback/mod.rs"]
mod loopback;

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use musubi_mcapi::engine::frame::class_of;
use musubi_mcapi::{Deadline, DeadlineExt, Endpoint, Node, NodeId, Topology};
use musubi_transport::topology::{ClassRule, Place};
use musubi_transport::{FilterRule, Regulation};

const PORT: u32 = 40;
/// The priority whose class has a rule.
const LOW: u32 = 3;

fn id(node: u32) -> NodeId {
    NodeId::new(0, node).unwrap()
}

fn soon() -> Deadline {
    Deadline::after(Duration::from_secs(60))
}

/// A name that no other test has.
fn name() -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    format!("rules-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed))
}

#[derive(Clone, Copy, Debug)]
enum Way {
    Memory,
    Tcp,
}

/// Nodes 0:1, which has the rule for its frames of priority [`LOW`], and 0:2.
fn pair(way: Way, regulation: Regulation, filter: FilterRule) -> [Node; 2] {
    let mut system = Topology { system: name(), hash: 1, ..Topology::single_machine() };
    for node in [1, 2] {
        let place = match way {
            Way::Memory => Place { shared_memory: Some(String::new()), ..Place::default() },
            Way::Tcp => Place { tcp: Some(loopback::own_address()), ..Place::default() },
        };
        system.nodes.insert(id(node), place);
    }
    let rule = ClassRule { class: class_of(LOW as u8), regulation, filter };
    system.nodes.get_mut(&id(1)).unwrap().rules.push(rule);
    let system = Arc::new(system);
    [1, 2].map(|node| Node::initialize(&system, 0, node).unwrap())
}

/// Takes so many messages and says when each came, and its priority.
fn take(inbox: &Endpoint, count: usize) -> Vec<(Instant, u32)> {
    let message = |_| {
        let message = inbox.receive(soon()).unwrap();
        (Instant::now(), message.priority().into())
    };
    (0..count).map(message).collect()
}

/// A burst, then no more than the rate, however many are sent; the urgent ones pass.
fn is_regulated(way: Way) {
    const RATE: u32 = 50;
    const BURST: usize = 4;
    const COUNT: usize = 24;
    let regulation = Regulation { messages_per_s: RATE, messages_burst: BURST as u32, ..Regulation::NONE };
    let [sender, receiver] = pair(way, regulation, FilterRule::EACH);
    let inbox = receiver.create_endpoint(Some(PORT)).unwrap();
    let urgent_inbox = receiver.create_endpoint(Some(PORT + 1)).unwrap();
    let from = sender.create_endpoint(None).unwrap();
    let to = sender.get_endpoint((0, 2), PORT, soon()).unwrap();
    let urgent_to = sender.get_endpoint((0, 2), PORT + 1, soon()).unwrap();
    let begin = Instant::now();
    thread::scope(|scope| {
        let low = scope.spawn(|| take(&inbox, COUNT));
        let urgent = scope.spawn(|| take(&urgent_inbox, 10));
        scope.spawn(|| (0..COUNT).for_each(|_| from.send(&to, LOW, b"low", soon()).unwrap()));
        for _ in 0..10 {
            from.send(&urgent_to, 0, b"urgent", soon()).unwrap();
        }
        assert_eq!(urgent.join().unwrap().len(), 10);
        let low = low.join().unwrap();
        for (place, (came, priority)) in low.iter().enumerate() {
            let earliest = Duration::from_secs(1) * (place + 1).saturating_sub(BURST) as u32 / RATE;
            assert!(came.duration_since(begin) >= earliest, "{way:?}: message {place} after {:?}", *came - begin);
            assert_eq!(*priority, LOW);
        }
    });
}

#[test]
fn a_class_is_regulated_over_tcp() {
    is_regulated(Way::Tcp);
}

#[test]
fn a_class_is_regulated_over_shared_memory() {
    is_regulated(Way::Memory);
}

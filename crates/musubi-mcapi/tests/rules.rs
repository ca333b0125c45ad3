//! Nodes whose classes have rules, over TCP and over shared memory, by counts.

#[path = "../../musubi-transport/tests/loopback/mod.rs"]
mod loopback;

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use musubi_mcapi::engine::frame::class_of;
use musubi_mcapi::{Deadline, DeadlineExt, Endpoint, Node, NodeId, Options, Topology};
use musubi_transport::links::Links as _;
use musubi_transport::runtime;
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

/// Nodes 0:1, which has the rule for frames of priority [`LOW`], and 0:2.
fn system(way: Way, regulation: Regulation, filter: FilterRule) -> Arc<Topology> {
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
    Arc::new(system)
}

fn pair(way: Way, regulation: Regulation) -> [Node; 2] {
    let system = system(way, regulation, FilterRule::EACH);
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
    let [sender, receiver] = pair(way, regulation);
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

/// A thread that waits for something urgent is woken by a flood of another class as often as its rule says, and by what it
/// waits for at once; what wakes nobody is there all the same.
fn is_filtered(way: Way) {
    const COUNT: usize = 60;
    const INTERVAL: Duration = Duration::from_millis(400);
    let interval_ns = INTERVAL.as_nanos() as u64;
    let filter = FilterRule { interval_ns_min: interval_ns, latest_ns: interval_ns, ..FilterRule::EACH };
    let system = system(way, Regulation::NONE, filter);
    let running = runtime::Node::start(Arc::clone(&system), id(1), Options::default()).unwrap();
    let (receiver, sender) = (Node::of(running.clone()), Node::initialize(&system, 0, 2).unwrap());
    let low_inbox = receiver.create_endpoint(Some(PORT)).unwrap();
    let urgent_inbox = receiver.create_endpoint(Some(PORT + 1)).unwrap();
    let from = sender.create_endpoint(None).unwrap();
    let low_to = sender.get_endpoint((0, 1), PORT, soon()).unwrap();
    let urgent_to = sender.get_endpoint((0, 1), PORT + 1, soon()).unwrap();
    thread::scope(|scope| {
        let urgent = scope.spawn(|| urgent_inbox.receive(soon()).unwrap().to_vec());
        thread::sleep(Duration::from_millis(20));
        let (begin, woken) = (Instant::now(), running.times_woken().unwrap());
        for _ in 0..COUNT {
            from.send(&low_to, LOW, b"low", soon()).unwrap();
            thread::sleep(Duration::from_millis(2));
        }
        let (woken, elapsed) = (running.times_woken().unwrap() - woken, begin.elapsed());
        let most = 2 + elapsed.as_nanos() as u64 / interval_ns;
        let counts = running.wake_counts(class_of(LOW as u8)).unwrap();
        // Over a network they are taken in at once; in shared memory they disturb nobody.
        assert!(counts.frames == COUNT as u64 || matches!(way, Way::Memory) && counts.frames < COUNT as u64);
        assert!(counts.raised + counts.deferred <= most, "{way:?}: {counts:?} in {elapsed:?}");
        assert!(woken <= most, "{way:?}: woken {woken} times in {elapsed:?}");
        assert!(!urgent.is_finished());
        from.send(&urgent_to, 0, b"urgent", soon()).unwrap();
        assert_eq!(urgent.join().unwrap(), b"urgent");
    });
    assert_eq!(take(&low_inbox, COUNT).len(), COUNT);
    // Who waits for the class itself is told of what was put off, and not when its own time is up.
    let begin = Instant::now();
    thread::scope(|scope| {
        let low = scope.spawn(|| take(&low_inbox, 3));
        for _ in 0..3 {
            from.send(&low_to, LOW, b"low", soon()).unwrap();
            thread::sleep(Duration::from_millis(50));
        }
        assert_eq!(low.join().unwrap().len(), 3);
    });
    assert!(begin.elapsed() < Duration::from_secs(50), "{way:?}: {:?}", begin.elapsed());
    let counts = running.wake_counts(class_of(LOW as u8)).unwrap();
    let said = running.with(|_, links| links.wakes()).unwrap().unwrap();
    assert_eq!((said.frames, said.raised, said.deferred), (counts.frames, counts.raised, counts.deferred), "to tools");
    assert_eq!(said.woken, running.times_woken().unwrap());
    assert!(counts.deferred >= 1 && counts.suppressed() >= 1, "{counts:?}");
}

#[test]
fn a_class_is_filtered_over_tcp() {
    is_filtered(Way::Tcp);
}

#[test]
fn a_class_is_filtered_over_shared_memory() {
    is_filtered(Way::Memory);
}

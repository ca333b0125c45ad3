//! The cases on the host: a thread for each node, over plain memory; and several threads of one node.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Condvar, Mutex, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use musubi_core::lane::Region;
use musubi_core::mapped::Host;
use musubi_core::port::Coherence;
use musubi_mcapi::engine::Engine;
use musubi_mcapi::over::{Endpoint, Node};
use musubi_mcapi::{Error, NodeId};
use musubi_testsuite_nodes::{CASES, Setup, run};
use musubi_transport::links::NoBlock;
use musubi_transport::mapped::{self, Deadline, Options, Table};

/// Threads that ring one another, or only look.
#[derive(Debug)]
struct Threads {
    begin: Instant,
    /// How many times slower than others' the clock goes: so much longer is a rest that nothing ends.
    slowness: u32,
    bells: Vec<(Mutex<u32>, Condvar)>,
    rings: AtomicU32,
}

impl Threads {
    fn of(count: u32, slowness: u32) -> &'static Threads {
        let bells = (0..count).map(|_| Default::default()).collect();
        Box::leak(Box::new(Threads { begin: Instant::now(), slowness, bells, rings: AtomicU32::new(0) }))
    }

    fn wake(&self, place: usize) {
        let (rung, bell) = &self.bells[place];
        *rung.lock().unwrap() += 1;
        bell.notify_all();
    }
}

/// What a node's thread is to the others.
#[derive(Debug)]
struct Seat {
    threads: &'static Threads,
    place: usize,
    sleeps: bool,
}

impl Coherence for Seat {}

impl Host for Seat {
    fn now_ns(&self) -> u64 {
        (self.threads.begin.elapsed() / self.threads.slowness).as_nanos() as u64
    }

    fn has_common_clock(&self) -> bool {
        true
    }

    fn ring(&self, participant: u16) {
        self.threads.rings.fetch_add(1, Ordering::Relaxed);
        self.threads.wake(usize::from(participant));
    }

    fn can_be_woken(&self) -> bool {
        self.sleeps
    }

    fn rest(&self, until_ns: u64, still_needed: &dyn Fn() -> bool) {
        if !self.sleeps {
            return thread::yield_now();
        }
        let (rung, bell) = &self.threads.bells[self.place];
        let before = *rung.lock().unwrap();
        let left = Duration::from_nanos(until_ns.saturating_sub(self.now_ns())) * self.threads.slowness;
        if still_needed() {
            drop(bell.wait_timeout_while(rung.lock().unwrap(), left, |rung| *rung == before).unwrap());
        }
    }

    fn rouse(&self) {
        self.threads.wake(self.place);
    }
}

/// The table of so many nodes, and memory for them.
fn memory(count: u32) -> (Table<'static>, usize) {
    let nodes: &[NodeId] = (0..count).map(|node| NodeId::new(1, node).unwrap()).collect::<Vec<_>>().leak();
    let table = Table::new(nodes);
    // Lines of their own; leaked, as a board's memory is not given back either.
    let memory = vec![[0u64; 8]; table.bytes() / 64 + 1].leak().as_mut_ptr() as usize;
    (table, memory.next_multiple_of(64))
}

type Running = mapped::Node<Engine<NoBlock>, Seat>;

/// Starts the node of a seat.
fn start(table: Table<'static>, base: usize, seat: &'static Seat) -> Node<Running> {
    let (count, place) = (table.nodes.len() as u16, seat.place as u16);
    // SAFETY: the memory is as long as the table says, zero before, and lives for ever. A former run of the place is not
    // called any more.
    let region = unsafe { Region::whole(base as *mut u8, count, place, table.shape) };
    Node::of(Running::start(table, region.unwrap(), seat, Options::default()).unwrap())
}

/// All cases with so many nodes; gives how often somebody was rung.
fn all_cases(count: u32, sleeps: bool) -> u32 {
    let (table, base) = memory(count);
    let threads = Threads::of(count, 1);
    let parts: Vec<_> = (0..count as usize)
        .map(|place| {
            thread::spawn(move || {
                let seat: &Seat = Box::leak(Box::new(Seat { threads, place, sleeps }));
                let start = || start(table, base, seat);
                let within = |ns| Deadline::At(seat.now_ns() + ns);
                let mut passed = 0;
                let setup = Setup { nodes: table.nodes, place, start: &start, within: &within };
                run(&setup, |_, name, result| {
                    assert_eq!(result.map_err(|failure| failure.to_string()), Ok(()), "{name} at place {place}");
                    passed += 1;
                });
                passed
            })
        })
        .collect();
    for part in parts {
        assert_eq!(part.join().unwrap(), CASES);
    }
    threads.rings.load(Ordering::Relaxed)
}

#[test]
fn two_nodes_that_sleep() {
    assert!(all_cases(2, true) > 0);
}

#[test]
fn two_nodes_that_poll() {
    all_cases(2, false);
}

#[test]
fn four_nodes_that_sleep() {
    all_cases(4, true);
}

/// Longest that a test of threads takes; without lost wake-ups it is milliseconds.
const TEST_TIME: Duration = Duration::from_secs(30);
/// Messages of those tests, each with its answer.
const MESSAGES: u8 = 100;

/// Does something in a thread; fails if it takes too long.
fn in_time<R: Send + 'static>(by: impl FnOnce() -> R + Send + 'static) -> R {
    let (done, result) = mpsc::channel();
    thread::spawn(move || done.send(by()));
    result.recv_timeout(TEST_TIME).expect("it ends, and in time")
}

/// Two nodes whose clocks go so slowly that each wake-up that is lost takes longer than the test may.
fn two_slow_nodes() -> [(Node<Running>, &'static Seat); 2] {
    let (table, base) = memory(2);
    let threads = Threads::of(2, 10_000);
    [0, 1].map(|place| {
        let seat: &Seat = Box::leak(Box::new(Seat { threads, place, sleeps: true }));
        (start(table, base, seat), seat)
    })
}

/// Gives back what comes.
fn echo(node: Node<Running>, at: Endpoint<Running>, to: (u32, u32)) {
    let back = node.get_endpoint((1, to.0), to.1, Deadline::Forever).unwrap();
    for _ in 0..MESSAGES {
        let message = at.receive(Deadline::Forever).unwrap();
        at.send(&back, 0, &message.to_vec(), Deadline::Forever).unwrap();
    }
}

/// Sends numbers and compares the echoes.
fn ask(node: Node<Running>, at: Endpoint<Running>, to: (u32, u32)) {
    let echo = node.get_endpoint((1, to.0), to.1, Deadline::Forever).unwrap();
    for number in 0..MESSAGES {
        at.send(&echo, 0, &[number; 5], Deadline::Forever).unwrap();
        assert_eq!(at.receive(Deadline::Forever).unwrap().to_vec(), [number; 5]);
    }
}

/// Runs while a thread waits at port 9 of the first node; gives what became of that one. Both nodes live until then.
fn beside_a_waiting_thread(by: impl FnOnce([Node<Running>; 2]) + Send + 'static) -> Result<Vec<u8>, Error> {
    in_time(|| {
        let [(here, _), (there, _)] = two_slow_nodes();
        let quiet = here.create_endpoint(Some(9)).unwrap();
        let (begins, has_begun) = mpsc::channel();
        let waiting = thread::spawn(move || {
            begins.send(()).unwrap();
            quiet.receive(Deadline::Forever).map(|message| message.to_vec())
        });
        has_begun.recv().unwrap();
        by([here.clone(), there.clone()]);
        waiting.join().unwrap()
    })
}

#[test]
fn a_thread_that_waits_keeps_no_other_out() {
    let came = beside_a_waiting_thread(|[here, there]| {
        let (asks, echoes) = (here.create_endpoint(Some(1)).unwrap(), there.create_endpoint(Some(2)).unwrap());
        let peer = there.clone();
        let peer = thread::spawn(|| echo(peer, echoes, (0, 1)));
        ask(here, asks, (1, 2));
        peer.join().unwrap();
        // Nobody else looks any more: the ring is for who has waited all the time.
        let last = there.create_endpoint(None).unwrap();
        let quiet = there.get_endpoint((1, 0), 9, Deadline::Forever).unwrap();
        last.send(&quiet, 0, b"last", Deadline::Forever).unwrap();
    });
    assert_eq!(came, Ok(b"last".to_vec()));
}

#[test]
fn two_threads_of_one_node_wake_each_other() {
    let came = beside_a_waiting_thread(|[here, _]| {
        let (asks, echoes) = (here.create_endpoint(Some(1)).unwrap(), here.create_endpoint(Some(2)).unwrap());
        let (node, to) = (here.clone(), (0, 1));
        let other = thread::spawn(move || echo(node, echoes, to));
        ask(here.clone(), asks, (0, 2));
        other.join().unwrap();
        here.finalize().unwrap();
    });
    assert_eq!(came, Err(Error::NodeNotInitialized), "the end of the node ends its waits");
}

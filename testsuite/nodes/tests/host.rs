//! The cases on the host: a thread for each node, over plain memory.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Condvar, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use musubi_core::lane::Region;
use musubi_core::mapped::Host;
use musubi_core::port::Coherence;
use musubi_mcapi::NodeId;
use musubi_mcapi::over::Node;
use musubi_testsuite_nodes::{CASES, Setup, run};
use musubi_transport::mapped::{self, Deadline, Options, Table};

/// Threads that ring one another, or only look.
#[derive(Debug)]
struct Threads {
    begin: Instant,
    bells: Vec<(Mutex<bool>, Condvar)>,
    rings: AtomicU32,
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
        self.threads.begin.elapsed().as_nanos() as u64
    }

    fn has_common_clock(&self) -> bool {
        true
    }

    fn ring(&self, participant: u16) {
        self.threads.rings.fetch_add(1, Ordering::Relaxed);
        let (rung, bell) = &self.threads.bells[usize::from(participant)];
        *rung.lock().unwrap() = true;
        bell.notify_all();
    }

    fn can_be_woken(&self) -> bool {
        self.sleeps
    }

    fn rest(&self, until_ns: u64, still_needed: &dyn Fn() -> bool) {
        if !self.sleeps {
            return thread::yield_now();
        }
        let (rung, bell) = &self.threads.bells[self.place];
        let mut rung = rung.lock().unwrap();
        let left = Duration::from_nanos(until_ns.saturating_sub(self.now_ns()));
        if !*rung && still_needed() {
            rung = bell.wait_timeout(rung, left).unwrap().0;
        }
        *rung = false;
    }
}

/// All cases with so many nodes; gives how often somebody was rung.
fn all_cases(count: u32, sleeps: bool) -> u32 {
    let nodes: &[NodeId] = (0..count).map(|node| NodeId::new(1, node).unwrap()).collect::<Vec<_>>().leak();
    let table = Table::new(nodes);
    // Lines of their own; leaked, as a board's memory is not given back either.
    let memory = vec![[0u64; 8]; table.bytes() / 64 + 1].leak().as_mut_ptr() as usize;
    let base = memory.next_multiple_of(64);
    let bells = (0..count).map(|_| Default::default()).collect();
    let threads: &Threads = Box::leak(Box::new(Threads { begin: Instant::now(), bells, rings: AtomicU32::new(0) }));
    let parts: Vec<_> = (0..count as usize)
        .map(|place| {
            thread::spawn(move || {
                let seat: &Seat = Box::leak(Box::new(Seat { threads, place, sleeps }));
                let start = || {
                    // SAFETY: the memory is as long as the table says, zero before, and lives for ever. A former run of the
                    // place is not called any more.
                    let region = unsafe { Region::whole(base as *mut u8, count as u16, place as u16, table.shape) };
                    Node::of(mapped::Node::start(table, region.unwrap(), seat, Options::default()).unwrap())
                };
                let within = |ns| Deadline::At(seat.now_ns() + ns);
                let mut passed = 0;
                let setup = Setup { nodes, place, start: &start, within: &within };
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

//! What happens while another thread of the participant stands in the middle of its periodic work.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use musubi_core::channel::SendingEnd as _;
use musubi_core::mapped::Host;
use musubi_core::port::Coherence;

use crate::world::{DOWN, HEARTBEAT_NS, MASTER, Manual, REMOTE, UP, World, kill, receiving, send, sending, take};

/// Looks at a flag before a test gives up.
const LOOKS_MAX: u32 = 10_000_000;

/// A host of its own clock, on which the next thread that reads the time is held up just after.
#[derive(Debug, Default)]
struct Holding {
    manual: Manual,
    is_armed: AtomicBool,
    is_held: AtomicBool,
}

impl Holding {
    /// Runs `by` while a thread that does `work` is held up.
    fn meanwhile(&self, work: impl FnOnce() + Send, by: impl FnOnce()) {
        self.is_armed.store(true, Ordering::SeqCst);
        thread::scope(|scope| {
            scope.spawn(work);
            until(|| self.is_held.load(Ordering::SeqCst));
            by();
            self.is_held.store(false, Ordering::SeqCst);
        });
    }
}

fn until(check: impl Fn() -> bool) {
    assert!((0..LOOKS_MAX).any(|_| {
        thread::yield_now();
        check()
    }));
}

impl Coherence for Holding {}

impl Host for Holding {
    fn now_ns(&self) -> u64 {
        let now_ns = self.manual.now_ns();
        if self.is_armed.swap(false, Ordering::SeqCst) {
            self.is_held.store(true, Ordering::SeqCst);
            until(|| !self.is_held.load(Ordering::SeqCst));
        }
        now_ns
    }
    fn has_common_clock(&self) -> bool {
        false
    }
    fn ring(&self, _: u16) {}
    fn can_be_woken(&self) -> bool {
        false
    }
    fn rest(&self, until_ns: u64, still_needed: &dyn Fn() -> bool) {
        self.manual.rest(until_ns, still_needed);
    }
}

fn world(incarnations: usize) -> World<Holding> {
    World::with(incarnations, Default::default())
}

#[test]
fn a_dead_senders_messages_come_first_although_a_thread_has_the_watch() {
    let world = world(4);
    let remote = world.setup(REMOTE, 0);
    let (rx, up) = (receiving(&remote, DOWN), sending(&remote, UP));
    let first = world.setup(MASTER, 0);
    remote.beat();
    let tx = sending(&first, DOWN);
    assert!(send(&tx, 0) && send(&tx, 1));
    kill(first, tx);
    let second = world.setup(MASTER, 0);
    let tx = sending(&second, DOWN);
    assert!(send(&tx, 2));
    // Another end takes note of the second; the receiving end has not looked yet.
    assert!(!up.usage().connected);
    let mut numbers = Vec::new();
    world.hosts[usize::from(REMOTE)].meanwhile(|| remote.beat(), || numbers.extend(take(&rx, false)));
    numbers.extend((0..9).filter_map(|_| take(&rx, false)));
    assert_eq!(numbers, [0, 1, 2]);
}

#[test]
fn the_estimated_time_is_not_ahead_of_a_beat_that_was_held_up() {
    let world = world(2);
    let (master, remote) = (world.setup(MASTER, 0), world.setup(REMOTE, 0));
    let advance = |ns| world.hosts.iter().for_each(|host| host.manual.advance(ns));
    for _ in 0..3 {
        advance(HEARTBEAT_NS);
        master.beat();
        remote.beat();
    }
    assert_eq!(remote.common_ns(), master.common_ns());
    let late = || {
        advance(9 * HEARTBEAT_NS);
        master.beat();
    };
    world.hosts[usize::from(REMOTE)].meanwhile(|| remote.beat(), late);
    assert_eq!(remote.common_ns(), master.common_ns());
}

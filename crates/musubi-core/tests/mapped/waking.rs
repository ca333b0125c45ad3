//! Hosts of threads that sleep: no wake-up is lost, whoever waits and however.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;
use std::time::{Duration, Instant};

use musubi_core::channel::{Attachment, Deadline, ReceivingEnd as _, SendingEnd as _};
use musubi_core::mapped::{Host, Participant};
use musubi_core::port::Coherence;

use crate::world::{
    DOWN, MASTER, Manual, OTHER, Patience, REMOTE, STALLED_NS, UP, World, kill, receiving, send, sending, take,
};
use musubi_core::Error;

/// The rings of all hosts, as interrupts that stay pending until they are taken.
#[derive(Debug, Default)]
pub struct Lines {
    pending: [Mutex<bool>; 3],
    raised: [Condvar; 3],
}

/// A host whose thread sleeps until its line is raised. Taking the interrupt is done by whoever sleeps, as WFI with
/// masked interrupts does it: `on_ring` is the handler.
#[derive(Debug)]
pub struct Real {
    begin: Instant,
    participant: usize,
    lines: Arc<Lines>,
    sleeps: bool,
    pub rests: AtomicU32,
}

/// Hosts that look again and again.
pub fn hosts() -> [Real; 3] {
    boards_that(false)
}

fn boards_that(sleeps: bool) -> [Real; 3] {
    let (begin, lines) = (Instant::now(), Arc::<Lines>::default());
    std::array::from_fn(|participant| Real {
        begin,
        participant,
        lines: Arc::clone(&lines),
        sleeps,
        rests: AtomicU32::new(0),
    })
}

impl Coherence for Real {}

impl Host for Real {
    fn now_ns(&self) -> u64 {
        self.begin.elapsed().as_nanos() as u64
    }
    fn has_common_clock(&self) -> bool {
        true
    }
    fn ring(&self, participant: u16) {
        let participant = usize::from(participant);
        *self.lines.pending[participant].lock().unwrap() = true;
        self.lines.raised[participant].notify_all();
    }
    fn can_be_woken(&self) -> bool {
        self.sleeps
    }
    fn rest(&self, until_ns: u64, still_needed: &dyn Fn() -> bool) {
        if !self.sleeps {
            return thread::yield_now();
        }
        self.rests.fetch_add(1, Ordering::Relaxed);
        let left = Duration::from_nanos(until_ns.saturating_sub(self.now_ns()));
        // The line's lock is our interrupt mask: what is raised from here on is pending when we sleep.
        let mut pending = self.lines.pending[self.participant].lock().unwrap();
        if !*pending && still_needed() {
            pending = self.lines.raised[self.participant].wait_timeout(pending, left).unwrap().0;
        }
        *pending = false;
    }
}

/// What a plan with so long a heartbeat shows: a lost wake-up takes the rest of the period.
const MESSAGES: u32 = if cfg!(miri) { 30 } else { 5_000 };

fn ping(participant: &Participant<'_, Real>, first: bool) {
    let me = participant.participant();
    let (tx, rx) = match me {
        MASTER => (sending(participant, DOWN), receiving(participant, UP)),
        _ => (sending(participant, UP), receiving(participant, DOWN)),
    };
    let patience = Patience::new();
    while !(tx.usage().connected && rx.usage().connected) {
        patience.check("the other");
        participant.sleep_until(participant.now_ns() + 10_000);
    }
    for number in 0..MESSAGES {
        if first {
            assert!(send(&tx, number));
        }
        let answer = loop {
            if let Some(answer) = take(&rx, false) {
                break answer;
            }
            patience.check("an answer");
            // A loss or a timeout is looked at by who waits for the whole test.
            let _ = rx.wait(Deadline::At(participant.now_ns() + 1_000_000_000));
        };
        assert_eq!(answer, number);
        if !first {
            assert!(send(&tx, number));
        }
    }
}

#[test]
#[cfg_attr(miri, ignore = "many incarnations, each with a memory of its own: too slow")]
fn two_that_sleep_wake_each_other() {
    let world: World<Real> = World::with(2, boards_that(true));
    let begin = Instant::now();
    thread::scope(|scope| {
        let (master, remote) = (world.setup(MASTER, 0), world.setup(REMOTE, 0));
        scope.spawn(move || ping(&remote, false));
        ping(&master, true);
    });
    assert!(world.hosts[0].rests.load(Ordering::Relaxed) > 0, "they did sleep");
    println!("{} ns a round trip", begin.elapsed().as_nanos() / u128::from(MESSAGES));
}

/// An executor for one future that sleeps on its host.
struct Unpark(thread::Thread, AtomicU32);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.1.fetch_add(1, Ordering::SeqCst);
        self.0.unpark();
    }
}

#[test]
#[cfg_attr(miri, ignore = "many incarnations, each with a memory of its own: too slow")]
fn a_ring_wakes_futures_through_the_handler() {
    let world: World<Real> = World::with(2, boards_that(true));
    let (master, remote) = (world.setup(MASTER, 0), world.setup(REMOTE, 0));
    let lines = Arc::clone(&world.hosts[1].lines);
    let stop = AtomicU32::new(0);
    thread::scope(|scope| {
        // The Remote's doorbell handler.
        let pulse = remote.pulse();
        let (stop, handler_lines) = (&stop, lines);
        scope.spawn(move || {
            while stop.load(Ordering::SeqCst) == 0 {
                let mut pending = handler_lines.pending[1].lock().unwrap();
                while !*pending && stop.load(Ordering::SeqCst) == 0 {
                    pending = handler_lines.raised[1].wait_timeout(pending, Duration::from_millis(50)).unwrap().0;
                }
                *pending = false;
                drop(pending);
                pulse.wake();
            }
        });
        let receiver = scope.spawn(move || {
            let rx = receiving(&remote, DOWN);
            let unpark = Arc::new(Unpark(thread::current(), AtomicU32::new(0)));
            let waker = Waker::from(Arc::clone(&unpark));
            let mut context = Context::from_waker(&waker);
            let (mut next, patience) = (0, Patience::new());
            while next < MESSAGES {
                match rx.poll_event(&mut context) {
                    Poll::Ready(_) => {
                        while let Some(number) = take(&rx, false) {
                            assert_eq!(number, next);
                            next += 1;
                        }
                    }
                    Poll::Pending => {
                        patience.check("a message");
                        thread::park_timeout(Duration::from_secs(20));
                    }
                }
            }
            unpark.1.load(Ordering::SeqCst)
        });
        let tx = sending(&master, DOWN);
        let (mut number, patience) = (0, Patience::new());
        while number < MESSAGES {
            patience.check("a block");
            match send(&tx, number) {
                true => number += 1,
                false => drop(tx.allocate(Deadline::At(master.now_ns() + 1_000_000)).map(|loan| tx.free(loan))),
            }
        }
        let wakes = receiver.join().unwrap();
        stop.store(1, Ordering::SeqCst);
        assert!(wakes > 0, "the future was woken");
    });
}

#[test]
#[cfg_attr(miri, ignore = "the others take the same paths: too slow")]
fn a_board_that_cannot_be_woken_is_never_rung_for_a_message() {
    let world = World::new(2);
    let (master, remote) = (world.attach(MASTER), world.attach(REMOTE));
    let (tx, rx) = (sending(&master, DOWN), receiving(&remote, DOWN));
    assert!(tx.usage().connected && rx.usage().connected);
    let rung = || world.hosts[0].rung[1].load(Ordering::Relaxed);
    let before = rung();
    assert!(rx.wait(Deadline::At(remote.now_ns() + 300_000)).is_err());
    assert!(send(&tx, 1));
    assert_eq!(rung(), before);
    assert_eq!(take(&rx, false), Some(1));
}

#[test]
fn futures_of_a_polling_board_are_woken_by_the_beat() {
    let world = World::new(2);
    let (master, remote) = (world.attach(MASTER), world.attach(REMOTE));
    let (tx, rx) = (sending(&master, DOWN), receiving(&remote, DOWN));
    assert!(tx.usage().connected && rx.usage().connected);
    let unpark = Arc::new(Unpark(thread::current(), AtomicU32::new(0)));
    let waker = Waker::from(Arc::clone(&unpark));
    let mut context = Context::from_waker(&waker);
    assert!(rx.poll_event(&mut context).is_pending());
    remote.beat();
    assert_eq!(unpark.1.load(Ordering::SeqCst), 1);
    assert!(rx.poll_event(&mut context).is_pending());
    assert!(send(&tx, 1));
    assert!(rx.poll_event(&mut context).is_ready());
    drop(rx);
    assert_eq!(Arc::strong_count(&unpark), 2, "a closed end keeps no waker");
}

/// A host that can be woken, and whose time the test moves.
#[derive(Debug, Default)]
struct Wakeable(Manual);

impl Coherence for Wakeable {}

impl Host for Wakeable {
    fn now_ns(&self) -> u64 {
        self.0.now_ns()
    }
    fn has_common_clock(&self) -> bool {
        true
    }
    fn ring(&self, participant: u16) {
        self.0.ring(participant);
    }
    fn can_be_woken(&self) -> bool {
        true
    }
    fn rest(&self, until_ns: u64, still_needed: &dyn Fn() -> bool) {
        self.0.rest(until_ns, still_needed);
    }
}

#[test]
#[cfg_attr(miri, ignore = "many incarnations, each with a memory of its own: too slow")]
fn a_beat_that_sees_one_peer_come_and_another_stand_still_wakes() {
    let world: World<Wakeable> = World::with(3, Default::default());
    let advance = |ns| world.hosts.iter().for_each(|host| host.0.advance(ns));
    let (master, _other) = (world.setup(MASTER, 0), world.setup(OTHER, 0));
    let rx = receiving(&master, UP);
    master.beat();
    let unpark = Arc::new(Unpark(thread::current(), AtomicU32::new(0)));
    let waker = Waker::from(Arc::clone(&unpark));
    let wakes = || unpark.1.swap(0, Ordering::SeqCst);
    let sleep = || assert!(rx.poll_event(&mut Context::from_waker(&waker)).is_pending());
    sleep();
    master.beat();
    assert_eq!(wakes(), 0, "nothing has changed");
    advance(2 * STALLED_NS);
    let _remote = world.setup(REMOTE, 0);
    master.beat();
    assert_eq!((wakes(), master.attached(1)), (1, 1), "one came, one stands still");
    sleep();
    advance(2 * STALLED_NS);
    master.beat();
    assert_eq!((wakes(), master.attached(1)), (1, 0), "the other stands still, too");
}

#[test]
fn a_sleeper_is_woken_when_a_beat_sees_a_loss_and_not_otherwise() {
    let world: World<Wakeable> = World::with(3, Default::default());
    let advance = |ns| world.hosts.iter().for_each(|host| host.0.advance(ns));
    let (master, remote) = (world.setup(MASTER, 0), world.setup(REMOTE, 0));
    let (tx, rx) = (sending(&master, DOWN), receiving(&remote, DOWN));
    assert!(tx.usage().connected && rx.usage().connected);
    remote.beat();
    let unpark = Arc::new(Unpark(thread::current(), AtomicU32::new(0)));
    let waker = Waker::from(Arc::clone(&unpark));
    let mut context = Context::from_waker(&waker);
    let wakes = || unpark.1.swap(0, Ordering::SeqCst);
    assert!(rx.poll_event(&mut context).is_pending());
    (0..3).for_each(|_| remote.beat());
    assert_eq!(wakes(), 0, "nothing has changed");
    // The sender stands still; only our beat sees it.
    advance(2 * STALLED_NS);
    remote.beat();
    assert_eq!(wakes(), 1, "stalled");
    assert_eq!(rx.poll_event(&mut context), Poll::Ready(Err(Error::PeerGone)));
    master.beat();
    remote.beat();
    assert!(rx.poll_event(&mut context).is_pending());
    let _ = wakes();
    // It dies and has a successor: the rings of the successor are not heard here.
    kill(master, tx);
    let _second = world.setup(MASTER, 0);
    remote.beat();
    assert_eq!(wakes(), 1, "gone");
    assert_eq!(rx.poll_event(&mut context), Poll::Ready(Err(Error::PeerGone)));
}

//! A thread that waits: when it looks, leads, follows or sleeps, and how it leaves.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use musubi_core::plan::{FilterRule, Regulation};
use musubi_linux::Deadline;
use musubi_linux::clock::now_ns;

use super::world::{Asked, Diary, Handle, PATIENCE_S, class, frame, node, node_with, rang, result, ring_wire, until};
use crate::LinkError;
use crate::runtime::background::{self, Seen};
use crate::runtime::bells::ring;
use crate::runtime::shared::{Shared, TICK};
use crate::runtime::state::{Driver, State};
use crate::runtime::{DeadlineExt as _, Node};
use crate::topology::ClassRule;

const MS: u64 = 1_000_000;

fn soon() -> Deadline {
    Deadline::after(Duration::from_millis(3))
}

fn patient() -> Deadline {
    Deadline::after(Duration::from_secs(PATIENCE_S))
}

fn ended<R>(shared: Shared<Diary>, by: impl FnOnce(&Node<Diary>) -> R) -> R {
    let node = Node { shared: Arc::new(shared) };
    let result = by(&node);
    // Nothing is left of the wait.
    let state = node.shared.lock_anyway();
    assert_eq!((state.driver, state.asleep, state.followers), (Driver::Nobody, false, 0));
    drop(state);
    result
}

/// Waits for a frame.
fn wait(node: &Node<Diary>, deadline: Deadline) -> Result<u8, LinkError> {
    node.wait_for(deadline, |engine, _| engine.frames.pop())
}

#[test]
fn a_poll_tries_and_looks_once() {
    let (shared, handle) = node();
    ended(shared, |node| {
        assert_eq!(wait(node, Deadline::Poll), Err(LinkError::Timeout));
        assert_eq!(handle.asked(), [Asked::Poll]);
        handle.wire().coming.push_back(frame(3));
        assert_eq!(wait(node, Deadline::Poll), Ok(3));
        node.with(|engine, _| engine.frames.push(2)).unwrap();
        handle.asked();
        assert_eq!(wait(node, Deadline::Poll), Ok(2));
        assert_eq!(handle.asked(), [], "it was there");
    });
}

#[test]
fn who_leads_sleeps_until_its_deadline() {
    let (shared, handle) = node();
    ended(shared, |node| {
        let begin_ns = now_ns();
        assert_eq!(wait(node, soon()), Err(LinkError::Timeout));
        assert!(now_ns() - begin_ns >= 3 * MS);
        assert_eq!(
            handle.asked(),
            [Asked::Poll, Asked::Flush, Asked::Prepare, Asked::Finish, Asked::Poll],
            "a look, everything goes out, the sleep, a look"
        );
        let state = node.shared.lock_anyway();
        assert_eq!((state.sleeps, state.links.wakes.woken, state.alarm_ns), (1, 1, u64::MAX));
        drop(state);
        assert_eq!(node.times_woken(), Ok(1));
        // What is due later than the deadline needs no alarm.
        node.with(|engine, _| engine.due_ns = now_ns() + 3_600_000 * MS).unwrap();
        assert_eq!(wait(node, soon()), Err(LinkError::Timeout));
        assert_eq!(node.shared.lock_anyway().alarm_ns, u64::MAX);
    });
}

#[test]
fn what_comes_ends_the_sleep() {
    let (shared, handle) = node();
    ended(shared, |node| {
        let deadline = patient();
        handle.wire().coming.push_back(frame(5));
        // The first look finds nothing, as it is left out.
        node.shared.lock_anyway().links.note_look(false);
        ring_wire(&handle);
        assert_eq!(wait(node, deadline), Ok(5));
        assert!(!deadline.passed());
        // What comes while sleep is announced needs no sleep.
        node.shared.lock_anyway().links.note_look(false);
        handle.asked();
        handle.wire().news = 2;
        handle.wire().coming.push_back(frame(6));
        assert_eq!(wait(node, deadline), Ok(6));
        assert!(!deadline.passed());
        assert_eq!(handle.asked(), [Asked::Flush, Asked::Prepare, Asked::Finish, Asked::Poll]);
        assert_eq!(node.shared.lock_anyway().sleeps, 1);
    });
}

#[test]
fn what_is_due_ends_a_sleep_and_is_done() {
    let (shared, handle) = node();
    ended(shared, |node| {
        let due_ns = now_ns() + 3 * MS;
        handle.wire().deadline_ns = due_ns;
        let deadline = patient();
        node.wait_for(deadline, |_, _| (now_ns() >= due_ns).then_some(())).unwrap();
        assert!(!deadline.passed());
        assert_eq!(handle.times(Asked::Tick), 1);
        assert!(node.shared.lock_anyway().alarm_ns >= due_ns, "the alarm was set for it");
    });
}

/// A thread that waits for a frame.
fn waiting(node: &Node<Diary>, deadline: Deadline) -> thread::JoinHandle<Result<u8, LinkError>> {
    let node = node.clone();
    thread::spawn(move || wait(&node, deadline))
}

fn followed(node: &Node<Diary>, by: u32) {
    until("they follow", || node.shared.lock_anyway().followers == by);
}

fn slept(handle: &Handle) {
    until("somebody sleeps on the links", || handle.times(Asked::Prepare) > 0);
}

/// Gives a frame to the engine, as a call of the program's may.
fn give(node: &Node<Diary>, number: u8) {
    let mut state = node.shared.lock_anyway();
    state.engine.frames.push(number);
    state.engine.changes += 1;
    node.shared.unlock(state);
}

#[test]
fn a_follower_sleeps_until_told_and_its_deadline() {
    let (shared, handle) = node();
    let node = Node { shared: Arc::new(shared) };
    node.shared.lock_anyway().driver = Driver::Caller;
    assert_eq!(wait(&node, soon()), Err(LinkError::Timeout));
    assert_eq!(handle.times(Asked::Prepare), 0, "the leader does that");
    let deadline = patient();
    let follower = waiting(&node, deadline);
    followed(&node, 1);
    give(&node, 1);
    assert_eq!(result(follower), Ok(1));
    // The leader goes: one of them takes its place.
    let follower = waiting(&node, deadline);
    followed(&node, 1);
    node.shared.lock_anyway().driver = Driver::Nobody;
    handle.wire().coming.push_back(frame(2));
    assert_eq!(wait(&node, Deadline::Poll), Ok(2));
    slept(&handle);
    give(&node, 3);
    assert_eq!(result(follower), Ok(3));
    assert!(!deadline.passed());
}

#[test]
fn a_follower_that_leads_takes_the_links_from_who_has_them() {
    let (shared, handle) = node();
    let node = Node { shared: Arc::new(shared) };
    node.shared.lock_anyway().driver = Driver::Caller;
    let deadline = patient();
    let follower = waiting(&node, deadline);
    followed(&node, 1);
    let mut state = node.shared.lock_anyway();
    (state.driver, state.asleep) = (Driver::Background, true);
    handle.asked();
    drop(state);
    node.shared.follow.tell_all();
    until("it leads", || node.shared.lock_anyway().driver == Driver::Caller);
    until("it sleeps", || node.shared.lock_anyway().sleeps == 1);
    assert!(rang(&node.shared.kick));
    assert_eq!(handle.asked()[0], Asked::Finish);
    give(&node, 1);
    assert_eq!(result(follower), Ok(1));
    assert!(!deadline.passed());
}

#[test]
fn who_leaves_the_lead_names_a_successor() {
    let (shared, handle) = node();
    let node = Node { shared: Arc::new(shared) };
    let deadline = patient();
    let first = waiting(&node, deadline);
    slept(&handle);
    let second = waiting(&node, deadline);
    followed(&node, 1);
    for number in [1, 2] {
        handle.asked();
        handle.wire().coming.push_back(frame(number));
        ring_wire(&handle);
        until("it is taken", || handle.wire().coming.is_empty());
        if number == 1 {
            until("who got it has left", || first.is_finished() || second.is_finished());
            slept(&handle);
        }
    }
    let mut got = [result(first).unwrap(), result(second).unwrap()];
    got.sort_unstable();
    assert_eq!(got, [1, 2]);
    assert!(!deadline.passed());
}

#[test]
fn a_leader_takes_the_links_from_who_sleeps_on_them() {
    let (shared, handle) = node();
    ended(shared, |node| {
        // A future's task left them to the background thread; it is that thread that a wait ousts, not the call that begins it.
        let mut state = node.shared.lock_anyway();
        (state.driver, state.asleep, state.background_parked) = (Driver::Background, true, true);
        drop(state);
        let bells = node.shared.bell.load(Ordering::Relaxed);
        assert_eq!(wait(node, soon()), Err(LinkError::Timeout));
        assert!(rang(&node.shared.kick));
        assert_eq!(handle.asked()[0], Asked::Finish);
        assert_eq!(node.shared.bell.load(Ordering::Relaxed) - bells, 1, "who has led lets it tick again");
        assert!(!node.shared.lock_anyway().background_parked);
    });
}

#[test]
fn who_spins_looks_and_then_sleeps() {
    // Shorter than the time after which descriptors are looked at.
    let (shared, handle) = node_with(5_000, Vec::new());
    if shared.options.spin_ns == 0 {
        return;
    }
    ended(shared, |node| {
        let deadline = patient();
        let sleeper = waiting(node, deadline);
        until("it sleeps", || node.shared.lock_anyway().sleeps == 1);
        let asked = handle.asked();
        handle.wire().coming.push_back(frame(4));
        ring_wire(&handle);
        assert_eq!(result(sleeper), Ok(4));
        assert!(!deadline.passed());
        let flushed = asked.iter().position(|asked| *asked == Asked::Flush).expect("it slept");
        let looks = asked[..flushed].iter().filter(|asked| **asked == Asked::Poll).count();
        assert!(looks >= 3, "the first one, one that may find what comes soon, and those of a wait: {asked:?}");
    });
    // A wait that is shorter than that does not sleep.
    let (shared, handle) = node_with(60_000 * MS, Vec::new());
    ended(shared, |node| {
        assert_eq!(wait(node, soon()), Err(LinkError::Timeout));
        assert_eq!(handle.times(Asked::Prepare), 0);
    });
}

#[test]
fn who_spins_looks_at_descriptors_again_and_again() {
    let (shared, handle) = node_with(u64::MAX, Vec::new());
    if shared.options.spin_ns == 0 {
        return;
    }
    let node = Node { shared: Arc::new(shared) };
    let deadline = patient();
    let spinner = waiting(&node, deadline);
    for _ in 0..3 {
        ring_wire(&handle);
        let is_ready = |asked: &Asked| matches!(asked, Asked::Ready(_));
        until("the descriptor is looked at", || handle.asked().iter().any(is_ready));
    }
    // Those who want the lock have it.
    give(&node, 3);
    assert_eq!(result(spinner), Ok(3));
    assert!(!deadline.passed());
}

#[test]
fn the_end_of_the_node_ends_every_wait() {
    for spin_ns in [0, u64::MAX] {
        let (shared, handle) = node_with(spin_ns, Vec::new());
        let node = Node { shared: Arc::new(shared) };
        let deadline = patient();
        let threads: Vec<_> = (0..3).map(|_| waiting(&node, deadline)).collect();
        followed(&node, 2);
        until("one leads", || handle.times(Asked::Poll) > 0 || spin_ns == 0);
        node.finish().unwrap();
        for thread in threads {
            assert_eq!(result(thread), Err(LinkError::Ended));
        }
        assert!(!deadline.passed());
    }
}

#[test]
fn where_wake_ups_are_filtered_everybody_follows() {
    let filter = FilterRule { interval_ns_min: MS, latest_ns: MS, ..FilterRule::EACH };
    let rule = ClassRule { class: class(4), regulation: Regulation::NONE, filter };
    let (shared, handle) = node_with(0, vec![rule]);
    ended(shared, |node| {
        let bells = node.shared.bell.load(Ordering::Relaxed);
        assert_eq!(wait(node, soon()), Err(LinkError::Timeout));
        assert_eq!(handle.times(Asked::Prepare), 0);
        assert_eq!(node.shared.bell.load(Ordering::Relaxed) - bells, 1, "the background thread is to lead");
        node.shared.lock_anyway().followers = 1;
        let bells = node.shared.bell.load(Ordering::Relaxed);
        assert_eq!(wait(node, soon()), Err(LinkError::Timeout));
        assert_eq!(node.shared.bell.load(Ordering::Relaxed) - bells, 2, "for others it still is");
        node.shared.lock_anyway().followers = 0;
    });
}

#[test]
fn the_loop_arms_when_it_has_seen_everything() {
    let (shared, handle) = node();
    let node = Node { shared: Arc::new(shared) };
    let due_ns = now_ns() + 3_600_000 * MS;
    node.with(|engine, _| {
        engine.changes = 5;
        engine.due_ns = due_ns;
    })
    .unwrap();
    assert_eq!(node.arm(), Ok(None), "it looks first");
    assert!(node.shared.lock_anyway().armed_by.is_none());
    ring(&node.shared.event_loop.bell);
    handle.asked();
    assert_eq!(node.arm(), Ok(Some(due_ns)));
    assert!(!rang(&node.shared.event_loop.bell), "what it was told before is old");
    assert_eq!(handle.asked(), [Asked::Poll, Asked::Flush, Asked::Prepare]);
    let state = node.shared.lock_anyway();
    assert_eq!((state.driver, state.asleep, state.sleeps, state.sleep_until_ns), (Driver::Loop, true, 1, due_ns));
    assert_eq!((state.armed_by, state.links.wakes.woken), (Some(thread::current().id()), 1));
    drop(state);
    // Something comes meanwhile.
    handle.wire().news = 1;
    assert_eq!(node.arm(), Ok(None));
    assert_eq!(handle.asked(), [Asked::Finish, Asked::Poll, Asked::Flush, Asked::Prepare, Asked::Finish]);
    // Another thread has the links: it tells the loop.
    node.shared.lock_anyway().driver = Driver::Caller;
    assert_eq!(node.arm(), Ok(Some(u64::MAX)));
    assert_eq!(handle.asked(), []);
    assert_eq!(node.shared.lock_anyway().sleeps, 1);
    thread::scope(|scope| scope.spawn(|| node.with(|engine, _| engine.changes += 1).unwrap()).join().unwrap());
    assert!(rang(&node.shared.event_loop.bell));
    assert_eq!(node.arm(), Ok(None));
}

/// One look of the background thread.
fn look(shared: &Shared<Diary>, seen: &mut Seen) -> Deadline {
    background::look(shared, shared.lock_anyway(), seen)
}

#[test]
fn the_background_thread_ticks_while_the_program_calls_and_parks_while_it_sleeps() {
    let (shared, handle) = node();
    let mut seen = Seen::default();
    let ticks = |rest: Deadline| matches!(rest, Deadline::At(ns) if ns > now_ns() && ns <= now_ns() + 2 * MS);
    drop(shared.enter().unwrap());
    shared.wanted.fetch_or(TICK, Ordering::Relaxed);
    assert!(ticks(look(&shared, &mut seen)), "the program has called");
    assert_eq!(handle.asked(), [Asked::Poll, Asked::Flush]);
    assert_eq!(shared.wanted.load(Ordering::Relaxed), 0);
    let mut sleep = |driver, sleeps, asleep| {
        let mut state = shared.lock_anyway();
        (state.driver, state.sleeps, state.asleep, state.background_parked) = (driver, sleeps, asleep, false);
        drop(state);
        let rest = look(&shared, &mut seen);
        let parked = std::mem::take(&mut shared.lock_anyway().background_parked);
        assert_eq!(rest == Deadline::Forever, parked);
        assert!(parked || ticks(rest));
        (parked, handle.times(Asked::Poll))
    };
    for driver in [Driver::Caller, Driver::Loop] {
        let first = if driver == Driver::Caller { 1 } else { 11 };
        assert_eq!(sleep(driver, first, true), (false, 0), "it has just fallen asleep");
        assert_eq!(sleep(driver, first, true), (true, 0), "it sleeps for long");
        assert_eq!(sleep(driver, first + 1, true), (false, 0), "again");
        assert_eq!(sleep(driver, first + 1, false), (false, 1), "it is awake");
    }
}

/// The background thread's look, which drives.
fn driving(shared: &Arc<Shared<Diary>>) -> thread::JoinHandle<Deadline> {
    let shared = Arc::clone(shared);
    thread::spawn(move || look(&shared, &mut Seen::default()))
}

#[test]
fn the_background_thread_drives_until_somebody_comes() {
    for awaited in [false, true] {
        let (shared, handle) = node();
        let shared = Arc::new(shared);
        let (_, waker) = super::world::Alarm::new();
        if awaited {
            drop(shared.enter().unwrap());
            shared.lock_anyway().register_for_change(&waker);
        }
        let thread = driving(&shared);
        let is_asleep = |state: &State<Diary>| state.driver == Driver::Background && state.asleep;
        until("it sleeps", || is_asleep(&shared.lock_anyway()));
        assert_eq!(handle.asked(), [Asked::Poll, Asked::Flush, Asked::Prepare]);
        // What comes is taken in, and it sleeps again.
        handle.wire().coming.push_back(frame(1));
        handle.wire().news = 1;
        ring_wire(&handle);
        until("it has come", || !shared.lock_anyway().engine.frames.is_empty());
        until("it sleeps again", || is_asleep(&shared.lock_anyway()));
        let asked = handle.asked();
        assert_eq!(asked.iter().filter(|asked| **asked == Asked::Finish).count(), 2, "{asked:?}");
        assert!(!thread.is_finished());
        drop(shared.enter().unwrap());
        assert_eq!(result(thread), Deadline::Poll);
        assert_eq!(shared.lock_anyway().driver, Driver::Nobody);
        assert_eq!(handle.asked(), [Asked::Finish], "by the call, not by both");
    }
}

#[test]
fn the_background_thread_wakes_by_time_and_for_the_end() {
    let (shared, handle) = node();
    let shared = Arc::new(shared);
    handle.wire().deadline_ns = now_ns() + 2 * MS;
    let thread = driving(&shared);
    until("what is due is done", || handle.times(Asked::Tick) > 0);
    handle.wire().deadline_ns = u64::MAX;
    assert!(!thread.is_finished());
    shared.finish().unwrap();
    result(thread);
    assert!(shared.lock_anyway().has_finished());
}

#[test]
fn a_span_of_time_is_seconds_and_the_rest() {
    for ns in [0, 1, 999_999_999, 1_000_000_000, 7_123_456_789] {
        let span = crate::runtime::bells::timespec(ns);
        assert_eq!((span.tv_sec as u64, span.tv_nsec as u64), (ns / 1_000_000_000, ns % 1_000_000_000));
    }
}

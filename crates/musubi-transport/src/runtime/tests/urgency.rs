//! Threads of different urgency that wait: who has the links.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use musubi_linux::{Deadline, realtime};

use super::world::{Diary, Handle, PATIENCE_S, frame, node, ring_wire, until};
use crate::LinkError;
use crate::runtime::shared::Shared;
use crate::runtime::state::Driver;
use crate::runtime::urgency::Urgency;
use crate::runtime::{DeadlineExt as _, Node};

fn patient() -> Deadline {
    Deadline::after(Duration::from_secs(PATIENCE_S))
}

/// Waits for one of some frames, as a thread of this priority.
fn wait(node: &Node<Diary>, priority: u8, deadline: Deadline, wanted: u8) -> Result<u8, LinkError> {
    Urgency::pretend(priority);
    node.wait_for(deadline, |engine, _| {
        let place = engine.frames.iter().position(|frame| *frame == wanted)?;
        Some(engine.frames.remove(place))
    })
}

/// A node in which a thread of this priority has waited.
fn seen(priority: u8) -> (Node<Diary>, Handle) {
    let (shared, handle) = node();
    let node = Node { shared: Arc::new(shared) };
    let short = Deadline::after(Duration::from_millis(1));
    assert_eq!(
        thread::scope(|scope| scope.spawn(|| wait(&node, priority, short, 0)).join().unwrap()),
        Err(LinkError::Timeout)
    );
    (node, handle)
}

/// Until who leads is of this urgency and sleeps, and so many follow.
fn settled(shared: &Shared<Diary>, priority: u8, followers: u32) {
    until("it never comes to that", || {
        let state = shared.lock_anyway();
        (state.driver, state.asleep, state.followers) == (Driver::Caller, true, followers)
            && !state.waiting.is_above_leader(Urgency::of(priority))
            && (priority == 0 || state.waiting.is_above_leader(Urgency::of(priority + 1)))
    });
}

fn come(handle: &Handle, number: u8) {
    handle.wire().coming.push_back(frame(number));
    ring_wire(handle);
}

fn is_left(node: &Node<Diary>) {
    let state = node.shared.lock_anyway();
    assert_eq!((state.driver, state.asleep, state.followers), (Driver::Nobody, false, 0));
    assert!(!state.waiting.has_urgent());
}

#[test]
fn an_urgent_thread_takes_the_links_from_one_that_sleeps() {
    let (node, handle) = seen(5);
    thread::scope(|scope| {
        let ordinary = scope.spawn(|| wait(&node, 0, patient(), 1));
        settled(&node.shared, 0, 0);
        let urgent = scope.spawn(|| wait(&node, 5, patient(), 2));
        // The ordinary one has got up and follows.
        settled(&node.shared, 5, 1);
        let most = scope.spawn(|| wait(&node, 9, patient(), 3));
        settled(&node.shared, 9, 2);
        come(&handle, 3);
        assert_eq!(most.join().unwrap(), Ok(3));
        // Of those that follow the more urgent one has them next.
        settled(&node.shared, 5, 1);
        come(&handle, 1);
        assert_eq!(ordinary.join().unwrap(), Ok(1));
        settled(&node.shared, 5, 0);
        come(&handle, 2);
        assert_eq!(urgent.join().unwrap(), Ok(2));
    });
    is_left(&node);
}

#[test]
fn a_thread_that_is_less_urgent_or_alike_follows() {
    let (node, handle) = seen(5);
    thread::scope(|scope| {
        let urgent = scope.spawn(|| wait(&node, 5, patient(), 1));
        settled(&node.shared, 5, 0);
        let leads = node.shared.lock_anyway().waiting.leads();
        let others = [0, 4, 5].map(|priority| {
            scope.spawn({
                let node = &node;
                move || wait(node, priority, patient(), 2 + priority)
            })
        });
        settled(&node.shared, 5, 3);
        assert!(node.shared.lock_anyway().waiting.is_lead(leads), "the same has led all along");
        for number in [2, 6, 7, 1] {
            come(&handle, number);
        }
        assert_eq!(urgent.join().unwrap(), Ok(1));
        assert_eq!(others.map(|other| other.join().unwrap()), [Ok(2), Ok(6), Ok(7)]);
    });
    is_left(&node);
}

#[test]
fn who_did_not_know_of_urgent_threads_gives_way_once_it_is_up() {
    let (shared, handle) = node();
    let node = Node { shared: Arc::new(shared) };
    thread::scope(|scope| {
        let ordinary = scope.spawn(|| wait(&node, 0, patient(), 1));
        settled(&node.shared, 0, 0);
        let urgent = scope.spawn(|| wait(&node, 5, patient(), 2));
        settled(&node.shared, 5, 1);
        come(&handle, 2);
        assert_eq!(urgent.join().unwrap(), Ok(2));
        settled(&node.shared, 0, 0);
        come(&handle, 1);
        assert_eq!(ordinary.join().unwrap(), Ok(1));
    });
    is_left(&node);
}

#[test]
fn who_was_ousted_keeps_its_deadline_and_hears_of_the_end() {
    let (node, _handle) = seen(5);
    thread::scope(|scope| {
        let short = Deadline::after(Duration::from_millis(300));
        let ordinary = scope.spawn({
            let node = &node;
            move || wait(node, 0, short, 1)
        });
        settled(&node.shared, 0, 0);
        let urgent = scope.spawn(|| wait(&node, 5, patient(), 2));
        assert_eq!(ordinary.join().unwrap(), Err(LinkError::Timeout));
        let last = scope.spawn(|| wait(&node, 0, patient(), 3));
        settled(&node.shared, 5, 1);
        node.finish().unwrap();
        assert_eq!((urgent.join().unwrap(), last.join().unwrap()), (Err(LinkError::Ended), Err(LinkError::Ended)));
    });
}

/// One processor: an ordinary thread sleeps on the links, a thread of a middle priority has work to do; what comes for the most
/// urgent thread reaches it before that is done.
#[test]
fn an_urgent_thread_waits_for_none_that_threads_between_keep_from_running() {
    let cores = realtime::cores();
    let Some(&core) = cores.last().filter(|_| cores.len() > 1) else { return };
    let (node, handle) = seen(20);
    let may_be = |priority: u8| realtime::set_fifo_priority(priority).is_ok();
    // Once it is as urgent as it is to be: on that processor it might not run any more to say so.
    let on_core = || realtime::pin_to_core(core).is_ok();
    let (waits, over) = (AtomicBool::new(false), AtomicBool::new(false));
    let is_set = |flag: &AtomicBool| flag.load(Ordering::Acquire);
    thread::scope(|scope| {
        let ordinary = scope.spawn(|| on_core() && wait(&node, 0, patient(), 1) == Ok(1));
        settled(&node.shared, 0, 0);
        let middle = scope.spawn(|| {
            let may = may_be(10) && on_core();
            while !is_set(&waits) {
                thread::sleep(Duration::from_millis(1));
            }
            // Not as long as real-time threads may keep others out at a time.
            let begun = Instant::now();
            while may && begun.elapsed() < Duration::from_millis(900) && !is_set(&over) {}
            (may, is_set(&over))
        });
        let urgent = scope.spawn(|| {
            let may = may_be(20) && on_core();
            waits.store(true, Ordering::Release);
            let came = wait(&node, 20, patient(), 2);
            over.store(true, Ordering::Release);
            (may, came)
        });
        let sends = scope.spawn(|| {
            let may = may_be(30);
            while !is_set(&waits) {
                thread::sleep(Duration::from_millis(1));
            }
            thread::sleep(Duration::from_millis(50));
            come(&handle, 2);
            may
        });
        let (may, came) = urgent.join().unwrap();
        assert_eq!(came, Ok(2));
        let (may_work, was_over) = middle.join().unwrap();
        settled(&node.shared, 0, 0);
        come(&handle, 1);
        assert!(ordinary.join().unwrap());
        if may && may_work && sends.join().unwrap() {
            assert!(was_over, "it waited until a thread between had done its work");
        } else {
            eprintln!("not tried: real-time priorities may not be had here");
        }
    });
    is_left(&node);
}

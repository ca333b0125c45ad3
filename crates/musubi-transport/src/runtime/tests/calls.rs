//! How a call comes in and goes out: who is ousted, rung, told, and what counts as news.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use musubi_core::plan::{FilterRule, Regulation};
use musubi_linux::Deadline;
use musubi_linux::clock::now_ns;

use super::world::{
    Alarm, Asked, Diary, Handle, PATIENCE_S, class, frame, header, id, node, node_with, rang, result, until,
};
use crate::LinkError;
use crate::links::{Links as _, Report};
use crate::runtime::shared::Shared;
use crate::runtime::state::{Driver, State, Taken};
use crate::runtime::{DeadlineExt as _, Node};
use crate::topology::ClassRule;

const MS: u64 = 1_000_000;
/// Later than any test ends.
const LATER_NS: u64 = u64::MAX / 8;

/// Frames of class 4 wake once in so long, and are told of by the double.
fn rule(interval_ns_min: u64) -> ClassRule {
    let filter = FilterRule { interval_ns_min, latest_ns: 2 * interval_ns_min, ..FilterRule::EACH };
    ClassRule { class: class(4), regulation: Regulation::NONE, filter }
}

fn bell(shared: &Shared<Diary>) -> u32 {
    shared.bell.load(Ordering::Relaxed)
}

#[test]
fn a_call_takes_the_links_from_who_sleeps_on_them() {
    for driver in [Driver::Nobody, Driver::Caller, Driver::Background, Driver::Loop] {
        for parked in [false, true] {
            let (shared, handle) = node();
            let mut state = shared.lock_anyway();
            (state.driver, state.asleep, state.background_parked) = (driver, driver != Driver::Nobody, parked);
            state.taken.note(class(3));
            state.armed_by = Some(thread::current().id());
            drop(state);
            let (calls, bells) = (shared.lock_anyway().calls, bell(&shared));
            let state = shared.enter().unwrap();
            let is_ousted = matches!(driver, Driver::Background | Driver::Loop);
            assert_eq!(state.calls, calls + 1);
            assert_eq!(format!("{:?}", state.taken), format!("{:?}", Taken::NOTHING));
            assert_eq!(state.driver, if is_ousted { Driver::Nobody } else { driver });
            assert_eq!(state.asleep, driver == Driver::Caller);
            assert_eq!(handle.asked(), if is_ousted { vec![Asked::Finish] } else { vec![] }, "{driver:?}");
            assert_eq!(rang(&shared.kick), driver == Driver::Background, "{driver:?}");
            let unparks = parked && driver == Driver::Loop;
            assert_eq!((bell(&shared) - bells, state.background_parked), (u32::from(unparks), parked && !unparks));
            assert_eq!(state.armed_by.is_none(), driver == Driver::Loop, "a loop that calls is awake");
        }
    }
    // Another thread's call leaves the loop where it is: it must be told.
    let (shared, _handle) = node();
    let elsewhere = thread::spawn(|| thread::current().id()).join().unwrap();
    let mut state = shared.lock_anyway();
    (state.driver, state.armed_by) = (Driver::Loop, Some(elsewhere));
    drop(state);
    assert_eq!(shared.enter().unwrap().armed_by, Some(elsewhere));
}

#[test]
fn what_a_call_sends_goes_out_with_its_end() {
    for watched in [false, true] {
        let (shared, handle) = node();
        let mut state = shared.enter().unwrap();
        state.followers = u32::from(watched);
        state.links.send(id(2), &header(1, 0), b"");
        shared.unlock(state);
        assert_eq!(handle.asked(), [Asked::Send(id(2), 0), Asked::Flush]);
        let mut state = shared.enter().unwrap();
        state.links.send(id(2), &header(1, 0), b"");
        drop(shared.make_way(state));
        assert_eq!(handle.asked(), [Asked::Send(id(2), 0), Asked::Flush]);
        let mut state = shared.enter().unwrap();
        state.links.send(id(2), &header(1, 0), b"");
        shared.unlock_aside(state);
        assert_eq!(handle.asked(), [Asked::Send(id(2), 0), Asked::Flush]);
        assert!(shared.try_lock().is_some(), "the lock is free");
    }
}

/// Somebody sleeps until an instant; another thread sends, or leaves reports, or neither; gives who is rung.
fn hastened(driver: Driver, sends: bool, holds: bool, due_ns: u64) -> [bool; 3] {
    let (shared, handle) = node();
    let mut state = shared.lock_anyway();
    (state.driver, state.asleep, state.sleep_until_ns) = (driver, true, LATER_NS);
    state.armed_by = Some(thread::current().id());
    state.engine.due_ns = due_ns;
    handle.wire().holds = holds;
    if sends {
        state.links.send(id(2), &header(1, 0), b"");
    }
    shared.unlock(state);
    [rang(&shared.wake), rang(&shared.kick), rang(&shared.event_loop.bell)]
}

#[test]
fn who_sleeps_is_roused_for_what_is_due_earlier_or_was_left() {
    let nobody = [false; 3];
    for (driver, rung) in [
        (Driver::Caller, [true, false, false]),
        (Driver::Background, [false, true, false]),
        (Driver::Loop, [false, false, true]),
    ] {
        assert_eq!(hastened(driver, true, false, LATER_NS - 1), rung, "{driver:?}");
        assert_eq!(hastened(driver, true, false, LATER_NS), nobody, "{driver:?}");
        assert_eq!(hastened(driver, true, false, LATER_NS + 1), nobody, "{driver:?}");
        assert_eq!(hastened(driver, false, false, LATER_NS - 1), nobody, "nothing was sent");
        assert_eq!(hastened(driver, false, true, LATER_NS), rung, "{driver:?}");
        assert_eq!(hastened(driver, true, true, LATER_NS), rung, "{driver:?}");
    }
    let (shared, handle) = node();
    handle.wire().holds = true;
    let mut state = shared.lock_anyway();
    state.driver = Driver::Caller;
    shared.unlock(state);
    assert!(!rang(&shared.wake), "it does not sleep");
}

/// Who is told when something changes.
fn told(arrange: impl FnOnce(&mut State<Diary>), changes: u64) -> ([bool; 2], u64) {
    let (shared, _handle) = node();
    let mut state = shared.lock_anyway();
    arrange(&mut state);
    state.engine.changes += changes;
    shared.unlock(state);
    let state = shared.lock_anyway();
    assert_eq!(state.told, state.engine.changes);
    ([rang(&shared.wake), rang(&shared.event_loop.bell)], state.links.wakes.woken)
}

#[test]
fn a_change_is_told_to_all_that_wait() {
    assert_eq!(told(|_| (), 1), ([false, false], 0));
    let leader = |state: &mut State<Diary>| (state.driver, state.asleep) = (Driver::Caller, true);
    assert_eq!(told(leader, 1), ([true, false], 0));
    assert_eq!(told(leader, 0), ([false, false], 0), "nothing has changed");
    assert_eq!(told(|state| state.driver = Driver::Caller, 1), ([false, false], 0), "it looks itself");
    assert_eq!(told(|state| state.followers = 2, 1), ([false, false], 1));
    assert_eq!(told(|state| state.followers = 2, 0), ([false, false], 0));
    let awake = |state: &mut State<Diary>| (state.driver, state.followers) = (Driver::Caller, 1);
    assert_eq!(told(awake, 1), ([false, false], 1));
    let background = |state: &mut State<Diary>| (state.driver, state.asleep) = (Driver::Background, true);
    assert_eq!(told(background, 1), ([false, false], 0));
    assert_eq!(told(|state| state.armed_by = Some(thread::current().id()), 1), ([false, true], 0));
    assert_eq!(told(|state| state.armed_by = Some(thread::current().id()), 0), ([false, false], 0));
}

#[test]
fn futures_are_woken_and_somebody_has_the_links_for_them() {
    let (shared, _handle) = node();
    let (first, waker) = Alarm::new();
    let (second, other) = Alarm::new();
    let mut state = shared.lock_anyway();
    assert!(!state.register(1, &waker));
    state.register_for_change(&other);
    let bells = bell(&shared);
    shared.unlock_aside(state);
    assert_eq!(bell(&shared) - bells, 1, "nobody had them");
    assert_eq!([first.count(), second.count()], [0, 0]);
    let mut state = shared.lock_anyway();
    state.driver = Driver::Caller;
    let bells = bell(&shared);
    shared.unlock_aside(state);
    assert_eq!(bell(&shared), bells, "a caller has them");
    let mut state = shared.lock_anyway();
    state.driver = Driver::Nobody;
    state.engine.over.push(1);
    state.engine.changes += 1;
    let bells = bell(&shared);
    shared.unlock_aside(state);
    assert_eq!([first.count(), second.count()], [1, 1]);
    assert_eq!(bell(&shared), bells, "nobody awaits anything any more");
    let mut state = shared.lock_anyway();
    assert!(state.register(1, &waker), "it is over");
    state.register_for_change(&other);
    state.engine.changes += 1;
    shared.unlock(state);
    assert_eq!([first.count(), second.count()], [0, 1]);
    let mut state = shared.lock_anyway();
    state.register_for_change(&other);
    state.engine.changes += 1;
    drop(shared.make_way(state));
    assert_eq!([first.count(), second.count()], [0, 1]);
}

#[test]
fn who_is_watched_for_whom_and_who_has_the_links() {
    let (shared, _handle) = node();
    let (_, waker) = Alarm::new();
    let mut state = shared.lock_anyway();
    assert!(!state.is_watched());
    state.followers = 1;
    assert!(state.is_watched());
    (state.followers, state.asleep) = (0, true);
    assert!(state.is_watched());
    (state.asleep, state.armed_by) = (false, Some(thread::current().id()));
    assert!(state.is_watched());
    state.armed_by = None;
    for (idle, followers, expected) in [(true, 0, true), (true, 1, false), (false, 0, false), (false, 1, false)] {
        state.followers = followers;
        assert_eq!(state.is_left_to_background(idle), expected, "{idle} {followers}");
    }
    state.followers = 0;
    state.register_for_change(&waker);
    assert!(state.is_watched() && state.is_left_to_background(false));

    let (shared, _handle) = node_with(0, vec![rule(LATER_NS)]);
    let mut state = shared.lock_anyway();
    assert!(state.is_filtered());
    for (idle, followers, expected) in [(true, 0, true), (true, 1, true), (false, 0, false), (false, 1, true)] {
        state.followers = followers;
        assert_eq!(state.is_left_to_background(idle), expected, "filtered {idle} {followers}");
    }
}

#[test]
fn a_try_that_changes_something_is_made_again_once() {
    let (shared, _handle) = node();
    let mut state = shared.lock_anyway();
    for (changes, succeeds_at, expected) in [
        (false, 9, (false, 1)),
        (true, 9, (false, 2)),
        (true, 2, (true, 2)),
        (true, 1, (true, 1)),
        (false, 2, (false, 1)),
    ] {
        let mut tries = 0;
        let found = state.attempt(&mut |engine, _| {
            tries += 1;
            engine.changes += u64::from(changes);
            tries == succeeds_at
        });
        assert_eq!((found, tries), expected);
    }
}

#[test]
fn frames_whose_class_wakes_nobody_now_are_news_at_their_time() {
    let (shared, handle) = node_with(0, vec![rule(50 * MS)]);
    let mut state = shared.lock_anyway();
    let come = |state: &mut State<Diary>, number| {
        handle.wire().at_hand.push_back(frame(number));
        state.links.now_ns();
        state.take_in_one()
    };
    assert_eq!(come(&mut state, 4), Some(class(4)));
    assert!(state.has_news(), "the first one wakes");
    shared.unlock(state);
    let mut state = shared.lock_anyway();
    come(&mut state, 4);
    assert!(!state.has_news(), "not the next");
    assert_eq!(state.wake_counts(class(4)).frames, 2);
    assert_eq!((state.links.wakes.frames, state.links.wakes.raised, state.links.wakes.deferred), (2, 1, 0));
    come(&mut state, 1);
    come(&mut state, 4);
    assert!(state.has_news(), "another class does, and what comes behind it takes nothing away");
    state.told = state.engine.changes;
    let due_ns = state.due_ns();
    assert!(due_ns > state.links.last_ns() && due_ns <= state.links.last_ns() + 50 * MS);
    state.raise_due();
    assert!(!state.has_news(), "it is not time yet");
    while state.links.now_ns() < due_ns {
        thread::sleep(Duration::from_millis(1));
    }
    state.raise_due();
    assert!(state.has_news());
    assert_eq!((state.links.wakes.frames, state.links.wakes.raised, state.links.wakes.deferred), (3, 1, 1));
    assert_eq!(state.wake_counts(class(1)), Default::default());
    // Nobody waits for it: no change.
    let silent = crate::frame::Header { status: 1, ..header(4, 0) };
    let payload = crate::links::Payload::Owned(Vec::new());
    handle.wire().at_hand.push_back(Report::Frame { peer: id(2), header: silent, payload });
    state.take_in_one();
    assert_eq!(state.wake_counts(class(4)).frames, 3);
}

#[test]
fn telling_is_good_for_what_was_put_off() {
    let (shared, handle) = node_with(0, vec![rule(LATER_NS)]);
    for _ in 0..2 {
        handle.wire().at_hand.push_back(frame(4));
    }
    let mut state = shared.lock_anyway();
    state.take_in();
    assert_ne!(state.due_ns(), u64::MAX);
    state.followers = 1;
    shared.unlock(state);
    assert_eq!(shared.lock_anyway().due_ns(), u64::MAX);
}

#[test]
fn what_is_due_next_is_the_earliest_of_all() {
    let (shared, handle) = node();
    let mut state = shared.lock_anyway();
    assert_eq!(state.due_ns(), u64::MAX);
    state.engine.due_ns = LATER_NS;
    assert_eq!(state.due_ns(), LATER_NS);
    handle.wire().deadline_ns = LATER_NS - 1;
    assert_eq!(state.due_ns(), LATER_NS - 1);
    handle.wire().deadline_ns = LATER_NS + 1;
    assert_eq!(state.due_ns(), LATER_NS);
    let ticks = state.engine.ticks;
    state.tick();
    assert_eq!((state.engine.ticks, handle.times(Asked::Tick)), (ticks + 1, 0), "the links are not due");
    handle.wire().deadline_ns = 1;
    state.tick();
    assert_eq!(handle.times(Asked::Tick), 1);
}

#[test]
fn what_is_more_urgent_than_the_last_is_for_others() {
    let mut taken = Taken::NOTHING;
    assert!(!taken.has_more_urgent());
    for (number, expected) in
        [(3, false), (3, false), (2, false), (4, true), (2, false), (0, false), (1, false), (2, true)]
    {
        taken.note(class(number));
        assert_eq!(taken.has_more_urgent(), expected, "{number}");
    }
}

#[test]
fn the_end_of_a_node_tells_everybody() {
    let (shared, handle) = node();
    let (alarm, waker) = Alarm::new();
    let mut state = shared.lock_anyway();
    assert!(!state.register(1, &waker));
    state.armed_by = Some(thread::current().id());
    drop(state);
    let bells = bell(&shared);
    shared.finish().unwrap();
    assert_eq!(alarm.count(), 1);
    assert_eq!([&shared.wake, &shared.kick, &shared.event_loop.bell].map(rang), [true; 3]);
    assert_eq!(bell(&shared) - bells, 1);
    assert_eq!(handle.asked(), [Asked::Flush, Asked::Leave]);
    assert!(shared.lock_anyway().engine.has_ended);
    assert_eq!(shared.finish(), Err(LinkError::Ended));
    assert!(matches!(shared.enter(), Err(LinkError::Ended)));
    assert!(shared.lock_anyway().has_finished());
}

#[test]
fn delivery_is_waited_for_until_its_deadline() {
    let (shared, handle) = node();
    let node = Node { shared: Arc::new(shared) };
    handle.wire().deadline_ns = 1;
    let deadline = Deadline::after(Duration::from_secs(PATIENCE_S));
    node.deliver(deadline);
    assert!(!deadline.passed(), "nothing is under way");
    assert_eq!(handle.asked(), [Asked::Flush, Asked::Tick, Asked::Poll, Asked::Flush], "one look");
    handle.wire().has_delivered = false;
    node.deliver(Deadline::after(Duration::from_millis(3)));
    assert!(handle.times(Asked::Poll) > 1);
    node.deliver(Deadline::Poll);
    // Who has the lock may be the one that is interrupted: nothing is done without it.
    handle.asked();
    let state = node.shared.lock_anyway();
    node.deliver(Deadline::after(Duration::from_millis(3)));
    drop(state);
    assert_eq!(handle.asked(), []);
    let other = node.clone();
    let delivering = thread::spawn(move || other.deliver(deadline));
    until("it looks", || handle.times(Asked::Poll) > 0);
    handle.wire().has_delivered = true;
    result(delivering);
    assert!(!deadline.passed());
    node.finish().unwrap();
    handle.wire().has_delivered = false;
    node.deliver(deadline);
    assert!(!deadline.passed(), "it has ended");
}

#[test]
fn arrivals_are_counted_when_nothing_more_changes() {
    let (shared, handle) = node();
    let node = Node { shared: Arc::new(shared) };
    let count = || node.with_arrivals(|engine, _| engine.frames.len()).unwrap();
    assert_eq!((count(), handle.times(Asked::Poll)), (0, 1));
    handle.wire().coming.push_back(frame(1));
    assert_eq!((count(), handle.times(Asked::Poll)), (1, 2));
    node.with(|engine, _| engine.restless = 1000).unwrap();
    assert_eq!((count(), handle.times(Asked::Poll)), (1, 16));
    assert_eq!(node.times_woken(), Ok(0));
    assert!(!node.has_finished());
    let other = node.clone();
    drop(node);
    assert!(!other.has_finished());
}

#[test]
fn who_never_waits_looks_when_much_was_sent() {
    let (shared, handle) = node();
    let node = Node { shared: Arc::new(shared) };
    let payload = vec![0; 256 * 1024];
    let send = |bytes: usize| {
        node.wait_for(Deadline::Poll, |_, links| Some(links.send(id(2), &header(1, bytes), &payload[..bytes])))
            .unwrap();
    };
    send(256 * 1024 - 1);
    assert_eq!(handle.asked(), [Asked::Send(id(2), 256 * 1024 - 1), Asked::Flush]);
    send(1);
    assert_eq!(handle.asked(), [Asked::Send(id(2), 1), Asked::Poll, Asked::Flush]);
}

/// What interfaces ask of a running node, each once.
fn asked_of<N: crate::running::Running<Protocol = Diary>>(node: &N, handle: &Handle) {
    use crate::running::Ways as _;

    assert_eq!(node.id(), id(1));
    let begin_ns = now_ns();
    let times = node.with(|_, links| [links.now_ns(), links.now_ns()]).unwrap();
    assert!(begin_ns <= times[0] && times[0] <= times[1]);
    node.with(|_, links| links.recycle(crate::links::Payload::Owned(vec![0; 5]))).unwrap();
    assert_eq!(handle.times(Asked::Recycle(5)), 1);
    handle.wire().at_hand.extend((0..300).map(|_| frame(2)));
    let came = node.with(|engine, links| {
        N::take_in(engine, links);
        engine.frames.len()
    });
    assert_eq!(came, Ok(256), "so many at a time");
    assert_eq!(node.with_arrivals(|engine, _| engine.frames.len()), Ok(300));
    assert_eq!(node.with_aside(|engine, _| engine.frames.len()), Ok(300));
    assert_eq!(node.wait_for(N::POLL, |engine, _| engine.frames.pop()), Ok(2));
    let (alarm, waker) = Alarm::new();
    assert_eq!(node.wake_when_complete(1, &waker), Ok(false));
    node.with(|engine, _| {
        engine.over.push(1);
        engine.changes += 1;
    })
    .unwrap();
    assert_eq!((alarm.count(), node.wake_when_complete(1, &waker)), (1, Ok(true)));
    node.wake_when_changed(&waker).unwrap();
    node.with(|engine, _| engine.changes += 1).unwrap();
    assert_eq!(alarm.count(), 1);
    node.finish().unwrap();
    assert_eq!(node.finish(), Err(LinkError::Ended));
    assert_eq!(node.wake_when_changed(&waker), Err(LinkError::Ended));
}

#[test]
fn interfaces_have_what_they_ask_for() {
    let (shared, handle) = node_with(0, vec![rule(LATER_NS)]);
    let node = Node { shared: Arc::new(shared) };
    let begin_ns = now_ns();
    assert!((begin_ns..=begin_ns + 1_000_000 * MS).contains(&node.now_ns()));
    assert_eq!(node.topology().nodes.len(), 3);
    handle.wire().at_hand.push_back(frame(4));
    node.with_arrivals(|_, _| ()).unwrap();
    assert_eq!(node.wake_counts(class(4)).unwrap().frames, 1);
    node.with(|engine, _| engine.frames.clear()).unwrap();
    asked_of(&node, &handle);
}

#[test]
fn runs_of_a_process_are_told_apart() {
    let runs: Vec<u32> = (0..20).map(|_| super::world::wiring(Vec::new()).incarnation).collect();
    assert!(runs.iter().all(|run| run % 2 == 1), "odd: {runs:?}");
    let distinct: std::collections::BTreeSet<u32> = runs.iter().copied().collect();
    assert_eq!(distinct.len(), runs.len());
}

#[test]
fn why_a_node_does_not_start_is_said() {
    if std::env::var_os("MUSUBI_TEST_ALONE").is_none() {
        let name = "runtime::tests::calls::why_a_node_does_not_start_is_said";
        let mut again = std::process::Command::new(std::env::current_exe().unwrap());
        again.args(["--exact", name, "--nocapture", "--test-threads=1"]).env("MUSUBI_TEST_ALONE", "1");
        let output = again.env_remove(crate::notices::VARIABLE).output().unwrap();
        let text = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success());
        assert!(text.contains("musubi: node 0:9 does not start: the description has no such node"), "{text}");
        return;
    }
    let mut topology = crate::topology::Topology::single_machine();
    topology.nodes.insert(id(1), Default::default());
    let topology = Arc::new(topology);
    let refused = Node::<Diary>::start(Arc::clone(&topology), id(9), Default::default());
    assert_eq!(refused.err(), Some(LinkError::NodeUnknown));
    let elsewhere = crate::NodeId::new(3, 1).unwrap();
    let refused = Node::<Diary>::start(topology, elsewhere, Default::default());
    assert_eq!(refused.err(), Some(LinkError::DomainUnknown));
}

//! How a call comes in and goes out: who is ousted, rung, told, and what counts as news.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use musubi_core::plan::{FilterRule, Regulation};
use musubi_linux::Deadline;
use musubi_linux::clock::now_ns;

use super::world::{
    Alarm, Asked, Diary, Handle, class, frame, header, id, node, node_with, rang, ready_tokens, ring_wire,
};
use crate::LinkError;
use crate::links::{Links as _, Report};
use crate::runtime::bells::{TOKEN_ALARM, TOKEN_WAKE, ring};
use crate::runtime::node_links::TOKEN_OTHERS;
use crate::runtime::shared::{Shared, TICK};
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
fn a_look_takes_in_and_tries_when_something_has_changed() {
    let (shared, handle) = node();
    let mut state = shared.lock_anyway();
    let mut seen = state.engine.changes;
    let mut tries = 0;
    assert!(!shared.look(&mut state, &mut seen, &mut |_, _| {
        tries += 1;
        false
    }));
    assert_eq!((handle.asked(), tries), (vec![Asked::Poll], 0));
    handle.wire().coming.extend([frame(2), frame(3), frame(4)]);
    assert!(shared.look(&mut state, &mut seen, &mut |_, _| {
        tries += 1;
        tries == 2
    }));
    assert_eq!((&state.engine.frames[..], seen, tries), (&[2, 3][..], 2, 2), "it stops there");
    assert_eq!(
        format!("{:?}", state.taken),
        format!("{:?}", {
            let mut taken = Taken::NOTHING;
            taken.note(class(2));
            taken.note(class(3));
            taken
        })
    );
    // What has changed before is tried too.
    state.engine.changes += 1;
    assert!(shared.look(&mut state, &mut seen, &mut |_, _| true));
    assert_eq!(state.engine.frames, [2, 3, 4]);
    // So many at a time.
    for most in [256, 256, 88, 0] {
        if most == 256 && state.engine.frames.len() == 3 {
            handle.wire().at_hand.extend((0..600).map(|_| frame(1)));
        }
        let before = state.engine.frames.len();
        assert!(!shared.look(&mut state, &mut seen, &mut |_, _| false));
        assert_eq!(state.engine.frames.len() - before, most);
    }
    handle.wire().at_hand.extend((0..300).map(|_| frame(1)));
    let before = state.engine.frames.len();
    state.take_in();
    assert_eq!(state.engine.frames.len() - before, 256);
}

#[test]
fn a_round_ticks_and_tries_what_that_has_changed() {
    let (shared, _handle) = node();
    let mut state = shared.lock_anyway();
    let mut tries = 0;
    let mut round = |state: &mut State<Diary>, found: bool| {
        tries = 0;
        let found = shared.round(state, &mut |_, _| {
            tries += 1;
            found
        });
        (found, tries)
    };
    assert_eq!(round(&mut state, true), (false, 0));
    assert_eq!(state.engine.ticks, 1);
    state.engine.restless = 1;
    assert_eq!(round(&mut state, true), (true, 1));
    state.engine.restless = 1;
    assert_eq!(round(&mut state, false), (false, 1));
    shared.glance(&mut state);
}

#[test]
fn the_first_round_of_a_wait_looks_unless_that_is_likely_in_vain() {
    for (spin_ns, deadline, looks) in [
        (0, Deadline::Forever, false),
        (0, Deadline::Poll, true),
        (1_000, Deadline::Forever, true),
        (1_000, Deadline::Poll, true),
    ] {
        let (shared, handle) = node_with(spin_ns, Vec::new());
        let mut state = shared.lock_anyway();
        state.links.note_look(false);
        assert!(!shared.first_round(&mut state, deadline, &mut |_, _| false));
        assert_eq!(handle.times(Asked::Poll) == 1, looks, "{spin_ns} {deadline:?}");
    }
    // Where a look finds something, the next one is made: what is wanted, or anything.
    for is_wanted in [true, false] {
        let (shared, handle) = node();
        let mut state = shared.lock_anyway();
        state.links.note_look(false);
        handle.wire().at_hand.push_back(frame(1));
        assert_eq!(shared.first_round(&mut state, Deadline::Forever, &mut |_, _| is_wanted), is_wanted);
        handle.asked();
        shared.first_round(&mut state, Deadline::Forever, &mut |_, _| false);
        assert_eq!(handle.times(Asked::Poll), 1);
        shared.first_round(&mut state, Deadline::Forever, &mut |_, _| false);
        assert_eq!(handle.times(Asked::Poll), 0);
    }
}

/// A node whose background thread has asked for a round.
fn asked_for_service() -> (Shared<Diary>, Handle) {
    let (shared, handle) = node();
    shared.wanted.fetch_or(TICK, Ordering::Relaxed);
    (shared, handle)
}

#[test]
fn who_looks_serves_when_asked_for_it() {
    let (shared, handle) = asked_for_service();
    handle.wire().deadline_ns = 1;
    handle.wire().coming.extend([frame(1), frame(2)]);
    ring_wire(&handle);
    let mut state = shared.lock_anyway();
    let mut seen = state.engine.changes;
    assert!(shared.look(&mut state, &mut seen, &mut |_, _| true), "what the service found counts");
    assert_eq!(shared.wanted.load(Ordering::Relaxed), 0);
    assert_eq!(state.engine.frames, [1, 2]);
    assert_eq!(
        handle.asked(),
        [Asked::Ready(TOKEN_OTHERS << 56 | 7), Asked::Tick, Asked::Flush, Asked::Poll],
        "descriptors, what is due, what is held back"
    );
    assert_eq!(state.engine.ticks, 1);
    assert!(ready_tokens(&shared).is_empty());

    // Not while somebody sleeps on the links.
    let (shared, handle) = asked_for_service();
    ring_wire(&handle);
    let mut state = shared.lock_anyway();
    state.asleep = true;
    shared.serve(&mut state);
    assert_eq!((shared.wanted.load(Ordering::Relaxed), handle.asked()), (0, vec![]));
    assert_eq!(ready_tokens(&shared), [TOKEN_OTHERS << 56 | 7]);
}

#[test]
fn what_rouses_a_sleeper_is_left_to_it_and_silenced_by_others() {
    for asleep in [false, true] {
        let (shared, _handle) = node();
        let mut state = shared.lock_anyway();
        ring(&shared.wake);
        shared.set_alarm(&mut state, 1);
        assert_eq!(state.alarm_ns, 1);
        let mut events = shared.await_events(Some(1000 * MS));
        while events.count < 2 {
            events = shared.await_events(Some(1000 * MS));
        }
        state.asleep = asleep;
        shared.hand_events(&mut state, &events);
        let left = if asleep { vec![TOKEN_WAKE, TOKEN_ALARM] } else { vec![] };
        assert_eq!((ready_tokens(&shared), state.alarm_ns), (left, if asleep { 1 } else { u64::MAX }));
    }
}

#[test]
fn the_alarm_only_moves_nearer() {
    let (shared, _handle) = node();
    let mut state = shared.lock_anyway();
    shared.set_alarm(&mut state, now_ns() + 3_600_000 * MS);
    let set_ns = state.alarm_ns;
    shared.set_alarm(&mut state, set_ns + 1);
    assert_eq!(state.alarm_ns, set_ns);
    assert!(ready_tokens(&shared).is_empty());
    let soon_ns = now_ns() + 2 * MS;
    shared.set_alarm(&mut state, soon_ns);
    assert_eq!(state.alarm_ns, soon_ns);
    assert_eq!(shared.await_events(Some(30_000 * MS)).tokens[0], TOKEN_ALARM);
    assert!(now_ns() >= soon_ns);
}

#[test]
fn a_wait_on_descriptors_ends_by_itself() {
    let (shared, _handle) = node();
    let begin_ns = now_ns();
    assert_eq!(shared.await_events(Some(3 * MS)).count, 0);
    assert!(now_ns() - begin_ns >= 3 * MS);
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
    let deadline = Deadline::after(Duration::from_secs(30));
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
    thread::scope(|scope| {
        scope.spawn(|| node.deliver(deadline));
        while handle.times(Asked::Poll) < 1 {
            thread::sleep(Duration::from_millis(1));
        }
        handle.wire().has_delivered = true;
    });
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
    assert_eq!(node.wake_counts(class(1)), Ok(Default::default()));
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

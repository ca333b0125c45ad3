//! Looks, rounds and service: what is taken in, tried and done by whoever has the lock, and what is left to a sleeper.

use std::sync::atomic::Ordering;

use musubi_linux::Deadline;
use musubi_linux::clock::now_ns;

use super::world::{Asked, Diary, Handle, class, frame, node, node_with, ready_tokens, ring_wire};
use crate::runtime::bells::{TOKEN_ALARM, TOKEN_WAKE, ring};
use crate::runtime::node_links::TOKEN_OTHERS;
use crate::runtime::shared::{Shared, TICK};
use crate::runtime::state::{State, Taken};

const MS: u64 = 1_000_000;

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

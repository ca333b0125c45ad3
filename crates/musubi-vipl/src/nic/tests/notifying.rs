//! VIs whose completions wake no oftener than they ask, and are held against a budget.

use musubi_transport::protocol::Holding;

use super::*;

const A: fn() -> NodeId = || node(0, 0);
const B: fn() -> NodeId = || node(1, 0);
const MS: u64 = 1_000_000;

/// Ten milliseconds between two wake-ups, 15 at most from a completion to its own.
const SELDOM: Notification = Notification { interval_ns: 10 * MS, latest_ns: 15 * MS, budget_ns: 0 };

/// Two connected VIs; what is received at the second wakes as it asks.
fn notified(asked: Notification) -> (World, ViNumber, ViNumber) {
    let mut world = World::new(&[A(), B()]);
    let (a, b) = (world.host(A()).vi(PLAIN()), world.host(B()).vi(PLAIN()));
    world.host(B()).nic.set_notification(b, asked).unwrap();
    world.connect_vis((A(), a), (B(), b));
    world.now_ns += 1000 * MS;
    world.tick();
    (world, a, b)
}

/// Sends a message at an instant; whether who sleeps at the receiver is woken.
fn comes(world: &mut World, (a, b): (ViNumber, ViNumber), now_ns: u64) -> bool {
    world.now_ns = now_ns;
    let index = (now_ns / MS % 64) as usize;
    world.host(B()).post_plain(b, Queue::Receive, index, 100 * index, 100);
    world.host(A()).post_plain(a, Queue::Send, index, 100 * index, 100);
    let before = world.host(B()).nic.changes();
    world.settle();
    world.host(B()).nic.changes() != before
}

/// Ticks the receiver at an instant: whether who sleeps is woken, and when the next tick is due.
fn ticked(world: &mut World, now_ns: u64) -> (bool, u64) {
    let Host { nic, wires, .. } = world.host(B());
    let before = nic.changes();
    let next_ns = nic.tick(now_ns, wires);
    (nic.changes() != before, next_ns)
}

#[test]
fn completions_wake_once_in_the_interval_and_are_there_at_once() {
    let (mut world, a, b) = notified(SELDOM);
    let begin_ns = world.now_ns;
    assert!(comes(&mut world, (a, b), begin_ns), "the first");
    assert_eq!(world.host(B()).nic.dequeue(b, Queue::Send).unwrap(), Dequeue::Empty);
    assert_eq!(world.host(B()).all_done(b, Queue::Receive).len(), 1);
    for ms in 1..=4 {
        assert!(!comes(&mut world, (a, b), begin_ns + ms * MS));
    }
    assert!(world.host(B()).nic.take_hastened(), "who sleeps must be up for it");
    assert!(!world.host(B()).nic.take_hastened(), "said once");
    assert_eq!(world.host(B()).done(b, Queue::Receive).map(|done| done.0), Some((begin_ns / MS % 64) as usize + 1));
    assert_eq!(ticked(&mut world, begin_ns + 10 * MS - 1), (false, begin_ns + 10 * MS));
    assert_eq!(ticked(&mut world, begin_ns + 10 * MS), (true, u64::MAX));
    assert_eq!(world.host(B()).nic.take_put_off(), (1 << 3, 1), "of the class");
    assert_eq!(world.host(B()).all_done(b, Queue::Receive).len(), 3);
    let counts = world.host(B()).nic.class_counts(3);
    let expected = ClassCounts {
        asked: 5,
        raised: 1,
        deferred: 1,
        longest_deferral_ns: 9 * MS,
        posted: 5,
        completed: 5,
        ..ClassCounts::default()
    };
    assert_eq!((counts, counts.suppressed()), (expected, 3));
    // The interval begins anew with that.
    assert!(!comes(&mut world, (a, b), begin_ns + 19 * MS));
    assert_eq!(ticked(&mut world, begin_ns + 19 * MS).1, begin_ns + 20 * MS);
}

#[test]
fn the_latest_time_breaks_the_interval_and_is_the_interval_where_it_is_not_said() {
    let (mut world, a, b) = notified(Notification { latest_ns: 2 * MS, ..SELDOM });
    let begin_ns = world.now_ns;
    assert!(comes(&mut world, (a, b), begin_ns) && !comes(&mut world, (a, b), begin_ns + MS));
    assert_eq!(ticked(&mut world, begin_ns + MS), (false, begin_ns + 3 * MS));
    let (mut world, a, b) = notified(Notification { latest_ns: 0, ..SELDOM });
    let begin_ns = world.now_ns;
    assert!(comes(&mut world, (a, b), begin_ns) && !comes(&mut world, (a, b), begin_ns + MS));
    assert_eq!(ticked(&mut world, begin_ns + MS), (false, begin_ns + 10 * MS));
    // Alone it puts nothing off.
    let (mut world, a, b) = notified(Notification { latest_ns: 9 * MS, ..Notification::default() });
    let begin_ns = world.now_ns;
    assert!((0..5).all(|ms| comes(&mut world, (a, b), begin_ns + ms * MS)));
}

#[test]
fn what_the_program_took_meanwhile_wakes_nobody_and_an_error_wakes_at_once() {
    let (mut world, a, b) = notified(SELDOM);
    let begin_ns = world.now_ns;
    assert!(comes(&mut world, (a, b), begin_ns) && !comes(&mut world, (a, b), begin_ns + MS));
    assert_eq!(world.host(B()).all_done(b, Queue::Receive).len(), 2);
    assert_eq!(ticked(&mut world, begin_ns + 10 * MS), (false, u64::MAX));
    assert!(!comes(&mut world, (a, b), begin_ns + 11 * MS));
    world.host(B()).post_plain(b, Queue::Receive, 70, 0, 100);
    let before = world.host(B()).nic.changes();
    let Host { nic, wires, .. } = world.host(A());
    nic.disconnect(a, wires).unwrap();
    world.settle();
    assert_eq!(world.host(B()).state(b), ViState::Error);
    assert!(world.host(B()).nic.changes() > before, "the connection has ended");
    assert_eq!(ticked(&mut world, begin_ns + 500 * MS).1, u64::MAX, "nothing is put off any more");
}

#[test]
fn completions_that_lie_longer_than_the_budget_are_counted() {
    let (mut world, a, b) = notified(Notification { budget_ns: 3 * MS, ..Notification::default() });
    let begin_ns = world.now_ns;
    for ms in [0, 2, 4] {
        assert!(comes(&mut world, (a, b), begin_ns + ms * MS), "a budget puts nothing off");
    }
    assert!(world.host(B()).nic.needs_time() && world.host(B()).nic.wants_time());
    world.host(B()).nic.note_time(begin_ns + 5 * MS);
    assert_eq!(world.host(B()).all_done(b, Queue::Receive).len(), 3);
    let counts = world.host(B()).nic.class_counts(3);
    let expected =
        ClassCounts { timed: 3, over_budget: 1, longest_ns: 5 * MS, posted: 3, completed: 3, ..ClassCounts::default() };
    assert_eq!(counts, expected);
    assert_eq!(world.host(A()).nic.class_counts(3).timed, 0, "the other side asked for nothing");
}

#[test]
fn who_sleeps_is_disturbed_by_no_class_that_may_not_wake_now() {
    let (mut world, a, b) = notified(SELDOM);
    let begin_ns = world.now_ns;
    let shut = |world: &mut World, now_ns: u64| world.host(B()).nic.shut(now_ns);
    assert_eq!(world.host(A()).nic.shut(begin_ns), None, "nobody ever asked there");
    assert_eq!((world.host(B()).nic.holding(), shut(&mut world, begin_ns)), (Holding::Classes, Some((0, u64::MAX))));
    assert!(comes(&mut world, (a, b), begin_ns));
    assert_eq!(shut(&mut world, begin_ns + MS), Some((1 << 3, begin_ns + 10 * MS)));
    assert_eq!(shut(&mut world, begin_ns + 10 * MS), Some((0, u64::MAX)));
    // Another VI of its class without a policy: frames of the class must be heard, by somebody else than who sleeps.
    let other = world.host(B()).vi(PLAIN());
    assert_eq!((world.host(B()).nic.holding(), shut(&mut world, begin_ns + MS).unwrap().0), (Holding::Some, 0));
    world.host(B()).nic.set_notification(other, SELDOM).unwrap();
    assert_eq!(world.host(B()).nic.holding(), Holding::Classes);
    let urgent = world.host(B()).vi(ViAttributes { class: 0, ..PLAIN() });
    assert_eq!(world.host(B()).nic.holding(), Holding::Classes, "another class");
    world.host(B()).nic.set_notification(urgent, SELDOM).unwrap();
    assert_eq!(world.host(B()).nic.holding(), Holding::Some, "the most urgent class is always rung for");
    world.host(B()).nic.destroy_vi(urgent).unwrap();
    // Who waits for a connection is to hear of it at once.
    let Host { nic, .. } = world.host(B());
    let listener = nic.listen(&Address::new(NicNumber(1), b"x").unwrap()).unwrap();
    assert_eq!(shut(&mut world, begin_ns + MS).unwrap().0, 0);
    world.host(B()).nic.end_listening(begin_ns, listener);
    assert_eq!(shut(&mut world, begin_ns + MS).unwrap().0, 1 << 3);
    assert_eq!(world.host(B()).nic.set_notification(b, SELDOM), Err(ViError::State));
    assert_eq!(world.host(B()).nic.set_notification(ViNumber(0), SELDOM), Err(ViError::Parameter));
}

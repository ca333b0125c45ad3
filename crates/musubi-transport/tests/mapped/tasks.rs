//! Tasks that wait: how long they look and rest, what ends a rest, and who is woken.

use musubi_transport::LinkError;
use musubi_transport::links::Sent;
use musubi_transport::mapped::Deadline;
use musubi_transport::running::Running as _;

use crate::world::{Alarm, BEGIN_NS, Heard, Node, Seat, World, frame, heard, id, send, settle};

/// Longest rest between two looks.
const REST_NS_MAX: u64 = 10_000_000;

/// Waits for a report until then.
fn wait(node: &Node, deadline: Deadline) -> Result<Heard, LinkError> {
    node.wait_for(deadline, |keeper, _| keeper.heard.pop_front())
}

fn ticks(node: &Node) -> u32 {
    node.with(|keeper, _| std::mem::take(&mut keeper.ticks)).unwrap()
}

fn change(node: &Node) {
    node.with(|keeper, _| keeper.changes += 1).unwrap();
}

#[test]
fn a_poll_looks_once_and_never_rests() {
    let (_, [(one, seat), (other, _)]) = World::pair();
    ticks(&one);
    let mut asked = 0;
    let nothing = one.wait_for(Deadline::Poll, |_, _| {
        asked += 1;
        None::<()>
    });
    assert_eq!((nothing, asked, ticks(&one)), (Err(LinkError::Timeout), 1, 1));
    send(&other, id(0), 8, 1);
    assert_eq!(wait(&one, Deadline::Poll), Ok(frame(id(1), 8, 1)));
    assert_eq!(ticks(&one), 1);
    // What came is not what is waited for.
    send(&other, id(0), 8, 2);
    assert_eq!(one.wait_for(Deadline::Poll, |_, _| None::<()>), Err(LinkError::Timeout));
    assert_eq!((ticks(&one), seat.rests()), (1, vec![]));
    // What is there already needs no look.
    assert_eq!(wait(&one, Deadline::Poll), Ok(frame(id(1), 8, 2)));
    assert_eq!(ticks(&one), 0);
}

#[test]
fn a_wait_looks_as_often_as_the_options_say_then_rests_until_its_deadline() {
    let (world, [(one, seat), _other]) = World::pair();
    ticks(&one);
    assert_eq!(wait(&one, one.within(5)), Err(LinkError::Timeout));
    assert_eq!(world.desk.now_ns(), BEGIN_NS + 5);
    assert_eq!(seat.rests(), [BEGIN_NS + 5]);
    assert_eq!(ticks(&one), 3 + 1 + 1, "three looks, the one before the rest, the one after it");
    let begin_ns = world.desk.now_ns();
    assert_eq!(wait(&one, one.within(REST_NS_MAX + 3)), Err(LinkError::Timeout));
    assert_eq!(seat.rests(), [begin_ns + REST_NS_MAX, begin_ns + REST_NS_MAX + 3]);
    assert_eq!(ticks(&one), 4 + 1 + 1);
    assert_eq!(wait(&one, Deadline::At(0)), Err(LinkError::Timeout));
    assert_eq!((ticks(&one), seat.rests()), (1, vec![]), "it has passed: one look");
}

#[test]
fn a_change_begins_the_looks_anew() {
    let (_, [(one, seat), _other]) = World::pair();
    ticks(&one);
    let node = one.clone();
    seat.then(move |_| change(&node));
    assert_eq!(one.wait_for(one.within(5), |_, _| None::<()>), Err(LinkError::Timeout));
    // The change was made by a call, not found by a look.
    assert_eq!((ticks(&one), seat.rests().len()), (4 + 1 + 1, 2));
    one.with(|keeper, _| keeper.restless = 1).unwrap();
    assert_eq!(one.wait_for(one.within(5), |_, _| None::<()>), Err(LinkError::Timeout));
    assert_eq!((ticks(&one), seat.rests().len()), (1 + 4 + 1, 1), "a look that changes something is not in vain");
}

#[test]
fn a_rest_ends_by_what_is_due() {
    let (_, [(one, seat), _other]) = World::pair();
    one.with(|keeper, _| keeper.due_ns = BEGIN_NS + 7).unwrap();
    let node = one.clone();
    seat.then(move |_| node.with(|keeper, _| keeper.due_ns = u64::MAX).unwrap());
    assert_eq!(wait(&one, one.within(70)), Err(LinkError::Timeout));
    assert_eq!(seat.rests(), [BEGIN_NS + 7, BEGIN_NS + 70]);
}

#[test]
fn who_rests_is_rung_for_what_is_sent_and_no_longer_than_that() {
    let (world, [(one, seat), (other, _)]) = World::pair();
    send(&other, id(0), 8, 0);
    assert_eq!(world.desk.rings(0), 0, "it does not rest");
    let (desk, peer) = (world.desk.clone(), other.clone());
    seat.then(move |is_needed| {
        assert!(is_needed());
        send(&peer, id(0), 8, 1);
        assert_eq!(desk.rings(0), 1);
        assert!(!is_needed(), "there is something to look at");
        send(&peer, id(0), 8, 2);
        assert_eq!(desk.rings(0), 1, "it has not looked yet");
    });
    for number in 0..3 {
        assert_eq!(wait(&one, Deadline::Forever), Ok(frame(id(1), 8, number)));
    }
    assert_eq!(seat.rests(), [BEGIN_NS + REST_NS_MAX]);
    send(&other, id(0), 8, 3);
    assert_eq!(world.desk.rings(0), 0, "its rest is over");
    assert_eq!(wait(&one, Deadline::Poll), Ok(frame(id(1), 8, 3)));
}

#[test]
fn a_host_that_cannot_be_woken_rests_without_a_word() {
    let world = World::of(2);
    let seat = world.seat(false);
    let (one, other): (Node, Node) = (world.start_on(0, seat, 3), world.start(1).0);
    settle(&[&one, &other]);
    heard(&one);
    world.desk.rings(0);
    let (desk, peer, node) = (world.desk.clone(), other.clone(), one.clone());
    seat.then(move |is_needed| {
        assert!(is_needed());
        node.with(|_, _| ()).unwrap();
        assert_eq!(seat.roused(), 0, "nothing has changed");
        send(&peer, id(0), 8, 1);
        assert_eq!(desk.rings(0), 0);
        node.with(|_, _| ()).unwrap();
        assert_eq!(seat.roused(), 0, "nor does it announce anything for those that rest");
        change(&node);
        assert_eq!(seat.roused(), 1);
    });
    assert_eq!(wait(&one, Deadline::Forever), Ok(frame(id(1), 8, 1)));
}

#[test]
fn who_waits_for_room_is_rung_when_blocks_come_back() {
    for bytes in [8, 1000] {
        let (world, [(one, seat), (other, _)]) = World::pair();
        while send(&one, id(1), bytes, 0) != Sent::Full {}
        let (desk, peer, node) = (world.desk.clone(), other.clone(), one.clone());
        seat.then(move |is_needed| {
            assert!(is_needed());
            peer.serve().unwrap();
            assert!(desk.rings(0) > 0, "{bytes} bytes");
            node.with(|_, _| ()).unwrap();
            assert_eq!(seat.roused(), 1, "room is news to those that rest");
        });
        assert_eq!(wait(&one, Deadline::Forever), Ok(Heard::Room(id(1))));
        // With room nobody is told of more of it.
        let (desk, peer) = (world.desk.clone(), other.clone());
        assert_eq!(send(&one, id(1), bytes, 0), Sent::Delivered);
        seat.then(move |_| {
            peer.serve().unwrap();
            assert_eq!(desk.rings(0), 0, "{bytes} bytes");
        });
        assert_eq!(wait(&one, one.within(1)), Err(LinkError::Timeout));
    }
}

#[test]
fn what_one_task_does_ends_the_rest_of_another() {
    let (_, [(one, seat), (other, _)]) = World::pair();
    change(&one);
    assert_eq!(seat.roused(), 0, "nobody rests");
    let (node, peer) = (one.clone(), other.clone());
    seat.then(move |is_needed| {
        node.with(|_, _| ()).unwrap();
        node.serve().unwrap();
        assert_eq!((seat.roused(), is_needed()), (0, true), "nothing has changed");
        change(&node);
        assert_eq!((seat.roused(), is_needed()), (1, false));
        node.with(|_, _| ()).unwrap();
        assert_eq!(seat.roused(), 0, "once");
        // What comes while somebody else calls, and is left, is news too.
        send(&peer, id(0), 8, 1);
        node.with(|_, _| ()).unwrap();
        assert_eq!(seat.roused(), 1);
        change(&node);
        assert_eq!(seat.roused(), 1, "both at once");
    });
    assert_eq!(wait(&one, Deadline::Forever), Ok(frame(id(1), 8, 1)));
    assert_eq!(seat.rests().len(), 1);
    change(&one);
    assert_eq!(seat.roused(), 0, "nobody rests any more");
}

#[test]
fn the_first_of_two_that_end_their_rest_leaves_the_bell_to_the_other() {
    let (world, [(one, seat), (other, _)]) = World::pair();
    let (node, peer, desk) = (one.clone(), other.clone(), world.desk.clone());
    seat.then(move |_| {
        // A second task waits, and ends its wait, while the first one rests.
        assert_eq!(wait(&node, node.within(1)), Err(LinkError::Timeout));
        send(&peer, id(0), 8, 1);
        assert_eq!(desk.rings(0), 1, "the first one rests still");
    });
    assert_eq!(wait(&one, Deadline::Forever), Ok(frame(id(1), 8, 1)));
}

#[test]
fn the_end_of_the_node_ends_waits_and_wakes_futures() {
    let (world, [(one, seat), (other, _)]) = World::pair();
    let [(first, for_request), (second, for_change)] = [Alarm::new(), Alarm::new()];
    assert_eq!(one.wake_when_complete(1, &for_request), Ok(false));
    one.wake_when_changed(&for_change).unwrap();
    let node = one.clone();
    seat.then(move |_| {
        node.finish().unwrap();
        assert_eq!(seat.roused(), 1);
    });
    assert_eq!(wait(&one, Deadline::Forever), Err(LinkError::Ended));
    assert_eq!([first.count(), second.count()], [1, 1]);
    assert_eq!(one.finish(), Err(LinkError::Ended));
    assert_eq!(one.serve(), Err(LinkError::Ended));
    assert_eq!(one.with(|_, _| ()), Err(LinkError::Ended));
    assert_eq!(one.wake_when_complete(1, &for_request), Err(LinkError::Ended));
    assert_eq!(one.wake_when_changed(&for_change), Err(LinkError::Ended));
    assert_eq!(wait(&one, Deadline::Poll), Err(LinkError::Ended));
    settle(&[&other]);
    assert_eq!(heard(&other).len(), 1);
    // The handles that are left end nothing a second time.
    world.desk.rings(1);
    drop(one);
    assert_eq!(world.desk.rings(1), 0);
}

#[test]
fn futures_are_woken_for_what_they_await() {
    let (_, [(one, _), (other, _)]) = World::pair();
    let alarms = [Alarm::new(), Alarm::new(), Alarm::new(), Alarm::new()];
    let counts = || [0, 1, 2, 3].map(|at: usize| alarms[at].0.count());
    one.with(|keeper, _| keeper.over.push(9)).unwrap();
    assert_eq!(one.wake_when_complete(9, &alarms[0].1), Ok(true));
    for (request, alarm) in [(1, 0), (2, 1), (3, 2)] {
        assert_eq!(one.wake_when_complete(request, &alarms[alarm].1), Ok(false));
    }
    // Who comes first may be woken for what was changed before.
    one.wake_when_changed(&alarms[3].1).unwrap();
    one.with(|_, _| ()).unwrap();
    counts();
    one.wake_when_changed(&alarms[3].1).unwrap();
    one.with(|_, _| ()).unwrap();
    one.serve().unwrap();
    assert_eq!(counts(), [0; 4], "nothing has changed");
    one.with(|keeper, _| {
        keeper.over.extend([1, 3]);
        keeper.changes += 1;
    })
    .unwrap();
    assert_eq!(counts(), [1, 0, 1, 1]);
    change(&one);
    assert_eq!(counts(), [0; 4], "each is woken once");
    // By what a look finds, too; and the last waker of a request counts.
    assert_eq!(one.wake_when_complete(2, &alarms[2].1), Ok(false));
    one.with(|keeper, _| keeper.over.push(2)).unwrap();
    send(&other, id(0), 8, 1);
    one.serve().unwrap();
    assert_eq!(counts(), [0, 0, 1, 0]);
}

#[test]
fn arrivals_are_taken_in_until_nothing_changes() {
    let (_, [(one, _), (other, _)]) = World::pair();
    ticks(&one);
    let count = |node: &Node| node.with_arrivals(|keeper, _| keeper.heard.len()).unwrap();
    assert_eq!((count(&one), ticks(&one)), (0, 1));
    send(&other, id(0), 8, 1);
    assert_eq!((count(&one), ticks(&one)), (1, 2));
    one.with(|keeper, _| keeper.restless = 1000).unwrap();
    assert_eq!((count(&one), ticks(&one)), (1, 16), "but not for ever");
    assert_eq!(one.with_aside(|keeper, _| keeper.heard.len()), Ok(1));
    send(&other, id(0), 8, 2);
    let taken = one.with(|keeper, links| {
        Node::take_in(keeper, links);
        keeper.heard.len()
    });
    assert_eq!(taken, Ok(2), "in the middle of a call");
}

#[test]
fn sixteen_looks_at_a_time_take_in_as_much_as_there_is() {
    let (_, [(one, _), (other, _)]) = World::pair();
    let mut sent = 0;
    while send(&other, id(0), 8, sent) == Sent::Delivered {
        sent += 1;
    }
    assert_eq!(one.with_arrivals(|keeper, _| keeper.heard.len()), Ok(sent as usize));
}

#[test]
fn the_clock_is_the_hosts() {
    let (world, [(one, seat), _other]) = World::pair();
    let _: &Seat = seat;
    assert_eq!((one.now_ns(), one.within(5)), (BEGIN_NS, Deadline::At(BEGIN_NS + 5)));
    world.desk.pass_to(77_777);
    assert_eq!((one.now_ns(), one.within(u64::MAX)), (77_777, Deadline::At(u64::MAX)));
}

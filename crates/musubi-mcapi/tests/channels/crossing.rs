//! Requests that cross each other: one outcome, and both sides agree on it.

use musubi_mcapi::engine::{ChannelKind, RequestId, Sending};
use musubi_mcapi::{EndpointId, Error};

use super::orders::exchange;
use super::world::{Channel, Mode, World};

use ChannelKind::{Packet, Scalar};

/// In how many different orders frames are delivered.
const CHOICES: usize = 12;

fn run(world: &mut World, choice: usize) {
    let mut steps = 0;
    while world.step(choice + steps * (choice % 5)) {
        steps += 1;
    }
}

/// Opens both ends of a connection that exists, uses and closes it.
fn use_connected(
    world: &mut World,
    kind: ChannelKind,
    (sender, from): (usize, EndpointId),
    (receiver, to): (usize, EndpointId),
) {
    let (sending, opening) = world.open(sender, kind, false, from);
    let (receiving, opening_too) = world.open(receiver, kind, true, to);
    world.settle();
    world.done(sender, opening);
    world.done(receiver, opening_too);
    let channel = Channel { kind, sender, receiver, from, to, sending, receiving };
    exchange(world, &channel);
    world.close_both(&channel);
}

fn result(world: &mut World, at: usize, request: RequestId) -> Result<(), Error> {
    world.outcome(at, request).map(|_| ())
}

#[test]
fn all_connect_the_same_ends_and_one_wins() {
    for mode in [Mode::Memory, Mode::Network] {
        for choice in 0..CHOICES {
            let mut world = World::new(3, mode);
            let (from, to) = (world.create(0), world.create(1));
            let requests = [0, 1, 2].map(|at| (at, world.connect(at, Packet, from, to)));
            run(&mut world, choice);
            let results = requests.map(|(at, request)| result(&mut world, at, request));
            assert_eq!(results.iter().filter(|result| result.is_ok()).count(), 1, "{results:?}");
            assert_eq!(results.iter().filter(|result| **result == Err(Error::ChannelConnected)).count(), 2);
            use_connected(&mut world, Packet, (0, from), (1, to));
        }
    }
}

#[test]
fn ends_connected_in_both_directions_at_once_get_one() {
    for mode in [Mode::Memory, Mode::Network] {
        for choice in 0..CHOICES {
            for (first, second) in [(0, 1), (1, 0), (2, 2)] {
                let mut world = World::new(3, mode);
                let (a, b) = (world.create(0), world.create(1));
                let forth = world.connect(first, Packet, a, b);
                let back = world.connect(second, Scalar, b, a);
                run(&mut world, choice);
                match (result(&mut world, first, forth), result(&mut world, second, back)) {
                    (Ok(()), Err(Error::ChannelConnected)) => use_connected(&mut world, Packet, (0, a), (1, b)),
                    (Err(Error::ChannelConnected), Ok(())) => use_connected(&mut world, Scalar, (1, b), (0, a)),
                    other => panic!("{other:?}"),
                }
            }
        }
    }
}

#[test]
fn three_ends_connected_in_a_ring_leave_nothing_half() {
    for choice in 0..CHOICES {
        let mut world = World::new(3, Mode::Network);
        let ends = [0, 1, 2].map(|at| world.create(at));
        let requests = [0, 1, 2].map(|at| world.connect(at, Packet, ends[at], ends[(at + 1) % 3]));
        run(&mut world, choice);
        let results = [0, 1, 2].map(|at| result(&mut world, at, requests[at]));
        assert!(results.iter().filter(|result| result.is_ok()).count() <= 1, "{results:?}");
        let deletable = |world: &mut World, at: usize| {
            world.call(at, |engine, links| engine.delete_endpoint(ends[at], links)).is_ok()
        };
        for at in 0..3 {
            match results[at] {
                Ok(()) => use_connected(&mut world, Packet, (at, ends[at]), ((at + 1) % 3, ends[(at + 1) % 3])),
                Err(error) => assert_eq!(error, Error::ChannelConnected),
            }
        }
        assert!((0..3).all(|at| deletable(&mut world, at)));
    }
}

#[test]
fn both_close_at_once() {
    for mode in [Mode::Memory, Mode::Network] {
        for choice in 0..CHOICES {
            for queued in [0, 3, 40] {
                let mut world = World::new(2, mode);
                let channel = world.channel(Packet, 0, 1);
                let later: Vec<_> =
                    (0..queued).map(|_| world.send_later(0, channel.sending, b"unread").unwrap()).collect();
                let first = world.close(0, Packet, false, channel.sending).unwrap();
                let second = world.close(1, Packet, true, channel.receiving).unwrap();
                run(&mut world, choice);
                world.done(0, first);
                world.done(1, second);
                for request in later {
                    assert!(!world.pending(0, request));
                    let _ = world.outcome(0, request);
                }
                use_connected_again(&mut world, &channel);
            }
        }
    }
}

fn use_connected_again(world: &mut World, channel: &Channel) {
    let channel = world.channel_of(channel.kind, (channel.sender, channel.from), (channel.receiver, channel.to));
    exchange(world, &channel);
    world.close_both(&channel);
}

#[test]
fn a_sender_that_reopens_at_once_is_not_mixed_up_with_its_former_data() {
    for choice in 0..CHOICES {
        let mut world = World::new(2, Mode::Network);
        let channel = world.channel(Packet, 0, 1);
        let closing = world.close(1, Packet, true, channel.receiving).unwrap();
        for n in 0..10 {
            assert_eq!(world.send(0, channel.sending, &[n]), Ok(Sending::Done), "nobody knows yet");
        }
        let closing_too = world.close(0, Packet, false, channel.sending).unwrap();
        while world.pending(0, closing_too) {
            assert!(world.step(choice));
        }
        let connecting = world.connect(0, Packet, channel.from, channel.to);
        let (sending, _) = world.open(0, Packet, false, channel.from);
        run(&mut world, choice);
        world.done(0, connecting);
        world.done(1, closing);
        let (receiving, _) = world.open(1, Packet, true, channel.to);
        run(&mut world, choice);
        assert_eq!(world.receive(1, receiving), Ok(None));
        exchange(&mut world, &Channel { sending, receiving, ..channel });
    }
}

#[test]
fn a_cancelled_connect_leaves_both_ends_or_none() {
    for mode in [Mode::Memory, Mode::Network] {
        for choice in 0..CHOICES {
            for steps in 0..10 {
                for opened in [false, true] {
                    let mut world = World::new(3, mode);
                    let (from, to) = (world.create(0), world.create(1));
                    let opening = opened.then(|| world.open(1, Packet, true, to));
                    let connecting = world.connect(2, Packet, from, to);
                    for step in 0..steps {
                        world.step(choice + step);
                    }
                    if !world.pending(2, connecting) {
                        continue;
                    }
                    world.cancel(2, connecting);
                    run(&mut world, choice);
                    // Nothing was opened at the sending end, so it is always undone.
                    assert_eq!(world.call(0, |engine, links| engine.delete_endpoint(from, links)), Ok(()));
                    if let Some((_, opening)) = opening {
                        assert!(world.pending(1, opening), "the opening waits on");
                        world.cancel(1, opening);
                    }
                    assert_eq!(world.call(1, |engine, links| engine.delete_endpoint(to, links)), Ok(()));
                    assert_eq!((0..3).map(|at| world.call(at, |engine, _| engine.requests())).sum::<usize>(), 0);
                }
            }
        }
    }
}

#[test]
fn a_cancelled_open_can_be_repeated_whatever_the_other_side_saw() {
    for mode in [Mode::Memory, Mode::Network] {
        for kind in [Packet, Scalar] {
            for receives in [false, true] {
                for choice in 0..CHOICES {
                    for steps in 0..6 {
                        let mut world = World::new(2, mode);
                        let ends = [world.create(0), world.create(1)];
                        let canceller = usize::from(receives);
                        let connecting = world.connect(0, kind, ends[0], ends[1]);
                        world.settle();
                        world.done(0, connecting);
                        let (_, opening) = world.open(canceller, kind, receives, ends[canceller]);
                        let (other, opening_too) = world.open(1 - canceller, kind, !receives, ends[1 - canceller]);
                        for step in 0..steps {
                            world.step(choice + step);
                        }
                        let handle = if world.pending(canceller, opening) {
                            world.cancel(canceller, opening);
                            run(&mut world, choice);
                            let (handle, opening) = world.open(canceller, kind, receives, ends[canceller]);
                            run(&mut world, choice);
                            world.done(canceller, opening);
                            handle
                        } else {
                            continue;
                        };
                        world.done(1 - canceller, opening_too);
                        let (sending, receiving) = if receives { (other, handle) } else { (handle, other) };
                        let (from, to) = (ends[0], ends[1]);
                        let channel = Channel { kind, sender: 0, receiver: 1, from, to, sending, receiving };
                        exchange(&mut world, &channel);
                        world.close_both(&channel);
                    }
                }
            }
        }
    }
}

#[test]
fn an_end_whose_opening_was_cancelled_does_not_hold_the_others_close_up() {
    for receives in [false, true] {
        for choice in 0..CHOICES {
            let mut world = World::new(2, Mode::Network);
            let ends = [world.create(0), world.create(1)];
            let canceller = usize::from(receives);
            world.connect(0, Packet, ends[0], ends[1]);
            let (_, opening) = world.open(canceller, Packet, receives, ends[canceller]);
            world.settle();
            let (other, opening_too) = world.open(1 - canceller, Packet, !receives, ends[1 - canceller]);
            world.done(1 - canceller, opening_too);
            // The other side is open; the news of it crosses with the cancelling.
            world.cancel(canceller, opening);
            let closing = world.close(1 - canceller, Packet, !receives, other).unwrap();
            run(&mut world, choice);
            world.done(1 - canceller, closing);
            for (at, end) in ends.into_iter().enumerate() {
                assert_eq!(world.call(at, |engine, links| engine.delete_endpoint(end, links)), Ok(()));
            }
        }
    }
}

#[test]
fn what_was_sent_to_an_end_whose_opening_was_cancelled_is_read_when_it_opens_again() {
    let mut world = World::new(2, Mode::Network);
    let (from, to) = (world.create(0), world.create(1));
    world.connect(0, Packet, from, to);
    let (_, opening) = world.open(1, Packet, true, to);
    world.settle();
    let (sending, opening_too) = world.open(0, Packet, false, from);
    world.done(0, opening_too);
    assert_eq!(world.send(0, sending, b"early"), Ok(Sending::Done));
    world.cancel(1, opening);
    let closing = world.close(0, Packet, false, sending).unwrap();
    world.settle();
    assert!(world.pending(0, closing), "something is unread");
    let (receiving, opening) = world.open(1, Packet, true, to);
    world.done(1, opening);
    assert_eq!(world.receive(1, receiving), Ok(Some(b"early".to_vec())));
    assert_eq!(world.receive(1, receiving), Err(Error::ChannelInvalid));
    let closing_too = world.close(1, Packet, true, receiving).unwrap();
    world.settle();
    world.done(0, closing);
    world.done(1, closing_too);
}

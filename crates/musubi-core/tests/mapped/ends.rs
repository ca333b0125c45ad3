//! What an end, a segment and a participant say of themselves.

use core::task::{Context, Poll, Waker};

use musubi_core::Error;
use musubi_core::channel::{Attachment, Deadline, ReceivingEnd as _, SendingEnd as _, SharedSegment as _, WAIT_MAX};
use musubi_core::fifo::Notified;
use musubi_core::plan::FilterRule;

use crate::world::{
    BLOCKS, DOWN, HEARTBEAT_NS, MASTER, OTHER, PLAN, REMOTE, STALLED_NS, UP, World, receiving, send, sending, take,
};

#[test]
fn ends_know_their_channel_and_how_full_it_is() {
    let world = World::new(2);
    let (master, remote) = (world.attach(MASTER), world.attach(REMOTE));
    let (tx, rx) = (sending(&master, DOWN), receiving(&remote, DOWN));
    assert_eq!((tx.block_bytes(), rx.block_bytes(), rx.priority()), (8, 8, 0));
    assert!(send(&tx, 1) && send(&tx, 2));
    let held = tx.allocate(Deadline::Poll).unwrap();
    let usage = tx.usage();
    assert_eq!((usage.blocks, usage.free, usage.queued, usage.held), (BLOCKS, BLOCKS - 3, 2, 1));
    assert_eq!(take(&rx, true), Some(1));
    let usage = rx.usage();
    assert_eq!((usage.blocks, usage.free, usage.queued, usage.held), (BLOCKS, 0, 1, 1));
    assert!(rx.is_ready() && tx.free(held).is_ok());
    assert_eq!((take(&rx, false), rx.is_ready(), tx.usage().held), (Some(2), false, 0));
}

#[test]
fn participants_know_where_they_are() {
    let world = World::new(3);
    let (master, remote, other) = (world.attach(MASTER), world.attach(REMOTE), world.attach(OTHER));
    let who = [&master, &remote, &other].map(|participant| (participant.participant(), participant.domain()));
    assert_eq!(who, [(MASTER, 0), (REMOTE, 1), (OTHER, 1)]);
    assert_eq!((master.plan(), remote.plan().hash), (&PLAN, PLAN.hash));
    [&master, &remote, &other].iter().for_each(|participant| participant.beat());
    assert_eq!((master.attached(0), master.attached(1)), (1, 2));
    assert!(!master.is_stalled(REMOTE) && !remote.is_stalled(MASTER) && !remote.is_stalled(OTHER));
    assert!(remote.open_sending(DOWN).is_err() && remote.open_receiving(UP).is_err(), "the other domain's ends");
}

#[test]
fn a_segment_keeps_what_was_written_inside_of_it() {
    let world = World::new(2);
    let (master, remote) = (world.attach(MASTER), world.attach(REMOTE));
    let (ours, theirs) =
        (master.open_segment(0, Deadline::Poll).unwrap(), remote.open_segment(0, Deadline::Poll).unwrap());
    assert_eq!((ours.bytes(), theirs.bytes()), (100, 100));
    assert!(!ours.holds());
    ours.try_lock().unwrap();
    assert!(ours.holds() && !theirs.holds());
    ours.write(97, b"end").unwrap();
    assert!(ours.write(98, b"end").is_err() && ours.read(100, &mut [0]).is_err());
    assert!(theirs.try_lock().is_err());
    ours.unlock().unwrap();
    theirs.lock(Deadline::Poll).or_else(|_| theirs.try_lock()).unwrap();
    let mut bytes = [0; 3];
    theirs.read(97, &mut bytes).unwrap();
    assert_eq!(&bytes, b"end");
    assert!(theirs.unlock().is_ok() && theirs.unlock().is_err());
}

#[test]
fn an_end_without_a_peer_knows_its_blocks() {
    let world = World::new(2);
    let remote = world.attach(REMOTE);
    let usage = receiving(&remote, DOWN).usage();
    assert_eq!((usage.blocks, usage.free, usage.queued, usage.held, usage.connected), (BLOCKS, 0, 0, 0, false));
}

#[test]
fn who_has_no_block_is_told_so_or_that_the_time_is_up() {
    let world = World::new(2);
    let (master, remote) = (world.attach(MASTER), world.attach(REMOTE));
    let (tx, rx) = (sending(&master, DOWN), receiving(&remote, DOWN));
    let mut context = Context::from_waker(Waker::noop());
    assert_eq!(tx.poll_block(&mut context), Poll::Ready(Ok(())));
    assert!((0..BLOCKS).all(|number| send(&tx, number)));
    assert_eq!(tx.poll_block(&mut context), Poll::Pending);
    assert_eq!(tx.allocate(Deadline::Poll).unwrap_err(), Error::NoBlock);
    let soon = Deadline::At(master.now_ns() + HEARTBEAT_NS);
    assert_eq!(tx.allocate(soon).unwrap_err(), Error::Timeout);
    assert_eq!(take(&rx, false), Some(0));
    assert_eq!(tx.poll_block(&mut context), Poll::Ready(Ok(())));
    assert!(tx.allocate(Deadline::Poll).is_ok());
}

#[test]
fn a_reset_voids_what_is_queued_and_an_event_reaches_the_sender_once() {
    let world = World::new(2);
    let (master, remote) = (world.attach(MASTER), world.attach(REMOTE));
    let (tx, rx) = (sending(&master, DOWN), receiving(&remote, DOWN));
    assert!(send(&tx, 1) && send(&tx, 2));
    tx.reset();
    assert_eq!(take(&rx, false), None);
    assert!(send(&tx, 3));
    assert_eq!(take(&rx, false), Some(3));
    assert_eq!(tx.wait(Deadline::Poll), Err(Error::Timeout));
    rx.notify();
    assert_eq!((tx.wait(Deadline::Poll), tx.wait(Deadline::Poll)), (Ok(()), Err(Error::Timeout)));
}

#[test]
fn a_new_filter_holds_from_the_next_message_on() {
    let world = World::new(2);
    let (master, remote) = (world.attach(MASTER), world.attach(REMOTE));
    let (tx, rx) = (sending(&master, DOWN), receiving(&remote, DOWN));
    tx.set_filter(FilterRule { every: 2, ..FilterRule::EACH });
    for is_told in [false, true] {
        let loan = tx.allocate(Deadline::Poll).unwrap();
        assert!(tx.enqueue(loan, 4).is_ok());
        assert_eq!(matches!(tx.notify(), Notified::Raised), is_told);
        assert_eq!(rx.is_ready(), is_told);
    }
}

#[test]
fn so_many_ends_are_waited_for_at_once_and_no_more() {
    let world = World::new(2);
    let (master, remote) = (world.attach(MASTER), world.attach(REMOTE));
    let (tx, rx) = (sending(&master, DOWN), receiving(&remote, DOWN));
    let ends = [&rx; WAIT_MAX + 1];
    assert_eq!(remote.wait_any(&ends, Deadline::Poll), Err(Error::TooLong));
    assert_eq!(remote.wait_any(&ends[..WAIT_MAX], Deadline::Poll), Err(Error::Timeout));
    assert!(send(&tx, 1));
    assert_eq!(remote.wait_any(&ends[..WAIT_MAX], Deadline::Poll), Ok(()));
    assert_eq!(remote.wait_any(&ends[..1], Deadline::Poll), Ok(()));
}

#[test]
fn a_pulse_knows_whether_somebody_is_attached() {
    let world = World::new(2);
    let (master, remote) = (world.attach(MASTER), world.attach(REMOTE));
    let pulse = remote.pulse();
    master.beat();
    assert!(pulse.is_attached() && master.attached(1) == 1);
    // It beats in its participant's stead.
    for _ in 0..3 {
        world.advance(STALLED_NS - 1);
        pulse.beat();
        master.beat();
        assert!(!master.is_stalled(REMOTE));
    }
    drop(remote);
    master.beat();
    assert!(!pulse.is_attached() && master.attached(1) == 0);
    pulse.beat();
}

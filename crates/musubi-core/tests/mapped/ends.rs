//! What an end, a segment and a participant say of themselves.

use musubi_core::channel::{Attachment, Deadline, ReceivingEnd as _, SendingEnd as _, SharedSegment as _};

use crate::world::{BLOCKS, DOWN, MASTER, OTHER, PLAN, REMOTE, UP, World, receiving, send, sending, take};

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
    ours.try_lock().unwrap();
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

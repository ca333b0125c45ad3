//! SMEM channels in mapped memory.

use musubi_core::Error;
use musubi_core::channel::{Attachment, Deadline, SharedSegment};

use crate::world::{MASTER, OTHER, REMOTE, TWO_MASTERS, World, kill};

#[test]
fn the_memory_waits_for_the_master_and_survives_it() {
    let world = World::new(4);
    let remote = world.attach(REMOTE);
    assert!(matches!(remote.open_segment(0, Deadline::Poll), Err(Error::Timeout)));
    assert!(matches!(remote.open_segment(0, Deadline::At(remote.now_ns() + 500_000)), Err(Error::Timeout)));
    let master = world.attach(MASTER);
    let segment = master.open_segment(0, Deadline::Poll).unwrap();
    let mut bytes = [7; 100];
    segment.read(0, &mut bytes).unwrap();
    assert_eq!(bytes, [0; 100], "cold memory was zeroed");
    segment.write(3, b"parameters").unwrap();
    kill(master, segment);
    let _master = world.attach(MASTER);
    let segment = remote.open_segment(0, Deadline::Poll).unwrap();
    segment.read(3, &mut bytes[..10]).unwrap();
    assert_eq!(&bytes[..10], b"parameters");
    assert_eq!(segment.read(91, &mut bytes[..10]), Err(Error::TooLong));
    assert_eq!(segment.write(u32::MAX, &[0]), Err(Error::TooLong));
}

#[test]
fn one_at_a_time_is_inside_and_the_dead_are_passed_over() {
    let world = World::new(5);
    let (master, remote, other) = (world.attach(MASTER), world.attach(REMOTE), world.attach(OTHER));
    let open = |participant: &crate::world::Peer<'_>| participant.open_segment(0, Deadline::Poll).is_ok();
    assert!(open(&master) && open(&remote) && open(&other));
    let (one, two) = (master.open_segment(0, Deadline::Poll).unwrap(), remote.open_segment(0, Deadline::Poll).unwrap());
    assert_eq!(master.open_segment(0, Deadline::Poll).err(), Some(Error::InUse));
    let three = other.open_segment(0, Deadline::Poll).unwrap();
    assert_eq!(two.try_lock(), Ok(()));
    assert_eq!((one.try_lock(), three.try_lock()), (Err(Error::Locked), Err(Error::Locked)));
    let soon = Deadline::At(master.now_ns() + 1_000_000);
    assert_eq!(one.lock(soon), Err(Error::Timeout), "a holder that stands still is waited for");
    assert_eq!(one.unlock(), Err(Error::NotHeld));
    kill(remote, two);
    assert_eq!(one.lock(Deadline::At(master.now_ns() + 1_000_000)), Err(Error::Timeout));
    // The successor proves that the holder is dead.
    let remote = world.attach(REMOTE);
    let two = remote.open_segment(0, Deadline::Poll).unwrap();
    assert_eq!(one.lock(Deadline::Poll), Ok(()));
    assert_eq!((two.try_lock(), three.try_lock()), (Err(Error::Locked), Err(Error::Locked)));
    drop(one);
    assert_eq!(three.try_lock(), Ok(()), "a dropped handle gives the lock back");
    assert_eq!(three.unlock(), Ok(()));
}

#[test]
fn a_participant_of_the_master_that_comes_later_does_not_clear_the_memory() {
    let world: World = World::of(&TWO_MASTERS, 3, Default::default());
    let (_master, remote) = (world.attach(0), world.attach(2));
    let segment = remote.open_segment(0, Deadline::Poll).unwrap();
    segment.write(0, &[7; 100]).unwrap();
    let _later = world.attach(1);
    let mut bytes = [0; 100];
    segment.read(0, &mut bytes).unwrap();
    assert_eq!(bytes, [7; 100]);
}

//! Participants that stand still for a while, and hosts with clocks of their own.

use musubi_core::Error;
use musubi_core::channel::{Attachment, Deadline, ReceivingEnd as _, SendingEnd as _};

use crate::world::{
    BLOCKS, DOWN, HEARTBEAT_NS, MASTER, REMOTE, STALLED_NS, World, kill, receiving, send, sending, take,
};

/// Lets time pass in which only `who` beats.
fn pass(world: &World, ns: u64, who: &[&crate::world::Peer<'_>]) {
    for _ in 0..ns / (HEARTBEAT_NS / 2) {
        world.advance(HEARTBEAT_NS / 2);
        who.iter().for_each(|participant| participant.beat());
    }
}

#[test]
#[cfg_attr(miri, ignore = "the others take the same paths: too slow")]
fn a_stalled_sender_is_reported_once_and_may_go_on() {
    let world = World::new(3);
    let (master, remote) = (world.attach(MASTER), world.attach(REMOTE));
    let (tx, rx) = (sending(&master, DOWN), receiving(&remote, DOWN));
    assert!(send(&tx, 0));
    pass(&world, 2 * STALLED_NS, &[&remote]);
    assert_eq!(remote.attached(0), 0, "one that stands still is not counted");
    assert!(remote.is_stalled(MASTER) && !rx.usage().connected);
    assert_eq!(take(&rx, false), Some(0), "what it sent is there");
    assert_eq!(rx.wait(Deadline::Poll), Err(Error::PeerGone));
    assert_eq!(rx.wait(Deadline::Poll), Err(Error::Timeout), "reported once");
    pass(&world, STALLED_NS, &[&master, &remote]);
    assert!(rx.usage().connected && remote.attached(0) == 1);
    (1..10).for_each(|number| {
        assert!(send(&tx, number));
        assert_eq!((take(&rx, false), take(&rx, false)), (Some(number), None));
    });
    assert_eq!(rx.wait(Deadline::Poll), Err(Error::Timeout));
    // Standing still again is another loss; its death afterwards is none.
    pass(&world, 2 * STALLED_NS, &[&remote]);
    assert_eq!(rx.wait(Deadline::Poll), Err(Error::PeerGone));
    kill(master, tx);
    let master = world.attach(MASTER);
    let tx = sending(&master, DOWN);
    let _ = rx.usage();
    assert_eq!(rx.wait(Deadline::Poll), Err(Error::Timeout));
    assert!(tx.usage().connected && send(&tx, 10));
    assert_eq!(take(&rx, false), Some(10));
}

#[test]
#[cfg_attr(miri, ignore = "many incarnations, each with a memory of its own: too slow")]
fn a_stalled_receiver_keeps_its_blocks() {
    let world = World::new(2);
    let (master, remote) = (world.attach(MASTER), world.attach(REMOTE));
    let (tx, rx) = (sending(&master, DOWN), receiving(&remote, DOWN));
    (0..BLOCKS).for_each(|number| assert!(send(&tx, number)));
    assert_eq!(take(&rx, true), Some(0));
    pass(&world, 2 * STALLED_NS, &[&master]);
    assert_eq!(tx.wait(Deadline::Poll), Err(Error::PeerGone));
    assert!(!tx.usage().connected && tx.usage().free == 0, "it may still read them");
    pass(&world, STALLED_NS, &[&master, &remote]);
    assert!(tx.usage().connected);
    (1..BLOCKS).for_each(|number| assert_eq!(take(&rx, false), Some(number)));
    assert_eq!(tx.usage().free, BLOCKS - 1);
    assert!(send(&tx, 99));
    assert_eq!((take(&rx, false), take(&rx, false)), (Some(99), None), "nothing twice");
}

#[test]
#[cfg_attr(miri, ignore = "many incarnations, each with a memory of its own: too slow")]
fn waiting_beats_and_sees_a_loss() {
    let world = World::new(2);
    let (master, remote) = (world.attach(MASTER), world.attach(REMOTE));
    let (tx, rx) = (sending(&master, DOWN), receiving(&remote, DOWN));
    assert!(tx.usage().connected && rx.usage().connected);
    // Only the waiter's clock goes on; the other stands still.
    assert_eq!(rx.wait(Deadline::Forever), Err(Error::PeerGone));
    let waited_until = remote.now_ns();
    assert!(waited_until > STALLED_NS && waited_until < 2 * STALLED_NS);
    assert_eq!(rx.wait(Deadline::At(waited_until + 1_000_000)), Err(Error::Timeout));
    assert!(remote.now_ns() >= waited_until + 1_000_000);
}

#[test]
fn who_has_the_common_clock_takes_it_as_it_is() {
    let world = World::new(2);
    let (master, remote) = (world.attach(MASTER), world.attach(REMOTE));
    pass(&world, 3 * HEARTBEAT_NS, &[&master, &remote]);
    // One of the two reads it later than the other; nothing is added for that.
    world.hosts[usize::from(REMOTE)].advance(HEARTBEAT_NS);
    remote.beat();
    assert_eq!(remote.common_ns(), remote.now_ns());
    assert_eq!(master.common_ns(), master.now_ns());
    assert!(remote.common_ns() > master.common_ns() && master.common_ns() >= 3 * HEARTBEAT_NS);
}

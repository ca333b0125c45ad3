//! SMEM channels in mapped memory.

use musubi_core::Error;
use std::sync::Mutex;

use musubi_core::channel::{Attachment, Deadline, SharedSegment};
use musubi_core::mapped::Host;
use musubi_core::port::Coherence;

use crate::world::{MASTER, Manual, OTHER, REMOTE, TWO_MASTERS, World, kill};

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

/// A host whose caches are not coherent: what another wrote is seen once the range was invalidated, and not before.
#[derive(Debug, Default)]
struct Caching {
    manual: Manual,
    asked: Mutex<Vec<(&'static str, usize, u32)>>,
}

impl Coherence for Caching {
    fn publish(&self, from: *const u8, bytes: u32) {
        self.asked.lock().unwrap().push(("publish", from.addr(), bytes));
    }
    fn acquire(&self, from: *const u8, bytes: u32) {
        self.asked.lock().unwrap().push(("acquire", from.addr(), bytes));
        for at in 0..bytes as usize {
            // SAFETY: the range lies in the world's words, as the test checks; nobody else accesses them meanwhile.
            unsafe { from.cast_mut().wrapping_add(at).write_volatile(0x5a) };
        }
    }
}

impl Host for Caching {
    fn now_ns(&self) -> u64 {
        self.manual.now_ns()
    }
    fn has_common_clock(&self) -> bool {
        true
    }
    fn ring(&self, _: u16) {}
    fn can_be_woken(&self) -> bool {
        false
    }
    fn rest(&self, until_ns: u64, still_needed: &dyn Fn() -> bool) {
        self.manual.rest(until_ns, still_needed);
    }
}

#[test]
fn caches_are_asked_for_the_range_before_it_is_read_and_after_it_was_written() {
    let world: World<Caching> = World::with(1, Default::default());
    let master = world.setup(MASTER, 0);
    let segment = master.open_segment(0, Deadline::Poll).unwrap();
    let base = segment.address().addr();
    let asked = || std::mem::take(&mut *world.hosts[usize::from(MASTER)].asked.lock().unwrap());
    let _ = asked();
    let mut bytes = [0; 7];
    segment.read(13, &mut bytes).unwrap();
    assert_eq!(bytes, [0x5a; 7], "what came in by the invalidation");
    assert_eq!(asked(), [("acquire", base + 13, 7)]);
    segment.write(91, &bytes).unwrap();
    assert_eq!(asked(), [("publish", base + 91, 7)]);
    assert_eq!(segment.write(94, &bytes), Err(Error::TooLong));
    assert_eq!(segment.read(94, &mut bytes), Err(Error::TooLong));
    assert_eq!(asked(), [], "nothing outside");
}

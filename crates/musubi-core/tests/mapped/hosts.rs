//! What a host's clock and rest are used for: how long, and not longer.

use std::cell::Cell;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use musubi_core::channel::Attachment;
use musubi_core::mapped::{Host, Polling};
use musubi_core::port::Coherence;

use crate::world::{MASTER, World};

thread_local! {
    static NOW_NS: Cell<u64> = const { Cell::new(0) };
    static LOOKS: Cell<u32> = const { Cell::new(0) };
}

/// A clock that goes on by one at each look, from where the test put it.
fn next_ns() -> u64 {
    NOW_NS.set(NOW_NS.get() + 1);
    NOW_NS.get()
}

fn looks_of_a_rest(begin_ns: u64, until_ns: u64, needed_times: u32) -> (u32, u64) {
    NOW_NS.set(begin_ns);
    LOOKS.set(0);
    let still_needed = || {
        LOOKS.set(LOOKS.get() + 1);
        LOOKS.get() <= needed_times
    };
    Polling { now_ns: next_ns, is_common: true }.rest(until_ns, &still_needed);
    (LOOKS.get(), NOW_NS.get())
}

#[test]
fn a_polling_rest_ends_at_its_time_or_when_it_is_not_needed_or_after_some_pauses() {
    assert_eq!(looks_of_a_rest(0, 3, u32::MAX), (3, 3), "the time has come");
    assert_eq!(looks_of_a_rest(0, u64::MAX, 2).0, 3, "not needed any more");
    assert_eq!(looks_of_a_rest(0, u64::MAX, 0), (1, 0), "not needed at all");
    assert_eq!(looks_of_a_rest(0, u64::MAX, u32::MAX), (16, 16), "a rest is short");
}

#[test]
fn a_polling_host_says_what_it_is() {
    for is_common in [false, true] {
        let host = Polling { now_ns: next_ns, is_common };
        assert_eq!((host.has_common_clock(), host.can_be_woken()), (is_common, false));
    }
    NOW_NS.set(41);
    assert_eq!(Polling { now_ns: next_ns, is_common: false }.now_ns(), 42);
}

/// Its clock goes on by 10 at each rest; it counts them.
#[derive(Debug, Default)]
struct Steps {
    now_ns: AtomicU64,
    rests: AtomicU32,
}

impl Coherence for Steps {}

impl Host for Steps {
    fn now_ns(&self) -> u64 {
        self.now_ns.load(Ordering::Relaxed)
    }
    fn has_common_clock(&self) -> bool {
        true
    }
    fn ring(&self, _: u16) {}
    fn can_be_woken(&self) -> bool {
        false
    }
    fn rest(&self, _: u64, still_needed: &dyn Fn() -> bool) {
        assert!(self.rests.fetch_add(1, Ordering::Relaxed) < 1_000 && still_needed());
        self.now_ns.fetch_add(10, Ordering::Relaxed);
    }
}

#[test]
fn sleep_until_rests_until_then_and_not_longer() {
    let world = World::with(1, <[Steps; 3]>::default());
    let master = world.setup(MASTER, 1_000);
    let host = &world.hosts[usize::from(MASTER)];
    let rests_until = |from_now_ns| {
        let before = host.rests.load(Ordering::Relaxed);
        master.sleep_until(master.now_ns() + from_now_ns);
        host.rests.load(Ordering::Relaxed) - before
    };
    assert_eq!([0, 1, 10, 11, 100].map(rests_until), [0, 1, 1, 2, 10]);
}

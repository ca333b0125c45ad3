//! What a host's clock and rest are used for: how long, and not longer.

use std::cell::Cell;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use musubi_core::Error;
use musubi_core::channel::{Attachment, Deadline, ReceivingEnd as _};
use musubi_core::mapped::{Host, Polling};
use musubi_core::plan::{Domain, Plan};
use musubi_core::port::Coherence;

use crate::world::{HEARTBEAT_NS, MASTER, PLAN, REMOTE, UP, World, receiving};

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

/// How long the Master's waits spin.
const SPIN_NS: u32 = 50_000;

static SPINNING: Plan<'static> = Plan {
    name: PLAN.name,
    hash: PLAN.hash,
    domains: &[Domain { spin_ns: SPIN_NS, ..PLAN.domains[0] }, PLAN.domains[1]],
    fifos: PLAN.fifos,
    smems: PLAN.smems,
    liveness: PLAN.liveness,
};

/// Its clock goes on by 100 at each look; it remembers when it rested first.
#[derive(Debug, Default)]
struct Ticking {
    now_ns: AtomicU64,
    rested_at_ns: AtomicU64,
}

impl Coherence for Ticking {}

impl Host for Ticking {
    fn now_ns(&self) -> u64 {
        self.now_ns.fetch_add(100, Ordering::Relaxed)
    }
    fn has_common_clock(&self) -> bool {
        true
    }
    fn ring(&self, _: u16) {}
    fn can_be_woken(&self) -> bool {
        false
    }
    fn rest(&self, until_ns: u64, _: &dyn Fn() -> bool) {
        let now_ns = self.now_ns.fetch_max(until_ns, Ordering::Relaxed);
        let _ = self.rested_at_ns.compare_exchange(0, now_ns, Ordering::Relaxed, Ordering::Relaxed);
    }
}

#[test]
#[cfg_attr(miri, ignore = "many incarnations, each with a memory of its own: too slow")]
fn a_wait_spins_for_the_domains_time_or_up_to_its_deadline_before_it_rests() {
    for (plan, wait_ns, rests_after) in [
        (&PLAN, 1_000_000, Some(0..20_000)),
        (&SPINNING, 1_000_000, Some(50_000..80_000)),
        (&SPINNING, 20_000, Some(20_000..50_000)),
    ] {
        let world = World::of(plan, 1, <[Ticking; 3]>::default());
        let master = world.setup(MASTER, 1_000);
        let (host, rx) = (&world.hosts[usize::from(MASTER)], receiving(&master, UP));
        host.rested_at_ns.store(0, Ordering::Relaxed);
        let begin_ns = host.now_ns();
        assert_eq!(rx.wait(Deadline::At(begin_ns + wait_ns)), Err(Error::Timeout));
        assert!(host.now_ns() >= begin_ns + wait_ns);
        let rested_after = Some(host.rested_at_ns.load(Ordering::Relaxed)).filter(|at_ns| *at_ns != 0);
        let rested_after = rested_after.map(|at_ns| at_ns - begin_ns);
        match (rested_after, &rests_after) {
            (Some(after), Some(range)) => assert!(range.contains(&after), "{after} of {wait_ns}"),
            (rested, _) => assert_eq!((rested, wait_ns), (None, 20_000), "it need not rest any more"),
        }
    }
}

/// Without a common clock: one that stands still where the test put it.
#[derive(Debug)]
struct Own(AtomicU64, bool);

impl Coherence for Own {}

impl Host for Own {
    fn now_ns(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
    fn has_common_clock(&self) -> bool {
        self.1
    }
    fn ring(&self, _: u16) {}
    fn can_be_woken(&self) -> bool {
        false
    }
    fn rest(&self, _: u64, _: &dyn Fn() -> bool) {
        self.0.fetch_add(10, Ordering::Relaxed);
    }
}

/// The Master's clock is everybody's, as far as its heartbeats tell; who has it already adds nothing.
#[test]
fn the_masters_clock_is_everybodys() {
    const AHEAD_NS: u64 = 7_000_000_000;
    for has_common_clock in [false, true] {
        let host = |now_ns| Own(AtomicU64::new(now_ns), has_common_clock);
        let world = World::with(2, [host(AHEAD_NS), host(0), host(0)]);
        let (master, remote) = (world.setup(MASTER, 1_000), world.setup(REMOTE, 1_000));
        for _ in 0..8 {
            world.hosts.iter().for_each(|host| _ = host.0.fetch_add(HEARTBEAT_NS, Ordering::Relaxed));
            master.beat();
            remote.beat();
        }
        let (ours, theirs) = (world.hosts[0].now_ns(), world.hosts[1].now_ns());
        let common_ns = if has_common_clock { theirs } else { ours };
        assert_eq!((master.common_ns(), remote.common_ns()), (ours, common_ns));
    }
}

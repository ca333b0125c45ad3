//! The system that the tests run: a Master "control", Remotes "gateway" and "storage", the latter with two slots.
#![allow(dead_code, reason = "each test binary uses a part")]

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use musubi_core::plan::{
    Domain, Fifo, FilterRule, Liveness, LockKind, OnRestart, Plan, PortKind, Regulation, Role, Smem, Trust,
};
use musubi_linux::{Deadline, DeadlineExt, Options};

pub const CONTROL: u16 = 0;
pub const GATEWAY: u16 = 1;
pub const STORAGE: u16 = 2;
/// From control to gateway.
pub const TELEMETRY: u16 = 0;
/// From storage to control.
pub const STREAM: u16 = 1;
/// From control to storage.
pub const COMMANDS: u16 = 2;
/// Of control and gateway.
pub const PARAMETERS: u16 = 0;

const fn domain(name: &'static str, role: Role, participants: u16) -> Domain<'static> {
    let (port, trust) = (PortKind::LinuxProcess, Trust::MayCrash);
    Domain { name, role, port, trust, participants, uids: &[], gids: &[], spin_ns: 0 }
}

const fn fifo(name: &'static str, from: u16, to: u16) -> Fifo<'static> {
    Fifo {
        name,
        from,
        to,
        // So many that each section has several pages.
        blocks: 1024,
        block_bytes: 64,
        priority: 0,
        filter: FilterRule::EACH,
        regulation: Regulation::NONE,
        budget_ns: 0,
        on_restart: OnRestart::Keep,
        sample_every: 0,
    }
}

const DOMAINS: [Domain<'static>; 3] =
    [domain("control", Role::Master, 1), domain("gateway", Role::Remote, 1), domain("storage", Role::Remote, 2)];
const FIFOS: [Fifo<'static>; 3] =
    [fifo("telemetry", CONTROL, GATEWAY), fifo("stream", STORAGE, CONTROL), fifo("commands", CONTROL, STORAGE)];
const SMEMS: [Smem<'static>; 1] =
    [Smem { name: "parameters", domains: &[CONTROL, GATEWAY], bytes: 10_000, lock: LockKind::Bakery }];

/// The plan.
pub static PLAN: Plan<'static> = Plan {
    name: "linux-tests",
    hash: 0x1111_2222_3333_4444,
    domains: &DOMAINS,
    fifos: &FIFOS,
    smems: &SMEMS,
    liveness: Liveness { heartbeat_ns: 10_000_000, stalled_ns: 100_000_000 },
};

/// The same system from a changed description.
pub static OTHER_PLAN: Plan<'static> = Plan { hash: 0x5555_6666_7777_8888, ..PLAN };

/// From gateway to storage, in [`PLAN_OF_NEIGHBOURS`].
pub const SIDEWAYS: u16 = 3;

/// The plan in which two Remotes talk with each other, too.
pub static PLAN_OF_NEIGHBOURS: Plan<'static> =
    Plan { fifos: &[FIFOS[0], FIFOS[1], FIFOS[2], fifo("sideways", GATEWAY, STORAGE)], ..PLAN };

/// The plan in which only user 65534 may be a gateway.
pub static PLAN_OF_NOBODY: Plan<'static> =
    Plan { domains: &[DOMAINS[0], Domain { uids: &[65534], ..DOMAINS[1] }, DOMAINS[2]], ..PLAN };

/// The plan in which root is the control and user 65534 the gateway.
pub static PLAN_OF_TWO_USERS: Plan<'static> = Plan {
    domains: &[
        Domain { uids: &[0], ..DOMAINS[0] },
        Domain { uids: &[65534], ..DOMAINS[1] },
        Domain { uids: &[65534], ..DOMAINS[2] },
    ],
    ..PLAN
};

/// The plan in which three users are the control, the gateway and the storage; so none of them is root.
pub static PLAN_OF_THREE_USERS: Plan<'static> = Plan {
    domains: &[
        Domain { uids: &[65531], ..DOMAINS[0] },
        Domain { uids: &[65532], ..DOMAINS[1] },
        Domain { uids: &[65533], ..DOMAINS[2] },
    ],
    ..PLAN
};

/// An instance that no other test uses.
pub fn instance() -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    format!("t{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed))
}

/// Options for any slot of a domain.
pub fn options(domain: u16, instance: &str) -> Options {
    Options { instance: Some(instance.to_owned()), deadline: within(2_000), ..Options::new(&PLAN, domain) }
}

/// A deadline.
pub fn within(ms: u64) -> Deadline {
    Deadline::after(Duration::from_millis(ms))
}

/// Waits for something that must come soon.
pub fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = within(5_000);
    while !is_so() {
        assert!(!deadline.passed(), "{what} did not come");
        std::thread::sleep(Duration::from_micros(200));
    }
}

/// A fixed stream of numbers (xorshift), so that a failure can be repeated.
pub fn numbers() -> impl FnMut() -> u64 {
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    }
}

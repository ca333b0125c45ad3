//! The system under test: a Master "control" and three Remotes, nine FIFO channels in both directions, one SMEM channel.
//!
//! How it works: small and large blocks, odd sizes, a channel of a single block, one that drops what a dead receiver had
//! not taken, one whose filter holds notifications back, and channels between Remotes.

use musubi_core::plan::{
    Domain, Fifo, FilterRule, Liveness, LockKind, OnRestart, Plan, PortKind, Regulation, Role, Smem, Trust,
};

/// The SMEM channel.
pub const SHARED: u16 = 0;

const fn domain(name: &'static str, role: Role) -> Domain<'static> {
    let (port, trust) = (PortKind::LinuxProcess, Trust::MayCrash);
    Domain { name, role, port, trust, participants: 1, uids: &[], gids: &[], spin_ns: 2_000 }
}

const fn fifo(name: &'static str, (from, to): (u16, u16), blocks: u32, block_bytes: u32) -> Fifo<'static> {
    Fifo {
        name,
        from,
        to,
        blocks,
        block_bytes,
        priority: 0,
        filter: FilterRule::EACH,
        regulation: Regulation::NONE,
        budget_ns: 0,
        on_restart: OnRestart::Keep,
        sample_every: 16,
    }
}

const DOMAINS: [Domain<'static>; 4] = [
    domain("control", Role::Master),
    domain("first", Role::Remote),
    domain("second", Role::Remote),
    domain("third", Role::Remote),
];

const FIFOS: [Fifo<'static>; 9] = [
    fifo("telemetry", (0, 1), 16, 64),
    fifo("commands", (1, 0), 16, 64),
    fifo("frames", (0, 2), 8, 65_536),
    fifo("records", (2, 0), 8, 65_536),
    Fifo { on_restart: OnRestart::Drop, ..fifo("latest", (0, 3), 32, 64) },
    Fifo {
        filter: FilterRule { every: 4, level: 8, interval_ns_min: 0, latest_ns: 5_000_000 },
        ..fifo("batches", (3, 0), 32, 250)
    },
    fifo("sideways", (1, 2), 16, 1_000),
    fifo("single", (2, 3), 1, 48),
    fifo("odd", (3, 1), 3, 5_003),
];

const SMEMS: [Smem<'static>; 1] = [Smem { name: "shared", domains: &[0, 1, 2, 3], bytes: 64, lock: LockKind::Bakery }];

/// The plan.
pub static PLAN: Plan<'static> = Plan {
    name: "soak",
    hash: 0x50a4_50a4_50a4_50a4,
    domains: &DOMAINS,
    fifos: &FIFOS,
    smems: &SMEMS,
    liveness: Liveness { heartbeat_ns: 50_000_000, stalled_ns: 200_000_000 },
};

/// Number of participants; one a domain, so that participant and domain numbers are the same.
pub const PARTICIPANTS: u16 = DOMAINS.len() as u16;
/// Number of FIFO channels.
pub const CHANNELS: u16 = FIFOS.len() as u16;

/// Channel numbers with their plan.
pub fn channels() -> impl Iterator<Item = (u16, &'static Fifo<'static>)> {
    (0u16..).zip(FIFOS.iter())
}

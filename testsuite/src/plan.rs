//! The system that the tests run on: a Master, a Remote, ten FIFO channels, one SMEM channel.
//!
//! How it works: a target makes the domains for its port and a plan of them, both as statics.

use musubi_core::plan::{
    Domain, Fifo, FilterRule, Liveness, LockKind, OnRestart, Plan, PortKind, Regulation, Role, Smem, Trust,
};

/// Number of the Master's domain.
pub const MASTER: u16 = 0;
/// Number of the Remote's domain.
pub const REMOTE: u16 = 1;

/// Master to Remote, 8 blocks of 64 bytes.
pub const DOWN: u16 = 0;
/// Remote to Master, 8 blocks of 64 bytes.
pub const UP: u16 = 1;
/// One block.
pub const SINGLE: u16 = 2;
/// Blocks of an odd size.
pub const ODD: u16 = 3;
/// Large blocks, Remote to Master.
pub const LARGE: u16 = 4;
/// Raises every second request.
pub const EVERY: u16 = 5;
/// Raises when four are queued.
pub const LEVEL: u16 = 6;
/// Raises with a least interval.
pub const SPACED: u16 = 7;
/// Raises after the latest time only.
pub const LATEST: u16 = 8;
/// Two messages at once, then a hundred a second.
pub const SLOW: u16 = 9;
/// The SMEM channel.
pub const SHARED: u16 = 0;

/// Blocks of [`DOWN`] and [`UP`].
pub const BLOCKS: usize = 8;
/// Bytes of a block of [`ODD`].
pub const ODD_BYTES: usize = 37;
/// Bytes of a block of [`LARGE`].
pub const LARGE_BYTES: usize = 4096;
/// Least interval of [`SPACED`], in nanoseconds.
pub const INTERVAL_NS: u64 = 30_000_000;
/// Latest time of [`LATEST`], in nanoseconds.
pub const LATEST_NS: u64 = 20_000_000;
/// Bytes of [`SHARED`].
pub const SHARED_BYTES: u32 = 64;

/// Longer than any test.
const LONG_NS: u64 = 60_000_000_000;

/// Both domains, carried by a port.
pub const fn domains(port: PortKind) -> [Domain<'static>; 2] {
    [domain("master", Role::Master, port), domain("remote", Role::Remote, port)]
}

/// The plan of these domains.
pub const fn plan(domains: &'static [Domain<'static>; 2]) -> Plan<'static> {
    let liveness = Liveness { heartbeat_ns: 50_000_000, stalled_ns: 500_000_000 };
    Plan { name: "testsuite", hash: 0x7e57_0001, domains, fifos: &FIFOS, smems: &SMEMS, liveness }
}

const fn domain(name: &'static str, role: Role, port: PortKind) -> Domain<'static> {
    Domain { name, role, port, trust: Trust::MayCrash, participants: 1, uids: &[], gids: &[], spin_ns: 2_000 }
}

const fn fifo(name: &'static str, (from, to): (u16, u16), blocks: u32, block_bytes: u32) -> Fifo<'static> {
    let (filter, regulation) = (FilterRule::EACH, Regulation::NONE);
    let (priority, budget_ns, on_restart, sample_every) = (0, 0, OnRestart::Keep, 1);
    Fifo { name, from, to, blocks, block_bytes, priority, filter, regulation, budget_ns, on_restart, sample_every }
}

const fn filtered(name: &'static str, filter: FilterRule) -> Fifo<'static> {
    Fifo { filter, ..fifo(name, (MASTER, REMOTE), 8, 32) }
}

const fn rule(every: u32, level: u32, interval_ns_min: u64, latest_ns: u64) -> FilterRule {
    FilterRule { every, level, interval_ns_min, latest_ns }
}

const SLOWLY: Regulation = Regulation { messages_per_s: 100, messages_burst: 2, ..Regulation::NONE };

static FIFOS: [Fifo<'static>; 10] = [
    fifo("down", (MASTER, REMOTE), BLOCKS as u32, 64),
    fifo("up", (REMOTE, MASTER), BLOCKS as u32, 64),
    fifo("single", (MASTER, REMOTE), 1, 16),
    fifo("odd", (MASTER, REMOTE), 3, ODD_BYTES as u32),
    fifo("large", (REMOTE, MASTER), 4, LARGE_BYTES as u32),
    filtered("every", rule(2, 0, 0, LONG_NS)),
    filtered("level", rule(1_000, 4, 0, LONG_NS)),
    filtered("spaced", rule(1, 0, INTERVAL_NS, LONG_NS)),
    filtered("latest", rule(1_000, 0, 0, LATEST_NS)),
    Fifo { regulation: SLOWLY, ..fifo("slow", (MASTER, REMOTE), 8, 32) },
];

static SMEMS: [Smem<'static>; 1] =
    [Smem { name: "shared", domains: &[MASTER, REMOTE], bytes: SHARED_BYTES, lock: LockKind::Bakery }];

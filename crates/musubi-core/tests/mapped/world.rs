//! A memory, private storages for many incarnations, and hosts whose time the test moves.

use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use musubi_core::channel::{Attachment, Deadline, ReceivingEnd as _, SendingEnd as _};
use musubi_core::layout::{self, root};
use musubi_core::mapped::{Host, Memory, Participant, ReceivingEnd, SendingEnd, Setup, StorageLine, storage_lines};
use musubi_core::plan::{
    Domain, Fifo, FilterRule, Liveness, LockKind, OnRestart, Plan, PortKind, Regulation, Role, Smem, Trust,
};
use musubi_core::port::Coherence;

pub const MASTER: u16 = 0;
pub const REMOTE: u16 = 1;
/// The second participant of the Remote's domain.
pub const OTHER: u16 = 2;
/// Master to Remote.
pub const DOWN: u16 = 0;
/// Remote to Master.
pub const UP: u16 = 1;
/// Master to Remote; a restarted receiver gets nothing that was queued.
pub const DROPPING: u16 = 2;
pub const BLOCKS: u32 = 4;
pub const HEARTBEAT_NS: u64 = 1_000_000;
pub const STALLED_NS: u64 = 5_000_000;

const fn domain(name: &'static str, role: Role, participants: u16) -> Domain<'static> {
    let (port, trust) = (PortKind::Metal, Trust::MayCrash);
    Domain { name, role, port, trust, participants, uids: &[], gids: &[], spin_ns: 0 }
}

const fn fifo(name: &'static str, (from, to): (u16, u16), on_restart: OnRestart) -> Fifo<'static> {
    Fifo {
        name,
        from,
        to,
        blocks: BLOCKS,
        block_bytes: 8,
        priority: 0,
        filter: FilterRule::EACH,
        regulation: Regulation::NONE,
        budget_ns: 0,
        on_restart,
        sample_every: 1,
    }
}

pub static PLAN: Plan<'static> = Plan {
    name: "mapped",
    hash: 0x1234_5678_9abc_def0,
    domains: &[domain("master", Role::Master, 1), domain("remote", Role::Remote, 2)],
    fifos: &[
        fifo("down", (0, 1), OnRestart::Keep),
        fifo("up", (1, 0), OnRestart::Keep),
        fifo("dropping", (0, 1), OnRestart::Drop),
    ],
    smems: &[Smem { name: "shared", domains: &[0, 1], bytes: 100, lock: LockKind::Bakery }],
    liveness: Liveness { heartbeat_ns: HEARTBEAT_NS, stalled_ns: STALLED_NS },
};

/// The same with two participants of the Master's domain and one of the Remote's.
pub static TWO_MASTERS: Plan<'static> = Plan {
    name: PLAN.name,
    hash: PLAN.hash,
    domains: &[domain("master", Role::Master, 2), domain("remote", Role::Remote, 1)],
    fifos: PLAN.fifos,
    smems: PLAN.smems,
    liveness: Liveness { heartbeat_ns: HEARTBEAT_NS, stalled_ns: STALLED_NS },
};

/// A host whose clock goes on only when somebody rests, or the test says so.
#[derive(Debug, Default)]
pub struct Manual {
    now_ns: AtomicU64,
    pub rung: [AtomicU32; 3],
}

impl Manual {
    pub fn advance(&self, ns: u64) {
        self.now_ns.fetch_add(ns, Ordering::Relaxed);
    }
}

impl Coherence for Manual {}

impl Host for Manual {
    fn now_ns(&self) -> u64 {
        self.now_ns.load(Ordering::Relaxed)
    }
    fn has_common_clock(&self) -> bool {
        true
    }
    fn ring(&self, participant: u16) {
        self.rung[usize::from(participant)].fetch_add(1, Ordering::Relaxed);
    }
    fn can_be_woken(&self) -> bool {
        false
    }
    fn rest(&self, until_ns: u64, _: &dyn Fn() -> bool) {
        self.now_ns.fetch_max(until_ns.min(self.now_ns() + 100_000), Ordering::Relaxed);
    }
}

pub type Peer<'w> = Participant<'w, Manual>;
pub type Sending<'w> = SendingEnd<'w, Manual>;
pub type Receiving<'w> = ReceivingEnd<'w, Manual>;

/// One memory and its hosts.
pub struct World<B = Manual> {
    plan: &'static Plan<'static>,
    words: Vec<AtomicU32>,
    storages: Vec<Vec<StorageLine>>,
    taken: AtomicUsize,
    pub hosts: [B; 3],
    pub first_epoch: u32,
}

impl World<Manual> {
    /// With room for so many incarnations of anybody.
    pub fn new(incarnations: usize) -> World {
        World::with(incarnations, Default::default())
    }

    pub fn attach(&self, participant: u16) -> Peer<'_> {
        self.setup(participant, PLAN.liveness.heartbeat_ns * 8)
    }

    /// Time passes for everybody.
    pub fn advance(&self, ns: u64) {
        self.hosts.iter().for_each(|host| host.advance(ns));
    }
}

impl<B: Host> World<B> {
    pub fn with(incarnations: usize, hosts: [B; 3]) -> World<B> {
        World::of(&PLAN, incarnations, hosts)
    }

    pub fn of(plan: &'static Plan<'static>, incarnations: usize, hosts: [B; 3]) -> World<B> {
        // One page more, so that the first address can be that of a page.
        let pages = layout::mapped_bytes(plan).unwrap() / 4096 + 1;
        // Cold memory holds anything.
        let word = |word: u32| AtomicU32::new((word % 1024).wrapping_mul(0x9e37_79b9));
        let lines = (0..2).map(|domain| storage_lines::<B>(plan, domain)).max().unwrap();
        let storage = || (0..lines).map(|_| StorageLine::new()).collect();
        World {
            plan,
            words: (0..pages as u32 * 1024).map(word).collect(),
            storages: (0..incarnations).map(|_| storage()).collect(),
            taken: AtomicUsize::new(0),
            hosts,
            first_epoch: 1,
        }
    }

    pub fn setup(&self, participant: u16, release_wait_ns: u64) -> Participant<'_, B> {
        let base = self.base();
        // SAFETY: the pages are atomics that live as long as the world, which tests reach through participants and
        // through atomics only; a test attaches a participant again only after it has let go of the former.
        let memory = unsafe { Memory::whole(base.cast_mut().cast(), self.plan, participant) }.unwrap();
        let storage = &self.storages[self.taken.fetch_add(1, Ordering::Relaxed)];
        let host = &self.hosts[usize::from(participant)];
        let setup = Setup::new(self.plan, participant, host, memory, storage);
        Participant::attach(Setup { first_epoch: self.first_epoch, release_wait_ns, ..setup }).unwrap()
    }

    fn base(&self) -> *const AtomicU32 {
        let first = self.words.as_ptr();
        first.wrapping_byte_add(first.align_offset(64) * 4)
    }

    /// The words of a participant's slot, as one that writes anything into its own sees them.
    pub fn slot(&self, participant: u16) -> &[AtomicU32] {
        let begin = layout::slot_offset(self.plan, participant).unwrap() as usize;
        let bytes = layout::slot_bytes(self.plan, self.plan.domain_of(participant).unwrap()).unwrap() as usize;
        let first = self.base().wrapping_byte_add(begin);
        // SAFETY: the slot lies inside the pages, which are atomics.
        unsafe { std::slice::from_raw_parts(first, bytes / 4) }
    }

    /// How often a participant took a bank without its peers' word.
    pub fn forced(&self, participant: u16) -> u32 {
        self.slot(participant)[root::FORCED as usize].load(Ordering::Relaxed)
    }
}

/// How long a test with real time may take before it is called stuck: it fails, and does not hang.
#[derive(Clone, Copy, Debug)]
pub struct Patience(Instant);

impl Patience {
    pub fn new() -> Patience {
        Patience(Instant::now())
    }

    /// Called each time round of a loop that waits for another thread.
    pub fn check(&self, what: &str) {
        assert!(self.0.elapsed() < Duration::from_secs(hang_s()), "{what} never came");
    }
}

/// Seconds after which a run hangs. Long enough for an interpreter, unless the environment says that none is there.
fn hang_s() -> u64 {
    let told = std::env::var("MUSUBI_HANG_S").ok().and_then(|text| text.parse().ok());
    told.unwrap_or(if cfg!(miri) { 1_200 } else { 60 })
}

/// Sends a number and tells the receiver, if a block is free.
pub fn send<B: Host>(end: &SendingEnd<'_, B>, number: u32) -> bool {
    let Ok(mut loan) = end.allocate(Deadline::Poll) else { return false };
    loan[..4].copy_from_slice(&number.to_le_bytes());
    assert!(end.enqueue(loan, 4).is_ok());
    let _ = end.notify();
    true
}

/// Takes the next number, and frees its block unless it is to be kept.
pub fn take<B: Host>(end: &ReceivingEnd<'_, B>, keep: bool) -> Option<u32> {
    let received = end.dequeue().ok()?;
    let mut bytes = [0; 4];
    assert_eq!(received.copy_to(0, &mut bytes), 4);
    assert!(keep || end.free(received).is_ok());
    Some(u32::from_le_bytes(bytes))
}

/// Dies without a word.
pub fn kill<T>(participant: Participant<'_, impl Host>, ends: T) {
    std::mem::forget(participant);
    std::mem::forget(ends);
}

/// Opens the sending end of a channel.
pub fn sending<'w, B: Host>(participant: &Participant<'w, B>, fifo: u16) -> SendingEnd<'w, B> {
    participant.open_sending(fifo).unwrap()
}

/// Opens the receiving end of a channel.
pub fn receiving<'w, B: Host>(participant: &Participant<'w, B>, fifo: u16) -> ReceivingEnd<'w, B> {
    participant.open_receiving(fifo).unwrap()
}

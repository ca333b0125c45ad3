//! The plan: a checked description of one system, as constants.
//!
//! What you may rely on: a [`Plan`] made by the configurator is consistent (names unique, indices in range, every
//! section below 4 GiB); one written by hand is checked by [`Plan::check`] when a participant attaches.
//!
//! How it works: plain borrowed structs, so the configurator's generated Rust module is a `static`, firmware needs no
//! parser and no heap, and a process on Linux builds the same value from the description file. Two parties compare
//! [`Plan::hash`] before they exchange anything else.
//!
//! What it does not do: parse, or decide addresses beyond the order fixed in [`crate::layout`].

/// Most domains in a system.
pub const DOMAINS_MAX: usize = 32;
/// Most participants in a system, over all domains; so that a set of participants is one `u64`.
pub const PARTICIPANTS_MAX: usize = 64;
/// Most FIFO channels in a system.
pub const FIFOS_MAX: usize = 1024;
/// Most SMEM channels in a system.
pub const SMEMS_MAX: usize = 256;
/// Most blocks in a FIFO channel, so that positions of 30 bits count at least 65,536 laps ([`crate::fifo::Ring`]).
pub const BLOCKS_MAX: u32 = 16_384;
/// Largest block, and largest SMEM channel, in bytes.
pub const PAYLOAD_BYTES_MAX: u32 = 1 << 30;
/// Longest name of a system, domain or channel, in bytes.
pub const NAME_BYTES_MAX: usize = 32;
/// Number of priority classes; class 0 is the most urgent.
pub const PRIORITIES: u8 = 8;

/// One checked system description.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan<'a> {
    /// The system's name; it is part of the rendezvous names on Linux.
    pub name: &'a str,
    /// First 8 bytes of the BLAKE3 digest of the canonical description, little-endian. Equal plans have equal hashes.
    pub hash: u64,
    /// The domains; a domain's number is its index here.
    pub domains: &'a [Domain<'a>],
    /// The FIFO channels; a channel's number is its index here.
    pub fifos: &'a [Fifo<'a>],
    /// The SMEM channels; a channel's number is its index here.
    pub smems: &'a [Smem<'a>],
    /// How participants show that they live.
    pub liveness: Liveness,
}

/// How a domain that shares memory with other cores is woken: the interrupt it takes, and how others raise it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Doorbell {
    /// Number of the interrupt, as the domain's interrupt controller counts (an Arm GIC: shared ones from 32).
    pub interrupt: u32,
    /// Address of the register of 32 bits that raises it.
    pub register: u64,
    /// What is stored there to raise it.
    pub value: u32,
    /// How the domain silences it, if it is a level; `None`: an edge, which needs nothing.
    pub level: Option<Level>,
}

/// What the woken domain does about an interrupt that stays raised until it is acknowledged, as that of a mailbox block does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Level {
    /// Address of the register of 32 bits in which the value acknowledges, each time.
    pub acknowledge: u64,
    /// Address of the register of 32 bits in which the value lets the interrupt through, once.
    pub unmask: u64,
    /// What is stored in both.
    pub value: u32,
}

/// One domain: an operating system, or a process group that plays one (seed 000, section 4.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Domain<'a> {
    /// Unique among domains.
    pub name: &'a str,
    /// Exactly one domain of a plan is the Master.
    pub role: Role,
    /// What carries this domain.
    pub port: PortKind,
    /// How far the others rely on it.
    pub trust: Trust,
    /// How many participants (processes or cores) may be attached at once; at least 1.
    pub participants: u16,
    /// User ids that may attach; with `gids` empty too, only the user id of the process that checks.
    pub uids: &'a [u32],
    /// Group ids that may attach.
    pub gids: &'a [u32],
    /// How long a wait of this domain spins before it sleeps, in nanoseconds.
    pub spin_ns: u32,
}

/// Master or Remote (seed 000, section 4.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Controls the start and the end of communication; normally the real-time domain.
    Master,
    /// Joins when the Master is there.
    Remote,
}

/// What carries a domain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PortKind {
    /// Processes on one Linux kernel.
    LinuxProcess,
    /// A Linux process that maps reserved memory through UIO.
    LinuxUio,
    /// A core without Linux.
    Metal,
}

/// How far the others rely on a domain (design idea 7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trust {
    /// Its memory may be read through plain references.
    Trusted,
    /// It may stop at any instruction, but does not write garbage on purpose. The default.
    MayCrash,
    /// It may write anything into what it can write.
    Hostile,
}

/// One FIFO channel (seed 000, section 4.1.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fifo<'a> {
    /// Unique among all channels.
    pub name: &'a str,
    /// Index of the sending domain.
    pub from: u16,
    /// Index of the receiving domain.
    pub to: u16,
    /// Number of blocks, 1 to [`BLOCKS_MAX`]; also the capacity of the queue.
    pub blocks: u32,
    /// Payload bytes of a block, 1 to [`PAYLOAD_BYTES_MAX`].
    pub block_bytes: u32,
    /// Priority class, 0 the most urgent, below [`PRIORITIES`].
    pub priority: u8,
    /// When a notification is raised.
    pub filter: FilterRule,
    /// Bound on the rate of messages and bytes.
    pub regulation: Regulation,
    /// Latency the channel should keep, in nanoseconds; 0 if none is stated.
    pub budget_ns: u32,
    /// What happens to queued messages when the receiver restarts.
    pub on_restart: OnRestart,
    /// One message in this many carries a send time stamp (0: none).
    pub sample_every: u32,
}

/// What happens to messages that the dead receiver had not dequeued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnRestart {
    /// The successor receives them.
    Keep,
    /// They are dropped and counted.
    Drop,
}

/// When a notification is raised (seed 000 "filter"; seed 004 interrupt-rate control).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FilterRule {
    /// Raise every n-th request; 1 raises each, 0 counts as 1.
    pub every: u32,
    /// Raise as soon as this many messages are queued; 0 switches the condition off.
    pub level: u32,
    /// Least time between two raised notifications, in nanoseconds.
    pub interval_ns_min: u64,
    /// A held-back notification is raised after this time regardless, in nanoseconds.
    pub latest_ns: u64,
}

impl FilterRule {
    /// Every request raises a notification.
    pub const EACH: FilterRule = FilterRule { every: 1, level: 0, interval_ns_min: 0, latest_ns: 100_000_000 };

    /// Whether this rule raises each request at once.
    pub const fn is_each(&self) -> bool {
        self.every <= 1 && self.interval_ns_min == 0
    }
}

/// Token buckets on a channel's sender (design idea 5); a rate of 0 is no bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Regulation {
    /// Messages a second.
    pub messages_per_s: u32,
    /// Messages that may be sent at once after a pause.
    pub messages_burst: u32,
    /// Bytes a second.
    pub bytes_per_s: u64,
    /// Bytes that may be sent at once after a pause.
    pub bytes_burst: u64,
}

impl Regulation {
    /// No bound.
    pub const NONE: Regulation = Regulation { messages_per_s: 0, messages_burst: 0, bytes_per_s: 0, bytes_burst: 0 };

    /// Whether nothing is bounded.
    pub const fn is_none(&self) -> bool {
        self.messages_per_s == 0 && self.bytes_per_s == 0
    }
}

/// One SMEM channel (seed 000, section 4.1.1): memory that its members share, with a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Smem<'a> {
    /// Unique among all channels.
    pub name: &'a str,
    /// Indices of the member domains.
    pub domains: &'a [u16],
    /// Payload bytes.
    pub bytes: u32,
    /// How mutual exclusion is made.
    pub lock: LockKind,
}

/// How an SMEM channel's mutual exclusion is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LockKind {
    /// Lamport's bakery on single-writer words: needs nothing but loads, stores and fences.
    Bakery,
    /// A hardware semaphore gate of the chip.
    Gate(u16),
}

/// How participants show that they live.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Liveness {
    /// Period of the heartbeat word, in nanoseconds.
    pub heartbeat_ns: u64,
    /// A participant whose heartbeat is older than this is called stalled, in nanoseconds.
    pub stalled_ns: u64,
}

impl Plan<'_> {
    /// Number of the domain with this name.
    pub fn domain(&self, name: &str) -> Option<u16> {
        self.domains.iter().position(|d| d.name == name).map(|i| i as u16)
    }

    /// Number of the FIFO channel with this name.
    pub fn fifo(&self, name: &str) -> Option<u16> {
        self.fifos.iter().position(|f| f.name == name).map(|i| i as u16)
    }

    /// Number of the SMEM channel with this name.
    pub fn smem(&self, name: &str) -> Option<u16> {
        self.smems.iter().position(|s| s.name == name).map(|i| i as u16)
    }

    /// Number of participants over all domains.
    pub fn participants(&self) -> u16 {
        self.domains.iter().map(|d| d.participants).sum()
    }

    /// Global number of a domain's first participant; its others follow.
    pub fn first_participant(&self, domain: u16) -> u16 {
        self.domains.iter().take(usize::from(domain)).map(|d| d.participants).sum()
    }

    /// The domain that a participant number belongs to.
    pub fn domain_of(&self, participant: u16) -> Option<u16> {
        let mut first = 0u16;
        for (index, domain) in self.domains.iter().enumerate() {
            first += domain.participants;
            if participant < first {
                return Some(index as u16);
            }
        }
        None
    }

    /// Whether two domains have a channel in common, so that their participants must know each other.
    pub fn linked(&self, a: u16, b: u16) -> bool {
        let by_fifo = self.fifos.iter().any(|f| (f.from, f.to) == (a, b) || (f.from, f.to) == (b, a));
        by_fifo || self.smems.iter().any(|s| s.domains.contains(&a) && s.domains.contains(&b))
    }
}

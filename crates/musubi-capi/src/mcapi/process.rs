//! Nodes in processes of Linux.
//!
//! What you may rely on: a process may have several nodes, one a thread that begins one; which are there is in the
//! description that the environment names.
//!
//! How it works: [`threads`](super::threads) finds the calling thread's node; the rest is what the functions ask of a port besides.

use std::collections::{BTreeSet, HashMap};
use std::fmt::Arguments;
use std::hash::{BuildHasherDefault, Hasher};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, MutexGuard, PoisonError};

use musubi_mcapi::engine::Engine;
pub(crate) use musubi_mcapi::process::Running as Node;
use musubi_transport::notices;
pub(crate) use musubi_transport::runtime::{Block, NodeLinks};
use musubi_transport::runtime::{Deadline, DeadlineExt};

pub(crate) use super::cancellation::uncancelled;
pub(crate) use super::threads::{Life, bound, finalize};

use super::at_exit::deliver_at_exit;
use super::packets_in_hand::Left;
use super::status::Status;
use super::threads;

/// The engine of a node.
pub(crate) type NodeEngine = Engine<Block>;

/// Starts a node and makes it the calling thread's; gives what `told` makes of it. What it sends arrives also if the program
/// exits at once.
pub(crate) fn initialize<R>(domain: u32, node: u32, told: impl FnOnce(&Node) -> R) -> Result<R, Status> {
    deliver_at_exit();
    threads::initialize(domain, node, told)
}

/// `mcapi_timeout_t`, milliseconds, as a deadline.
pub(crate) fn deadline(_: &Node, timeout_ms: u32) -> Deadline {
    match timeout_ms {
        0 => Deadline::Poll,
        u32::MAX => Deadline::Forever,
        ms => Deadline::after(std::time::Duration::from_millis(u64::from(ms))),
    }
}

/// A lock whose data stay usable if a thread panicked with it: every change under these is a single step.
#[derive(Debug)]
pub(crate) struct Lock<T>(Mutex<T>);

/// What its holder has.
pub(crate) type Guard<'l, T> = MutexGuard<'l, T>;

impl<T> Lock<T> {
    pub(crate) const fn new(value: T) -> Lock<T> {
        Lock(Mutex::new(value))
    }

    pub(crate) fn lock(&self) -> Guard<'_, T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Addresses are not an attacker's choice: spreading their bits is enough.
#[derive(Debug, Default)]
pub(crate) struct Spread(u64);

impl Hasher for Spread {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_usize(usize::from(*byte) ^ self.0 as usize);
        }
    }
    fn write_usize(&mut self, address: usize) {
        self.0 = (address as u64 >> 3).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }
}

/// A map whose keys are addresses.
pub(crate) type Addresses<V> = HashMap<usize, V, BuildHasherDefault<Spread>>;

/// Does something with what ended nodes' programs had not given back.
pub(crate) fn with_left<R>(by: impl FnOnce(&mut Left) -> R) -> R {
    static LEFT: Lock<Left> = Lock::new(Left::new());
    by(&mut LEFT.lock())
}

/// Calls `by`; a panic in it is [`Status::General`] for the C program.
#[inline]
pub(crate) fn guarded<T>(by: impl FnOnce() -> Result<T, Status>) -> Result<T, Status> {
    catch_unwind(AssertUnwindSafe(by)).unwrap_or(Err(Status::General))
}

/// How many domains there are, and how many nodes in the node's own; `None` if the description lets any be.
pub(crate) fn counts(node: &Node) -> Option<(u32, u32)> {
    let nodes = &node.topology().nodes;
    let domains: BTreeSet<u32> = nodes.keys().map(|id| id.domain()).collect();
    let here = nodes.keys().filter(|id| id.domain() == node.id().domain()).count();
    (!nodes.is_empty()).then_some((domains.len() as u32, here as u32))
}

/// How long a link may be cut before what is under way counts as lost, milliseconds.
pub(crate) fn cut_ms_max(node: &Node) -> u32 {
    node.topology().network.resume_ms
}

/// How much is reported to the standard error.
pub(crate) fn set_debug_level(level: i32) {
    notices::set_level(level);
}

/// Shows something on the standard error. A closed one is no reason to fail.
pub(crate) fn show(text: Arguments<'_>) {
    let _ = catch_unwind(AssertUnwindSafe(|| eprintln!("{text}")));
}

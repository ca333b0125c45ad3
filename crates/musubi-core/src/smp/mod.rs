//! The multiprocessor layer inside one domain: locks, cross calls, start of secondary cores (seed 002, Linux/M32R).
//!
//! What you may rely on: only algorithms, written against [`Processor`]; the same source runs on a target, under a model
//! checker and on threads of a host. Between domains nothing here is used: there the single-writer protocols of
//! [`crate::fifo`] and [`crate::lock`] hold.
//!
//! How it works: [`lock`] among cores, [`call`] from core to core, [`mod@boot`] of the others; [`diagnosis`] watches the former
//! two as a type parameter, and is nothing where it is off.
//!
//! What it does not do: touch registers. An architecture's port (`musubi-metal`) implements [`Processor`].

pub mod boot;
pub mod call;
mod cores;
pub mod diagnosis;
pub mod lock;
mod processor;

pub use call::{causes, flush, interprocessor, queue};
pub use diagnosis::{observe, order, recorder, statistics, stuck, waiting, watch};
#[cfg(all(feature = "lock_api", not(loom)))]
pub use lock::interface;
pub use lock::{atomics, blocking, clh, exclusion, kernel, phase_fair, semaphore, sequence, ticket};

pub use boot::Boot;
pub use call::{Cache, Causes, Handlers, Interprocessor, Until, Work};
pub use diagnosis::{Class, Noted, Off, Order, Statistics, Violation, Watch};
pub use lock::{
    Blocker, Clh, Held, Kernel, Lock, Locked, LockedGuard, Mutex, PhaseFair, ReadWrite, Semaphore, Sequence, Spin,
    Ticket, Turn, Wake,
};

pub use cores::Cores;
pub use processor::{CORES_MAX, LEVELS, Processor};

#[cfg(test)]
mod tests;

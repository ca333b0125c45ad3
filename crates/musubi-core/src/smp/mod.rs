//! The multiprocessor layer inside one domain: locks, cross calls, start of secondary cores (seed 002, Linux/M32R).
//!
//! What you may rely on: only algorithms, written against [`Processor`]; the same source runs on a target, under a model
//! checker and on threads of a host. Between domains nothing here is used: there the single-writer protocols of
//! [`crate::fifo`] and [`crate::lock`] hold.
//!
//! What it does not do: touch registers. An architecture's port (`musubi-metal`) implements [`Processor`].

mod cores;
mod processor;
pub mod waiting;

// Cross calls.
mod ask;
pub mod boot;
pub mod call;
pub mod causes;
pub mod flush;
pub mod interprocessor;
pub mod observe;
pub mod queue;
pub mod recorder;
pub mod stuck;
mod wait;

// Locks.
pub mod atomics;
pub mod blocking;
pub mod clh;
pub mod exclusion;
#[cfg(all(feature = "lock_api", not(loom)))]
pub mod interface;
pub mod kernel;
pub mod order;
pub mod phase_fair;
pub mod semaphore;
pub mod sequence;
pub mod statistics;
pub mod ticket;
pub mod watch;

pub use blocking::{Blocker, Spin, Wake};
pub use clh::Clh;
pub use exclusion::{Held, Lock, Locked, LockedGuard, Turn};
pub use kernel::Kernel;
pub use order::{Class, Order, Violation};
pub use phase_fair::{PhaseFair, ReadWrite};
pub use semaphore::{Mutex, Semaphore};
pub use sequence::Sequence;
pub use statistics::Statistics;
pub use ticket::Ticket;
pub use watch::{Noted, Off, Watch};

pub use boot::Boot;
pub use call::{Until, Work};
pub use causes::Causes;
pub use flush::Cache;
pub use interprocessor::{Handlers, Interprocessor};

pub use cores::Cores;
pub use processor::{CORES_MAX, LEVELS, Processor};

#[cfg(test)]
mod tests;

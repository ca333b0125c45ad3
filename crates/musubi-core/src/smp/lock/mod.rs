//! Locks among the cores of a domain, with what they are made of and what sleeps on them.
//!
//! What you may rely on: each is first come, first served, or says otherwise; who waits serves cross calls; with one core a
//! lock is the interrupt mask.
//!
//! How it works: [`exclusion`] has what all have in common, the turn and its guards; each lock is a file of its own.

pub mod atomics;
pub mod blocking;
pub mod clh;
pub mod exclusion;
#[cfg(all(feature = "lock_api", not(loom)))]
pub mod interface;
pub mod kernel;
pub mod phase_fair;
pub mod semaphore;
pub mod sequence;
pub mod ticket;

pub use blocking::{Blocker, Spin, Wake};
pub use clh::Clh;
pub use exclusion::{Held, Lock, Locked, LockedGuard, Turn};
pub use kernel::Kernel;
pub use phase_fair::{PhaseFair, ReadWrite};
pub use semaphore::{Mutex, Semaphore};
pub use sequence::Sequence;
pub use ticket::Ticket;

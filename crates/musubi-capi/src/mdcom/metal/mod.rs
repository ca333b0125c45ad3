//! The C interface on bare metal: for the tasks of one image, without a heap.
//!
//! What you may rely on: include/mdcom.h as far as it does not speak of processes and descriptors; the plan is compiled
//! in. Memory is static: [`CHANNELS_MAX`] FIFO channels, [`SEGMENTS_MAX`] SMEM channels and [`HELD_MAX`] blocks in the
//! hands of C tasks at once; one more is `MDCOM_E_SYSTEM`.
//!
//! How it works: an image implements [`System`] for its scheduler and installs it; `mdcom_init` lets it attach and gets
//! the participant as a [`Node`], which [`Ends`] makes of any port's attachment. Every call runs inside the system's
//! monitor, which a call that has to wait leaves for as long as it rests, so several tasks may use one channel.
//!
//! What it does not do: fork, descriptors, several instances.

mod ends;
mod entered;
pub(crate) mod failure;
pub(crate) mod fifo;
mod installed;
pub(crate) mod session;
pub(crate) mod smem;
mod system;

pub use ends::{Addressed, Ends};
pub use installed::install;
pub use system::{Inside, Node, System};

use failure::Failure;

/// FIFO channels that C tasks can use: those with a smaller number.
pub const CHANNELS_MAX: usize = 32;
/// SMEM channels likewise.
pub const SEGMENTS_MAX: usize = 8;
/// Blocks in the hands of C tasks at once.
pub const HELD_MAX: usize = 64;
/// Tasks whose last failure is kept.
pub const TASKS_MAX: usize = 16;
/// Longest rest before a waiting call looks whether `mdcom_term` was called, in nanoseconds.
const SLICE_NS: u64 = 50_000_000;

/// `mdcom_term`.
pub(crate) fn term() -> Result<(), Failure> {
    session::end(|node| {
        fifo::forget_all(node);
        smem::forget_all(node);
    })
}

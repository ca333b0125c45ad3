//! The shared byte layout of Musubi and the single-writer protocols on it.
#![no_std]

#[cfg(any(test, loom))]
extern crate std;

pub mod channel;
pub mod error;
pub mod fifo;
pub mod guarantee;
pub mod histogram;
pub mod lane;
pub mod layout;
pub mod lock;
pub mod mapped;
pub mod plan;
pub mod port;
pub mod smp;
pub mod sync;
pub mod words;

pub use error::Error;

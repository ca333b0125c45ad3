//! Frames between nodes: what carries them, and the running nodes that a protocol speaks them from.
//!
//! What you may rely on: [`session`] and every [`protocol::Protocol`] are functions of state, input and time; they touch no
//! clock, socket or thread, so the same code runs over shared memory, over TCP, and in a simulation that a seed repeats.
//! Everything that comes from a peer is a claim and is checked; nothing that a peer sends can panic, overrun or grow without
//! bound.
//!
//! How it works: the *protocol* of a node speaks [`frame::Header`]s with those of other nodes through [`links::Links`]; here
//! their kinds are numbers. Over shared memory a frame is a record of a lane. Over a byte stream a *session* numbers, cuts,
//! repeats and acknowledges frames, so that a connection may break and come back.
//!
//! What it does not do: name an interface. MCAPI's protocol is `musubi-mcapi`'s engine.
#![cfg_attr(not(feature = "std"), no_std)]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod carrier;
pub mod error;
pub mod frame;
pub mod id;
#[cfg(feature = "std")]
pub mod keys;
pub mod limits;
pub mod links;
pub mod mapped;
#[cfg(feature = "std")]
pub mod notices;
pub mod notifier;
pub mod protocol;
pub mod running;
#[cfg(feature = "std")]
pub mod runtime;
pub mod session;
pub mod shm;
pub mod status;
#[cfg(feature = "std")]
pub mod tcp;
pub mod topology;
mod wakers;

pub use error::LinkError;
pub use id::NodeId;
pub use musubi_core::guarantee::Priority;
pub use musubi_core::guarantee::{Filter, Regulator, Verdict};
pub use musubi_core::plan::{FilterRule, Regulation};

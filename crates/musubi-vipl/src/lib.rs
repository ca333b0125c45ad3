//! The VI Architecture: pairs of work queues (VIs) that a program posts to and polls without a system call.
//!
//! What you may rely on: the rules of the Virtual Interface Architecture Specification 1.0 (1997) and of its VIPL, at all three
//! levels of reliability; docs/vipl-conformance.md lists each call and what was decided where the standard is silent. What a peer may touch
//! is decided here, by what this side registered, whatever the peer's library does.
//!
//! How it works: [`engine`] decides everything about one VI; [`nic`] is one opened NIC with all its VIs, connections and
//! memory, as the protocol of a node of `musubi-transport`: so it runs over shared memory, over TCP, and on cores that map one memory.
//! [`over`] is the interface of a program, generic over where the node runs; [`process`] is that in processes of Linux.
//!
//! `unsafe` stands in [`memory`] alone, where addresses of registered memory are followed.
#![cfg_attr(not(feature = "std"), no_std)]
#![deny(unsafe_code)]

extern crate alloc;

pub mod address;
pub mod engine;
mod error;
#[allow(unsafe_code)]
pub mod memory;
pub mod nic;
pub mod over;
#[cfg(feature = "std")]
pub mod process;
mod slots;
mod wire;

pub use error::ViError;

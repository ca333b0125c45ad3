//! The VI Architecture: pairs of work queues (VIs) that a program posts to and polls without a system call.
//!
//! What you may rely on: the rules of the Virtual Interface Architecture Specification 1.0 (1997) and of its VIPL, at all three
//! levels of reliability; docs/vipl-conformance.md lists each call and what was decided where the standard is silent. What a peer may touch
//! is decided here, by what this side registered, whatever the peer's library does.
//!
//! How it works: [`engine`] decides everything about one VI; [`nic`] is one opened NIC with all its VIs, connections and
//! memory, as the protocol of a node of `musubi-transport`: so it runs over shared memory, over TCP, and on cores that map one memory.
//! [`owned`] is the interface of a program in Rust: regions, VIs and completions as values with owners. [`over`] is the one of
//! handles and addresses, for other languages; both are generic over where the node runs, and [`process`] says how it does in
//! processes of Linux, [`mapped`] on cores that map one memory.
//!
//! `unsafe` stands in [`memory`] alone, where addresses of registered memory are followed.
#![cfg_attr(not(feature = "std"), no_std)]
#![deny(unsafe_code)]

extern crate alloc;

pub mod address;
pub mod engine;
mod error;
pub mod mapped;
#[allow(unsafe_code)]
pub mod memory;
pub mod nic;
pub mod over;
pub mod owned;
#[cfg(feature = "std")]
pub mod process;
mod slots;
mod wire;

pub use error::ViError;

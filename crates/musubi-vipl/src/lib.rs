//! The VI Architecture: pairs of work queues (VIs) that a program posts to and polls without a system call.
//!
//! What you may rely on: so far this is the [`engine`] alone, which decides everything about a VI that does not depend on
//! what carries it: states, work queues, reliability, protection. It reads no clock, touches no memory of a program's and
//! starts no thread.
//!
//! How it works: a driver owns the engine's parts, hands in what was posted and what has come, and carries out what the
//! engine asks through [`engine::Wire`] and [`engine::LocalMemory`]. The rules are those of the Virtual Interface Architecture
//! Specification 1.0 (1997) and of its VIPL; where that is silent, the module that decides says so.
//!
//! What it does not do yet: there is no driver, no connection manager and no C interface, so no program can use it.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod engine;

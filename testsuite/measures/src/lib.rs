//! What is measured of the multiprocessor layer (seed 002), independent of the target: an LMbench-like list of items over
//! the layer's own locks, calls and tasks ([`list`]), and four kernels of the NAS parallel benchmarks ([`nas`]).
//!
//! What you may rely on: the same source runs on threads of Linux and on images; only the counter (nanoseconds or
//! instructions) and what makes a core differ.
#![no_std]
#![forbid(unsafe_code)]

pub mod list;
pub mod machine;
pub mod nas;

pub use machine::{Machine, Shared};

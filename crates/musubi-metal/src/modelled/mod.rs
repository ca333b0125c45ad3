//! Back ends that only models have tried: no image uses them, and no emulator that we have models their devices.
//!
//! What you may rely on: each does what its device's manual says, as a model written from that manual shows; the manual is named
//! in its file. None was ever run on a chip.
//!
//! How it works: doorbells are [`crate::doorbell::DoorbellDevice`]s and pass the same conformance tests as those that images
//! ring by; [`hwlock`] are locks between cores that share no atomic operations.
//!
//! What it does not do: belong to a board. Whoever brings one up takes what its chip has, and moves it out of here when it ran.

pub mod gic_sgi;
pub mod hwlock;
pub mod imx_mu;
pub mod ivshmem;
pub mod sbi;

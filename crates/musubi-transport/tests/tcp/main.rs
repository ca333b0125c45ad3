//! Links over TCP on the loopback interface: several carriers in one process, driven by the test.
#![cfg(feature = "std")]

mod hostile;
mod liar;
mod node;
mod refused;
mod refused_calls;
#[path = "../../../musubi-linux/tests/refusing/mod.rs"]
mod refusing;
mod resume;
mod scarce;
mod spoiler;

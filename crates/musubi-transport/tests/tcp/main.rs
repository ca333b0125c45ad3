//! Links over TCP on the loopback interface: several carriers in one process, driven by the test.
#![cfg(feature = "std")]

mod hostile;
mod liar;
mod node;
mod refused;
mod resume;
mod scarce;
mod spoiler;

//! The runtime without threads: each call, look and sleep is made by the test, over a carrier that does what the test says.

mod calls;
mod links;
mod looks;
mod urgency;
mod waits;
pub(super) mod world;

//! Nodes of one system on one machine: how they find each other, claim their numbers, and link by shared memory.
//!
//! What you may rely on: a node's number is held by one [`Presence`] at a time and is free as soon as its holder has
//! ended, however it ended. Nobody is let in whose user, description, version or memory differs; refusals are counted.
//! No call here waits, except that [`Presence::open`] gives a dying holder some milliseconds. Nothing a caller sends makes
//! memory or descriptors grow: half-open handshakes are bounded in number and time.
//!
//! How it works: a node binds an abstract packet socket named after user, system and its number; the kernel lets one have
//! the name and takes it back at its death. Who wants a link calls that name and sends its half: a sealed memfd that it
//! alone writes, and an eventfd that rings it (by being read, see `memory`). The other answers with its half. From then on the socket is silent; its end
//! is the peer's end. If two nodes call each other at once, the call of the smaller number counts.
//!
//! Nodes in threads of one process use the same way.
//!
//! What it does not do: cross a network namespace, name an interface, or decide when to call whom.

mod hello;
mod link;
mod listing;
mod memory;
mod packet;
mod presence;
mod terms;

pub use hello::{Garbage, HELLO_BYTES, Hello, Kind, Refused};
pub use link::Link;
pub use listing::{name, present};
pub use memory::Lent;
pub use presence::Presence;
pub use terms::{Counts, Dialed, Event, Options, Source};

//! Links over TCP, plain or through TLS.
//!
//! What you may rely on: no call waits, but for [`TcpCarrier::open`] (which may ask the resolver for this node's own
//! address) and [`leave`](crate::carrier::Drive::leave) (at most [`LEAVE_NS_MAX`], for the peers' goodbyes). A frame that finds nothing before it
//! is written within the call that sends it, by one system call; several that one call sends are written together. An urgent frame overtakes whatever has not been handed
//! to the kernel; the kernel is given at most what its bounded buffers take (docs/wire.md states the bound). A connection that is not
//! loopback on both sides uses TLS 1.3 with certificates both ways, unless the description says `insecure`.
//!
//! A node that cannot be reached is reported absent as often as it is tried for without a link that waits: when every
//! address of it has refused or, each within 2 s, not answered; when somebody connects and then is silent for `silence_ms`; and
//! after some half a second of connections that end before they carry anything. So nobody waits longer than that (and than
//! the resolver, where the description has a name) to learn that a message cannot go.
//!
//! How it works: one [`Session`](crate::session::Session) a peer survives its connections. New ones come through the *acceptor*, a thread of its own
//! that accepts, dials, makes handshakes and refuses; the node meets a connection only when it is known who speaks. Both
//! nodes dial as long as there is none, with pauses from 10 to 500 ms; if both succeed, the session keeps the one that the node
//! with the smaller number dialed. Sockets in use are read by spinning callers directly; all are watched by the node's
//! epoll instance, level-triggered.
//!
//! What it does not do: find nodes that the description does not name; keep a link up that nobody wants.

mod accepting;
mod acceptor;
mod admission;
mod carrier;
mod connections;
mod dialing;
mod error;
mod event_log;
mod exchange;
mod link;
mod names;
mod needs;
mod pending;
mod sockets;
mod stream;
mod table;
mod tls;
mod tokens;
mod traffic;
mod worker;

pub use accepting::{ACCEPT_NS, ACCEPTS_BURST};
pub use admission::{HALF_OPEN_MAX, HANDSHAKES_OF_ADDRESS_MAX, HANDSHAKES_OF_KNOWN_MAX};
pub use carrier::{TcpCarrier, obstacle};
pub use error::Error;
pub use event_log::{Counters, Entry, EventLog};
pub use tokens::CARRIER;

/// Longest time that leaving waits for the peers' goodbyes, nanoseconds.
pub const LEAVE_NS_MAX: u64 = 250_000_000;

#[cfg(test)]
mod tests;

//! What the kernel gives, wrapped once: descriptors, mappings, futexes, credentials, clocks, forks.
//!
//! What you may rely on: nothing here knows a channel, a participant or a node; both rendezvous and the port for chips
//! stand on it.

pub mod addresses;
pub mod clock;
pub mod descriptor;
pub mod epoll;
pub mod forks;
pub mod futex;
pub mod hint;
pub mod inheriting;
pub mod needs;
pub mod peer_memory;
pub mod realtime;
pub mod round_trip;
pub mod signals;

mod closing;

pub(crate) mod credentials;
pub(crate) mod mapping;
pub(crate) mod packet_socket;
pub(crate) mod sealed;

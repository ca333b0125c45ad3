//! How participants of one kernel find each other and exchange their memories.

pub mod message;
pub mod socket_names;

pub(crate) mod attendant;
pub(crate) mod connection;
pub(crate) mod dial;
pub(crate) mod holding;
pub(crate) mod membership;
pub(crate) mod registry;
pub(crate) mod slot;

mod asking_again;
mod calls;
mod handshake;
mod hindrance;
mod in_flight;
mod linking;
mod obstacles;
mod peers;
mod segments;
mod traffic;

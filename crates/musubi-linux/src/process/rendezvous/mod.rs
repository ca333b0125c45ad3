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
mod handshake;
mod in_flight;
mod linking;
mod obstacles;
mod segments;

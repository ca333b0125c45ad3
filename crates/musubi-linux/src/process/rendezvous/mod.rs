//! How participants of one kernel find each other and exchange their memories.
//!
//! What you may rely on: nobody is linked whose user, description or version differs. What a peer answers, or does
//! not, costs that peer's link; only the Master's refusal keeps us from starting. What those who are not linked may hold
//! open is bounded in number and time.
//!
//! How it works: names are abstract sockets ([`socket_names`]). Everybody listens before it
//! calls (`dial`), so of any two the later one finds the other. The two exchange sections as sealed memory (`handshake`,
//! in the words of [`message`]); the attendant drives all of it, and `registry` is what it knows.

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

#[cfg(test)]
mod tests;

//! Links by shared memory: frames as records of lanes.
//!
//! What you may rely on: a frame that was taken is in the peer's memory, and arrives, in order with all others of the
//! link, if the peer lives; also when we die right after. A payload that is not short is read where its sender put it.
//!
//! How it works: [`records`] turns frames into messages of [`musubi_core::lane`] and back; it needs nothing but the lane,
//! so it serves on a chip without an operating system too. `ShmCarrier` keeps the links of a Linux process with the nodes
//! of its machine ([`musubi_linux::node`]).
//!
//! What it does not do: give one class precedence over another. A lane holds few frames, and none is long.

pub mod records;

#[cfg(feature = "std")]
mod arrivals;
#[cfg(feature = "std")]
mod block;
#[cfg(feature = "std")]
mod carrier;
#[cfg(feature = "std")]
mod neighbours;
#[cfg(feature = "std")]
mod peer;
#[cfg(feature = "std")]
mod regulation;

#[cfg(feature = "std")]
pub use arrivals::Arrival;
#[cfg(feature = "std")]
pub use block::Block;
#[cfg(feature = "std")]
pub use carrier::{Refusals, ShmCarrier};

#[cfg(all(test, feature = "std"))]
mod tests;

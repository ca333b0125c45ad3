//! The port logic for participants whose sections lie at fixed places of one memory that all of them map.
//!
//! What you may rely on: a participant writes its own slot and nothing else (SMEM payloads excepted); nothing is
//! allocated, all private memory is given when attaching; every wait has a deadline and every loop a bound, also where a
//! peer writes anything into its slot at any time. Sessions, deaths and restarts are as ARCHITECTURE.md states.
//!
//! How it works: see [`crate::layout::root`]. A core image, an RTOS or a process brings a [`Host`].

mod attach;
mod clock;
mod ends;
mod handshake;
mod host;
mod latch;
mod memory;
mod nodes;
mod participant;
mod records;
mod shared;
mod sights;
mod stamp;
mod storage;
mod surroundings;
mod users;
mod wake;
mod watch;

pub use attach::Setup;
pub use ends::{ReceivingEnd, Segment, SendingEnd};
pub use host::{Host, Polling};
pub use latch::{Guard, Latch};
pub use memory::Memory;
pub use participant::{Participant, Pulse};
pub use storage::{StorageLine, storage_lines};

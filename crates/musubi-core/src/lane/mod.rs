//! Lanes: records from one node to another through shared words, and blocks for what is too long for a record.
//!
//! What you may rely on: every shared word has one writer; no operation waits; each takes a number of steps that the
//! shape bounds. A record of one slot costs one cache-line transfer. Records arrive once and in order, with what was
//! written into their block. Whatever a peer writes, nothing here panics, overruns or loops: an impossible word makes the
//! link broken ([`Error::PeerFault`](crate::Error::PeerFault)), from then on for good.
//!
//! How it works: a lane is the single-producer single-consumer queue of Lamport ("Specifying Concurrent Program Modules",
//! 1983) in the form where each entry carries its lap (FastForward, Giacomoni et al. 2008). A slot is a line: a tag and 60
//! bytes. A record takes as many slots as it needs; the tag of the first is written last. Each slot's first word is a tag
//! in every lap, also within a record, so what lies there is always of this lap or the one before, never payload. The
//! receiver says how far it is only every quarter of the ring, so a busy sender finds much room at a time.
//!
//! A long payload is copied into a block of the sender's section, and a record names the block: so its order is that of
//! the records. The receiver reads it in place and returns the number through a ring in its own section. The block that
//! came back last is used first, since its lines are still in the sender's cache.
//!
//! Sleeping is Dekker's pattern over one word a side ([`Link::announce`], [`Link::must_ring`]): who publishes looks then
//! whether the other sleeps; who announces sleep looks then whether something was published.
//!
//! Where all nodes of a chip map one memory, a [`Region`] says where whose sections are, and a [`Meeting`] how two nodes that
//! may begin anew at any time agree on a fresh link.
//!
//! What it does not do: wait or ring. A port does. A link is made in fresh memory.

mod blocks;
mod link;
mod meeting;
mod receiver;
mod region;
mod sender;
mod tag;

#[cfg(test)]
mod tests;

pub use blocks::{Pool, Returns};
pub use link::{Link, Message, Payload};
pub use meeting::{Meeting, Turn};
pub use receiver::{BRIEF_BYTES_MAX, Brief, Receiver, Record};
pub use region::{Region, Row};
pub use sender::Sender;

/// Most slots of one record.
pub const RECORD_SLOTS_MAX: u32 = 16;
/// Bytes of a slot that carry a record.
pub const SLOT_BYTES: usize = 60;
/// Most bytes of one record.
pub const RECORD_BYTES_MAX: usize = RECORD_SLOTS_MAX as usize * SLOT_BYTES;

/// How many slots a record of this many bytes takes; one without bytes takes one too.
#[inline(always)]
const fn slots_of(bytes: usize) -> u32 {
    if bytes <= SLOT_BYTES { 1 } else { bytes.div_ceil(SLOT_BYTES) as u32 }
}

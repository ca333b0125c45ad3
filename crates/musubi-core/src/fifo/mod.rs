//! FIFO channels: blocks of the sender's, announced through a lane and returned by the receiver (seed 000, 4.1.2).
//!
//! What you may rely on: every shared word has one writer; no operation waits; each takes a number of steps that the
//! plan bounds (see each function). A message that was enqueued is dequeued at most once, in order; a block returns to
//! the pool at most once per message, whatever the peer claims.
//!
//! How it works: the sender's transmit end has one slot a block. Slot `i` announces the message whose position is `i`
//! modulo the number of blocks; behind the announcement, in the same cache line, begins the memory of block `i`. A pool
//! that hands blocks out in the order of the slots makes announcement and payload travel together, so a small message
//! costs one cache-line transfer; any other order is as correct and costs one more. An announcement may be overwritten
//! one lap later without asking, because a position is reached again only when every block, so every earlier message,
//! has come back. The receiver returns blocks through a ring in its own section, which the sender reads when it needs.
//! Whoever may read both sections can look on ([`Tap`]): neither end knows of it.
//!
//! The lane is the single-producer single-consumer queue of Lamport ("Specifying Concurrent Program Modules", 1983) in
//! the form where each entry carries its lap, so that neither side reads the other's index (as in FastForward,
//! Giacomoni et al. 2008, and the LMAX disruptor).
//!
//! What it does not do: serve several senders at once. Threads of one participant take turns (a port's lock);
//! participants of one domain take the end by claim.

mod cursor;
mod pool;
mod receiver;
mod sender;
pub mod session;
mod tap;

#[cfg(test)]
mod tests;

pub use cursor::{Cursor, Ring};
pub use pool::Entry;
pub use receiver::{Received, Receiver};
pub use sender::{Loan, Notified, Sender, SenderReady};
pub use tap::{Look, Tap, Tapped};

/// Most returned blocks that one allocation takes back, so that its time is bounded: one cache line of them.
pub const REAP_MAX: u32 = 16;

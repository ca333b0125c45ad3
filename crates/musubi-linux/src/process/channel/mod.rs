//! Channel ends of a process: claiming them, following the other side through restarts, waiting.
//!
//! What you may rely on: an end has one holder in its domain at a time. It follows the other side's restarts by itself, and says
//! once that one was lost. A wait keeps its deadline.
//!
//! How it works: [`claim`] makes an end ours; its [`mailbox`] says who is at the other side. [`sender`] and [`receiver`]
//! look at the mailbox's version before each operation and take up what is new. A [`mod@wait`] spins, then sleeps on the
//! other side's bell and on the mailbox at once.

pub mod claim;
pub mod coherence;
pub mod doorbell;
pub mod mailbox;
pub mod receiver;
pub mod segment;
pub mod sender;
pub mod smem;
pub mod wait;

pub(crate) mod event_fd;
pub(crate) mod incarnations;
pub(crate) mod latest_timer;
pub(crate) mod shelf;
pub(crate) mod wait_any;

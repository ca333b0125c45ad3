//! Channel ends of a process: claiming them, following the other side through restarts, waiting.

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

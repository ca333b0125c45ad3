//! The handles of channels: what a program opens, uses and drops.
//!
//! What you may rely on: of each channel there is at most one handle at a time; dropping it keeps what the end knows, so
//! who opens it again goes on where it was. Only here do threads wait.

mod handle;
mod receiving;
pub(super) mod segment;
mod sending;
pub(super) mod waiting;

pub use receiving::ReceivingEnd;
pub use segment::Segment;
pub use sending::SendingEnd;

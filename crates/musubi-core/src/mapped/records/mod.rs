//! The channels of a participant as it keeps them: what an end knows and owns, with a handle or without.
//!
//! What you may rely on: a record lives as long as the participant's storage is claimed. Following a peer takes a number
//! of steps that the plan bounds, and never waits; so a beat does it as well as a handle.
//!
//! How it works: a record's state is behind a latch, for one thread or one beat at a time. It looks at its peers through the
//! participant's surroundings and knows no other record.

mod receiving;
mod segment;
mod sending;

pub(super) use receiving::{INCARNATIONS, ReceivingRecord, ReceivingState};
pub(super) use segment::{SegmentRecord, SegmentState};
pub(super) use sending::{SendingRecord, SendingState};

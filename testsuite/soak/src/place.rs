//! What the threads of a participant share, and what they are to do.

use std::time::Duration;

use musubi_linux::Participant;

use crate::record::{END, Record};
use crate::timing::Timing;

/// What the threads of a participant share.
#[derive(Clone, Copy, Debug)]
pub struct Place<'p> {
    /// The attachment.
    pub participant: &'p Participant,
    /// The record.
    pub record: &'p Record,
    /// Our domain, and number.
    pub domain: u16,
    /// Which process in this place.
    pub incarnation: u32,
    /// Of its random choices.
    pub seed: u64,
}

/// What is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Send and receive.
    Run,
    /// Stop sending, receive all, count blocks; once a number.
    Settle(u32),
    /// Leave.
    End,
}

impl Place<'_> {
    /// What is to be done now.
    pub fn phase(&self) -> Phase {
        match self.record.phase().get() {
            END => Phase::End,
            number if number.is_multiple_of(2) => Phase::Run,
            number => Phase::Settle(number),
        }
    }

    /// Random numbers for one thread.
    pub fn random(&self, thread: u16) -> fastrand::Rng {
        fastrand::Rng::with_seed(self.seed ^ (u64::from(thread) << 32))
    }

    /// A timer for the calling thread.
    pub fn timing(&self, what: &str) -> anyhow::Result<Timing<'_>> {
        Timing::new(self.record, self.domain, what.to_owned())
    }
}

/// How often a thread looks at the phase while it has nothing to do.
pub const PAUSE: Duration = Duration::from_micros(200);

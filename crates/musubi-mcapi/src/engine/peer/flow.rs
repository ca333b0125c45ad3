//! Credit of messages: per sending node and receiving endpoint.
//!
//! What you may rely on: a sending node has at most [`MESSAGE_CREDIT`] messages under way to and unread at one endpoint; an
//! endpoint that does not read stops those who send to it, and nobody else.
//!
//! How it works: the sender counts what it has sent ([`Flow`]), the receiver what has come and what was taken
//! ([`Intake`]); the receiver tells the count of those taken, when half of the credit is used, or, if the sender has none left
//! and may be waiting, after a short time. All counts begin at 0 with each link and each generation of an endpoint.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use crate::EndpointId;
use crate::limits::MESSAGE_CREDIT;
use crate::name::RequestId;

/// The receiver tells how much was taken at the latest when it is this much.
pub(crate) const CREDIT_STEP: u32 = MESSAGE_CREDIT / 2;

/// Messages to one endpoint of a peer.
#[derive(Debug, Default)]
pub(crate) struct Flow {
    /// Of the endpoint; 0 for none yet.
    pub generation: u8,
    /// Messages sent, and taken as far as we were told; wrapping.
    pub sent: u32,
    pub taken: u32,
    /// The endpoint was of a node that has died.
    pub dead: bool,
    /// Messages that could not go yet, in order.
    pub waiting: VecDeque<Waiting>,
}

/// A message that waits to be sent.
#[derive(Debug)]
pub(crate) struct Waiting {
    pub request: RequestId,
    pub from: EndpointId,
    pub priority: u8,
    pub payload: Vec<u8>,
}

impl Flow {
    #[inline]
    pub fn has_credit(&self) -> bool {
        self.sent.wrapping_sub(self.taken) < MESSAGE_CREDIT
    }
}

/// What a peer may send to, and has of, one endpoint of ours.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Intake {
    /// Of the endpoint; 0 for none yet.
    pub generation: u8,
    /// It is on the list of those that are to be told at the next tick.
    pub owing: bool,
    /// Messages that came, were taken, and of which we told; wrapping.
    pub arrived: u32,
    pub taken: u32,
    pub told: u32,
    /// Gets of the endpoint that this peer has not released.
    pub gets: u32,
}

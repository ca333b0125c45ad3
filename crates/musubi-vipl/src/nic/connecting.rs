//! The connection manager: who listens, who asks, and how two VIs come together and part.
//!
//! What you may rely on: every attempt ends: by an answer, by the end of the link, or when its caller gives it up or its time is
//! over; a VI whose attempt failed is idle again with its receives posted. Callers that nobody took are bounded, a peer
//! ([`CALLERS_OF_PEER_MAX`]) and in all; what goes beyond is told to be busy. Death of the other node ends what is connected with it,
//! and any order of starting will do.
//!
//! How it works: *client and server*: a request goes to the slots of the NIC that it names, one after the other, until one
//! has a listener; that one's program accepts with a VI, and the client confirms, so that a server whose client gave up in that moment hears so.
//! *Peers*: both ask; whoever hears a request that mirrors its own either connects, if its name is the greater one, or asks
//! again, so that the other one, which may have begun later, hears it. So simultaneous requests give one connection.
//!
//! Decided where the standard is silent: matching is by the address that the client names alone; a discriminator keeps listening for
//! [`GRACE_NS`] after a wait has ended, so that a server which waits in a loop is always there.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use musubi_transport::Priority;
use musubi_transport::limits::SLOTS_MAX;

use super::ViNumber;
use crate::address::Address;
use crate::engine::ViAttributes;
use crate::error::ViError;
use crate::slots::Slots;
use crate::wire::{Request, ViName};

/// How long a discriminator is listened to after the last wait for it has ended.
pub const GRACE_NS: u64 = 500_000_000;
/// Callers that wait to be taken, a discriminator.
pub(super) const BACKLOG_MAX: usize = 64;
/// Callers of one other node that were not accepted or rejected.
pub(super) const CALLERS_OF_PEER_MAX: usize = 64;
/// The same of all.
pub(super) const CALLERS_MAX: u32 = 1024;
/// Discriminators that are listened to.
pub(super) const LISTENERS_MAX: usize = 1024;

/// Who listens to a discriminator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListenerNumber(pub(super) u32);

/// Who asked for a connection and was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallerNumber(pub u32);

#[derive(Debug)]
pub(super) struct Listener {
    pub(super) number: u32,
    pub(super) discriminator: Vec<u8>,
    /// Threads that wait.
    pub(super) waiting: u32,
    /// Until when callers are kept though nobody waits.
    pub(super) until_ns: u64,
    pub(super) callers: VecDeque<u32>,
}

/// How far a caller is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// It waits to be taken.
    Queued,
    /// The program has it.
    Taken,
    /// The program accepted it with this VI; it has not confirmed.
    Accepted(ViNumber),
    /// It is connected.
    Confirmed,
    /// It does not wait any more.
    Gone,
}

#[derive(Debug)]
pub(super) struct Caller {
    pub(super) peer: u16,
    pub(super) name: ViName,
    pub(super) request: Request,
    pub(super) standing: Standing,
}

/// Callers and those who wait for them.
#[derive(Debug)]
pub(super) struct Connecting {
    pub(super) listeners: Vec<Listener>,
    pub(super) callers: Slots<Caller>,
    pub(super) listened: u32,
    /// No attempt is over by time before this instant.
    pub(super) attempts_due_ns: u64,
}

impl Default for Connecting {
    fn default() -> Connecting {
        Connecting { listeners: Vec::new(), callers: Slots::new(CALLERS_MAX), listened: 0, attempts_due_ns: u64::MAX }
    }
}

impl Connecting {
    /// The first caller of which this is so.
    pub(super) fn find(&self, is_it: impl Fn(&Caller) -> bool) -> Option<u32> {
        self.callers.iter().find(|(_, caller)| is_it(caller)).map(|(number, _)| number)
    }

    /// A caller does not wait any more.
    pub(super) fn leave(&mut self, number: u32) {
        if let Some(caller) = self.callers.get_mut(number) {
            caller.standing = Standing::Gone;
        }
    }
}

/// How a VI asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Manner {
    /// A server that listens. Its caller waits, and gives it up.
    Client,
    /// Another that asks the same, until this instant.
    PeerNode { until_ns: u64 },
}

/// A VI's attempt to be connected.
#[derive(Debug)]
pub(super) struct Attempt {
    pub(super) manner: Manner,
    pub(super) local: Address,
    pub(super) remote: Address,
    pub(super) here: ViName,
    /// Slots of the NIC that have no listener, a bit each.
    pub(super) tried: u16,
    /// The node that was asked and has not answered.
    pub(super) asked: Option<u16>,
    pub(super) outcome: Option<Result<ViAttributes, ViError>>,
}

const _: () = assert!(SLOTS_MAX <= u16::BITS as u16);

impl Attempt {
    /// When it is over by time.
    pub(super) fn due_ns(&self) -> u64 {
        match self.manner {
            Manner::PeerNode { until_ns } if self.outcome.is_none() => until_ns,
            _ => u64::MAX,
        }
    }
}

/// The class of a VI's frames.
pub(super) fn class_of(attributes: &ViAttributes) -> Priority {
    Priority::new(attributes.class).unwrap_or(Priority::LEAST_URGENT)
}

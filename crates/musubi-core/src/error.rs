//! What can go wrong in the core, said so that the caller knows what to do.

use crate::smp::Cores;

/// Errors of the core. Every one leaves the channel as it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Error {
    /// The plan breaks a limit of [`crate::plan`]; run `musubi check` on the description.
    Plan,
    /// The section's header does not fit the plan (magic, version, hash, length); attach with the same description.
    Mismatch,
    /// No block is free; wait for the receiver to return one.
    NoBlock,
    /// The lane has no room; wait until its receiver has read some of it.
    Full,
    /// Nothing is queued.
    Empty,
    /// The block is not in the state this call needs (double free, foreign or stale id); nothing was changed.
    NotHeld,
    /// The length is larger than a block.
    TooLong,
    /// The regulator holds the message back; try again after this many nanoseconds.
    Throttled {
        /// Time until the tokens suffice, in nanoseconds.
        retry_ns: u64,
    },
    /// The channel's end is not our domain's, or there is no such channel; open one that the plan gives us.
    NotOurs,
    /// Another has it open; close that first.
    InUse,
    /// Another holds the lock.
    Locked,
    /// The deadline has passed; try again or give up.
    Timeout,
    /// The peer at the other end has gone; its successor will be taken up by itself. Reported once a loss.
    PeerGone,
    /// A member of the channel is still being linked; try again shortly.
    NotReady,
    /// As many wait already as there are places; give the object more.
    Crowded,
    /// The peer wrote something that the plan does not allow; the entry was skipped and counted.
    PeerFault,
    /// Cores did not answer by the deadline, or cannot. What the others were asked to do is done.
    Unresponsive {
        /// Did not accept; what they were asked has been withdrawn and will not happen.
        silent: Cores,
        /// Accepted but did not complete; what they were asked may still happen.
        running: Cores,
        /// Are not online, or went offline before they answered.
        offline: Cores,
    },
    /// The core has as many cross calls under way as it may; return from one first.
    TooDeep,
}

impl core::fmt::Display for Error {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Error::Plan => f.write_str("the plan breaks a limit"),
            Error::Mismatch => f.write_str("the peer's section was made from another plan"),
            Error::NoBlock => f.write_str("no block is free"),
            Error::Full => f.write_str("the lane has no room"),
            Error::Empty => f.write_str("nothing is queued"),
            Error::NotHeld => f.write_str("the block is not held by the caller"),
            Error::TooLong => f.write_str("the message is longer than a block"),
            Error::Throttled { retry_ns } => write!(f, "held back by the regulator for {retry_ns} ns"),
            Error::NotOurs => f.write_str("the plan gives this to another domain, or to nobody"),
            Error::InUse => f.write_str("another has it open"),
            Error::Locked => f.write_str("the lock is held by another participant"),
            Error::Timeout => f.write_str("the deadline has passed"),
            Error::PeerGone => f.write_str("the peer at the other end has gone"),
            Error::NotReady => f.write_str("a member of the channel is still being linked"),
            Error::Crowded => f.write_str("too many wait already"),
            Error::PeerFault => f.write_str("the peer wrote what the plan does not allow"),
            Error::Unresponsive { silent, running, offline } => {
                write!(f, "no answer from cores: silent {silent}, still running {running}, offline {offline}")
            }
            Error::TooDeep => f.write_str("too many cross calls of one core are under way"),
        }
    }
}

impl core::error::Error for Error {}

#[cfg(test)]
mod tests {
    use std::string::ToString as _;

    use super::*;

    #[test]
    fn an_error_says_what_is_wrong() {
        let told = [
            (Error::Plan, "the plan breaks a limit"),
            (Error::Mismatch, "the peer's section was made from another plan"),
            (Error::NoBlock, "no block is free"),
            (Error::Throttled { retry_ns: 17 }, "held back by the regulator for 17 ns"),
            (Error::TooDeep, "too many cross calls of one core are under way"),
        ];
        for (error, text) in told {
            assert_eq!(error.to_string(), text);
        }
        let [silent, running, offline] = [1, 2, 3].map(Cores::one);
        let expected =
            std::format!("no answer from cores: silent {silent}, still running {running}, offline {offline}");
        assert_eq!(Error::Unresponsive { silent, running, offline }.to_string(), expected);
    }
}

//! Why something does not happen, or ended otherwise than it should.

use core::fmt;

use musubi_transport::LinkError;

use crate::engine::Status;
use crate::error::ViError;

/// What went wrong, and with it what the caller can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ViFailure {
    /// A place outside the region, a region of another NIC, nothing at all, or attributes that cannot be: mend the program.
    Invalid,
    /// A limit of the NIC is reached, or too many ask the peer: give something back, or try again later.
    Limit,
    /// Nothing is posted that could complete.
    NothingPosted,
    /// It did not happen in time.
    Timeout,
    /// Nobody listens there, or there is no such NIC.
    NobodyThere,
    /// The peer rejected the connection.
    Rejected,
    /// The two VIs do not fit: level, largest message, class or credit differ.
    Mismatch,
    /// The connection ended first, by whichever side or by death of the peer.
    Ended,
    /// The message is longer than the memory for it, or than the VI carries.
    Length,
    /// The peer's memory may not be used so.
    RemoteAccess,
    /// The peer had no receive posted, or one that is too short.
    RemoteReceive,
    /// What carries the connection failed.
    Transport,
    /// The NIC runs no more, or not in this process.
    Closed,
}

impl fmt::Display for ViFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ViFailure::Invalid => "not a valid place, region or attribute",
            ViFailure::Limit => "a limit is reached",
            ViFailure::NothingPosted => "nothing is posted",
            ViFailure::Timeout => "it did not happen in time",
            ViFailure::NobodyThere => "nobody listens there",
            ViFailure::Rejected => "the peer rejected the connection",
            ViFailure::Mismatch => "the two VIs differ in level, largest message, class or credit",
            ViFailure::Ended => "the connection has ended",
            ViFailure::Length => "the message is too long",
            ViFailure::RemoteAccess => "the peer's memory may not be used so",
            ViFailure::RemoteReceive => "the peer had no receive for it",
            ViFailure::Transport => "what carries the connection failed",
            ViFailure::Closed => "the NIC runs no more",
        })
    }
}

impl core::error::Error for ViFailure {}

impl From<ViError> for ViFailure {
    fn from(error: ViError) -> ViFailure {
        match error {
            ViError::Resource => ViFailure::Limit,
            ViError::Timeout => ViFailure::Timeout,
            ViError::Rejected => ViFailure::Rejected,
            ViError::Reliability | ViError::TransferBytes | ViError::Quality => ViFailure::Mismatch,
            ViError::NameService | ViError::NoMatch | ViError::NotReachable => ViFailure::NobodyThere,
            ViError::State => ViFailure::Ended,
            ViError::Closed => ViFailure::Closed,
            ViError::Parameter | ViError::Tag | ViError::RemoteRead | ViError::NotSupported => ViFailure::Invalid,
        }
    }
}

impl From<LinkError> for ViFailure {
    fn from(error: LinkError) -> ViFailure {
        ViError::from(error).into()
    }
}

impl ViFailure {
    /// What the status of a completion says.
    #[inline]
    pub(super) fn of_status(status: Status) -> Result<(), ViFailure> {
        let told = [
            (Status::LENGTH_ERROR, ViFailure::Length),
            (Status::RDMA_PROTECTION_ERROR, ViFailure::RemoteAccess),
            (Status::REMOTE_DESCRIPTOR_ERROR, ViFailure::RemoteReceive),
            (Status::TRANSPORT_ERROR, ViFailure::Transport),
            (Status::FLUSHED, ViFailure::Ended),
        ];
        let known = told.into_iter().find(|(bit, _)| status.has(*bit)).map(|(_, failure)| failure);
        match known {
            Some(failure) => Err(failure),
            None if status.is_error() => Err(ViFailure::Invalid),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_error_bit_of_a_status_is_a_failure() {
        assert_eq!(ViFailure::of_status(Status::DONE.and(Status::OP_RECEIVE)), Ok(()));
        for bit in 0..32 {
            let status = Status(1 << bit);
            assert_eq!(ViFailure::of_status(status).is_err(), status.is_error(), "{bit}");
        }
        assert_eq!(ViFailure::of_status(Status::FLUSHED.and(Status::PARTIAL_ERROR)), Err(ViFailure::Ended));
        assert_eq!(ViFailure::of_status(Status::FLUSHED.and(Status::LENGTH_ERROR)), Err(ViFailure::Length));
    }
}

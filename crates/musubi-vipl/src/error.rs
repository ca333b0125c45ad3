//! Why a call of this interface does not do what it is asked.

use core::fmt;

use musubi_transport::LinkError;

use crate::engine::{Mismatch, RegistrationError, StateError};

/// What went wrong, and with it what the caller can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ViError {
    /// A handle, address, length or descriptor that is none: mend the program.
    Parameter,
    /// A limit of the NIC is reached, or too many ask the peer: give something back, or try again later.
    Resource,
    /// It did not happen in time.
    Timeout,
    /// The peer rejected the connection.
    Rejected,
    /// The levels of reliability of the two VIs differ, or there is none such.
    Reliability,
    /// Their largest messages differ, or it is larger than the NIC's.
    TransferBytes,
    /// Their qualities of service differ, or there is none such.
    Quality,
    /// No such protection tag.
    Tag,
    /// Remote reads are not possible so.
    RemoteRead,
    /// Not in this state of the VI, or of the connection.
    State,
    /// The name service is not begun, or has no such name.
    NameService,
    /// Nobody listens there.
    NoMatch,
    /// No NIC of the system has that address.
    NotReachable,
    /// Not offered.
    NotSupported,
    /// The NIC was closed.
    Closed,
}

impl fmt::Display for ViError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ViError::Parameter => "not a valid handle, address, length or descriptor",
            ViError::Resource => "a limit is reached",
            ViError::Timeout => "it did not happen in time",
            ViError::Rejected => "the peer rejected the connection",
            ViError::Reliability => "the levels of reliability differ, or there is none such",
            ViError::TransferBytes => "the largest messages differ, or are too large",
            ViError::Quality => "the qualities of service differ, or there is none such",
            ViError::Tag => "no such protection tag",
            ViError::RemoteRead => "remote reads are not possible so",
            ViError::State => "not in this state",
            ViError::NameService => "the name service has no such name",
            ViError::NoMatch => "nobody listens there",
            ViError::NotReachable => "no NIC has that address",
            ViError::NotSupported => "not offered",
            ViError::Closed => "the NIC was closed",
        })
    }
}

impl core::error::Error for ViError {}

impl From<LinkError> for ViError {
    fn from(error: LinkError) -> ViError {
        match error {
            LinkError::Timeout => ViError::Timeout,
            LinkError::Ended => ViError::Closed,
            _ => ViError::Resource,
        }
    }
}

impl From<RegistrationError> for ViError {
    fn from(error: RegistrationError) -> ViError {
        match error {
            RegistrationError::Parameter => ViError::Parameter,
            RegistrationError::Tag => ViError::Tag,
            RegistrationError::Resource => ViError::Resource,
        }
    }
}

impl From<StateError> for ViError {
    fn from(StateError: StateError) -> ViError {
        ViError::State
    }
}

impl From<Mismatch> for ViError {
    fn from(mismatch: Mismatch) -> ViError {
        match mismatch {
            Mismatch::Reliability => ViError::Reliability,
            Mismatch::TransferBytes => ViError::TransferBytes,
            Mismatch::Class | Mismatch::Credit => ViError::Quality,
        }
    }
}

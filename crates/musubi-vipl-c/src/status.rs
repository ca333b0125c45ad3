//! The codes of include/vipl.h, and which of our errors is which: the one table.

use musubi_vipl::ViError;

/// `VIP_RETURN`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum Status {
    Success = 0,
    NotDone = 1,
    InvalidParameter = 2,
    ErrorResource = 3,
    Timeout = 4,
    Reject = 5,
    InvalidReliabilityLevel = 6,
    InvalidMtu = 7,
    InvalidQos = 8,
    InvalidPtag = 9,
    InvalidRdmaRead = 10,
    DescriptorError = 11,
    InvalidState = 12,
    ErrorNameService = 13,
    NoMatch = 14,
    NotReachable = 15,
    ErrorNotSupported = 16,
}

impl From<ViError> for Status {
    fn from(error: ViError) -> Status {
        match error {
            ViError::Parameter => Status::InvalidParameter,
            ViError::Timeout => Status::Timeout,
            ViError::Rejected => Status::Reject,
            ViError::Reliability => Status::InvalidReliabilityLevel,
            ViError::TransferBytes => Status::InvalidMtu,
            ViError::Quality => Status::InvalidQos,
            ViError::Tag => Status::InvalidPtag,
            ViError::RemoteRead => Status::InvalidRdmaRead,
            // Whose NIC was closed finds every handle of it invalid; who waited then has nothing to wait for any more.
            ViError::State | ViError::Closed => Status::InvalidState,
            ViError::NameService => Status::ErrorNameService,
            ViError::NoMatch => Status::NoMatch,
            ViError::NotReachable => Status::NotReachable,
            ViError::NotSupported => Status::ErrorNotSupported,
            // Also what a later version of the interface may say.
            _ => Status::ErrorResource,
        }
    }
}

/// Calls `by`; a panic in it is [`Status::ErrorResource`] for the C program.
#[inline]
pub(crate) fn answer(by: impl FnOnce() -> Result<(), Status>) -> u32 {
    let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(by));
    match caught.unwrap_or(Err(Status::ErrorResource)) {
        Ok(()) => Status::Success as u32,
        Err(status) => status as u32,
    }
}

//! Status codes of MCAPI, and the one table that maps errors to them.
//!
//! What you may rely on: every [`Error`] has a status of its own choice here; a test fails when one is added that has not.
//! Numbers are those of include/mcapi.h (a test compares), and never leave the process: the wire has its own.

use core::ffi::CStr;

use musubi_mcapi::Error;
use musubi_transport::LinkError;

use crate::ffi::Null;

/// Defines the codes, their numbers and their names from one list.
macro_rules! codes {
    ($($variant:ident = $number:literal $name:literal,)*) => {
        /// `mcapi_status_t`.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u32)]
        #[allow(missing_docs, reason = "include/mcapi.h documents them; a test compares the two")]
        pub enum Status { $($variant = $number,)* }

        /// Every code with its name in C, in the order of their numbers.
        pub const STATUSES: &[(Status, &CStr)] = &[$((Status::$variant, $name),)*];
    };
}

codes! {
    Success = 1 c"MCAPI_SUCCESS",
    Pending = 2 c"MCAPI_PENDING",
    Timeout = 3 c"MCAPI_TIMEOUT",
    Parameter = 4 c"MCAPI_ERR_PARAMETER",
    DomainInvalid = 5 c"MCAPI_ERR_DOMAIN_INVALID",
    NodeInvalid = 6 c"MCAPI_ERR_NODE_INVALID",
    NodeInitFailed = 7 c"MCAPI_ERR_NODE_INITFAILED",
    NodeInitialized = 8 c"MCAPI_ERR_NODE_INITIALIZED",
    NodeNotInit = 9 c"MCAPI_ERR_NODE_NOTINIT",
    NodeFinalFailed = 10 c"MCAPI_ERR_NODE_FINALFAILED",
    PortInvalid = 11 c"MCAPI_ERR_PORT_INVALID",
    EndpointInvalid = 12 c"MCAPI_ERR_ENDP_INVALID",
    EndpointExists = 13 c"MCAPI_ERR_ENDP_EXISTS",
    EndpointGetLimit = 14 c"MCAPI_ERR_ENDP_GET_LIMIT",
    EndpointDeleted = 15 c"MCAPI_ERR_ENDP_DELETED",
    EndpointNotOwner = 16 c"MCAPI_ERR_ENDP_NOTOWNER",
    EndpointRemote = 17 c"MCAPI_ERR_ENDP_REMOTE",
    AttributeIncompatible = 18 c"MCAPI_ERR_ATTR_INCOMPATIBLE",
    AttributeSize = 19 c"MCAPI_ERR_ATTR_SIZE",
    AttributeNumber = 20 c"MCAPI_ERR_ATTR_NUM",
    AttributeValue = 21 c"MCAPI_ERR_ATTR_VALUE",
    AttributeNotSupported = 22 c"MCAPI_ERR_ATTR_NOTSUPPORTED",
    AttributeReadOnly = 23 c"MCAPI_ERR_ATTR_READONLY",
    MessageSize = 24 c"MCAPI_ERR_MSG_SIZE",
    MessageTruncated = 25 c"MCAPI_ERR_MSG_TRUNCATED",
    ChannelOpen = 26 c"MCAPI_ERR_CHAN_OPEN",
    ChannelType = 27 c"MCAPI_ERR_CHAN_TYPE",
    ChannelDirection = 28 c"MCAPI_ERR_CHAN_DIRECTION",
    ChannelConnected = 29 c"MCAPI_ERR_CHAN_CONNECTED",
    ChannelOpenPending = 30 c"MCAPI_ERR_CHAN_OPENPENDING",
    ChannelClosePending = 31 c"MCAPI_ERR_CHAN_CLOSEPENDING",
    ChannelNotOpen = 32 c"MCAPI_ERR_CHAN_NOTOPEN",
    ChannelInvalid = 33 c"MCAPI_ERR_CHAN_INVALID",
    PacketSize = 34 c"MCAPI_ERR_PKT_SIZE",
    Transmission = 35 c"MCAPI_ERR_TRANSMISSION",
    Priority = 36 c"MCAPI_ERR_PRIORITY",
    BufferInvalid = 37 c"MCAPI_ERR_BUF_INVALID",
    MemoryLimit = 38 c"MCAPI_ERR_MEM_LIMIT",
    RequestInvalid = 39 c"MCAPI_ERR_REQUEST_INVALID",
    RequestLimit = 40 c"MCAPI_ERR_REQUEST_LIMIT",
    RequestCancelled = 41 c"MCAPI_ERR_REQUEST_CANCELLED",
    WaitPending = 42 c"MCAPI_ERR_WAIT_PENDING",
    General = 43 c"MCAPI_ERR_GENERAL",
}

/// The name of a code as it came from C, which may be any number.
pub(crate) fn name_of(code: u32) -> Option<&'static CStr> {
    let place = usize::try_from(code.checked_sub(1)?).ok()?;
    STATUSES.get(place).map(|(_, name)| *name)
}

/// The table.
fn status_of(error: Error) -> Status {
    match error {
        Error::Parameter => Status::Parameter,
        Error::DomainInvalid => Status::DomainInvalid,
        Error::NodeInvalid => Status::NodeInvalid,
        Error::NodeInitialized => Status::NodeInitialized,
        Error::NodeInitFailed => Status::NodeInitFailed,
        Error::NodeNotInitialized => Status::NodeNotInit,
        Error::PortInvalid => Status::PortInvalid,
        Error::EndpointInvalid => Status::EndpointInvalid,
        Error::EndpointExists => Status::EndpointExists,
        Error::EndpointGetLimit => Status::EndpointGetLimit,
        Error::EndpointDeleted => Status::EndpointDeleted,
        Error::EndpointNotOwner => Status::EndpointNotOwner,
        Error::EndpointRemote => Status::EndpointRemote,
        Error::AttributeIncompatible => Status::AttributeIncompatible,
        Error::AttributeSize => Status::AttributeSize,
        Error::AttributeNumber => Status::AttributeNumber,
        Error::AttributeValue => Status::AttributeValue,
        Error::AttributeNotSupported => Status::AttributeNotSupported,
        Error::AttributeReadOnly => Status::AttributeReadOnly,
        Error::MessageSize => Status::MessageSize,
        Error::MessageTruncated => Status::MessageTruncated,
        Error::ChannelOpen => Status::ChannelOpen,
        Error::ChannelType => Status::ChannelType,
        Error::ChannelDirection => Status::ChannelDirection,
        Error::ChannelConnected => Status::ChannelConnected,
        Error::ChannelOpenPending => Status::ChannelOpenPending,
        Error::ChannelClosePending => Status::ChannelClosePending,
        Error::ChannelNotOpen => Status::ChannelNotOpen,
        Error::ChannelInvalid => Status::ChannelInvalid,
        Error::PacketSize => Status::PacketSize,
        Error::Transmission => Status::Transmission,
        Error::Priority => Status::Priority,
        Error::BufferInvalid => Status::BufferInvalid,
        Error::MemoryLimit => Status::MemoryLimit,
        Error::RequestInvalid => Status::RequestInvalid,
        Error::RequestLimit => Status::RequestLimit,
        Error::RequestCancelled => Status::RequestCancelled,
        Error::WaitPending => Status::WaitPending,
        Error::Timeout => Status::Timeout,
        // The standard has no code for it.
        Error::ScalarSize => Status::General,
        Error::General => Status::General,
        _ => Status::General,
    }
}

impl From<LinkError> for Status {
    fn from(error: LinkError) -> Status {
        Error::from(error).into()
    }
}

impl From<Error> for Status {
    fn from(error: Error) -> Status {
        status_of(error)
    }
}

impl From<Null> for Status {
    fn from(_: Null) -> Status {
        Status::Parameter
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Errors for which the table names no status of their own.
    fn unmapped() -> Vec<Error> {
        let table = include_str!("status.rs").split_once("fn status_of").unwrap().1.split_once("\n}").unwrap().0;
        Error::ALL.into_iter().filter(|error| !table.contains(&format!("Error::{error:?} =>"))).collect()
    }

    #[test]
    fn every_error_has_a_status_of_its_own_choice() {
        assert_eq!(unmapped(), []);
        let general: Vec<Error> =
            Error::ALL.into_iter().filter(|error| Status::from(*error) == Status::General).collect();
        assert_eq!(general, [Error::ScalarSize, Error::General]);
    }

    #[test]
    fn numbers_are_places() {
        for (place, (status, name)) in STATUSES.iter().enumerate() {
            assert_eq!(*status as usize, place + 1);
            assert_eq!(name_of(*status as u32), Some(*name));
        }
        assert_eq!(STATUSES.len(), 43);
        assert_eq!((name_of(0), name_of(44), name_of(u32::MAX)), (None, None, None));
    }
}

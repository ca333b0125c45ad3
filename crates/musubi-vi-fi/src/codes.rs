//! Errors of VIs as libfabric's.

use musubi_vipl::ViError;

use crate::abi;

/// libfabric's error for one of ours.
pub(crate) fn code(error: ViError) -> i32 {
    match error {
        ViError::Resource => abi::EAGAIN,
        ViError::Timeout => abi::ETIMEDOUT,
        ViError::Rejected | ViError::NoMatch | ViError::NotReachable => abi::ECONNREFUSED,
        ViError::State | ViError::Closed => abi::EOPBADSTATE,
        ViError::NotSupported => abi::ENOSYS,
        _ => abi::EINVAL,
    }
}

//! Options of endpoints, active and passive: `fi_getopt`.

use core::ffi::c_void;

use crate::abi::{self, ENOSYS};
use crate::info::DATA_BYTES_MAX;
use crate::object::{ABSENT, CallTable, answer_int, give};

/// `struct fi_ops_ep`.
pub(crate) static OPTIONS: CallTable<8> =
    CallTable::new([ABSENT, option as *const (), ABSENT, ABSENT, ABSENT, ABSENT, ABSENT, ABSENT]);
/// `fi_getopt`: how many bytes go with a request for a connection.
unsafe extern "C" fn option(_fid: *mut c_void, level: i32, option: i32, value: *mut usize, bytes: *mut usize) -> i32 {
    answer_int(|| {
        if level != abi::OPT_ENDPOINT || option != abi::OPT_CM_DATA_SIZE {
            return Err(ENOSYS);
        }
        // SAFETY: libfabric's promise: a place for a size.
        unsafe { give(value, DATA_BYTES_MAX)? };
        // SAFETY: likewise.
        unsafe { give(bytes, size_of::<usize>()) }
    })
}

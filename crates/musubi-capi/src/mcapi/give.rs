//! What stands between C and the functions: results by pointer, panics, NULL.
//!
//! What you may rely on: NULL never crashes; a status pointer may be NULL; no panic crosses into C.

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::status::Status;

/// Calls `by`, puts what it says where C wants it, and gives its value, or `otherwise`.
///
/// # Safety
/// `status` is NULL or points to room for a status.
#[inline]
pub(crate) unsafe fn give<T>(status: *mut u32, otherwise: T, by: impl FnOnce() -> Result<T, Status>) -> T {
    let result = catch_unwind(AssertUnwindSafe(by)).unwrap_or(Err(Status::General));
    let (value, code) = match result {
        Ok(value) => (value, Status::Success),
        Err(code) => (otherwise, code),
    };
    if !status.is_null() {
        // SAFETY: the caller's promise, and it is not NULL.
        unsafe { status.write(code as u32) };
    }
    value
}

/// Refuses NULL before anything is done.
#[inline]
pub(crate) fn given<T>(pointer: *const T) -> Result<(), Status> {
    if pointer.is_null() { Err(Status::Parameter) } else { Ok(()) }
}

/// More than any buffer that could be sent has; also what programs give that count below 0.
const BYTES_MAX: usize = i32::MAX as usize;

/// The bytes of a buffer to be sent, which may be NULL if it is empty; longer ones than any are `too_long`.
///
/// # Safety
/// `buffer` is NULL or `size` bytes that nobody writes while the result is used.
#[inline]
pub(crate) unsafe fn bytes<'b>(buffer: *const u8, size: usize, too_long: Status) -> Result<&'b [u8], Status> {
    if size == 0 {
        return Ok(&[]);
    }
    given(buffer)?;
    if size > BYTES_MAX {
        return Err(too_long);
    }
    // SAFETY: the caller's promise; it is not NULL and its size is one that memory can have.
    Ok(unsafe { std::slice::from_raw_parts(buffer, size) })
}

/// Defines functions for C: the last argument is where the status goes; a function that fails returns what `else` says.
macro_rules! export {
    ($($(#[$doc:meta])* fn $name:ident($($arg:ident: $type:ty),*) $(-> $result:ty, else $otherwise:expr)?; $body:block)*) => {$(
        $(#[$doc])*
        ///
        /// # Safety
        /// Pointers are NULL or as include/mcapi.h says.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($arg: $type,)* mcapi_status: *mut u32) $(-> $result)? {
            let by = || $body;
            // Nothing, if the function gives nothing.
            let otherwise = ();
            $(let _ = otherwise; let otherwise = $otherwise;)?
            // SAFETY: the caller's promise.
            unsafe { $crate::mcapi::give::give(mcapi_status, otherwise, by) }
        }
    )*};
}
pub(crate) use export;

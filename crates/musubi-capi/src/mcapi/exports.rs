//! How a function of include/mcapi.h is made of one that gives a result.
//!
//! What you may rely on: a status pointer may be NULL; no panic crosses into C.
//!
//! How it works: [`export`] defines the function; [`give`] calls what it does, and puts the status where C wants it.

use super::port::guarded;
use super::status::Status;
use crate::ffi::put;

/// Calls `by`, puts what it says where C wants it, and gives its value, or `otherwise`.
///
/// # Safety
/// `status` is NULL or points to room for a status.
#[inline]
pub(crate) unsafe fn give<T>(status: *mut u32, otherwise: T, by: impl FnOnce() -> Result<T, Status>) -> T {
    let (value, code) = match guarded(by) {
        Ok(value) => (value, Status::Success),
        Err(code) => (otherwise, code),
    };
    // SAFETY: the caller's promise.
    unsafe { put(status, code as u32) };
    value
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
            unsafe { $crate::mcapi::exports::give(mcapi_status, otherwise, by) }
        }
    )*};
}
pub(crate) use export;

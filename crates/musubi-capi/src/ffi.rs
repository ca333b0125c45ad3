//! Reading and writing through the pointers that a C program gives, for both interfaces.
//!
//! What you may rely on: NULL is refused, or left alone where the function says so. That other pointers are good is the C
//! program's promise.
//!
//! How it works: what is refused has a type of its own, which each interface turns into its code.

#[cfg(not(feature = "mapped"))]
use core::ffi::{CStr, c_char};
#[cfg(not(feature = "mapped"))]
use core::str::Utf8Error;

/// NULL where something must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Null;

/// Refuses NULL before anything is done.
#[inline]
pub(crate) fn given<T>(pointer: *const T) -> Result<(), Null> {
    if pointer.is_null() { Err(Null) } else { Ok(()) }
}

/// Writes a result. NULL is left alone.
///
/// # Safety
/// `to` is NULL or points to room for a `T`.
#[inline]
pub(crate) unsafe fn put<T>(to: *mut T, value: T) {
    if !to.is_null() {
        // SAFETY: the caller's promise.
        unsafe { to.write(value) };
    }
}

/// A text; `None` for NULL.
///
/// # Safety
/// `from` is NULL or a C string that lives as long as the result is used.
#[cfg(not(feature = "mapped"))]
pub(crate) unsafe fn text<'t>(from: *const c_char) -> Result<Option<&'t str>, Utf8Error> {
    if from.is_null() {
        return Ok(None);
    }
    // SAFETY: the caller's promise.
    let text = unsafe { CStr::from_ptr(from) };
    text.to_str().map(Some)
}

/// More than any buffer that could be sent has; also what programs give that count below 0.
#[cfg(any(feature = "mapped", not(target_os = "none")))]
const BYTES_MAX: usize = i32::MAX as usize;

/// The bytes of a buffer to be sent, which may be NULL if it is empty; longer ones than any are `too_long`.
///
/// # Safety
/// `buffer` is NULL or `size` bytes that nobody writes while the result is used.
#[cfg(any(feature = "mapped", not(target_os = "none")))]
#[inline]
pub(crate) unsafe fn bytes<'b, E: From<Null>>(buffer: *const u8, size: usize, too_long: E) -> Result<&'b [u8], E> {
    if size == 0 {
        return Ok(&[]);
    }
    given(buffer)?;
    if size > BYTES_MAX {
        return Err(too_long);
    }
    // SAFETY: the caller's promise; it is not NULL and its size is one that memory can have.
    Ok(unsafe { core::slice::from_raw_parts(buffer, size) })
}

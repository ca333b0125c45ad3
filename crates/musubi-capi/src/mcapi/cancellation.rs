//! Threads that are being cancelled (`pthread_cancel`).
//!
//! What you may rely on: what is done in [`uncancelled`] is no cancellation point; a thread that was asked to end before or
//! meanwhile ends later, at a cancellation point of the program's.
//!
//! How it works: starting and ending threads, sleeping, and random numbers are cancellation points of the C library, and
//! come only with starting and ending nodes. What is called often makes its system calls itself, and needs none of this.

use std::ffi::c_int;
use std::ptr::null_mut;

/// `PTHREAD_CANCEL_DISABLE`.
const DISABLE: c_int = 1;

unsafe extern "C" {
    fn pthread_setcancelstate(state: c_int, before: *mut c_int) -> c_int;
}

/// How the thread was before.
struct Before(c_int);

impl Drop for Before {
    fn drop(&mut self) {
        // SAFETY: the thread's own state, as it was; the place to tell it may be NULL.
        unsafe { pthread_setcancelstate(self.0, null_mut()) };
    }
}

/// Does something that the thread must not end in.
pub(crate) fn uncancelled<R>(by: impl FnOnce() -> R) -> R {
    let mut before = Before(0);
    // SAFETY: the thread's own state; the place lives as long as the call.
    unsafe { pthread_setcancelstate(DISABLE, &raw mut before.0) };
    let result = by();
    drop(before);
    result
}

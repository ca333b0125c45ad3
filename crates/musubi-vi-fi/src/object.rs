//! What libfabric's objects are: a `fid` with tables of calls, and what is ours behind it.
//!
//! What you may rely on: an object lives from [`make`] to [`end`]; calls that are not offered answer `-FI_ENOSYS`.
//!
//! How it works: each object of libfabric is a class, a context and a table that all have, then some words (further tables, or a key),
//! so one layout does for all. A table is its size and addresses of functions.

use core::ffi::c_void;

use crate::abi::{EINVAL, ENOSYS};

/// An object: the head that libfabric reads, and ours.
#[repr(C)]
pub(crate) struct Object<T, const WORDS: usize> {
    class: usize,
    pub(crate) context: *mut c_void,
    calls: *const c_void,
    words: [usize; WORDS],
    pub(crate) own: T,
}

/// A table of calls: `struct fi_ops` and its like.
#[repr(C)]
pub(crate) struct CallTable<const CALLS: usize> {
    size: usize,
    calls: [*const (); CALLS],
}

// SAFETY: addresses of functions, which nobody changes.
unsafe impl<const CALLS: usize> Sync for CallTable<CALLS> {}

impl<const CALLS: usize> CallTable<CALLS> {
    pub(crate) const fn new(calls: [*const (); CALLS]) -> CallTable<CALLS> {
        CallTable { size: size_of::<CallTable<CALLS>>(), calls }
    }

    pub(crate) fn word(&'static self) -> usize {
        core::ptr::from_ref(self).expose_provenance()
    }

    fn address(&'static self) -> *const c_void {
        core::ptr::from_ref(self).cast()
    }
}

/// A call that is not offered, of any type: arguments are not looked at.
pub(crate) const ABSENT: *const () = absent as *const ();

extern "C" fn absent() -> isize {
    -(ENOSYS as isize)
}

/// A new object.
pub(crate) fn make<T, const WORDS: usize, const CALLS: usize>(
    class: usize,
    context: *mut c_void,
    calls: &'static CallTable<CALLS>,
    words: [usize; WORDS],
    own: T,
) -> *mut c_void {
    let object = Object { class, context, calls: calls.address(), words, own };
    Box::into_raw(Box::new(object)).cast()
}

/// The object that libfabric hands back.
///
/// # Safety
/// [`make`] made it of these types, and it has not ended.
pub(crate) unsafe fn of<'o, T, const WORDS: usize>(fid: *mut c_void) -> &'o Object<T, WORDS> {
    // SAFETY: the caller's promise.
    unsafe { &*fid.cast() }
}

/// Ends an object.
///
/// # Safety
/// As [`of`]; nobody uses it any more.
pub(crate) unsafe fn end<T, const WORDS: usize>(fid: *mut c_void) {
    // SAFETY: the caller's promise: it was a box.
    drop(unsafe { Box::from_raw(fid.cast::<Object<T, WORDS>>()) });
}

/// Writes where a program asks for it.
///
/// # Safety
/// `to` is NULL or a place for a `T`.
pub(crate) unsafe fn give<T>(to: *mut T, what: T) -> Result<(), i32> {
    if to.is_null() {
        return Err(EINVAL);
    }
    // SAFETY: the caller's promise; it is not NULL.
    unsafe { to.write(what) };
    Ok(())
}

/// Reads what a program hands over.
///
/// # Safety
/// `from` is NULL or a `T`.
pub(crate) unsafe fn take<T: Copy>(from: *const T) -> Result<T, i32> {
    if from.is_null() {
        return Err(EINVAL);
    }
    // SAFETY: the caller's promise; it is not NULL.
    Ok(unsafe { from.read() })
}

/// The answer of a call in C: a count, or an error as a negative number; a panic is `-FI_EIO`.
pub(crate) fn answer(by: impl FnOnce() -> Result<usize, i32>) -> isize {
    let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(by));
    match caught.unwrap_or(Err(crate::abi::EIO)) {
        Ok(count) => count as isize,
        Err(error) => -(error as isize),
    }
}

/// The same for calls that return an `int`.
pub(crate) fn answer_int(by: impl FnOnce() -> Result<(), i32>) -> i32 {
    answer(|| by().map(|()| 0)) as i32
}

//! For people: names of statuses, what the library reports, what a node looks like.

use core::ffi::{c_char, c_int, c_void};

use super::node::bound;
use super::port::{guarded, set_debug_level, show};
use super::status::name_of;

/// The name of a status; NULL, and an empty text, for what is none.
///
/// # Safety
/// `status_message` is NULL or room for `size` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mcapi_display_status(status: u32, status_message: *mut c_char, size: usize) -> *mut c_char {
    if status_message.is_null() || size == 0 {
        return core::ptr::null_mut();
    }
    let name = name_of(status).map_or(&[][..], |name| name.to_bytes());
    let length = name.len().min(size - 1);
    // SAFETY: the caller's promise: there is room for so many and the NUL; the name is ours.
    unsafe { core::ptr::copy_nonoverlapping(name.as_ptr().cast(), status_message, length) };
    let end = status_message.wrapping_add(length);
    // SAFETY: as before: what is left of the room, at least one byte. All of it, for programs that look at the last one.
    unsafe { end.write_bytes(0, size - length) };
    if name.is_empty() { core::ptr::null_mut() } else { status_message }
}

/// How much the library reports to the standard error: 0 nothing. The environment's `MUSUBI_DEBUG` counts more.
#[unsafe(no_mangle)]
pub extern "C" fn mcapi_set_debug_level(level: c_int) {
    set_debug_level(level);
}

/// Shows the caller's node on the standard error, where there is one. The argument is for programs written for others.
#[unsafe(no_mangle)]
pub extern "C" fn mcapi_display_state(_handle: *mut c_void) {
    // Without a node there is nothing to show.
    let _ = guarded(|| {
        bound(|bound| {
            let engines = bound.with(|engine, _| Ok(engine.requests()))?;
            let (pending, held) = (bound.requests().pending(), bound.held().len());
            let id = bound.id();
            show(format_args!(
                "musubi: node {id}: {pending} requests pending, {engines} in the engine, {held} packets in hand"
            ));
            Ok(())
        })
    });
}

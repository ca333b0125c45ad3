//! The functions of include/mdcom.h.
//!
//! What you may rely on: no panic crosses into C; misuse is answered with a code and changes nothing.
//!
//! How it works: each function reads its arguments, calls the part of the port that does the work, and writes the
//! results.
//!
//! What it does not do: decide anything; that is the port's.

use core::ffi::{c_char, c_int, c_void};

use super::abi::{self, Config, Filter, Usage};
use super::port::failure::{self, Failure, note};
use super::port::{self, fifo, session, smem};
use super::status::{self, Status};
use crate::ffi::{given, put, text};

/// Calls `by`, notes a failure, and lets no panic out.
#[inline]
fn guarded(by: impl FnOnce() -> Result<(), Failure>) -> Status {
    match failure::caught(by) {
        Ok(()) => Status::Ok,
        Err(failure) => note(failure),
    }
}

/// Defines functions for C that give a status.
macro_rules! export {
    ($($(#[$doc:meta])* fn $name:ident($($arg:ident: $type:ty),*) $body:block)*) => {$(
        $(#[$doc])*
        ///
        /// # Safety
        /// Pointers are NULL or as include/mdcom.h says.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($arg: $type),*) -> Status {
            guarded(|| $body)
        }
    )*};
}

/// Defines the spellings of the paper's table 2.
macro_rules! alias {
    ($(fn $name:ident = $of:ident($($arg:ident: $type:ty),*);)*) => {$(
        #[doc = concat!("[`", stringify!($of), "`] as table 2 of the paper spells it.")]
        ///
        /// # Safety
        /// As there.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($arg: $type),*) -> Status {
            // SAFETY: the caller's promise is the same.
            unsafe { $of($($arg),*) }
        }
    )*};
}

export! {
    /// Attaches this process to its domain.
    fn mdcom_init(config: *const Config) {
        // SAFETY: the caller's promise.
        session::init(unsafe { abi::wanted(config) }?)
    }

    /// Detaches.
    fn mdcom_term() {
        port::term()
    }

    /// How many processes of a domain are attached.
    fn mdcom_sense_process(domain: u32, count: *mut u32) {
        given(count)?;
        let attached = session::attached(domain)?;
        // SAFETY: the caller's promise.
        unsafe { put(count, u32::from(attached)) };
        Ok(())
    }

    /// Usage of a FIFO channel.
    fn mdcom_sense_fifo(ch: u32, usage: *mut Usage) {
        given(usage)?;
        let now = fifo::with(ch, |channel| Ok(channel.usage()))?;
        // SAFETY: the caller's promise.
        unsafe { put(usage, now) };
        Ok(())
    }

    /// Number of the FIFO channel of this name.
    fn mdcom_fifoch_find(name: *const c_char, ch: *mut u32) {
        given(ch)?;
        // SAFETY: the caller's promise.
        let name = unsafe { text(name) }.map_err(|_| abi::Refused(c"name is not UTF-8"))?.ok_or(Status::Argument)?;
        let found = session::with_plan(|plan| plan.fifo(name))?.ok_or(Status::Channel)?;
        // SAFETY: the caller's promise.
        unsafe { put(ch, u32::from(found)) };
        Ok(())
    }

    /// Number of the SMEM channel of this name.
    fn mdcom_smemch_find(name: *const c_char, ch: *mut u32) {
        given(ch)?;
        // SAFETY: the caller's promise.
        let name = unsafe { text(name) }.map_err(|_| abi::Refused(c"name is not UTF-8"))?.ok_or(Status::Argument)?;
        let found = session::with_plan(|plan| plan.smem(name))?.ok_or(Status::Channel)?;
        // SAFETY: the caller's promise.
        unsafe { put(ch, u32::from(found)) };
        Ok(())
    }

    /// Sender: takes a block.
    fn mdcom_fifoch_alloc(ch: u32, timeout: u64, block: *mut u64) {
        given(block)?;
        let name = fifo::allocate(ch, timeout)?;
        // SAFETY: the caller's promise.
        unsafe { put(block, name) };
        Ok(())
    }

    /// Gives a block back.
    fn mdcom_fifoch_free(ch: u32, block: u64) {
        fifo::with(ch, |channel| channel.free(block))
    }

    /// The memory of a block.
    fn mdcom_fifoch_get(ch: u32, block: u64, data: *mut *mut c_void) {
        given(data)?;
        let held = fifo::with(ch, |channel| channel.held(block))?;
        // SAFETY: the caller's promise.
        unsafe { put(data, held.address.cast()) };
        Ok(())
    }

    /// The memory of a block and its bytes.
    fn mdcom_fifoch_get_len(ch: u32, block: u64, data: *mut *mut c_void, bytes: *mut usize) {
        given(data)?;
        given(bytes)?;
        let held = fifo::with(ch, |channel| channel.held(block))?;
        // SAFETY: the caller's promise.
        unsafe { put(data, held.address.cast()) };
        // SAFETY: the caller's promise.
        unsafe { put(bytes, held.bytes as usize) };
        Ok(())
    }

    /// Sender: sends a whole block.
    fn mdcom_fifoch_enqueue(ch: u32, block: u64) {
        fifo::with(ch, |channel| channel.enqueue(block, None))
    }

    /// Sender: sends a message of this many bytes.
    fn mdcom_fifoch_enqueue_len(ch: u32, block: u64, bytes: usize) {
        fifo::with(ch, |channel| channel.enqueue(block, Some(bytes)))
    }

    /// Receiver: takes the next message.
    fn mdcom_fifoch_dequeue(ch: u32, block: *mut u64) {
        given(block)?;
        let (name, _) = fifo::with(ch, |channel| channel.dequeue())?;
        // SAFETY: the caller's promise.
        unsafe { put(block, name) };
        Ok(())
    }

    /// Receiver: takes the next message and its bytes.
    fn mdcom_fifoch_dequeue_len(ch: u32, block: *mut u64, bytes: *mut usize) {
        given(block)?;
        given(bytes)?;
        let (name, length) = fifo::with(ch, |channel| channel.dequeue())?;
        // SAFETY: the caller's promise.
        unsafe { put(block, name) };
        // SAFETY: the caller's promise.
        unsafe { put(bytes, length as usize) };
        Ok(())
    }

    /// Raises an event at the other side.
    fn mdcom_fifoch_notify(ch: u32) {
        fifo::with(ch, |channel| {
            channel.notify();
            Ok(())
        })
    }

    /// Waits for an event of the other side.
    fn mdcom_fifoch_wait(ch: u32, timeout: u64) {
        fifo::wait(ch, timeout)
    }

    /// Sender: replaces the filter.
    fn mdcom_fifoch_filter_set(ch: u32, filter: *const Filter) {
        // SAFETY: the caller's promise: not NULL here, so a filter.
        let rule = (!filter.is_null()).then(|| unsafe { filter.read() }.into());
        fifo::with(ch, |channel| channel.set_filter(rule))
    }

    /// Initialises one channel again.
    fn mdcom_fifoch_init(ch: u32) {
        fifo::with(ch, |channel| {
            channel.reset();
            Ok(())
        })
    }

    /// A descriptor for event loops.
    fn mdcom_fifoch_fd(ch: u32, fd: *mut c_int) {
        given(fd)?;
        let descriptor = fifo::with(ch, |channel| channel.event_fd())?;
        // SAFETY: the caller's promise.
        unsafe { put(fd, descriptor) };
        Ok(())
    }

    /// Clears and arms the descriptor.
    fn mdcom_fifoch_arm(ch: u32, ready: *mut u32) {
        given(ready)?;
        let bits = fifo::with(ch, |channel| channel.arm())?;
        // SAFETY: the caller's promise.
        unsafe { put(ready, bits) };
        Ok(())
    }

    /// The memory of an SMEM channel.
    fn mdcom_smemch_get(ch: u32, data: *mut *mut c_void) {
        given(data)?;
        let memory = smem::memory(ch)?;
        // SAFETY: the caller's promise.
        unsafe { put(data, memory.address.cast()) };
        Ok(())
    }

    /// The memory of an SMEM channel and its bytes.
    fn mdcom_smemch_get_len(ch: u32, data: *mut *mut c_void, bytes: *mut usize) {
        given(data)?;
        given(bytes)?;
        let memory = smem::memory(ch)?;
        // SAFETY: the caller's promise.
        unsafe { put(data, memory.address.cast()) };
        // SAFETY: the caller's promise.
        unsafe { put(bytes, memory.bytes as usize) };
        Ok(())
    }

    /// Tries to take the lock.
    fn mdcom_smemch_trylock(ch: u32) {
        smem::try_lock(ch)
    }

    /// Takes the lock.
    fn mdcom_smemch_lock(ch: u32, timeout: u64) {
        smem::lock_until(ch, timeout)
    }

    /// Gives the lock back.
    fn mdcom_smemch_unlock(ch: u32) {
        smem::unlock(ch)
    }
}

alias! {
    fn mdcom_fifo_alloc = mdcom_fifoch_alloc(ch: u32, timeout: u64, block: *mut u64);
    fn mdcom_fifo_free = mdcom_fifoch_free(ch: u32, block: u64);
    fn mdcom_fifo_get = mdcom_fifoch_get(ch: u32, block: u64, data: *mut *mut c_void);
    fn mdcom_fifo_get_len = mdcom_fifoch_get_len(ch: u32, block: u64, data: *mut *mut c_void, bytes: *mut usize);
    fn mdcom_fifo_enqueue = mdcom_fifoch_enqueue(ch: u32, block: u64);
    fn mdcom_fifo_enqueue_len = mdcom_fifoch_enqueue_len(ch: u32, block: u64, bytes: usize);
    fn mdcom_fifo_dequeue = mdcom_fifoch_dequeue(ch: u32, block: *mut u64);
    fn mdcom_fifo_dequeue_len = mdcom_fifoch_dequeue_len(ch: u32, block: *mut u64, bytes: *mut usize);
    fn mdcom_fifo_notify = mdcom_fifoch_notify(ch: u32);
    fn mdcom_fifo_wait = mdcom_fifoch_wait(ch: u32, timeout: u64);
    fn mdcom_filter_set = mdcom_fifoch_filter_set(ch: u32, filter: *const Filter);
    fn mdcom_fifo_init = mdcom_fifoch_init(ch: u32);
    fn mdcom_fifo_fd = mdcom_fifoch_fd(ch: u32, fd: *mut c_int);
    fn mdcom_fifo_arm = mdcom_fifoch_arm(ch: u32, ready: *mut u32);
}

/// What a code means.
#[unsafe(no_mangle)]
pub extern "C" fn mdcom_strerror(status: c_int) -> *const c_char {
    status::text_of(status).as_ptr()
}

/// The text of this thread's last failure.
#[unsafe(no_mangle)]
pub extern "C" fn mdcom_last_error() -> *const c_char {
    failure::last_error()
}

//! Completion queues.
//!
//! What you may rely on: completions of one endpoint and direction come in the order of posting; a failed one is an error
//! entry, and everything that a lost connection flushes is one with `FI_ECANCELED`.
//!
//! What it does not do: descriptors to wait on (`FI_WAIT_FD`); selective completion.

use core::ffi::c_void;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use musubi_transport::runtime::{Deadline, DeadlineExt};
use musubi_vipl::ViError;
use musubi_vipl::engine::{Dequeue, Queue, Status};
use musubi_vipl::nic::QueueNumber;

use crate::abi::{self, CqEntry, CqError, EAGAIN, EAVAIL, EINVAL, ENOSYS};
use crate::codes::code;
use crate::domain::{Core, Domain};
use crate::object::{self, ABSENT, CallTable, answer, answer_int, give, make, take};
use crate::work::Ended;

/// Most entries that are made room for at once.
const ENTRIES_MAX: usize = 1 << 20;
/// Entries where a program does not say.
const ENTRIES: usize = 1024;

pub(crate) struct Completions {
    core: Arc<Core>,
    pub(crate) queue: QueueNumber,
    entry_bytes: usize,
    failed: Mutex<Option<(Queue, Ended)>>,
}

static FID: CallTable<6> = CallTable::new([close as *const (), ABSENT, ABSENT, ABSENT, ABSENT, ABSENT]);
static CALLS: CallTable<7> = CallTable::new([
    read as *const (),
    ABSENT,
    read_error as *const (),
    read_waiting as *const (),
    ABSENT,
    ABSENT,
    text as *const (),
]);

/// The queue of an object.
///
/// # Safety
/// It is one.
pub(crate) unsafe fn of<'o>(fid: *mut c_void) -> &'o Completions {
    // SAFETY: the caller's promise.
    &unsafe { object::of::<Completions, 1>(fid) }.own
}

pub(crate) unsafe extern "C" fn open(
    domain: *mut c_void,
    attr: *const abi::CqAttr,
    out: *mut *mut c_void,
    context: *mut c_void,
) -> i32 {
    answer_int(|| {
        // SAFETY: libfabric's promise: a domain.
        let core = Arc::clone(&unsafe { object::of::<Domain, 2>(domain) }.own.core);
        // SAFETY: libfabric's promise.
        let attr = unsafe { take(attr)? };
        if attr.wait_obj > abi::WAIT_UNSPEC {
            return Err(ENOSYS);
        }
        let entry_bytes = match attr.format {
            0 | abi::FORMAT_CONTEXT => 8,
            abi::FORMAT_MSG => 24,
            abi::FORMAT_DATA => size_of::<CqEntry>(),
            _ => return Err(ENOSYS),
        };
        let entries = if attr.size == 0 { ENTRIES } else { attr.size.min(ENTRIES_MAX) };
        let queue = core.nic.with(|nic| nic.create_queue(entries as u32)).map_err(code)?;
        let own = Completions { core, queue, entry_bytes, failed: Mutex::default() };
        // SAFETY: libfabric's promise.
        unsafe { give(out, make(abi::CLASS_CQ, context, &FID, [CALLS.word()], own)) }
    })
}

unsafe extern "C" fn close(fid: *mut c_void) -> i32 {
    answer_int(|| {
        // SAFETY: libfabric's promise: an object of this table.
        let own = unsafe { of(fid) };
        own.core.nic.with(|nic| nic.destroy_queue(own.queue)).map_err(|_| 16)?;
        // SAFETY: likewise; the program ends it.
        unsafe { object::end::<Completions, 1>(fid) };
        Ok(())
    })
}

impl Completions {
    /// The next completion that the program is to hear of.
    fn next(&self, deadline: Deadline) -> Result<(Queue, Ended), i32> {
        loop {
            let (vi, queue) = match self.core.nic.wait_completion(self.queue, deadline) {
                Err(ViError::Timeout) => return Err(EAGAIN),
                other => other.map_err(code)?,
            };
            let Some(side) = self.core.side(vi) else { continue };
            let Ok(Dequeue::Complete { address, .. }) = self.core.nic.dequeue(vi, queue) else { continue };
            let Some(ended) = side.ended(queue, address) else { continue };
            if !ended.posted.is_silent || ended.status & Status::ERRORS.0 != 0 {
                return Ok((queue, ended));
            }
        }
    }

    /// Reads up to so many entries.
    ///
    /// # Safety
    /// There is room for them.
    unsafe fn read(&self, to: *mut c_void, count: usize, mut deadline: Deadline) -> Result<usize, i32> {
        let mut failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner);
        if failed.is_some() {
            return Err(EAVAIL);
        }
        let mut taken = 0;
        while taken < count {
            let (queue, ended) = match self.next(deadline) {
                Err(_) if taken > 0 => break,
                other => other?,
            };
            deadline = Deadline::Poll;
            if ended.status & Status::ERRORS.0 != 0 {
                *failed = Some((queue, ended));
                return if taken > 0 { Ok(taken) } else { Err(EAVAIL) };
            }
            let entry = entry(queue, &ended);
            let place = to.wrapping_byte_add(taken * self.entry_bytes);
            // SAFETY: the caller's promise; a shorter entry is the beginning of this one.
            unsafe { core::ptr::copy_nonoverlapping((&raw const entry).cast::<u8>(), place.cast(), self.entry_bytes) };
            taken += 1;
        }
        Ok(taken)
    }
}

fn flags(queue: Queue, ended: &Ended) -> u64 {
    let data = if ended.status & Status::IMMEDIATE.0 != 0 { abi::REMOTE_CQ_DATA } else { 0 };
    match queue {
        Queue::Send => abi::MSG | abi::SEND,
        Queue::Receive => abi::MSG | abi::RECV | data,
    }
}

fn entry(queue: Queue, ended: &Ended) -> CqEntry {
    CqEntry {
        context: core::ptr::with_exposed_provenance_mut(ended.posted.context),
        flags: flags(queue, ended),
        len: ended.bytes as usize,
        buf: core::ptr::with_exposed_provenance_mut(ended.posted.buffer),
        data: u64::from(ended.immediate),
    }
}

unsafe extern "C" fn read(fid: *mut c_void, to: *mut c_void, count: usize) -> isize {
    // SAFETY: libfabric's promise: an object of this table.
    let own = unsafe { of(fid) };
    // SAFETY: likewise: room for as many entries.
    answer(|| unsafe { own.read(to, count, Deadline::Poll) })
}

unsafe extern "C" fn read_waiting(
    fid: *mut c_void,
    to: *mut c_void,
    count: usize,
    _condition: *const c_void,
    timeout_ms: i32,
) -> isize {
    let timeout = u64::try_from(timeout_ms).ok().map(Duration::from_millis);
    let deadline = timeout.map_or(Deadline::Forever, Deadline::after);
    // SAFETY: libfabric's promise: an object of this table.
    let own = unsafe { of(fid) };
    // SAFETY: likewise: room for as many entries.
    answer(|| unsafe { own.read(to, count, deadline) })
}

unsafe extern "C" fn read_error(fid: *mut c_void, to: *mut CqError, _flags: u64) -> isize {
    answer(|| {
        // SAFETY: libfabric's promise: an object of this table.
        let own = unsafe { of(fid) };
        let failed = own.failed.lock().unwrap_or_else(PoisonError::into_inner).take();
        let (queue, ended) = failed.ok_or(EAGAIN)?;
        let plain = entry(queue, &ended);
        let is_flushed = ended.status & Status::FLUSHED.0 != 0;
        let error = CqError {
            context: plain.context,
            flags: plain.flags,
            len: 0,
            buf: plain.buf,
            data: 0,
            tag: 0,
            olen: 0,
            err: if is_flushed { abi::ECANCELED } else { abi::EIO },
            prov_errno: i32::try_from(ended.status & Status::ERRORS.0).map_err(|_| EINVAL)?,
            err_data: core::ptr::null_mut(),
            err_data_size: 0,
        };
        // SAFETY: libfabric's promise.
        unsafe { give(to, error)? };
        Ok(1)
    })
}

extern "C" fn text() -> *const core::ffi::c_char {
    c"the descriptor ended with an error".as_ptr()
}

//! Event queues: what becomes of connections.
//!
//! What you may rely on: events are read in the order in which they happened; a failed connection is an error entry.
//!
//! What it does not do: descriptors to wait on (`FI_WAIT_FD`), `fi_eq_write`.

use core::ffi::c_void;
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::abi::{self, EAGAIN, EAVAIL, ETOOSMALL, EqError};
use crate::object::{self, ABSENT, CallTable, answer, answer_int, give, make};

/// What happened to an endpoint; addresses of objects as numbers.
pub(crate) struct QueuedEvent {
    pub(crate) kind: u32,
    pub(crate) fid: usize,
    pub(crate) context: usize,
    pub(crate) info: usize,
    /// 0, or why it failed.
    pub(crate) error: i32,
}

#[derive(Default)]
pub(crate) struct Events {
    queue: Mutex<VecDeque<QueuedEvent>>,
    changed: Condvar,
}

/// `fi_eq_cm_entry` without data.
#[repr(C)]
struct CmEntry {
    fid: usize,
    info: usize,
}

static FID: CallTable<6> = CallTable::new([close as *const (), ABSENT, ABSENT, ABSENT, ABSENT, ABSENT]);
static CALLS: CallTable<5> =
    CallTable::new([read as *const (), read_error as *const (), ABSENT, read_waiting as *const (), text as *const ()]);

impl Events {
    pub(crate) fn push(&self, event: QueuedEvent) {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner).push_back(event);
        self.changed.notify_all();
    }

    /// The next event, by this deadline (none: as long as it takes).
    fn take(&self, until: Option<Instant>) -> Result<QueuedEvent, i32> {
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            match queue.front() {
                Some(event) if event.error != 0 => return Err(EAVAIL),
                Some(_) => return queue.pop_front().ok_or(EAGAIN),
                None => {}
            }
            // A wait without end is one of many short ones.
            let left = until.map_or(Duration::from_secs(1), |until| until.saturating_duration_since(Instant::now()));
            if left.is_zero() {
                return Err(EAGAIN);
            }
            queue = self.changed.wait_timeout(queue, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

pub(crate) unsafe extern "C" fn open(
    _fabric: *mut c_void,
    _attr: *const c_void,
    out: *mut *mut c_void,
    context: *mut c_void,
) -> i32 {
    let events = Arc::new(Events::default());
    // SAFETY: libfabric's promise.
    answer_int(|| unsafe { give(out, make(abi::CLASS_EQ, context, &FID, [CALLS.word()], events)) })
}

/// The queue of an object.
///
/// # Safety
/// It is one.
pub(crate) unsafe fn of(fid: *mut c_void) -> Arc<Events> {
    // SAFETY: the caller's promise.
    Arc::clone(&unsafe { object::of::<Arc<Events>, 1>(fid) }.own)
}

unsafe extern "C" fn close(fid: *mut c_void) -> i32 {
    // SAFETY: libfabric's promise: an object of this table, which the program ends.
    unsafe { object::end::<Arc<Events>, 1>(fid) };
    0
}

unsafe extern "C" fn read(fid: *mut c_void, kind: *mut u32, to: *mut c_void, bytes: usize, flags: u64) -> isize {
    // SAFETY: libfabric's promises, handed on.
    unsafe { read_waiting(fid, kind, to, bytes, 0, flags) }
}

unsafe extern "C" fn read_waiting(
    fid: *mut c_void,
    kind: *mut u32,
    to: *mut c_void,
    bytes: usize,
    timeout_ms: i32,
    _flags: u64,
) -> isize {
    answer(|| {
        if bytes < size_of::<CmEntry>() {
            return Err(ETOOSMALL);
        }
        // SAFETY: libfabric's promise: an object of this table.
        let events = unsafe { of(fid) };
        let timeout = u64::try_from(timeout_ms).ok().map(Duration::from_millis);
        let event = events.take(timeout.map(|timeout| Instant::now() + timeout))?;
        // SAFETY: libfabric's promise.
        unsafe { give(kind, event.kind)? };
        // SAFETY: likewise; there is room for it.
        unsafe { give(to.cast(), CmEntry { fid: event.fid, info: event.info })? };
        Ok(size_of::<CmEntry>())
    })
}

unsafe extern "C" fn read_error(fid: *mut c_void, to: *mut EqError, _flags: u64) -> isize {
    answer(|| {
        // SAFETY: libfabric's promise: an object of this table.
        let events = unsafe { of(fid) };
        let mut queue = events.queue.lock().unwrap_or_else(PoisonError::into_inner);
        let event = queue.pop_front_if(|event| event.error != 0).ok_or(EAGAIN)?;
        let entry = EqError {
            fid: core::ptr::with_exposed_provenance_mut(event.fid),
            context: core::ptr::with_exposed_provenance_mut(event.context),
            data: 0,
            err: event.error,
            prov_errno: event.error,
            err_data: core::ptr::null_mut(),
            err_data_size: 0,
        };
        // SAFETY: libfabric's promise.
        unsafe { give(to, entry)? };
        Ok(size_of::<EqError>())
    })
}

extern "C" fn text() -> *const core::ffi::c_char {
    c"the connection was not made".as_ptr()
}

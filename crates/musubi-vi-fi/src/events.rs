//! Event queues: what becomes of connections.
//!
//! What you may rely on: events are read in the order in which they happened; a failed connection is an error entry. Those of an
//! endpoint are gone when it is closed. The descriptor to wait on can be read as long as there is an event.
//!
//! How it works: a counting descriptor (`eventfd`) is written with each event and read empty with the last.

use core::ffi::c_void;
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::abi::{self, EAGAIN, EAVAIL, EINVAL, ENOSYS, ETOOSMALL, EqError};
use crate::object::{self, ABSENT, CallTable, answer, answer_int, give, make, take};
use crate::waiting::bell::WaitBell;

/// Most bytes of an event that a program writes.
const WRITTEN_BYTES_MAX: usize = 256;

/// What happened to an endpoint; addresses of objects as numbers.
#[derive(Clone)]
pub(crate) struct QueuedEvent {
    pub(crate) kind: u32,
    pub(crate) fid: usize,
    pub(crate) context: usize,
    pub(crate) info: usize,
    /// 0, or why it failed.
    pub(crate) error: i32,
    /// What the other side said with it.
    pub(crate) data: Vec<u8>,
}

/// An event, or what a program wrote.
#[derive(Clone)]
enum WaitingEvent {
    Event(QueuedEvent),
    Written(u32, Vec<u8>),
}

#[derive(Default)]
struct EventQueue {
    entries: VecDeque<WaitingEvent>,
    /// Of the error that was read last: the program reads it where it lies.
    error_data: Vec<u8>,
}

pub(crate) struct Events {
    queue: Mutex<EventQueue>,
    changed: Condvar,
    bell: WaitBell,
}

/// `fi_eq_cm_entry` without data.
#[repr(C)]
struct CmEntry {
    fid: usize,
    info: usize,
}

static FID: CallTable<6> = CallTable::new([close as *const (), ABSENT, control as *const (), ABSENT, ABSENT, ABSENT]);
static CALLS: CallTable<5> = CallTable::new([
    read as *const (),
    read_error as *const (),
    write as *const (),
    read_waiting as *const (),
    text as *const (),
]);

impl Events {
    fn lock(&self) -> MutexGuard<'_, EventQueue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn push(&self, event: QueuedEvent) {
        self.add(WaitingEvent::Event(event));
    }

    fn add(&self, entry: WaitingEvent) {
        let mut queue = self.lock();
        queue.entries.push_back(entry);
        self.bell.ring();
        self.changed.notify_all();
    }

    /// An endpoint is no more: nobody hears of it.
    pub(crate) fn forget(&self, fid: usize) {
        let mut queue = self.lock();
        queue
            .entries
            .retain(|entry| !matches!(entry, WaitingEvent::Event(event) if event.fid == fid && event.info == 0));
        self.quiet(&queue);
    }

    fn quiet(&self, queue: &EventQueue) {
        if queue.entries.is_empty() {
            self.bell.quiet();
        }
    }

    /// Whether a program that waits on the descriptor would miss nothing.
    pub(crate) fn may_wait(&self) -> bool {
        self.lock().entries.is_empty()
    }

    /// The next event, by this deadline (none: as long as it takes).
    fn next(&self, until: Option<Instant>, is_peek: bool) -> Result<WaitingEvent, i32> {
        let mut queue = self.lock();
        loop {
            match queue.entries.front() {
                Some(WaitingEvent::Event(event)) if event.error != 0 => return Err(EAVAIL),
                Some(entry) if is_peek => return Ok(entry.clone()),
                Some(_) => {
                    let entry = queue.entries.pop_front();
                    self.quiet(&queue);
                    return entry.ok_or(EAGAIN);
                }
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

    fn next_error(&self) -> Result<EqError, i32> {
        let mut queue = self.lock();
        let is_error = |entry: &mut WaitingEvent| matches!(entry, WaitingEvent::Event(event) if event.error != 0);
        let WaitingEvent::Event(event) = queue.entries.pop_front_if(is_error).ok_or(EAGAIN)? else {
            return Err(EAGAIN);
        };
        self.quiet(&queue);
        queue.error_data = event.data;
        Ok(EqError {
            fid: core::ptr::with_exposed_provenance_mut(event.fid),
            context: core::ptr::with_exposed_provenance_mut(event.context),
            data: 0,
            err: event.error,
            prov_errno: event.error,
            err_data: queue.error_data.as_mut_ptr().cast(),
            err_data_size: queue.error_data.len(),
        })
    }
}

pub(crate) unsafe extern "C" fn open(
    _fabric: *mut c_void,
    attr: *const abi::EqAttr,
    out: *mut *mut c_void,
    context: *mut c_void,
) -> i32 {
    answer_int(|| {
        // SAFETY: libfabric's promise.
        let wait = unsafe { take(attr) }.map_or(0, |attr| attr.wait_obj);
        if !matches!(wait, 0 | abi::WAIT_UNSPEC | abi::WAIT_FD) {
            return Err(ENOSYS);
        }
        let bell = WaitBell::new().ok_or(abi::ENOMEM)?;
        let events = Arc::new(Events { queue: Mutex::default(), changed: Condvar::new(), bell });
        // SAFETY: libfabric's promise.
        unsafe { give(out, make(abi::CLASS_EQ, context, &FID, [CALLS.word()], events)) }
    })
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

unsafe extern "C" fn control(fid: *mut c_void, command: i32, argument: *mut c_void) -> i32 {
    answer_int(|| {
        if command != abi::GETWAIT {
            return Err(ENOSYS);
        }
        // SAFETY: libfabric's promise: an object of this table.
        let events = unsafe { of(fid) };
        // SAFETY: libfabric's promise: a place for a descriptor.
        unsafe { give(argument.cast(), events.bell.descriptor()) }
    })
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
    flags: u64,
) -> isize {
    answer(|| {
        // SAFETY: libfabric's promise: an object of this table.
        let events = unsafe { of(fid) };
        let timeout = u64::try_from(timeout_ms).ok().map(Duration::from_millis);
        let until = timeout.map(|timeout| Instant::now() + timeout);
        let (number, data) = match events.next(until, flags & abi::PEEK != 0)? {
            WaitingEvent::Written(number, data) => (number, data),
            WaitingEvent::Event(event) => {
                let entry = CmEntry { fid: event.fid, info: event.info };
                (event.kind, [&entry.fid.to_ne_bytes(), &entry.info.to_ne_bytes(), &*event.data].concat())
            }
        };
        // SAFETY: libfabric's promise.
        unsafe { give(kind, number)? };
        if bytes < data.len().min(size_of::<CmEntry>()) {
            return Err(ETOOSMALL);
        }
        let given = data.len().min(bytes);
        // SAFETY: likewise: there is room for as many bytes, and `data` has as many.
        unsafe { core::ptr::copy_nonoverlapping(data.as_ptr(), to.cast(), given) };
        Ok(given)
    })
}

unsafe extern "C" fn read_error(fid: *mut c_void, to: *mut EqError, _flags: u64) -> isize {
    answer(|| {
        // SAFETY: libfabric's promise: an object of this table.
        let events = unsafe { of(fid) };
        let entry = events.next_error()?;
        // SAFETY: likewise.
        unsafe { give(to, entry)? };
        Ok(size_of::<EqError>())
    })
}

unsafe extern "C" fn write(fid: *mut c_void, kind: u32, from: *const c_void, bytes: usize, _flags: u64) -> isize {
    answer(|| {
        if bytes > WRITTEN_BYTES_MAX || (from.is_null() && bytes > 0) {
            return Err(EINVAL);
        }
        // SAFETY: libfabric's promise: an object of this table.
        let events = unsafe { of(fid) };
        let mut data = vec![0_u8; bytes];
        // SAFETY: likewise: as many bytes; the copy has as many.
        unsafe { core::ptr::copy_nonoverlapping(from.cast(), data.as_mut_ptr(), bytes) };
        events.add(WaitingEvent::Written(kind, data));
        Ok(bytes)
    })
}

extern "C" fn text() -> *const core::ffi::c_char {
    c"the connection was not made".as_ptr()
}

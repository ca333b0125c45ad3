//! Completion queues.
//!
//! What you may rely on: completions of one endpoint and direction come in the order of posting; a failed one is an error
//! entry, and everything that a lost connection or a closed endpoint flushes is one with `FI_ECANCELED`.
//!
//! How it works: the queue is a VI's, and beside it lies what endpoints had when they were closed. Where a program waits on a
//! descriptor, a thread waits in its place, from `fi_trywait` until there is a completion.

use core::ffi::c_void;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use musubi_transport::runtime::{Deadline, DeadlineExt};
use musubi_vipl::ViError;
use musubi_vipl::engine::{Dequeue, Queue, Status};
use musubi_vipl::nic::QueueNumber;

use crate::abi::{self, CqEntry, CqError, EAGAIN, EAVAIL, EINVAL, ENOSYS};
use crate::codes::code;
use crate::domain::{Core, Domain};
use crate::object::{self, ABSENT, CallTable, answer, answer_int, give, make, take};
use crate::waiting::bell::WaitBell;
use crate::work::Ended;

/// Most entries that are made room for.
const ENTRIES_MAX: usize = 1 << 20;
/// Entries where a program does not say.
const ENTRIES: usize = 1024;
/// How long the thread that waits in a program's place waits at a time.
const WAIT: Duration = Duration::from_millis(200);

/// What waits in a program's place.
struct Waiter {
    bell: WaitBell,
    /// Whether the program waits on the descriptor.
    is_asked: Mutex<bool>,
    asked: Condvar,
    ends: AtomicBool,
}

pub(crate) struct Completions {
    core: Arc<Core>,
    pub(crate) queue: QueueNumber,
    entry_bytes: usize,
    /// Errors that the program has not read.
    failed: Mutex<VecDeque<(Queue, Ended)>>,
    /// Of endpoints that were closed.
    left: Mutex<VecDeque<(Queue, Ended)>>,
    waiter: Option<Arc<Waiter>>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

static FID: CallTable<6> = CallTable::new([close as *const (), ABSENT, control as *const (), ABSENT, ABSENT, ABSENT]);
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
pub(crate) unsafe fn of(fid: *mut c_void) -> Arc<Completions> {
    // SAFETY: the caller's promise.
    Arc::clone(&unsafe { object::of::<Arc<Completions>, 1>(fid) }.own)
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
        if !matches!(attr.wait_obj, 0 | abi::WAIT_UNSPEC | abi::WAIT_FD) {
            return Err(ENOSYS);
        }
        let entry_bytes = match attr.format {
            0 | abi::FORMAT_CONTEXT => 8,
            abi::FORMAT_MSG => 24,
            abi::FORMAT_DATA => size_of::<CqEntry>(),
            _ => return Err(ENOSYS),
        };
        let entries = if attr.size == 0 { ENTRIES } else { attr.size.min(ENTRIES_MAX) };
        let waiter = if attr.wait_obj == 0 { None } else { Some(Waiter::new()?) };
        let queue = core.nic.with(|nic| nic.create_queue(entries as u32)).map_err(code)?;
        let (failed, left, thread) = Default::default();
        let own = Arc::new(Completions { core, queue, entry_bytes, failed, left, waiter, thread });
        own.start_waiting();
        // SAFETY: libfabric's promise.
        unsafe { give(out, make(abi::CLASS_CQ, context, &FID, [CALLS.word()], own)) }
    })
}

unsafe extern "C" fn close(fid: *mut c_void) -> i32 {
    answer_int(|| {
        // SAFETY: libfabric's promise: an object of this table.
        let own = unsafe { of(fid) };
        own.core.nic.with(|nic| nic.destroy_queue(own.queue)).map_err(|_| abi::EBUSY)?;
        own.end_waiting();
        // SAFETY: likewise; the program ends it.
        unsafe { object::end::<Arc<Completions>, 1>(fid) };
        Ok(())
    })
}

unsafe extern "C" fn control(fid: *mut c_void, command: i32, argument: *mut c_void) -> i32 {
    answer_int(|| {
        // SAFETY: libfabric's promise: an object of this table.
        let own = unsafe { of(fid) };
        let waiter = own.waiter.as_ref().filter(|_| command == abi::GETWAIT).ok_or(ENOSYS)?;
        // SAFETY: libfabric's promise: a place for a descriptor.
        unsafe { give(argument.cast(), waiter.bell.descriptor()) }
    })
}

impl Waiter {
    fn new() -> Result<Arc<Waiter>, i32> {
        let bell = WaitBell::new().ok_or(abi::ENOMEM)?;
        let (is_asked, asked, ends) = Default::default();
        Ok(Arc::new(Waiter { bell, is_asked, asked, ends }))
    }

    /// Waits until the program does; false if it never will any more.
    fn await_question(&self) -> bool {
        let mut is_asked = self.is_asked.lock().unwrap_or_else(PoisonError::into_inner);
        while !*is_asked && !self.ends.load(Ordering::Relaxed) {
            is_asked = self.asked.wait(is_asked).unwrap_or_else(PoisonError::into_inner);
        }
        *is_asked = false;
        !self.ends.load(Ordering::Relaxed)
    }

    fn ask(&self) {
        *self.is_asked.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.asked.notify_all();
    }
}

impl Completions {
    fn start_waiting(&self) {
        let Some(waiter) = self.waiter.clone() else { return };
        let (core, queue) = (Arc::clone(&self.core), self.queue);
        let thread = std::thread::spawn(move || {
            while waiter.await_question() {
                let is_there =
                    || core.nic.wait_until(Deadline::after(WAIT), |nic| nic.has_completion(queue).then_some(()));
                while let Err(ViError::Timeout) = is_there() {
                    if waiter.ends.load(Ordering::Relaxed) {
                        return;
                    }
                }
                waiter.bell.ring();
            }
        });
        *self.thread.lock().unwrap_or_else(PoisonError::into_inner) = Some(thread);
    }

    fn end_waiting(&self) {
        if let Some(waiter) = &self.waiter {
            waiter.ends.store(true, Ordering::Relaxed);
            waiter.ask();
        }
        if let Some(thread) = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take() {
            // What it panicked of has been said.
            let _ = thread.join();
        }
    }

    /// Whether a program may wait on the descriptor now, which is written from then on if there is something.
    pub(crate) fn may_wait(&self) -> bool {
        let Some(waiter) = &self.waiter else { return false };
        let has_left = !self.left.lock().unwrap_or_else(PoisonError::into_inner).is_empty();
        let has_failed = self.has_failed();
        // A look takes in what has come, too.
        let is_there = self.core.nic.wait_until(Deadline::Poll, |nic| nic.has_completion(self.queue).then_some(()));
        if has_left || has_failed || is_there.is_ok() {
            return false;
        }
        waiter.bell.quiet();
        waiter.ask();
        true
    }

    fn has_failed(&self) -> bool {
        !self.failed.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    /// Takes what a closed endpoint had.
    pub(crate) fn leave(&self, queue: Queue, ended: Ended) {
        if is_told(&ended) {
            self.left.lock().unwrap_or_else(PoisonError::into_inner).push_back((queue, ended));
            self.waiter.iter().for_each(|waiter| waiter.bell.ring());
        }
    }

    /// The next completion that the program is to hear of.
    fn next(&self, deadline: Deadline) -> Result<(Queue, Ended), i32> {
        if let Some(left) = self.left.lock().unwrap_or_else(PoisonError::into_inner).pop_front() {
            return Ok(left);
        }
        loop {
            let (vi, queue) = match self.core.nic.wait_completion(self.queue, deadline) {
                Err(ViError::Timeout) => return Err(EAGAIN),
                other => other.map_err(code)?,
            };
            let Some(side) = self.core.side(vi) else { continue };
            let Ok(Dequeue::Complete { address, .. }) = self.core.nic.dequeue(vi, queue) else { continue };
            let Some(ended) = side.ended(queue, address) else { continue };
            if is_told(&ended) {
                return Ok((queue, ended));
            }
        }
    }

    /// Reads up to so many entries.
    ///
    /// # Safety
    /// There is room for them.
    unsafe fn read(&self, to: *mut c_void, count: usize, mut deadline: Deadline) -> Result<usize, i32> {
        if self.has_failed() {
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
                self.failed.lock().unwrap_or_else(PoisonError::into_inner).push_back((queue, ended));
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

/// Whether a program hears of it: of what it injected, or did not ask for, only if it failed.
fn is_told(ended: &Ended) -> bool {
    !ended.posted.is_silent || ended.status & Status::ERRORS.0 != 0
}

fn flags(queue: Queue, ended: &Ended) -> u64 {
    let has_data = queue == Queue::Receive && ended.status & Status::IMMEDIATE.0 != 0;
    ended.posted.flags | if has_data { abi::REMOTE_CQ_DATA } else { 0 }
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
        let failed = own.failed.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
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

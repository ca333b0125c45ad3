//! Active endpoints: a VI with its two queues of descriptors.
//!
//! What you may rely on: receives may be posted once it is enabled, before it is connected. A message that finds no receive
//! posted ends the connection (`FI_RM_DISABLED`), as the VI Architecture says.
//!
//! How it works: connecting and accepting wait in a thread of their own and end in an event.
//!
//! What it does not do: remote memory access, tagged messages, data of connections, cancelling.

use core::ffi::c_void;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use musubi_transport::Priority;
use musubi_transport::runtime::{Deadline, DeadlineExt};
use musubi_vipl::ViError;
use musubi_vipl::engine::{Dequeue, Queue, Reliability, ViAttributes};
use musubi_vipl::nic::{CallerNumber, QueueNumber, ViNumber};

use crate::abi::{self, EINVAL, ENOMEM, ENOSYS, EOPBADSTATE, FiMessage, Info, Iovec};
use crate::codes::code;
use crate::domain::{Core, Domain, ViSide};
use crate::events::{Events, QueuedEvent};
use crate::info::{MESSAGE_BYTES_MAX, PIECES_MAX, port_of};
use crate::object::{self, ABSENT, CallTable, answer, answer_int, give, make, take};
use crate::work::{Ended, Piece, Posted, Work, WorkContent, exposed};

/// How long a connection may take to be made.
const CONNECT_TIME: Duration = Duration::from_secs(10);

/// What an enabled endpoint has.
pub(crate) struct Side {
    core: Arc<Core>,
    vi: ViNumber,
    sends: Mutex<Work>,
    receives: Mutex<Work>,
    events: Option<Arc<Events>>,
    fid: usize,
    context: usize,
}

#[derive(Default)]
struct Bound {
    events: Option<Arc<Events>>,
    sends: Option<QueueNumber>,
    receives: Option<QueueNumber>,
}

struct Endpoint {
    domain: Domain,
    bound: Mutex<Bound>,
    caller: Mutex<Option<CallerNumber>>,
    side: OnceLock<Arc<Side>>,
}

static FID: CallTable<6> =
    CallTable::new([close as *const (), bind as *const (), control as *const (), ABSENT, ABSENT, ABSENT]);
static OPTIONS: CallTable<7> = CallTable::new([ABSENT; 7]);
static CONNECTIONS: CallTable<9> = CallTable::new([
    ABSENT,
    ABSENT,
    ABSENT,
    connect as *const (),
    ABSENT,
    accept as *const (),
    ABSENT,
    shutdown as *const (),
    ABSENT,
]);
static MESSAGES: CallTable<9> = CallTable::new([
    recv as *const (),
    recvv as *const (),
    recvmsg as *const (),
    send as *const (),
    sendv as *const (),
    sendmsg as *const (),
    inject as *const (),
    senddata as *const (),
    injectdata as *const (),
]);
/// Of remote memory, tagged messages, atomics, collectives.
static NONE: CallTable<16> = CallTable::new([ABSENT; 16]);

/// # Safety
/// It is an endpoint.
unsafe fn of<'o>(fid: *mut c_void) -> &'o Endpoint {
    // SAFETY: the caller's promise.
    &unsafe { object::of::<Endpoint, 7>(fid) }.own
}

pub(crate) unsafe extern "C" fn open(
    domain: *mut c_void,
    info: *const Info,
    out: *mut *mut c_void,
    context: *mut c_void,
) -> i32 {
    answer_int(|| {
        // SAFETY: libfabric's promise: a domain.
        let domain = unsafe { object::of::<Domain, 2>(domain) }.own.clone();
        // SAFETY: libfabric's promise.
        let info = unsafe { info.as_ref() }.ok_or(EINVAL)?;
        // SAFETY: only requests of callers stand there.
        let caller = (!info.handle.is_null()).then(|| unsafe { crate::passive::take_caller(info.handle) });
        let own = Endpoint { domain, bound: Mutex::default(), caller: Mutex::new(caller), side: OnceLock::new() };
        let none = NONE.word();
        let words = [OPTIONS.word(), CONNECTIONS.word(), MESSAGES.word(), none, none, none, none];
        // SAFETY: libfabric's promise.
        unsafe { give(out, make(abi::CLASS_EP, context, &FID, words, own)) }
    })
}

unsafe extern "C" fn bind(fid: *mut c_void, other: *mut c_void, flags: u64) -> i32 {
    answer_int(|| {
        // SAFETY: libfabric's promise: an object of this table.
        let mut bound = unsafe { of(fid) }.bound.lock().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: every object begins with its class.
        match unsafe { take(other.cast::<usize>())? } {
            // SAFETY: the class says so.
            abi::CLASS_EQ => bound.events = Some(unsafe { crate::events::of(other) }),
            abi::CLASS_CQ if flags & abi::SELECTIVE_COMPLETION == 0 => {
                // SAFETY: the class says so.
                let queue = unsafe { crate::completions::of(other) }.queue;
                if flags & abi::SEND != 0 {
                    bound.sends = Some(queue);
                }
                if flags & abi::RECV != 0 {
                    bound.receives = Some(queue);
                }
            }
            _ => return Err(ENOSYS),
        }
        Ok(())
    })
}

unsafe extern "C" fn control(fid: *mut c_void, command: i32, _argument: *mut c_void) -> i32 {
    answer_int(|| {
        if command != abi::ENABLE {
            return Err(ENOSYS);
        }
        // SAFETY: libfabric's promise: an object of this table.
        let object = unsafe { object::of::<Endpoint, 7>(fid) };
        object.own.enable(fid.expose_provenance(), object.context.expose_provenance())
    })
}

impl Endpoint {
    fn enable(&self, fid: usize, context: usize) -> Result<(), i32> {
        let bound = self.bound.lock().unwrap_or_else(PoisonError::into_inner);
        if self.side.get().is_some() {
            return Err(EOPBADSTATE);
        }
        let Domain { core, tag } = self.domain.clone();
        let attributes = ViAttributes {
            reliability: Reliability::Delivery,
            transfer_bytes_max: MESSAGE_BYTES_MAX,
            class: Priority::LEAST_URGENT.class(),
            tag,
            remote_write: false,
            remote_read: false,
            credit: false,
        };
        let vi = core.nic.with(|nic| nic.create_vi(attributes, bound.sends, bound.receives)).map_err(code)?;
        let (sends, receives) = match (Work::new(&core.nic, tag), Work::new(&core.nic, tag)) {
            (Ok(sends), Ok(receives)) => (Mutex::new(sends), Mutex::new(receives)),
            (one, other) => {
                // Nothing is left behind; whatever fails here, the NIC is closed and has nothing of it.
                for work in [&one, &other].into_iter().flatten() {
                    let _ = core.nic.with(|nic| nic.deregister(work.address, work.handle));
                }
                let _ = core.nic.with(|nic| nic.destroy_vi(vi));
                return Err(one.err().or(other.err()).unwrap_or(ENOMEM));
            }
        };
        let side =
            Arc::new(Side { core: Arc::clone(&core), vi, sends, receives, events: bound.events.clone(), fid, context });
        let told: Arc<dyn ViSide> = side.clone();
        core.sides.lock().unwrap_or_else(PoisonError::into_inner).insert(vi, told);
        self.side.set(side).map_err(|_| EOPBADSTATE)
    }

    fn side(&self) -> Result<&Arc<Side>, i32> {
        self.side.get().ok_or(EOPBADSTATE)
    }
}

impl Side {
    fn work(&self, queue: Queue) -> std::sync::MutexGuard<'_, Work> {
        let work = if queue == Queue::Send { &self.sends } else { &self.receives };
        work.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, kind: u32, error: i32) {
        if let Some(events) = &self.events {
            events.push(QueuedEvent { kind, fid: self.fid, context: self.context, info: 0, error });
        }
    }

    fn connected(&self, result: Result<(), ViError>) {
        self.push(abi::CONNECTED, result.map_or_else(code, |()| 0));
    }

    fn post(&self, queue: Queue, what: &WorkContent<'_>, immediate: Option<u32>, posted: Posted) -> Result<usize, i32> {
        let mut work = self.work(queue);
        let address = work.write(what, immediate, posted)?;
        if let Err(error) = self.core.nic.post(self.vi, queue, (address, work.handle)) {
            work.take(address);
            return Err(code(error));
        }
        Ok(0)
    }

    /// Ends the VI: what is posted is flushed, and nobody hears of it any more.
    fn end(&self) {
        self.core.sides.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.vi);
        // Whatever fails here, the NIC is closed and has nothing of it.
        let _ = self.core.nic.disconnect(self.vi);
        for queue in [Queue::Send, Queue::Receive] {
            while let Ok(Dequeue::Complete { .. }) = self.core.nic.dequeue(self.vi, queue) {}
            let work = self.work(queue);
            let (address, handle) = (work.address, work.handle);
            drop(work);
            let _ = self.core.nic.with(|nic| nic.deregister(address, handle));
        }
        let _ = self.core.nic.with(|nic| nic.destroy_vi(self.vi));
    }
}

impl ViSide for Side {
    fn ended(&self, queue: Queue, address: u64) -> Option<Ended> {
        self.work(queue).take(address)
    }

    fn tell(&self, kind: u32) {
        self.push(kind, 0);
    }
}

unsafe extern "C" fn close(fid: *mut c_void) -> i32 {
    answer_int(|| {
        // SAFETY: libfabric's promise: an object of this table.
        if let Some(side) = unsafe { of(fid) }.side.get() {
            side.end();
        }
        // SAFETY: likewise; the program ends it.
        unsafe { object::end::<Endpoint, 7>(fid) };
        Ok(())
    })
}

// ---- connections ----

unsafe extern "C" fn connect(fid: *mut c_void, to: *const c_void, _data: *const c_void, data_bytes: usize) -> i32 {
    answer_int(|| {
        if data_bytes > 0 {
            return Err(EINVAL);
        }
        // SAFETY: libfabric's promise: an object of this table.
        let side = Arc::clone(unsafe { of(fid) }.side()?);
        // SAFETY: libfabric's promise: an address of the format that was answered.
        let port = unsafe { port_of(to, crate::info::ADDRESS_BYTES)? };
        let (local, remote) = (crate::passive::address(0)?, crate::passive::address(port)?);
        std::thread::spawn(move || {
            let made = side.core.nic.request(side.vi, local, remote, Deadline::after(CONNECT_TIME));
            side.connected(made.map(|_| ()));
        });
        Ok(())
    })
}

unsafe extern "C" fn accept(fid: *mut c_void, _data: *const c_void, data_bytes: usize) -> i32 {
    answer_int(|| {
        if data_bytes > 0 {
            return Err(EINVAL);
        }
        // SAFETY: libfabric's promise: an object of this table.
        let endpoint = unsafe { of(fid) };
        let side = Arc::clone(endpoint.side()?);
        let caller = endpoint.caller.lock().unwrap_or_else(PoisonError::into_inner).take().ok_or(EOPBADSTATE)?;
        std::thread::spawn(move || {
            side.connected(side.core.nic.accept(caller, side.vi, Deadline::after(CONNECT_TIME)));
        });
        Ok(())
    })
}

unsafe extern "C" fn shutdown(fid: *mut c_void, _flags: u64) -> i32 {
    answer_int(|| {
        // SAFETY: libfabric's promise: an object of this table.
        let side = unsafe { of(fid) }.side()?;
        side.core.nic.disconnect(side.vi).map_err(code)
    })
}

// ---- messages ----

/// Posts a message in pieces.
///
/// # Safety
/// The endpoint is one, and the message describes memory of the program's that stays until it is complete.
unsafe fn post(fid: *mut c_void, queue: Queue, message: &FiMessage, data: Option<u64>) -> isize {
    answer(|| {
        if message.iov_count > PIECES_MAX {
            return Err(EINVAL);
        }
        let mut pieces = [Piece::default(); PIECES_MAX];
        let (mut buffer, mut count) = (0, 0);
        for at in 0..message.iov_count {
            // SAFETY: the caller's promise: so many pieces.
            let piece = unsafe { take(message.iov.wrapping_add(at))? };
            if piece.bytes == 0 {
                continue;
            }
            // SAFETY: likewise: as many descriptors of memory, or none.
            let handle = unsafe { take(message.desc.wrapping_add(at))? };
            let bytes = u32::try_from(piece.bytes).map_err(|_| EINVAL)?;
            pieces[count] = Piece { address: exposed(piece.base), handle: handle.addr() as u32, bytes };
            buffer = if count == 0 { piece.base.expose_provenance() } else { buffer };
            count += 1;
        }
        let immediate = data.map(u32::try_from).transpose().map_err(|_| EINVAL)?;
        let posted = Posted { context: message.context.expose_provenance(), buffer, is_silent: false };
        // SAFETY: the caller's promise.
        unsafe { of(fid) }.side()?.post(queue, &WorkContent::Pieces(&pieces[..count]), immediate, posted)
    })
}

/// Posts a message of one piece.
///
/// # Safety
/// As [`post`].
unsafe fn post_one(
    fid: *mut c_void,
    queue: Queue,
    (buffer, bytes): (*const c_void, usize),
    desc: *mut c_void,
    context: *mut c_void,
    data: Option<u64>,
) -> isize {
    let piece = Iovec { base: buffer.cast_mut(), bytes };
    let message = FiMessage { iov: &raw const piece, desc: &raw const desc, iov_count: 1, addr: 0, context, data: 0 };
    // SAFETY: the caller's promise; piece and descriptor live during the call.
    unsafe { post(fid, queue, &message, data) }
}

type Pointer = *mut c_void;

unsafe extern "C" fn recv(
    fid: Pointer,
    to: *const c_void,
    bytes: usize,
    desc: Pointer,
    _from: u64,
    context: Pointer,
) -> isize {
    // SAFETY: libfabric's promises, handed on.
    unsafe { post_one(fid, Queue::Receive, (to, bytes), desc, context, None) }
}

unsafe extern "C" fn recvv(
    fid: Pointer,
    iov: *const Iovec,
    desc: *const Pointer,
    iov_count: usize,
    _from: u64,
    context: Pointer,
) -> isize {
    let message = FiMessage { iov, desc, iov_count, addr: 0, context, data: 0 };
    // SAFETY: libfabric's promises, handed on.
    unsafe { post(fid, Queue::Receive, &message, None) }
}

unsafe extern "C" fn recvmsg(fid: Pointer, message: *const FiMessage, _flags: u64) -> isize {
    // SAFETY: libfabric's promise.
    match unsafe { take(message) } {
        // SAFETY: likewise, handed on.
        Ok(message) => unsafe { post(fid, Queue::Receive, &message, None) },
        Err(error) => -(error as isize),
    }
}

unsafe extern "C" fn send(
    fid: Pointer,
    from: *const c_void,
    bytes: usize,
    desc: Pointer,
    _to: u64,
    context: Pointer,
) -> isize {
    // SAFETY: libfabric's promises, handed on.
    unsafe { post_one(fid, Queue::Send, (from, bytes), desc, context, None) }
}

unsafe extern "C" fn sendv(
    fid: Pointer,
    iov: *const Iovec,
    desc: *const Pointer,
    iov_count: usize,
    _to: u64,
    context: Pointer,
) -> isize {
    let message = FiMessage { iov, desc, iov_count, addr: 0, context, data: 0 };
    // SAFETY: libfabric's promises, handed on.
    unsafe { post(fid, Queue::Send, &message, None) }
}

unsafe extern "C" fn sendmsg(fid: Pointer, message: *const FiMessage, flags: u64) -> isize {
    // SAFETY: libfabric's promise.
    match unsafe { take(message) } {
        Ok(message) => {
            let data = (flags & abi::REMOTE_CQ_DATA != 0).then_some(message.data);
            // SAFETY: likewise, handed on.
            unsafe { post(fid, Queue::Send, &message, data) }
        }
        Err(error) => -(error as isize),
    }
}

unsafe extern "C" fn senddata(
    fid: Pointer,
    from: *const c_void,
    bytes: usize,
    desc: Pointer,
    data: u64,
    _to: u64,
    context: Pointer,
) -> isize {
    // SAFETY: libfabric's promises, handed on.
    unsafe { post_one(fid, Queue::Send, (from, bytes), desc, context, Some(data)) }
}

unsafe extern "C" fn inject(fid: Pointer, from: *const c_void, bytes: usize, _to: u64) -> isize {
    // SAFETY: libfabric's promises, handed on.
    unsafe { post_copy(fid, from, bytes, None) }
}

unsafe extern "C" fn injectdata(fid: Pointer, from: *const c_void, bytes: usize, data: u64, _to: u64) -> isize {
    // SAFETY: libfabric's promises, handed on.
    unsafe { post_copy(fid, from, bytes, Some(data)) }
}

/// Posts a copy of a message.
///
/// # Safety
/// The endpoint is one, and there are so many bytes.
unsafe fn post_copy(fid: *mut c_void, from: *const c_void, bytes: usize, data: Option<u64>) -> isize {
    answer(|| {
        if from.is_null() || bytes > crate::info::INJECT_BYTES {
            return Err(EINVAL);
        }
        // SAFETY: the caller's promise.
        let bytes = unsafe { core::slice::from_raw_parts(from.cast::<u8>(), bytes) };
        let immediate = data.map(u32::try_from).transpose().map_err(|_| EINVAL)?;
        let posted = Posted { context: 0, buffer: 0, is_silent: true };
        // SAFETY: likewise.
        unsafe { of(fid) }.side()?.post(Queue::Send, &WorkContent::Injected(bytes), immediate, posted)
    })
}

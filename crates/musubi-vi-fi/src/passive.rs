//! Passive endpoints: a port of this machine, and who asks there.
//!
//! What you may rely on: a port belongs to one endpoint of the machine, as for a socket, since one is kept open for it.
//!
//! How it works: a discriminator names the port; a thread waits for callers and turns each into an event.
//!
//! A request's bytes stand behind the discriminator of who asks.

use core::ffi::c_void;
use std::net::{Ipv4Addr, TcpListener};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use musubi_vipl::address::Address;
use musubi_vipl::nic::{Awaited, CallerNumber};

use crate::abi::{self, EADDRINUSE, EINVAL, EOPBADSTATE, Info};
use crate::addresses::{address, copied, data_of, give_address};
use crate::domain::Core;
use crate::events::{Events, QueuedEvent};
use crate::info::{describe, port_of};
use crate::object::{self, ABSENT, CallTable, answer_int, give, make};

use crate::waiting::watching::await_that;

struct Passive {
    core: Arc<Core>,
    socket: TcpListener,
    port: u16,
    events: Mutex<Option<Arc<Events>>>,
    ends: Arc<AtomicBool>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

static FID: CallTable<6> = CallTable::new([close as *const (), bind as *const (), ABSENT, ABSENT, ABSENT, ABSENT]);
static REQUEST_FID: CallTable<6> = CallTable::new([ABSENT; 6]);
static CALLS: CallTable<9> = CallTable::new([
    ABSENT,
    name as *const (),
    ABSENT,
    ABSENT,
    listen as *const (),
    ABSENT,
    reject as *const (),
    ABSENT,
    ABSENT,
]);

pub(crate) unsafe extern "C" fn open(
    fabric: *mut c_void,
    info: *const Info,
    out: *mut *mut c_void,
    context: *mut c_void,
) -> i32 {
    answer_int(|| {
        // SAFETY: libfabric's promise: a fabric.
        let core = Arc::clone(&unsafe { object::of::<Arc<Core>, 2>(fabric) }.own);
        // SAFETY: libfabric's promise.
        let info = unsafe { info.as_ref() }.ok_or(EINVAL)?;
        // SAFETY: as many bytes as it says.
        let port = unsafe { port_of(info.src_addr, info.src_addrlen) }.unwrap_or(0);
        let socket = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).map_err(|_| EADDRINUSE)?;
        let port = socket.local_addr().map_err(|_| EADDRINUSE)?.port();
        let passive =
            Passive { core, socket, port, events: Mutex::default(), ends: Arc::default(), thread: Mutex::default() };
        let words = [crate::options::OPTIONS.word(), CALLS.word()];
        // SAFETY: libfabric's promise.
        unsafe { give(out, make(abi::CLASS_PEP, context, &FID, words, passive)) }
    })
}

unsafe extern "C" fn bind(fid: *mut c_void, events: *mut c_void, _flags: u64) -> i32 {
    // SAFETY: libfabric's promise: an object of this table.
    let passive = &unsafe { object::of::<Passive, 2>(fid) }.own;
    // SAFETY: likewise: an event queue.
    *passive.events.lock().unwrap_or_else(PoisonError::into_inner) = Some(unsafe { crate::events::of(events) });
    0
}

unsafe extern "C" fn name(fid: *mut c_void, to: *mut c_void, bytes: *mut usize) -> i32 {
    answer_int(|| {
        // SAFETY: libfabric's promise: an object of this table.
        let passive = &unsafe { object::of::<Passive, 2>(fid) }.own;
        // SAFETY: likewise.
        unsafe { give_address(passive.port, to, bytes) }
    })
}

unsafe extern "C" fn listen(fid: *mut c_void) -> i32 {
    answer_int(|| {
        // SAFETY: libfabric's promise: an object of this table.
        let passive = &unsafe { object::of::<Passive, 2>(fid) }.own;
        let events = passive.events.lock().unwrap_or_else(PoisonError::into_inner).clone().ok_or(EOPBADSTATE)?;
        let (core, ends, port) = (Arc::clone(&passive.core), Arc::clone(&passive.ends), passive.port);
        let (local, fid) = (address(port)?, fid.expose_provenance());
        let listener = core.nic.with(|nic| nic.listen(&local)).map_err(crate::codes::code)?;
        let thread = std::thread::spawn(move || {
            let is_wanted = || !ends.load(Ordering::Relaxed);
            while await_that(&core.nic, Awaited::Caller(listener), is_wanted) {
                while let Ok(Some((caller, from, _))) = core.nic.node().with_aside(|nic, _| nic.next_caller(listener)) {
                    ask(&events, fid, (caller, &from), port);
                }
            }
            // The NIC may be closed.
            let _ = core.nic.node().with_aside(|nic, links| nic.end_listening(links.now_ns(), listener));
        });
        *passive.thread.lock().unwrap_or_else(PoisonError::into_inner) = Some(thread);
        Ok(())
    })
}

/// Tells the program of a caller.
fn ask(events: &Events, fid: usize, (caller, from): (CallerNumber, &Address), port: u16) {
    let request = make(abi::CLASS_CONNREQ, core::ptr::null_mut(), &REQUEST_FID, [], caller);
    // Without memory the caller waits until it gives up.
    let Ok(info) = describe(Some(port), Some(0), abi::API_VERSION) else { return };
    // SAFETY: it has just been made.
    let described = unsafe { &mut *info };
    described.handle = request;
    let info = info.expose_provenance();
    let data = data_of(from);
    events.push(QueuedEvent { kind: abi::CONNREQ, fid, context: 0, info, error: 0, data });
}

/// Who asked, taken out of its object.
///
/// # Safety
/// `handle` is that of an `info` of a connection request, not yet taken.
pub(crate) unsafe fn take_caller(handle: *mut c_void) -> CallerNumber {
    // SAFETY: the caller's promise.
    let caller = unsafe { object::of::<CallerNumber, 0>(handle) }.own;
    // SAFETY: likewise; nobody uses it again.
    unsafe { object::end::<CallerNumber, 0>(handle) };
    caller
}

unsafe extern "C" fn reject(fid: *mut c_void, handle: *mut c_void, data: *const c_void, data_bytes: usize) -> i32 {
    answer_int(|| {
        // SAFETY: libfabric's promise: as many bytes.
        let data = unsafe { copied(data, data_bytes)? };
        // SAFETY: libfabric's promise: an object of this table.
        let passive = &unsafe { object::of::<Passive, 2>(fid) }.own;
        // SAFETY: likewise: of a request.
        let caller = unsafe { take_caller(handle) };
        passive.core.nic.reject_with(caller, &data).map_err(crate::codes::code)
    })
}

unsafe extern "C" fn close(fid: *mut c_void) -> i32 {
    answer_int(|| {
        // SAFETY: libfabric's promise: an object of this table.
        let passive = &unsafe { object::of::<Passive, 2>(fid) }.own;
        passive.ends.store(true, Ordering::Relaxed);
        if let Some(thread) = passive.thread.lock().unwrap_or_else(PoisonError::into_inner).take() {
            // What it panicked of has been said.
            let _ = thread.join();
        }
        let _ = &passive.socket;
        // SAFETY: likewise; the program ends it.
        unsafe { object::end::<Passive, 2>(fid) };
        Ok(())
    })
}

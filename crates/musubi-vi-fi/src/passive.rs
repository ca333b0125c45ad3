//! Passive endpoints: a port of this machine, and who asks there.
//!
//! What you may rely on: a port belongs to one endpoint of the machine, as for a socket, since one is kept open for it.
//!
//! How it works: a discriminator names the port; a thread waits for callers and turns each into an event.
//!
//! What it does not do: carry data with a request.

use core::ffi::c_void;
use std::net::{Ipv4Addr, TcpListener};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use musubi_transport::runtime::{Deadline, DeadlineExt};
use musubi_vipl::ViError;
use musubi_vipl::address::{Address, NicNumber};
use musubi_vipl::nic::CallerNumber;

use crate::abi::{self, EADDRINUSE, EINVAL, EOPBADSTATE, ETOOSMALL, Info};
use crate::domain::Core;
use crate::events::{Events, QueuedEvent};
use crate::info::{ADDRESS_BYTES, describe, port_of, sockaddr};
use crate::object::{self, ABSENT, CallTable, answer_int, give, make, take};

/// How long one wait for callers is; the NIC listens on between two.
const WAIT: Duration = Duration::from_millis(100);

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
static OPTIONS: CallTable<7> = CallTable::new([ABSENT; 7]);
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

/// Where a port is found on the NIC.
pub(crate) fn address(port: u16) -> Result<Address, i32> {
    let [high, low] = port.to_be_bytes();
    Address::new(NicNumber(0), &[b'f', b'i', high, low]).ok_or(EINVAL)
}

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
        let words = [OPTIONS.word(), CALLS.word()];
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
        let room = unsafe { take(bytes)? };
        // SAFETY: likewise.
        unsafe { give(bytes, ADDRESS_BYTES)? };
        if room < ADDRESS_BYTES {
            return Err(ETOOSMALL);
        }
        // SAFETY: likewise; there is room for it.
        unsafe { give(to.cast(), sockaddr(passive.port)) }
    })
}

unsafe extern "C" fn listen(fid: *mut c_void) -> i32 {
    answer_int(|| {
        // SAFETY: libfabric's promise: an object of this table.
        let passive = &unsafe { object::of::<Passive, 2>(fid) }.own;
        let events = passive.events.lock().unwrap_or_else(PoisonError::into_inner).clone().ok_or(EOPBADSTATE)?;
        let (core, ends, port) = (Arc::clone(&passive.core), Arc::clone(&passive.ends), passive.port);
        let (local, fid) = (address(port)?, fid.expose_provenance());
        let thread = std::thread::spawn(move || {
            while !ends.load(Ordering::Relaxed) {
                match core.nic.wait_caller(&local, Deadline::after(WAIT)) {
                    Ok((caller, ..)) => ask(&events, fid, caller, port),
                    Err(ViError::Timeout) => {}
                    Err(_) => return,
                }
            }
        });
        *passive.thread.lock().unwrap_or_else(PoisonError::into_inner) = Some(thread);
        Ok(())
    })
}

/// Tells the program of a caller.
fn ask(events: &Events, fid: usize, caller: CallerNumber, port: u16) {
    let request = make(abi::CLASS_CONNREQ, core::ptr::null_mut(), &REQUEST_FID, [], caller);
    // Without memory the caller waits until it gives up.
    let Ok(info) = describe(Some(port), None, abi::API_VERSION) else { return };
    // SAFETY: it has just been made.
    let described = unsafe { &mut *info };
    described.handle = request;
    let info = info.expose_provenance();
    events.push(QueuedEvent { kind: abi::CONNREQ, fid, context: 0, info, error: 0 });
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

unsafe extern "C" fn reject(fid: *mut c_void, handle: *mut c_void, _data: *const c_void, data_bytes: usize) -> i32 {
    answer_int(|| {
        if data_bytes > 0 {
            return Err(EINVAL);
        }
        // SAFETY: libfabric's promise: an object of this table.
        let passive = &unsafe { object::of::<Passive, 2>(fid) }.own;
        // SAFETY: likewise: of a request.
        let caller = unsafe { take_caller(handle) };
        passive.core.nic.reject(caller).map_err(crate::codes::code)
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

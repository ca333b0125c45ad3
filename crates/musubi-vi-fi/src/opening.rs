//! `fi_endpoint`: an active endpoint with the tables of all its calls.

use core::ffi::c_void;

use crate::abi::{self, EINVAL, Info};
use crate::connections::{accept, connect, name, shutdown};
use crate::domain::Domain;
use crate::endpoint::{Endpoint, bind, close, control};
use crate::object::{self, ABSENT, CallTable, answer_int, give, make};
use crate::options::OPTIONS;
use crate::transfers::{MESSAGES, REMOTE};

static FID: CallTable<6> =
    CallTable::new([close as *const (), bind as *const (), control as *const (), ABSENT, ABSENT, ABSENT]);
static CONNECTIONS: CallTable<9> = CallTable::new([
    ABSENT,
    name as *const (),
    ABSENT,
    connect as *const (),
    ABSENT,
    accept as *const (),
    ABSENT,
    shutdown as *const (),
    ABSENT,
]);
/// Of tagged messages, atomics, collectives.
static NONE: CallTable<16> = CallTable::new([ABSENT; 16]);

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
        let none = NONE.word();
        let words = [OPTIONS.word(), CONNECTIONS.word(), MESSAGES.word(), REMOTE.word(), none, none, none];
        // SAFETY: libfabric's promise.
        unsafe { give(out, make(abi::CLASS_EP, context, &FID, words, Endpoint::new(domain, caller))) }
    })
}

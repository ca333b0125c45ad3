//! Fabrics and domains: an opened NIC, and a protection tag of it.
//!
//! What you may rely on: the NIC is closed when its fabric is.

use core::ffi::c_void;
use std::sync::{Arc, Mutex};

use musubi_transport::runtime::Options;
use musubi_vipl::address::NicNumber;
use musubi_vipl::process::{Nic, NicSystem};

use crate::abi;
use crate::codes::code;
use crate::domain::{Core, Domain};
use crate::object::{self, ABSENT, CallTable, answer_int, give, make};

static FABRIC_FID: CallTable<6> = CallTable::new([close_fabric as *const (), ABSENT, ABSENT, ABSENT, ABSENT, ABSENT]);
static FABRIC: CallTable<6> = CallTable::new([
    domain as *const (),
    crate::passive::open as *const (),
    crate::events::open as *const (),
    ABSENT,
    try_wait as *const (),
    ABSENT,
]);
static DOMAIN_FID: CallTable<6> = CallTable::new([close_domain as *const (), ABSENT, ABSENT, ABSENT, ABSENT, ABSENT]);
static DOMAIN: CallTable<12> = CallTable::new([
    ABSENT,
    crate::completions::open as *const (),
    crate::opening::open as *const (),
    ABSENT,
    ABSENT,
    ABSENT,
    ABSENT,
    ABSENT,
    ABSENT,
    ABSENT,
    ABSENT,
    ABSENT,
]);

pub(crate) unsafe extern "C" fn fabric(_attr: *mut c_void, out: *mut *mut c_void, context: *mut c_void) -> i32 {
    answer_int(|| {
        let mut options = Options::default();
        options.is_one_of_several = true;
        let nic = Nic::open(&NicSystem::single_machine().trusting(|_| true), NicNumber(0), options).map_err(code)?;
        let core = Arc::new(Core { nic, sides: Mutex::default() });
        let words = [FABRIC.word(), abi::API_VERSION as usize];
        // SAFETY: libfabric's promise.
        unsafe { give(out, make(abi::CLASS_FABRIC, context, &FABRIC_FID, words, core)) }
    })
}

unsafe extern "C" fn close_fabric(fid: *mut c_void) -> i32 {
    answer_int(|| {
        // SAFETY: libfabric's promise: an object of this table.
        let core = &unsafe { object::of::<Arc<Core>, 2>(fid) }.own;
        // It may be closed by a fork's end.
        let _ = core.nic.close();
        // SAFETY: likewise; the program ends it.
        unsafe { object::end::<Arc<Core>, 2>(fid) };
        Ok(())
    })
}

/// `fi_trywait`: whether a program that waits on the descriptors of these would miss nothing.
unsafe extern "C" fn try_wait(_fabric: *mut c_void, fids: *const *mut c_void, count: i32) -> i32 {
    answer_int(|| {
        for at in 0..usize::try_from(count).map_err(|_| abi::EINVAL)? {
            // SAFETY: libfabric's promise: so many objects.
            let fid = unsafe { object::take(fids.wrapping_add(at))? };
            // SAFETY: every object begins with its class.
            let may_wait = match unsafe { object::take(fid.cast::<usize>())? } {
                // SAFETY: the class says so.
                abi::CLASS_EQ => unsafe { crate::events::of(fid) }.may_wait(),
                // SAFETY: likewise.
                abi::CLASS_CQ => unsafe { crate::completions::of(fid) }.may_wait(),
                _ => return Err(abi::ENOSYS),
            };
            if !may_wait {
                return Err(abi::EAGAIN);
            }
        }
        Ok(())
    })
}

unsafe extern "C" fn domain(
    fabric: *mut c_void,
    _info: *mut abi::Info,
    out: *mut *mut c_void,
    context: *mut c_void,
) -> i32 {
    answer_int(|| {
        // SAFETY: libfabric's promise: an object of this table.
        let core = Arc::clone(&unsafe { object::of::<Arc<Core>, 2>(fabric) }.own);
        let tag = core.nic.with(|nic| nic.create_tag()).map_err(code)?;
        let words = [DOMAIN.word(), crate::memory::CALLS.word()];
        // SAFETY: libfabric's promise.
        unsafe { give(out, make(abi::CLASS_DOMAIN, context, &DOMAIN_FID, words, Domain { core, tag })) }
    })
}

unsafe extern "C" fn close_domain(fid: *mut c_void) -> i32 {
    answer_int(|| {
        // SAFETY: libfabric's promise: an object of this table.
        let domain = &unsafe { object::of::<Domain, 2>(fid) }.own;
        domain.core.nic.with(|nic| nic.destroy_tag(domain.tag)).map_err(|_| abi::EBUSY)?;
        // SAFETY: likewise; the program ends it.
        unsafe { object::end::<Domain, 2>(fid) };
        Ok(())
    })
}

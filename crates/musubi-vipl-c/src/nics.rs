//! The opened NICs of this process, and `VipOpenNic`, `VipCloseNic`, `VipQueryNic`.
//!
//! What you may rely on: a handle of a NIC that was closed finds nothing, whatever other threads do with it; who waits there
//! comes back. A child made by `fork` has none of its parent's NICs.
//!
//! How it works: a table under a lock that readers share, and what each thread found last, which costs a look at one
//! counter as long as no NIC was opened or closed.

use core::ffi::{CStr, c_char};
use std::cell::RefCell;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use musubi_linux::forks::Run;
use musubi_transport::notices;
use musubi_transport::runtime::Options;
use musubi_vipl::address::{DISCRIMINATOR_BYTES_MAX, NicNumber};
use musubi_vipl::engine::TagHandle;
use musubi_vipl::process::{Nic, NicSystem};

use crate::abi::{Handle, NicAttributes, Ulong};
use crate::handlers::Handlers;
use crate::handles::{self, HandleKind, NicKey};
use crate::qualities::Qualities;
use crate::status::{Status, answer};

/// An opened NIC.
#[derive(Debug)]
pub(crate) struct OpenNic {
    pub(crate) key: NicKey,
    pub(crate) nic: Nic,
    name: String,
    /// `LocalNicAddress` points here.
    address: [u8; NicNumber::BYTES],
    /// The first tag that was made: what a VI without one gets, where [`NULL_TAG_VARIABLE`] says so.
    pub(crate) first_tag: Mutex<Option<TagHandle>>,
    pub(crate) handlers: Handlers,
    pub(crate) qualities: Qualities,
    /// The process that opened it, not its children.
    run: Run,
}

/// The environment variable that lets VIs be created without a tag: ARMCI's do.
pub(crate) const NULL_TAG_VARIABLE: &str = "MUSUBI_VIPL_NULL_PTAG";
/// The environment variable that says which NIC of the description this machine's programs open by other names.
const NIC_VARIABLE: &str = "MUSUBI_NIC";
/// Longest name of a device; `VIP_NIC_ATTRIBUTES` has room for so many.
const NAME_BYTES_MAX: usize = 64;
/// `VIP_NIC_ATTRIBUTES.ProviderVersion`: 1.0.
const PROVIDER_VERSION: Ulong = 0x0001_0000;
/// Bytes that go in one piece.
const NATIVE_MTU: Ulong = 64 * 1024;

static NICS: RwLock<Vec<Arc<OpenNic>>> = RwLock::new(Vec::new());
/// Openings and closings.
static CHANGES: AtomicU64 = AtomicU64::new(1);
/// Keys given.
static OPENED: AtomicU64 = AtomicU64::new(0);

thread_local! {
    /// What this thread found last, and after how many changes.
    static LAST: RefCell<Option<(u64, Arc<OpenNic>)>> = const { RefCell::new(None) };
}

/// Calls `by` with the NIC of a key.
#[inline]
pub(crate) fn with<T>(key: NicKey, by: impl FnOnce(&OpenNic) -> Result<T, Status>) -> Result<T, Status> {
    let changes = CHANGES.load(Ordering::Acquire);
    let mut by = Some(by);
    let known = LAST.try_with(|last| {
        let last = last.try_borrow().ok()?;
        let (seen, nic) = last.as_ref()?;
        let is_it = *seen == changes && nic.key == key && nic.run.is_this();
        is_it.then(|| by.take().map(|by| by(nic))).flatten()
    });
    if let Ok(Some(result)) = known {
        return result;
    }
    let nic = find(key)?;
    // A thread that ends has no place to remember it.
    let _ = LAST.try_with(|last| {
        if let Ok(mut last) = last.try_borrow_mut() {
            *last = Some((changes, Arc::clone(&nic)));
        }
    });
    by.take().map_or(Err(Status::ErrorResource), |by| by(&nic))
}

/// The NIC of a key.
#[cold]
pub(crate) fn find(key: NicKey) -> Result<Arc<OpenNic>, Status> {
    let nics = NICS.read().unwrap_or_else(PoisonError::into_inner);
    nics.iter().find(|nic| nic.key == key && nic.run.is_this()).cloned().ok_or(Status::InvalidParameter)
}

/// The NIC of a handle.
#[inline]
pub(crate) fn of<T>(handle: Handle, by: impl FnOnce(&OpenNic) -> Result<T, Status>) -> Result<T, Status> {
    let (key, _) = handles::read(HandleKind::Nic, handle)?;
    with(key, by)
}

/// The NIC of a handle of another kind, with the number that it has there.
#[inline]
pub(crate) fn of_kind<T>(
    kind: HandleKind,
    handle: Handle,
    by: impl FnOnce(&OpenNic, u32) -> Result<T, Status>,
) -> Result<T, Status> {
    let (key, number) = handles::read(kind, handle)?;
    with(key, |nic| by(nic, number))
}

fn open(name: &str) -> Result<Handle, Status> {
    let system = system()?;
    let preferred = std::env::var(NIC_VARIABLE).ok();
    let number = system.choose(name, preferred.as_deref()).ok_or_else(|| {
        notices::say(|| {
            format!("no NIC {name:?}: the description has none of that name, and {NIC_VARIABLE} names none")
        });
        Status::InvalidParameter
    })?;
    let mut options = Options::default();
    options.is_one_of_several = true;
    let nic = Nic::open(&system, number, options).inspect_err(|error| {
        notices::say(|| format!("NIC {name:?} does not open: {error}"));
    })?;
    let key = NicKey(OPENED.fetch_add(1, Ordering::Relaxed) as u32 + 1);
    let open = Arc::new(OpenNic {
        key,
        nic,
        name: name.to_owned(),
        address: number.to_host_address(),
        first_tag: Mutex::new(None),
        handlers: Handlers::default(),
        qualities: Qualities::default(),
        run: Run::this(),
    });
    NICS.write().unwrap_or_else(PoisonError::into_inner).push(open);
    CHANGES.fetch_add(1, Ordering::Release);
    Ok(handles::handle(HandleKind::Nic, key, 0))
}

/// The system that the environment names.
fn system() -> Result<NicSystem, Status> {
    let description = musubi_config::from_env_by(read).map_err(|report| {
        notices::say(|| report.render(false));
        Status::ErrorResource
    })?;
    let Some(description) = description else { return Ok(NicSystem::single_machine()) };
    let nics = description.nics();
    if nics.entries.is_empty() {
        return Ok(NicSystem::on_one_machine(&nics.topology.system));
    }
    let entries = nics.entries.iter().map(|entry| (entry.name.clone(), entry.processes));
    let is_trusted = |name: &str| nics.entries.iter().any(|entry| entry.name == name && entry.is_trusted);
    Ok(NicSystem::new(entries, nics.topology.clone()).trusting(is_trusted))
}

/// Reads a file by calls that no function of a program's own stands in for.
fn read(path: &Path, bytes_max: u64) -> Result<Vec<u8>, String> {
    let bytes = musubi_linux::descriptor::read_file(path, usize::try_from(bytes_max).unwrap_or(usize::MAX));
    bytes.map_err(|error| format!("cannot read: {error}"))
}

fn close(key: NicKey) -> Result<(), Status> {
    let mut nics = NICS.write().unwrap_or_else(PoisonError::into_inner);
    let place = nics.iter().position(|nic| nic.key == key && nic.run.is_this()).ok_or(Status::InvalidParameter)?;
    let open = nics.swap_remove(place);
    CHANGES.fetch_add(1, Ordering::Release);
    drop(nics);
    // It has just been found open.
    let _ = open.nic.close();
    open.handlers.join();
    Ok(())
}

/// `VipOpenNic`.
///
/// # Safety
/// Pointers are NULL or as include/vipl.h says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn VipOpenNic(device_name: *const c_char, nic_handle: *mut Handle) -> u32 {
    answer(|| {
        if device_name.is_null() || nic_handle.is_null() {
            return Err(Status::InvalidParameter);
        }
        // SAFETY: the caller's promise: a string that lives during the call.
        let name = unsafe { CStr::from_ptr(device_name) };
        let name = name.to_str().map_err(|_| Status::InvalidParameter)?;
        if name.len() >= NAME_BYTES_MAX {
            return Err(Status::InvalidParameter);
        }
        let handle = open(name)?;
        // SAFETY: the caller's promise; it is not NULL.
        unsafe { nic_handle.write(handle) };
        Ok(())
    })
}

/// `VipCloseNic`.
///
/// # Safety
/// Any handle may be given.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn VipCloseNic(nic_handle: Handle) -> u32 {
    answer(|| close(handles::read(HandleKind::Nic, nic_handle)?.0))
}

/// `VipQueryNic`.
///
/// # Safety
/// Pointers are NULL or as include/vipl.h says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn VipQueryNic(nic_handle: Handle, attributes: *mut NicAttributes) -> u32 {
    answer(|| {
        let told = of(nic_handle, |open| open.attributes())?;
        if attributes.is_null() {
            return Err(Status::InvalidParameter);
        }
        // SAFETY: the caller's promise; it is not NULL.
        unsafe { attributes.write(told) };
        Ok(())
    })
}

impl OpenNic {
    fn attributes(&self) -> Result<NicAttributes, Status> {
        let limits = self.nic.with(|nic| Ok(*nic.limits()))?;
        let mut name = [0; NAME_BYTES_MAX];
        for (place, byte) in name.iter_mut().zip(self.name.bytes()) {
            *place = byte as c_char;
        }
        Ok(NicAttributes {
            name,
            hardware_version: 0,
            provider_version: PROVIDER_VERSION,
            nic_address_len: NicNumber::BYTES as u16,
            local_nic_address: self.address.as_ptr(),
            thread_safe: 1,
            max_discriminator_len: DISCRIMINATOR_BYTES_MAX as u16,
            max_register_bytes: limits.registered_bytes as Ulong,
            max_register_regions: Ulong::from(limits.regions),
            max_register_block_bytes: limits.region_bytes as Ulong,
            max_vi: Ulong::from(limits.vis),
            max_descriptors_per_queue: Ulong::from(limits.descriptors),
            max_segments_per_desc: Ulong::from(limits.segments),
            max_cq: Ulong::from(limits.completion_queues),
            max_cq_entries: Ulong::from(limits.completion_entries),
            max_transfer_size: Ulong::from(limits.transfer_bytes),
            native_mtu: NATIVE_MTU,
            max_ptags: Ulong::from(limits.tags),
            reliability_level_support: 0x7,
            rdma_read_support: 0x6,
        })
    }
}

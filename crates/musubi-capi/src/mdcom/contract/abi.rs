//! The structs of include/mdcom.h.
//!
//! What you may rely on: size, offsets and values are those of the header.
//!
//! How it works: a test compiles a C program that prints sizes, offsets and values, and compares them with these.

use core::ffi::{CStr, c_char};
use core::mem::size_of;

use musubi_core::plan::FilterRule;

use crate::ffi::text;

/// An argument that is refused, and why: `MDCOM_E_ARGUMENT` with this text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Refused(pub(crate) &'static CStr);

/// `mdcom_config_t`.
#[derive(Debug)]
#[repr(C)]
pub struct Config {
    /// Bytes of the struct as the caller knows it.
    pub struct_size: usize,
    /// Path, or NULL.
    pub description: *const c_char,
    /// Name.
    pub domain: *const c_char,
    /// Name, or NULL.
    pub instance: *const c_char,
    /// 0: no check.
    pub plan_hash: u64,
    /// Nanoseconds.
    pub timeout: u64,
    /// -1: any.
    pub slot: i32,
    /// [`PREFAULT`], [`LOCK_MEMORY`].
    pub flags: u32,
}

/// `MDCOM_PREFAULT`.
pub const PREFAULT: u32 = 1;
/// `MDCOM_LOCK_MEMORY`.
pub const LOCK_MEMORY: u32 = 2;
/// `MDCOM_FOREVER`.
pub const FOREVER: u64 = u64::MAX;
/// `MDCOM_READY_EVENT`.
pub const READY_EVENT: u32 = 1;
/// `MDCOM_READY_BLOCK`.
pub const READY_BLOCK: u32 = 2;
/// `MDCOM_READY_PEER`.
pub const READY_PEER: u32 = 4;

/// `mdcom_usage_t`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Usage {
    /// Blocks of the channel.
    pub blocks: u32,
    /// Bytes of a block.
    pub block_bytes: u32,
    /// Blocks that can be allocated.
    pub free: u32,
    /// Messages queued.
    pub queued: u32,
    /// Blocks in the caller's hands.
    pub held: u32,
    /// Whether there is a peer.
    pub connected: u32,
}

/// `mdcom_filter_t`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Filter {
    /// Every n-th request.
    pub every: u32,
    /// Messages queued.
    pub level: u32,
    /// Nanoseconds.
    pub interval: u64,
    /// Nanoseconds; 0: the usual time.
    pub latest: u64,
}

impl From<Filter> for FilterRule {
    fn from(filter: Filter) -> FilterRule {
        let latest_ns = if filter.latest == 0 { FilterRule::EACH.latest_ns } else { filter.latest };
        FilterRule { every: filter.every.max(1), level: filter.level, interval_ns_min: filter.interval, latest_ns }
    }
}

/// [`Config`] with its texts checked.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted<'c> {
    pub(crate) description: Option<&'c CStr>,
    pub(crate) domain: &'c str,
    pub(crate) instance: Option<&'c str>,
    pub(crate) plan_hash: u64,
    pub(crate) timeout_ns: u64,
    pub(crate) slot: Option<u16>,
    #[cfg_attr(target_os = "none", expect(dead_code, reason = "memory is always there and never goes"))]
    pub(crate) flags: u32,
}

/// Reads the configuration.
///
/// # Safety
/// `config` is NULL or points to a struct of the size that its first field says, with NULL or C strings in it.
pub(crate) unsafe fn wanted<'c>(config: *const Config) -> Result<Wanted<'c>, Refused> {
    if config.is_null() {
        return Err(Refused(c"config is NULL"));
    }
    // SAFETY: the caller's promise; the first field alone, as the rest may not be there.
    let size = unsafe { config.cast::<usize>().read() };
    if size != size_of::<Config>() {
        return Err(Refused(c"config.struct_size is not sizeof(mdcom_config_t) of this version"));
    }
    // SAFETY: the caller's promise, and its size is ours.
    let config = unsafe { config.read() };
    // SAFETY: the caller's promise.
    let domain = unsafe { text(config.domain) }.map_err(|_| Refused(c"config.domain is not UTF-8"))?;
    // SAFETY: the caller's promise.
    let instance = unsafe { text(config.instance) }.map_err(|_| Refused(c"config.instance is not UTF-8"))?;
    // SAFETY: the caller's promise: not NULL here, so a C string.
    let description = (!config.description.is_null()).then(|| unsafe { CStr::from_ptr(config.description) });
    if config.flags & !(PREFAULT | LOCK_MEMORY) != 0 {
        return Err(Refused(c"config.flags has a bit that no MDCOM_ constant has"));
    }
    Ok(Wanted {
        description,
        domain: domain.ok_or(Refused(c"config.domain is NULL"))?,
        instance,
        plan_hash: config.plan_hash,
        timeout_ns: config.timeout,
        slot: slot(config.slot)?,
        flags: config.flags,
    })
}

fn slot(slot: i32) -> Result<Option<u16>, Refused> {
    match slot {
        -1 => Ok(None),
        _ => u16::try_from(slot).map(Some).map_err(|_| Refused(c"config.slot is neither -1 nor a slot")),
    }
}

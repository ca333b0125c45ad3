//! `fi_prov_ini`: what libfabric asks a provider for first.
//!
//! What you may rely on: one library serves libfabric 1.17 and 2.x: structures are as long as the longer ones, whose ends the
//! older one does not look at, and the version that is said is that of the libfabric which asks, up to [`API_VERSION_MAX`].
//!
//! How it works: libfabric skips a provider whose version is below what a program asks for. Its own is a call of its own, which is
//! looked up among what the process has loaded.

use core::cell::UnsafeCell;
use core::ffi::{CStr, c_char, c_void};
use std::ffi::CString;

use crate::abi::{API_VERSION, API_VERSION_MAX, Provider};

const NAME: &CStr = c"vi";
/// 1.0 of this provider.
const VERSION: u32 = 1 << 16;
/// `RTLD_LAZY` and `RTLD_NOLOAD`.
const ONLY_IF_LOADED: i32 = 1 | 4;

unsafe extern "C" {
    fn dlopen(name: *const c_char, flags: i32) -> *mut c_void;
    fn dlsym(library: *mut c_void, name: *const c_char) -> *mut c_void;
}

struct ProviderPlace(UnsafeCell<Provider>);
// SAFETY: libfabric alone asks for it, writes to the context and reads it, under its own lock.
unsafe impl Sync for ProviderPlace {}

static PROVIDER: ProviderPlace = ProviderPlace(UnsafeCell::new(Provider {
    version: VERSION,
    fi_version: API_VERSION,
    context: [0; 4],
    name: NAME.as_ptr(),
    getinfo: crate::info::getinfo as *const (),
    fabric: crate::fabric::fabric as *const (),
    cleanup: cleanup as *const (),
}));

/// What libfabric asks a provider for first.
#[unsafe(no_mangle)]
pub extern "C" fn fi_prov_ini() -> *const c_void {
    let version = std::panic::catch_unwind(version_of_libfabric).ok().flatten().unwrap_or(API_VERSION);
    let place = PROVIDER.0.get();
    // SAFETY: libfabric loads providers under its own lock, and reads this afterwards.
    unsafe { (*place).fi_version = version.clamp(API_VERSION, API_VERSION_MAX) };
    place.cast_const().cast()
}

/// Which version the libfabric of this process has.
fn version_of_libfabric() -> Option<u32> {
    let maps = std::fs::read_to_string("/proc/self/maps").ok()?;
    let path =
        maps.lines().find_map(|line| line.split_once('/').map(|(_, path)| path).filter(|path| is_libfabric(path)))?;
    let path = CString::new(format!("/{path}")).ok()?;
    // SAFETY: a path and flags that load nothing.
    let library = unsafe { dlopen(path.as_ptr(), ONLY_IF_LOADED) };
    if library.is_null() {
        return None;
    }
    // SAFETY: a library that is loaded, and a name.
    let call = unsafe { dlsym(library, c"fi_version".as_ptr()) };
    if call.is_null() {
        return None;
    }
    // SAFETY: libfabric's documented `uint32_t fi_version(void)`.
    let version = unsafe { core::mem::transmute::<*mut c_void, extern "C" fn() -> u32>(call) };
    Some(version())
}

/// Whether a mapped file is libfabric, under the name that it is installed by.
fn is_libfabric(path: &str) -> bool {
    path.rsplit('/').next().is_some_and(|name| name.starts_with("libfabric") && name.contains(".so"))
}

extern "C" fn cleanup() {}

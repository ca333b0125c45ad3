//! `fi_prov_ini`: what libfabric asks a provider for first.

use core::cell::UnsafeCell;
use core::ffi::{CStr, c_void};

use crate::abi::{API_VERSION, Provider};

const NAME: &CStr = c"vi";
/// 1.0 of this provider.
const VERSION: u32 = 1 << 16;

struct ProviderPlace(UnsafeCell<Provider>);
// SAFETY: libfabric alone writes to the context, under its own lock; the rest nobody writes.
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
    PROVIDER.0.get().cast_const().cast()
}

extern "C" fn cleanup() {}

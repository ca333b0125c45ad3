//! Which addresses of this process have memory behind them.
//!
//! What you may rely on: the answer holds for the moment of the question; nothing is read, written or changed, and pages that were
//! never touched stay so.
//!
//! How it works: `msync` with `MS_ASYNC` does nothing since Linux 2.6.19 but say whether a part of a range is not mapped.
//!
//! What it does not do: say whether the memory may be read or written.

use rustix::io::Errno;
use rustix::mm::{MsyncFlags, msync};

/// Whether all of these bytes are mapped. Of no bytes none is missing.
pub fn are_mapped(address: u64, bytes: u64) -> bool {
    let page = page_bytes();
    let first = address & !(page - 1);
    let end = address.checked_add(bytes).and_then(|end| end.checked_next_multiple_of(page));
    let Some(range) = end.and_then(|end| usize::try_from(end - first).ok()) else { return false };
    let pointer = core::ptr::with_exposed_provenance_mut(first as usize);
    // SAFETY: without `MS_INVALIDATE` and `MS_SYNC` the call touches no memory, whatever the range is.
    bytes == 0 || unsafe { msync(pointer, range, MsyncFlags::ASYNC) } != Err(Errno::NOMEM)
}

fn page_bytes() -> u64 {
    // SAFETY: the call asks for a number.
    let bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    u64::try_from(bytes).unwrap_or(4096)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::os::mapping::Mapping;

    #[test]
    #[cfg_attr(miri, ignore = "there is no msync")]
    fn what_is_mapped_is_seen_and_a_hole_too() {
        let on_stack = [0_u8; 10];
        assert!(are_mapped((&raw const on_stack).addr() as u64, 10));
        assert!(!are_mapped(0, 1) && !are_mapped(8, 8) && !are_mapped(u64::MAX - 4, 3) && !are_mapped(u64::MAX, 2));
        assert!(are_mapped(0, 0));
        let bytes = 3 * page_bytes();
        let mapping = Mapping::reserved(bytes as usize).unwrap();
        let address = mapping.address().addr() as u64;
        assert!(are_mapped(address, bytes) && are_mapped(address + bytes - 1, 1));
        // From where nothing is to where something is.
        assert!(!are_mapped(8, address));
    }
}

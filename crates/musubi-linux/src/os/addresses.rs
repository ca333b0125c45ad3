//! Which addresses of this process have memory behind them.
//!
//! What you may rely on: the answer holds for the moment of the question; nothing is read, written or changed, and pages that were
//! never touched stay so.
//!
//! How it works: `mincore`, which is asked what lies in the processor's memory, fails if a part of a range is not mapped. It
//! looks at page tables and nothing else, and is no offence to memcheck, whose users this must not disturb.
//!
//! What it does not do: say whether the memory may be read or written.

use rustix::io::Errno;

/// Pages that are asked about at once.
const PAGES: u64 = 4096;

/// Whether all of these bytes are mapped. Of no bytes none is missing.
pub fn are_mapped(address: u64, bytes: u64) -> bool {
    let page = page_bytes();
    let mut from = address & !(page - 1);
    let Some(end) = address.checked_add(bytes).and_then(|end| end.checked_next_multiple_of(page)) else { return false };
    let mut told = [0_u8; PAGES as usize];
    while bytes > 0 && from < end {
        let now = (end - from).min(PAGES * page);
        let pointer = core::ptr::with_exposed_provenance_mut(from as usize);
        // SAFETY: `told` has room for a byte of each of at most `PAGES` pages; the call reads and writes no other memory,
        // whatever the range is.
        let result = unsafe { libc::mincore(pointer, now as usize, told.as_mut_ptr()) };
        if result != 0 && std::io::Error::last_os_error().raw_os_error() == Some(Errno::NOMEM.raw_os_error()) {
            return false;
        }
        from += now;
    }
    true
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
    #[cfg_attr(miri, ignore = "there is no mincore")]
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
        assert!(!are_mapped(address - page_bytes(), u64::MAX / 2 - address));
        let large = Mapping::reserved((3 * PAGES * page_bytes()) as usize).unwrap();
        assert!(are_mapped(large.address().addr() as u64 + 1, 3 * PAGES * page_bytes() - 1));
    }
}

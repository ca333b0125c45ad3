//! Places for nodes on this machine that no other test has, of this process or another, at the same time.
//!
//! How it works: an address of 127.0.0.0/8 for each process, and ports one after the other below those that the kernel
//! hands out. A port that was free a moment ago would not do: it may be another's by the time that a node asks for it.

use std::sync::atomic::{AtomicU16, Ordering};

/// First port that is given out.
const PORT_FIRST: u16 = 7411;

/// A loopback address with a port of its own.
pub fn own_address() -> String {
    static NEXT: AtomicU16 = AtomicU16::new(PORT_FIRST);
    let [low, middle, high, _] = std::process::id().to_le_bytes();
    format!("127.{}.{middle}.{low}:{}", 64 + high % 128, NEXT.fetch_add(1, Ordering::Relaxed))
}

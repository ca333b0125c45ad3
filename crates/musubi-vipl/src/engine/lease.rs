//! A word that says whether a connection stands: for peers that fetch bytes from where they lie.
//!
//! What you may rely on: before anything of the connection is completed or flushed, the word is void, and it never says the
//! same again. So whoever reads bytes first and the word after them, and finds it as it was told, has read bytes that the
//! program had given to the connection and not got back.
//!
//! How it works: two words of 32 bits in memory of their own, written by this side alone: the name of the connection's end, which
//! is another one for each, and the NIC's incarnation. The name becomes 0 when the connection ends.

use alloc::boxed::Box;
use core::sync::atomic::{AtomicU32, Ordering, fence};

/// What a peer is told of a lease: where it lies, and what it says while the connection stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LeaseWords {
    /// Address in the memory of the process that has the connection; 0 is none.
    pub address: u64,
    /// As the words lie there.
    pub value: [u8; 8],
}

/// The word itself.
#[derive(Debug)]
pub struct Lease(Box<[AtomicU32; 2]>);

impl Lease {
    /// Of a connection that stands from now on.
    pub fn new(name: u32, incarnation: u32) -> Lease {
        Lease(Box::new([AtomicU32::new(name), AtomicU32::new(incarnation)]))
    }

    /// What the peer is to be told.
    pub fn words(&self) -> LeaseWords {
        let address = self.0.as_ptr().expose_provenance() as u64;
        let [name, incarnation] = [0, 1].map(|word| self.0[word].load(Ordering::Relaxed).to_ne_bytes());
        let mut value = [0; 8];
        value[..4].copy_from_slice(&name);
        value[4..].copy_from_slice(&incarnation);
        LeaseWords { address, value }
    }

    /// The connection does not stand any more. Comes before every write that follows: the program's, too.
    pub fn end(&self) {
        self.0[0].store(0, Ordering::Relaxed);
        fence(Ordering::SeqCst);
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.end();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_says_another_thing_when_it_is_over() {
        let lease = Lease::new(7 << 16 | 3, 9);
        let words = lease.words();
        assert!(words.address != 0 && words.value == *b"\x03\0\x07\0\x09\0\0\0");
        lease.end();
        assert_eq!(lease.words(), LeaseWords { value: *b"\0\0\0\0\x09\0\0\0", ..words });
    }
}

//! Which buffers a program sent on packet channels lately: what `mcapi_pktchan_release_test` answers from.
//!
//! How it works: the library copies what is sent, so a buffer is the sender's again as soon as the send has completed.
//! What remains to be told is whether an address was sent at all: a table of the last addresses, each in the place that
//! its bits say, so that one store is all that sending pays.
//!
//! What it does not do: remember all; an address whose place another took is unknown.

use alloc::boxed::Box;
use core::sync::atomic::{AtomicUsize, Ordering};

/// Addresses that are remembered.
const PLACES: usize = 1024;

/// See above.
#[derive(Debug)]
pub(crate) struct SentBuffers {
    places: Box<[AtomicUsize; PLACES]>,
}

impl Default for SentBuffers {
    fn default() -> SentBuffers {
        SentBuffers { places: Box::new([const { AtomicUsize::new(0) }; PLACES]) }
    }
}

impl SentBuffers {
    fn place(&self, address: usize) -> &AtomicUsize {
        // Buffers lie at multiples of 8 or more; the higher bits tell them apart.
        &self.places[(address >> 3 ^ address >> 13) % PLACES]
    }

    /// The buffer at this address was sent.
    #[inline]
    pub(crate) fn note(&self, address: usize) {
        self.place(address).store(address, Ordering::Relaxed);
    }

    /// Whether it was.
    pub(crate) fn knows(&self, address: usize) -> bool {
        address != 0 && self.place(address).load(Ordering::Relaxed) == address
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_sent_is_known() {
        let sent = SentBuffers::default();
        sent.note(0x7f00_1230);
        assert!(sent.knows(0x7f00_1230));
        assert!(!sent.knows(0x7f00_1238) && !sent.knows(0));
    }
}

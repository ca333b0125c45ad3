//! The same words as in the wrong ones, used as they may be.
use std::sync::atomic::{AtomicU32, Ordering};

use musubi_core::words::{OwnWords, PeerWord, PeerWords};

fn look(own: &OwnWords<'_>, peer: PeerWords<'_>) -> u32 {
    own.set(0, 1);
    own.write_bytes(0, &[1]);
    let word = peer.word(0);
    let _: *const u32 = word.address();
    word.load(Ordering::Relaxed)
}

fn main() {
    let local = AtomicU32::new(7);
    assert_eq!(PeerWord::from(&local).load(Ordering::Relaxed), 7);
    let _ = look;
}

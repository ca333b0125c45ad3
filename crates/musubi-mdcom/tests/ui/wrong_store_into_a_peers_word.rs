//! A peer's word can be looked at and slept on; nothing of it can be stored into, not even by who has the word itself.
use std::sync::atomic::Ordering;

use musubi_core::words::PeerWords;

fn spoil(peer: PeerWords<'_>) -> u32 {
    let word = peer.word(0);
    let _ = word.address();
    word.store(1, Ordering::Relaxed);
    word.load(Ordering::Relaxed)
}

fn main() {
    let _ = spoil;
}

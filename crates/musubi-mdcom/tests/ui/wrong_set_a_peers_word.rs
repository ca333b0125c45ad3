//! What own words offer for storing, a peer's words do not.
use musubi_core::words::PeerWords;

fn spoil(peer: PeerWords<'_>) {
    peer.set(0, 1);
    peer.write_bytes(0, &[1]);
}

fn main() {
    let _ = spoil;
}

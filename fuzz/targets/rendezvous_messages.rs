//! Any packet on the rendezvous socket: it is refused, or it is a message that travels as the same bytes.
#![no_main]

use libfuzzer_sys::fuzz_target;
use musubi_linux::message::{FDS_MAX, parse};

fuzz_target!(|bytes: &[u8]| {
    if let Ok(message) = parse(bytes) {
        assert_eq!(message.bytes(), bytes);
        assert_eq!(parse(&message.bytes()).as_ref(), Ok(&message));
        assert!(message.fds() <= FDS_MAX);
    }
});

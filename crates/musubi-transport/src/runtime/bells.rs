//! The runtime's own descriptors: event counters that rouse who sleeps.
//!
//! How it works: a node's epoll instance has two of them beside the carriers' descriptors, by token: one that rouses a
//! caller, one that rings when something is due. Ringing and silencing never wait.

use musubi_linux::descriptor::Descriptor;

/// Token of what rouses a caller.
pub(super) const TOKEN_WAKE: u64 = 0;
/// Token of the alarm.
pub(super) const TOKEN_ALARM: u64 = 1;
/// Makes an event descriptor readable.
pub(super) fn ring(event: &Descriptor) {
    let _ = rustix::io::write(event, &1u64.to_ne_bytes());
}

/// Makes it unreadable.
pub(super) fn silence(event: &Descriptor) {
    let _ = rustix::io::read(event, &mut [0; 8]);
}

/// A span of time for a system call.
pub(super) fn timespec(ns: u64) -> rustix::time::Timespec {
    rustix::time::Timespec { tv_sec: (ns / 1_000_000_000) as i64, tv_nsec: (ns % 1_000_000_000) as _ }
}

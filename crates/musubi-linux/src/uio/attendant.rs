//! The thread that waits for a participant's interrupt and keeps its heartbeat and its slot.
//!
//! What you may rely on: it ends when the participant has left, at once if that is with its [`Attendant`], else within a
//! beat of the last end that was still open; only then is the slot free. It is on the data path only in so far as it wakes
//! those who sleep.

use std::os::fd::AsFd;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use musubi_core::mapped;
use rustix::event::{EventfdFlags, eventfd};
use std::os::fd::OwnedFd;

use super::ProcessHost;
use crate::error::{Error, Tried};
use crate::os::clock::{Deadline, now_ns};
use crate::os::forks::Kept;

/// Longest time between two beats in nanoseconds: how late a notification may be that a filter held back.
const BEAT_NS_MAX: u64 = 5_000_000;
/// At least so many beats in a heartbeat period, so that none is missed.
const BEATS_MIN: u64 = 4;

/// Time between two beats in nanoseconds.
const fn pause_ns(heartbeat_ns: u64) -> u64 {
    let pause_ns = heartbeat_ns / BEATS_MIN;
    if pause_ns < BEAT_NS_MAX { pause_ns } else { BEAT_NS_MAX }
}

/// A running attendant. It is dropped after the handle of the participant.
#[derive(Debug)]
pub(super) struct Attendant {
    stop: Arc<OwnedFd>,
    pulse: mapped::Pulse<'static, ProcessHost>,
    thread: Option<JoinHandle<()>>,
}

impl Attendant {
    /// Starts it for a participant and the slot that it has.
    pub(super) fn start(
        host: &'static ProcessHost,
        participant: &mapped::Participant<'static, ProcessHost>,
        slot: Kept,
    ) -> Result<Attendant, Error> {
        let stop = Arc::new(eventfd(0, EventfdFlags::CLOEXEC).tried("creating an event descriptor")?);
        let (told, pulse) = (Arc::clone(&stop), participant.pulse());
        let run = move || {
            attend(host, &pulse, &told);
            drop(slot);
        };
        let thread = std::thread::Builder::new().name("musubi-attendant".into()).spawn(run);
        let thread = Some(thread.tried("starting the attendant")?);
        Ok(Attendant { stop, pulse: participant.pulse(), thread })
    }
}

impl Drop for Attendant {
    fn drop(&mut self) {
        // Ends that are still open store into the slot, so it stays taken, and they are woken as before.
        if self.pulse.is_attached() {
            return;
        }
        let _ = rustix::io::write(&*self.stop, &1u64.to_ne_bytes());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn attend(host: &ProcessHost, pulse: &mapped::Pulse<'static, ProcessHost>, told: &OwnedFd) {
    let pause_ns = pause_ns(host.plan().liveness.heartbeat_ns);
    let mut beat_ns = now_ns();
    while pulse.is_attached() && !is_told(told) {
        let woken = host.device().wait(told.as_fd(), Deadline::At(beat_ns));
        match woken {
            Ok(true) => {
                pulse.wake();
                host.rung();
            }
            Ok(false) => (),
            // The device is gone; the threads find that nothing comes any more.
            Err(_) => std::thread::sleep(Duration::from_nanos(pause_ns)),
        }
        if now_ns() >= beat_ns {
            pulse.beat();
            beat_ns = now_ns() + pause_ns;
        }
    }
}

fn is_told(told: &OwnedFd) -> bool {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut [PollFd::new(told, PollFlags::IN)], Some(&at_once)).is_ok_and(|ready| ready > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_heartbeat_is_missed() {
        assert_eq!(pause_ns(1_000_000), 250_000);
        assert_eq!(pause_ns(100_000_000), BEAT_NS_MAX);
    }

    #[test]
    fn what_was_told_stays_told() {
        use rustix::event::{EventfdFlags, eventfd};
        let told = eventfd(0, EventfdFlags::CLOEXEC).unwrap();
        assert!(!is_told(&told));
        rustix::io::write(&told, &1u64.to_ne_bytes()).unwrap();
        assert!(is_told(&told) && is_told(&told));
    }
}

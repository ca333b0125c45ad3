//! Waiting for many receiving ends at once.
//!
//! What you may rely on: as for one end: no lost wake-up, and the deadline holds.
//!
//! How it works: every end announces the sleep to its sender; then the thread sleeps on all their bells and mailboxes in
//! one `futex_waitv`, which takes 128 words.

use musubi_core::Error;
use musubi_core::channel::{Deadline, ReceivingEnd as _, WAIT_MAX};

use crate::os::futex::{self, Wake};
use crate::process::channel::receiver::ReceivingEnd;
use crate::process::channel::wait::Spin;

/// Waits until one of the ends is ready.
pub(crate) fn wait_any(ends: &[&ReceivingEnd], spin: Spin, deadline: Deadline) -> Result<(), Error> {
    if ends.len() > WAIT_MAX {
        return Err(Error::TooLong);
    }
    let mut look = || ends.iter().any(|end| end.is_ready()).then_some(());
    if look().or_else(|| spin.until(deadline, &mut look)).is_some() {
        return Ok(());
    }
    if deadline == Deadline::Poll {
        return Err(Error::Timeout);
    }
    loop {
        let in_time = sleep(ends, deadline);
        if look().is_some() {
            return Ok(());
        }
        if !in_time {
            return Err(Error::Timeout);
        }
    }
}

/// One sleep; false if the deadline has passed.
fn sleep(ends: &[&ReceivingEnd], deadline: Deadline) -> bool {
    let prepared: Vec<_> = ends.iter().map(|end| (end.prepare_sleep(), end.links())).collect();
    let ready = ends.iter().any(|end| end.is_ready());
    let mut words = Vec::with_capacity(2 * prepared.len());
    for ((sleep, _), links) in &prepared {
        words.extend(sleep.watches(links.version_word()));
    }
    let woken = ready || futex::sleep_any(&words, deadline) == Wake::Woken;
    for end in ends {
        end.finish_sleep();
    }
    woken
}

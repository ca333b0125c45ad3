//! Waiting: look, spin for the domain's time, announce, look once more, rest.
//!
//! What you may rely on: no lost wake-up, if the host keeps its part ([`Host::rest`]); the deadline holds. A waiter does
//! the participant's periodic work, so a program without a tick that waits often enough needs no other beat.
//!
//! How it works: the count of rings heard is read before the announcement. Whoever raises something after the
//! announcement rings; the host's handler adds one to the count ([`crate::mapped::Participant::wake`]); so either the look after
//! the announcement sees what was raised, or the count has changed, or a ring is on its way and ends the rest. A host
//! that cannot be woken announces nothing.

use crate::channel::Deadline;
use crate::error::Error;
use crate::layout::waiting;
use crate::mapped::Host;
use crate::mapped::shared::Shared;
use crate::sync::Ordering;

/// Looks between two readings of the clock while spinning.
const LOOKS: u32 = 16;
/// A waiter looks at its peers' roots this many times in a heartbeat period.
const BEATS: u64 = 8;

/// The bits of `WAITING` with a sleeper or without.
pub(super) const fn with_asleep(bits: u32, asleep: bool) -> u32 {
    if asleep { bits | waiting::ASLEEP } else { bits & !waiting::ASLEEP }
}

/// The bits of `WAITING` with a future.
pub(super) const fn armed(bits: u32) -> u32 {
    bits | waiting::ARMED
}

/// Waits until `look` has a result. `announce` tells the other sides that a thread sleeps, and looks; or that it does not
/// any more.
pub(in crate::mapped) fn wait<B: Host, R>(
    shared: &Shared<'_, B>,
    deadline: Deadline,
    mut look: impl FnMut() -> Option<Result<R, Error>>,
    announce: impl Fn(bool),
) -> Result<R, Error> {
    if let Some(result) = look() {
        return result;
    }
    let end_ns = match deadline {
        Deadline::Poll => return Err(Error::Timeout),
        Deadline::At(ns) => ns,
        Deadline::Forever => u64::MAX,
    };
    if let Some(result) = spin(shared, end_ns, &mut look) {
        return result;
    }
    let pause_ns = shared.here.plan.liveness.heartbeat_ns / BEATS;
    let mut beat_at_ns = 0;
    loop {
        let now_ns = shared.here.host.now_ns();
        if now_ns >= beat_at_ns {
            shared.beat();
            beat_at_ns = now_ns.saturating_add(pause_ns);
        }
        if let Some(result) = rest(shared, end_ns.min(beat_at_ns), &mut look, &announce) {
            return result;
        }
        if shared.here.host.now_ns() >= end_ns {
            return look().unwrap_or(Err(Error::Timeout));
        }
    }
}

/// Looks again and again for the domain's spinning time.
fn spin<B: Host, R>(shared: &Shared<'_, B>, end_ns: u64, mut look: impl FnMut() -> Option<R>) -> Option<R> {
    let spin_ns = shared.here.plan.domains.get(usize::from(shared.here.domain)).map_or(0, |domain| domain.spin_ns);
    let end_ns = end_ns.min(shared.here.host.now_ns().saturating_add(u64::from(spin_ns)));
    while shared.here.host.now_ns() < end_ns {
        for _ in 0..LOOKS {
            let result = look();
            if result.is_some() {
                return result;
            }
            core::hint::spin_loop();
        }
    }
    None
}

/// One rest, unless there is a result.
fn rest<B: Host, R>(
    shared: &Shared<'_, B>,
    until_ns: u64,
    mut look: impl FnMut() -> Option<R>,
    announce: impl Fn(bool),
) -> Option<R> {
    let rung = shared.here.rung.load(Ordering::SeqCst);
    let announces = shared.here.host.can_be_woken();
    if announces {
        announce(true);
    }
    let result = look();
    if result.is_none() {
        shared.here.host.rest(until_ns, &|| shared.here.rung.load(Ordering::SeqCst) == rung);
    }
    if announces {
        announce(false);
    }
    result.or_else(look)
}

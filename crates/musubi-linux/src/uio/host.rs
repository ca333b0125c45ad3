//! A Linux process as the carrier of a participant in mapped memory.
//!
//! What you may rely on: a ring that comes between the look whether sleeping is needed and the sleep ends it at once.
//!
//! How it works: one thread waits for the interrupt ([`super::attendant`]); it counts, and wakes the threads that sleep
//! on the count. A domain without an interrupt is not woken: its threads look again every [`POLL_NS`].

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use musubi_core::mapped;
use musubi_core::plan::Plan;
use musubi_core::port::Coherence;

use super::Device;
use crate::os::clock::{Deadline, now_ns};
use crate::os::futex::{self, Watch};

/// Time between two looks of a thread that nobody can wake, in nanoseconds.
pub const POLL_NS: u64 = 100_000;

/// A process as the host of a participant.
#[derive(Debug)]
pub struct ProcessHost {
    plan: &'static Plan<'static>,
    device: Device,
    rings: AtomicU32,
}

impl ProcessHost {
    pub(super) fn new(plan: &'static Plan<'static>, device: Device) -> ProcessHost {
        ProcessHost { plan, device, rings: AtomicU32::new(0) }
    }

    pub(super) fn plan(&self) -> &'static Plan<'static> {
        self.plan
    }

    pub(super) fn device(&self) -> &Device {
        &self.device
    }

    /// Ends every rest that has begun, and every one that is about to.
    pub(super) fn rung(&self) {
        self.rings.fetch_add(1, Ordering::SeqCst);
        futex::wake_local(&self.rings);
    }
}

/// Nothing to do: neither side caches the memory.
impl Coherence for ProcessHost {}

impl mapped::Host for ProcessHost {
    fn now_ns(&self) -> u64 {
        now_ns()
    }

    fn has_common_clock(&self) -> bool {
        false
    }

    fn ring(&self, participant: u16) {
        if let Some(domain) = self.plan.domain_of(participant) {
            self.device.ring(domain);
        }
    }

    fn can_be_woken(&self) -> bool {
        self.device.has_interrupt()
    }

    fn rest(&self, until_ns: u64, still_needed: &dyn Fn() -> bool) {
        let expected = self.rings.load(Ordering::SeqCst);
        if !still_needed() {
            return;
        }
        if !self.can_be_woken() {
            std::thread::sleep(Duration::from_nanos(until_ns.saturating_sub(now_ns()).min(POLL_NS)));
            return;
        }
        let deadline = if until_ns == u64::MAX { Deadline::Forever } else { Deadline::At(until_ns) };
        futex::sleep(None, Watch { word: (&self.rings).into(), expected }, deadline);
    }

    fn rouse(&self) {
        self.rung();
    }
}

#[cfg(test)]
mod tests {
    use musubi_core::mapped::Host as _;

    use super::*;
    use crate::process::section::tests::PLAN;
    use crate::uio::Twin;

    #[test]
    fn a_rest_ends_at_once_if_it_is_not_needed_and_else_at_its_time_or_by_a_ring() {
        let twin = Twin::new(&PLAN).unwrap();
        let host = ProcessHost::new(&PLAN, twin.device(&PLAN, 0).unwrap());
        assert!(host.can_be_woken() && !host.has_common_clock());
        let begin_ns = host.now_ns();
        host.rest(u64::MAX, &|| false);
        host.rest(u64::MAX, &|| {
            // Rung between the look and the sleep.
            host.rouse();
            true
        });
        host.rest(begin_ns + 20_000_000, &|| true);
        assert!(host.now_ns() >= begin_ns + 20_000_000);
    }

    #[test]
    fn a_participants_domain_is_rung() {
        let twin = Twin::new(&PLAN).unwrap();
        let host = ProcessHost::new(&PLAN, twin.device(&PLAN, 0).unwrap());
        let [panel, motor] = [1, 2].map(|domain| ProcessHost::new(&PLAN, twin.device(&PLAN, domain).unwrap()));
        let (idle, _kept) = rustix::pipe::pipe().unwrap();
        let is_rung =
            |host: &ProcessHost| host.device().wait(std::os::fd::AsFd::as_fd(&idle), Deadline::At(1)).unwrap();
        for (participant, rung) in [(1, [true, false]), (2, [true, false]), (3, [false, true]), (9, [false, false])] {
            host.ring(participant);
            assert_eq!([is_rung(&panel), is_rung(&motor)], rung, "participant {participant}");
        }
    }
}

//! What a participant in mapped memory asks of its host.
//!
//! What you may rely on: every function is called from the threads or tasks of the participant, `ring` also from
//! [`super::Participant::beat`] and so, if the program likes, from a tick's handler. None is called from
//! [`super::Participant::wake`].
//!
//! What it does not do: know what lies in the memory. A host that only has a clock is [`Polling`].

use crate::port::Coherence;

/// A core, an RTOS or a process as the carrier of one participant. `Coherence` are its cache operations; control words
/// lie in memory that reaches the others uncached or coherently.
pub trait Host: Coherence {
    /// Nanoseconds of the host's clock; never back. Deadlines are instants of this clock.
    fn now_ns(&self) -> u64;

    /// Whether every participant's host reads the same clock. If not, send times are estimated from the Master's
    /// heartbeat.
    fn has_common_clock(&self) -> bool;

    /// Makes a participant's host leave [`Host::rest`] and call [`super::Participant::wake`], if it can be woken.
    /// Must not wait for anything, whatever that participant does. The words that say why were stored before; where
    /// stores and doorbells travel by different ways, a barrier between them is the host's.
    fn ring(&self, participant: u16);

    /// Whether a ring wakes this host. One that cannot be woken polls: it never announces that it sleeps, so nobody
    /// rings it, and its futures are woken by each [`super::Participant::beat`].
    fn can_be_woken(&self) -> bool;

    /// Lets the calling thread rest until a ring, `until_ns` (`u64::MAX`: no time), or earlier for any reason.
    ///
    /// So that no wake-up is lost, a host that sleeps does it in this order: make sure that a ring from now on ends
    /// the sleep (interrupts masked before WFI; a flag or a count that the handler changes), ask `still_needed`, sleep
    /// only if it says so. It reads memory only and waits for nothing.
    fn rest(&self, until_ns: u64, still_needed: &dyn Fn() -> bool);

    /// Ends every rest of this host's own threads that has begun or is about to, as a ring would. A host that does not
    /// leaves a thread that waits for what another one of the same host does to its next look.
    fn rouse(&self) {}
}

/// A host that has nothing but a clock: the function, and whether it is common to all participants. It looks again and
/// again.
#[derive(Clone, Copy, Debug)]
pub struct Polling {
    /// Nanoseconds; never back.
    pub now_ns: fn() -> u64,
    /// [`Host::has_common_clock`].
    pub is_common: bool,
}

/// Processor pauses of one rest of a polling host.
const PAUSES: u32 = 16;

impl Coherence for Polling {}

impl Host for Polling {
    fn now_ns(&self) -> u64 {
        (self.now_ns)()
    }

    fn has_common_clock(&self) -> bool {
        self.is_common
    }

    fn ring(&self, _: u16) {}

    fn can_be_woken(&self) -> bool {
        false
    }

    fn rest(&self, until_ns: u64, still_needed: &dyn Fn() -> bool) {
        for _ in 0..PAUSES {
            if !still_needed() || self.now_ns() >= until_ns {
                return;
            }
            core::hint::spin_loop();
        }
    }
}

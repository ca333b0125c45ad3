//! Waiting of channel ends: spin for a while, then sleep on the other side's bell and on our own mailbox.
//!
//! What you may rely on: no lost wake-up (the bell's value is read before the announcement and compared by the kernel);
//! the deadline holds; spinning never happens on one processor, where it would keep the peer from running.

use std::sync::atomic::AtomicU32;

use musubi_core::channel::Deadline;
use musubi_core::layout::{rx, tx, waiting};
use musubi_core::plan::Plan;
use musubi_core::words::PeerWord;

use crate::os::clock::now_ns;
use crate::os::futex::{self, Wake, Watch};
use crate::os::realtime;
use crate::process::channel::mailbox::{RxSender, TxLink, Versioned};

/// Looks between two readings of the clock while spinning.
const LOOKS: u32 = 64;

/// Lets the other side get ahead in a stream: a few hundred nanoseconds, in which it fills or empties several blocks
/// without us looking at the lines it works on.
pub(crate) fn stream_pause() {
    for _ in 0..STREAM_PAUSES {
        std::hint::spin_loop();
    }
}

/// Processor pauses of one [`stream_pause`].
const STREAM_PAUSES: u32 = 6;

/// How long a wait spins before it sleeps.
#[derive(Clone, Copy, Debug)]
pub struct Spin {
    ns: u64,
}

impl Spin {
    /// What the plan says for a domain, or nothing where this thread has one processor only.
    pub(crate) fn of(plan: &Plan<'_>, domain: u16) -> Spin {
        let planned = plan.domains.get(usize::from(domain)).map_or(0, |domain| domain.spin_ns);
        Spin { ns: if realtime::spin_allowed() { u64::from(planned) } else { 0 } }
    }

    /// Looks again and again until there is a result, the spinning time is over or the deadline has passed.
    #[inline]
    pub fn until<R>(self, deadline: Deadline, mut look: impl FnMut() -> Option<R>) -> Option<R> {
        if self.ns == 0 {
            return None;
        }
        let end_ns = match deadline {
            Deadline::Poll => return None,
            Deadline::At(ns) => ns.min(now_ns().saturating_add(self.ns)),
            Deadline::Forever => now_ns().saturating_add(self.ns),
        };
        loop {
            for _ in 0..LOOKS {
                let result = look();
                if result.is_some() {
                    return result;
                }
            }
            if now_ns() >= end_ns {
                return None;
            }
        }
    }
}

/// Who waits at an end without a look of its own: threads that sleep, and a future or an event loop that is armed.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Waiters {
    pub(crate) sleepers: u32,
    pub(crate) armed: bool,
}

impl Waiters {
    /// What the other side is to see of it, as the bits of `WAITING`.
    pub(crate) fn bits(self) -> u32 {
        let asleep = if self.sleepers > 0 { waiting::ASLEEP } else { 0 };
        asleep | if self.armed { waiting::ARMED } else { 0 }
    }

    /// Makes every thread of this process that sleeps on a mailbox look again.
    pub(crate) fn wake<T>(self, links: &Versioned<T>) {
        if self.sleepers > 0 {
            links.change(|_| ());
        }
    }
}

/// A link whose bell can be slept on; keeps the bell's memory mapped.
pub trait Bell {
    /// The word that the other side changes when it rings.
    fn bell(&self) -> PeerWord<'_>;
}

impl Bell for TxLink {
    fn bell(&self) -> PeerWord<'_> {
        self.words.words().word(rx::BELL)
    }
}

impl Bell for RxSender {
    fn bell(&self) -> PeerWord<'_> {
        self.words.words().word(tx::BELL)
    }
}

/// A sleep that was prepared: announced to the peer, with the values that must still hold.
#[derive(Debug)]
pub struct Sleep<L> {
    bell: Option<(L, u32)>,
    version: u32,
}

impl<L: Bell> Sleep<L> {
    pub(crate) fn new(bell: Option<(L, u32)>, version: u32) -> Sleep<L> {
        Sleep { bell, version }
    }

    /// The words to sleep on: the bell, if there is one, and our mailbox.
    pub(crate) fn watches<'w>(&'w self, version_word: &'w AtomicU32) -> impl Iterator<Item = futex::Shared<'w>> {
        let bell = self.bell.as_ref().map(|(link, expected)| Watch { word: link.bell(), expected: *expected });
        let local = Watch { word: version_word.into(), expected: self.version };
        bell.map(futex::Shared::Between).into_iter().chain([futex::Shared::Within(local)])
    }

    /// Sleeps until rung, the mailbox changes, or the deadline; false if that has passed.
    pub fn sleep(&self, version_word: &AtomicU32, deadline: Deadline) -> bool {
        let bell = self.bell.as_ref().map(|(link, expected)| Watch { word: link.bell(), expected: *expected });
        let local = Watch { word: version_word.into(), expected: self.version };
        futex::sleep(bell, local, deadline) == Wake::Woken
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::section::tests::PLAN;

    const HOUR_NS: u64 = 3_600_000_000_000;

    fn looks(spin: Spin, deadline: Deadline, found_at: u32) -> (Option<u32>, u32) {
        let mut count = 0;
        let found = spin.until(deadline, || {
            count += 1;
            (count == found_at).then_some(count)
        });
        (found, count)
    }

    #[test]
    fn who_polls_or_may_not_spin_does_not_look_again() {
        assert_eq!(looks(Spin { ns: 0 }, Deadline::Forever, 1), (None, 0));
        assert_eq!(looks(Spin { ns: HOUR_NS }, Deadline::Poll, 1), (None, 0));
        assert_eq!((Spin::of(&PLAN, 0).ns, Spin::of(&PLAN, 99).ns), (0, 0), "as the plan says");
    }

    #[test]
    fn who_spins_looks_until_there_is_something_or_the_time_is_over() {
        for deadline in [Deadline::Forever, Deadline::At(u64::MAX)] {
            assert_eq!(looks(Spin { ns: HOUR_NS }, deadline, 1_000), (Some(1_000), 1_000));
        }
        assert_eq!(looks(Spin { ns: 1 }, Deadline::Forever, u32::MAX), (None, LOOKS));
        assert_eq!(looks(Spin { ns: HOUR_NS }, Deadline::At(1), u32::MAX), (None, LOOKS), "the deadline is earlier");
        assert_eq!(looks(Spin { ns: 1 }, Deadline::At(u64::MAX), u32::MAX), (None, LOOKS), "so is the spinning's end");
    }
}

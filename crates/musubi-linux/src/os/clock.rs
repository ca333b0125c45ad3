//! Time: the monotonic clock that all processes of one kernel read alike, and deadlines on it.
//!
//! What you may rely on: [`Deadline`] is an instant, so a call made of several steps keeps it as a whole.
//!
//! What it does not do: cross kernels, or count time in suspend.

use std::time::Duration;

use musubi_core::port::Clock;
use rustix::time::{ClockId, Timespec, clock_gettime};

/// `CLOCK_MONOTONIC`.
#[derive(Clone, Copy, Debug, Default)]
pub struct MonotonicClock;

impl Clock for MonotonicClock {
    #[inline]
    fn now_ns(&self) -> u64 {
        now_ns()
    }
}

/// Nanoseconds of `CLOCK_MONOTONIC`.
#[inline]
pub fn now_ns() -> u64 {
    nanoseconds(clock_gettime(ClockId::Monotonic))
}

/// Nanoseconds of `CLOCK_BOOTTIME`, which also counts suspend, so that epochs differ over it.
pub(crate) fn boot_ns() -> u64 {
    nanoseconds(clock_gettime(ClockId::Boottime))
}

fn nanoseconds(time: Timespec) -> u64 {
    (time.tv_sec as u64).wrapping_mul(1_000_000_000).wrapping_add(time.tv_nsec as u64)
}

/// The instant `ns` for a system call.
pub(crate) fn timespec(ns: u64) -> Timespec {
    Timespec { tv_sec: (ns / 1_000_000_000) as i64, tv_nsec: (ns % 1_000_000_000) as _ }
}

/// How long a call may wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deadline {
    /// Not at all.
    Poll,
    /// Until this instant of [`now_ns`], in nanoseconds.
    At(u64),
    /// As long as it takes.
    Forever,
}

impl From<musubi_core::channel::Deadline> for Deadline {
    fn from(deadline: musubi_core::channel::Deadline) -> Deadline {
        match deadline {
            musubi_core::channel::Deadline::Poll => Deadline::Poll,
            musubi_core::channel::Deadline::At(ns) => Deadline::At(ns),
            musubi_core::channel::Deadline::Forever => Deadline::Forever,
        }
    }
}

impl From<Deadline> for musubi_core::channel::Deadline {
    fn from(deadline: Deadline) -> Self {
        match deadline {
            Deadline::Poll => musubi_core::channel::Deadline::Poll,
            Deadline::At(ns) => musubi_core::channel::Deadline::At(ns),
            Deadline::Forever => musubi_core::channel::Deadline::Forever,
        }
    }
}

impl Deadline {
    /// The instant `duration` from now.
    pub fn after(duration: Duration) -> Deadline {
        let ns = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        Deadline::At(now_ns().saturating_add(ns))
    }

    /// Whether the time is over.
    #[inline]
    pub fn passed(self) -> bool {
        self.left_ns() == Some(0)
    }

    /// Nanoseconds left; `None` if there is no end.
    #[inline]
    pub fn left_ns(self) -> Option<u64> {
        match self {
            Deadline::Poll => Some(0),
            Deadline::At(ns) => Some(ns.saturating_sub(now_ns())),
            Deadline::Forever => None,
        }
    }

    /// The earlier of this deadline and the instant `ns` from now.
    pub fn within_ns(self, ns: u64) -> Deadline {
        match self {
            Deadline::Poll => Deadline::Poll,
            Deadline::At(at) => Deadline::At(at.min(now_ns().saturating_add(ns))),
            Deadline::Forever => Deadline::At(now_ns().saturating_add(ns)),
        }
    }
}

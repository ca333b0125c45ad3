//! Time: the monotonic clock that all processes of one kernel read alike, and deadlines on it.
//!
//! What you may rely on: a [`Deadline`] is an instant, so a call made of several steps keeps it as a whole.
//!
//! What it does not do: cross kernels, or count time in suspend.

use std::time::Duration;

use musubi_core::port::Clock;
pub use musubi_core::port::Deadline;
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

/// A [`Deadline`] by this clock.
pub trait DeadlineExt: Sized {
    /// The instant `duration` from now.
    fn after(duration: Duration) -> Self;

    /// Whether the time is over.
    fn passed(self) -> bool;

    /// Nanoseconds left; `None` if there is no end.
    fn left_ns(self) -> Option<u64>;

    /// The earlier of this deadline and the instant `ns` from now.
    fn within_ns(self, ns: u64) -> Self;
}

impl DeadlineExt for Deadline {
    fn after(duration: Duration) -> Deadline {
        let ns = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        Deadline::At(now_ns().saturating_add(ns))
    }

    #[inline]
    fn passed(self) -> bool {
        self.left_ns() == Some(0)
    }

    #[inline]
    fn left_ns(self) -> Option<u64> {
        match self {
            Deadline::Poll => Some(0),
            Deadline::At(ns) => Some(ns.saturating_sub(now_ns())),
            Deadline::Forever => None,
        }
    }

    fn within_ns(self, ns: u64) -> Deadline {
        match self {
            Deadline::Poll => Deadline::Poll,
            Deadline::At(at) => Deadline::At(at.min(now_ns().saturating_add(ns))),
            Deadline::Forever => Deadline::At(now_ns().saturating_add(ns)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_secs(3600);
    const HOUR_NS: u64 = 3_600_000_000_000;

    #[test]
    fn an_instant_is_seconds_and_nanoseconds() {
        for ns in [0, 1, 999_999_999, 1_000_000_000, 7_000_000_123] {
            let time = timespec(ns);
            assert_eq!((time.tv_sec as u64, time.tv_nsec as u64), (ns / 1_000_000_000, ns % 1_000_000_000));
            assert_eq!(nanoseconds(time), ns);
        }
    }

    #[test]
    fn the_clock_goes_on_and_the_one_that_counts_suspend_is_not_behind() {
        let before = now_ns();
        assert!(before > 0 && MonotonicClock.now_ns() >= before);
        assert!(boot_ns() >= before);
    }

    #[test]
    fn a_deadline_has_a_time_left_or_none_or_no_end() {
        let left = Deadline::after(HOUR).left_ns().unwrap();
        assert!((HOUR_NS / 2..=HOUR_NS).contains(&left), "{left}");
        assert_eq!(
            (Deadline::Poll.left_ns(), Deadline::At(1).left_ns(), Deadline::Forever.left_ns()),
            (Some(0), Some(0), None)
        );
        assert!(Deadline::Poll.passed() && Deadline::At(1).passed());
        assert!(!Deadline::after(HOUR).passed() && !Deadline::Forever.passed());
        assert_eq!(Deadline::after(Duration::MAX), Deadline::At(u64::MAX));
    }

    #[test]
    fn the_earlier_of_two_ends_is_kept() {
        let within = |deadline: Deadline, ns| deadline.within_ns(ns);
        assert_eq!((within(Deadline::Poll, 9), within(Deadline::At(1), HOUR_NS)), (Deadline::Poll, Deadline::At(1)));
        for deadline in [Deadline::Forever, Deadline::At(u64::MAX)] {
            let left = within(deadline, HOUR_NS).left_ns().unwrap();
            assert!((HOUR_NS / 2..=HOUR_NS).contains(&left), "{left}");
        }
    }
}

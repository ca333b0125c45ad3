//! The late timer: raises a notification that a filter held back, when its latest time has come.
//!
//! What you may rely on: arming costs one atomic operation if an earlier or equal time is armed for the end already,
//! else at most a few system calls; a timer armed is never lost to a race with its expiry.
//!
//! How it works: one timerfd for all ends of a participant, set for the earliest. Whoever lowers the earliest time sets
//! the timer and looks again whether somebody lowered it further meanwhile.

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::time::{Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, timerfd_create, timerfd_settime};

use crate::error::{Error, Tried};
use crate::os::clock::timespec;
use crate::os::descriptor::Descriptor;

/// No time.
const NEVER: u64 = u64::MAX;

/// When one end is due.
#[derive(Debug)]
pub(crate) struct LateTime(AtomicU64);

impl LateTime {
    pub(crate) fn new() -> LateTime {
        LateTime(AtomicU64::new(NEVER))
    }

    pub(crate) fn disarm(&self) {
        self.0.store(NEVER, Ordering::SeqCst);
    }

    pub(crate) fn is_armed(&self) -> bool {
        self.0.load(Ordering::SeqCst) != NEVER
    }

    /// Takes the time if it has come: `Ok(true)` if so, `Err(when)` if it lies ahead.
    fn take_due(&self, now_ns: u64) -> Result<bool, u64> {
        let at_ns = self.0.load(Ordering::SeqCst);
        match at_ns {
            NEVER => Ok(false),
            ahead if ahead > now_ns => Err(ahead),
            due => Ok(self.0.compare_exchange(due, NEVER, Ordering::SeqCst, Ordering::SeqCst).is_ok()),
        }
    }
}

/// The participant's timer.
#[derive(Debug)]
pub(crate) struct LateTimer {
    fd: Descriptor,
    earliest_ns: AtomicU64,
}

impl LateTimer {
    pub(crate) fn new() -> Result<LateTimer, Error> {
        let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
        let fd = timerfd_create(TimerfdClockId::Monotonic, flags).tried("creating a timer (timerfd_create)")?;
        let never = Itimerspec { it_interval: timespec(0), it_value: timespec(0) };
        timerfd_settime(&fd, TimerfdTimerFlags::ABSTIME, &never).tried("setting a timer (timerfd_settime)")?;
        Ok(LateTimer { fd: fd.into(), earliest_ns: AtomicU64::new(NEVER) })
    }

    /// Makes the end due at `at_ns` unless it is due earlier.
    #[inline]
    pub(crate) fn arm(&self, end: &LateTime, at_ns: u64) {
        let at_ns = at_ns.clamp(1, NEVER - 1);
        if end.0.load(Ordering::SeqCst) <= at_ns {
            return;
        }
        end.0.fetch_min(at_ns, Ordering::SeqCst);
        self.arm_by(at_ns);
    }

    /// Makes the timer fire at `at_ns` or earlier.
    fn arm_by(&self, at_ns: u64) {
        if self.earliest_ns.fetch_min(at_ns, Ordering::SeqCst) <= at_ns {
            return;
        }
        let mut at_ns = at_ns;
        loop {
            self.set(at_ns);
            let earliest_ns = self.earliest_ns.load(Ordering::SeqCst);
            if earliest_ns >= at_ns {
                return;
            }
            at_ns = earliest_ns;
        }
    }

    fn set(&self, at_ns: u64) {
        let once = Itimerspec { it_interval: timespec(0), it_value: timespec(at_ns) };
        // Fails for arguments out of range only, which these are not.
        let _ = timerfd_settime(&self.fd, TimerfdTimerFlags::ABSTIME, &once);
    }

    /// First step after the timer fired, before the ends are listed: from now on whoever arms an end sets the timer.
    pub(crate) fn fired(&self) {
        let mut count = [0; 8];
        let _ = rustix::io::read(&self.fd, &mut count);
        self.earliest_ns.store(NEVER, Ordering::SeqCst);
    }

    /// Second step: takes which of `ends` are due, and arms for the others.
    pub(crate) fn expired<'a, T>(&self, now_ns: u64, ends: impl Iterator<Item = (&'a LateTime, T)>) -> Vec<T> {
        let mut due = Vec::new();
        for (time, end) in ends {
            match time.take_due(now_ns) {
                Ok(true) => due.push(end),
                Ok(false) => (),
                Err(ahead_ns) => self.arm_by(ahead_ns),
            }
        }
        due
    }
}

impl AsFd for LateTimer {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use rustix::event::{PollFd, PollFlags, poll};

    use super::*;
    use crate::os::clock::now_ns;

    const HOUR_NS: u64 = 3_600_000_000_000;

    /// Whether the timer fires within a time that is long for one that is due, or at once for one that is not.
    fn fires(timer: &LateTimer, within: Duration) -> bool {
        let mut fds = [PollFd::new(timer, PollFlags::IN)];
        poll(&mut fds, Some(&timespec(within.as_nanos() as u64))).unwrap() > 0
    }

    fn due(timer: &LateTimer, now_ns: u64, ends: &[&LateTime]) -> Vec<usize> {
        timer.expired(now_ns, ends.iter().copied().zip(0..))
    }

    #[test]
    fn an_end_is_due_once_at_its_earliest_time() {
        let (timer, end) = (LateTimer::new().unwrap(), LateTime::new());
        assert!(!end.is_armed());
        for at_ns in [2_000, 1_000, 3_000] {
            timer.arm(&end, at_ns);
        }
        assert!(end.is_armed());
        assert_eq!(due(&timer, 999, &[&end]), []);
        assert_eq!(due(&timer, 1_000, &[&end]), [0]);
        assert!(!end.is_armed());
        assert_eq!(due(&timer, 9_000, &[&end]), [], "once");
        timer.arm(&end, 4_000);
        end.disarm();
        assert_eq!((end.is_armed(), due(&timer, 9_000, &[&end])), (false, vec![]));
        for border in [0, u64::MAX] {
            timer.arm(&end, border);
            assert!(end.is_armed(), "{border} is a time");
            end.disarm();
        }
    }

    #[test]
    fn those_that_are_due_are_named_and_the_timer_is_set_for_the_others() {
        let timer = LateTimer::new().unwrap();
        let [first, never, second] = [(); 3].map(|()| LateTime::new());
        timer.arm(&second, now_ns() + HOUR_NS);
        assert!(!fires(&timer, Duration::ZERO), "in an hour");
        timer.arm(&first, now_ns());
        assert!(fires(&timer, Duration::from_secs(30)), "the earlier one counts");
        timer.fired();
        assert!(!fires(&timer, Duration::ZERO), "it was heard");
        assert_eq!(due(&timer, now_ns(), &[&first, &never, &second]), [0]);
        assert_eq!(timer.earliest_ns.load(Ordering::SeqCst), second.0.load(Ordering::SeqCst));
        timer.fired();
        timer.arm(&first, now_ns() + 1_000_000);
        assert!(fires(&timer, Duration::from_secs(30)), "armed anew");
    }
}

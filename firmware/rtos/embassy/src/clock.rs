//! `embassy_time`'s clock: microseconds of the board's, and its alarm.
//!
//! What you may rely on: a waker is woken at its time or, if more than [`TIMERS_MAX`] wait, earlier: whoever is woken too
//! early looks and asks again.
//!
//! How it works: a small table that is searched. The loop of [`crate::run`] asks it when it may sleep until, and wakes
//! what is due.

use core::cell::RefCell;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, Ordering};
use core::task::Waker;

use critical_section::Mutex;
use embassy_time_driver::Driver;
use musubi_metal::board::Board;

/// Most timers that run at once without being asked again and again.
pub const TIMERS_MAX: usize = 16;
/// Nanoseconds of a tick of `embassy_time`.
const TICK_NS: u64 = 1_000_000_000 / embassy_time_driver::TICK_HZ;

/// When a waker is due, in nanoseconds, and the waker.
type Timer = Option<(u64, Waker)>;

struct Clock {
    /// The board's `now_ns`, or null before [`begin`].
    now_ns: AtomicPtr<()>,
    timers: Mutex<RefCell<[Timer; TIMERS_MAX]>>,
}

embassy_time_driver::time_driver_impl!(static CLOCK: Clock = Clock {
    now_ns: AtomicPtr::new(null_mut()),
    timers: Mutex::new(RefCell::new([const { None }; TIMERS_MAX])),
});

impl Clock {
    fn now_ns(&self) -> u64 {
        let now_ns = self.now_ns.load(Ordering::Acquire);
        // SAFETY: only `begin` stores here: null, which is `None`, or a function of this very type.
        let now_ns = unsafe { core::mem::transmute::<*mut (), Option<fn() -> u64>>(now_ns) };
        now_ns.map_or(0, |now_ns| now_ns())
    }
}

impl Driver for Clock {
    fn now(&self) -> u64 {
        self.now_ns() / TICK_NS
    }

    fn schedule_wake(&self, at: u64, waker: &Waker) {
        let at_ns = at.saturating_mul(TICK_NS);
        let is_kept = critical_section::with(|section| {
            let mut timers = self.timers.borrow_ref_mut(section);
            let known = timers.iter().position(|timer| timer.as_ref().is_some_and(|(_, other)| other.will_wake(waker)));
            let Some(place) = known.or_else(|| timers.iter().position(Option::is_none)) else { return false };
            let at_ns = timers[place].as_ref().map_or(at_ns, |(earlier_ns, _)| at_ns.min(*earlier_ns));
            timers[place] = Some((at_ns, waker.clone()));
            true
        });
        if !is_kept {
            waker.wake_by_ref();
        }
    }
}

/// From now on the clock is the board's.
pub(crate) fn begin<B: Board>() {
    CLOCK.now_ns.store(B::now_ns as fn() -> u64 as *mut (), Ordering::Release);
}

/// The board's alarm has gone off. That it ended the sleep is all that is wanted of it.
pub(crate) fn alarm() {}

/// When the next timer is due; `u64::MAX`: none runs.
pub(crate) fn next_ns() -> u64 {
    critical_section::with(|section| {
        let timers = CLOCK.timers.borrow_ref(section);
        timers.iter().flatten().map(|(at_ns, _)| *at_ns).min().unwrap_or(u64::MAX)
    })
}

/// Wakes what is due.
pub(crate) fn wake_due() {
    let now_ns = CLOCK.now_ns();
    for place in 0..TIMERS_MAX {
        let due = critical_section::with(|section| {
            let mut timers = CLOCK.timers.borrow_ref_mut(section);
            timers[place].take_if(|(at_ns, _)| *at_ns <= now_ns)
        });
        if let Some((_, waker)) = due {
            waker.wake();
        }
    }
}

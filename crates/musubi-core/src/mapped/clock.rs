//! The common time of participants whose hosts have clocks of their own.
//!
//! What you may rely on: the estimate is never later than the Master's clock, and earlier by at most the time between two
//! beats of ours, the drift of two windows, and the time that a store takes to be seen.
//!
//! How it works: the Master's heartbeat carries its time. Read at local time t, a stamp s shows that the Master's clock
//! is ahead by at least s - t, less by the age of the stamp; the largest of these is the best (a minimum filter over the
//! delay, as in NTP's clock filter, RFC 5905 section 10). Because crystals differ, only two windows of stamps count.
//!
//! What it does not do: steer. The estimate steps back when a window with a larger one ends, by the drift of a window;
//! what is timed by it (filter, regulator) takes a step back for standing still.

use super::stamp;
use crate::guarantee::SPAN_NS_MAX;
use crate::sync::AtomicU32;
use crate::words::OwnWords;

/// Heartbeats of the Master in a window.
const WINDOW: u32 = 32;

/// How far the Master's clock is ahead of ours, as all our threads read it.
#[derive(Debug)]
pub(super) struct Offset([AtomicU32; stamp::WORDS as usize]);

impl Offset {
    pub fn new() -> Offset {
        Offset(core::array::from_fn(|_| AtomicU32::new(0)))
    }

    fn words(&self) -> OwnWords<'_> {
        // SAFETY: the words are ours and live as long as `self`; who stores through the view holds the watch's latch.
        unsafe { OwnWords::new(self.0.as_ptr().cast_mut().cast(), stamp::WORDS) }
    }

    /// Nanoseconds to add, wrapping; 0 until the Master was seen.
    pub fn get(&self) -> u64 {
        stamp::see(self.words().as_peer()).map_or(0, |(_, offset)| offset)
    }

    /// Called by who holds the watch's latch.
    pub fn set(&self, offset: u64) {
        if self.get() != offset {
            stamp::publish(&self.words(), offset);
        }
    }
}

/// The estimate.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Estimate {
    epoch: u32,
    beat: u32,
    stamps: u32,
    window: Option<u64>,
    former: Option<u64>,
}

impl Estimate {
    /// Takes a heartbeat of the Master's incarnation in; gives the offset if there is one.
    pub fn take(&mut self, epoch: u32, (beat, stamp_ns): (u32, u64), now_ns: u64) -> Option<u64> {
        if epoch != self.epoch {
            // Another incarnation may have another clock.
            *self = Estimate { epoch, beat: beat.wrapping_sub(1), ..Estimate::default() };
        }
        if beat != self.beat {
            self.beat = beat;
            self.stamps += 1;
            self.window = Some(larger(self.window, stamp_ns.wrapping_sub(now_ns)));
            if self.stamps == WINDOW {
                self.stamps = 0;
                self.former = self.window.take();
            }
        }
        match (self.window, self.former) {
            (Some(window), former) => Some(larger(former, window)),
            (None, former) => former,
        }
    }
}

/// The larger of two offsets, which are differences modulo 2^64.
fn larger(one: Option<u64>, other: u64) -> u64 {
    match one {
        Some(one) if other.wrapping_sub(one) > SPAN_NS_MAX => one,
        _ => other,
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    /// The Master's clock runs ahead by `OFFSET`; each stamp is seen after a delay.
    const OFFSET: u64 = 5_000_000_000;

    fn after(delays: &[u64]) -> u64 {
        let mut estimate = Estimate::default();
        let mut offset = None;
        for (beat, delay) in (1..).zip(delays) {
            let now_ns = u64::from(beat) * 100_000;
            offset = estimate.take(7, (beat, now_ns + OFFSET - delay), now_ns);
        }
        offset.unwrap()
    }

    #[test]
    fn the_least_delay_counts() {
        assert_eq!(after(&[900, 300, 20, 700]), OFFSET - 20);
    }

    #[test]
    fn old_windows_are_forgotten() {
        let mut delays = [500; 3 * WINDOW as usize];
        delays[0] = 0;
        assert_eq!(after(&delays[..WINDOW as usize + 1]), OFFSET);
        assert_eq!(after(&delays), OFFSET - 500);
    }

    #[test]
    fn a_clock_behind_ours_is_as_good() {
        let mut estimate = Estimate::default();
        assert_eq!(estimate.take(1, (1, 50), 1_000), Some(50u64.wrapping_sub(1_000)));
        assert_eq!(estimate.take(1, (2, 260), 1_200), Some(260u64.wrapping_sub(1_200)));
        assert_eq!(estimate.take(1, (2, 999), 1_300), Some(260u64.wrapping_sub(1_200)), "the same beat counts once");
        assert_eq!(estimate.take(2, (2, 100), 1_400), Some(100u64.wrapping_sub(1_400)), "another clock begins anew");
    }

    #[test]
    fn the_first_beat_counts_whatever_its_number_is() {
        for beat in [0, 1, u32::MAX] {
            assert_eq!(Estimate::default().take(1, (beat, 1_050), 1_000), Some(50), "{beat}");
        }
    }

    #[test]
    fn an_offset_is_larger_by_up_to_half_of_all_times() {
        for (other, found) in [(0, 0), (1, 1), (SPAN_NS_MAX, SPAN_NS_MAX), (SPAN_NS_MAX + 1, 0), (u64::MAX, 0)] {
            assert_eq!((larger(Some(0), other), larger(None, other)), (found, other));
        }
    }

    #[test]
    fn an_offset_is_what_was_set_last() {
        let offset = Offset::new();
        assert_eq!(offset.get(), 0);
        for set in [7, 7, u64::MAX, 0x5_0000_0001, 0] {
            offset.set(set);
            assert_eq!(offset.get(), set);
        }
    }
}

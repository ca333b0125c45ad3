//! Regulator: token buckets that bound a channel's messages and bytes (seed 001 regulation; seed 004 bandwidth control).
//!
//! What you may rely on: over any window of `T` nanoseconds at most `rate * T / 10^9 + max(burst, largest admitted)`
//! units pass, exactly, with no drift over any number of calls; no fraction of a token is lost while the bucket is not
//! full. A refusal changes nothing and names the least time after which the same message is admitted, if nothing else
//! was admitted in between.
//!
//! How it works: each bucket keeps what is *missing* from full, in billionths of a unit, so that a rate in units a second
//! is a whole number of them a nanosecond: time only multiplies and subtracts, and nothing is rounded. A message passes
//! both buckets or none. One that is larger than the burst waits until the bucket is full, then passes and leaves a
//! debt, so it is not stuck for ever and the average rate still holds; a burst of 0 admits one message at a time.
//!
//! What it does not do: queue or wait. The caller tries again after `retry_ns`.

use super::{SPAN_NS_MAX, elapsed_ns};
use crate::plan::Regulation;

/// Parts of a unit that a bucket counts in: a rate of one unit a second gives one such part a nanosecond.
const PARTS: u128 = 1_000_000_000;

/// The regulator of one channel end. Its buckets start full.
#[derive(Clone, Debug)]
pub struct Regulator {
    /// [`Regulation::is_none`] of the rule, so that the usual case is one test.
    none: bool,
    messages: Bucket,
    bytes: Bucket,
    /// When the buckets were last filled.
    filled_at_ns: Option<u64>,
}

/// One token bucket. All amounts are in billionths of a unit; the largest stay below 2^95.
#[derive(Clone, Debug)]
struct Bucket {
    /// Units a second, which is parts a nanosecond; 0 is no bound.
    rate: u64,
    burst: u128,
    /// What is missing from full; above `burst` it is a debt.
    missing: u128,
}

impl Regulator {
    /// A regulator whose buckets are full.
    pub const fn new(regulation: Regulation) -> Self {
        Regulator {
            none: regulation.is_none(),
            messages: Bucket::full(regulation.messages_per_s as u64, regulation.messages_burst as u64),
            bytes: Bucket::full(regulation.bytes_per_s, regulation.bytes_burst),
            filled_at_ns: None,
        }
    }

    /// Whether nothing is bounded, so that the caller needs no time.
    #[inline]
    pub const fn is_none(&self) -> bool {
        self.none
    }

    /// Takes one message of `bytes` bytes out of both buckets, or nothing.
    ///
    /// # Errors
    /// The time after which this message is admitted, in nanoseconds, at least 1, at most [`SPAN_NS_MAX`].
    #[inline]
    pub fn admit(&mut self, now_ns: u64, bytes: u32) -> Result<(), u64> {
        if self.none { Ok(()) } else { self.weigh(now_ns, bytes) }
    }

    /// Takes as many messages and bytes as there are, up to these; gives how many of each. What is not bounded is there.
    pub fn draw(&mut self, now_ns: u64, messages: u32, bytes: u32) -> (u32, u32) {
        if self.none {
            return (messages, bytes);
        }
        self.fill(now_ns);
        (self.messages.draw(messages), self.bytes.draw(bytes))
    }

    fn weigh(&mut self, now_ns: u64, bytes: u32) -> Result<(), u64> {
        self.fill(now_ns);
        let retry_ns = self.messages.retry_ns(1).max(self.bytes.retry_ns(bytes));
        if retry_ns > 0 {
            return Err(retry_ns);
        }
        self.messages.take(1);
        self.bytes.take(bytes);
        Ok(())
    }

    fn fill(&mut self, now_ns: u64) {
        let filled_at_ns = *self.filled_at_ns.get_or_insert(now_ns);
        let elapsed_ns = elapsed_ns(filled_at_ns, now_ns);
        if elapsed_ns > 0 {
            self.messages.fill(elapsed_ns);
            self.bytes.fill(elapsed_ns);
            // Not when the clock went back: the same time must not count twice.
            self.filled_at_ns = Some(now_ns);
        }
    }
}

impl Bucket {
    const fn full(rate: u64, burst: u64) -> Self {
        Bucket { rate, burst: burst as u128 * PARTS, missing: 0 }
    }

    fn fill(&mut self, elapsed_ns: u64) {
        self.missing = self.missing.saturating_sub(u128::from(elapsed_ns) * u128::from(self.rate));
    }

    /// Time until `units` are admitted; 0 if they are now.
    fn retry_ns(&self, units: u32) -> u64 {
        let needed = (u128::from(units) * PARTS).min(self.burst);
        let lacking = (self.missing + needed).saturating_sub(self.burst);
        if self.rate == 0 || lacking == 0 {
            return 0;
        }
        let wait_ns = lacking.div_ceil(u128::from(self.rate));
        u64::try_from(wait_ns).unwrap_or(SPAN_NS_MAX).min(SPAN_NS_MAX)
    }

    /// Takes whole units, up to so many; gives how many.
    fn draw(&mut self, units: u32) -> u32 {
        if self.rate == 0 {
            return units;
        }
        let there = (self.burst.saturating_sub(self.missing) / PARTS).min(u128::from(units)) as u32;
        self.take(there);
        there
    }

    fn take(&mut self, units: u32) {
        if self.rate > 0 {
            self.missing += u128::from(units) * PARTS;
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::super::tests::{cases, length};
    use super::*;
    use proptest::prelude::*;
    use std::vec::Vec;

    const SECOND: u64 = 1_000_000_000;

    #[test]
    fn no_bound_is_no_bound() {
        let mut regulator = Regulator::new(Regulation::NONE);
        assert!((0..1_000).all(|_| regulator.admit(0, u32::MAX).is_ok()));
    }

    #[test]
    fn a_burst_then_the_rate() {
        let rule = Regulation { messages_per_s: 1_000, messages_burst: 3, ..Regulation::NONE };
        let mut regulator = Regulator::new(rule);
        assert!((0..3).all(|_| regulator.admit(7, 1_000_000).is_ok()));
        assert_eq!(regulator.admit(7, 0), Err(1_000_000));
        assert_eq!(regulator.admit(1_000_006, 0), Err(1));
        assert_eq!(regulator.admit(1_000_007, 0), Ok(()));
        assert_eq!(regulator.admit(1_000_007, 0), Err(1_000_000));
    }

    #[test]
    fn what_is_drawn_is_there_and_no_more() {
        let rule = Regulation { messages_per_s: 1_000, messages_burst: 3, bytes_per_s: 10, bytes_burst: 100 };
        let mut regulator = Regulator::new(rule);
        assert_eq!([(2, 50), (2, 60), (2, 60)].map(|(m, b)| regulator.draw(7, m, b)), [(2, 50), (1, 50), (0, 0)]);
        assert_eq!(regulator.draw(7 + SECOND / 10, 200, 200), (3, 1));
        assert_eq!(regulator.draw(7 + SECOND / 5 - 1, 0, 200), (0, 0), "not a part of a unit");
        assert_eq!(regulator.draw(7 + SECOND / 5, 0, 200), (0, 1));
        assert_eq!(regulator.draw(7 + 1_000 * SECOND, 9, 200), (3, 100));
        let mut unbounded = Regulator::new(Regulation { bytes_per_s: 0, bytes_burst: 0, ..rule });
        assert_eq!(unbounded.draw(0, 9, 200), (3, 200));
        assert_eq!(Regulator::new(Regulation::NONE).draw(0, 9, 200), (9, 200));
    }

    #[test]
    fn a_message_passes_both_buckets_or_none() {
        let rule = Regulation { messages_per_s: 1, messages_burst: 2, bytes_per_s: 100, bytes_burst: 100 };
        let mut regulator = Regulator::new(rule);
        assert_eq!(regulator.admit(0, 100), Ok(()));
        assert_eq!(regulator.admit(0, 100), Err(SECOND), "no bytes");
        assert_eq!(regulator.admit(0, 0), Ok(()), "the refusal above cost no message");
        assert_eq!(regulator.admit(0, 0), Err(SECOND), "no message");
        assert_eq!(regulator.admit(SECOND, 100), Ok(()), "the refusal above cost no byte");
    }

    #[test]
    fn a_message_above_the_burst_waits_for_a_full_bucket_and_leaves_a_debt() {
        let rule = Regulation { bytes_per_s: 100, bytes_burst: 100, ..Regulation::NONE };
        let mut regulator = Regulator::new(rule);
        assert_eq!(regulator.admit(0, 1), Ok(()));
        assert_eq!(regulator.admit(0, 300), Err(SECOND / 100));
        assert_eq!(regulator.admit(SECOND / 100, 300), Ok(()));
        assert_eq!(regulator.admit(SECOND / 100, 1), Err(2 * SECOND + SECOND / 100));
    }

    #[test]
    fn a_burst_of_zero_admits_one_at_a_time() {
        let mut regulator = Regulator::new(Regulation { messages_per_s: 10, ..Regulation::NONE });
        assert_eq!(regulator.admit(0, 0), Ok(()));
        assert_eq!(regulator.admit(0, 0), Err(SECOND / 10));
        assert_eq!(regulator.admit(SECOND / 10, 0), Ok(()));
    }

    #[test]
    fn a_step_back_gives_no_time_twice() {
        let mut regulator = Regulator::new(Regulation { messages_per_s: 1, messages_burst: 1, ..Regulation::NONE });
        assert_eq!(regulator.admit(10 * SECOND, 0), Ok(()));
        assert_eq!(regulator.admit(9 * SECOND, 0), Err(SECOND));
        assert_eq!(regulator.admit(10 * SECOND, 0), Err(SECOND));
        assert_eq!(regulator.admit(11 * SECOND, 0), Ok(()));
    }

    /// A rate with a period that is no whole number of nanoseconds keeps its average to the message.
    #[test]
    fn fractions_are_kept() {
        let rate = 3_333_333;
        let mut regulator = Regulator::new(Regulation { messages_per_s: rate, messages_burst: 2, ..Regulation::NONE });
        let (mut now, mut admitted) = (0, 0u64);
        let until = if cfg!(miri) { SECOND / 10_000 } else { SECOND };
        while now < until {
            match regulator.admit(now, 0) {
                Ok(()) => admitted += 1,
                Err(retry_ns) => now += retry_ns.min(until - now),
            }
        }
        assert_eq!(admitted, u64::from(rate) * (until - 1) / SECOND + 2);
    }

    fn rates() -> impl Strategy<Value = u64> {
        prop_oneof![1 => Just(0u64), 4 => 1..5_000u64, 4 => 1..4_000_000_000u64, 1 => any::<u64>()]
    }

    fn rules() -> impl Strategy<Value = Regulation> {
        let burst = prop_oneof![Just(0u64), 0..5_000u64, any::<u64>()];
        (rates(), 0..50u32, rates(), burst).prop_map(|(messages, messages_burst, bytes_per_s, bytes_burst)| {
            Regulation { messages_per_s: messages as u32, messages_burst, bytes_per_s, bytes_burst }
        })
    }

    fn traffic() -> impl Strategy<Value = Vec<(u64, u32)>> {
        let pause = prop_oneof![3 => Just(0u64), 3 => 0..2_000u64, 2 => 0..3_000_000_000u64, 1 => 0..1u64 << 60];
        let bytes = prop_oneof![3 => 0..6_000u32, 1 => any::<u32>()];
        prop::collection::vec((pause, bytes), 1..length(60))
    }

    /// Checks `rate * T + max(burst, largest)` over every window that begins and ends with an admitted message.
    fn windows_hold(admitted: &[(u128, u64)], rate: u64, burst: u64) -> bool {
        rate == 0
            || (0..admitted.len()).all(|first| {
                let (mut sum, mut largest) = (0u128, u128::from(burst));
                admitted[first..].iter().all(|&(at, units)| {
                    sum += u128::from(units);
                    largest = largest.max(units.into());
                    sum * PARTS <= (at - admitted[first].0) * u128::from(rate) + largest * PARTS
                })
            })
    }

    proptest! {
        #![proptest_config(cases(400))]

        /// The bound holds over every window; the named time is exact; the clock may wrap.
        #[test]
        fn the_bound_and_the_retry_are_exact(rule in rules(), traffic in traffic(), start: u64) {
            let mut regulator = Regulator::new(rule);
            let (mut now, mut messages, mut bytes) = (0u128, Vec::new(), Vec::new());
            for (pause, size) in traffic {
                now += u128::from(pause);
                let clock = start.wrapping_add(now as u64);
                let verdict = regulator.admit(clock, size);
                if let Err(retry_ns) = verdict {
                    prop_assert!((1..=SPAN_NS_MAX).contains(&retry_ns));
                    let mut early = regulator.clone();
                    prop_assert!(early.admit(clock.wrapping_add(retry_ns - 1), size).is_err());
                    if retry_ns == SPAN_NS_MAX {
                        break;
                    }
                    let mut late = regulator.clone();
                    prop_assert_eq!(late.admit(clock.wrapping_add(retry_ns), size), Ok(()));
                    prop_assert_eq!(early.admit(clock.wrapping_add(retry_ns), size), Ok(()), "asking early costs nothing");
                } else {
                    messages.push((now, 1));
                    bytes.push((now, size.into()));
                }
            }
            prop_assert!(windows_hold(&messages, rule.messages_per_s.into(), rule.messages_burst.into()));
            prop_assert!(windows_hold(&bytes, rule.bytes_per_s, rule.bytes_burst));
        }

        /// Asking often gives the same as asking seldom: no fraction is lost on the way.
        #[test]
        fn asking_does_not_cost(rule in rules(), asks in prop::collection::vec(0..1_000_000u64, 1..length(80)), size: u32) {
            let mut often = Regulator::new(rule);
            let drained = (0..100).all(|_| often.admit(0, size).is_ok());
            prop_assert!(!drained || often.messages.missing <= 100 * PARTS);
            let mut seldom = often.clone();
            let mut now = 0;
            for pause in asks {
                now += pause;
                often.fill(now);
            }
            prop_assert_eq!(often.admit(now, size), seldom.admit(now, size));
            prop_assert_eq!(often.bytes.missing, seldom.bytes.missing);
            prop_assert_eq!(often.messages.missing, seldom.messages.missing);
        }

        /// No time, however far back or ahead, panics.
        #[test]
        fn any_time_is_survived(rule in rules(), asks in prop::collection::vec(any::<(u64, u32)>(), 0..length(60))) {
            let mut regulator = Regulator::new(rule);
            for (now, size) in asks {
                let _ = regulator.admit(now, size);
            }
        }
    }
}

//! The rate of a counter as a fraction: nanoseconds for ticks, without rounding a tick to whole nanoseconds.
//!
//! What you may rely on: [`Rate::ns`] and [`Rate::ticks`] err by less than a nanosecond or a tick, however long the counter has
//! run; an instant in ticks is never earlier than the one in nanoseconds. Nothing overflows before the time fills 64 bits.
//!
//! How it works: a tick of 396 MHz is 250/99 ns; the fraction is reduced once, and whole groups of ticks (99 there) are
//! counted apart from the rest, so no product is larger than the result. One division of 64 bits.

/// Nanoseconds in a second.
const NS_PER_S: u32 = 1_000_000_000;

/// So many nanoseconds are so many ticks, in lowest terms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    ns: u32,
    ticks: u32,
}

impl Rate {
    /// The rate of a counter with so many ticks a second; 0 counts as 1.
    pub const fn of_hz(hz: u32) -> Self {
        let hz = if hz == 0 { 1 } else { hz };
        let (mut a, mut b) = (NS_PER_S, hz);
        while b != 0 {
            (a, b) = (b, a % b);
        }
        Self { ns: NS_PER_S / a, ticks: hz / a }
    }

    /// Nanoseconds that these ticks are, rounded down.
    pub const fn ns(self, ticks: u64) -> u64 {
        let (groups, rest) = (ticks / self.ticks as u64, ticks % self.ticks as u64);
        groups * self.ns as u64 + rest * self.ns as u64 / self.ticks as u64
    }

    /// The first tick by which so many nanoseconds have passed.
    pub const fn ticks(self, ns: u64) -> u64 {
        let (groups, rest) = (ns / self.ns as u64, ns % self.ns as u64);
        groups * self.ticks as u64 + (rest * self.ticks as u64).div_ceil(self.ns as u64)
    }

    /// As a word that is never 0, to be kept in an atomic.
    pub const fn to_word(self) -> u64 {
        (self.ns as u64) << 32 | self.ticks as u64
    }

    /// From [`Rate::to_word`]; 0, or what is no rate, gives a tick a nanosecond.
    pub const fn of_word(word: u64) -> Self {
        let (ns, ticks) = ((word >> 32) as u32, word as u32);
        if ns == 0 || ticks == 0 { Self { ns: 1, ticks: 1 } } else { Self { ns, ticks } }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY_NS: u64 = 86_400_000_000_000;

    #[test]
    fn a_tick_of_396_mhz_is_no_whole_number_and_a_day_of_them_is_a_day() {
        let rate = Rate::of_hz(396_000_000);
        assert_eq!(rate, Rate { ns: 250, ticks: 99 });
        assert_eq!(rate.ns(396_000_000 * 86_400), DAY_NS);
        assert_eq!((rate.ns(1), rate.ns(2), rate.ns(3)), (2, 5, 7));
    }

    #[test]
    fn an_alarm_is_never_early_and_less_than_a_tick_late() {
        for hz in [1, 3_000_000, 24_000_000, 62_500_001, 100_000_000, 396_000_000, 999_999_937, 1_200_000_000] {
            let rate = Rate::of_hz(hz);
            for ns in [0, 1, 999, 1_000_000_007, DAY_NS + 123, 1 << 60] {
                let ticks = rate.ticks(ns);
                let exact = u128::from(ns) * u128::from(hz);
                assert!(u128::from(ticks) * u128::from(NS_PER_S) >= exact, "{ns} ns at {hz} Hz is early");
                assert!(
                    ticks == 0 || u128::from(ticks - 1) * u128::from(NS_PER_S) < exact,
                    "{ns} ns at {hz} Hz is late"
                );
            }
        }
    }

    #[test]
    fn a_word_brings_the_rate_back_and_no_rate_does_not_divide_by_zero() {
        let rate = Rate::of_hz(396_000_000);
        assert_eq!(Rate::of_word(rate.to_word()), rate);
        assert_eq!((Rate::of_word(0).ns(7), Rate::of_hz(0).ns(1)), (7, 1_000_000_000));
    }
}

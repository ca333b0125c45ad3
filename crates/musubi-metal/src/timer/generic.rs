//! Ticks of Arm's generic timer as nanoseconds, and back.
//!
//! What you may rely on: nothing overflows while the counter's frequency is below 18 GHz and the time fits in 64 bits of
//! nanoseconds. An instant in ticks is never earlier than the one in nanoseconds, and at most a tick later.

/// Nanoseconds in a second.
const NS_PER_S: u64 = 1_000_000_000;

/// Nanoseconds that these ticks are, rounded down.
pub const fn ns_of_ticks(ticks: u64, per_s: u64) -> u64 {
    ticks / per_s * NS_PER_S + ticks % per_s * NS_PER_S / per_s
}

/// The tick by which so many nanoseconds have passed.
pub const fn ticks_at_ns(ns: u64, per_s: u64) -> u64 {
    // One tick more than the rounded-down time: never early.
    ns / NS_PER_S * per_s + ns % NS_PER_S * per_s / NS_PER_S + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_alarm_is_never_early_and_at_most_a_tick_late() {
        for per_s in [8_000_000, 24_000_000, 62_500_000, 1_000_000_000] {
            for ns in [0, 1, 999, 1_000_000_007, 86_400_000_000_123, 1 << 60] {
                let ticks = ticks_at_ns(ns, per_s);
                assert!(ns_of_ticks(ticks, per_s) >= ns, "{ns} ns at {per_s} Hz");
                assert!(ns_of_ticks(ticks - 1, per_s) <= ns, "{ns} ns at {per_s} Hz");
            }
        }
    }
}

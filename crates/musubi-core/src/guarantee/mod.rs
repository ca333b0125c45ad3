//! The three guarantees, one implementation each, used at every level: [`priority`], [`regulator`], [`filter`].
//!
//! What you may rely on: each is a pure state machine over `(state, input, time)`. None reads a clock, waits, allocates,
//! divides by a value that can be zero, or overflows; the same calls give the same answers on every machine.
//!
//! How it works: time is a `u64` of nanoseconds passed in by the caller. Differences are taken modulo 2^64 and read as
//! signed, so a clock that wraps is harmless, a clock that stands still gives no time, and one that steps back (two
//! threads that read it before they took their mutex) counts as standing still. Spans are therefore at most
//! [`SPAN_NS_MAX`].
//!
//! What it does not do: protect itself against several threads; the owner of a channel end holds one of each.

pub mod filter;
pub mod lean;
pub mod priority;
pub mod regulator;

pub use filter::{Filter, Verdict};
pub use lean::{Each, Filtering, Regulating, Unregulated};
pub use priority::{Priority, Schedule};
pub use regulator::Regulator;

/// The longest span of time that is told from a step back, in nanoseconds: 292 years.
pub const SPAN_NS_MAX: u64 = i64::MAX as u64;

/// Time from `since_ns` to `now_ns` on a clock that may wrap; 0 if the clock went back.
pub(crate) const fn elapsed_ns(since_ns: u64, now_ns: u64) -> u64 {
    let span = now_ns.wrapping_sub(since_ns);
    if span > SPAN_NS_MAX { 0 } else { span }
}

#[cfg(all(test, not(loom)))]
pub(crate) mod tests {
    use super::*;
    use proptest::prelude::ProptestConfig;

    /// As long a sequence as the tool that runs it can bear.
    pub(crate) const fn length(length: usize) -> usize {
        if cfg!(miri) { length / 10 } else { length }
    }

    /// As many cases as the tool that runs them can bear; failures are shown, not written to disk.
    pub(crate) fn cases(cases: u32) -> ProptestConfig {
        let cases = if cfg!(miri) { 1 } else { cases };
        ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
    }

    #[test]
    fn time_wraps_and_never_runs_backwards() {
        assert_eq!(elapsed_ns(5, 7), 2);
        assert_eq!(elapsed_ns(7, 7), 0);
        assert_eq!(elapsed_ns(7, 5), 0);
        assert_eq!(elapsed_ns(u64::MAX, 1), 2);
        assert_eq!(elapsed_ns(1, u64::MAX), 0);
        assert_eq!(elapsed_ns(0, SPAN_NS_MAX), SPAN_NS_MAX);
    }
}

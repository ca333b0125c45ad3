//! A clock held against a second one when a board starts: what a manual calls the usual frequency is what a boot loader makes
//! of it.
//!
//! What you may rely on: bounded by reads, not by time, so a second timer that stands still costs
//! [`LOOKS_MAX`] reads and gives nothing. An interruption between two readings (an emulator's host, a bus) spoils one sample and
//! not the result, which is the middle of several.
//!
//! How it works: both counters are read one after the other, then the second one is watched until it has advanced enough, and
//! both are read again. The measured rate is then looked up among those that the board can have ([`Known`]): a
//! measurement has an error, a divided crystal has none.

/// Samples, of which the middle one counts.
const SAMPLES: usize = 9;
/// Looks at the second timer in one sample.
pub const LOOKS_MAX: u32 = 200_000;
/// A known rate is recognised within one part of so many.
const TOLERANCE: u64 = 50;

/// A rate that the clock of a board can have, and who made it so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Known {
    /// Ticks of the clock in a second.
    pub clock_hz: u32,
    /// Ticks of the second timer in a second, where the clock has that rate.
    pub second_hz: u32,
    /// Where that is so.
    pub origin: Origin,
}

/// Who sets a rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The board, as its boot loader leaves it.
    Board,
    /// The emulator's model of it.
    Emulator,
}

/// What holding the clock against a second timer gave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Checked {
    /// No second timer to hold it against: the rate is what the board's description says.
    Alone,
    /// It has a rate that is known.
    Agrees(Origin),
    /// It has none that is known, but one that was measured: ticks in a second, within a hundredth.
    Measured(u32),
}

impl core::fmt::Display for Checked {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Checked::Alone => f.write_str("no second timer to hold it against"),
            Checked::Agrees(Origin::Board) => f.write_str("agrees with the second timer"),
            Checked::Agrees(Origin::Emulator) => f.write_str("agrees with the second timer, at the emulator's rate"),
            Checked::Measured(hz) => write!(f, "measured against the second timer: {hz} Hz, which no table names"),
        }
    }
}

/// Ticks of the clock while the second timer makes `ticks`; `None` if that stands still.
pub fn ticks_while(clock: impl Fn() -> u32, second: impl Fn() -> u32, ticks: u32) -> Option<u32> {
    let mut samples = [0; SAMPLES];
    for sample in &mut samples {
        let (from, since) = (clock(), second());
        let passed =
            (0..LOOKS_MAX).find_map(|_| Some(second().wrapping_sub(since)).filter(|passed| *passed >= ticks))?;
        let clock_ticks = u64::from(clock().wrapping_sub(from));
        *sample = u32::try_from(clock_ticks * u64::from(ticks) / u64::from(passed)).unwrap_or(u32::MAX);
    }
    samples.sort_unstable();
    Some(samples[SAMPLES / 2])
}

/// Holds a measurement ([`ticks_while`], over `ticks` of the second timer) against the rates that the board can have, of which the
/// first is the usual one. Gives the clock's hertz and how they are known.
pub fn recognise(measured: Option<u32>, ticks: u32, known: &[Known]) -> (u32, Checked) {
    let usual = known.first().map_or((1, 1), |usual| (usual.clock_hz, usual.second_hz));
    let Some(measured) = measured.filter(|measured| *measured > 0) else { return (usual.0, Checked::Alone) };
    // As fractions: measured/ticks against clock_hz/second_hz.
    let agrees = |known: &&Known| {
        let (ours, theirs) =
            (u64::from(measured) * u64::from(known.second_hz), u64::from(ticks) * u64::from(known.clock_hz));
        ours.abs_diff(theirs) <= theirs / TOLERANCE
    };
    if let Some(found) = known.iter().find(agrees) {
        return (found.clock_hz, Checked::Agrees(found.origin));
    }
    let hz = u64::from(measured) * u64::from(usual.1) / u64::from(ticks.max(1));
    let hz = u32::try_from(hz).unwrap_or(u32::MAX).max(1);
    (hz, Checked::Measured(hz))
}

#[cfg(test)]
mod tests {
    use core::cell::Cell;

    use super::*;

    const KNOWN: [Known; 2] = [
        Known { clock_hz: 396_000_000, second_hz: 3_000_000, origin: Origin::Board },
        Known { clock_hz: 100_000_000, second_hz: 3_000_000, origin: Origin::Emulator },
    ];

    /// Two counters over one time, which each reading takes 200 ns further and the reading numbers of `stalls` 5 ms.
    struct Pair {
        now_ns: Cell<u64>,
        reads: Cell<u32>,
        stalls: &'static [u32],
        hz: [u64; 2],
    }

    impl Pair {
        fn read(&self, which: usize) -> u32 {
            let reads = self.reads.get() + 1;
            self.reads.set(reads);
            let spent_ns = if self.stalls.contains(&reads) { 5_000_000 } else { 200 };
            self.now_ns.set(self.now_ns.get() + spent_ns);
            (u128::from(self.now_ns.get()) * u128::from(self.hz[which]) / 1_000_000_000) as u32
        }

        fn measured(&self) -> Option<u32> {
            ticks_while(|| self.read(0), || self.read(1), 300)
        }
    }

    fn found(hz: u64, stalls: &'static [u32]) -> (u32, Checked) {
        let pair = Pair { now_ns: Cell::new(12_345), reads: Cell::new(0), stalls, hz: [hz, 3_000_000] };
        recognise(pair.measured(), 300, &KNOWN)
    }

    #[test]
    fn a_known_rate_is_recognised_although_samples_are_spoilt() {
        assert_eq!(found(396_000_000, &[]), (396_000_000, Checked::Agrees(Origin::Board)));
        assert_eq!(found(396_000_000, &[2, 600, 1300]), (396_000_000, Checked::Agrees(Origin::Board)));
        assert_eq!(found(100_000_000, &[1]), (100_000_000, Checked::Agrees(Origin::Emulator)));
    }

    #[test]
    fn a_rate_that_nobody_named_is_measured() {
        let (hz, checked) = found(498_000_000, &[]);
        assert_eq!(checked, Checked::Measured(hz));
        assert!(hz.abs_diff(498_000_000) < 4_980_000, "{hz}");
    }

    #[test]
    fn a_second_timer_that_stands_still_leaves_the_board_its_word() {
        assert_eq!(ticks_while(|| 1, || 7, 300), None);
        assert_eq!(recognise(None, 300, &KNOWN), (396_000_000, Checked::Alone));
        assert_eq!(recognise(Some(0), 300, &KNOWN), (396_000_000, Checked::Alone));
    }
}

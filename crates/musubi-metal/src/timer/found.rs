//! What was found when a clock was held against a second timer, kept for reports.

use core::sync::atomic::{AtomicU64, Ordering};

use super::check::{Checked, Origin};

/// The marks of a result; a measured rate stands in the lower half.
const ALONE: u64 = 0;
const BOARD: u64 = 1 << 32;
const EMULATOR: u64 = 2 << 32;
const MEASURED: u64 = 3 << 32;

/// A result, [`Checked::Alone`] until it is noted. Writer: the boot core.
#[derive(Debug)]
pub struct Found(AtomicU64);

impl Found {
    /// Nothing found yet.
    #[allow(clippy::new_without_default, reason = "it is a static")]
    pub const fn new() -> Self {
        Self(AtomicU64::new(ALONE))
    }

    /// Notes a result.
    pub fn note(&self, checked: Checked) {
        let word = match checked {
            Checked::Alone => ALONE,
            Checked::Agrees(Origin::Board) => BOARD,
            Checked::Agrees(Origin::Emulator) => EMULATOR,
            Checked::Measured(hz) => MEASURED | u64::from(hz),
        };
        self.0.store(word, Ordering::Relaxed);
    }

    /// What was noted.
    pub fn get(&self) -> Checked {
        let word = self.0.load(Ordering::Relaxed);
        match word & !u64::from(u32::MAX) {
            BOARD => Checked::Agrees(Origin::Board),
            EMULATOR => Checked::Agrees(Origin::Emulator),
            MEASURED => Checked::Measured(word as u32),
            _ => Checked::Alone,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_result_is_given_back() {
        let found = Found::new();
        assert_eq!(found.get(), Checked::Alone);
        let results = [Checked::Agrees(Origin::Board), Checked::Agrees(Origin::Emulator), Checked::Measured(u32::MAX)];
        for checked in results {
            found.note(checked);
            assert_eq!(found.get(), checked);
        }
    }
}

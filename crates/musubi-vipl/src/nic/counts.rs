//! What a NIC counts of each class, for tools.
//!
//! What you may rely on: counts only grow while the NIC is open, and cost the data path nothing: what no VI asked for is not counted.

use musubi_transport::links::Block;

use super::NicState;

/// What became of the completions of the VIs of one class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClassCounts {
    /// Of VIs with a notification policy, here and in the next three: wake-ups that their completions asked for.
    pub asked: u64,
    /// Of those, how many came at once.
    pub raised: u64,
    /// Wake-ups that came later, each for all completions until then.
    pub deferred: u64,
    /// The longest that one was put off, nanoseconds.
    pub longest_deferral_ns: u64,
    /// Of VIs with a budget: completions that the program has taken.
    pub timed: u64,
    /// Of those, how many it took later than the budget allows.
    pub over_budget: u64,
    /// The longest that one lay, nanoseconds.
    pub longest_ns: u64,
}

impl ClassCounts {
    /// Completions for which nobody was woken, or not yet: another wake-up was theirs, too.
    pub fn suppressed(&self) -> u64 {
        self.asked.saturating_sub(self.raised + self.deferred)
    }
}

impl<B: Block> NicState<B> {
    /// What is counted of a class; nothing of one that is none.
    pub fn class_counts(&self, class: u8) -> ClassCounts {
        self.counts.get(usize::from(class)).copied().unwrap_or_default()
    }
}

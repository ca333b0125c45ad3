//! How much of a figure is one sample.

/// Bytes in one sample within the machine, and most packets, for small ones.
const BATCH_BYTES: usize = 4 << 20;
const BATCH_PACKETS_MAX: usize = 2000;
/// The same over the shaped line.
const LINE_BATCH_BYTES: usize = 8 << 20;
const LINE_PACKETS_MAX: usize = 20_000;
/// How much of a rate is one sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sizes {
    /// Within the machine.
    Fast,
    /// Over the shaped line: long samples, so that what its bucket had saved does not count.
    Line,
}

impl Sizes {
    /// Packets of so many bytes in one sample.
    pub fn batch(self, bytes: usize) -> usize {
        match self {
            Sizes::Fast => (BATCH_BYTES / bytes).clamp(4, BATCH_PACKETS_MAX),
            Sizes::Line => (LINE_BATCH_BYTES / bytes).min(LINE_PACKETS_MAX),
        }
    }

    /// Samples of a rate.
    pub fn rate_samples(self, latency_samples: u32) -> u32 {
        match self {
            Sizes::Fast => latency_samples / 100,
            Sizes::Line => latency_samples / 4000,
        }
    }

    /// Samples of a latency that is tens of microseconds.
    pub fn network_samples(latency_samples: u32) -> u32 {
        latency_samples / 5
    }
}

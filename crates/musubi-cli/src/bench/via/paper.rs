//! The values of the paper (seed 004): two PCs with adapters of the VI Architecture (cLAN), under LynxOS and Linux.
//!
//! What you may rely on: they are those that its tables and its text state; its curves are not given as numbers.

use serde::Serialize;

/// All of them.
#[derive(Debug, Serialize)]
pub(super) struct Paper {
    /// Table 2: one-way time of 4 bytes in microseconds, polling and blocking.
    pub message_4_us: [StatedValues; 2],
    /// Figure 2: the most that large messages come to, in megabytes a second.
    pub peak_mb_per_s: f64,
    /// Table 3: megabytes a second of two connections, of 32 KiB but for the last one's second.
    pub shares_mb_per_s: [StatedValues; 4],
    /// Table 4: least, 99 % and most of the exchange's time in microseconds.
    pub exchange_us: [StatedValues; 5],
}

/// What was measured, its values, and the names of the figures that are of the same here.
#[derive(Debug, Serialize)]
pub(super) struct StatedValues {
    pub of: &'static str,
    pub values: &'static [f64],
    pub here: &'static [&'static str],
}

const fn row(of: &'static str, values: &'static [f64], here: &'static [&'static str]) -> StatedValues {
    StatedValues { of, values, here }
}

pub(super) const PAPER: Paper = Paper {
    message_4_us: [row("LynxOS", &[7.37, 14.36], &[]), row("Linux", &[7.34, 15.10], &[])],
    peak_mb_per_s: 100.0,
    shares_mb_per_s: [
        row("A and B send", &[49.51, 49.51], &["vi_share_same_way_a", "vi_share_same_way_b"]),
        row("A sends, B receives", &[48.47, 48.73], &["vi_share_both_ways_a", "vi_share_both_ways_b"]),
        row("the same with two hosts", &[31.35, 68.54], &[]),
        row("A of 32 KiB, B of 128 bytes", &[4.21, 21.82], &["vi_share_mixed_off_a", "vi_share_mixed_off_b"]),
    ],
    exchange_us: [
        row("alone", &[140.0, 150.0, 170.0], &["vi_exchange_alone_off"]),
        row("memory copied", &[170.0, 220.0, 240.0], &["vi_exchange_memory_off"]),
        row("network", &[140.0, 240.0, 320.0], &["vi_exchange_network_off"]),
        row("messages of 32 KiB", &[220.0, 280.0, 360.0], &["vi_exchange_flood_32768x1_off"]),
        row("messages of 1 KiB", &[160.0, 680.0, 750.0], &["vi_exchange_flood_1024x1_off"]),
    ],
};

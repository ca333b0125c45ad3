//! Samples of one kind, and what is said about them.

use anyhow::{Context as _, Result};
use serde::Serialize;

use super::Mode;

/// Slices of one measurement.
pub struct Series {
    /// Which system.
    pub peer: &'static str,
    /// How it waits.
    pub mode: Mode,
    /// Payload.
    pub bytes: usize,
    round_trip_ns: Vec<u32>,
    ratios: Vec<f64>,
}

impl Series {
    /// Nothing measured yet.
    pub fn new(peer: &'static str, mode: Mode, bytes: usize) -> Self {
        Self { peer, mode, bytes, round_trip_ns: Vec::new(), ratios: Vec::new() }
    }

    /// Adds a slice and how it compares with the limit beside it.
    pub fn add(&mut self, slice: Vec<u32>, ratio: Option<f64>) {
        self.round_trip_ns.extend(slice);
        self.ratios.extend(ratio);
    }

    /// The figures over all slices; `None` without any.
    pub fn measurement(&self) -> Option<Measurement> {
        let mut sorted = self.round_trip_ns.clone();
        sorted.sort_unstable();
        let longest = *sorted.last()?;
        let mut ratios = self.ratios.clone();
        ratios.sort_by(f64::total_cmp);
        let sum: f64 = sorted.iter().map(|&ns| f64::from(ns)).sum();
        Some(Measurement {
            name: format!("{}_oneway_{}_{}", self.peer, self.mode.name(), self.bytes),
            peer: self.peer,
            mode: self.mode.name(),
            bytes: self.bytes,
            unit: "ns".into(),
            n: sorted.len() as u64,
            p50: percentile(&sorted, 500),
            p99: percentile(&sorted, 990),
            p999: percentile(&sorted, 999),
            max: f64::from(longest) / 2.0,
            mean: sum / sorted.len() as f64 / 2.0,
            ratio: (!ratios.is_empty()).then(|| ratios[ratios.len() / 2]),
        })
    }
}

/// One-way time below which this many thousandths of the sorted round trips lie.
fn percentile(sorted: &[u32], thousandths: usize) -> f64 {
    f64::from(sorted[(sorted.len() - 1) * thousandths / 1000]) / 2.0
}

/// Median one-way time of a slice, which must not be empty.
pub fn median(slice: &[u32]) -> f64 {
    let mut sorted = slice.to_vec();
    sorted.sort_unstable();
    percentile(&sorted, 500)
}

/// The figures of one measurement: one-way times.
#[derive(Clone, Debug, Serialize)]
pub struct Measurement {
    /// System, mode and payload in one word.
    pub name: String,
    /// Which system.
    pub peer: &'static str,
    /// How it waits.
    pub mode: &'static str,
    /// Payload.
    pub bytes: usize,
    /// Unit of the times.
    pub unit: String,
    /// Number of samples.
    pub n: u64,
    /// Median.
    pub p50: f64,
    /// Time that 99 % keep.
    pub p99: f64,
    /// Time that 99.9 % keep.
    pub p999: f64,
    /// Longest.
    pub max: f64,
    /// Mean.
    pub mean: f64,
    /// Median against the median of the bare ping-pong beside it; the bare ones have none.
    pub ratio: Option<f64>,
}

impl Measurement {
    /// A figure that Musubi's command wrote.
    ///
    /// # Errors
    /// If a number is not there.
    pub fn of_json(
        peer: &'static str,
        mode: Mode,
        bytes: usize,
        figure: &serde_json::Value,
        bare_p50: f64,
    ) -> Result<Self> {
        let number = |name: &str| figure[name].as_f64().with_context(|| format!("a figure without `{name}`: {figure}"));
        let p50 = number("p50")?;
        Ok(Self {
            name: format!("{peer}_oneway_{}_{bytes}", mode.name()),
            peer,
            mode: mode.name(),
            bytes,
            unit: figure["unit"].as_str().unwrap_or("ns").into(),
            n: figure["n"].as_u64().context("a figure without `n`")?,
            p50,
            p99: number("p99")?,
            p999: number("p999")?,
            max: number("max")?,
            mean: number("mean")?,
            ratio: Some(p50 / bare_p50),
        })
    }
}

/// The median in one of the command's figures.
///
/// # Errors
/// If there is none.
pub fn p50_of(figure: &serde_json::Value) -> Result<f64> {
    figure["p50"].as_f64().filter(|p50| *p50 > 0.0).with_context(|| format!("a figure without `p50`: {figure}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_one_way_and_over_all_slices() {
        let mut series = Series::new("x", Mode::Poll, 64);
        series.add((1..=500).map(|n| n * 2).collect(), Some(2.0));
        series.add((501..=1000).map(|n| n * 2).collect(), Some(4.0));
        series.add(vec![2002], Some(3.0));
        let m = series.measurement().unwrap();
        assert_eq!((m.n, m.p50, m.p99, m.max, m.ratio), (1001, 501.0, 991.0, 1001.0, Some(3.0)));
        assert_eq!(m.name, "x_oneway_poll_64");
    }

    #[test]
    fn nothing_measured_gives_no_figures() {
        assert!(Series::new("x", Mode::Block, 64).measurement().is_none());
    }
}

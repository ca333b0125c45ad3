//! How late the Master's loop was, in the phases of the demo.

use zcu102_linux::Received;

use crate::script::Evidence;

const NS_PER_US: f64 = 1_000.0;

/// Quantiles of times in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Quantiles {
    /// Samples.
    pub n: usize,
    /// Median.
    pub p50: f64,
    /// 99 of 100 are not above.
    pub p99: f64,
    /// Largest.
    pub max: f64,
}

impl Quantiles {
    /// Of times in nanoseconds.
    pub fn of(mut ns: Vec<u32>) -> Quantiles {
        ns.sort_unstable();
        let at = |per_cent: usize| {
            let rank = (ns.len() * per_cent).div_ceil(100).max(1);
            ns.get(rank - 1).map_or(0.0, |ns| f64::from(*ns) / NS_PER_US)
        };
        Quantiles { n: ns.len(), p50: at(50), p99: at(99), max: at(100) }
    }
}

/// A part of the demo, with the lateness of the periods that fell into it.
pub fn phases(evidence: &Evidence) -> [(&'static str, Quantiles); 4] {
    let (killed, followed) = evidence.absence;
    let [former, successor] = evidence.masters;
    let of = |epoch: u32, from: u64, to: u64| {
        let falls = |record: &&Received| {
            record.telemetry.incarnation == epoch && (from..to).contains(&record.telemetry.sequence)
        };
        Quantiles::of(evidence.received.iter().filter(falls).map(|record| record.telemetry.lateness_ns).collect())
    };
    [
        ("with the first process", of(former.epoch, 0, killed)),
        ("while no process was there", of(former.epoch, killed, followed)),
        ("with the second process", of(former.epoch, followed, u64::MAX)),
        ("after the Master's restart", of(successor.epoch, 0, u64::MAX)),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_of_all_samples() {
        let quantiles = Quantiles::of((1..=1000).rev().map(|us| us * 1000).collect());
        assert_eq!(quantiles, Quantiles { n: 1000, p50: 500.0, p99: 990.0, max: 1000.0 });
        assert_eq!(Quantiles::of(Vec::new()), Quantiles::default());
    }
}

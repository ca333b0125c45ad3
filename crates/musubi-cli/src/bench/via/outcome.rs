//! What is required of the figures of VIs, and how the whole outcome is said: tables and JSON.

use musubi_config::table::wrapped;
use serde::Serialize;

use super::names::limit_of;
use super::paper::{PAPER, Paper};
use super::settings::Settings;
use crate::bench::figures::{self, Figure};
use crate::bench::required::{AT_LEAST, AT_MOST, Ratio, Requirement, Rule};
use crate::bench::run::{Figures, Run};
use crate::{output, screen};

/// Everything, as the JSON has it, in the form of `bench mcapi`.
#[derive(Debug, Serialize)]
pub(super) struct Outcome {
    #[serde(flatten)]
    pub figures: Figures,
    pub ratios: Vec<Ratio>,
    pub required: Vec<Requirement>,
    /// Whether all that was asked for has been measured.
    pub whole: bool,
    pub interface: &'static str,
    pub paper: &'static Paper,
}

/// What a bare line's time may be exceeded by, and then added to, nanoseconds.
const POLLED: &str = "1.7 x cacheline_oneway + 20 ns";
const POLLED_FACTOR: f64 = 1.7;
const POLLED_NS: f64 = 20.0;

const REQUIRED: [Rule; 22] = [
    ("vi_oneway_shm_poll_4", POLLED, AT_MOST, 1.0),
    ("vi_oneway_shm_block_4", "futex_oneway", AT_MOST, 1.15),
    ("vi_oneway_tcp_block_4", "tcp_oneway_block_4", AT_MOST, 1.10),
    ("vi_oneway_tcp_poll_4", "tcp_oneway_poll_4", AT_MOST, 1.25),
    ("vi_write_shm_1048576", "copy_alone_1m", AT_LEAST, 0.9),
    ("vi_rate_shm_32768", "shm_copy_64k", AT_LEAST, 0.8),
    ("vi_messages_shm_64", PER_LINE, AT_LEAST, 1.5),
    ("vi_exchange_flood_32768x1_on p99", "vi_exchange_alone_on p99", AT_MOST, 1.5),
    ("vi_exchange_flood_32768x1_on p99.9", "vi_exchange_alone_on p99.9", AT_MOST, 2.0),
    ("vi_rate_flood_32768x1_on", "vi_rate_flood_32768x1_off", AT_LEAST, 0.5),
    ("vi_exchange_flood_1024x1_on p99", "vi_exchange_alone_on p99", AT_MOST, 1.5),
    ("vi_exchange_flood_1024x1_on p99.9", "vi_exchange_alone_on p99.9", AT_MOST, 2.0),
    ("vi_rate_flood_1024x1_on", "vi_rate_flood_1024x1_off", AT_LEAST, 0.5),
    ("vi_exchange_flood_64x1_on p99", "vi_exchange_alone_on p99", AT_MOST, 1.5),
    ("vi_exchange_flood_64x1_on p99.9", "vi_exchange_alone_on p99.9", AT_MOST, 2.0),
    ("vi_rate_flood_64x1_on", "vi_rate_flood_64x1_off", AT_LEAST, 0.5),
    ("vi_exchange_flood_64x4_on p99", "vi_exchange_alone_on p99", AT_MOST, 1.5),
    ("vi_exchange_flood_64x4_on p99.9", "vi_exchange_alone_on p99.9", AT_MOST, 2.0),
    ("vi_rate_flood_64x4_on", "vi_rate_flood_64x4_off", AT_LEAST, 0.5),
    ("vi_exchange_flood_64x16_on p99", "vi_exchange_alone_on p99", AT_MOST, 1.5),
    ("vi_exchange_flood_64x16_on p99.9", "vi_exchange_alone_on p99.9", AT_MOST, 2.0),
    ("vi_rate_flood_64x16_on", "vi_rate_flood_64x16_off", AT_LEAST, 0.5),
];

/// One message each time that a bare line takes.
const PER_LINE: &str = "one a cacheline_oneway";

impl Outcome {
    /// Compares.
    pub fn of(run: Run) -> Outcome {
        let figures = run.two_cores;
        let line = |name: &str| {
            let line = figures.named("cacheline_oneway").filter(|figure| figure.is_measured())?;
            match name {
                POLLED => Some(POLLED_FACTOR * line.p50 + POLLED_NS),
                PER_LINE => Some(1e9 / line.p50),
                _ => None,
            }
        };
        Outcome {
            ratios: Ratio::of(&figures, limit_of),
            required: REQUIRED.iter().map(|rule| Requirement::of(rule, &figures, line)).collect(),
            figures,
            whole: run.whole,
            interface: "musubi-vipl (Rust), two processes",
            paper: &PAPER,
        }
    }

    /// Whether no requirement is missed.
    pub fn all_met(&self) -> bool {
        self.required.iter().all(|requirement| requirement.met != Some(false))
    }

    /// Prints a group's table, when it has been measured last: all figures of these names.
    pub fn print_group(&self, settings: &Settings, names: &[String]) -> anyhow::Result<()> {
        let all: Vec<&Figure> = self.figures.all().filter(|figure| names.contains(&figure.name)).collect();
        let table = figures::table(&all, |figure| self.verdict(figure), screen::width());
        output::print(&format!("{}\n{table}", settings.group.title()))
    }

    /// Prints what is required.
    pub fn print(&self) -> anyhow::Result<()> {
        let required = self.required.iter().filter(|requirement| requirement.met.is_some());
        let text: String = required.map(|requirement| requirement.text() + "\n").collect();
        output::print(&wrapped(&text, screen::width()))
    }

    /// A figure against its limit, and what is required of it.
    fn verdict(&self, figure: &Figure) -> String {
        let required = self.required.iter().find(|rule| rule.is_of(&figure.name)).filter(|rule| rule.met.is_some());
        let ratio = self.ratios.iter().find(|ratio| ratio.name == figure.name);
        match (ratio, required) {
            (None, None) => String::new(),
            (Some(ratio), None) => ratio.text(),
            (_, Some(rule)) => rule.verdict(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figure(name: &str, unit: &str, samples: Vec<f64>) -> Figure {
        Figure::of_samples(name.to_owned(), unit, samples)
    }

    fn required<'o>(outcome: &'o Outcome, name: &str) -> &'o Requirement {
        outcome.required.iter().find(|rule| rule.name == name).unwrap()
    }

    #[test]
    fn figures_are_held_against_what_is_required_of_them() {
        let mut run = Run::default();
        let half = |low: f64, high: f64| [vec![low; 500], vec![high; 500]].concat();
        run.two_cores.limits = vec![figure("cacheline_oneway", "ns", vec![100.0])];
        run.two_cores.results = vec![
            figure("vi_oneway_shm_poll_4", "ns", vec![190.0]),
            figure("vi_messages_shm_64", "msg/s", vec![14e6]),
            figure("vi_exchange_alone_on", "ns", half(10.0, 20.0)),
            figure("vi_exchange_flood_64x4_on", "ns", half(10.0, 31.0)),
            figure("vi_rate_flood_64x4_on", "msg/s", vec![50.0]),
            figure("vi_rate_flood_64x4_off", "msg/s", vec![100.0]),
        ];
        let outcome = Outcome::of(run);
        for (name, met) in [
            ("vi_oneway_shm_poll_4", Some(true)),
            ("vi_messages_shm_64", Some(false)),
            ("vi_exchange_flood_64x4_on p99", Some(false)),
            ("vi_exchange_flood_64x4_on p99.9", Some(true)),
            ("vi_rate_flood_64x4_on", Some(true)),
            ("vi_oneway_shm_block_4", None),
        ] {
            assert_eq!(required(&outcome, name).met, met, "{name}");
        }
        assert!(!outcome.all_met());
        let verdict = outcome.verdict(&figure("vi_oneway_shm_poll_4", "ns", vec![190.0]));
        assert_eq!(verdict, "1.00 x 1.7 x cacheline_oneway + 20 ns, at most 1.00: met");
    }

    #[test]
    fn every_figure_that_is_compared_has_its_limit() {
        for (name, against, ..) in REQUIRED.iter().filter(|(name, ..)| !name.contains("flood")) {
            let limit = limit_of(name).unwrap();
            assert!(*against == limit || against.contains(&limit), "{name} against {against}, not {limit}");
        }
    }
}

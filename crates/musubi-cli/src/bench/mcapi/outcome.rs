//! What is required of the figures of MCAPI, and how the whole outcome is said: tables and JSON.

use musubi_config::table::wrapped;
use serde::Serialize;

use super::line::LINE_BYTES_PER_S;
use super::names::limit_of;
use super::settings::Settings;
use crate::bench::figures::{self, Figure};
use crate::bench::required::{AT_LEAST, AT_MOST, Ratio, Requirement, Rule};
use crate::bench::run::{Figures, Run, Skipped};
use crate::{output, screen};

/// Bytes a second and what a figure has: megabytes.
const LINE_MB_PER_S: f64 = LINE_BYTES_PER_S / 1e6;

/// Everything, as the JSON has it: two cores on top, in the form of `bench mdcom`, the rest beside.
#[derive(Debug, Serialize)]
pub(super) struct Outcome {
    #[serde(flatten)]
    pub two_cores: Figures,
    pub ratios: Vec<Ratio>,
    pub one_core: OneCore,
    pub required: Vec<Requirement>,
    pub skipped: Vec<Skipped>,
    /// Whether all that was asked for has been measured.
    pub whole: bool,
    pub interface: &'static str,
    pub paper: Paper,
}

/// What was measured with both processes on one core.
#[derive(Debug, Serialize)]
pub(super) struct OneCore {
    #[serde(flatten)]
    pub figures: Figures,
    pub ratios: Vec<Ratio>,
}

/// The paper's values (seed 003): two nodes with gigabit Ethernet between them.
#[derive(Debug, Serialize)]
pub(super) struct Paper {
    /// One-way time of a message of 1 byte, in microseconds, on two cores, on one, and of a bare socket.
    pub message_1_two_cores_us: f64,
    pub message_1_one_core_us: f64,
    pub socket_1_us: f64,
    /// Rate of packets of 32 KiB, in megabytes a second, of a line of 125.
    pub packet_32768_mb_per_s: f64,
}

/// The values.
pub(super) const PAPER: Paper = Paper {
    message_1_two_cores_us: 64.0,
    message_1_one_core_us: 74.0,
    socket_1_us: 28.0,
    packet_32768_mb_per_s: 112.0,
};

const LINE: &str = "line of 125 MB/s";

/// Figure, what it is compared with, how, and by which factor.
const REQUIRED: [Rule; 9] = [
    ("msg_oneway_tcp_block_1", "tcp_oneway_block_1", AT_MOST, 1.10),
    ("msg_oneway_tcp_poll_1", "tcp_oneway_poll_1", AT_MOST, 1.25),
    ("pkt_rate_tcp_32768", "tcp_stream_32768", AT_LEAST, 0.95),
    ("pkt_rate_line_32768", LINE, AT_LEAST, 0.94),
    ("msg_oneway_shm_poll_1", "cacheline_oneway", AT_MOST, 2.5),
    ("scl_oneway_shm_poll_8", "cacheline_oneway", AT_MOST, 1.5),
    ("msg_oneway_shm_block_1", "futex_oneway", AT_MOST, 1.25),
    ("pkt_rate_shm_32768", "shm_copy_64k", AT_LEAST, 1.5),
    ("urgent_oneway_loaded_64 p99", "urgent_oneway_idle_64 p99", AT_MOST, 3.0),
];

impl Outcome {
    /// Compares.
    pub fn of(run: Run) -> Outcome {
        Outcome {
            ratios: Ratio::of(&run.two_cores, limit_of),
            required: REQUIRED.iter().map(|rule| Requirement::of(rule, &run.two_cores, line)).collect(),
            one_core: OneCore { ratios: Ratio::of(&run.one_core, limit_of), figures: run.one_core },
            two_cores: run.two_cores,
            skipped: run.skipped,
            whole: run.whole,
            interface: "musubi-mcapi (Rust), two processes",
            paper: PAPER,
        }
    }

    /// Whether no requirement is missed.
    pub fn all_met(&self) -> bool {
        self.required.iter().all(|requirement| requirement.met != Some(false))
    }

    /// What was measured on one core or on two.
    pub fn figures(&self, one_core: bool) -> impl Iterator<Item = &Figure> {
        if one_core { self.one_core.figures.all() } else { self.two_cores.all() }
    }

    /// Prints a group's table, when it has been measured last: all figures of these names.
    pub fn print_group(&self, settings: &Settings, names: &[String]) -> anyhow::Result<()> {
        let all: Vec<&Figure> = self.figures(settings.one_core).filter(|figure| names.contains(&figure.name)).collect();
        if all.is_empty() {
            return Ok(());
        }
        let table = figures::table(&all, |figure| self.verdict(figure, settings.one_core), screen::width());
        output::print(&format!("{}\n{table}", settings.title()))
    }

    /// Prints what is required, and what was not measured.
    pub fn print(&self) -> anyhow::Result<()> {
        let required = self.required.iter().filter(|requirement| requirement.met.is_some());
        let mut text: String = required.map(|requirement| requirement.text() + "\n").collect();
        for skipped in &self.skipped {
            text.push_str(&format!("skipped: {}: {}\n", skipped.name, skipped.reason));
        }
        output::print(&wrapped(&text, screen::width()))
    }

    /// A figure against its limit, and what is required of it; requirements are for two cores.
    fn verdict(&self, figure: &Figure, one_core: bool) -> String {
        let ratios = if one_core { &self.one_core.ratios } else { &self.ratios };
        let of_figure = |rule: &&Requirement| !one_core && rule.is_of(&figure.name);
        let required = self.required.iter().find(of_figure).filter(|rule| rule.met.is_some());
        let ratio = ratios.iter().find(|ratio| ratio.name == figure.name);
        match (ratio, required) {
            (None, None) => String::new(),
            (Some(ratio), None) => ratio.text(),
            (_, Some(rule)) => rule.verdict(),
        }
    }
}

/// The line has a rate that is known.
fn line(name: &str) -> Option<f64> {
    (name == LINE).then_some(LINE_MB_PER_S)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figure(name: &str, value: f64) -> Figure {
        Figure::of_samples(name.to_owned(), "ns", vec![value])
    }

    #[test]
    fn requirements_compare_what_was_measured() {
        let mut run = Run::default();
        run.two_cores.limits = vec![figure("tcp_oneway_block_1", 100.0), figure("tcp_stream_32768", 1000.0)];
        run.two_cores.results = vec![
            figure("msg_oneway_tcp_block_1", 109.0),
            figure("pkt_rate_tcp_32768", 940.0),
            figure("pkt_rate_line_32768", 118.0),
            figure("urgent_oneway_idle_64", 10.0),
            figure("urgent_oneway_loaded_64", 31.0),
        ];
        let outcome = Outcome::of(run);
        let met: Vec<Option<bool>> = outcome.required.iter().map(|requirement| requirement.met).collect();
        let (yes, no) = (Some(true), Some(false));
        assert_eq!(met, [yes, None, no, yes, None, None, None, None, no]);
        assert!(!outcome.all_met());
        assert_eq!(outcome.ratios[0].text(), "1.09 x tcp_oneway_block_1");
        let verdict = |name: &str| outcome.verdict(&figure(name, 1.0), false);
        assert_eq!(verdict("msg_oneway_tcp_block_1"), "1.09 x tcp_oneway_block_1, at most 1.10: met");
        assert_eq!(verdict("urgent_oneway_loaded_64"), "3.10 x urgent_oneway_idle_64 p99, at most 3.00: MISSED",);
        assert_eq!(outcome.verdict(&figure("msg_oneway_tcp_block_1", 1.0), true), "");
    }

    #[test]
    fn a_limit_that_could_not_be_measured_is_none() {
        let mut run = Run::default();
        run.two_cores.limits = vec![Figure::of_samples("futex_oneway".to_owned(), "ns", vec![])];
        run.two_cores.results = vec![figure("msg_oneway_shm_block_1", 400.0)];
        let outcome = Outcome::of(run);
        assert!(outcome.required.iter().all(|requirement| requirement.met.is_none()));
        assert!(outcome.ratios.is_empty());
    }

    #[test]
    fn packets_have_the_same_limit_however_they_are_sent() {
        for name in ["pkt_rate_tcp_single_32768", "pkt_rate_tcp_copied_32768"] {
            assert_eq!(limit_of(name), limit_of("pkt_rate_tcp_32768"));
        }
    }

    #[test]
    fn every_required_figure_has_its_limit() {
        for (name, limit, ..) in REQUIRED.iter().filter(|(name, limit, ..)| *limit != LINE && !name.ends_with("p99")) {
            assert_eq!(limit_of(name).as_deref(), Some(*limit));
        }
    }
}

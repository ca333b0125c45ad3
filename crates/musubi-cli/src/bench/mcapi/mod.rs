//! `musubi bench mcapi`: messages, packets and scalars between nodes, beside the machine's own limits (seed 003).
//!
//! What you may rely on: both ends are programs of the Rust interface (`musubi-mcapi`) in two processes; every limit is
//! measured in the same run by the same two processes, round by round in turn with what it is the limit of. On two
//! cores each process has one; on one core both share it, and whoever polls, limits included, yields the processor
//! between two looks. Each group of figures has a time within which it ends ([`Group::budget`]); what has been measured
//! is printed, and written to the file of `--json`, after each group.
//!
//! How it works: a *group* is a list of items that need the same setup ([`Group`]). This process is the one that
//! measures (ping), except between network namespaces, where both are children ([`mod@line`]).

mod ends;
mod items;
mod latency;
mod line;
mod names;
mod outcome;
mod page;
mod rates;
mod settings;
mod urgent;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, ensure};

use super::pair::Pair;
use super::rounds::{self, Pace, SAMPLES, SAMPLES_QUICK};
use super::run::{Figures, Run};
use line::Line;
use outcome::Outcome;
pub(super) use settings::{Group, Settings};

/// Seconds of urgent messages in each condition.
const URGENT_S: u32 = 10;
const URGENT_QUICK_S: u32 = 2;

/// What to measure.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Arguments {
    /// Write the figures to this file as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write a page with the paper's two figures, theirs beside ours
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// Fewer samples, in less time
    #[arg(long)]
    quick: bool,
    /// Only these figures, and the limits they need: patterns like 'msg_*_1', or parts of names, with commas between them
    #[arg(long, value_name = "GLOB", default_value = "")]
    only: String,
    /// Seconds of urgent messages in each condition [default: 10, with --quick 2]
    #[arg(long, value_name = "SECONDS", alias = "urgent-seconds", value_parser = clap::value_parser!(u32).range(1..=600))]
    seconds: Option<u32>,
    /// Only on one core, or only on two [default: both]
    #[arg(long, value_name = "1|2", value_parser = clap::value_parser!(u32).range(1..=2))]
    cores: Option<u32>,
    /// Exit with code 1 if a required figure is missed
    #[arg(long)]
    check: bool,
}

const EXAMPLES: &str = "\
Takes at most eight minutes, with --quick one. What is measured is printed group by group, and written to the file of --json, so \
what an interrupted run leaves is of use. The part between two network namespaces needs root, iproute2 and util-linux; without them it is \
reported as skipped. Nothing else should run on the machine.

Examples:
  musubi bench mcapi --quick
  musubi bench mcapi --json mcapi.json --report mcapi.html
  musubi bench mcapi --only 'scl*,msg_oneway_shm_*_1' --cores 2
  musubi bench mcapi --only 'urgent*' --seconds 60 --cores 2";

/// Measures, prints, and writes the files that are named.
///
/// # Errors
/// A measurement failed, a file cannot be written; with `--check`, a required figure is missed.
pub(super) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    crate::output::check_writable(arguments.json.as_deref())?;
    crate::output::check_writable(arguments.report.as_deref())?;
    let outcome = measure(arguments)?;
    outcome.print()?;
    if let Some(path) = &arguments.report {
        write(path, &page::page(&outcome)?)?;
    }
    ensure!(!arguments.check || outcome.all_met(), "a required figure is missed");
    Ok(())
}

fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    std::fs::write(path, text).with_context(|| format!("writing {}", path.display()))
}

impl Arguments {
    /// The groups that are wanted, on two cores and on one.
    fn groups(&self) -> Vec<Settings> {
        let seconds = self.seconds.unwrap_or(if self.quick { URGENT_QUICK_S } else { URGENT_S });
        let samples = if self.quick { SAMPLES_QUICK } else { SAMPLES };
        let cores = [2, 1].into_iter().filter(|cores| self.cores.is_none_or(|only| only == *cores));
        let each = cores.flat_map(|cores| Group::ALL.map(|group| (group, cores == 1)));
        let settings = |(group, one_core): (Group, bool)| {
            let budget = group.budget(one_core, self.quick);
            Settings { group, one_core, samples, only: self.only.clone(), seconds, budget }
        };
        each.map(settings).filter(Settings::has_any).collect()
    }
}

/// Measures group by group; says and writes what there is after each.
fn measure(arguments: &Arguments) -> anyhow::Result<Outcome> {
    let groups = arguments.groups();
    ensure!(!groups.is_empty(), "no figure is named like '{}'", arguments.only);
    let two_cores = musubi_linux::realtime::cores().len() >= 2;
    let mut run = Run::default();
    let mut outcome = Outcome::of(run.clone());
    for (index, settings) in groups.iter().enumerate() {
        let figures = match settings {
            Settings { one_core: false, .. } if !two_cores => Err("this process may use one processor only".to_owned()),
            Settings { group: Group::Line, .. } => between_namespaces(settings).map_err(|error| format!("{error:#}")),
            _ => Ok(here(settings)?),
        };
        let names: Vec<String> = figures.iter().flat_map(Figures::all).map(|figure| figure.name.clone()).collect();
        match figures {
            Ok(figures) => run.add(settings.one_core, figures),
            Err(reason) => run.skip(settings.title(), reason),
        }
        run.whole = index + 1 == groups.len();
        outcome = Outcome::of(run.clone());
        outcome.print_group(settings, &names)?;
        if let Some(path) = &arguments.json {
            write(path, &(serde_json::to_string_pretty(&outcome)? + "\n"))?;
        }
    }
    Ok(outcome)
}

/// Measures a group with this process as the one that measures.
fn here(settings: &Settings) -> anyhow::Result<Figures> {
    let pair = Pair::start_as(&[], &settings.arguments(), !settings.one_core)?;
    let figures = go_through(&pair, settings)?;
    pair.end()?;
    Ok(figures)
}

/// Measures the line's group with a child in each namespace; the first one says the figures.
fn between_namespaces(settings: &Settings) -> anyhow::Result<Figures> {
    let line = Line::make()?;
    let mut prefix = line.inside(0).into_iter();
    let output = Command::new(prefix.next().unwrap_or_default())
        .args(prefix)
        .arg(std::env::current_exe()?)
        .args(["bench", "first", "--beside", &line.inside(1).join(" ")])
        .args(settings.arguments())
        .stderr(Stdio::inherit())
        .output()
        .context("starting the first process of the line")?;
    ensure!(output.status.success(), "the measurement between namespaces failed: {}", output.status);
    Ok(serde_json::from_slice(&output.stdout)?)
}

/// The first process of the line: measures, and says the figures on standard output.
///
/// # Errors
/// The measurement failed.
pub(super) fn first(beside: &str, settings: &Settings) -> anyhow::Result<()> {
    // Who started us holds the namespaces.
    rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))?;
    let prefix: Vec<String> = beside.split(' ').map(String::from).collect();
    let pair = Pair::start_as(&prefix, &settings.arguments(), !settings.one_core)?;
    let figures = go_through(&pair, settings)?;
    pair.end()?;
    crate::output::print(&serde_json::to_string(&figures)?)
}

/// Both sides run this, in step.
///
/// # Errors
/// The measurement failed.
pub(super) fn go_through(pair: &Pair, settings: &Settings) -> anyhow::Result<Figures> {
    if settings.group == Group::Urgent {
        return urgent::measure(pair, settings);
    }
    let (title, budget) = (settings.title(), settings.budget);
    let pace = Pace { title: &title, samples: settings.samples, rounds: settings.rounds(), budget };
    let (limits, results) = rounds::take(pair, items::items(pair, settings)?, &pace)?;
    Ok(Figures { limits, results })
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        arguments: Arguments,
    }

    fn groups(line: &[&str]) -> Vec<(Group, bool, u32, u128)> {
        let line = Line::try_parse_from([&["mcapi"], line].concat()).unwrap();
        let groups = line.arguments.groups();
        groups.iter().map(|of| (of.group, of.one_core, of.seconds, of.budget.as_millis())).collect()
    }

    #[test]
    fn a_run_is_divided_into_groups_that_end_in_time() {
        assert_eq!(groups(&[]).len(), 8);
        for (line, limit_s) in [(&["--quick"][..], 60), (&[], 480)] {
            let seconds = groups(line).iter().fold(0, |sum, (group, _, seconds, budget_ms)| {
                sum + budget_ms / 1000 + if *group == Group::Urgent { 3 * u128::from(*seconds) } else { 0 }
            });
            assert!(seconds * 10 <= limit_s * 9, "{seconds} s, and the setups");
        }
    }

    #[test]
    fn a_part_of_a_run_can_be_chosen() {
        assert_eq!(groups(&["--only", "urgent*", "--seconds", "60", "--cores", "2"]), [(Group::Urgent, false, 60, 0)]);
        let one = groups(&["--only", "scl_*", "--quick"]);
        assert_eq!(
            one.iter().map(|of| (of.0, of.1)).collect::<Vec<_>>(),
            [(Group::Memory, false), (Group::Memory, true)]
        );
        assert_eq!(groups(&["--only", "tcp_stream_64,pkt_rate_line_*", "--cores", "1"]).len(), 2);
        assert_eq!(groups(&["--only", "nothing"]), []);
    }

    #[test]
    fn wrong_options_are_refused() {
        for line in [&["--seconds", "0"][..], &["--seconds", "601"], &["--cores", "3"], &["--seconds", "x"]] {
            assert!(Line::try_parse_from([&["mcapi"], line].concat()).is_err(), "{line:?}");
        }
    }
}

//! `musubi bench via`: VIs between two processes, beside the machine's own limits (seed 004).
//!
//! What you may rely on: both ends are programs of the Rust interface (`musubi-vipl`) in two processes, each on a core of
//! its own; every limit is measured in the same run by the same two processes, round by round in turn with what it is the
//! limit of.
//!
//! How it works: a *group* is a list of items that need the same setup ([`Group`]). What has been measured is printed, and
//! written to the file of `--json`, after each group.

mod calls;
mod copy_alone;
mod ends;
mod flood;
mod floods;
mod items;
mod latency;
mod load;
mod names;
mod outcome;
mod page;
mod paper;
mod settings;
mod shares;
mod streams;

use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};

use super::pair::Pair;
use super::rounds::{self, Pace, ROUNDS, SAMPLES, SAMPLES_QUICK};
use super::run::{Figures, Run};
use outcome::Outcome;
pub(super) use settings::{Group, Settings};

/// What to measure.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Choice {
    /// Write the figures to this file as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write a page with plots, and the paper's values beside ours, to this file
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// Fewer samples, in less time
    #[arg(long)]
    quick: bool,
    /// Only these figures, and the limits they need: patterns like 'vi_*_4', or parts of names, with commas between them
    #[arg(long, value_name = "GLOB", default_value = "")]
    only: String,
    /// Exit with code 1 if a required figure is missed
    #[arg(long)]
    check: bool,
}

const EXAMPLES: &str = "\
What is measured is printed group by group, and written to the file of --json, so what an interrupted run leaves is of use. \
Nothing else should run on the machine.

Examples:
  musubi bench via --quick
  musubi bench via --json via.json --report via.html
  musubi bench via --only 'vi_oneway_shm_*_4'";

/// Measures, prints, and writes the files that are named.
///
/// # Errors
/// A measurement failed, a file cannot be written; with `--check`, a required figure is missed.
pub(super) fn run(arguments: &Choice) -> anyhow::Result<()> {
    super::pair::needs_two_cores()?;
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

impl Choice {
    /// The groups that are wanted.
    fn groups(&self) -> Vec<Settings> {
        let samples = if self.quick { SAMPLES_QUICK } else { SAMPLES };
        let settings = |group: Group| {
            let budget = group.budget(self.quick);
            Settings { group, samples, only: self.only.clone(), budget }
        };
        Group::ALL.map(settings).into_iter().filter(Settings::has_any).collect()
    }
}

/// Measures group by group; says and writes what there is after each.
fn measure(arguments: &Choice) -> anyhow::Result<Outcome> {
    let groups = arguments.groups();
    ensure!(!groups.is_empty(), "no figure is named like '{}'", arguments.only);
    let mut run = Run::default();
    let mut outcome = Outcome::of(run.clone());
    for (index, settings) in groups.iter().enumerate() {
        let figures = here(settings)?;
        let names: Vec<String> = figures.all().map(|figure| figure.name.clone()).collect();
        run.add(false, figures);
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
    let pair = Pair::start_as(&[], &settings.arguments(), true)?;
    let figures = go_through(&pair, settings)?;
    pair.end()?;
    Ok(figures)
}

/// Both sides run this, in step.
///
/// # Errors
/// The measurement failed.
pub(super) fn go_through(pair: &Pair, settings: &Settings) -> anyhow::Result<Figures> {
    match settings.group {
        Group::Floods => return floods::measure(pair, settings),
        Group::Shares => return shares::measure(pair, settings),
        Group::Load => return load::measure(pair, settings),
        Group::Memory | Group::Tcp | Group::Calls => {}
    }
    let (title, budget) = (settings.group.title(), settings.budget);
    let pace = Pace { title, samples: settings.samples, rounds: ROUNDS, budget };
    let (limits, results) = rounds::take(pair, items::items(pair, settings)?, &pace)?;
    Ok(Figures { limits, results })
}

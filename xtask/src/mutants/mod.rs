//! `cargo xtask mutants`: whether the tests notice a mistake.
//!
//! What you may rely on: two kinds of mistake. Without options each memory order is weakened in turn and the loom models must
//! fail (`crate::models`); that is a step of `cargo xtask test`. With `--sample N`, a run of an hour or more, N random changes
//! of the code itself are tried, each with the tests of its own crate, and at least [`NOTICED_MIN`] of them must be noticed by
//! a test that *fails*: one that hangs has not noticed. The same seed on the same tree gives the same sample.
//!
//! How it works: [`list`] asks cargo-mutants for every mutant that it can make; [`sample`] draws; [`equivalents`] names those that
//! no test can notice; [`tree`] is a copy of the repository with a build directory of its own, in which one file at a time is
//! changed and only its crate built again; [`trial`] runs the tests until the first one fails; [`report`] adds up.
//!
//! What it does not do: try documentation tests, or the tests of other crates.

mod equivalents;
mod list;
mod report;
mod sample;
mod suites;
mod tree;
mod trial;

use std::time::Instant;

use anyhow::{Context as _, Result, bail, ensure};
use rustix::process::{Resource, Rlimit, setrlimit};

use crate::runner::Context;
use equivalents::Equivalents;
use list::Mutant;
use report::Report;
use suites::Suite;
use tree::Copied;
use trial::Outcome;

/// Share of the mutants that a failing test must notice, in percent.
const NOTICED_MIN: f64 = 95.0;
/// Address space of each program that is run: a changed loop may ask for memory without end.
const ADDRESSES_MAX: u64 = 16 << 30;

/// What the command can be told.
#[derive(clap::Args, Clone, Debug)]
pub struct Options {
    /// Try this many random changes of the code, an hour or more, instead of weakening each memory order
    #[arg(long, value_name = "N")]
    sample: Option<usize>,
    /// What the sample is drawn from; the time of day if not given
    #[arg(long, requires = "sample")]
    seed: Option<u64>,
    /// Only of this crate, such as `core`
    #[arg(long = "crate", requires = "sample")]
    package: Option<String>,
    /// Only those whose line `FILE:LINE:COLUMN: CHANGE` contains this
    #[arg(long, requires = "sample")]
    matching: Option<String>,
}

impl Options {
    /// Whether a sample of the code's mutants is asked for, rather than the memory orders.
    pub fn samples(&self) -> bool {
        self.sample.is_some()
    }

    fn takes(&self, mutant: &Mutant) -> bool {
        let is_of = |name: &String| mutant.package == *name || mutant.package.strip_prefix("musubi-") == Some(name);
        self.package.as_ref().is_none_or(is_of) && self.matching.as_ref().is_none_or(|text| mutant.name.contains(text))
    }
}

/// Tries a sample; gives whether enough of it was noticed.
///
/// # Errors
/// If cargo-mutants is not installed, an entry of the equivalent ones matches nothing, or the tests fail without any change.
pub fn run(context: &Context, options: &Options) -> Result<bool> {
    let count = options.sample.context("how many?")?;
    let seed = options.seed.map_or_else(sample::fresh_seed, Ok)?;
    let all = list::all(context)?;
    let equivalents = Equivalents::read(&context.root)?;
    let wrong = equivalents.wrong(&all);
    if !wrong.is_empty() {
        bail!("{}:\n{}", equivalents::PATH, wrong.join("\n"));
    }
    let drawn = sample::draw(all.into_iter().filter(|mutant| options.takes(mutant)).collect(), count, seed);
    ensure!(!drawn.is_empty(), "no mutant is drawn: --sample is 0, or --crate and --matching leave none");
    println!("{} mutants, drawn with --seed {seed}", drawn.len());
    bound_memory()?;
    let mut report = Report::default();
    for suite in suites::SUITES {
        let (equivalent, own): (Vec<_>, Vec<_>) =
            drawn.iter().filter(|m| m.package == suite.package).partition(|m| equivalents.contain(m));
        equivalent.iter().for_each(|mutant| report.add(mutant, Outcome::Equivalent));
        if !own.is_empty() {
            run_suite(context, suite, &own, &mut report)?;
        }
    }
    println!("{}", report.table());
    report.unnoticed().iter().for_each(|line| println!("{line}"));
    let noticed = report.noticed_percent();
    println!("noticed by failing: {noticed:.1} %, wanted {NOTICED_MIN} %; the same sample again: --seed {seed}");
    Ok(noticed >= NOTICED_MIN)
}

/// Tries the mutants of one crate.
fn run_suite(context: &Context, suite: &'static Suite, mutants: &[&Mutant], report: &mut Report) -> Result<()> {
    let copied = Copied::make(context)?;
    let usual = trial::baseline(context, &copied, suite)?;
    for mutant in mutants {
        let begin = Instant::now();
        let changed = copied.change(mutant)?;
        let outcome = trial::run(context, &copied, suite, usual);
        drop(changed);
        let outcome = outcome?;
        println!(
            "{} in {:.1} s: {}{}",
            outcome.word(),
            begin.elapsed().as_secs_f64(),
            mutant.name,
            outcome.noticed_by()
        );
        report.add(mutant, outcome);
    }
    Ok(())
}

fn bound_memory() -> Result<()> {
    let limit = Rlimit { current: Some(ADDRESSES_MAX), maximum: Some(ADDRESSES_MAX) };
    setrlimit(Resource::As, limit).context("bounding the memory of changed programs")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crate_is_named_with_or_without_its_prefix() {
        let named = |name: &str| Options { sample: Some(1), seed: None, package: Some(name.into()), matching: None };
        let mutant = list::tests::mutant("a.rs:1:2: replace + with - in f");
        assert!(named("core").takes(&mutant) && named("musubi-core").takes(&mutant) && !named("cor").takes(&mutant));
        let matching = Options { package: None, matching: Some("in f".into()), ..named("") };
        assert!(matching.takes(&mutant) && !Options { matching: Some("in g".into()), ..matching }.takes(&mutant));
    }
}

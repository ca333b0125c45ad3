//! `cargo xtask mpi`: MPI programs, unmodified, over Musubi's VIs.
//!
//! What you may rely on: a run counts only if the stack itself says that it used the provider `vi`, and if the program found every
//! result as it must be. What cannot be installed here is said and left out, and the command fails.
//!
//! How it works: the provider is built, Debian's packages and two Python environments with the wheels of MPICH and Open MPI are
//! installed, and each stack runs the programs of `peers/mpi` with 2 and 4 ranks, over the provider and over its own
//! shared memory. mpi4py's own tests come from its source package.
//!
//! What it does not do: hosts apart: the provider's NIC is that of one machine.

mod installing;
mod stacks;

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Result, bail};
use comfy_table::{Table, presets};

use crate::runner::{CHECKED, Context, Output, RELEASE, Verdict};
use installing::Installed;
use stacks::{Over, STACKS, Stack};

/// Longest run of one program.
const TIME_MAX: Duration = Duration::from_secs(180);
/// Ranks of the runs.
const RANKS: [u32; 2] = [2, 4];
/// mpi4py's test modules that are run: messages of buffers and of objects, collective operations, windows.
const TESTS: [&str; 4] = ["test_p2p_buf", "test_p2p_obj", "test_cco_buf", "test_rma"];

/// What the command can be told.
#[derive(clap::Args)]
pub struct Options {
    /// Leave mpi4py's own tests out, which take minutes
    #[arg(long)]
    quick: bool,
    /// Run only this one; may be repeated
    #[arg(long = "stack", value_name = "NAME", value_parser = stacks::names())]
    stacks: Vec<String>,
    /// Write the table to this file too, as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// One run.
#[derive(serde::Serialize)]
struct Row {
    stack: &'static str,
    ranks: u32,
    program: &'static str,
    over: &'static str,
    outcome: String,
    one_way_us: Option<f64>,
    #[serde(skip)]
    is_good: bool,
}

/// Installs, runs, prints.
///
/// # Errors
/// If the provider does not build, or a run fails or cannot be made here; the others are made and printed all the same.
pub fn run(context: &Context, options: &Options) -> Result<()> {
    let provider = installing::provider(context, RELEASE)?;
    let mut rows = Vec::new();
    for stack in
        STACKS.iter().filter(|stack| options.stacks.is_empty() || options.stacks.iter().any(|n| n == stack.name))
    {
        match installing::install(context, stack) {
            Ok(installed) => rows.extend(runs(context, stack, &installed, &provider, options)),
            Err(error) => rows.push(row(stack, (0, "installation"), Over::Vi, format!("{error:#}"))),
        }
    }
    print(&rows);
    if let Some(file) = &options.json {
        std::fs::write(file, serde_json::to_string_pretty(&rows)?)?;
    }
    match rows.iter().filter(|row| !row.is_good).count() {
        0 => Ok(()),
        failed => bail!("{failed} of {} runs failed", rows.len()),
    }
}

/// Step: Debian's stack with two ranks, where it is installed.
///
/// # Errors
/// If the provider does not build.
pub fn step(context: &Context) -> Result<Verdict> {
    let Some(stack) = STACKS.iter().find(|stack| stack.packages.contains(&"openmpi-bin")) else {
        return Ok(Verdict::failed("no stack of Debian's"));
    };
    if let Some(reason) = crate::packages::lacking(stack.packages) {
        return Ok(Verdict::skipped(reason));
    }
    let provider = installing::provider(context, CHECKED)?;
    let installed = installing::install(context, stack)?;
    let row = ring(context, stack, &installed, (2, Over::Vi), &provider);
    println!("   {}: {} ranks over vi: {}", row.stack, row.ranks, row.outcome);
    Ok(if row.is_good { Verdict::passed() } else { Verdict::failed(row.outcome) })
}

fn runs(context: &Context, stack: &Stack, installed: &Installed, provider: &Path, options: &Options) -> Vec<Row> {
    let mut rows = Vec::new();
    for ranks in RANKS {
        for over in [Over::Vi, Over::OwnMemory] {
            rows.push(ring(context, stack, installed, (ranks, over), provider));
        }
    }
    if !options.quick && installed.tests.is_some() {
        rows.push(own_tests(context, stack, installed, provider));
    }
    rows
}

/// The program that looks at everything it gets.
fn ring(context: &Context, stack: &Stack, installed: &Installed, (ranks, over): (u32, Over), provider: &Path) -> Row {
    let mut command = stack.launch(installed, (ranks, over), provider);
    command.args(&installed.ring);
    println!("   {} with {ranks} ranks over {}", stack.name, over.word());
    let outcome = context.run_unseen(&mut command, TIME_MAX);
    let mut row = row(stack, (ranks, "ring"), over, judged(stack, over, outcome.as_ref()));
    row.is_good = row.outcome == stacks::VERIFIED;
    row.one_way_us = outcome.ok().and_then(|output| number_of(&output.text, "one_way_us"));
    row
}

fn judged(stack: &Stack, over: Over, outcome: Result<&Output, &anyhow::Error>) -> String {
    let output = match outcome {
        Ok(output) => output,
        Err(error) => return format!("{error:#}"),
    };
    if !output.status.success() || number_of(&output.text, "wrong") != Some(0.0) {
        let last = output.text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default();
        return format!("{}: {last}", output.status);
    }
    if over == Over::Vi && !output.text.contains(stack.says) {
        return String::from("it did not say that it used vi");
    }
    String::from(stacks::VERIFIED)
}

fn own_tests(context: &Context, stack: &Stack, installed: &Installed, provider: &Path) -> Row {
    let mut command = stack.launch(installed, (2, Over::Vi), provider);
    command.args(installed.tests.iter().flatten());
    TESTS.iter().for_each(|module| {
        command.args(["-i", module]);
    });
    println!("   {}: mpi4py's own tests", stack.name);
    let outcome = match context.run_unseen(&mut command, 4 * TIME_MAX) {
        Err(error) => format!("{error:#}"),
        Ok(output) if output.status.success() => {
            let ran = output.text.lines().find(|line| line.starts_with("Ran ")).unwrap_or("verified");
            ran.to_owned()
        }
        Ok(output) => format!("{}", output.status),
    };
    let mut row = row(stack, (2, "mpi4py's tests"), Over::Vi, outcome);
    row.is_good = row.outcome.starts_with("Ran ");
    row
}

fn row(stack: &Stack, (ranks, program): (u32, &'static str), over: Over, outcome: String) -> Row {
    Row { stack: stack.name, ranks, program, over: over.word(), outcome, one_way_us: None, is_good: false }
}

/// The number behind a word at the beginning of a line.
fn number_of(text: &str, word: &str) -> Option<f64> {
    text.lines().find_map(|line| line.strip_prefix(word)?.trim().parse().ok())
}

fn print(rows: &[Row]) {
    let mut table = Table::new();
    table.load_style(presets::UTF8_FULL_CONDENSED);
    table.set_header(["stack", "ranks", "program", "over", "one way, us", "outcome"]);
    for row in rows {
        let us = row.one_way_us.map_or_else(String::new, |us| format!("{us:.1}"));
        table.add_row([row.stack, &row.ranks.to_string(), row.program, row.over, &us, &row.outcome]);
    }
    println!("{table}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_stand_behind_their_words() {
        let text = "noise\none_way_us 12.50\nwrong 0\n";
        assert_eq!((number_of(text, "one_way_us"), number_of(text, "wrong")), (Some(12.5), Some(0.0)));
        assert_eq!(number_of(text, "right"), None);
    }
}

//! `cargo xtask simulate`: whole systems in simulated time, repeated by their seed.
//!
//! What you may rely on: what it runs is `crates/musubi-mcapi/tests/simulation`, the tests of which run in
//! `cargo xtask test` too; here it is built with optimization and as large as you say. The last line of a failure is the command
//! that shows it again.
//!
//! How it works: the numbers are handed to the test by environment variables. For the cost the same test program runs under
//! Cachegrind, which counts instructions: the difference between two runs of different lengths, by message.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use comfy_table::{Table, presets};

use crate::packages;
use crate::runner::{CHECKED, Context, Verdict};

/// Longest run.
const TIME_MAX: Duration = Duration::from_secs(600);
/// Events of the run in `cargo xtask test`.
const STEP_EVENTS: u64 = 200_000;

/// Most nodes, endpoints of each, and fewest events for each and in all.
const NODES_MAX: u64 = 500;
const ENDPOINTS_MAX: u64 = 1000;
const EVENTS_MIN: u64 = 100;
const EVENTS_MIN_ALL: u64 = 1000;

/// Idle endpoints or nodes beside which the cost of a message is counted.
const IDLE: [u64; 4] = [10, 100, 1000, 10_000];
/// Messages of the two runs whose difference counts.
const MESSAGES: (u64, u64) = (1000, 5000);
/// Most that a message may cost beside many, times what it costs beside few.
const GROWTH_MAX: f64 = 1.05;

/// What the command can be told.
#[derive(clap::Args, Clone, Debug)]
pub struct Options {
    /// What everything random is made from
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Events before everything is left to settle, at least 1000 and 100 a node
    #[arg(long, default_value_t = 1_000_000)]
    events: u64,
    /// Nodes of the system, 1 to 500
    #[arg(long, default_value_t = 200)]
    nodes: u64,
    /// Endpoints of all nodes together, at most 1000 a node
    #[arg(long, default_value_t = 10_000)]
    endpoints: u64,
    /// Count instead what a message costs beside 10 to 10,000 idle endpoints and nodes
    #[arg(long)]
    cost: bool,
}

impl Options {
    /// # Errors
    /// A system that is too large, or in which too little happens for its promises to be seen kept.
    fn check(&self) -> Result<()> {
        ensure!((1..=NODES_MAX).contains(&self.nodes), "--nodes must be 1 to {NODES_MAX}");
        let endpoints_max = self.nodes * ENDPOINTS_MAX;
        ensure!(self.endpoints <= endpoints_max, "--endpoints must be {endpoints_max} at most for these nodes");
        let events_min = (self.nodes * EVENTS_MIN).max(EVENTS_MIN_ALL);
        ensure!(self.events >= events_min, "--events must be {events_min} at least for these nodes");
        Ok(())
    }
}

/// Step: one run of [`STEP_EVENTS`] with 200 nodes and 10,000 endpoints.
///
/// # Errors
/// If it cannot be built or started.
pub fn step(context: &Context) -> Result<Verdict> {
    let options = Options { seed: 1, events: STEP_EVENTS, nodes: 200, endpoints: 10_000, cost: false };
    let mut command = system(context, &options)?;
    let output = context.run_quietly(&mut command, TIME_MAX)?;
    print!("{}", output.text);
    Ok(Verdict::of_tests(&output))
}

/// Runs on the caller's terminal; gives whether everything held.
///
/// # Errors
/// If it cannot be built or started.
pub fn run(context: &Context, options: &Options) -> Result<bool> {
    if options.cost {
        return cost(context);
    }
    options.check()?;
    Ok(system(context, options)?.status().context("running the simulation")?.success())
}

/// The run of a system.
fn system(context: &Context, options: &Options) -> Result<Command> {
    let mut command = Command::new(program(context)?);
    command.args(["--exact", "a_system_keeps_its_promises", "--nocapture"]);
    command.env("MUSUBI_SIMULATE_SEED", options.seed.to_string());
    command.env("MUSUBI_SIMULATE_EVENTS", options.events.to_string());
    command.env("MUSUBI_SIMULATE_NODES", options.nodes.to_string());
    command.env("MUSUBI_SIMULATE_ENDPOINTS", options.endpoints.to_string());
    Ok(command)
}

/// Prints instructions by message beside idle endpoints and nodes; gives whether they do not grow.
fn cost(context: &Context) -> Result<bool> {
    if let Some(reason) = packages::lacking(&["valgrind"]) {
        bail!(reason);
    }
    let program = program(context)?;
    let mut table = Table::new();
    table.load_style(presets::UTF8_FULL_CONDENSED);
    table.set_header(["idle", "endpoints: instructions a message", "nodes: instructions a message"]);
    let mut figures = Vec::new();
    for idle in IDLE {
        let [endpoints, nodes] = [(idle, 0), (0, idle)].map(|idle| instructions(context, &program, idle));
        let (endpoints, nodes) = (endpoints?, nodes?);
        table.add_row([idle.to_string(), format!("{endpoints:.0}"), format!("{nodes:.0}")]);
        figures.push([endpoints, nodes]);
    }
    println!("{table}");
    let Some(first) = figures.first() else { bail!("nothing was measured") };
    let grows = figures.iter().any(|row| row.iter().zip(first).any(|(now, first)| *now > GROWTH_MAX * first));
    println!("sending, carrying, receiving, confirming; at most {GROWTH_MAX} times the first row: {}", !grows);
    Ok(!grows)
}

/// Instructions by message: the difference between a long and a short run.
fn instructions(context: &Context, program: &Path, (endpoints, nodes): (u64, u64)) -> Result<f64> {
    let count = |messages: u64| -> Result<f64> {
        let mut command = Command::new("valgrind");
        command.args(["--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null"]).arg(program);
        command.args(["--exact", "cost::messages_beside_idle_ones"]);
        command.env("MUSUBI_COST_ENDPOINTS", endpoints.to_string());
        command.env("MUSUBI_COST_NODES", nodes.to_string());
        command.env("MUSUBI_COST_MESSAGES", messages.to_string());
        let output = context.run_unseen(&mut command, TIME_MAX)?;
        let line = output.text.lines().find_map(|line| line.split_once(" refs:"));
        let count = line.filter(|_| output.status.success()).map(|(_, count)| count.trim().replace(',', ""));
        count.and_then(|count| count.parse().ok()).with_context(|| format!("no count in:\n{}", output.text))
    };
    Ok((count(MESSAGES.1)? - count(MESSAGES.0)?) / (MESSAGES.1 - MESSAGES.0) as f64)
}

/// Builds the test program; gives where it is.
fn program(context: &Context) -> Result<PathBuf> {
    let mut cargo = context.cargo();
    cargo.args(["test", "--no-run", "--profile", CHECKED, "-p", "musubi-mcapi", "--test", "simulation"]);
    // Engine and session need nothing of an operating system, and the rest takes long to build.
    cargo.arg("--no-default-features");
    let text = context.must(&mut cargo)?;
    let line = text.lines().find_map(|line| line.trim().strip_prefix("Executable ")?.rsplit_once('('));
    let Some((_, path)) = line else { bail!("cargo does not say where the test program is:\n{text}") };
    Ok(context.root.join(path.trim_end_matches(')')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn systems_in_which_nothing_can_be_seen_are_refused() {
        let of = |nodes, endpoints, events| Options { seed: 1, events, nodes, endpoints, cost: false }.check();
        let good = [(1, 0, 1000), (500, 10_000, 100_000), (200, 10_000, 1_000_000)];
        assert!(good.iter().all(|(nodes, endpoints, events)| of(*nodes, *endpoints, *events).is_ok()));
        let bad = [(0, 0, 1000), (501, 0, 1_000_000), (1, 1001, 1000), (1, 1, 999), (500, 1, 49_999)];
        assert!(bad.iter().all(|(nodes, endpoints, events)| of(*nodes, *endpoints, *events).is_err()));
    }
}

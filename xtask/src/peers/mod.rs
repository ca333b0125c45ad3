//! `cargo xtask bench-peers`: the same ping-pong over Musubi, iceoryx2, Open MPI, UCX, libfabric and nothing at all.
//!
//! What you may rely on: every system runs the loop described in `peers/c/pingpong.h`, in two processes pinned to two
//! cores. A ratio compares a slice of a peer with a slice of the bare cache-line (or futex) ping-pong taken directly
//! before it, so that a machine whose cores drift (a virtual one does) does not favour anybody.
//!
//! How it works: the programs in `peers/` are built, then rounds of slices of all of them follow each other. Each slice
//! leaves its raw samples in a file; percentiles are taken over all slices, the ratio is the median of the slices' ratios.
//! Musubi's own command measures itself beside the same two limits, interleaved in the same way, in one run.
//!
//! What it does not do: keep the machine quiet. It prints the load that it found.

mod programs;
mod series;
mod table;

use std::path::PathBuf;

use anyhow::{Result, bail};
use clap::builder::PossibleValuesParser;

use crate::runner::Context;
use programs::{Peer, Program};
use series::{Measurement, Series};

/// Payloads in bytes.
const PAYLOADS: [usize; 4] = [8, 64, 4096, 65536];
/// Payload of the sleeping variant.
const PAYLOAD_BLOCK: usize = 64;

/// What is measured, and where the result goes.
#[derive(clap::Args)]
pub struct Options {
    /// 20,000 samples for each figure instead of 100,000
    #[arg(long)]
    quick: bool,
    /// Write the figures to this file too
    #[arg(long)]
    json: Option<PathBuf>,
    /// Measure only this one; may be repeated
    #[arg(long = "peer", value_name = "NAME", value_parser = PossibleValuesParser::new(names()))]
    peers: Vec<String>,
}

/// Names that `--peer` takes: this system's own, and the others'.
fn names() -> Vec<&'static str> {
    std::iter::once("musubi").chain(programs::ALL.iter().map(|peer| peer.name)).collect()
}

impl Options {
    fn wants(&self, name: &str) -> bool {
        self.peers.is_empty() || self.peers.iter().any(|p| p == name)
    }

    /// Number of slices, and samples in each.
    fn rounds(&self) -> (usize, usize) {
        if self.quick { (5, 4_000) } else { (10, 10_000) }
    }
}

/// Whether a receiver looks all the time or sleeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// It looks all the time.
    Poll,
    /// It sleeps in the kernel.
    Block,
}

impl Mode {
    /// What the programs and the figures call it.
    pub fn name(self) -> &'static str {
        match self {
            Mode::Poll => "poll",
            Mode::Block => "block",
        }
    }
}

/// Builds, measures, and prints the table.
///
/// # Errors
/// If a system that is installed cannot be built or measured; the others are measured and printed nevertheless.
pub fn bench(context: &Context, options: &Options) -> Result<()> {
    let mut failed = Vec::new();
    let mut skipped = Vec::new();
    let mut peers = Vec::new();
    for peer in programs::ALL.iter().filter(|peer| options.wants(peer.name)) {
        match programs::build(context, peer) {
            Ok(Ok(program)) => peers.push((peer, program)),
            Ok(Err(reason)) => skipped.push((peer.name, reason)),
            Err(error) => failed.push(format!("{}: {error:#}", peer.name)),
        }
    }
    let limits = programs::build_limits(context)?;
    let mut results = Vec::new();
    if options.wants("musubi") {
        match programs::bench_musubi(context, options.quick) {
            Ok(Ok(measurements)) => results.extend(measurements),
            Ok(Err(reason)) => skipped.push(("musubi", reason)),
            Err(error) => failed.push(format!("musubi: {error:#}")),
        }
    }
    let (bare, measured) = measure(context, options, &limits, &peers, &mut failed)?;
    results.extend(measured);
    table::print(&bare, &results);
    print_circumstances(&skipped, &failed);
    if let Some(path) = &options.json {
        std::fs::write(path, table::json(&bare, &results, &skipped))?;
    }
    if failed.is_empty() { Ok(()) } else { bail!("{} could not be measured", failed.len()) }
}

/// Takes all slices; gives the limits' figures and the peers'.
fn measure(
    context: &Context,
    options: &Options,
    limits: &Program,
    peers: &[(&Peer, Program)],
    failed: &mut Vec<String>,
) -> Result<(Vec<Measurement>, Vec<Measurement>)> {
    let (rounds, samples) = options.rounds();
    let mut bare = [Series::new("cacheline", Mode::Poll, 8), Series::new("futex", Mode::Block, 8)];
    let mut all: Vec<(&Program, Series)> = Vec::new();
    for (peer, program) in peers {
        all.extend(PAYLOADS.map(|bytes| (program, Series::new(peer.name, Mode::Poll, bytes))));
        if peer.sleeps {
            all.push((program, Series::new(peer.name, Mode::Block, PAYLOAD_BLOCK)));
        }
    }
    for round in 1..=rounds {
        println!("round {round} of {rounds}");
        if all.is_empty() {
            // Nothing to compare with, but the limits alone are worth knowing.
            for limit in &mut bare {
                let slice = limits.slice(context, limit.mode, limit.bytes, samples)?;
                limit.add(slice, None);
            }
        }
        all.retain_mut(|(program, series)| {
            let added = add_slice(context, limits, &mut bare, program, series, samples);
            if let Err(error) = &added {
                failed.push(format!("{} with {} bytes: {error:#}", series.peer, series.bytes));
            }
            added.is_ok()
        });
    }
    let figures = |series: &Series| series.measurement();
    Ok((bare.iter().filter_map(figures).collect(), all.iter().filter_map(|(_, s)| s.measurement()).collect()))
}

/// One slice of the limit, then one of the peer.
fn add_slice(
    context: &Context,
    limits: &Program,
    bare: &mut [Series; 2],
    program: &Program,
    series: &mut Series,
    samples: usize,
) -> Result<()> {
    let limit = &mut bare[usize::from(series.mode == Mode::Block)];
    let before = limits.slice(context, limit.mode, limit.bytes, samples)?;
    let slice = program.slice(context, series.mode, series.bytes, samples)?;
    let ratio = series::median(&slice) / series::median(&before);
    limit.add(before, None);
    series.add(slice, Some(ratio));
    Ok(())
}

fn print_circumstances(skipped: &[(&str, String)], failed: &[String]) {
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    println!("load average {} on {cores} cores", load.split(' ').take(3).collect::<Vec<_>>().join(" "));
    skipped.iter().for_each(|(name, reason)| println!("skipped {name}: {reason}"));
    failed.iter().for_each(|line| println!("failed {line}"));
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        options: Options,
    }

    #[test]
    fn a_system_that_nobody_measures_is_refused() {
        let line = |name: &str| Line::try_parse_from(["bench-peers", "--peer", name]);
        assert!(line("ucx").is_ok_and(|line| line.options.wants("ucx") && !line.options.wants("musubi")));
        assert!(line("musubi").is_ok() && line("nobody").is_err());
    }
}

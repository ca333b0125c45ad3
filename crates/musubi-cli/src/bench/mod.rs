//! `musubi bench`: figures beside the machine's own limits, measured in the same run.
//!
//! How it works: two processes, pinned to two cores, go through the same list of items round by round, so that each
//! figure and its limit see the same machine. The first process (ping) measures and reports, the second (pong) answers.
//! A one-way time is half a round trip.

mod api;
mod channels;
mod figures;
mod limits;
mod mcapi;
mod nas;
mod only;
mod pair;
mod required;
mod rounds;
mod run;
mod sizes;
mod smp;
mod sockets;
mod via;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, ensure};
use clap::Subcommand;

use crate::output;
use figures::Report;
use pair::{Pair, Side};
use rounds::{Pace, ROUNDS, SAMPLES, SAMPLES_QUICK};

/// What to measure.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// MDCOM channels between two processes, beside a bare cache line, futex and copy.
    Mdcom(Mdcom),
    /// MCAPI between two processes, over shared memory and TCP, beside bare cache line, futex, copy and sockets.
    Mcapi(mcapi::Arguments),
    /// VIs between two processes, over shared memory and TCP, beside bare cache line, futex, copies and sockets.
    Via(via::Choice),
    /// The multiprocessor layer on threads: traps, switches, semaphores, calls, locks; built for one core and for several.
    Smp(Smp),
    /// NAS EP, IS, CG and MG, class S, in one process and in two over channels.
    Nas(Nas),
    /// Only the six calls of table 4, in this process; for counting instructions under valgrind.
    #[command(hide = true)]
    Calls {
        /// How many batches of 32.
        #[arg(long, default_value_t = 1000)]
        batches: u32,
    },
    /// The second process of a measurement; started by the first.
    #[command(hide = true)]
    Peer(Peer),
    /// The first process of a measurement that runs elsewhere; says its figures as JSON.
    #[command(hide = true)]
    First {
        /// The command that runs the second process.
        #[arg(long)]
        beside: String,
        #[command(flatten)]
        mcapi: Part,
    },
}

#[derive(Debug, clap::Args)]
struct Mdcom {
    /// Write the figures to this file as JSON.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// 20,000 samples a latency figure instead of 100,000.
    #[arg(long)]
    quick: bool,
    /// Only these figures, and the limits: patterns like 'fifo_*_64', or parts of names, with commas between them.
    #[arg(long, value_name = "GLOB", default_value = "")]
    only: String,
}

#[derive(Debug, clap::Args)]
struct Smp {
    /// Write the figures to this file as JSON.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// 5 rounds instead of 20.
    #[arg(long)]
    quick: bool,
}

#[derive(Debug, clap::Args)]
struct Nas {
    /// Write the figures to this file as JSON.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

#[derive(Debug, clap::Args)]
struct Peer {
    #[arg(long)]
    pages: PathBuf,
    #[arg(long)]
    instance: String,
    #[arg(long, default_value_t = 1)]
    core: usize,
    #[arg(long)]
    nas: bool,
    #[command(flatten)]
    part: Part,
}

/// What both processes take part in.
#[derive(Debug, clap::Args)]
struct Part {
    #[arg(long, default_value_t = 0)]
    samples: u32,
    #[arg(long, default_value = "")]
    only: String,
    #[arg(long, value_enum)]
    group: Option<mcapi::Group>,
    #[arg(long, value_enum)]
    via: Option<via::Group>,
    #[arg(long)]
    one_core: bool,
    #[arg(long, default_value_t = 0)]
    seconds: u32,
    #[arg(long, default_value_t = 0)]
    budget_ms: u64,
}

impl Part {
    /// As a part of `bench mcapi`, if it is one.
    fn mcapi(&self) -> Option<mcapi::Settings> {
        let Part { samples, ref only, group, one_core, seconds, budget_ms, .. } = *self;
        let budget = Duration::from_millis(budget_ms);
        Some(mcapi::Settings { group: group?, one_core, samples, only: only.clone(), seconds, budget })
    }

    /// As a part of `bench via`, if it is one.
    fn via(&self) -> Option<via::Settings> {
        let Part { samples, ref only, via, budget_ms, .. } = *self;
        Some(via::Settings { group: via?, samples, only: only.clone(), budget: Duration::from_millis(budget_ms) })
    }
}

/// Time for all MDCOM figures; on a machine that does nothing else they take a tenth of it.
const MDCOM_BUDGET: Duration = Duration::from_secs(300);

/// Runs the benchmark.
pub fn run(arguments: &Arguments) -> anyhow::Result<()> {
    match &arguments.what {
        What::Mdcom(mdcom) => measure(mdcom),
        What::Smp(smp) => {
            output::check_writable(smp.json.as_deref()).and_then(|()| smp::run(smp.json.as_deref(), smp.quick))
        }
        What::Nas(nas) => output::check_writable(nas.json.as_deref()).and_then(|()| nas::run(nas.json.as_deref())),
        What::Calls { batches } => api::run_alone(*batches),
        What::Mcapi(arguments) => mcapi::run(arguments),
        What::Via(arguments) => via::run(arguments),
        What::Peer(peer) => take_part(peer),
        What::First { beside, mcapi } => mcapi::first(beside, &mcapi.mcapi().context("--group is missing")?),
    }
}

/// The second process.
fn take_part(peer: &Peer) -> anyhow::Result<()> {
    let pair = Pair::join(&peer.pages, &peer.instance, peer.core)?;
    if let Some(settings) = peer.part.via() {
        return via::go_through(&pair, &settings).map(drop);
    }
    match peer.part.mcapi() {
        Some(settings) => mcapi::go_through(&pair, &settings).map(drop),
        None if peer.nas => nas::go_through(&pair).map(drop),
        None => go_through(&pair, peer.part.samples, &peer.part.only).map(drop),
    }
}

fn measure(arguments: &Mdcom) -> anyhow::Result<()> {
    pair::needs_two_cores()?;
    output::check_writable(arguments.json.as_deref())?;
    let samples = if arguments.quick { SAMPLES_QUICK } else { SAMPLES };
    let pair = Pair::start(&["--samples", &samples.to_string(), "--only", &arguments.only])?;
    let report = go_through(&pair, samples, &arguments.only)?;
    pair.end()?;
    report.print()?;
    if let Some(path) = &arguments.json {
        let text = serde_json::to_string_pretty(&report)?;
        std::fs::write(path, text + "\n").with_context(|| format!("writing {}", path.display()))?;
    }
    Ok(())
}

/// Both sides run this, in step.
fn go_through(pair: &Pair, samples: u32, only: &str) -> anyhow::Result<Report> {
    let setup = channels::Setup::attach(pair)?;
    let limits = limits::items();
    let mut results = channels::items(&setup)?;
    results.extend(api::items(&setup)?);
    let is_limit = limits.iter().any(|item| only::wants(only, &item.name()));
    results.retain(|item| only::wants(only, &item.name()));
    // The second process ends with us.
    ensure!(pair.side == Side::Pong || is_limit || !results.is_empty(), "no figure is named like '{only}'");
    let pace = Pace { title: "MDCOM, two cores", samples, rounds: ROUNDS, budget: MDCOM_BUDGET };
    let (limits, results) = rounds::take(pair, (limits, results), &pace)?;
    Ok(Report::new(limits, results))
}

//! `musubi bench`: figures beside the machine's own limits, measured in the same run.
//!
//! How it works: two processes, pinned to two cores, go through the same list of items round by round, so that each
//! figure and its limit see the same machine. The first process (ping) measures and reports, the second (pong) answers.
//! A one-way time is half a round trip.

mod api;
mod channels;
mod figures;
mod limits;
mod pair;

use std::path::PathBuf;

use anyhow::Context;
use clap::Subcommand;

use figures::{Figure, Report};
use pair::{Pair, Side};

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
}

#[derive(Debug, clap::Args)]
struct Mdcom {
    /// Write the figures to this file as JSON.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// 20,000 samples a latency figure instead of 100,000.
    #[arg(long)]
    quick: bool,
    /// Only figures whose name contains this text, and the limits.
    #[arg(long, value_name = "TEXT", default_value = "")]
    only: String,
}

#[derive(Debug, clap::Args)]
struct Peer {
    #[arg(long)]
    pages: PathBuf,
    #[arg(long)]
    instance: String,
    #[arg(long)]
    samples: u32,
    #[arg(long)]
    only: String,
}

/// Samples of a latency figure.
const SAMPLES: u32 = 100_000;
const SAMPLES_QUICK: u32 = 20_000;
/// Rounds over which the samples of each item are spread.
const ROUNDS: u32 = 20;

/// Bytes of one copied block, and blocks in one sample of a copy figure.
const COPY_BYTES: usize = 64 << 10;
const COPY_BATCH: usize = 64;

/// Samples of a copy figure, each a batch.
const fn copy_samples(latency_samples: u32) -> u32 {
    latency_samples / 100
}

/// Runs the benchmark.
pub fn run(arguments: &Arguments) -> anyhow::Result<()> {
    match &arguments.what {
        What::Mdcom(mdcom) => measure(mdcom),
        What::Calls { batches } => api::run_alone(*batches),
        What::Peer(peer) => {
            let pair = Pair::join(&peer.pages, &peer.instance)?;
            go_through(&pair, peer.samples, &peer.only).map(drop)
        }
    }
}

fn measure(arguments: &Mdcom) -> anyhow::Result<()> {
    let cores = musubi_linux::realtime::cores().len();
    anyhow::ensure!(
        cores >= 2,
        "a hand-over between two processors cannot be measured on one: this process may use {cores} (taskset, cgroup?)"
    );
    let samples = if arguments.quick { SAMPLES_QUICK } else { SAMPLES };
    let pair = Pair::start(samples, &arguments.only)?;
    let report = go_through(&pair, samples, &arguments.only)?;
    pair.end()?;
    report.print();
    if let Some(path) = &arguments.json {
        let text = serde_json::to_string_pretty(&report)?;
        std::fs::write(path, text + "\n").with_context(|| format!("writing {}", path.display()))?;
    }
    Ok(())
}

/// One thing that is measured, a part of its samples a round.
trait Item {
    /// Name of the figure.
    fn name(&self) -> String;
    /// Unit of its samples.
    fn unit(&self) -> &'static str {
        "ns"
    }
    /// How many samples of the whole `latency_samples` this item takes; a throughput item takes fewer, longer ones.
    fn samples(&self, latency_samples: u32) -> u32 {
        latency_samples
    }
    /// Takes `count` samples on the ping side, answers as often on the pong side.
    fn round(&mut self, pair: &Pair, count: u32, into: &mut Vec<f64>) -> anyhow::Result<()>;
}

/// Both sides run this, in step.
fn go_through(pair: &Pair, samples: u32, only: &str) -> anyhow::Result<Report> {
    let setup = channels::Setup::attach(pair)?;
    let mut limits = limits::items();
    let mut results = channels::items(&setup)?;
    results.extend(api::items(&setup)?);
    results.retain(|item| item.name().contains(only));
    let mut samples_of: Vec<Vec<f64>> = vec![Vec::new(); limits.len() + results.len()];
    // One round to warm up, thrown away.
    for round in 0..=ROUNDS {
        for (item, into) in limits.iter_mut().chain(&mut results).zip(&mut samples_of) {
            let count = item.samples(samples).div_ceil(ROUNDS);
            let mut taken = Vec::with_capacity(count as usize);
            pair.meet()?;
            item.round(pair, count, &mut taken).with_context(|| format!("measuring {}", item.name()))?;
            if round > 0 {
                into.append(&mut taken);
            }
        }
        if pair.side == Side::Ping && std::io::IsTerminal::is_terminal(&std::io::stderr()) {
            eprint!("\rround {round} of {ROUNDS} ");
        }
    }
    if pair.side == Side::Ping && std::io::IsTerminal::is_terminal(&std::io::stderr()) {
        eprintln!();
    }
    let mut figures = limits.iter().chain(&results).zip(samples_of).map(|(item, taken)| Figure::of(&**item, taken));
    let limits = figures.by_ref().take(limits.len()).collect();
    Ok(Report::new(limits, figures.collect()))
}

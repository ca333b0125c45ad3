//! `musubi bench`: figures beside the machine's own limits, measured in the same run.

/// What to measure.
#[derive(Debug, clap::Args)]
pub struct Arguments {}

/// Runs the benchmark.
pub fn run(_arguments: &Arguments) -> anyhow::Result<()> {
    anyhow::bail!("not written yet")
}

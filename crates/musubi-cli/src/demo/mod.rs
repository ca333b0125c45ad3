//! `musubi demo`: three processes that talk while one of them is killed.

/// How to run the demo.
#[derive(Debug, clap::Args)]
pub struct Arguments {}

/// Runs the demo.
pub fn run(_arguments: &Arguments) -> anyhow::Result<()> {
    anyhow::bail!("not written yet")
}

//! `musubi status`: a running system from outside.
#[derive(Debug, clap::Args)]
pub struct Arguments {}
pub fn run(_: &Arguments) -> anyhow::Result<()> { anyhow::bail!("not written yet") }

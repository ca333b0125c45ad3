//! The crash proof: a loaded system whose participants are killed at random, with an account of every message.
//!
//! How it works: the program is `testsuite/soak`; it is built with optimization and run, for people with their terminal.

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result};

use crate::runner::{CHECKED, Context, RELEASE, Verdict};

/// Participants killed in `cargo xtask test`.
const KILLS: u32 = 100;
/// Longest time for that.
const TIME_MAX: Duration = Duration::from_secs(300);

/// What `cargo xtask soak` takes.
#[derive(clap::Args, Clone, Debug)]
pub struct Options {
    /// Participants to kill
    #[arg(long, default_value_t = KILLS)]
    kills: u32,
    /// Seed of the random choices; a new one each run if not given
    #[arg(long)]
    seed: Option<u64>,
    /// End after this time even if fewer were killed
    #[arg(long, value_name = "SECONDS")]
    seconds_max: Option<u64>,
    /// Write the result as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// Step: [`KILLS`] kills.
///
/// # Errors
/// If the program cannot be built or started.
pub fn step(context: &Context) -> Result<Verdict> {
    let mut command = program(context, CHECKED)?;
    let output = context.run_quietly(command.args(["--kills", &KILLS.to_string()]), TIME_MAX)?;
    print!("{}", output.text);
    Ok(Verdict::of_exit(&output))
}

/// Runs the proof on the caller's terminal; gives whether it holds.
///
/// # Errors
/// If the program cannot be built or started.
pub fn run(context: &Context, options: &Options) -> Result<bool> {
    let mut command = program(context, RELEASE)?;
    command.args(["--kills", &options.kills.to_string()]);
    if let Some(seed) = options.seed {
        command.args(["--seed", &seed.to_string()]);
    }
    if let Some(seconds) = options.seconds_max {
        command.args(["--seconds-max", &seconds.to_string()]);
    }
    if let Some(json) = &options.json {
        command.arg("--json").arg(json);
    }
    Ok(command.status().context("running the crash proof")?.success())
}

fn program(context: &Context, profile: &str) -> Result<Command> {
    context.must(context.cargo().args(["build", "--profile", profile, "-p", "musubi-soak"]))?;
    Ok(Command::new(context.target.join(profile).join("musubi-soak")))
}

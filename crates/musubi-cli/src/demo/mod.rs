//! `musubi demo`: three processes that talk while one of them is killed.
//!
//! What you may rely on: every figure is measured in this run; a message counts as received only if the gateway
//! recorded it ([`evidence`]). Nothing is left behind, however the run ends.
//!
//! How it works: the launcher ([`launcher`]) starts this program three times in hidden roles: [`control`], [`gateway`]
//! and [`storage`], attached to the system of [`system`]. Halfway it kills the gateway and starts it again. What the
//! roles say and record becomes the live display, the summary, and the report.

mod children;
mod control;
mod evidence;
mod gateway;
mod journal;
mod launcher;
mod leash;
mod live;
mod machine;
mod report;
mod storage;
mod summary;
mod system;
mod waiting;
mod witness;

use std::io::Write;
use std::path::PathBuf;

use anyhow::Context;
use serde::Serialize;

use crate::output;

/// How to run the demo.
#[derive(Debug, clap::Args)]
#[command(after_help = "Ends with status 0 only if no message was lost or duplicated and all digests were equal. \
    Ctrl-C ends it early, with a summary of what was measured.")]
pub struct Arguments {
    /// How long the control loop runs, in seconds
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=600))]
    seconds: u64,
    /// The file that storage streams [default: this program itself]
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// Write the results as JSON; "-" prints them instead of the summary
    #[arg(long, value_name = "OUT")]
    json: Option<PathBuf>,
    /// Where to write the report with the plots [default: musubi-demo.html]
    #[arg(long, value_name = "OUT.html")]
    report: Option<PathBuf>,
    /// Print the description of the demo's system and end
    #[arg(long)]
    describe: bool,
}

/// One process of the demo; the launcher starts it.
#[derive(Debug, clap::Args)]
pub struct RoleArguments {
    #[arg(long)]
    launcher: u32,
    #[arg(long)]
    instance: String,
    #[command(subcommand)]
    role: Role,
}

#[derive(Debug, clap::Subcommand)]
enum Role {
    Control { seconds: u64 },
    Gateway { incarnation: u32 },
    Storage { file: PathBuf },
}

/// Runs the demo.
///
/// # Errors
/// What could not be started, or what went wrong with the messages.
pub fn run(arguments: &Arguments) -> anyhow::Result<()> {
    if arguments.describe {
        return output::print(system::DESCRIPTION);
    }
    launcher::run(arguments)
}

/// Runs one process of the demo.
///
/// # Errors
/// What went wrong; the launcher shows it.
pub fn run_role(arguments: &RoleArguments) -> anyhow::Result<()> {
    let leash = leash::Leash::new(arguments.launcher)?;
    let instance = &arguments.instance;
    match &arguments.role {
        Role::Control { seconds } => control::run(instance, *seconds, &leash).context("control"),
        Role::Gateway { incarnation } => gateway::run(instance, *incarnation, &leash).context("gateway"),
        Role::Storage { file } => storage::run(instance, file, &leash).context("storage"),
    }
}

/// Tells the launcher something, as a line of JSON on the standard output.
fn say(what: &impl Serialize) -> anyhow::Result<()> {
    let mut line = serde_json::to_vec(what)?;
    line.push(b'\n');
    std::io::stdout().write_all(&line).context("telling the launcher")
}

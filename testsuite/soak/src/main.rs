//! The crash proof: a loaded system whose participants are killed and stopped at random, with an exact account.
//!
//! What you may rely on: every figure is counted, none estimated; testsuite/README.md says what each means. The program
//! ends with failure if a committed message was lost or delivered twice, a block leaked, a call passed its deadline,
//! two were inside a lock, or anything was left behind.
//!
//! How it works: the supervisor starts one Master and three Remotes, each a process of this program, which send and
//! receive on nine FIFO channels and one SMEM channel and write what they did into a [`record`] that survives them. It
//! kills a random one, corrects the record by what the dead one's section says it had taken, starts its successor, and
//! goes on when every channel of the successor has carried a message. The [`account`] is drawn up from the record.
//!
//! What it does not do: kill two at once. A message lies in its sender's memory, which lives as long as one process
//! maps it; with both ends dead before either has a successor, it is gone with them.

#![forbid(unsafe_code)]

mod account;
mod children;
mod participant;
mod place;
mod receive;
mod record;
mod report;
mod send;
mod share;
mod supervisor;
mod system;
mod timing;
mod witness;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(name = "musubi-soak", about = "Kills participants under load and counts what became of every message")]
struct Arguments {
    #[command(flatten)]
    options: Options,
    #[command(subcommand)]
    role: Option<Role>,
}

/// How long and how.
#[derive(clap::Args, Clone, Debug)]
pub struct Options {
    /// Participants to kill
    #[arg(long, default_value_t = 100)]
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

#[derive(Subcommand)]
enum Role {
    /// One process of the system; started by the supervisor
    #[command(hide = true)]
    Participant(participant::Role),
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let done = match arguments.role {
        Some(Role::Participant(role)) => participant::play(&role).map(|()| true),
        None => supervisor::run(&arguments.options),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

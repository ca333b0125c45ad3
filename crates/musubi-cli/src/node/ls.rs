//! `musubi node ls`: which nodes run, how they are reached, what they have.

use std::time::Duration;

use super::report::Report;
use super::survey::Surveyor;
use super::{System, table};
use crate::system::seconds;
use crate::{interruption, output, screen};

/// What to look at.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// Also show the links of each node, whom it refused, and what happened to its connections lately
    #[arg(long)]
    links: bool,
    /// Print JSON for programs, links always included (docs/status.md)
    #[arg(long)]
    json: bool,
    /// Longest wait for answers, in seconds
    #[arg(short = 'W', long, value_name = "SECONDS", default_value = "1", value_parser = seconds)]
    timeout: Duration,
    #[command(flatten)]
    system: System,
}

const EXAMPLES: &str = "\
With a description: all its nodes. Without: the nodes that run on this machine. Exit code 0 too where nobody runs.

Examples:
  musubi node ls
  musubi node ls --links
  musubi node ls --system line.toml --json";

/// Asks and prints.
///
/// # Errors
/// The description has mistakes, or no node can be started to ask.
pub fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let topology = arguments.system.topology()?;
    let interrupted = interruption::watch()?;
    let surveyor = Surveyor::new(&topology, arguments.timeout)?;
    for (way, why) in &surveyor.unusable {
        output::note(&format!("note: nobody is asked by {}: {why:#}", way.word()));
    }
    let report = Report::new(&topology, None, &surveyor.survey(&interrupted)?);
    let text = if arguments.json {
        serde_json::to_string_pretty(&report)? + "\n"
    } else {
        table::list(&report, arguments.links, screen::width())
    };
    output::print(&text)
}

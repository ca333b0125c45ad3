//! `musubi node top`: how busy the nodes are, live.
//!
//! What you may rely on: on a terminal the picture is drawn over itself until Ctrl-C; elsewhere each look is appended.

use std::io::IsTerminal;
use std::sync::atomic::Ordering;
use std::time::Duration;

use musubi_linux::clock::now_ns;

use super::report::Report;
use super::survey::Surveyor;
use super::tool::sleep_until;
use super::{System, table};
use crate::system::seconds;
use crate::{interruption, output, screen};

/// What to look at, and how often.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// Look once (rates need two looks, so it takes an interval) and end
    #[arg(long)]
    once: bool,
    /// Print JSON for programs, one line a look (docs/status.md)
    #[arg(long)]
    json: bool,
    /// Time between two looks, in seconds
    #[arg(short = 'i', long, value_name = "SECONDS", default_value = "1", value_parser = seconds)]
    interval: Duration,
    /// Longest wait for answers, in seconds
    #[arg(short = 'W', long, value_name = "SECONDS", default_value = "0.5", value_parser = seconds)]
    timeout: Duration,
    #[command(flatten)]
    system: System,
}

const EXAMPLES: &str = "\
Rates are of the last interval; channels are shown with the busiest first.

Examples:
  musubi node top
  musubi node top --once --json --system line.toml";

/// Asks and prints, again and again.
///
/// # Errors
/// The description has mistakes, or no node can be started to ask.
pub fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let topology = arguments.system.topology()?;
    let interrupted = interruption::watch()?;
    let surveyor = Surveyor::new(&topology, arguments.timeout)?;
    let live = std::io::stdout().is_terminal() && !arguments.once && !arguments.json;
    let mut before = surveyor.survey(&interrupted)?;
    loop {
        sleep_until(now_ns() + arguments.interval.as_nanos() as u64, &interrupted);
        if interrupted.load(Ordering::Relaxed) {
            return Ok(());
        }
        let now = surveyor.survey(&interrupted)?;
        let report = Report::new(&topology, Some(&before), &now);
        let text = match (arguments.json, live) {
            (true, _) => serde_json::to_string(&report)? + "\n",
            (false, true) => screen::redrawn(&table::top(&report, screen::width())),
            (false, false) => table::top(&report, screen::width()),
        };
        let is_read = output::offer(&text)?;
        if arguments.once || !is_read {
            return Ok(());
        }
        before = now;
    }
}

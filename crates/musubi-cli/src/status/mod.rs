//! `musubi status`: the participants and channels of a running system, from outside, and the NICs of its processes.
//!
//! What you may rely on: nothing is written to the sections of the system and no slot of it is taken; NICs are asked by a node that is kept for tools. Every figure is what the
//! participants themselves have written; one that is hostile may lie about itself.
//!
//! How it works: [`reading`] copies the figures out of the sections, [`nics`] asks the processes that have NICs open, [`report`] makes a report of two readings, which
//! [`table`] shows to a person and serde to a program (docs/status.md).

mod nic_table;
mod nics;
mod reading;
mod report;
mod table;

use std::time::Duration;

use musubi_core::plan::{Domain, Plan, PortKind};
use musubi_linux::names::{INSTANCE_DEFAULT, INSTANCE_VARIABLE};
use musubi_linux::{Deadline, DeadlineExt, Observer};

use crate::failure::Failure;
use crate::system::{System, seconds};
use crate::{output, screen};
use nics::NicSurvey;
use reading::Reading;
use report::Report;

/// What to look at, and how often.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    #[command(flatten)]
    system: System,
    /// Print JSON for programs (docs/status.md); with --watch, one line a report
    #[arg(long)]
    json: bool,
    /// Look again and again until Ctrl-C
    #[arg(long)]
    watch: bool,
    /// Time between the two looks that rates are computed from, in seconds
    #[arg(long, value_name = "SECONDS", default_value = "0.5", value_parser = seconds)]
    interval: Duration,
}

const EXAMPLES: &str = "\
Looks at the memory of the running participants, read-only, and asks the processes that have NICs of the VI \
Architecture open how they are. Domains that share fixed memory of a chip (port uio or \
metal) are not seen; it says so. Where nobody runs, it says so, and the exit code is 0 \
too. Only users that the description lets attach may look.

Examples:
  musubi status --system examples/system.toml
  musubi status --system examples/system.toml --watch --interval 1
  musubi status --system examples/system.toml --json";

/// Longest wait for the participants' answers.
const ANSWER_WAIT: Duration = Duration::from_millis(250);

/// Looks and prints.
///
/// # Errors
/// A participant runs another description, or we may not look.
pub fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let description = arguments.system.description()?;
    let mut survey = NicSurvey::new(&description);
    let (has_domains, has_nics) = (description.has_domains(), !description.nics().entries.is_empty());
    let plan = description.leak();
    if has_domains
        && let Err(hidden) = check_visible(plan)
        && !has_nics
    {
        return Err(hidden.into());
    }
    let instance = instance(arguments);
    let mut observer = match has_domains {
        true => Some(Observer::new(plan, arguments.system.instance.as_deref())?),
        false => None,
    };
    let mut look = || -> anyhow::Result<Reading> {
        let Some(observer) = &mut observer else { return Ok(Reading::nothing()) };
        observer.refresh(Deadline::after(ANSWER_WAIT))?;
        Ok(Reading::take(plan, observer))
    };
    let mut before = look()?;
    loop {
        if before.is_empty() && !arguments.watch {
            show(arguments, &Report::new(plan, &instance, (&before, &before), survey.look()?))?;
            return Ok(());
        }
        std::thread::sleep(arguments.interval);
        let now = look()?;
        let is_read = show(arguments, &Report::new(plan, &instance, (&before, &now), survey.look()?))?;
        if !arguments.watch || !is_read {
            return Ok(());
        }
        before = now;
    }
}

/// Says which domains cannot be looked at from here: those that share fixed memory of a chip, which this command does not
/// map.
///
/// # Errors
/// All of them are such domains, so that nothing can be said about the system.
fn check_visible(plan: &Plan<'_>) -> Result<(), Failure> {
    let is_hidden = |domain: &&Domain<'_>| domain.port != PortKind::LinuxProcess;
    let hidden: Vec<&str> = plan.domains.iter().filter(is_hidden).map(|domain| domain.name).collect();
    if hidden.is_empty() {
        return Ok(());
    }
    let names = hidden.join(", ");
    if hidden.len() < plan.domains.len() {
        output::note(&format!("note: not looked at, as they share fixed memory of a chip: {names}"));
        return Ok(());
    }
    let what = format!("cannot look at system {:?}: its domains ({names}) share fixed memory of a chip", plan.name);
    let help = "`musubi status` sees processes of one machine that share memory objects; whether anybody runs there, it \
                does not know. A program on the board can look with `musubi_linux::uio::Observer`";
    Err(Failure::new(what, help))
}

/// The instance as the port chooses it.
fn instance(arguments: &Arguments) -> String {
    let from_environment = || std::env::var(INSTANCE_VARIABLE).ok().filter(|name| !name.is_empty());
    arguments.system.instance.clone().or_else(from_environment).unwrap_or_else(|| INSTANCE_DEFAULT.to_owned())
}

/// Gives whether anybody still reads what is shown.
fn show(arguments: &Arguments, report: &Report<'_>) -> anyhow::Result<bool> {
    let text = match (arguments.json, arguments.watch) {
        (true, true) => serde_json::to_string(report)? + "\n",
        (true, false) => serde_json::to_string_pretty(report)? + "\n",
        (false, true) => screen::redrawn(&table::render(report, screen::width())),
        (false, false) => table::render(report, screen::width()),
    };
    output::offer(&text)
}

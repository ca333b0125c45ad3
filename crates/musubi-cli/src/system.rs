//! Which system a command is about: its description, the run of it, its channels by name; and times in options.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::ValueHint;
use musubi_core::plan::Plan;

use crate::failure::Failure;

/// Names differ by at most this part of their letters to be suggested.
const SIMILARITY_MIN: f64 = 0.7;

/// Which running system.
#[derive(Debug, clap::Args)]
pub struct System {
    /// Description of the system [default: the file that the environment variable MUSUBI_SYSTEM names]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    system: Option<PathBuf>,
    /// Which run of the system, if several run on this machine at once [default: MUSUBI_INSTANCE, else "default"]
    #[arg(long, value_name = "NAME")]
    pub instance: Option<String>,
}

impl System {
    /// Loads the description of a system that has something which can be looked at from outside.
    ///
    /// # Errors
    /// There is no file, or it has mistakes, or it has nodes only.
    pub fn description(&self) -> anyhow::Result<musubi_config::Description> {
        let description = description(self.system.as_deref())?;
        if !description.has_domains() && description.nics().entries.is_empty() {
            let what = format!("system {:?} has nodes, but no domains, channels or NICs", description.name());
            return Err(Failure::new(what, "`musubi node ls` shows its nodes").into());
        }
        Ok(description)
    }

    /// Loads the description. It is kept until the process ends.
    ///
    /// # Errors
    /// There is no file, or it has mistakes.
    pub fn plan(&self) -> anyhow::Result<&'static Plan<'static>> {
        let description = description(self.system.as_deref())?;
        if !description.has_domains() {
            let what = format!("system {:?} has nodes, but no domains and channels", description.name());
            return Err(Failure::new(what, "`musubi node ls` shows its nodes").into());
        }
        Ok(description.leak())
    }
}

/// Loads the description that is named, else that of the environment.
///
/// # Errors
/// There is no file, or it has mistakes.
pub fn description(named: Option<&Path>) -> anyhow::Result<musubi_config::Description> {
    Ok(musubi_config::load(&musubi_config::find(named)?)?)
}

/// Number of a FIFO channel.
///
/// # Errors
/// There is none of that name; says which there are, and which may have been meant.
pub fn fifo(plan: &Plan<'_>, name: &str) -> Result<u16, Failure> {
    plan.fifo(name).ok_or_else(|| unknown_fifo(plan, name))
}

fn unknown_fifo(plan: &Plan<'_>, name: &str) -> Failure {
    if plan.smem(name).is_some() {
        let help = format!("a stream needs a FIFO channel: {}", fifo_names(plan));
        return Failure::new(format!("{name:?} is an SMEM channel"), help);
    }
    let similarity = |known: &&str| strsim::jaro_winkler(known, name);
    let known = plan.fifos.iter().map(|fifo| fifo.name);
    let nearest = known.max_by(|one, other| similarity(one).total_cmp(&similarity(other)));
    let what = format!("system {:?} has no FIFO channel {name:?}", plan.name);
    match nearest.filter(|nearest| similarity(nearest) >= SIMILARITY_MIN) {
        Some(nearest) => Failure::new(what, format!("did you mean {nearest:?}? There are: {}", fifo_names(plan))),
        None => Failure::new(what, format!("there are: {}", fifo_names(plan))),
    }
}

fn fifo_names(plan: &Plan<'_>) -> String {
    if plan.fifos.is_empty() {
        return "none".to_owned();
    }
    plan.fifos.iter().map(|fifo| fifo.name).collect::<Vec<_>>().join(", ")
}

/// A duration written as a number of seconds, for options.
///
/// # Errors
/// What is wrong with the number.
pub fn seconds(text: &str) -> Result<Duration, String> {
    let value: f64 = text.parse().map_err(|_| "not a number of seconds".to_owned())?;
    if value.is_sign_negative() {
        return Err("a time cannot be negative".to_owned());
    }
    Duration::try_from_secs_f64(value).map_err(|_| "no time that can be waited for".to_owned())
}

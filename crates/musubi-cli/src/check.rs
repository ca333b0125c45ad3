//! `musubi check`: all mistakes of a description, or its memory map and bounds.

use std::path::{Path, PathBuf};

use clap::ValueHint;

use crate::{output, screen, system};

/// What to check.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    #[command(flatten)]
    source: Source,
}

const EXAMPLES: &str = "\
Examples:
  musubi check examples/system.toml
  MUSUBI_SYSTEM=press.toml musubi check

Exit code 0: the description is valid; 1: it has mistakes, each shown with line and column.
docs/description.md explains every key.";

/// A description by argument, option or environment.
#[derive(Debug, clap::Args)]
pub struct Source {
    /// The description, a TOML file [default: the file that the environment variable MUSUBI_SYSTEM names]
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    file: Option<PathBuf>,
    /// The same, as the other commands name it
    #[arg(long, value_name = "FILE", conflicts_with = "file", value_hint = ValueHint::FilePath)]
    system: Option<PathBuf>,
}

impl Source {
    /// The file that is named, if any.
    pub fn path(&self) -> Option<&Path> {
        self.file.as_deref().or(self.system.as_deref())
    }
}

/// Checks.
///
/// # Errors
/// The description has mistakes.
pub fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let description = system::description(arguments.source.path())?;
    output::print(&musubi_config::check(&description, screen::width()))
}

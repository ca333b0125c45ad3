//! `musubi generate`: the files that the sides of a system are built with.

use std::path::PathBuf;

use clap::ValueHint;

use crate::check::Source;
use crate::failure::Failure;
use crate::{output, system};

/// From what and to where.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    #[command(flatten)]
    source: Source,
    /// Directory for the files; made if it does not exist
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    out: PathBuf,
}

const EXAMPLES: &str = "\
Writes five files named musubi_SYSTEM: a C header (.h), a Rust module (.rs), a linker-script fragment (.ld), a \
devicetree reserved-memory fragment (.dtsi) and a picture of the memory map (.svg). The same description gives the \
same bytes.

Example:
  musubi generate examples/system.toml --out generated";

/// Writes the files and prints their names.
///
/// # Errors
/// The description has mistakes, or a file cannot be written.
pub fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let description = system::description(arguments.source.path())?;
    if !description.has_domains() {
        let what = format!("system {:?} has no domains and channels", description.name());
        return Err(Failure::new(what, "programs of nodes need no generated files").into());
    }
    let written = musubi_config::generate(&description, &arguments.out)?;
    output::print(&written.iter().map(|path| format!("{}\n", path.display())).collect::<String>())
}

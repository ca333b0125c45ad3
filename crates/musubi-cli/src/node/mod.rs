//! `musubi node` and `musubi ping`: the nodes of a system of MCAPI, from outside.
//!
//! What you may rely on: the command is a node like any other while it runs, of a number that is kept for tools; it sends
//! what it is asked to send, and its questions; nodes that it asks answer by themselves, whatever their program does.
//!
//! How it works: [`tool`] starts nodes and asks; [`mod@ping`], [`ls`] and [`top`] show the answers.

mod links;
mod ls;
pub mod names;
mod ping;
mod report;
mod survey;
mod table;
pub mod tool;
mod top;

use std::path::PathBuf;
use std::sync::Arc;

use clap::{Subcommand, ValueHint};
use musubi_transport::topology::Topology;

pub use ping::{Arguments as PingArguments, run as ping};

/// What to do with the nodes.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Show which nodes run, how they are reached, their endpoints and channels
    Ls(ls::Arguments),
    /// Ask a node for answers, again and again, and say how long each took; the same as `musubi ping`
    Ping(PingArguments),
    /// Show how busy the nodes and channels are, again and again
    Top(top::Arguments),
}

/// Does it.
///
/// # Errors
/// The description has mistakes, or no node can be started.
pub fn run(arguments: &Arguments) -> anyhow::Result<()> {
    match &arguments.what {
        What::Ls(arguments) => ls::run(arguments),
        What::Top(arguments) => top::run(arguments),
        What::Ping(arguments) => ping(arguments),
    }
}

/// Which system of nodes.
#[derive(Debug, clap::Args)]
pub struct System {
    /// Description of the system [default: the file that the environment variable MUSUBI_SYSTEM names; without one, all
    /// nodes of this machine]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    system: Option<PathBuf>,
}

impl System {
    fn topology(&self) -> anyhow::Result<Arc<Topology>> {
        let topology = match &self.system {
            Some(path) => musubi_config::load(path)?.topology().clone(),
            None => musubi_config::topology_from_env()?,
        };
        Ok(Arc::new(topology))
    }
}

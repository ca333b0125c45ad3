//! The `musubi` command.
#![forbid(unsafe_code)]

mod bench;
mod demo;

use clap::{Parser, Subcommand};

/// Communication between real-time and Linux domains.
#[derive(Debug, Parser)]
#[command(name = "musubi", version, about)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Measures Musubi against the machine's own limits.
    Bench(bench::Arguments),
    /// Shows three processes that talk while one of them is killed.
    Demo(demo::Arguments),
}

fn main() -> anyhow::Result<()> {
    match Arguments::parse().command {
        Command::Bench(arguments) => bench::run(&arguments),
        Command::Demo(arguments) => demo::run(&arguments),
    }
}

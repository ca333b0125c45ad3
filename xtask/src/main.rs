//! `cargo xtask`: the project's own commands.
//!
//! What you may rely on: CI runs `cargo xtask test` and nothing else; each of its longer steps is a command too.
//!
//! How it works: a command is a module; `test` runs the steps of [`test::STEPS`] one after the other.

#![forbid(unsafe_code)]

mod bench_smp;
mod examples;
mod failures;
mod family;
mod fuzz;
mod install;
mod libraries;
mod linux;
mod models;
mod mpi;
mod mutants;
mod nightly;
mod packages;
mod peers;
mod qemu;
mod runner;
mod simulate;
mod size;
mod soak;
mod test;
mod tidy;
mod toolchain;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use runner::{Context, Step, run_all};

#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask", about = "The project's own commands", version)]
struct Arguments {
    /// Show the output of everything that runs, not only of what fails
    #[arg(long, short, global = true)]
    verbose: bool,
    #[command(subcommand)]
    command: Commands,
}

#[derive(Subcommand)]
enum Commands {
    /// Run every test there is; the last line says how many passed and failed
    Test,
    /// Run a part of the tests: what everybody runs every day
    Ci {
        /// Which part
        #[arg(value_enum)]
        part: Part,
    },
    /// Check the rules of the tree: dependencies, unsafe, names, lengths, documents
    Tidy,
    /// Build the no_std crates for targets without an operating system
    Nostd,
    /// Check the lock-free objects with loom
    Loom,
    /// See that the tests notice a mistake: each memory order weakened, or with --sample random changes of the code
    Mutants(mutants::Options),
    /// Run the core's tests under Miri
    Miri,
    /// Run the tests under ThreadSanitizer
    Tsan,
    /// Run each fuzz target for a short time
    Fuzz {
        /// Seconds for each target
        #[arg(long, default_value_t = fuzz::SECONDS)]
        seconds: u32,
    },
    /// Kill participants of a loaded system at random and account for every message
    Soak(soak::Options),
    /// Run whole systems of nodes in simulated time, with links and nodes that fail
    Simulate(simulate::Options),
    /// Build an image for a target and run it in QEMU's model of its board
    Qemu(qemu::Options),
    /// Measure code and RAM of Musubi's parts on bare-metal targets; fails beyond the limits
    Size(size::Options),
    /// Count the instructions of the multiprocessor layer on an image, built for one core and for two
    BenchSmp(bench_smp::Options),
    /// Build, install and run the examples in C and Rust
    Examples,
    /// Install the libraries, headers, pkg-config files, command and completions
    Install {
        /// Directory that receives lib/, include/, bin/ and share/
        #[arg(long)]
        prefix: PathBuf,
    },
    /// Run MPI programs over Musubi: Debian's Open MPI, MPICH and Open MPI of the Python wheels
    Mpi(mpi::Options),
    /// Measure Musubi beside iceoryx2, Open MPI, UCX, libfabric and the machine itself
    BenchPeers(peers::Options),
}

/// A part of the tests.
#[derive(Clone, Copy, clap::ValueEnum)]
enum Part {
    /// Format, rules, lints, and the tests inside the crates: minutes
    Smoke,
    /// The same as `test`
    Whole,
}

impl Commands {
    /// Whether it builds for targets other than this machine; `test` sees to those in a step of its own.
    fn builds_for_targets(&self) -> bool {
        matches!(self, Commands::Nostd | Commands::Size(_) | Commands::BenchSmp(_))
            || matches!(self, Commands::Qemu(options) if options.names_an_image())
    }
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let context = match Context::find(arguments.verbose) {
        Ok(context) => context,
        Err(error) => return explain(&error),
    };
    if arguments.command.builds_for_targets()
        && let Err(error) = toolchain::complete(&context)
    {
        return explain(&error);
    }
    let single = |title, run| finish(run_all(&context, &[Step { title, run }]));
    match arguments.command {
        Commands::Test => finish(run_all(&context, test::STEPS)),
        Commands::Ci { part: Part::Smoke } => finish(run_all(&context, test::SMOKE)),
        Commands::Ci { part: Part::Whole } => finish(run_all(&context, test::STEPS)),
        Commands::Tidy => single("tidy", tidy::step),
        Commands::Nostd => single("no_std targets", test::nostd),
        Commands::Loom => single("loom", models::loom),
        Commands::Mutants(options) if options.samples() => {
            mutants::run(&context, &options).map_or_else(|error| explain(&error), finish)
        }
        Commands::Mutants(_) => single("mutants", models::weakened),
        Commands::Miri => single("Miri", nightly::miri),
        Commands::Tsan => single("ThreadSanitizer", nightly::tsan),
        Commands::Fuzz { seconds } => finish_result(fuzz::run(&context, seconds)),
        Commands::Soak(options) => soak::run(&context, &options).map_or_else(|error| explain(&error), finish),
        Commands::Simulate(options) => simulate::run(&context, &options).map_or_else(|error| explain(&error), finish),
        Commands::Qemu(options) => qemu::run(&context, &options).map_or_else(|error| explain(&error), finish),
        Commands::BenchSmp(options) => bench_smp::run(&context, &options).map_or_else(|error| explain(&error), finish),
        Commands::Size(options) => size::run(&context, &options).map_or_else(|error| explain(&error), finish),
        Commands::Examples => single("examples", examples::step),
        Commands::Install { prefix } => done(install::install(&context, &prefix, runner::RELEASE)),
        Commands::Mpi(options) => done(mpi::run(&context, &options)),
        Commands::BenchPeers(options) => done(peers::bench(&context, &options)),
    }
}

fn finish(good: bool) -> ExitCode {
    if good { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn finish_result(result: anyhow::Result<runner::Verdict>) -> ExitCode {
    match result {
        Ok(verdict) => {
            verdict.notes.iter().for_each(|note| println!("{note}"));
            finish(verdict.counts.failed == 0)
        }
        Err(error) => explain(&error),
    }
}

fn done(result: anyhow::Result<()>) -> ExitCode {
    result.map_or_else(|error| explain(&error), |()| ExitCode::SUCCESS)
}

fn explain(error: &anyhow::Error) -> ExitCode {
    eprintln!("error: {error:#}");
    ExitCode::FAILURE
}

//! The `musubi` command.
//!
//! What you may rely on: results go to standard output, everything else to standard error; colours only where a
//! terminal shows them and `NO_COLOR` is not set. Exit code 0: done; 1: it failed, and standard error says why; 2: the
//! command line was wrong.
//!
//! How it works: one module a command, each with its `Arguments` and a `run`; [`failure`] prints what they return.
#![forbid(unsafe_code)]

mod bench;
mod check;
mod completions;
mod demo;
mod failure;
mod generate;
mod interruption;
mod keys;
mod node;
mod output;
mod plot;
mod screen;
mod status;
mod stream;
mod system;
mod table;
mod tap;

use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};

/// Communication between real-time cores and Linux, between processes and machines.
#[derive(Debug, Parser)]
#[command(name = "musubi", version, max_term_width = 100, after_help = FIRST_STEPS)]
struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
}

const FIRST_STEPS: &str = "\
First steps:
  musubi demo                              three processes talk, one is killed, nothing is lost
  musubi check examples/system.toml        check a description and print its memory map
  musubi help send                         what a command does, with examples";

#[derive(Debug, Subcommand)]
enum Command {
    /// Show three processes that talk while one of them is killed
    Demo(demo::Arguments),
    /// One process of the demo; it starts them itself
    #[command(hide = true)]
    DemoRole(demo::RoleArguments),
    /// Check a description: report all its mistakes, or print its memory map and bounds
    Check(check::Arguments),
    /// Write the header, module and fragments that the sides of a system are built with
    Generate(generate::Arguments),
    /// Send standard input through a FIFO channel to `musubi recv`
    Send(stream::send::Arguments),
    /// Write to standard output what `musubi send` sends through a FIFO channel
    Recv(stream::recv::Arguments),
    /// Look at the participants and channels of a running system, from outside
    Status(status::Arguments),
    /// Show the messages of a FIFO channel of a running system, from outside
    Tap(tap::TapArguments),
    /// Look at the nodes of a system: which run, how they are doing, whether they answer
    Node(node::Arguments),
    /// Ask a node for answers, and say how long each took
    Ping(node::PingArguments),
    /// Make certificates for nodes whose links leave their machine
    Keys(keys::Arguments),
    /// Measure Musubi beside the machine's own limits
    Bench(bench::Arguments),
    /// Print the completion script of a shell
    Completions(completions::Arguments),
}

fn main() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(answer) => return said(&answer),
    };
    let done = match arguments.command {
        None => output::print(&Arguments::command().render_help().ansi().to_string()),
        Some(command) => run(&command),
    };
    ended(done)
}

/// What the command line is answered with: help and version like every result, mistakes on standard error.
fn said(answer: &clap::Error) -> ExitCode {
    if answer.use_stderr() {
        answer.exit();
    }
    ended(output::print(&answer.render().ansi().to_string()))
}

fn ended(done: anyhow::Result<()>) -> ExitCode {
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            failure::print(&error);
            ExitCode::FAILURE
        }
    }
}

fn run(command: &Command) -> anyhow::Result<()> {
    match command {
        Command::Demo(arguments) => demo::run(arguments),
        Command::DemoRole(arguments) => demo::run_role(arguments),
        Command::Check(arguments) => check::run(arguments),
        Command::Generate(arguments) => generate::run(arguments),
        Command::Send(arguments) => stream::send::run(arguments),
        Command::Recv(arguments) => stream::recv::run(arguments),
        Command::Status(arguments) => status::run(arguments),
        Command::Tap(arguments) => tap::run(arguments),
        Command::Node(arguments) => node::run(arguments),
        Command::Ping(arguments) => node::ping(arguments),
        Command::Keys(arguments) => keys::run(arguments),
        Command::Bench(arguments) => bench::run(arguments),
        Command::Completions(arguments) => completions::run(arguments, &mut Arguments::command()),
    }
}

//! `cargo xtask test`: the list of its steps, and those that are a single command.
//!
//! What you may rely on: a step whose input (a crate, a directory) is in the tree is never left out; one whose input is
//! not there yet says so and counts as skipped.

use std::process::Command;

use anyhow::Result;

use crate::runner::{Context, Step, Verdict};
use crate::{examples, fuzz, models, nightly, packages, tidy};

/// Every step, quick ones first.
pub const STEPS: &[Step] = &[
    Step { title: "Debian packages", run: packages::step },
    Step { title: "format", run: format },
    Step { title: "tidy: the rules of the tree", run: tidy::step },
    Step { title: "lints", run: lints },
    Step { title: "tests", run: tests },
    Step { title: "documentation", run: documentation },
    Step { title: "no_std targets", run: nostd },
    Step { title: "examples in C and Rust", run: examples::step },
    Step { title: "loom models", run: models::loom },
    Step { title: "mutants: the models notice each weakened order", run: models::mutants },
    Step { title: "Miri", run: nightly::miri },
    Step { title: "ThreadSanitizer", run: nightly::tsan },
    Step { title: "fuzz targets", run: fuzz::step },
];

/// Targets without an operating system on which the no_std crates must build: Cortex-M4, 64-bit RISC-V, Cortex-R5.
const NOSTD_TARGETS: [&str; 3] = ["thumbv7em-none-eabihf", "riscv64gc-unknown-none-elf", "armv7r-none-eabihf"];
/// The crates that must build there.
const NOSTD_CRATES: [&str; 2] = ["musubi-core", "musubi-mdcom"];

fn format(context: &Context) -> Result<Verdict> {
    let mut verdict = Verdict::of_exit(&context.run(context.cargo().args(["fmt", "--all", "--check"]))?);
    for directory in ["fuzz", "peers"] {
        let manifest = context.root.join(directory).join("Cargo.toml");
        if manifest.exists() {
            let output = context.run(context.cargo().args(["fmt", "--check", "--manifest-path"]).arg(manifest))?;
            verdict.add(Verdict::of_exit(&output));
        }
    }
    Ok(verdict)
}

fn lints(context: &Context) -> Result<Verdict> {
    let mut cargo = context.cargo();
    cargo.args(["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"]);
    Ok(Verdict::of_exit(&context.run(&mut cargo)?))
}

fn tests(context: &Context) -> Result<Verdict> {
    Ok(Verdict::of_tests(&context.run(context.cargo().args(["test", "--workspace", "--no-fail-fast"]))?))
}

fn documentation(context: &Context) -> Result<Verdict> {
    let mut cargo = context.cargo();
    cargo.args(["doc", "--workspace", "--no-deps"]).env("RUSTDOCFLAGS", "-D warnings");
    Ok(Verdict::of_exit(&context.run(&mut cargo)?))
}

/// Step: the no_std crates build for each target of [`NOSTD_TARGETS`].
///
/// # Errors
/// If cargo cannot be started.
pub fn nostd(context: &Context) -> Result<Verdict> {
    let mut verdict = Verdict::default();
    for target in NOSTD_TARGETS {
        if let Err(reason) = add_target(context, target)? {
            verdict.add(Verdict::skipped(reason));
            continue;
        }
        for name in NOSTD_CRATES {
            if !context.root.join("crates").join(name).join("Cargo.toml").exists() {
                verdict.add(Verdict::skipped(format!("{name} is not in the tree yet")));
                continue;
            }
            let output = context.run(context.cargo().args(["build", "-p", name, "--target", target]))?;
            verdict.add(match output.status.success() {
                true => Verdict::passed(),
                false => Verdict::failed(format!("{name} does not build for {target}")),
            });
        }
    }
    Ok(verdict)
}

/// Makes a target's standard library available; the inner error is the reason why that is impossible here.
fn add_target(context: &Context, target: &str) -> Result<Result<(), String>> {
    let mut list = Command::new("rustup");
    list.current_dir(&context.root).args(["target", "list", "--installed"]);
    if context.must(&mut list)?.lines().any(|line| line.trim() == target) {
        return Ok(Ok(()));
    }
    let mut add = Command::new("rustup");
    let output = context.run(add.current_dir(&context.root).args(["target", "add", target]))?;
    Ok(if output.status.success() { Ok(()) } else { Err(format!("rustup cannot add the target {target}")) })
}

//! `cargo xtask test`: the list of its steps, and those that are a single command.
//!
//! What you may rely on: a step whose input (a crate, a directory) is in the tree is never left out; one whose input is
//! not there yet says so and counts as skipped.

use std::process::Command;

use anyhow::Result;

use crate::runner::{Context, Step, Verdict};
use crate::{examples, fuzz, models, mpi, nightly, packages, qemu, simulate, size, soak, tidy, toolchain};

/// Every step, quick ones first.
pub const STEPS: &[Step] = &[
    Step { title: "Debian packages", run: packages::step },
    Step { title: "the compiler's components and targets", run: toolchain::complete },
    Step { title: "format", run: format },
    Step { title: "tidy: the rules of the tree", run: tidy::step },
    Step { title: "lints", run: lints },
    Step { title: "lints of the images", run: qemu::lints },
    Step { title: "tests", run: tests },
    Step { title: "documentation", run: documentation },
    Step { title: "no_std targets", run: nostd },
    Step { title: "size: code and RAM on bare-metal targets", run: size::step },
    Step { title: "examples in C and Rust", run: examples::step },
    Step { title: "MPI over VIs", run: mpi::step },
    Step { title: "images in QEMU", run: qemu::step },
    Step { title: "crash proof: kills at random instants", run: soak::step },
    Step { title: "simulation: 200 nodes whose links and lives end at random", run: simulate::step },
    Step { title: "loom models", run: models::loom },
    Step { title: "mutants: the models notice each weakened order", run: models::weakened },
    Step { title: "Miri", run: nightly::miri },
    Step { title: "ThreadSanitizer", run: nightly::tsan },
    Step { title: "fuzz targets", run: fuzz::step },
];

/// What finds most mistakes in minutes. What it leaves out (processes, images, models, time) is in [`STEPS`].
pub const SMOKE: &[Step] = &[
    Step { title: "format", run: format },
    Step { title: "tidy: the rules of the tree", run: tidy::step },
    Step { title: "lints", run: lints },
    Step { title: "tests inside the crates", run: inner_tests },
];

/// Targets without an operating system on which the no_std crates must build: Cortex-M4, 64-bit RISC-V, Cortex-R5.
const NOSTD_TARGETS: [&str; 3] = ["thumbv7em-none-eabihf", "riscv64gc-unknown-none-elf", "armv7r-none-eabihf"];
/// The crates that must build there.
const NOSTD_CRATES: [&str; 5] = ["musubi-core", "musubi-mdcom", "musubi-transport", "musubi-mcapi", "musubi-vipl"];

fn format(context: &Context) -> Result<Verdict> {
    let mut verdict = Verdict::of_exit(&context.run(context.cargo().args(["fmt", "--all", "--check"]))?);
    for directory in ["firmware", "fuzz", "peers"] {
        let manifest = context.root.join(directory).join("Cargo.toml");
        if manifest.exists() {
            let output =
                context.run(context.cargo().args(["fmt", "--all", "--check", "--manifest-path"]).arg(manifest))?;
            verdict.add(Verdict::of_exit(&output));
        }
    }
    Ok(verdict)
}

fn lints(context: &Context) -> Result<Verdict> {
    let mut cargo = context.cargo();
    cargo.args(["clippy", "--workspace", "--all-targets", "--features", FEATURES, "--", "-D", "warnings"]);
    Ok(Verdict::of_exit(&context.run(&mut cargo)?))
}

/// Interfaces that are offered on demand; all are tested.
const FEATURES: &str = "musubi-core/lock_api,musubi-metal/critical-section";
/// Packages whose inner tests are quick and find most.
const INNER_TESTED: [&str; 8] = [
    "musubi-core",
    "musubi-linux",
    "musubi-metal",
    "musubi-mdcom",
    "musubi-transport",
    "musubi-mcapi",
    "musubi-vipl",
    "musubi-config",
];
/// Packages of the images' workspace that have tests for the host.
const FIRMWARE_TESTED: [&str; 2] = ["zcu102-demo", "zcu102-linux"];

fn tests(context: &Context) -> Result<Verdict> {
    let mut cargo = context.cargo();
    cargo.args(["test", "--workspace", "--no-fail-fast", "--features", FEATURES]);
    let mut verdict = Verdict::of_tests(&context.run(&mut cargo)?);
    let mut cargo = context.cargo();
    cargo.args(["test", "--no-fail-fast", "--manifest-path"]).arg(context.root.join("firmware/Cargo.toml"));
    cargo.arg("--target-dir").arg(context.target.join("firmware"));
    for package in FIRMWARE_TESTED {
        cargo.args(["-p", package]);
    }
    verdict.add(Verdict::of_tests(&context.run(&mut cargo)?));
    Ok(verdict)
}

/// The tests that lie in libraries, without those of whole processes.
fn inner_tests(context: &Context) -> Result<Verdict> {
    let mut cargo = context.cargo();
    cargo.args(["test", "--no-fail-fast", "--lib", "--features", FEATURES]);
    for package in INNER_TESTED {
        cargo.args(["-p", package]);
    }
    Ok(Verdict::of_tests(&context.run(&mut cargo)?))
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
        let Some(build) = build_for(context, target)? else {
            verdict.add(Verdict::skipped(format!("neither rustup nor the nightly sources have the target {target}")));
            continue;
        };
        for name in NOSTD_CRATES {
            if !context.root.join("crates").join(name).join("Cargo.toml").exists() {
                verdict.add(Verdict::skipped(format!("{name} is not in the tree yet")));
                continue;
            }
            let output = context.run(build(context).args(["-p", name, "--no-default-features", "--target", target]))?;
            verdict.add(match output.status.success() {
                true => Verdict::passed(),
                false => Verdict::failed(format!("{name} does not build for {target}")),
            });
        }
    }
    Ok(verdict)
}

/// A cargo command that builds, still without the target and the package.
type Build = fn(&Context) -> Command;

/// How a target is built: with its standard library from rustup, else with one built from nightly's sources.
fn build_for(context: &Context, target: &str) -> Result<Option<Build>> {
    if toolchain::has_target(context, target)? {
        return Ok(Some(|context| {
            let mut cargo = context.cargo();
            cargo.arg("build");
            cargo
        }));
    }
    Ok(match nightly::add_component(context, "rust-src")? {
        Err(_) => None,
        Ok(()) => Some(|context| {
            let mut cargo = context.cargo_nightly();
            cargo.args(["build", "-Zbuild-std=core,alloc"]);
            cargo
        }),
    })
}

//! The checkers that need a nightly compiler: Miri and ThreadSanitizer.
//!
//! What you may rely on: they are skipped only where the nightly toolchain cannot be had.

use std::process::Command;

use anyhow::Result;

use crate::runner::{Context, Verdict};

/// Target of the instrumented builds; `-Zbuild-std` needs it named.
pub const TARGET: &str = "x86_64-unknown-linux-gnu";
/// Crates whose threads ThreadSanitizer watches, where they are in the tree.
const WATCHED: [(&str, &str); 4] = [
    ("crates/musubi-core", "musubi-core"),
    ("crates/musubi-linux", "musubi-linux"),
    ("crates/musubi-mdcom", "musubi-mdcom"),
    ("testsuite", "musubi-testsuite"),
];

/// Makes a component of the nightly toolchain available; the inner error is the reason why that is impossible here.
///
/// # Errors
/// If rustup cannot be started.
pub fn add_component(context: &Context, component: &str) -> Result<Result<(), String>> {
    let mut list = Command::new("rustup");
    let output = context
        .run_quietly(list.args(["+nightly", "component", "list", "--installed"]), std::time::Duration::from_secs(60))?;
    if output.status.success() && output.text.lines().any(|line| line.starts_with(component)) {
        return Ok(Ok(()));
    }
    let mut install = Command::new("rustup");
    install.args(["toolchain", "install", "nightly", "--profile", "minimal", "--component", component]);
    let output = context.run(&mut install)?;
    Ok(if output.status.success() { Ok(()) } else { Err(format!("nightly has no {component} and cannot get it")) })
}

/// Step: the core's tests under Miri.
///
/// # Errors
/// If cargo or rustup cannot be started.
pub fn miri(context: &Context) -> Result<Verdict> {
    for component in ["miri", "rust-src"] {
        if let Err(reason) = add_component(context, component)? {
            return Ok(Verdict::skipped(reason));
        }
    }
    let mut cargo = context.cargo_nightly();
    // Property tests look into the real directory and at the real clock.
    cargo
        .args(["miri", "test", "-p", "musubi-core", "--target-dir"])
        .arg(context.target.join("miri"))
        .env("MIRIFLAGS", "-Zmiri-disable-isolation");
    Ok(Verdict::of_tests(&context.run(&mut cargo)?))
}

/// Step: the tests with real threads under ThreadSanitizer.
///
/// # Errors
/// If cargo or rustup cannot be started.
pub fn tsan(context: &Context) -> Result<Verdict> {
    if let Err(reason) = add_component(context, "rust-src")? {
        return Ok(Verdict::skipped(reason));
    }
    let mut cargo = context.cargo_nightly();
    cargo.args(["test", "-Zbuild-std", "--target", TARGET, "--tests", "--no-fail-fast", "--target-dir"]);
    cargo.arg(context.target.join("tsan"));
    for (_, name) in WATCHED.iter().filter(|(path, _)| context.root.join(path).join("Cargo.toml").exists()) {
        cargo.args(["-p", name]);
    }
    cargo.env("RUSTFLAGS", "-Zsanitizer=thread").env("TSAN_OPTIONS", "halt_on_error=1");
    Ok(Verdict::of_tests(&context.run(&mut cargo)?))
}

//! The fuzz targets, each for a few seconds on its corpus.
//!
//! How it works: the programs in `fuzz/` link libFuzzer. They are built here with the flags that cargo-fuzz gives the
//! compiler (coverage counters, comparison tracing, AddressSanitizer), so nothing has to be installed. New inputs go to
//! the build directory; those in `fuzz/corpus/` are only read.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow};

use crate::nightly::{TARGET, add_component};
use crate::packages;
use crate::runner::{Context, Verdict};

/// Seconds for each target in `cargo xtask test`.
pub const SECONDS: u32 = 5;
/// What a target may take beyond that to start and stop.
const MARGIN: Duration = Duration::from_secs(120);
/// Instrumentation, as cargo-fuzz sets it.
const FLAGS: &str = "--cfg fuzzing -Zsanitizer=address -Ccodegen-units=1 -Cdebug-assertions -Cpasses=sancov-module \
    -Cllvm-args=-sanitizer-coverage-level=4 -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
    -Cllvm-args=-sanitizer-coverage-pc-table -Cllvm-args=-sanitizer-coverage-trace-compares \
    -Cllvm-args=-sanitizer-coverage-stack-depth -Cllvm-args=-simplifycfg-branch-fold-threshold=0";

/// Step: each target for [`SECONDS`].
///
/// # Errors
/// If a program cannot be built or started.
pub fn step(context: &Context) -> Result<Verdict> {
    run(context, SECONDS)
}

/// Runs each target for this long.
///
/// # Errors
/// If a program cannot be built or started.
pub fn run(context: &Context, seconds: u32) -> Result<Verdict> {
    let manifest = context.root.join("fuzz/Cargo.toml");
    if !manifest.exists() {
        return Ok(Verdict::skipped("fuzz/ is not in the tree yet"));
    }
    if let Some(reason) = packages::lacking(&["g++"]) {
        return Ok(Verdict::skipped(reason));
    }
    if let Err(reason) = add_component(context, "rustc")? {
        return Ok(Verdict::skipped(reason));
    }
    let targets = targets(&std::fs::read_to_string(&manifest)?)?;
    let programs = build(context, &manifest)?;
    let mut verdict = in_lanes(&targets, |target| run_target(context, &programs, target, seconds))?;
    if targets.is_empty() {
        verdict.add(Verdict::failed("fuzz/Cargo.toml names no target"));
    }
    Ok(verdict)
}

/// Runs each target, as many at a time as there are cores: each of them is one thread.
fn in_lanes(targets: &[String], run: impl Fn(&str) -> Result<Verdict> + Sync) -> Result<Verdict> {
    let lanes = std::thread::available_parallelism().map_or(1, usize::from);
    let mut verdict = Verdict::default();
    for together in targets.chunks(lanes) {
        let verdicts: Vec<_> = std::thread::scope(|scope| {
            let runs: Vec<_> = together.iter().map(|target| scope.spawn(|| run(target))).collect();
            runs.into_iter().map(|run| run.join().map_err(|_| anyhow!("a thread of this program panicked"))).collect()
        });
        for found in verdicts {
            verdict.add(found??);
        }
    }
    Ok(verdict)
}

/// Builds all targets and gives the directory of the programs.
fn build(context: &Context, manifest: &Path) -> Result<std::path::PathBuf> {
    let directory = context.target.join("fuzz");
    let mut cargo = context.cargo_nightly();
    cargo.args(["build", "--release", "--bins", "--target", TARGET, "--manifest-path"]).arg(manifest);
    cargo.arg("--target-dir").arg(&directory).env("RUSTFLAGS", FLAGS).env("CARGO_PROFILE_RELEASE_LTO", "off");
    context.must(&mut cargo)?;
    Ok(directory.join(TARGET).join("release"))
}

fn run_target(context: &Context, programs: &Path, target: &str, seconds: u32) -> Result<Verdict> {
    let found = context.target.join("fuzz/found").join(target);
    let crashes = context.target.join("fuzz/crashes").join(target);
    std::fs::create_dir_all(&found)?;
    std::fs::create_dir_all(&crashes)?;
    let mut command = Command::new(programs.join(target));
    command.arg(format!("-max_total_time={seconds}")).arg("-timeout=10").arg("-rss_limit_mb=2048");
    command.arg(format!("-artifact_prefix={}/", crashes.display())).arg(&found);
    let corpus = context.root.join("fuzz/corpus").join(target);
    if corpus.is_dir() {
        command.arg(corpus);
    }
    let output = context.run_quietly(&mut command, Duration::from_secs(seconds.into()) + MARGIN)?;
    if output.status.success() {
        let executed = output.text.lines().rev().find(|line| line.starts_with("Done "));
        println!("   {target}: {}", executed.unwrap_or("done"));
        return Ok(Verdict::passed());
    }
    print!("{}", output.text);
    Ok(Verdict::failed(format!("{target} found a fault; its input is in {}", crashes.display())))
}

/// Names of the `[[bin]]` sections.
fn targets(manifest: &str) -> Result<Vec<String>> {
    let table: toml::Table = manifest.parse().context("fuzz/Cargo.toml")?;
    let bins = table.get("bin").and_then(|b| b.as_array()).cloned().unwrap_or_default();
    Ok(bins.iter().filter_map(|b| b.get("name")?.as_str().map(str::to_owned)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_target_runs_whatever_the_others_find() {
        let targets: Vec<String> = (0..5).map(|number| number.to_string()).collect();
        let run = |target: &str| Ok(if target == "1" { Verdict::failed("found") } else { Verdict::passed() });
        let verdict = in_lanes(&targets, run).unwrap();
        assert_eq!((verdict.counts.passed, verdict.counts.failed, verdict.notes), (4, 1, vec!["found".to_owned()]));
        assert!(in_lanes(&targets, |_| Err(anyhow!("no program"))).is_err());
    }

    #[test]
    fn targets_are_the_bins() {
        let manifest = "[package]\nname='f'\n[[bin]]\nname='a'\npath='x.rs'\n[[bin]]\nname='b'\n";
        assert_eq!(targets(manifest).unwrap(), ["a", "b"]);
    }
}

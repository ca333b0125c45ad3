//! The programs that are measured: how each is built and run, and what it needs.

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};

use super::series::{self, Measurement};
use super::{Mode, PAYLOAD_BLOCK, PAYLOADS};
use crate::packages;
use crate::runner::Context;

/// Longest time of one slice, or of building one program in C.
const TIME_MAX: Duration = Duration::from_secs(180);
/// Warnings are mistakes here too.
const C_FLAGS: [&str; 6] = ["-std=gnu11", "-O2", "-g", "-Wall", "-Wextra", "-Werror"];

/// A system to compare with.
pub struct Peer {
    /// Its name in tables and on the command line.
    pub name: &'static str,
    /// Whether its program has a sleeping variant.
    pub sleeps: bool,
    /// Debian packages that it needs.
    packages: &'static [&'static str],
    kind: Kind,
}

enum Kind {
    /// A package of the workspace in `peers/`.
    Cargo,
    /// `peers/c/<name>.c` with what this pkg-config module says.
    PkgConfig(&'static str),
    /// `peers/c/<name>.c` with `mpicc`, run by `mpirun`.
    Mpi,
}

/// Every system that can be compared with.
pub const ALL: &[Peer] = &[
    Peer { name: "iceoryx2", sleeps: true, packages: &["gcc"], kind: Kind::Cargo },
    Peer { name: "openmpi", sleeps: false, packages: &["gcc", "openmpi-bin", "libopenmpi-dev"], kind: Kind::Mpi },
    Peer { name: "ucx", sleeps: false, packages: &["gcc", "pkg-config", "libucx-dev"], kind: Kind::PkgConfig("ucx") },
    Peer {
        name: "libfabric",
        sleeps: false,
        packages: &["gcc", "pkg-config", "libfabric-dev"],
        kind: Kind::PkgConfig("libfabric"),
    },
];

/// A program that is ready to run.
pub struct Program {
    path: PathBuf,
    /// What stands before it on the command line.
    launcher: Vec<String>,
}

impl Program {
    /// Runs one slice; gives its round trips in nanoseconds.
    ///
    /// # Errors
    /// If the program fails, or does not leave as many samples as it was asked for.
    pub fn slice(&self, context: &Context, mode: Mode, bytes: usize, samples: usize) -> Result<Vec<u32>> {
        let raw = self.path.with_extension("raw");
        let mut words = self.launcher.iter().map(String::as_str).chain(self.path.to_str());
        let mut command = Command::new(words.next().context("no program")?);
        command.args(words).args(["--mode", mode.name()]).args(["--bytes", &bytes.to_string()]);
        command.args(["--samples", &samples.to_string()]).arg("--raw").arg(&raw);
        let output = context.run_quietly(&mut command, TIME_MAX)?;
        if !output.status.success() {
            bail!("{}: {}", output.status, output.text.trim());
        }
        let bytes = std::fs::read(&raw).with_context(|| format!("no samples in {}", raw.display()))?;
        std::fs::remove_file(&raw)?;
        let (words, rest) = bytes.as_chunks::<4>();
        ensure!(words.len() == samples && rest.is_empty(), "{} samples instead of {samples}", words.len());
        Ok(words.iter().map(|word| u32::from_ne_bytes(*word)).collect())
    }
}

/// Builds a peer's program; the inner error is the reason to skip it.
///
/// # Errors
/// If what it needs is installed and it does not build nevertheless.
pub fn build(context: &Context, peer: &Peer) -> Result<Result<Program, String>> {
    if let Some(reason) = packages::lacking(peer.packages) {
        return Ok(Err(reason));
    }
    Ok(Ok(match peer.kind {
        Kind::Cargo => build_cargo(context, peer.name)?,
        Kind::PkgConfig(module) => {
            let flags = context.must(Command::new("pkg-config").args(["--cflags", "--libs", module]))?;
            let flags: Vec<&str> = flags.split_whitespace().collect();
            build_c(context, "cc", peer.name, &flags, Vec::new())?
        }
        Kind::Mpi => build_c(context, "mpicc", peer.name, &[], mpi_launcher()?)?,
    }))
}

/// Builds the bare ping-pongs.
///
/// # Errors
/// If they do not build.
pub fn build_limits(context: &Context) -> Result<Program> {
    build_c(context, "cc", "limits", &[], Vec::new())
}

fn build_c(context: &Context, cc: &str, name: &str, flags: &[&str], launcher: Vec<String>) -> Result<Program> {
    let directory = context.target.join("peers");
    std::fs::create_dir_all(&directory)?;
    let path = directory.join(name);
    let mut command = Command::new(cc);
    command.args(C_FLAGS).arg(context.root.join("peers/c").join(format!("{name}.c"))).arg("-o").arg(&path).args(flags);
    context.must(&mut command)?;
    Ok(Program { path, launcher })
}

fn build_cargo(context: &Context, name: &str) -> Result<Program> {
    let target = context.target.join("peers");
    let mut cargo = context.cargo();
    cargo.args(["build", "--release", "-p", &format!("peer-{name}"), "--manifest-path"]);
    cargo.arg(context.root.join("peers/Cargo.toml")).arg("--target-dir").arg(&target);
    context.must(&mut cargo)?;
    Ok(Program { path: target.join("release").join(format!("peer-{name}")), launcher: Vec::new() })
}

/// Two ranks on this machine over shared memory; the program pins itself.
fn mpi_launcher() -> Result<Vec<String>> {
    let mut words = vec!["mpirun", "-np", "2", "--oversubscribe", "--bind-to", "none"];
    words.extend(["--mca", "pml", "ob1", "--mca", "btl", "self,vader"]);
    if packages::is_root()? {
        words.push("--allow-run-as-root");
    }
    Ok(words.into_iter().map(str::to_owned).collect())
}

/// Runs Musubi's own benchmark; the inner error is the reason to skip it.
///
/// # Errors
/// If it does not build, run, or say what it should.
pub fn bench_musubi(context: &Context, quick: bool) -> Result<Result<Vec<Measurement>, String>> {
    if !context.root.join("crates/musubi-cli/Cargo.toml").exists() {
        return Ok(Err("crates/musubi-cli is not in the tree yet".into()));
    }
    context.must(context.cargo().args(["build", "--release", "-p", "musubi-cli"]))?;
    let directory = context.target.join("peers");
    std::fs::create_dir_all(&directory)?;
    let out = directory.join("musubi.json");
    let mut command = Command::new(context.target.join("release/musubi"));
    command.args(["bench", "mdcom", "--json"]).arg(&out).args(quick.then_some("--quick"));
    context.must(&mut command)?;
    Ok(Ok(musubi_figures(&std::fs::read_to_string(&out)?)?))
}

/// The figures that peers have too, from the command's JSON.
fn musubi_figures(text: &str) -> Result<Vec<Measurement>> {
    let value: serde_json::Value = serde_json::from_str(text)?;
    let one = |list: &str, name: &str| {
        let figures = value[list].as_array().with_context(|| format!("no list `{list}`"))?;
        figures.iter().find(|f| f["name"] == name).with_context(|| format!("`{list}` lacks `{name}`"))
    };
    let bare = series::p50_of(one("limits", "cacheline_oneway")?)?;
    let mut figures = Vec::new();
    for bytes in PAYLOADS {
        let figure = one("results", &format!("fifo_oneway_poll_{bytes}"))?;
        figures.push(Measurement::of_json("musubi", Mode::Poll, bytes, figure, bare)?);
    }
    let futex = one("limits", "futex_oneway")?;
    ensure!(futex["n"] != 0, "the bare futex could not be measured here: the one who waits never fell asleep");
    let futex = series::p50_of(futex)?;
    let figure = one("results", &format!("fifo_oneway_block_{PAYLOAD_BLOCK}"))?;
    figures.push(Measurement::of_json("musubi", Mode::Block, PAYLOAD_BLOCK, figure, futex)?);
    Ok(figures)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figure(name: &str, p50: f64) -> serde_json::Value {
        serde_json::json!({ "name": name, "unit": "ns", "n": 20000, "p50": p50, "p99": 9.0, "p999": 9.5, "max": 10.0, "mean": 8.0 })
    }

    #[test]
    fn musubis_figures_are_compared_with_its_own_limits() {
        let mut results: Vec<_> = PAYLOADS.iter().map(|b| figure(&format!("fifo_oneway_poll_{b}"), 150.0)).collect();
        results.push(figure("fifo_oneway_block_64", 5000.0));
        let limits = [figure("cacheline_oneway", 100.0), figure("futex_oneway", 4000.0)];
        let text = serde_json::json!({ "limits": limits, "results": results }).to_string();
        let ratios: Vec<f64> = musubi_figures(&text).unwrap().iter().filter_map(|m| m.ratio).collect();
        assert_eq!(ratios, [1.5, 1.5, 1.5, 1.5, 1.25]);
    }

    #[test]
    fn a_figure_that_is_not_there_is_an_error() {
        assert!(musubi_figures("{\"limits\": [], \"results\": []}").is_err());
    }
}

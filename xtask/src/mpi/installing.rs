//! What the runs need: the provider, Debian's packages, Python environments, the programs.
//!
//! How it works: everything but Debian's packages goes into the target directory, and is there the next time.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};

use super::stacks::Stack;
use crate::packages;
use crate::runner::Context;

/// mpi4py's source package, which has its tests.
const TESTS: &str = "mpi4py==4.1.2";

/// A stack that can be run.
pub struct Installed {
    /// `mpirun`.
    pub launcher: PathBuf,
    /// The program that verifies, with its interpreter.
    pub ring: Vec<PathBuf>,
    /// mpi4py's tests likewise, if it is a stack for Python.
    pub tests: Option<Vec<PathBuf>>,
}

/// Builds the provider; the directory in which libfabric finds it.
///
/// # Errors
/// If it does not build.
pub fn provider(context: &Context, profile: &str) -> Result<PathBuf> {
    context.must(context.cargo().args(["build", "--profile", profile, "-p", "musubi-vi-fi"]))?;
    let directory = context.target.join("mpi/provider").join(profile);
    std::fs::create_dir_all(&directory)?;
    let built = context.target.join(profile).join("libvi_fi.so");
    std::fs::copy(&built, directory.join("libvi-fi.so")).with_context(|| built.display().to_string())?;
    Ok(directory)
}

/// Installs a stack.
///
/// # Errors
/// What cannot be had here, with the command that failed.
pub fn install(context: &Context, stack: &Stack) -> Result<Installed> {
    debian(context, stack)?;
    if stack.wheels.is_empty() { compiled(context) } else { environment(context, stack) }
}

fn debian(context: &Context, stack: &Stack) -> Result<()> {
    let missing = packages::missing(stack.packages);
    if missing.is_empty() {
        return Ok(());
    }
    let line = format!("apt-get install -y --no-install-recommends {}", missing.join(" "));
    if !packages::is_root()? {
        bail!("only root can install: {line}");
    }
    let mut install = Command::new("apt-get");
    install.args(["install", "-y", "--no-install-recommends"]).args(&missing).env("DEBIAN_FRONTEND", "noninteractive");
    context.must(&mut install)?;
    Ok(())
}

fn compiled(context: &Context) -> Result<Installed> {
    let directory = context.target.join("mpi");
    std::fs::create_dir_all(&directory)?;
    let program = directory.join("ring");
    let source = context.root.join("peers/mpi/ring.c");
    context.must(Command::new("mpicc").args(["-O2", "-Wall", "-Werror"]).arg(source).arg("-o").arg(&program))?;
    Ok(Installed { launcher: PathBuf::from("mpirun"), ring: vec![program], tests: None })
}

fn environment(context: &Context, stack: &Stack) -> Result<Installed> {
    let directory = context.target.join("mpi").join(stack.name);
    let python = directory.join("bin/python");
    if !directory.join("complete").exists() {
        context.must(Command::new("python3").args(["-m", "venv"]).arg(&directory))?;
        context.must(Command::new(&python).args(["-m", "pip", "install", "-q"]).args(stack.wheels))?;
        std::fs::write(directory.join("complete"), "")?;
    }
    let ring = vec![python.clone(), context.root.join("peers/mpi/ring.py")];
    let tests = Some(vec![python.clone(), source(context, &python)?.join("test/main.py")]);
    Ok(Installed { launcher: directory.join("bin/mpiexec"), ring, tests })
}

/// mpi4py's sources.
fn source(context: &Context, python: &Path) -> Result<PathBuf> {
    let directory = context.target.join("mpi/mpi4py");
    let unpacked = directory.join(TESTS.replace("==", "-"));
    if !unpacked.exists() {
        std::fs::create_dir_all(&directory)?;
        // Its build is asked for its metadata, which wants a compiler of MPI: that of this environment.
        let own = python.parent().map(Path::to_path_buf).unwrap_or_default();
        let path = std::env::var("PATH").unwrap_or_default();
        let mut download = Command::new(python);
        download
            .args(["-m", "pip", "download", "-q", "--no-deps", "--no-binary", ":all:", TESTS, "-d"])
            .arg(&directory);
        context.must(download.env("PATH", format!("{}:{path}", own.display())))?;
        let archive = directory.join(format!("{}.tar.gz", TESTS.replace("==", "-")));
        context.must(Command::new("tar").arg("-xzf").arg(archive).arg("-C").arg(&directory))?;
    }
    Ok(unpacked)
}

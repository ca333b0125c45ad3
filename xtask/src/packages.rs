//! The Debian packages that tests and measurements need, and why.
//!
//! How it works: `dpkg-query` says what is missing. As root it is installed; otherwise the one line that would do it is
//! printed, and the steps that need the package report themselves as skipped.

use std::process::Command;

use anyhow::Result;

use crate::runner::{Context, Verdict};

/// A package and the reason it is wanted.
pub struct Package {
    /// Debian's name.
    pub name: &'static str,
    /// What does not run without it.
    pub why: &'static str,
}

/// What `cargo xtask test` needs besides Rust.
pub const NEEDED: &[Package] = &[
    Package { name: "gcc", why: "builds the C examples and links every program" },
    Package { name: "g++", why: "builds libFuzzer, which the fuzz targets link" },
    Package { name: "libc6-dev", why: "headers for the C examples" },
    Package {
        name: "qemu-system-arm",
        why: "runs the images for Cortex-A9, Cortex-A53 and Cortex-R5F, and Linux beside them",
    },
    Package { name: "qemu-system-misc", why: "runs the images for RISC-V" },
    Package { name: "gcc-riscv64-unknown-elf", why: "compiles the FreeRTOS kernel and C tasks for RISC-V" },
    Package { name: "gcc-arm-none-eabi", why: "compiles the FreeRTOS kernel and C tasks for Cortex-R5F" },
    Package { name: "gcc-aarch64-linux-gnu", why: "builds the Linux kernel module of the port for reserved memory" },
    Package { name: "make", why: "runs the build system of Linux kernel modules" },
    Package { name: "device-tree-compiler", why: "compiles the board that Linux runs on beside a Cortex-R5F" },
    Package {
        name: "iproute2",
        why: "makes the network namespaces in which links between hosts are cut, flooded and shaped",
    },
    Package { name: "pkg-config", why: "tells the C examples how to link the installed library" },
    Package { name: "libfabric-bin", why: "libfabric's own ping-pong, which runs over the provider" },
    Package { name: "libfabric-dev", why: "headers for the C program that tests the provider" },
    Package { name: "openmpi-bin", why: "runs an MPI program over the provider" },
    Package { name: "libopenmpi-dev", why: "compiles that program" },
    Package { name: "valgrind", why: "runs C programs of both interfaces under its memcheck" },
];

/// Which of these packages are not installed. Where there is no `dpkg-query`, none counts as missing: the step itself
/// then says what it lacks.
pub fn missing<'a>(names: &[&'a str]) -> Vec<&'a str> {
    names.iter().copied().filter(|name| installed(name) == Some(false)).collect()
}

/// The reason to skip a step that needs these packages, if one is missing.
pub fn lacking(names: &[&str]) -> Option<String> {
    let missing = missing(names);
    (!missing.is_empty()).then(|| format!("Debian package not installed: {}", missing.join(", ")))
}

fn installed(name: &str) -> Option<bool> {
    let output = Command::new("dpkg-query").args(["-W", "-f", "${db:Status-Status}", name]).output().ok()?;
    Some(output.status.success() && output.stdout.starts_with(b"installed"))
}

/// Step: what is missing is installed where that is allowed.
///
/// # Errors
/// If a program that must exist cannot be started.
pub fn step(context: &Context) -> Result<Verdict> {
    let names: Vec<&str> = NEEDED.iter().map(|p| p.name).collect();
    let absent = missing(&names);
    if absent.is_empty() {
        return Ok(Verdict::passed());
    }
    for package in NEEDED.iter().filter(|p| absent.contains(&p.name)) {
        println!("   {}: {}", package.name, package.why);
    }
    let line = format!("apt-get install -y --no-install-recommends {}", absent.join(" "));
    if !is_root()? {
        return Ok(Verdict::skipped(format!("missing, and only root can install: {line}")));
    }
    context.run(Command::new("apt-get").arg("update"))?;
    let mut install = Command::new("apt-get");
    install.args(["install", "-y", "--no-install-recommends"]).args(&absent).env("DEBIAN_FRONTEND", "noninteractive");
    context.run(&mut install)?;
    let still = missing(&names);
    if still.is_empty() {
        return Ok(Verdict::passed());
    }
    Ok(Verdict::skipped(format!("could not be installed: {}", still.join(", "))))
}

/// Whether this process may install packages.
///
/// # Errors
/// If `id` cannot be started.
pub fn is_root() -> Result<bool> {
    let output = Command::new("id").arg("-u").output()?;
    Ok(output.stdout.trim_ascii() == b"0")
}
/// Something that comes from outside cannot be had here: a reason to skip, not a failure.
#[derive(Debug)]
pub struct Unavailable(pub String);

impl std::fmt::Display for Unavailable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Unavailable {}

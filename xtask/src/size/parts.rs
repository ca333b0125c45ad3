//! Which images are linked, and what each tells.

use std::collections::HashMap;

use anyhow::{Result, ensure};
use serde::Serialize;

use super::image::{Image, Size};
use crate::runner::{COMMAND_TIME_MAX, Context};

/// Targets: Cortex-M4, 64-bit RISC-V, Cortex-A9 or R5 (A32), Cortex-A53.
pub const TARGETS: [&str; 4] =
    ["thumbv7em-none-eabihf", "riscv64gc-unknown-none-elf", "armv7a-none-eabi", "aarch64-unknown-none-softfloat"];

/// A part: its name, the features of its image, and those of the image that it stands on.
const PARTS: [(&str, &str, &str); 5] = [
    ("fifo", "fifo", ""),
    ("+ waiting", "wait", "fifo"),
    ("+ filter", "filter", "fifo"),
    ("+ regulator", "regulator", "fifo"),
    ("SMEM lock", "smem", ""),
];
/// Kinds of lock site: its name, its function, and what its waiting loop's name contains, if that is out of line.
const SITES: [(&str, &str, Option<[&str; 2]>); 4] = [
    ("one core", "site_up", None),
    ("ticket lock", "site_ticket", Some(["Ticket", "wait"])),
    ("ticket lock, waiting loop in line", "site_inline", None),
    ("queue lock", "site_clh", Some(["Clh", "wait"])),
];
/// The features of the image with all lock sites.
const SITE_FEATURES: &str = "lock-up,lock-smp,lock-inline,lock-clh";

/// A part on a target.
#[derive(Clone, Copy, Debug)]
pub struct Part {
    /// Compilation target.
    pub target: &'static str,
    /// The part's name.
    pub name: &'static str,
    /// What it adds.
    pub size: Size,
}

/// One place where a lock is taken and given, around an increment.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Site {
    /// Compilation target.
    pub target: &'static str,
    /// Kind of lock.
    pub lock: &'static str,
    /// Bytes at each place: the hot path.
    pub site_bytes: u64,
    /// Bytes of the waiting loop, once a program.
    pub wait_bytes: u64,
}

/// All that was measured.
#[derive(Debug)]
pub struct Figures {
    /// Parts, target by target.
    pub parts: Vec<Part>,
    /// Lock sites, target by target.
    pub sites: Vec<Site>,
}

impl Figures {
    /// The figures of one part.
    pub fn part(&self, target: &str, name: &str) -> Option<&Part> {
        self.parts.iter().find(|part| part.target == target && part.name == name)
    }
}

/// Builds every image and measures it.
///
/// # Errors
/// If one cannot be built or read.
pub fn measure(context: &Context, quietly: bool) -> Result<Figures> {
    let mut figures = Figures { parts: Vec::new(), sites: Vec::new() };
    for target in TARGETS {
        let mut sizes = HashMap::new();
        for features in PARTS.iter().flat_map(|&(_, features, base)| [base, features]) {
            if !sizes.contains_key(features) {
                sizes.insert(features, link(context, target, features, quietly)?.size()?);
            }
        }
        let part = |(name, features, base)| Part { target, name, size: sizes[features].beyond(sizes[base]) };
        figures.parts.extend(PARTS.map(part));
        let image = link(context, target, SITE_FEATURES, quietly)?;
        for (lock, function, wait) in SITES {
            let wait_bytes = wait.map_or(Ok(0), |parts| image.function(&parts))?;
            figures.sites.push(Site { target, lock, site_bytes: image.function(&[function])?, wait_bytes });
        }
    }
    Ok(figures)
}

/// Links the image with these features.
fn link(context: &Context, target: &str, features: &str, quietly: bool) -> Result<Image> {
    let directory = context.target.join("size");
    let mut cargo = context.cargo();
    cargo.current_dir(context.root.join("firmware"));
    cargo.args(["build", "--quiet", "--locked", "--package", "size-probe", "--profile", "size"]);
    cargo.args(["--target", target, "--features", features]).arg("--target-dir").arg(&directory);
    if quietly {
        let output = context.run_unseen(&mut cargo, COMMAND_TIME_MAX)?;
        ensure!(output.status.success(), "the size probe does not build: {}", output.text);
    } else {
        context.must(&mut cargo)?;
    }
    Image::read(&directory.join(target).join("size").join("size-probe"))
}

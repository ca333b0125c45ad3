//! `cargo xtask qemu IMAGE`: builds an image for a target and runs it in QEMU's model of its board.
//!
//! What you may rely on: a run ends within the bound that the image's entry in [`images::IMAGES`] names, whatever the
//! image does; an image that ends without its summary line `N passed, M failed` has failed.
//!
//! How it works: [`images`] is the table, [`raw`] turns an image into a plain file of
//! memory where a machine asks for that, [`emulator`] finds QEMU (`PATH`, or the directory `MUSUBI_QEMU_DIR`),
//! [`console`] runs it and reads what the image prints.

mod arm;
pub mod console;
pub mod emulator;
pub mod images;
mod launch;
mod loadable;
mod raw;
mod zcu102;

use std::path::PathBuf;

use anyhow::{Context as _, Result, bail};

use crate::packages::{self, Unavailable};
use crate::runner::{Context, Verdict};
use console::Echo;
use emulator::Emulator;
use images::{IMAGES, Image};

/// What `cargo xtask qemu` takes.
#[derive(clap::Args, Clone, Debug)]
pub struct Options {
    /// The image; without it the images are listed
    image: Option<String>,
    /// Cores of the machine; the image's usual number if not given
    #[arg(long)]
    harts: Option<u32>,
    /// Run the long form: ten million cross calls instead of one
    #[arg(long)]
    long: bool,
}

impl Options {
    /// Whether an image is to be run, rather than all listed.
    pub fn names_an_image(&self) -> bool {
        self.image.is_some()
    }
}

/// One run of an image.
pub struct Run<'r> {
    /// The repository and its build directory.
    pub context: &'r Context,
    /// What runs.
    pub image: &'static Image,
    /// The image's ELF file.
    pub elf: PathBuf,
    /// Cores of the machine.
    pub harts: u32,
    /// The emulator.
    pub emulator: Emulator,
}

/// Runs one image for a person, who sees its console as it comes. Gives whether it passed.
///
/// # Errors
/// If there is no such image or QEMU is not there.
pub fn run(context: &Context, options: &Options) -> Result<bool> {
    let Some(name) = &options.image else {
        IMAGES.iter().for_each(|image| println!("{:<14} {}", image.name, image.about));
        return Ok(true);
    };
    let names = || IMAGES.iter().map(|image| image.name).collect::<Vec<_>>().join(", ");
    let image = images::find(name).with_context(|| format!("no image {name}; there are {}", names()))?;
    let harts = options.harts.unwrap_or(image.harts_usual);
    if !image.harts.contains(&harts) {
        bail!("{name} runs on {} to {} cores", image.harts.start(), image.harts.end());
    }
    let emulator = emulator_of(image)?.map_err(|reason| anyhow::anyhow!("{reason}"))?;
    let elf = build(context, image, options.long)?;
    let ended = console::run(&Run { context, image, elf, harts, emulator }, options.long, Echo::Lines)?;
    ended.notes.iter().for_each(|note| println!("{note}"));
    println!("{}", crate::runner::last_line(ended.counts));
    Ok(ended.counts.failed == 0)
}

/// Step: each image of the table with each number of cores that its entry lists.
///
/// # Errors
/// If cargo cannot be started.
pub fn step(context: &Context) -> Result<Verdict> {
    let mut verdict = Verdict::default();
    for image in IMAGES {
        let emulator = match emulator_of(image)? {
            Ok(emulator) => emulator,
            Err(reason) => {
                verdict.add(Verdict::skipped(format!("{}: {reason}", image.name)));
                continue;
            }
        };
        let elf = match build(context, image, false) {
            Ok(elf) => elf,
            Err(error) => {
                verdict.add(Verdict::failed(format!("{}: {error:#}", image.name)));
                continue;
            }
        };
        for &harts in image.harts_tested {
            let run = Run { context, image, elf: elf.clone(), harts, emulator: emulator.clone() };
            let mut ended = console::run(&run, false, Echo::Failure).unwrap_or_else(not_run);
            ended.notes.iter_mut().for_each(|note| *note = format!("{} on {harts} cores: {note}", image.name));
            verdict.add(ended);
        }
    }
    Ok(verdict)
}

/// The emulator, or the reason why the image cannot run here, with the line that would change it.
fn emulator_of(image: &Image) -> Result<Result<Emulator, String>> {
    let mut absent = packages::missing(image.packages);
    let (emulator, reason) = match emulator::find(image.emulator)? {
        Ok(emulator) if absent.is_empty() => return Ok(Ok(emulator)),
        Ok(emulator) => (Some(emulator), "programs that it needs are missing".to_owned()),
        Err(reason) => (None, reason),
    };
    if emulator.is_none() {
        absent.push(emulator::package(image.emulator));
    }
    Ok(Err(format!("{reason}; run: apt-get install -y --no-install-recommends {}", absent.join(" "))))
}

/// What a run comes to that did not begin.
fn not_run(error: anyhow::Error) -> Verdict {
    match error.downcast_ref::<Unavailable>() {
        Some(Unavailable(reason)) => Verdict::skipped(reason.clone()),
        None => Verdict::failed(format!("{error:#}")),
    }
}

/// Step: clippy for each image, with its target.
///
/// # Errors
/// If cargo cannot be started.
pub fn lints(context: &Context) -> Result<Verdict> {
    let mut verdict = Verdict::default();
    let mut seen = Vec::new();
    let images = IMAGES.iter().filter_map(|image| Some((image.package?, image.target)));
    for (package, target) in images.chain(arm::PARTS) {
        if seen.contains(&package) {
            continue;
        }
        seen.push(package);
        let mut cargo = cargo(context, "clippy", package, target);
        verdict.add(Verdict::of_exit(&context.run(cargo.args(["--", "-D", "warnings"]))?));
    }
    Ok(verdict)
}

/// Builds an image; gives the path of its ELF file.
fn build(context: &Context, image: &Image, long: bool) -> Result<PathBuf> {
    image.package.map_or(Ok(PathBuf::new()), |package| build_package(context, package, image.target, long))
}

/// Builds a package of firmware/ for a target; gives the path of its ELF file.
fn build_package(context: &Context, package: &str, target: &str, long: bool) -> Result<PathBuf> {
    let mut cargo = cargo(context, "build", package, target);
    if long {
        cargo.env("MUSUBI_LONG", "1");
    }
    context.must(&mut cargo)?;
    Ok(directory(context).join(target).join("release").join(package))
}

/// A cargo command for a package of firmware/.
fn cargo(context: &Context, command: &str, package: &str, target: &str) -> std::process::Command {
    let mut cargo = context.cargo();
    cargo.args([command, "--release", "--target", target, "--manifest-path"]);
    cargo.arg(context.root.join("firmware/Cargo.toml")).arg("--target-dir").arg(directory(context));
    cargo.args(["-p", package]);
    cargo
}

/// Where images are built.
fn directory(context: &Context) -> PathBuf {
    context.target.join("firmware")
}

//! Builds the kernel module of firmware/demo-zcu102/linux/module for the unpacked kernel.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context as _, Result};

use super::debian::Kernel;
use crate::runner::Context;

/// Where the sources are.
const SOURCES: &str = "firmware/demo-zcu102/linux/module";
/// What the kernel's build system makes of them.
const MODULE: &str = "musubi_uio.ko";
/// Prefix of the compiler's programs.
const COMPILER: &str = "aarch64-linux-gnu-";

/// Builds the module; gives its path.
///
/// # Errors
/// If it does not build.
pub fn build(context: &Context, kernel: &Kernel) -> Result<PathBuf> {
    // The build system writes beside the sources, so it gets a copy.
    let directory = context.target.join("zcu102/module").join(&kernel.release);
    fs::create_dir_all(&directory).with_context(|| format!("making {}", directory.display()))?;
    for entry in fs::read_dir(context.root.join(SOURCES))? {
        let source = entry?;
        copy_if_newer(&source.path(), &directory.join(source.file_name()))?;
    }
    let mut make = Command::new("make");
    make.arg("-C").arg(kernel.headers()).args(["ARCH=arm64", &format!("CROSS_COMPILE={COMPILER}")]);
    make.arg(format!("M={}", directory.display())).arg("modules");
    // What cargo passes on about its own jobs means nothing to this make.
    make.env_remove("MAKEFLAGS").env_remove("CARGO_MAKEFLAGS");
    context.must(&mut make)?;
    Ok(directory.join(MODULE))
}

/// Keeps the time of an unchanged file, so that it is not compiled again.
fn copy_if_newer(from: &PathBuf, to: &PathBuf) -> Result<()> {
    let contents = fs::read(from)?;
    if fs::read(to).ok().as_ref() != Some(&contents) {
        fs::write(to, contents)?;
    }
    Ok(())
}

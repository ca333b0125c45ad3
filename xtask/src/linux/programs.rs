//! Builds the programs of the demo's three kinds of core.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use serde_json::Value;

use crate::runner::Context;

/// The package whose build script generates files from the description.
const DESCRIBED: &str = "zcu102-demo";
/// The generated devicetree fragment.
const FRAGMENT: &str = "musubi_zcu102.dtsi";
/// The linker that comes with Rust, so that no C library of the other machine is needed for the programs of Linux.
const LINKER: (&str, &str) = ("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_MUSL_LINKER", "rust-lld");

/// What has been built.
pub struct Programs {
    /// What runs first, and starts the two others.
    pub start: PathBuf,
    /// The Cortex-R5F's image.
    pub r5: PathBuf,
    /// Linux's first process.
    pub init: PathBuf,
    /// That of the examples.
    pub greeter: PathBuf,
    /// Its Remote.
    pub remote: PathBuf,
    /// Its node of MCAPI.
    pub node: PathBuf,
    /// The one that has a NIC.
    pub nic: PathBuf,
    /// The one whose node is in C.
    pub exchange: PathBuf,
    /// The devicetree fragment of the description.
    pub fragment: PathBuf,
}

/// Builds all of it.
///
/// # Errors
/// If something does not build.
pub fn build(context: &Context, directory: &Path) -> Result<Programs> {
    let start = cargo(context, directory, "zcu102-start", "aarch64-unknown-none-softfloat")?;
    let r5 = cargo(context, directory, "zcu102-demo-r5", "armv7a-none-eabi")?;
    let linux = cargo(context, directory, "zcu102-linux", "aarch64-unknown-linux-musl")?;
    Ok(Programs {
        start: executable(&start, "zcu102-start")?,
        r5: executable(&r5, "zcu102-demo-r5")?,
        init: executable(&linux, "init")?,
        greeter: executable(&linux, "greeter")?,
        remote: executable(&linux, "remote")?,
        node: executable(&linux, "node")?,
        nic: executable(&linux, "nic")?,
        exchange: executable(&linux, "exchange")?,
        fragment: fragment(&linux)?,
    })
}

/// Builds a package; gives what cargo says of it, a value a line.
fn cargo(context: &Context, directory: &Path, package: &str, target: &str) -> Result<Vec<Value>> {
    let mut cargo = context.cargo();
    cargo.args(["build", "--release", "--message-format=json-render-diagnostics", "-p", package, "--target", target]);
    cargo.arg("--manifest-path").arg(context.root.join("firmware/Cargo.toml")).arg("--target-dir").arg(directory);
    cargo.env(LINKER.0, LINKER.1);
    let text = context.must(&mut cargo)?;
    Ok(text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect())
}

fn executable(messages: &[Value], name: &str) -> Result<PathBuf> {
    let artifact = messages.iter().find(|m| m["target"]["name"] == name && m["executable"].is_string());
    let path = artifact.and_then(|message| message["executable"].as_str());
    path.map(PathBuf::from).with_context(|| format!("cargo did not say where the program {name} is"))
}

fn fragment(messages: &[Value]) -> Result<PathBuf> {
    let is_described = |message: &Value| {
        let id = message["package_id"].as_str().unwrap_or_default();
        message["reason"] == "build-script-executed" && id.contains(&format!("#{DESCRIBED}@"))
    };
    let directory = messages.iter().find(|message| is_described(message)).and_then(|m| m["out_dir"].as_str());
    let directory = directory.with_context(|| format!("cargo did not say what {DESCRIBED} generated"))?;
    Ok(Path::new(directory).join(FRAGMENT))
}

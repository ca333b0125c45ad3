//! The compiler's components and targets that `rust-toolchain.toml` names.
//!
//! What you may rely on: what is missing is installed before anything is built for it, also where rustup has been told
//! not to do so by itself (`RUSTUP_AUTO_INSTALL=0`). Where there is no rustup, whoever set the compiler up sees to them.

use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result};
use toml::{Table, Value};

use crate::runner::{COMMAND_TIME_MAX, Context, Verdict};

/// Longest time for a list of what is installed.
const LIST_TIME_MAX: Duration = Duration::from_secs(60);

/// What rustup can add to a toolchain: its word for it, and the key of the file that lists it.
const KINDS: [(&str, &str); 2] = [("component", "components"), ("target", "targets")];

/// Installs what the file names and is not there; what cannot be had is named, and what needs it will not build.
///
/// # Errors
/// If the file cannot be read, or rustup runs too long.
pub fn complete(context: &Context) -> Result<Verdict> {
    let text = std::fs::read_to_string(context.root.join("rust-toolchain.toml")).context("rust-toolchain.toml")?;
    let file: Table = text.parse().context("rust-toolchain.toml")?;
    if Command::new("rustup").arg("--version").output().is_err() {
        return Ok(Verdict::skipped("no rustup here: the compiler's targets are taken as they are".to_owned()));
    }
    let mut refused = Vec::new();
    for (kind, key) in KINDS {
        for name in missing(&installed(context, kind)?, &wanted(&file, key)) {
            if !add(context, kind, name)? {
                refused.push(name);
            }
        }
    }
    Ok(match refused.is_empty() {
        true => Verdict::passed(),
        false => Verdict::skipped(format!("rustup cannot add {}", refused.join(", "))),
    })
}

/// Whether the toolchain has this target, or has got it now.
///
/// # Errors
/// If rustup cannot be started.
pub fn has_target(context: &Context, target: &str) -> Result<bool> {
    Ok(installed(context, "target")?.iter().any(|name| name == target) || add(context, "target", target)?)
}

fn wanted<'f>(file: &'f Table, key: &str) -> Vec<&'f str> {
    let list = file.get("toolchain").and_then(|toolchain| toolchain.get(key)).and_then(Value::as_array);
    list.into_iter().flatten().filter_map(Value::as_str).collect()
}

/// Those of `wanted` that are not there. Components are listed with the host behind their name.
fn missing<'w>(installed: &[String], wanted: &[&'w str]) -> Vec<&'w str> {
    let is_there = |name: &str| {
        installed.iter().any(|have| have == name || have.strip_prefix(name).is_some_and(|rest| rest.starts_with('-')))
    };
    wanted.iter().copied().filter(|name| !is_there(name)).collect()
}

fn installed(context: &Context, kind: &str) -> Result<Vec<String>> {
    let mut list = Command::new("rustup");
    list.current_dir(&context.root).args([kind, "list", "--installed"]);
    let output = context.run_unseen(&mut list, LIST_TIME_MAX)?;
    Ok(output.text.lines().map(|line| line.trim().to_owned()).collect())
}

fn add(context: &Context, kind: &str, name: &str) -> Result<bool> {
    let mut add = Command::new("rustup");
    add.current_dir(&context.root).args([kind, "add", name]);
    Ok(context.run_quietly(&mut add, COMMAND_TIME_MAX)?.status.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_listed_with_its_host_is_there() {
        let installed = ["clippy-x86_64-unknown-linux-gnu", "riscv64gc-unknown-none-elf"].map(str::to_owned);
        let wanted = ["rustfmt", "clippy", "riscv64gc-unknown-none-elf", "armv7a-none-eabi"];
        assert_eq!(missing(&installed, &wanted), ["rustfmt", "armv7a-none-eabi"]);
    }

    #[test]
    fn the_file_is_read() {
        let file: Table = "[toolchain]\ntargets = [\"a\", \"b\"]\n".parse().unwrap();
        assert_eq!((wanted(&file, "targets"), wanted(&file, "components")), (vec!["a", "b"], vec![]));
    }
}

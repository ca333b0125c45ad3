//! Finding QEMU: in `PATH`, or in the directory that the environment variable `MUSUBI_QEMU_DIR` names.
//!
//! How it works: that directory may hold the programs (or scripts that start them), have them in `bin/`, or be the root
//! of unpacked packages: programs in `usr/bin/`, which then run with that root's own loader, libraries and firmware.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;

/// The variable that names the directory.
const DIRECTORY: &str = "MUSUBI_QEMU_DIR";

/// The Debian package of a program of QEMU.
pub fn package(name: &str) -> &'static str {
    match name {
        "qemu-system-aarch64" | "qemu-system-arm" => "qemu-system-arm",
        _ => "qemu-system-misc",
    }
}

/// A program of QEMU.
#[derive(Clone, Debug)]
pub struct Emulator {
    program: PathBuf,
    /// What stands before the machine's own arguments.
    first: Vec<OsString>,
}

impl Emulator {
    /// A command that starts it, without sound, which none of our machines needs.
    pub fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.args(&self.first).env("QEMU_AUDIO_DRV", "none");
        command
    }
}

/// Finds a program of QEMU; the inner error is the reason to skip what needs it.
///
/// # Errors
/// If `MUSUBI_QEMU_DIR` names a directory without that program: whoever sets it wants that one.
pub fn find(name: &str) -> Result<Result<Emulator, String>> {
    if let Some(directory) = std::env::var_os(DIRECTORY) {
        let found = in_directory(Path::new(&directory), name);
        return found.map(Ok).ok_or_else(|| anyhow::anyhow!("{DIRECTORY} has no {name}"));
    }
    let paths = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&paths).map(|directory| directory.join(name)).find(|path| path.is_file());
    Ok(match found {
        Some(program) => Ok(Emulator { program, first: Vec::new() }),
        None => Err(format!("{name} is not installed")),
    })
}

fn in_directory(directory: &Path, name: &str) -> Option<Emulator> {
    let plain = [directory.join(name), directory.join("bin").join(name)];
    if let Some(program) = plain.into_iter().find(|path| path.is_file()) {
        return Some(Emulator { program, first: Vec::new() });
    }
    let program = directory.join("usr/bin").join(name);
    let loaders = ["usr/lib64/ld-linux-x86-64.so.2", "lib64/ld-linux-x86-64.so.2"];
    let loader = loaders.iter().map(|path| directory.join(path)).find(|path| path.is_file());
    match loader {
        _ if !program.is_file() => None,
        None => Some(Emulator { program, first: Vec::new() }),
        Some(loader) => {
            let libraries = directory.join("usr/lib/x86_64-linux-gnu");
            let (data, quiet) = (directory.join("usr/share/qemu"), "--library-path");
            let first = vec![quiet.into(), libraries.into(), program.into(), "-L".into(), data.into()];
            Some(Emulator { program: loader, first })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn directory_with(files: &[&str]) -> PathBuf {
        let place = std::env::temp_dir().join(format!("musubi-xtask-{}-{}", std::process::id(), files.len()));
        for file in files {
            let path = place.join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "").unwrap();
        }
        place
    }

    #[test]
    fn unpacked_packages_run_with_their_own_loader() {
        let root = directory_with(&["usr/bin/qemu-system-arm", "usr/lib64/ld-linux-x86-64.so.2"]);
        let emulator = in_directory(&root, "qemu-system-arm").unwrap();
        assert!(emulator.program.ends_with("ld-linux-x86-64.so.2"), "{emulator:?}");
        assert!(emulator.first.contains(&root.join("usr/bin/qemu-system-arm").into_os_string()));
        assert!(in_directory(&root, "qemu-system-riscv64").is_none());
        std::fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn a_script_in_the_directory_is_enough() {
        let root = directory_with(&["qemu-system-arm"]);
        assert!(in_directory(&root, "qemu-system-arm").unwrap().first.is_empty());
        std::fs::remove_dir_all(root).unwrap();
    }
}

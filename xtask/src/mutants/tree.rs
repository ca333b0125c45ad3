//! A copy of the repository in which one file at a time is changed, with a build directory that stays warm.
//!
//! What you may rely on: the repository itself is never touched; after an interrupted run the copy is put right by the next.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result};

use super::list::{Mutant, Place};
use crate::runner::Context;

/// Seconds after which a test of cores that wait for each other has hung, in words; below the least time of a trial.
const HANG_S: &str = "20";

/// The copy.
pub struct Copied {
    root: PathBuf,
    build: PathBuf,
}

impl Copied {
    /// Makes the copy equal to the repository, with what is not committed yet.
    ///
    /// # Errors
    /// If git does not answer or a file cannot be written.
    pub fn make(context: &Context) -> Result<Self> {
        let directory = context.target.join("mutants");
        let copied = Self { root: directory.join("tree"), build: directory.join("build") };
        let mut git = Command::new("git");
        git.current_dir(&context.root).args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"]);
        let output = git.output().context("git ls-files")?;
        let wanted: BTreeSet<PathBuf> =
            String::from_utf8_lossy(&output.stdout).split('\0').filter(|p| !p.is_empty()).map(PathBuf::from).collect();
        // What is deleted and not committed is listed too.
        for path in wanted.iter().filter(|path| context.root.join(path).is_file()) {
            copy_if_different(&context.root.join(path), &copied.root.join(path))?;
        }
        for path in files_below(&copied.root)? {
            if !context.root.join(path.strip_prefix(&copied.root)?).is_file() {
                remove(&path)?;
            }
        }
        Ok(copied)
    }

    /// `cargo` in the copy, building as quickly as it can: incrementally, without what debuggers want, with warnings left alone.
    pub fn cargo(&self, context: &Context) -> Command {
        let mut cargo = context.cargo();
        cargo.current_dir(&self.root).env("CARGO_TARGET_DIR", &self.build).env("CARGO_INCREMENTAL", "1");
        cargo.env("CARGO_PROFILE_DEV_DEBUG", "0").env("RUSTFLAGS", "--cap-lints=warn");
        // Tests whose deadline is made for Miri fail as soon as they hang here.
        cargo.env("MUSUBI_HANG_S", HANG_S);
        cargo
    }

    /// Changes a file until the value that is given back is dropped.
    ///
    /// # Errors
    /// If the file cannot be read or written, or the place is not in it.
    pub fn change(&self, mutant: &Mutant) -> Result<Changed> {
        let path = self.root.join(&mutant.file);
        let original = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        fs::write(&path, changed(&original, mutant).with_context(|| mutant.name.clone())?)?;
        Ok(Changed { path, original })
    }
}

/// A changed file of the copy.
pub struct Changed {
    path: PathBuf,
    original: String,
}

impl Drop for Changed {
    fn drop(&mut self) {
        // If this fails, so does the next change of the file, or the next run puts it right.
        let _ = fs::write(&self.path, &self.original);
    }
}

/// The text with the mutant in it.
fn changed(text: &str, mutant: &Mutant) -> Option<String> {
    let (start, end) = (offset(text, mutant.span.start)?, offset(text, mutant.span.end)?);
    Some([text.get(..start)?, &mutant.replacement, text.get(end..)?].concat())
}

/// Bytes before a character.
fn offset(text: &str, place: Place) -> Option<usize> {
    let before: usize = text.split_inclusive('\n').take(place.line.checked_sub(1)?).map(str::len).sum();
    let line = text.get(before..)?;
    let within = line.char_indices().map(|(at, _)| at).chain([line.len()]).nth(place.column.checked_sub(1)?)?;
    Some(before + within)
}

fn copy_if_different(from: &Path, to: &Path) -> Result<()> {
    let bytes = fs::read(from).with_context(|| from.display().to_string())?;
    if fs::read(to).is_ok_and(|there| there == bytes) {
        return Ok(());
    }
    if let Some(folder) = to.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::copy(from, to).with_context(|| to.display().to_string())?;
    // With the time of the original, cargo could take it for what was built before.
    fs::File::options().append(true).open(to)?.set_modified(std::time::SystemTime::now())?;
    Ok(())
}

/// Removes a file, and the folders that it leaves empty: an empty one may look like a package.
fn remove(file: &Path) -> Result<()> {
    fs::remove_file(file).with_context(|| file.display().to_string())?;
    for folder in file.ancestors().skip(1) {
        if fs::remove_dir(folder).is_err() {
            break;
        }
    }
    Ok(())
}

fn files_below(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).with_context(|| folder.display().to_string())? {
            let entry = entry?;
            if entry.file_type()?.is_dir() { folders.push(entry.path()) } else { files.push(entry.path()) }
        }
    }
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::super::list::tests::mutant;
    use super::*;

    #[test]
    fn what_is_removed_leaves_no_empty_folder() {
        let root = std::env::temp_dir().join(format!("musubi-xtask-tree-{}", std::process::id()));
        let [kept, gone] = ["kept.rs", "crates/gone/src/lib.rs"].map(|path| root.join(path));
        fs::create_dir_all(gone.parent().unwrap()).unwrap();
        [&kept, &gone].iter().for_each(|path| fs::write(path, "").unwrap());
        remove(&gone).unwrap();
        assert_eq!(files_below(&root).unwrap(), [kept]);
        assert!(!root.join("crates").exists());
        fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn the_named_characters_are_replaced() {
        let text = "let é = 1;\nlet ü = a + b;\n";
        let of = |name: &str| changed(text, &mutant(name));
        assert_eq!(of("a.rs:2:11: replace + with - in f").unwrap(), "let é = 1;\nlet ü = a - b;\n");
        assert_eq!(of("a.rs:1:1: x").unwrap(), "-et é = 1;\nlet ü = a + b;\n");
        assert_eq!(of("a.rs:2:99: x"), None);
        assert_eq!(of("a.rs:0:1: x"), None);
    }
}

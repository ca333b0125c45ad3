//! The initial file system as an archive in the kernel's format ("newc": its file initramfs-buffer-format.rst).
//!
//! What you may rely on: every directory that a file needs is in the archive before it.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Context as _, Result};

/// A directory that everybody may enter.
const DIRECTORY: u32 = 0o040_755;
/// A program.
const PROGRAM: u32 = 0o100_755;
/// A device of characters that its owner may use.
const CHARACTERS: u32 = 0o020_600;
/// Names and contents are padded to this many bytes.
const ALIGNMENT: usize = 4;
/// The last entry's name.
const TRAILER: &str = "TRAILER!!!";

/// An archive that grows.
#[derive(Default)]
pub struct Archive {
    bytes: Vec<u8>,
    directories: BTreeSet<String>,
    entries: u32,
}

impl Archive {
    /// Adds the contents of a file under a path such as `bin/remote`.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn file(&mut self, path: &str, source: &Path) -> Result<()> {
        let contents = std::fs::read(source).with_context(|| format!("reading {}", source.display()))?;
        self.directories_of(path);
        self.entry(path, PROGRAM, (0, 0), &contents);
        Ok(())
    }

    /// Adds a device of characters.
    pub fn device(&mut self, path: &str, major: u32, minor: u32) {
        self.directories_of(path);
        self.entry(path, CHARACTERS, (major, minor), &[]);
    }

    /// The finished archive.
    pub fn finish(mut self) -> Vec<u8> {
        self.entry(TRAILER, 0, (0, 0), &[]);
        self.bytes
    }

    fn directories_of(&mut self, path: &str) {
        for (end, _) in path.match_indices('/') {
            if self.directories.insert(path[..end].to_owned()) {
                self.entry(&path[..end], DIRECTORY, (0, 0), &[]);
            }
        }
    }

    fn entry(&mut self, name: &str, mode: u32, device: (u32, u32), contents: &[u8]) {
        self.entries += 1;
        let length = |bytes: usize| u32::try_from(bytes).unwrap_or(u32::MAX);
        let (user, group, links, time) = (0, 0, 1, 0);
        // Inode, mode, owner, group, links, time, length, device of the file system, own device, name's length, check.
        let fields = [self.entries, mode, user, group, links, time, length(contents.len()), 0, 0];
        let more = [device.0, device.1, length(name.len() + 1), 0];
        self.bytes.extend_from_slice(b"070701");
        for field in fields.into_iter().chain(more) {
            self.bytes.extend_from_slice(format!("{field:08x}").as_bytes());
        }
        self.bytes.extend_from_slice(name.as_bytes());
        self.bytes.push(0);
        self.pad();
        self.bytes.extend_from_slice(contents);
        self.pad();
    }

    fn pad(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(ALIGNMENT), 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_contents_begin_where_the_kernel_looks() {
        let mut archive = Archive::default();
        archive.device("dev/console", 5, 1);
        let bytes = archive.finish();
        // Two headers of 110 bytes with names, padded, and the trailer.
        assert_eq!(&bytes[..6], b"070701");
        assert_eq!(&bytes[110..114], b"dev\0");
        let second = (110usize + 4).next_multiple_of(4);
        assert_eq!(&bytes[second..second + 6], b"070701");
        assert_eq!(&bytes[second + 110..second + 122], b"dev/console\0");
        assert!(bytes.len().is_multiple_of(4) && bytes.windows(11).any(|window| window == b"TRAILER!!!\0"));
        let fields: Vec<&str> =
            (0..13).map(|n| std::str::from_utf8(&bytes[second + 6 + 8 * n..][..8]).unwrap()).collect();
        assert_eq!((fields[1], fields[9], fields[10], fields[11]), ("00002180", "00000005", "00000001", "0000000c"));
    }
}

//! The gateway's record of what it received, kept where its death cannot reach it.
//!
//! What you may rely on: an entry that was appended is seen by the launcher even if the gateway is killed in the next
//! instruction; entries come in order, whole, and none is lost.
//!
//! How it works: a memory file (memfd) that the launcher makes and both incarnations of the gateway inherit as their
//! standard output, opened for appending. One `write` an entry: the kernel holds it as soon as the call has begun to
//! copy, and a process is not killed inside such a short copy. Writing wakes nobody, so it does not disturb the
//! measurement; the launcher looks when it likes.

use std::fs::File;
use std::io::Write;
use std::os::unix::fs::FileExt;

use anyhow::Context;
use rustix::fs::{MemfdFlags, OFlags, fcntl_getfl, fcntl_setfl, memfd_create};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// Entries read at once.
const READ_ENTRIES_MAX: usize = 4096;

/// One received message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Entry {
    /// Its sequence number.
    pub sequence: u64,
    /// When it was sent, in nanoseconds of `CLOCK_MONOTONIC`.
    pub sent_ns: u64,
    /// When it was received.
    pub received_ns: u64,
    /// How long the gateway had been ready to run without running by then ([`super::waiting`]).
    pub ready_ns: u64,
    /// The loop's lateness that it carried, in nanoseconds.
    pub lateness_ns: u32,
    /// Which gateway received it, from 1.
    pub incarnation: u32,
}

/// The launcher's side.
#[derive(Debug)]
pub struct Journal {
    file: File,
    read_bytes: u64,
}

impl Journal {
    /// An empty journal.
    pub fn new() -> anyhow::Result<Journal> {
        let fd = memfd_create("musubi-demo-journal", MemfdFlags::CLOEXEC).context("making the gateway's journal")?;
        fcntl_setfl(&fd, fcntl_getfl(&fd)? | OFlags::APPEND).context("making the gateway's journal")?;
        Ok(Journal { file: File::from(fd), read_bytes: 0 })
    }

    /// The file for a gateway to append to.
    pub fn writer(&self) -> anyhow::Result<File> {
        self.file.try_clone().context("sharing the gateway's journal")
    }

    /// Moves the entries appended since the last call to the end of `into`.
    pub fn read(&mut self, into: &mut Vec<Entry>) -> anyhow::Result<()> {
        const ENTRY: usize = size_of::<Entry>();
        let mut bytes = vec![0; READ_ENTRIES_MAX * ENTRY];
        loop {
            let count = self.file.read_at(&mut bytes, self.read_bytes).context("reading the gateway's journal")?;
            let whole = count / ENTRY;
            into.extend(
                bytes[..whole * ENTRY].chunks_exact(ENTRY).filter_map(|entry| Entry::read_from_bytes(entry).ok()),
            );
            self.read_bytes += (whole * ENTRY) as u64;
            if whole < READ_ENTRIES_MAX {
                return Ok(());
            }
        }
    }
}

/// Appends an entry; for the gateway.
pub fn append(journal: &mut File, entry: &Entry) -> anyhow::Result<()> {
    journal.write_all(entry.as_bytes()).context("writing the journal")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_come_back_whole_and_in_order() {
        let mut journal = Journal::new().unwrap();
        let mut writer = journal.writer().unwrap();
        let entry =
            |sequence| Entry { sequence, sent_ns: 1, received_ns: 2, ready_ns: 5, lateness_ns: 3, incarnation: 4 };
        let mut seen = Vec::new();
        for sequence in 0..2 * READ_ENTRIES_MAX as u64 + 1 {
            append(&mut writer, &entry(sequence)).unwrap();
        }
        journal.read(&mut seen).unwrap();
        assert_eq!(seen.len(), 2 * READ_ENTRIES_MAX + 1);
        append(&mut writer, &entry(7)).unwrap();
        writer.write_all(&[1, 2, 3]).unwrap();
        journal.read(&mut seen).unwrap();
        assert_eq!(seen.last(), Some(&entry(7)));
    }
}

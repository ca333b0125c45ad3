//! Records that survive the process that wrote them: what a Remote received, and what was answered to it.
//!
//! What you may rely on: a record is in the file as a whole or not at all, whenever its writer is killed; records are in
//! the order in which they were written.
//!
//! How it works: files in memory (tmpfs), one `write` in append mode a record.
#![forbid(unsafe_code)]

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::marker::PhantomData;
use std::path::Path;

use anyhow::{Context, Result};
use zcu102_demo::{Answer, Telemetry};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// Where telemetry is recorded.
pub const RECEIVED: &str = "/run/received";
/// Where answers are recorded.
pub const ANSWERED: &str = "/run/answered";
/// A byte for each echo that a node had.
pub const ECHOED: &str = "/run/echoed";
/// Cases that passed between the nodes: on Linux, and on the Cortex-R5F.
pub const PASSED: &str = "/run/passed";
/// What nodes in C received right, in each of [`EXCHANGED_LIVES`]: on Linux, and on the Cortex-R5F.
pub const EXCHANGED: &str = "/run/exchanged";
/// A byte for each send over VIs that has completed: which of the two reliable levels.
pub const STREAMED: &str = "/run/streamed";
/// A record of [`Survived`], when the second process with a NIC has ended.
pub const SURVIVED: &str = "/run/survived";
/// Lives of the nodes in C.
pub const EXCHANGED_LIVES: u32 = 2;
/// The file that is streamed: the Remote's own program.
pub const FILE: &str = "/bin/remote";

/// A telemetry message as it was received.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Received {
    /// The message.
    pub telemetry: Telemetry,
    /// When, in nanoseconds of `CLOCK_MONOTONIC`.
    pub at_ns: u64,
    /// Incarnation of the receiver: its participant's epoch.
    pub reader: u32,
    /// Keeps the length a multiple of 8.
    pub reserved: u32,
}

/// An answer as it was received.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Answered {
    /// The answer.
    pub answer: Answer,
    /// Bytes that were sent in this pass.
    pub sent_bytes: u64,
    /// 1 if digest and length are those of what was sent.
    pub equal: u32,
    /// Incarnation of the receiver: its participant's epoch.
    pub reader: u32,
}

/// What became of a stream over VIs whose sender was killed, and of its successor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Survived {
    /// Sends that had completed at the process that was killed.
    pub completed: u32,
    /// Messages of that process that the Cortex-R5F received.
    pub received: u32,
    /// Descriptors of the Cortex-R5F that came back flushed when the successor began.
    pub flushed: u32,
    /// Messages that had completed and were not received, or not as they were sent.
    pub lost: u32,
    /// Descriptors of the Cortex-R5F that neither completed nor were flushed, or not in their turn.
    pub stray: u32,
    /// Cases that passed with the successor: on Linux, and on the Cortex-R5F.
    pub passed_here: u32,
    /// The latter.
    pub passed_there: u32,
    /// Keeps the length a multiple of 8.
    pub reserved: u32,
}

/// A record that [`Journal`] can keep.
pub trait Record: FromBytes + IntoBytes + Immutable + KnownLayout + Copy {}

impl Record for Received {}
impl Record for Answered {}
impl Record for Survived {}

/// A file of records.
#[derive(Debug)]
pub struct Journal<R> {
    file: File,
    keeps: PhantomData<fn(R)>,
}

impl<R: Record> Journal<R> {
    /// Opens a file to add records, making it if it is missing.
    ///
    /// # Errors
    /// What the kernel refused.
    pub fn open(path: &str) -> Result<Journal<R>> {
        let file =
            OpenOptions::new().create(true).append(true).open(path).with_context(|| format!("opening {path}"))?;
        Ok(Journal { file, keeps: PhantomData })
    }

    /// Adds a record.
    ///
    /// # Errors
    /// If there is no memory for it.
    pub fn add(&mut self, record: &R) -> Result<()> {
        self.file.write_all(record.as_bytes()).context("recording")
    }

    /// All records of a file; none if it is missing.
    ///
    /// # Errors
    /// If it cannot be read or is not made of records.
    pub fn read(path: &str) -> Result<Vec<R>> {
        if !Path::new(path).exists() {
            return Ok(Vec::new());
        }
        let bytes = std::fs::read(path).with_context(|| format!("reading {path}"))?;
        let records = bytes.chunks(size_of::<R>()).map(R::read_from_bytes);
        records.collect::<Result<_, _>>().map_err(|_| anyhow::anyhow!("{path} is not made of whole records"))
    }
}

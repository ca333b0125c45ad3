//! Standard input as the source of messages.

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::os::fd::{AsFd, BorrowedFd};

use anyhow::Context;

/// Smaller blocks than this many bytes are filled from a buffer, not each with a system call of its own.
const DIRECT_BYTES_MIN: usize = 4096;
/// Length of that buffer in bytes.
const STAGE_BYTES: usize = 64 << 10;

/// Standard input, read straight into large blocks and through a buffer into small ones.
pub struct Input {
    file: File,
    stage: Vec<u8>,
    /// The part of the stage that has not been sent.
    left: std::ops::Range<usize>,
}

impl Input {
    pub fn open(block_bytes: usize) -> anyhow::Result<Input> {
        let stdin = std::io::stdin().as_fd().try_clone_to_owned().context("cannot open standard input")?;
        let stage_bytes = if block_bytes < DIRECT_BYTES_MIN { STAGE_BYTES } else { 0 };
        Ok(Input { file: File::from(stdin), stage: vec![0; stage_bytes], left: 0..0 })
    }

    /// Length of a file; `None` of anything else.
    pub fn length(&self) -> Option<u64> {
        self.file.metadata().ok().filter(|metadata| metadata.is_file()).map(|metadata| metadata.len())
    }

    pub fn is_staged(&self) -> bool {
        !self.left.is_empty()
    }

    /// Reads what there is; 0 bytes at the end, `None` if there is nothing yet.
    pub fn read(&mut self, block: &mut [u8]) -> std::io::Result<Option<usize>> {
        if self.stage.is_empty() {
            return read_some(&mut self.file, block);
        }
        if self.left.is_empty() {
            let Some(bytes) = read_some(&mut self.file, &mut self.stage)? else { return Ok(None) };
            self.left = 0..bytes;
        }
        let bytes = self.left.len().min(block.len());
        block[..bytes].copy_from_slice(&self.stage[self.left.start..self.left.start + bytes]);
        self.left.start += bytes;
        Ok(Some(bytes))
    }
}

fn read_some(file: &mut File, into: &mut [u8]) -> std::io::Result<Option<usize>> {
    match file.read(into) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => Ok(None),
        Err(error) => Err(error),
    }
}

impl AsFd for Input {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

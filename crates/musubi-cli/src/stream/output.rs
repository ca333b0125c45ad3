//! Standard output as the place where messages go.

use std::fs::File;
use std::io::{ErrorKind, Write};
use std::os::fd::AsFd;

use anyhow::Context;
use musubi_core::fifo::Received;
use rustix::event::{PollFd, PollFlags, poll};

/// Bytes written at once at most: what a pipe holds.
const BUFFER_BYTES: usize = 64 << 10;

/// Standard output, written in large pieces.
pub struct Output {
    file: File,
    buffer: Box<[u8]>,
    filled: usize,
}

impl Output {
    pub fn open() -> anyhow::Result<Output> {
        let stdout = std::io::stdout().as_fd().try_clone_to_owned().context("cannot open standard output")?;
        Ok(Output { file: File::from(stdout), buffer: vec![0; BUFFER_BYTES].into_boxed_slice(), filled: 0 })
    }

    pub fn take_in(&mut self, message: &Received<'_>) -> anyhow::Result<()> {
        let mut taken = 0;
        while taken < message.len() {
            if self.filled == self.buffer.len() {
                self.flush()?;
            }
            let bytes = message.copy_to(taken, &mut self.buffer[self.filled..]);
            self.filled += bytes;
            taken += bytes as u32;
        }
        Ok(())
    }

    pub fn flush(&mut self) -> anyhow::Result<()> {
        let filled = std::mem::take(&mut self.filled);
        write_all(&mut self.file, &self.buffer[..filled]).context("cannot write standard output")
    }
}

/// Writes everything, also where another process has made the descriptor non-blocking.
fn write_all(file: &mut File, mut bytes: &[u8]) -> std::io::Result<()> {
    while !bytes.is_empty() {
        match file.write(bytes) {
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            Ok(written) => bytes = &bytes[written..],
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                poll(&mut [PollFd::new(file, PollFlags::OUT)], None)?;
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

//! `musubi recv`: a channel into standard output.

use std::fs::File;
use std::io::{ErrorKind, Write};
use std::os::fd::AsFd;
use std::time::Duration;

use anyhow::Context;
use musubi_core::Error;
use musubi_core::endpoint::{Attachment, Deadline as EndDeadline, ReceivingEnd as _};
use musubi_core::fifo::Received;
use musubi_linux::{Deadline, Participant, ReceivingEnd};
use rustix::event::{PollFd, PollFlags, poll};

use super::progress::Progress;
use super::{Side, Stream, lost, nobody_came};
use crate::failure::Failure;

/// Channel and options.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    #[command(flatten)]
    stream: Stream,
}

const EXAMPLES: &str = "\
Either side may be started first. The bytes arrive exactly. Exit code 0 means that the stream is complete; if the \
sender ends early, what it had sent is written and the exit code is 1.

Examples:
  musubi recv bulk --system examples/system.toml > copy.bin
  musubi recv bulk --system examples/system.toml --timeout 10 | sha256sum";

/// Bytes written at once at most: what a pipe holds.
const BUFFER_BYTES: usize = 64 << 10;
/// Longest stay for the sender after the confirmation.
const CONFIRMED_WAIT: Duration = Duration::from_secs(5);

/// Receives until the stream's end, and confirms it.
///
/// # Errors
/// The channel cannot be opened, nobody sends, the sender is gone before the end, or the output cannot be written.
pub fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let stream = &arguments.stream;
    let (plan, fifo) = stream.find()?;
    let channel = &plan.fifos[usize::from(fifo)];
    let output = Output::open()?;
    let participant = stream.attach(plan, channel.to)?;
    let end = participant.open_receiving(fifo)?;
    let progress = Progress::waiting_for(Side::Sender.word(), None);
    let mut receiving = Receiving { end: &end, channel: channel.name, received: 0, output, progress };
    receiving.wait_for_beginning(stream.deadline(), &participant, channel.from)?;
    receiving.copy()?;
    receiving.confirm();
    Ok(())
}

/// The receiving side of a stream.
struct Receiving<'e> {
    end: &'e ReceivingEnd,
    channel: &'e str,
    received: u64,
    output: Output,
    progress: Progress,
}

impl Receiving<'_> {
    fn wait_for_beginning(&self, deadline: Deadline, participant: &Participant, domain: u16) -> anyhow::Result<()> {
        let bytes = loop {
            match self.end.wait(deadline.into()) {
                Err(Error::Timeout) => return Err(nobody_came(participant, self.channel, Side::Sender, domain)),
                // A sender that went before it began.
                Err(Error::PeerGone) => continue,
                done => done?,
            }
            match self.end.dequeue() {
                Err(Error::Empty) => {}
                Err(error) => return Err(self.failed(error)),
                Ok(message) => {
                    let bytes = message.len();
                    let _ = self.end.free(message);
                    break bytes;
                }
            }
        };
        if bytes > 0 {
            let what = format!("channel {:?} carries no stream, or we came into the middle of one", self.channel);
            return Err(Failure::new(what, "start `musubi recv` and `musubi send` again").into());
        }
        self.end.take_loss();
        self.progress.begin();
        Ok(())
    }

    fn copy(&mut self) -> anyhow::Result<()> {
        loop {
            match self.end.dequeue() {
                Ok(message) => {
                    if self.take_in(message)? == 0 {
                        return self.output.flush();
                    }
                    self.progress.at(self.received);
                }
                Err(Error::Empty) => {
                    self.output.flush()?;
                    self.end.wait(EndDeadline::Forever).map_err(|error| self.failed(error))?;
                }
                Err(error) => return Err(self.failed(error)),
            }
        }
    }

    /// Copies a message's bytes out and gives its block back; gives how many there were.
    fn take_in(&mut self, message: Received<'_>) -> anyhow::Result<u32> {
        let bytes = message.len();
        // A successor's messages are not of this stream.
        if self.end.take_loss() {
            return Err(self.failed(Error::PeerGone));
        }
        self.output.take_in(&message)?;
        self.received += u64::from(bytes);
        let _ = self.end.free(message);
        Ok(bytes)
    }

    /// Tells the sender that all is written, and stays until it has heard that, or does not hear anything any more.
    fn confirm(&self) {
        self.end.notify();
        let deadline = Deadline::after(CONFIRMED_WAIT).into();
        while self.end.wait(deadline).is_ok() && self.end.dequeue().is_err() {}
        self.progress.finish();
    }

    fn failed(&self, error: Error) -> anyhow::Error {
        self.progress.finish();
        match error {
            Error::PeerGone => lost(self.channel, Side::Sender, self.received),
            other => other.into(),
        }
    }
}

/// Standard output, written in large pieces.
struct Output {
    file: File,
    buffer: Box<[u8]>,
    filled: usize,
}

impl Output {
    fn open() -> anyhow::Result<Output> {
        let stdout = std::io::stdout().as_fd().try_clone_to_owned().context("cannot open standard output")?;
        Ok(Output { file: File::from(stdout), buffer: vec![0; BUFFER_BYTES].into_boxed_slice(), filled: 0 })
    }

    fn take_in(&mut self, message: &Received<'_>) -> anyhow::Result<()> {
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

    fn flush(&mut self) -> anyhow::Result<()> {
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

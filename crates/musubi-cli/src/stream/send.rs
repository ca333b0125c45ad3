//! `musubi send`: standard input into a channel.

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use anyhow::Context;
use musubi_core::Error;
use musubi_core::endpoint::{Attachment, Deadline as EndDeadline, SendingEnd as _};
use musubi_core::fifo::Loan;
use musubi_linux::{Deadline, Participant, SendingEnd};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use super::progress::Progress;
use super::{Side, Stream, lost, nobody_came};

/// Channel and options.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    #[command(flatten)]
    stream: Stream,
}

const EXAMPLES: &str = "\
Either side may be started first. The bytes arrive exactly, and a slow receiver slows the sender down. Exit code 0 \
means that everything has been written by `musubi recv`; if a side ends early, so does the other, with exit code 1.

Examples:
  musubi recv bulk --system examples/system.toml > copy.bin &
  musubi send bulk --system examples/system.toml < file.bin
  head -c 1G /dev/urandom | musubi send bulk --system examples/system.toml --timeout 10";

/// Smaller blocks than this many bytes are filled from a buffer, not each with a system call of its own.
const DIRECT_BYTES_MIN: usize = 4096;
/// Length of that buffer in bytes.
const STAGE_BYTES: usize = 64 << 10;
/// Longest sleep for the regulator, in nanoseconds, after which the receiver is looked at.
const THROTTLED_NS_MAX: u64 = 20_000_000;

/// Sends until standard input ends, and waits for the confirmation.
///
/// # Errors
/// The channel cannot be opened, nobody receives, or the receiver is gone before the end.
pub fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let stream = &arguments.stream;
    let (plan, fifo) = stream.find()?;
    let channel = &plan.fifos[usize::from(fifo)];
    let mut input = Input::open(channel.block_bytes as usize)?;
    let participant = stream.attach(plan, channel.from)?;
    let end = participant.open_sending(fifo)?;
    let changed = end.event_fd()?;
    let progress = Progress::waiting_for(Side::Receiver.word(), input.length());
    let mut sending = Sending { end: &end, changed, channel: channel.name, sent: 0, progress };
    sending.wait_for_receiver(stream.deadline(), &participant, channel.to)?;
    sending.copy(&mut input)?;
    sending.wait_for_confirmation()
}

/// The sending side of a stream.
struct Sending<'e> {
    end: &'e SendingEnd,
    /// Readable when the receiver may have changed.
    changed: OwnedFd,
    channel: &'e str,
    sent: u64,
    progress: Progress,
}

impl Sending<'_> {
    fn wait_for_receiver(&self, deadline: Deadline, participant: &Participant, domain: u16) -> anyhow::Result<()> {
        loop {
            self.end.arm();
            if self.end.usage().connected {
                break;
            }
            let mut fds = [PollFd::new(&self.changed, PollFlags::IN)];
            let came = wait_until(&mut fds, deadline)?;
            if !came && deadline.passed() {
                return Err(nobody_came(participant, self.channel, Side::Receiver, domain));
            }
        }
        self.end.disarm();
        // One that went while we waited has taken nothing.
        self.end.take_loss();
        self.progress.begin();
        Ok(())
    }

    /// The mark of the beginning, the bytes, the mark of the end.
    fn copy(&mut self, input: &mut Input) -> anyhow::Result<()> {
        let mark = self.allocate()?;
        self.enqueue(mark, 0)?;
        loop {
            self.wait_for_input(input)?;
            let mut block = self.allocate()?;
            let Some(bytes) = input.read(&mut block).context("cannot read standard input")? else {
                let _ = self.end.free(block);
                continue;
            };
            self.enqueue(block, bytes as u32)?;
            if bytes == 0 {
                return Ok(());
            }
            self.sent += bytes as u64;
            self.progress.at(self.sent);
        }
    }

    /// Waits until there is something to read, or the end of it, and looks at the receiver all the while.
    fn wait_for_input(&self, input: &Input) -> anyhow::Result<()> {
        self.check_receiver()?;
        while !input.is_staged() {
            let mut fds = [PollFd::new(&input.file, PollFlags::IN), PollFd::new(&self.changed, PollFlags::IN)];
            wait_until(&mut fds, Deadline::Forever)?;
            let (readable, changed) = (!fds[0].revents().is_empty(), !fds[1].revents().is_empty());
            if changed {
                self.end.arm();
                self.end.disarm();
                self.check_receiver()?;
            }
            if readable {
                break;
            }
        }
        Ok(())
    }

    fn allocate(&self) -> anyhow::Result<Loan<'_>> {
        self.end.allocate(EndDeadline::Forever).map_err(|error| self.failed(error))
    }

    /// Enqueues and notifies, at the pace of the regulator.
    fn enqueue(&self, mut block: Loan<'_>, bytes: u32) -> anyhow::Result<()> {
        loop {
            match self.end.enqueue(block, bytes) {
                Ok(()) => break,
                Err((Error::Throttled { retry_ns }, returned)) => {
                    block = returned;
                    std::thread::sleep(Duration::from_nanos(retry_ns.min(THROTTLED_NS_MAX)));
                    self.check_receiver()?;
                }
                Err((error, _)) => return Err(self.failed(error)),
            }
        }
        self.end.notify();
        Ok(())
    }

    /// The confirmation is an event after the last message has been taken.
    fn wait_for_confirmation(&self) -> anyhow::Result<()> {
        loop {
            self.end.wait(EndDeadline::Forever).map_err(|error| self.failed(error))?;
            if self.end.usage().queued == 0 {
                self.progress.finish();
                return Ok(());
            }
        }
    }

    fn check_receiver(&self) -> anyhow::Result<()> {
        if self.end.take_loss() { Err(self.failed(Error::PeerGone)) } else { Ok(()) }
    }

    fn failed(&self, error: Error) -> anyhow::Error {
        self.progress.finish();
        match error {
            Error::PeerGone => lost(self.channel, Side::Receiver, self.sent),
            other => other.into(),
        }
    }
}

/// Standard input, read straight into large blocks and through a buffer into small ones.
struct Input {
    file: File,
    stage: Vec<u8>,
    /// The part of the stage that has not been sent.
    left: std::ops::Range<usize>,
}

impl Input {
    fn open(block_bytes: usize) -> anyhow::Result<Input> {
        let stdin = std::io::stdin().as_fd().try_clone_to_owned().context("cannot open standard input")?;
        let stage_bytes = if block_bytes < DIRECT_BYTES_MIN { STAGE_BYTES } else { 0 };
        Ok(Input { file: File::from(stdin), stage: vec![0; stage_bytes], left: 0..0 })
    }

    /// Length of a file; `None` of anything else.
    fn length(&self) -> Option<u64> {
        self.file.metadata().ok().filter(|metadata| metadata.is_file()).map(|metadata| metadata.len())
    }

    fn is_staged(&self) -> bool {
        !self.left.is_empty()
    }

    /// Reads what there is; 0 bytes at the end, `None` if there is nothing yet.
    fn read(&mut self, block: &mut [u8]) -> std::io::Result<Option<usize>> {
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

/// Waits for one of the descriptors; false if the deadline passed or a signal came.
fn wait_until(fds: &mut [PollFd<'_>], deadline: Deadline) -> anyhow::Result<bool> {
    const NS_PER_S: u64 = 1_000_000_000;
    let left = deadline.left_ns();
    let left = left.map(|ns| Timespec { tv_sec: (ns / NS_PER_S) as i64, tv_nsec: (ns % NS_PER_S) as _ });
    match poll(fds, left.as_ref()) {
        Ok(count) => Ok(count > 0),
        Err(Errno::INTR) => Ok(false),
        Err(error) => Err(error).context("cannot wait for descriptors"),
    }
}

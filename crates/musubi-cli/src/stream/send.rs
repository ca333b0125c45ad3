//! `musubi send`: standard input into a channel.

use std::os::fd::OwnedFd;
use std::time::Duration;

use anyhow::Context;
use musubi_core::Error;
use musubi_core::channel::{Attachment, SendingEnd as _};
use musubi_core::fifo::Loan;
use musubi_linux::{Counterpart, Deadline, DeadlineExt, Participant, SendingEnd};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use super::input::Input;
use super::mark::{Kind, Mark, StreamId};
use super::progress::Progress;
use super::{OBSTACLE_LOOK_NS, Side, Stream, lost, nobody_came, obstacle};

/// Channel and options.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    #[command(flatten)]
    stream: Stream,
    /// Send messages that any program understands, one for what each read of the input gives, at most a block
    #[arg(long)]
    raw: bool,
}

const EXAMPLES: &str = "\
Either side may be started first; what keeps the other side from being let in is said. The bytes arrive exactly, and a slow receiver slows the sender down. Exit code 0 \
means that everything has been written by `musubi recv`; if a side ends early, so does the other, with exit code 1.

With --raw nothing but the bytes is sent. Exit code 0 then means that the receiver has taken all messages.

Examples:
  musubi recv bulk --system examples/system.toml > copy.bin &
  musubi send bulk --system examples/system.toml < file.bin
  head -c 1G /dev/urandom | musubi send bulk --system examples/system.toml --timeout 10
  echo hello | musubi send greetings --raw --system examples/talk.toml";

/// Longest sleep for the regulator, in nanoseconds, after which the receiver is looked at.
const THROTTLED_NS_MAX: u64 = 20_000_000;
/// Time between two looks whether the last messages have been taken, where nobody confirms it.
const TAKEN_LOOK: Duration = Duration::from_millis(2);

/// Sends until standard input ends, and waits for the confirmation.
///
/// # Errors
/// The channel cannot be opened, nobody receives, or the receiver is gone before the end.
pub fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let stream = &arguments.stream;
    let (plan, fifo) = stream.find()?;
    let channel = &plan.fifos[usize::from(fifo)];
    let mut input = Input::open(channel.block_bytes as usize)?;
    let deadline = stream.deadline();
    let participant = stream.attach(plan, channel.from, deadline)?;
    let end = participant.open_sending(fifo)?;
    let changed = end.event_fd()?;
    let progress = Progress::waiting_for(Side::Receiver.word(), input.length());
    let mut sending = Sending {
        end: &end,
        changed,
        channel: channel.name,
        receiver_domain: channel.to,
        participant: &participant,
        deadline,
        receiver: None,
        messages: 0,
        sent: 0,
        progress,
    };
    sending.wait_for_receiver()?;
    if arguments.raw {
        sending.copy(&mut input)?;
        sending.wait_until_taken()?;
    } else {
        // One attachment sends one stream; another process, another epoch.
        let stream = StreamId { epoch: participant.epoch(), number: 1 };
        sending.mark(Mark { kind: Kind::Begin, stream })?;
        sending.copy(&mut input)?;
        sending.mark(Mark { kind: Kind::End, stream })?;
        sending.wait_for_confirmation()?;
    }
    sending.progress.finish();
    Ok(())
}

/// The sending side of a stream, or of messages.
struct Sending<'e> {
    end: &'e SendingEnd,
    /// Readable when the receiver may have changed.
    changed: OwnedFd,
    channel: &'e str,
    receiver_domain: u16,
    participant: &'e Participant,
    /// Of the wait for a receiver.
    deadline: Deadline,
    /// Whom all this is for.
    receiver: Option<Counterpart>,
    /// Enqueued so far.
    messages: u64,
    sent: u64,
    progress: Progress,
}

impl<'e> Sending<'e> {
    fn wait_for_receiver(&mut self) -> anyhow::Result<()> {
        self.receiver = loop {
            self.end.arm();
            if let Some(receiver) = self.end.receiver() {
                break Some(receiver);
            }
            let mut fds = [PollFd::new(&self.changed, PollFlags::IN)];
            let came = wait_until(&mut fds, self.deadline.within_ns(OBSTACLE_LOOK_NS))?;
            if !came && self.deadline.passed() {
                return Err(nobody_came(self.participant, self.channel, Side::Receiver, self.receiver_domain));
            }
            if !came {
                self.progress.say_obstacle(obstacle(self.participant, self.receiver_domain));
            }
        };
        self.end.disarm();
        self.progress.begin();
        Ok(())
    }

    /// An empty message, and the mark in as many as it takes.
    fn mark(&mut self, mark: Mark) -> anyhow::Result<()> {
        self.message(&[])?;
        mark.to_bytes().chunks(self.end.block_bytes() as usize).try_for_each(|part| self.message(part))
    }

    fn message(&mut self, bytes: &[u8]) -> anyhow::Result<()> {
        let mut block = self.allocate()?;
        block[..bytes.len()].copy_from_slice(bytes);
        self.enqueue(block, bytes.len() as u32)
    }

    /// Everything that standard input has.
    fn copy(&mut self, input: &mut Input) -> anyhow::Result<()> {
        loop {
            self.wait_for_input(input)?;
            let mut block = self.allocate()?;
            let bytes = match input.read(&mut block).context("cannot read standard input")? {
                Some(bytes) if bytes > 0 => bytes,
                nothing => {
                    let _ = self.end.free(block);
                    match nothing {
                        Some(_) => return Ok(()),
                        None => continue,
                    }
                }
            };
            self.enqueue(block, bytes as u32)?;
            self.sent += bytes as u64;
            self.progress.at(self.sent);
        }
    }

    /// Waits until there is something to read, or the end of it, and looks at the receiver all the while.
    fn wait_for_input(&mut self, input: &Input) -> anyhow::Result<()> {
        self.check_receiver()?;
        while !input.is_staged() {
            let mut fds = [PollFd::new(input, PollFlags::IN), PollFd::new(&self.changed, PollFlags::IN)];
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

    fn allocate(&mut self) -> anyhow::Result<Loan<'e>> {
        loop {
            match self.end.allocate(Deadline::Forever) {
                Err(Error::PeerGone) => self.check_receiver()?,
                allocated => return allocated.map_err(|error| self.failed(error)),
            }
        }
    }

    /// Enqueues and notifies, at the pace of the regulator.
    fn enqueue(&mut self, mut block: Loan<'e>, bytes: u32) -> anyhow::Result<()> {
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
        self.messages += 1;
        self.end.notify();
        Ok(())
    }

    /// The confirmation is an event of the stream's receiver after the last message has been taken; what a receiver before
    /// it confirmed was another stream.
    fn wait_for_confirmation(&mut self) -> anyhow::Result<()> {
        loop {
            let event = match self.receiver {
                Some(receiver) => self.end.wait_for(receiver, Deadline::Forever),
                None => Err(Error::PeerGone),
            };
            self.check_receiver()?;
            match event {
                Ok(()) if self.end.usage().queued == 0 => return Ok(()),
                Ok(()) | Err(Error::PeerGone) => {}
                Err(error) => return Err(self.failed(error)),
            }
        }
    }

    /// A receiver of messages confirms nothing by itself; what it has taken, it has.
    fn wait_until_taken(&mut self) -> anyhow::Result<()> {
        while self.end.usage().queued > 0 {
            match self.check_receiver() {
                // It took the last one, and left, since we looked.
                Err(_) if self.end.usage().queued == 0 => break,
                checked => checked?,
            }
            std::thread::sleep(TAKEN_LOOK);
        }
        Ok(())
    }

    /// Whether all this still goes to one receiver. One that is gone and took nothing of it is no loss: all of it is still
    /// queued, for whoever comes next.
    fn check_receiver(&mut self) -> anyhow::Result<()> {
        if self.end.receiver() == self.receiver {
            return Ok(());
        }
        let is_untouched = u64::from(self.end.usage().queued) == self.messages;
        if is_untouched { self.wait_for_receiver() } else { Err(self.failed(Error::PeerGone)) }
    }

    fn failed(&self, error: Error) -> anyhow::Error {
        self.progress.finish();
        match error {
            Error::PeerGone => lost(self.channel, Side::Receiver, self.sent),
            other => other.into(),
        }
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

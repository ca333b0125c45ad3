//! `musubi recv`: a channel into standard output.

use std::time::Duration;

use musubi_core::Error;
use musubi_core::channel::{Attachment, ReceivingEnd as _};
use musubi_core::fifo::Received;
use musubi_linux::{Counterpart, Deadline, DeadlineExt, Participant, ReceivingEnd};

use super::framing::{Fault, Framing, Step};
use super::mark::MARK_BYTES;
use super::output::Output;
use super::progress::Progress;
use super::{OBSTACLE_LOOK_NS, Side, Stream, lost, nobody_came, obstacle};
use crate::failure::Failure;

/// Channel and options.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    #[command(flatten)]
    stream: Stream,
    /// Take the messages of any program as they are and write their bytes, until their sender leaves
    #[arg(long)]
    raw: bool,
    /// End after so many messages
    #[arg(long, value_name = "N", requires = "raw", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
}

const EXAMPLES: &str = "\
Either side may be started first; what keeps the other side from being let in is said. The bytes arrive exactly. Exit code 0 means that the stream is complete; if the \
sender ends early, what it had sent is written and the exit code is 1.

With --raw there is no stream that could be incomplete: each message is written and then confirmed to its sender (it is \
notified), and the end of the sender is the end, also before --count messages. A sender that leaves without having sent anything \
is none: the next one is waited for.

Examples:
  musubi recv bulk --system examples/system.toml > copy.bin
  musubi recv bulk --system examples/system.toml --timeout 10 | sha256sum
  musubi recv greetings --raw --count 1 --system examples/talk.toml";

/// Longest stay for the sender after the confirmation.
const CONFIRMED_WAIT: Duration = Duration::from_secs(5);
/// Time between two looks whether it has gone, where it goes on to send.
const CONFIRMED_LOOK: Duration = Duration::from_millis(1);

/// Receives until the stream's end, and confirms it.
///
/// # Errors
/// The channel cannot be opened, nobody sends, the sender is gone before the end, or the output cannot be written.
pub fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let stream = &arguments.stream;
    let (plan, fifo) = stream.find()?;
    let channel = &plan.fifos[usize::from(fifo)];
    let output = Output::open()?;
    let deadline = stream.deadline();
    let participant = stream.attach(plan, channel.to, deadline)?;
    let end = participant.open_receiving(fifo)?;
    let progress = Progress::waiting_for(Side::Sender.word(), None);
    let mut receiving = Receiving {
        end: &end,
        channel: channel.name,
        sender_domain: channel.from,
        participant: &participant,
        deadline,
        received: 0,
        output,
        progress,
    };
    let sender = if arguments.raw { receiving.copy_messages(arguments.count)? } else { Some(receiving.copy_stream()?) };
    if let Some(sender) = sender {
        receiving.confirm(sender);
    }
    receiving.progress.finish();
    Ok(())
}

/// The receiving side of a stream, or of messages.
struct Receiving<'e> {
    end: &'e ReceivingEnd,
    channel: &'e str,
    sender_domain: u16,
    participant: &'e Participant,
    /// Of the wait for a sender.
    deadline: Deadline,
    received: u64,
    output: Output,
    progress: Progress,
}

impl Receiving<'_> {
    /// Copies a stream out, from its beginning to its end; gives who sent it.
    fn copy_stream(&mut self) -> anyhow::Result<Counterpart> {
        let mut framing = Framing::default();
        loop {
            match self.end.dequeue_from() {
                Ok((message, from)) => {
                    if self.take_in(&mut framing, message, from)? {
                        self.output.flush()?;
                        return Ok(from);
                    }
                }
                Err(Error::Empty) => {
                    self.output.flush()?;
                    self.wait_for_more(framing.sender())?;
                }
                Err(error) => return Err(self.failed(error)),
            }
        }
    }

    /// Takes a message of a stream; gives whether that was the end.
    fn take_in(&mut self, framing: &mut Framing, message: Received<'_>, from: Counterpart) -> anyhow::Result<bool> {
        let mut head = [0; MARK_BYTES];
        let head_bytes = message.copy_to(0, &mut head);
        let step = framing.take(from, message.len(), &head[..head_bytes]);
        match step {
            Ok(Step::Payload) => self.write(&message)?,
            Ok(Step::Begin) => self.progress.begin(),
            Ok(Step::Skip | Step::End) => {}
            Err(Fault::Lost) => return Err(self.failed(Error::PeerGone)),
            Err(Fault::NoStream) => return Err(self.no_stream()),
        }
        let _ = self.end.free(message);
        Ok(step == Ok(Step::End))
    }

    /// Copies messages out, as they are, until so many have come or their sender has left; gives who is to hear of it.
    fn copy_messages(&mut self, count: Option<u64>) -> anyhow::Result<Option<Counterpart>> {
        let (mut sender, mut left) = (None, count.unwrap_or(u64::MAX));
        while left > 0 {
            match self.end.dequeue_from() {
                // Of a successor too, if it is here already: a message that has been taken must be written.
                Ok((message, from)) => {
                    if sender.replace(from).is_none() {
                        self.progress.begin();
                    }
                    self.write(&message)?;
                    let _ = self.end.free(message);
                    left -= 1;
                }
                Err(Error::Empty) => {
                    self.output.flush()?;
                    if sender.is_some() {
                        self.end.notify();
                    }
                    match self.wait_for_more(sender) {
                        Ok(()) => {}
                        // Its messages are all here: that it has left ends them.
                        Err(_) if sender.is_some() && self.end.sender() != sender => return Ok(None),
                        Err(error) => return Err(error),
                    }
                }
                Err(error) => return Err(self.failed(error)),
            }
        }
        self.output.flush()?;
        Ok(sender)
    }

    fn write(&mut self, message: &Received<'_>) -> anyhow::Result<()> {
        self.output.take_in(message)?;
        self.received += u64::from(message.len());
        self.progress.at(self.received);
        Ok(())
    }

    /// Waits for a message: of `sender` as long as it is there, or else of anybody until the deadline. What was lost is
    /// told by who is there now, not by the news that somebody has gone, which may have been a predecessor.
    fn wait_for_more(&self, sender: Option<Counterpart>) -> anyhow::Result<()> {
        let deadline = if sender.is_some() { Deadline::Forever } else { self.deadline.within_ns(OBSTACLE_LOOK_NS) };
        match self.end.wait(deadline) {
            Ok(()) => Ok(()),
            Err(Error::Timeout) if !self.deadline.passed() => {
                self.progress.say_obstacle(obstacle(self.participant, self.sender_domain));
                Ok(())
            }
            Err(Error::Timeout) => Err(nobody_came(self.participant, self.channel, Side::Sender, self.sender_domain)),
            Err(Error::PeerGone) if sender.is_none() || self.end.sender() == sender => Ok(()),
            Err(error) => Err(self.failed(error)),
        }
    }

    /// Tells the sender that all is written, and stays until it has heard that, or does not hear anything any more.
    fn confirm(&self, sender: Counterpart) {
        if self.end.sender() != Some(sender) {
            // It has left. Whoever sends now waits for the confirmation of its own.
            return;
        }
        self.end.notify();
        let deadline = Deadline::after(CONFIRMED_WAIT);
        while self.end.sender() == Some(sender) && !deadline.passed() {
            // A message that comes now is not of this stream, and is left to a successor of ours.
            if self.end.wait(deadline).is_ok() {
                std::thread::sleep(CONFIRMED_LOOK);
            }
        }
    }

    fn no_stream(&self) -> anyhow::Error {
        self.progress.finish();
        let what = format!("channel {:?} carries no stream, or we came into the middle of one", self.channel);
        let help = "start `musubi recv` and `musubi send` again; messages of other programs: `musubi recv --raw`";
        Failure::new(what, help).into()
    }

    fn failed(&self, error: Error) -> anyhow::Error {
        self.progress.finish();
        match error {
            Error::PeerGone => lost(self.channel, Side::Sender, self.received),
            other => other.into(),
        }
    }
}

//! A stream of bytes through one FIFO channel: `musubi send` and `musubi recv`; with `--raw`, messages of any program.
//!
//! What you may rely on: the bytes arrive exactly and in order, or both sides end with an error. When `musubi send` ends
//! with exit code 0, everything has been written to the receiver's standard output. The loss of a side ends the other
//! one within milliseconds; a stream is never continued by a successor. A receiver that goes before it took anything is no
//! loss: the stream waits for the next one.
//!
//! How it works: a stream is a mark, messages with bytes, and a mark ([`mark`]). Each side remembers who the other one is,
//! incarnation and opening of the end, and compares; that somebody has gone is news of anybody, so it decides nothing
//! ([`framing`]). When the last mark has been taken and all bytes are written, the receiver raises an event, which
//! confirms it, and stays until the sender has left, so that its leaving cannot overtake the event.
//!
//! What it does not do: tell messages apart in a stream; `--raw` carries messages, and has no end of its own.

mod framing;
mod input;
mod mark;
mod output;
mod progress;
pub mod recv;
pub mod send;

use std::time::Duration;

use indicatif::HumanBytes;
use musubi_core::plan::Plan;
use musubi_linux::{Deadline, DeadlineExt, Error, Participant};

use crate::failure::Failure;
use crate::system::{self, System, seconds};

/// Longest wait for a free place in the domain, unless the user sets a shorter one.
const SLOT_WAIT: Duration = Duration::from_secs(5);

/// Time between two looks why the other side is not here yet, in nanoseconds.
const OBSTACLE_LOOK_NS: u64 = 1_000_000_000;

/// What both commands ask for.
#[derive(Debug, clap::Args)]
pub struct Stream {
    /// Name of a FIFO channel of the description
    channel: String,
    #[command(flatten)]
    system: System,
    /// Longest wait for the other side to start, in seconds, such as 10 or 0.5 [default: forever]
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    timeout: Option<Duration>,
}

impl Stream {
    fn deadline(&self) -> Deadline {
        self.timeout.map_or(Deadline::Forever, Deadline::after)
    }

    /// The system, and the channel's number in it.
    fn find(&self) -> anyhow::Result<(&'static Plan<'static>, u16)> {
        let plan = self.system.plan()?;
        Ok((plan, system::fifo(plan, &self.channel)?))
    }

    /// Attaches to the domain at this side of the channel, at any free place. `deadline` is that of the whole wait.
    fn attach(&self, plan: &'static Plan<'static>, domain: u16, deadline: Deadline) -> Result<Participant, Error> {
        let mut options = musubi_linux::Options::new(plan, domain);
        options.instance.clone_from(&self.system.instance);
        options.deadline = deadline.within_ns(SLOT_WAIT.as_nanos() as u64);
        Participant::attach(options)
    }
}

/// A side of a stream, for messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    Sender,
    Receiver,
}

impl Side {
    fn word(self) -> &'static str {
        match self {
            Side::Sender => "sender",
            Side::Receiver => "receiver",
        }
    }

    fn command(self) -> &'static str {
        match self {
            Side::Sender => "musubi send",
            Side::Receiver => "musubi recv",
        }
    }
}

/// What keeps a participant of a domain that is there from being linked with us.
fn obstacle(participant: &Participant, domain: u16) -> Option<Error> {
    match participant.wait_for(domain, Deadline::Poll) {
        // It is there; what has not come is its end of the channel.
        Ok(_) | Err(Error::TimedOut(_)) => None,
        Err(obstacle) => Some(obstacle),
    }
}

/// The other side did not come in time.
fn nobody_came(participant: &Participant, channel: &str, side: Side, domain: u16) -> anyhow::Error {
    if let Some(obstacle) = obstacle(participant, domain) {
        return obstacle.into();
    }
    let what = format!("no {} of channel {channel:?} came in time", side.word());
    let help = format!("start `{} {channel}` with the same --system and --instance", side.command());
    Failure::new(what, help).into()
}

/// The other side is gone before the end of the stream.
fn lost(channel: &str, side: Side, bytes: u64) -> anyhow::Error {
    let what = format!(
        "the {} of channel {channel:?} is gone; the stream is incomplete after {} ({bytes} bytes)",
        side.word(),
        HumanBytes(bytes)
    );
    let help = "a stream cannot be continued, also not by a restarted side: start both sides again";
    Failure::new(what, help).into()
}

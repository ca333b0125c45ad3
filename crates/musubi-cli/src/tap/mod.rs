//! `musubi tap`: the messages of a channel, from outside.
//!
//! What you may rely on: sender and receiver notice nothing; what is shown is what was sent; what went by without being
//! shown is counted, and the count is said.
//!
//! How it works: [`ChannelTap`] looks at the memory of both sides and knows which messages are certain. Nobody wakes an
//! observer, so it looks again and again, with rests in between. [`show`] writes what it saw.

mod show;

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use musubi_core::plan::{Plan, PortKind};
use musubi_linux::{ChannelTap, Glance};

use crate::failure::Failure;
use crate::interruption;
use crate::system::{self, System, seconds};
use show::{Form, Shown, Writer};

/// Channel and options.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct TapArguments {
    /// Name of a FIFO channel of the description
    channel: String,
    #[command(flatten)]
    system: System,
    /// Print one JSON object a line for programs (docs/tap.md)
    #[arg(long, conflicts_with = "raw")]
    json: bool,
    /// Write the messages' bytes as they are
    #[arg(long)]
    raw: bool,
    /// End after so many messages
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
    /// End after so many seconds, such as 10 or 0.5 [default: Ctrl-C ends it]
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    timeout: Option<Duration>,
    /// Show no more than so many bytes of each message
    #[arg(long, value_name = "BYTES")]
    head: Option<u32>,
    /// Rest so many microseconds, 100000 at most, when there is nothing to show; 0 keeps a processor busy and misses less
    #[arg(long, value_name = "MICROSECONDS", default_value = "200", value_parser = clap::value_parser!(u64).range(..=100_000))]
    rest: u64,
}

const EXAMPLES: &str = "\
Shows messages that are queued or in the receiver's hands, and those that come, without taking part: no place in a domain \
is taken, nothing is written, nobody waits for it. A message whose memory the sender has taken back before it could be copied \
is not shown, as it may have been written over; such messages are counted and the count is said. So of a fast stream you see a \
part, but never anything that was not sent.

Only users that the description lets attach may look. Channels of domains that share fixed memory of a chip (port uio or \
metal) cannot be looked at. Exit code 1: fewer than --count messages were shown when the time was over.

Examples:
  musubi tap greetings --system examples/talk.toml
  musubi tap telemetry --count 5 --timeout 10 --system examples/system.toml
  musubi tap telemetry --json --system examples/system.toml";

/// Looks between two questions whether the time is over.
const LOOKS: u32 = 64;

/// Shows messages until the count or the time is reached, or Ctrl-C.
///
/// # Errors
/// The channel cannot be looked at, or the output cannot be written; fewer messages came in time than were asked for.
pub fn run(arguments: &TapArguments) -> anyhow::Result<()> {
    let plan = arguments.system.plan()?;
    let fifo = system::fifo(plan, &arguments.channel)?;
    check_visible(plan, fifo)?;
    let interrupted = interruption::watch()?;
    let deadline = arguments.timeout.and_then(|time| Instant::now().checked_add(time));
    let tap = ChannelTap::new(plan, fifo, arguments.system.instance.as_deref())?;
    let form = match (arguments.json, arguments.raw) {
        (true, _) => Form::Json,
        (_, true) => Form::Raw,
        _ => Form::Text,
    };
    let bytes = plan.fifos[usize::from(fifo)].block_bytes;
    let bytes = arguments.head.map_or(bytes, |head| head.min(bytes));
    let mut watching = Watching {
        tap,
        into: vec![0; bytes as usize],
        writer: Writer::new(plan, form),
        shown: 0,
        rested: false,
        arguments,
    };
    let is_whole = watching.show_until(deadline, &interrupted)?;
    watching.writer.finish(watching.shown, watching.tap.unseen())?;
    if is_whole { Ok(()) } else { Err(watching.too_few().into()) }
}

/// A channel that is looked at, and what was shown of it.
struct Watching<'a> {
    tap: ChannelTap,
    into: Vec<u8>,
    writer: Writer,
    shown: u64,
    /// Nothing was there at the last look.
    rested: bool,
    arguments: &'a TapArguments,
}

impl Watching<'_> {
    /// Shows messages until there is a reason to end; false if there are fewer than were asked for.
    fn show_until(&mut self, deadline: Option<Instant>, interrupted: &AtomicBool) -> anyhow::Result<bool> {
        let is_over = || interrupted.load(Ordering::Relaxed) || deadline.is_some_and(|at| Instant::now() >= at);
        let wanted = self.arguments.count.unwrap_or(u64::MAX);
        while !is_over() {
            for _ in 0..LOOKS {
                if !self.look()? {
                    return Ok(true);
                }
                if self.shown == wanted {
                    return Ok(true);
                }
                if self.rested {
                    break;
                }
            }
        }
        Ok(self.arguments.count.is_none() || interrupted.load(Ordering::Relaxed))
    }

    /// One look; false if nobody reads what is written any more.
    fn look(&mut self) -> anyhow::Result<bool> {
        let seen = self.tap.look(&mut self.into)?;
        self.rested = matches!(seen, Glance::Nothing);
        match seen {
            Glance::Message(sender, message) => {
                self.shown += 1;
                let copied = (message.bytes as usize).min(self.into.len());
                let payload = &self.into[..copied];
                self.writer.write(&Shown { sender, message, payload, unseen: self.tap.unseen() })
            }
            Glance::More => Ok(true),
            Glance::Nothing => {
                let is_read = self.writer.flush()?;
                match self.arguments.rest {
                    0 => std::thread::yield_now(),
                    rest => std::thread::sleep(Duration::from_micros(rest)),
                }
                Ok(is_read)
            }
        }
    }

    fn too_few(&self) -> Failure {
        let wanted = self.arguments.count.unwrap_or_default();
        let what = format!("{} of {wanted} messages could be shown in time", self.shown);
        let help = match (self.tap.has_sender(), self.tap.unseen()) {
            _ if self.tap.lacks_receiver() => {
                "the receiver does not answer, so it is not known what is still as it was sent"
            }
            (_, 1..) => {
                "their memory was used again before they could be copied: `--rest 0` and a small --head miss less"
            }
            (true, 0) => "its sender is there, but sends nothing: `musubi status` shows both sides",
            (false, 0) => "nobody sends: start the sender with the same --system and --instance",
        };
        Failure::new(what, help)
    }
}

/// # Errors
/// A side of the channel is not a process of this machine.
fn check_visible(plan: &Plan<'_>, fifo: u16) -> Result<(), Failure> {
    let channel = &plan.fifos[usize::from(fifo)];
    let sides = [channel.from, channel.to].map(|domain| &plan.domains[usize::from(domain)]);
    match sides.iter().find(|domain| domain.port != PortKind::LinuxProcess) {
        None => Ok(()),
        Some(hidden) => {
            let what = format!(
                "cannot look at channel {:?}: domain {:?} shares fixed memory of a chip",
                channel.name, hidden.name
            );
            let help = "`musubi tap` sees processes of one machine that share memory objects; a program on the board can \
                        look with `musubi_linux::uio::Observer`";
            Err(Failure::new(what, help))
        }
    }
}

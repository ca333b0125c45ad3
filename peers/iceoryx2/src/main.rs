//! iceoryx2: a ping-pong over two publish-subscribe services between two processes on two cores.
//!
//! What you may rely on: the measured loop is that of `peers/c/pingpong.h`: the first and the last cache line of each
//! payload are written and checked, nothing else is touched, nothing is copied; a sample is one round trip, half of it
//! is called one way.
//!
//! How it works: the services are set up as iceoryx2's own benchmark does (one publisher, one subscriber, a buffer of one).
//! `--mode poll` receives in a busy loop; `--mode block` sleeps in the listener of an event service, which the sender
//! notifies after each message, because publish-subscribe by itself cannot wait.

use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, ensure};
use clap::{Parser, ValueEnum};
use iceoryx2::port::listener::Listener;
use iceoryx2::port::notifier::Notifier;
use iceoryx2::port::publisher::Publisher;
use iceoryx2::port::subscriber::Subscriber;
use iceoryx2::prelude::*;

/// Rounds before the first sample.
const WARM_UP: u64 = 2000;
/// Longest single sleep.
const SLEEP_MAX: Duration = Duration::from_secs(1);
/// Sleeps without a message after which the other side is gone.
const SLEEPS_MAX: u32 = 10;
/// Polls without a message after which it is; some seconds. Counted, because a clock would be measured too.
const POLLS_MAX: u32 = 1 << 28;

#[derive(Parser)]
struct Options {
    /// How a message is waited for
    #[arg(long, value_enum, default_value_t = Mode::Poll)]
    mode: Mode,
    /// Payload of a message, at least 8
    #[arg(long, default_value_t = 8)]
    bytes: usize,
    /// Rounds that count
    #[arg(long, default_value_t = 20_000)]
    samples: u64,
    /// File that receives every sample: round trips in ns, 32-bit, in the machine's byte order
    #[arg(long)]
    raw: Option<PathBuf>,
    /// Name of the services; given to the second process only
    #[arg(long, hide = true)]
    pong: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Mode {
    Poll,
    Block,
}

fn main() -> Result<()> {
    let options = Options::parse();
    ensure!(options.bytes >= 8 && options.samples > 0, "--bytes must be at least 8, --samples at least 1");
    set_log_level(LogLevel::Error);
    match &options.pong {
        Some(name) => pong(&options, name),
        None => ping(&options),
    }
}

fn ping(options: &Options) -> Result<()> {
    let name = format!("peer-{}", std::process::id());
    let side = Side::open(&name, 0, options)?;
    // A child inherits its parent's cores, so it starts before the parent is pinned.
    let mut child = start_pong(options, &name)?;
    pin(0)?;
    let mut rounds = Vec::with_capacity(usize::try_from(options.samples)?);
    let mut before = Instant::now();
    for round in 1..=WARM_UP + options.samples {
        side.send(round)?;
        side.receive(round)?;
        let now = Instant::now();
        if round > WARM_UP {
            rounds.push(u32::try_from((now - before).as_nanos()).unwrap_or(u32::MAX));
        }
        before = now;
    }
    ensure!(child.0.wait()?.success(), "the second process failed");
    report(options, rounds)
}

fn pong(options: &Options, name: &str) -> Result<()> {
    pin(1)?;
    let side = Side::open(name, 1, options)?;
    println!("ready");
    std::io::stdout().flush()?;
    for round in 1..=WARM_UP + options.samples {
        side.receive(round)?;
        side.send(round)?;
    }
    Ok(())
}

/// The second process, which does not outlive a failed first one.
struct Pong(Child);

impl Drop for Pong {
    fn drop(&mut self) {
        // Already gone is just as well.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn start_pong(options: &Options, name: &str) -> Result<Pong> {
    let mut command = Command::new(std::env::current_exe()?);
    let mode = options.mode.to_possible_value().context("a mode without a name")?;
    command.args(["--pong", name, "--mode", mode.get_name()]);
    command.args(["--bytes", &options.bytes.to_string(), "--samples", &options.samples.to_string()]);
    let mut child = Pong(command.stdout(Stdio::piped()).spawn()?);
    let mut line = String::new();
    BufReader::new(child.0.stdout.take().context("no pipe")?).read_line(&mut line)?;
    ensure!(line.trim() == "ready", "the second process did not start");
    Ok(child)
}

/// Pins the caller to the `side`-th core that it may use.
fn pin(side: usize) -> Result<()> {
    use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
    let allowed = sched_getaffinity(None)?;
    let cpu = (0..CpuSet::MAX_CPU).filter(|&cpu| allowed.is_set(cpu)).nth(side).context("two cores are needed")?;
    let mut one = CpuSet::new();
    one.set(cpu);
    Ok(sched_setaffinity(None, &one)?)
}

/// What one process sends and receives with.
struct Side {
    publisher: Publisher<ipc::Service, [u8], ()>,
    subscriber: Subscriber<ipc::Service, [u8], ()>,
    bell: Option<(Notifier<ipc::Service>, Listener<ipc::Service>)>,
    bytes: usize,
    _node: Node<ipc::Service>,
}

impl Side {
    /// Opens the two services; the first process sends on the first, the second on the second.
    fn open(name: &str, number: usize, options: &Options) -> Result<Self> {
        let node = NodeBuilder::new().create::<ipc::Service>().map_err(|e| anyhow!("{e:?}"))?;
        let names = [format!("{name}-ping"), format!("{name}-pong")];
        let (mine, theirs) = (&names[number], &names[1 - number]);
        let messages = |name: &str| {
            let builder = node.service_builder(&ServiceName::new(name)?).publish_subscribe::<[u8]>();
            let builder = builder.payload_alignment(Alignment::new(64).context("64 is a power of two")?);
            let builder = builder.max_publishers(1).max_subscribers(1).history_size(0).subscriber_max_buffer_size(1);
            builder.enable_safe_overflow(true).open_or_create().map_err(|e| anyhow!("{e:?}"))
        };
        let events = |name: &str| {
            let builder = node.service_builder(&ServiceName::new(name)?).event();
            builder.max_notifiers(1).max_listeners(1).open_or_create().map_err(|e| anyhow!("{e:?}"))
        };
        let publisher = messages(mine)?.publisher_builder().initial_max_slice_len(options.bytes).create();
        let bell = match options.mode {
            Mode::Poll => None,
            Mode::Block => {
                let notifier = events(mine)?.notifier_builder().create().map_err(|e| anyhow!("{e:?}"))?;
                let listener = events(theirs)?.listener_builder().create().map_err(|e| anyhow!("{e:?}"))?;
                Some((notifier, listener))
            }
        };
        Ok(Self {
            publisher: publisher.map_err(|e| anyhow!("{e:?}"))?,
            subscriber: messages(theirs)?.subscriber_builder().create().map_err(|e| anyhow!("{e:?}"))?,
            bell,
            bytes: options.bytes,
            _node: node,
        })
    }

    /// Loans a block, marks its first and last line, sends it.
    fn send(&self, round: u64) -> Result<()> {
        let mut sample = self.publisher.loan_slice_uninit(self.bytes).map_err(|e| anyhow!("{e:?}"))?;
        let payload = sample.payload_mut();
        payload[self.bytes - 8..].write_copy_of_slice(&round.to_ne_bytes());
        payload[..8].write_copy_of_slice(&round.to_ne_bytes());
        // SAFETY: the block lies in a mapping that the kernel zeroed, so its bytes have a value even where this round
        // did not write, and any value is a `u8`. iceoryx2's own benchmark does the same.
        let sample = unsafe { sample.assume_init() };
        sample.send().map_err(|e| anyhow!("{e:?}"))?;
        if let Some((notifier, _)) = &self.bell {
            notifier.notify().map_err(|e| anyhow!("{e:?}"))?;
        }
        Ok(())
    }

    /// Waits for a message and checks its first and last line.
    fn receive(&self, round: u64) -> Result<()> {
        let looks_max = if self.bell.is_some() { SLEEPS_MAX } else { POLLS_MAX };
        for _ in 0..looks_max {
            if let Some(sample) = self.subscriber.receive().map_err(|e| anyhow!("{e:?}"))? {
                let payload = sample.payload();
                let mark = round.to_ne_bytes();
                ensure!(payload[..8] == mark && payload[self.bytes - 8..] == mark, "a payload is wrong");
                return Ok(());
            }
            if let Some((_, listener)) = &self.bell {
                listener.timed_wait(|_| (), SLEEP_MAX).map_err(|e| anyhow!("{e:?}"))?;
            }
        }
        Err(anyhow!("nothing arrives"))
    }
}

/// Writes the samples to the file, and one JSON line of one-way times to standard output.
fn report(options: &Options, mut rounds: Vec<u32>) -> Result<()> {
    if let Some(path) = &options.raw {
        let bytes: Vec<u8> = rounds.iter().flat_map(|ns| ns.to_ne_bytes()).collect();
        std::fs::write(path, bytes)?;
    }
    let mean = rounds.iter().map(|&ns| f64::from(ns)).sum::<f64>() / rounds.len() as f64 / 2.0;
    rounds.sort_unstable();
    let at = |share: f64| f64::from(rounds[((rounds.len() - 1) as f64 * share) as usize]) / 2.0;
    let mode = options.mode.to_possible_value().context("a mode without a name")?;
    let line = serde_json::json!({
        "peer": "iceoryx2", "mode": mode.get_name(), "bytes": options.bytes, "unit": "ns", "n": rounds.len(),
        "p50": at(0.5), "p99": at(0.99), "p999": at(0.999), "max": at(1.0), "mean": mean,
    });
    println!("{line}");
    Ok(())
}

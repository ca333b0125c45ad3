//! `musubi ping`: how long a node takes to answer, as people know it from ping.
//!
//! What you may rely on: a line a reply; at the end, or after Ctrl-C, how many were lost, and the least, mean and longest
//! time with its spread. Exit code 0 if at least one reply came, 1 if none.
//!
//! How it works: the node's runtime answers, not its program, so the time is that of the way there and back, including
//! the wake-up of a node that sleeps. A node that can be reached in two ways is asked both ways first.

use std::fmt::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use musubi_linux::clock::now_ns;
use musubi_mcapi::engine::Outcome;
use musubi_mcapi::limits::MESSAGE_BYTES_MAX;
use musubi_mcapi::{Error, NodeId};
use musubi_transport::topology::Topology;
use serde::Serialize;

use super::tool::{Tool, Way, sleep_until};
use super::{System, names};
use crate::failure::{Failure, Quiet};
use crate::system::seconds;
use crate::{interruption, output};

/// How long shared memory is given to answer where TCP leads there too.
const PROBE: Duration = Duration::from_millis(200);
const NS_PER_MS: f64 = 1e6;
/// Shortest interval, so that a mistyped one does not flood.
const INTERVAL_MIN: Duration = Duration::from_micros(100);

/// Whom to ask, and how often.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// The node, as DOMAIN:NODE or by name
    #[arg(value_name = "NODE")]
    node: String,
    /// Stop after so many questions [default: go on until Ctrl-C]
    #[arg(short = 'c', long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
    /// Time between two questions, in seconds
    #[arg(short = 'i', long, value_name = "SECONDS", default_value = "1", value_parser = seconds)]
    interval: Duration,
    /// Bytes that are sent there and back
    #[arg(short = 's', long, value_name = "BYTES", default_value_t = 56,
          value_parser = clap::value_parser!(u32).range(0..=MESSAGE_BYTES_MAX as i64))]
    size: u32,
    /// Longest wait for a reply, in seconds
    #[arg(short = 'W', long, value_name = "SECONDS", default_value = "1", value_parser = seconds)]
    timeout: Duration,
    /// The way to use, where there are two [default: shared memory if that answers]
    #[arg(long, value_enum)]
    via: Option<Way>,
    /// Print one JSON object at the end instead of lines
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    system: System,
}

const EXAMPLES: &str = "\
The node answers by itself, whatever its program does. The first reply of a TCP link includes the time that the \
link took to come about. Exit code 0: at least one reply came; 1: none, or something is wrong.

Examples:
  musubi ping 0:1 -c 5
  musubi ping camera -i 0.2 -s 1000 --system line.toml
  musubi ping 1:1 --via tcp --json -c 100 -i 0.01";

/// What came of all questions.
#[derive(Debug, Serialize)]
struct Summary {
    node: String,
    name: String,
    way: &'static str,
    bytes: u32,
    transmitted: u64,
    received: u64,
    loss_percent: f64,
    elapsed_ms: u64,
    /// Of the round trips, in nanoseconds; `null` if there was none.
    rtt_ns: Option<Times>,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
struct Times {
    min: u64,
    avg: f64,
    max: u64,
    mdev: f64,
}

/// Round trips so far.
#[derive(Debug, Default)]
struct Tally {
    received: u64,
    min_ns: u64,
    max_ns: u64,
    sum_ns: f64,
    squares: f64,
}

impl Tally {
    fn add(&mut self, time_ns: u64) {
        self.min_ns = if self.received == 0 { time_ns } else { self.min_ns.min(time_ns) };
        self.max_ns = self.max_ns.max(time_ns);
        self.received += 1;
        self.sum_ns += time_ns as f64;
        self.squares += time_ns as f64 * time_ns as f64;
    }

    /// The spread is the standard deviation, as in ping.
    fn times(&self) -> Option<Times> {
        let count = self.received as f64;
        let avg = self.sum_ns / count;
        let mdev = (self.squares / count - avg * avg).max(0.0).sqrt();
        (self.received > 0).then_some(Times { min: self.min_ns, avg, max: self.max_ns, mdev })
    }
}

/// Asks and prints.
///
/// # Errors
/// There is no such node or no way to it, or no reply came.
pub fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let topology = arguments.system.topology()?;
    let peer = names::named(&topology, &arguments.node)?;
    let interrupted = interruption::watch()?;
    let tool = reach(&topology, peer, arguments.via, &interrupted)?;
    if tool.id() == peer {
        let what = format!("nobody runs as {peer}: it was free, and this command has taken it");
        return Err(Failure::new(what, "`musubi node ls` shows the nodes that run").into());
    }
    let summary = go(arguments, &topology, peer, &tool, &interrupted)?;
    let text = if arguments.json { serde_json::to_string_pretty(&summary)? + "\n" } else { summary.text() };
    output::print(&text)?;
    if summary.received == 0 { Err(Quiet.into()) } else { Ok(()) }
}

/// A node of ours that leads there.
fn reach(topology: &Arc<Topology>, peer: NodeId, via: Option<Way>, interrupted: &AtomicBool) -> anyhow::Result<Tool> {
    let ways = Way::to(topology, peer);
    let wanted: Vec<Way> = ways.iter().copied().filter(|way| via.is_none_or(|via| via == *way)).collect();
    match wanted[..] {
        [] => {
            let words: Vec<&str> = ways.iter().map(|way| way.word()).collect();
            let what = format!("{} cannot be reached this way", names::shown(topology, peer));
            Err(Failure::new(what, format!("the description gives: {}", words.join(", "))).into())
        }
        [way] => Tool::start(topology, way),
        [first, .., last] => {
            let tool = Tool::start(topology, first)?;
            let probe = tool.ping(peer, 0)?;
            let answers = tool.answer(probe, now_ns() + PROBE.as_nanos() as u64, interrupted);
            if matches!(answers, Ok(Some(_))) { Ok(tool) } else { Tool::start(topology, last) }
        }
    }
}

fn go(
    arguments: &Arguments,
    topology: &Topology,
    peer: NodeId,
    tool: &Tool,
    interrupted: &AtomicBool,
) -> anyhow::Result<Summary> {
    let say = |text: &str| if arguments.json { Ok(true) } else { output::offer(text) };
    let shown = names::shown(topology, peer);
    say(&format!("PING {shown} by {}: {} bytes\n", tool.way.word(), arguments.size))?;
    let interval_ns = arguments.interval.max(INTERVAL_MIN).as_nanos() as u64;
    let timeout_ns = arguments.timeout.as_nanos() as u64;
    let (began_ns, mut tally, mut transmitted) = (now_ns(), Tally::default(), 0);
    while !interrupted.load(Ordering::Relaxed) {
        let sent_ns = now_ns();
        transmitted += 1;
        let is_read = match once(tool, peer, arguments.size, sent_ns + timeout_ns, interrupted) {
            Ok(Some(time_ns)) => {
                tally.add(time_ns);
                let time_ms = time_ns as f64 / NS_PER_MS;
                say(&format!("{} bytes from {peer}: seq={transmitted} time={time_ms:.3} ms\n", arguments.size))?
            }
            Ok(None) if interrupted.load(Ordering::Relaxed) => true,
            Ok(None) => say(&format!("no answer to seq={transmitted} within {:?}\n", arguments.timeout))?,
            Err(error) => say(&format!("seq={transmitted} failed: {}\n", reason(error, tool)))?,
        };
        if !is_read || arguments.count.is_some_and(|count| transmitted >= count) {
            break;
        }
        sleep_until(sent_ns.saturating_add(interval_ns), interrupted);
    }
    Ok(Summary {
        node: peer.to_string(),
        name: topology.nodes.get(&peer).map(|place| place.name.clone()).unwrap_or_default(),
        way: tool.way.word(),
        bytes: arguments.size,
        transmitted,
        received: tally.received,
        loss_percent: 100.0 - 100.0 * tally.received as f64 / transmitted.max(1) as f64,
        elapsed_ms: (now_ns() - began_ns) / 1_000_000,
        rtt_ns: tally.times(),
    })
}

fn once(tool: &Tool, peer: NodeId, bytes: u32, until_ns: u64, interrupted: &AtomicBool) -> Result<Option<u64>, Error> {
    let question = tool.ping(peer, bytes as usize)?;
    match tool.answer(question, until_ns, interrupted)? {
        Some(Outcome::Pong(time_ns)) => Ok(Some(time_ns)),
        Some(_) => Err(Error::General),
        None => Ok(None),
    }
}

fn reason(error: Error, tool: &Tool) -> String {
    match error {
        Error::Transmission => "the link broke, or the node left".to_owned(),
        Error::NodeInvalid => {
            let plainly = "nobody answers there; the node does not run, or cannot be reached";
            tool.last_event().map_or_else(|| plainly.to_owned(), |event| format!("{plainly}: {event}"))
        }
        error => format!("{error}"),
    }
}

impl Summary {
    fn text(&self) -> String {
        let shown = if self.name.is_empty() { self.node.clone() } else { format!("{} ({})", self.node, self.name) };
        let mut text = format!(
            "\n--- {shown} ping statistics ---\n{} packets transmitted, {} received, {}% packet loss, time {} ms\n",
            self.transmitted,
            self.received,
            (self.loss_percent * 10.0).round() / 10.0,
            self.elapsed_ms
        );
        if let Some(Times { min, avg, max, mdev }) = self.rtt_ns {
            let ms = [min as f64, avg, max as f64, mdev].map(|time_ns| format!("{:.3}", time_ns / NS_PER_MS));
            // Writing to a String cannot fail.
            let _ = writeln!(text, "rtt min/avg/max/mdev = {} ms", ms.join("/"));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_summed_up_as_ping_does() {
        let mut tally = Tally::default();
        assert_eq!(tally.times(), None);
        for time_ns in [2_000, 4_000, 4_000, 4_000, 5_000, 5_000, 7_000, 9_000] {
            tally.add(time_ns);
        }
        assert_eq!(tally.times(), Some(Times { min: 2_000, avg: 5_000.0, max: 9_000, mdev: 2_000.0 }));
    }

    #[test]
    fn the_summary_reads_like_that_of_ping() {
        let mut summary = Summary {
            node: "0:1".into(),
            name: "control".into(),
            way: "shm",
            bytes: 56,
            transmitted: 3,
            received: 2,
            loss_percent: 100.0 / 3.0,
            elapsed_ms: 2001,
            rtt_ns: Some(Times { min: 41_000, avg: 50_000.0, max: 59_000, mdev: 9_000.0 }),
        };
        let text = summary.text();
        assert!(
            text.contains("--- 0:1 (control) ping statistics ---\n3 packets transmitted, 2 received, 33.3% packet")
        );
        assert!(text.ends_with("rtt min/avg/max/mdev = 0.041/0.050/0.059/0.009 ms\n"), "{text}");
        summary.rtt_ns = None;
        assert!(!summary.text().contains("rtt"));
    }
}

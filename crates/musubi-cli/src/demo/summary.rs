//! The summary of a run: figures, their text, and the verdict.

use std::fmt::Write;
use std::path::Path;

use anyhow::ensure;
use serde::Serialize;

use super::control::{ControlEnd, Start};
use super::evidence::{Evidence, Messages, Quantiles};
use super::machine::Machine;
use super::storage::StorageEnd;
use super::system::PERIOD_NS;
use super::waiting::Slow;
use crate::table::grouped;

const NS_PER_MS: f64 = 1e6;
const NS_PER_S: f64 = 1e9;

/// Everything that a run showed. Times are in the units that the names say.
#[derive(Clone, Debug, Serialize)]
pub struct Summary {
    /// Whether the run was ended early.
    pub interrupted: bool,
    /// Asked for.
    pub seconds_asked: u64,
    /// From the loop's start to its last cycle.
    pub seconds_run: f64,
    /// Whether nothing was wrong.
    pub passed: bool,
    /// What was wrong.
    pub problems: Vec<String>,
    /// The telemetry.
    pub messages: Messages,
    /// Its one-way latency.
    pub latency_us: Latency,
    /// Wake-up lateness of the loop.
    pub lateness_us: Lateness,
    /// The loop.
    #[serde(rename = "loop")]
    pub cycle: Loop,
    /// The kill, if it came to that.
    pub kill: Option<Restart>,
    /// The file's stream.
    pub stream: Stream,
    /// Where this was.
    pub machine: Machine,
}

/// One-way latency, send to receive, in microseconds.
#[derive(Clone, Debug, Serialize)]
pub struct Latency {
    /// Messages sent while a gateway was receiving.
    pub steady: Quantiles,
    /// Messages that waited for a gateway to start or to come back.
    pub waited: Quantiles,
    /// What the slow ones of `steady` waited for.
    pub slow: Slow,
}

/// Lateness in microseconds.
#[derive(Clone, Debug, Serialize)]
pub struct Lateness {
    /// Before the kill.
    pub before: Quantiles,
    /// From the kill until the successor receives, at least 100 ms.
    pub during: Quantiles,
    /// From then on.
    pub after: Quantiles,
}

/// How the loop ran.
#[derive(Clone, Debug, Serialize)]
pub struct Loop {
    /// Its period.
    pub period_us: u64,
    /// Cycles run.
    pub cycles: u64,
    /// Cycles left out because the loop was later than a whole period.
    pub skipped: u64,
    /// `SCHED_FIFO` priority, if allowed.
    pub realtime_priority: Option<u8>,
    /// Why not.
    pub realtime_refused: Option<String>,
    /// Whether its memory was locked.
    pub memory_locked: bool,
    /// The core it was bound to.
    pub core: Option<usize>,
    /// How often new parameters from the gateway took effect.
    pub settings: u64,
    /// Looks at the parameters that found the lock taken.
    pub lock_busy: u64,
    /// Cycles later than the gateway's threshold.
    pub alarms: u64,
}

/// The gateway's end and return.
#[derive(Clone, Debug, Serialize)]
pub struct Restart {
    /// When, from the loop's start.
    pub at_s: f64,
    /// From the signal to the successor's first message; none if it never received one.
    pub recovery_ms: Option<f64>,
    /// Messages that the channel kept for the successor.
    pub waited: u64,
    /// Whether the dead gateway's counter could be read; else a message in its hands counts as lost.
    pub in_hand_known: bool,
}

/// How the stream went.
#[derive(Clone, Debug, Serialize)]
pub struct Stream {
    /// The file.
    pub file: String,
    /// Its bytes that were sent.
    pub bytes: u64,
    /// From the first byte to the last answer.
    pub seconds: f64,
    /// Megabytes (10^6 bytes) a second.
    pub mb_per_s: f64,
    /// Passes over the file, the last perhaps cut short.
    pub passes: u64,
    /// Passes over the whole file.
    pub whole_passes: u64,
    /// Whether there were answers and control's digest was right each time.
    pub digest_equal: bool,
    /// BLAKE3 of the first pass.
    pub digest: String,
}

impl Summary {
    /// The figures that follow from what was seen.
    pub fn of(evidence: &Evidence, machine: Machine, file: &Path, seconds: u64, interrupted: bool) -> Summary {
        let [before, during, after] = evidence.lateness_phases();
        let mut summary = Summary {
            interrupted,
            seconds_asked: seconds,
            seconds_run: evidence.seconds_run(),
            passed: true,
            problems: Vec::new(),
            messages: evidence.messages(),
            latency_us: Latency {
                steady: Quantiles::of(evidence.latencies_ns(false)),
                waited: Quantiles::of(evidence.latencies_ns(true)),
                slow: Slow::of(&evidence.entries),
            },
            lateness_us: Lateness { before, during, after },
            cycle: Loop::of(evidence.start.as_ref(), evidence.control.as_ref()),
            kill: Restart::of(evidence),
            stream: Stream::of(file, evidence.storage.as_ref()),
            machine,
        };
        summary.problems = summary.find_problems();
        summary.passed = summary.problems.is_empty();
        summary
    }

    fn find_problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        let mut check = |is_wrong: bool, text: String| problems.extend(is_wrong.then_some(text));
        let messages = &self.messages;
        check(messages.lost > 0, format!("{} messages were lost", messages.lost));
        check(messages.duplicated > 0, format!("{} messages were duplicated", messages.duplicated));
        check(messages.out_of_order > 0, format!("{} messages came out of order", messages.out_of_order));
        check(!self.stream.digest_equal, "the digests of the stream differ".to_owned());
        let never_back = self.kill.as_ref().is_some_and(|kill| kill.recovery_ms.is_none());
        check(never_back, "the gateway received nothing after its restart".to_owned());
        problems
    }

    /// Fails if something was wrong.
    pub fn verdict(&self) -> anyhow::Result<()> {
        ensure!(self.passed, "{}", self.problems.join("; "));
        Ok(())
    }

    /// The figures as text for people.
    pub fn text(&self) -> String {
        let mut text = String::new();
        let _ = self.write(&mut text);
        text
    }

    fn write(&self, out: &mut String) -> std::fmt::Result {
        self.write_messages(out)?;
        self.write_times(out)?;
        self.write_stream(out)?;
        self.write_machine(out)?;
        let verdict = if self.passed { "passed".to_owned() } else { format!("FAILED: {}", self.problems.join("; ")) };
        row(out, "verdict", &verdict)
    }

    fn write_messages(&self, out: &mut String) -> std::fmt::Result {
        let messages = &self.messages;
        if self.interrupted {
            row(out, "ended early", &format!("after {:.1} of {} s", self.seconds_run, self.seconds_asked))?;
        }
        row(out, "messages sent", &grouped(messages.sent))?;
        row(out, "received", &grouped(messages.received))?;
        row(out, "lost", &grouped(messages.lost))?;
        row(out, "duplicated", &grouped(messages.duplicated))?;
        if messages.not_sent > 0 {
            row(out, "not sent", &format!("{} (no block was free)", grouped(messages.not_sent)))?;
        }
        match &self.kill {
            None => row(out, "gateway killed", "no, the run ended before"),
            Some(kill) => {
                let hand = match (kill.in_hand_known, messages.in_hand) {
                    (false, _) => "its counter could not be read",
                    (true, 0) => "no message in its hands",
                    (true, _) => "with 1 message in its hands: dequeued, not yet recorded",
                };
                row(out, "gateway killed", &format!("at {:.2} s, {hand}", kill.at_s))?;
                let back = kill.recovery_ms.map_or_else(|| "never".to_owned(), |ms| format!("{ms:.1} ms"));
                row(
                    out,
                    "recovery",
                    &format!("{back} from SIGKILL to the successor's first message; {} waited", kill.waited),
                )
            }
        }
    }

    fn write_times(&self, out: &mut String) -> std::fmt::Result {
        writeln!(out, "\n{:<24}{:>10}{:>10}{:>10}{:>10}", "", "p50", "p99", "max", "n")?;
        quantiles(out, "one-way latency, us", &self.latency_us.steady)?;
        quantiles(out, "  of those that waited", &self.latency_us.waited)?;
        if self.kill.is_none() {
            quantiles(out, "lateness of the loop, us", &self.lateness_us.before)?;
        } else {
            quantiles(out, "lateness before kill, us", &self.lateness_us.before)?;
            quantiles(out, "  during", &self.lateness_us.during)?;
            quantiles(out, "  after", &self.lateness_us.after)?;
        }
        writeln!(out)?;
        row(out, "slow messages", &self.latency_us.slow.text())
    }

    fn write_stream(&self, out: &mut String) -> std::fmt::Result {
        let stream = &self.stream;
        let amount =
            format!("{:.1} MB in {:.2} s: {:.0} MB/s", stream.bytes as f64 / 1e6, stream.seconds, stream.mb_per_s);
        let passes = match (stream.whole_passes, stream.passes) {
            (0, _) => "part".to_owned(),
            (_, 1) => "1 pass".to_owned(),
            (_, passes) => format!("{passes} passes"),
        };
        row(out, "stream", &format!("{amount}, {passes} of {}", stream.file))?;
        row(out, "digest", if stream.digest_equal { "equal each time (BLAKE3)" } else { "DIFFERS" })
    }

    fn write_machine(&self, out: &mut String) -> std::fmt::Result {
        let (cycle, machine) = (&self.cycle, &self.machine);
        let priority = match (&cycle.realtime_priority, &cycle.realtime_refused) {
            (Some(priority), _) => format!("SCHED_FIFO {priority}"),
            (None, Some(why)) => format!("ordinary: {why}"),
            (None, None) => "ordinary".to_owned(),
        };
        row(out, "control loop", &format!("{} cycles of 1 ms, {} skipped", grouped(cycle.cycles), cycle.skipped))?;
        row(out, "priority", &priority)?;
        row(out, "memory", if cycle.memory_locked { "locked" } else { "not locked" })?;
        let bound = cycle.core.map_or_else(String::new, |core| format!(", the loop on core {core}"));
        row(out, "cores", &format!("{} of {}{bound}", machine.cores_allowed.len(), machine.cores))?;
        let set = format!("{} settings by the gateway, {} alarms", cycle.settings, cycle.alarms);
        row(out, "parameters", &set)
    }
}

impl Loop {
    fn of(start: Option<&Start>, end: Option<&ControlEnd>) -> Loop {
        let (cycles, skipped) = end.map_or((0, 0), |end| (end.cycles, end.skipped));
        let (settings, lock_busy, alarms) = end.map_or((0, 0, 0), |end| (end.settings, end.lock_busy, end.alarms));
        let priority = start.map(|start| start.priority.clone());
        Loop {
            period_us: PERIOD_NS / 1000,
            cycles,
            skipped,
            realtime_priority: priority.clone().and_then(Result::ok),
            realtime_refused: priority.and_then(Result::err),
            memory_locked: start.is_some_and(|start| start.memory.is_ok()),
            core: start.and_then(|start| start.core),
            settings,
            lock_busy,
            alarms,
        }
    }
}

impl Restart {
    fn of(evidence: &Evidence) -> Option<Restart> {
        let kill = evidence.kill?;
        let begin_ns = evidence.start.as_ref().map_or(kill.at_ns, |start| start.at_ns);
        let first_ns = evidence.first_received_ns(2).unwrap_or(0);
        let waited = evidence.entries.iter().filter(|entry| entry.incarnation == 2 && entry.sent_ns < first_ns);
        Some(Restart {
            at_s: kill.at_ns.saturating_sub(begin_ns) as f64 / NS_PER_S,
            recovery_ms: evidence.recovery_ns().map(|ns| ns as f64 / NS_PER_MS),
            waited: waited.count() as u64,
            in_hand_known: kill.taken.is_some(),
        })
    }
}

impl Stream {
    fn of(file: &Path, end: Option<&StorageEnd>) -> Stream {
        let end = end.cloned().unwrap_or_default();
        let seconds = end.elapsed_ns as f64 / NS_PER_S;
        Stream {
            file: file.display().to_string(),
            bytes: end.bytes,
            seconds,
            mb_per_s: if seconds > 0.0 { end.bytes as f64 / 1e6 / seconds } else { 0.0 },
            passes: end.passes,
            whole_passes: end.whole_passes,
            digest_equal: end.passes > 0 && end.differing == 0,
            digest: end.digest,
        }
    }
}

fn row(out: &mut String, name: &str, value: &str) -> std::fmt::Result {
    writeln!(out, "{name:<16}{value}")
}

fn quantiles(out: &mut String, name: &str, of: &Quantiles) -> std::fmt::Result {
    if of.n == 0 {
        return writeln!(out, "{name:<24}{:>10}{:>10}{:>10}{:>10}", "-", "-", "-", 0);
    }
    writeln!(out, "{name:<24}{:>10.1}{:>10.1}{:>10.1}{:>10}", of.p50, of.p99, of.max, of.n)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::demo::evidence::Kill;
    use crate::demo::journal::Entry;

    /// Three messages, of which `received` came, and a stream whose passes were answered `differing` times wrongly.
    fn summary(received: &[u64], differing: u64) -> Summary {
        let entry = |sequence: &u64| Entry {
            sequence: *sequence,
            sent_ns: 100 + sequence,
            received_ns: 200 + sequence,
            ready_ns: 0,
            lateness_ns: 7,
            incarnation: if *sequence < 1 { 1 } else { 2 },
        };
        let evidence = Evidence {
            entries: received.iter().map(entry).collect(),
            control: Some(ControlEnd { sent: 3, latenesses: vec![(0, 7)], ..ControlEnd::default() }),
            storage: Some(StorageEnd { passes: 2, whole_passes: 1, differing, ..StorageEnd::default() }),
            kill: Some(Kill { at_ns: 150, taken: Some(1) }),
            ..Evidence::default()
        };
        Summary::of(&evidence, Machine::look(), Path::new("file"), 1, false)
    }

    #[test]
    fn a_clean_run_passes() {
        let summary = summary(&[0, 1, 2], 0);
        assert!(summary.verdict().is_ok(), "{:?}", summary.problems);
        assert!(summary.text().contains("verdict         passed"), "{}", summary.text());
    }

    #[test]
    fn each_mistake_fails_the_run_and_is_named() {
        let problem = |received: &[u64], differing| summary(received, differing).verdict().unwrap_err().to_string();
        assert_eq!(problem(&[0, 2], 0), "1 messages were lost");
        assert_eq!(problem(&[0, 1, 2, 2], 0), "1 messages were duplicated");
        assert_eq!(problem(&[0, 2, 1], 0), "1 messages came out of order");
        assert_eq!(problem(&[0, 1, 2], 1), "the digests of the stream differ");
        assert_eq!(problem(&[0], 0), "2 messages were lost; the gateway received nothing after its restart");
    }
}

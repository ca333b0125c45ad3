//! Runs a machine within its time and reads what the image prints.

use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};

use super::Run;
use crate::runner::{Counts, Verdict};

/// How long a machine may go on after the image's summary, to switch itself off.
const AFTER_SUMMARY: Duration = Duration::from_secs(3);
/// How many times longer the long form may take.
const LONG_TIMES: u32 = 15;
/// Console lines that are shown of a run that failed.
const SHOWN_LINES_MAX: usize = 60;
/// Part of what QEMU says about sound, which none of our machines needs and which cannot be switched off everywhere.
const NOISE: &str = "do you want to install qemu-system-gui package?";

/// What is shown of the console.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Echo {
    /// Every line as it comes.
    Lines,
    /// The last ones, if the run fails.
    Failure,
}

/// How a machine ended.
#[derive(Debug, Default)]
struct Ended {
    lines: Vec<String>,
    counts: Option<Counts>,
    is_late: bool,
}

/// Runs a machine until it ends, its time is up, or its image has printed its summary.
///
/// # Errors
/// If the machine cannot be started.
pub fn run(run: &Run<'_>, long: bool, echo: Echo) -> Result<Verdict> {
    let echo = if run.context.verbose { Echo::Lines } else { echo };
    let times = if long { LONG_TIMES } else { 1 };
    let time_max = Duration::from_secs(run.image.seconds_max) * times;
    let mut command = (run.image.launch)(run)?;
    println!("   $ {} on {} cores, at most {} s", run.image.name, run.harts, time_max.as_secs());
    let begin = Instant::now();
    let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let ended = follow(child.context("cannot start QEMU")?, run.image.labels, begin + time_max, echo)?;
    let verdict = judge(&ended, time_max);
    if verdict.counts.failed > 0 && echo == Echo::Failure {
        let hidden = ended.lines.len().saturating_sub(SHOWN_LINES_MAX);
        ended.lines[hidden..].iter().for_each(|line| println!("   | {line}"));
    }
    println!("   {} took {:.1} s", run.image.name, begin.elapsed().as_secs_f64());
    Ok(verdict)
}

/// Reads the machine's console until it ends; ends it where it does not do so itself.
fn follow(mut child: Child, labels: [&'static str; 2], until: Instant, echo: Echo) -> Result<Ended> {
    let lines = lines_of(&mut child, labels);
    let mut ended = Ended::default();
    let mut until = until;
    loop {
        match lines.recv_timeout(until.saturating_duration_since(Instant::now())) {
            Ok((label, line)) => {
                if echo == Echo::Lines {
                    println!("{label}{line}");
                }
                if let Some(counts) = summary(&line) {
                    ended.counts = Some(counts);
                    until = until.min(Instant::now() + AFTER_SUMMARY);
                }
                ended.lines.push(format!("{label}{line}"));
            }
            Err(RecvTimeoutError::Disconnected) => break,
            Err(RecvTimeoutError::Timeout) => {
                ended.is_late = ended.counts.is_none();
                break;
            }
        }
    }
    // It may have ended by itself meanwhile; then there is nothing to kill.
    let _ = child.kill();
    child.wait()?;
    Ok(ended)
}

/// The lines of both outputs of a child, without ends of lines, each with its output's label.
fn lines_of(child: &mut Child, labels: [&'static str; 2]) -> Receiver<(&'static str, String)> {
    let (sender, lines) = mpsc::channel();
    let pass_on = |output: Box<dyn std::io::Read + Send>, label: &'static str, sender: mpsc::Sender<_>| {
        thread::spawn(move || {
            let mut reader = BufReader::new(output);
            let mut bytes = Vec::new();
            while matches!(reader.read_until(b'\n', &mut bytes), Ok(n) if n > 0) {
                let line = String::from_utf8_lossy(&bytes).trim_end().to_owned();
                bytes.clear();
                if !line.contains(NOISE) && sender.send((label, line)).is_err() {
                    return;
                }
            }
        })
    };
    if let Some(output) = child.stderr.take() {
        pass_on(Box::new(output), labels[1], sender.clone());
    }
    if let Some(output) = child.stdout.take() {
        pass_on(Box::new(output), labels[0], sender);
    }
    lines
}

/// The counts of a line `N passed, M failed` or `N passed, M failed, K skipped`.
fn summary(line: &str) -> Option<Counts> {
    let mut parts = line.split(", ");
    let mut count = |word: &str| parts.next()?.strip_suffix(word)?.trim().parse::<u64>().ok();
    let (passed, failed) = (count(" passed")?, count(" failed")?);
    Some(Counts { passed, failed, skipped: count(" skipped").unwrap_or(0) })
}

fn judge(ended: &Ended, time_max: Duration) -> Verdict {
    let text = |line: &str| line.split_once("| ").map_or_else(|| line.to_owned(), |(_, text)| text.to_owned());
    let texts = || ended.lines.iter().map(|line| text(line));
    let with = |prefix: &str| texts().filter(|text| text.starts_with(prefix)).collect::<Vec<_>>();
    match ended.counts {
        None if ended.is_late => Verdict::failed(format!("did not end within {} s", time_max.as_secs())),
        None => Verdict::failed("ended without a summary"),
        Some(Counts { passed: 0, failed: 0, .. }) => Verdict::failed("ran no test at all"),
        Some(counts) if counts.failed > 0 => Verdict { counts, notes: with("FAILED") },
        Some(counts) => Verdict { counts, notes: with("skipped") },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ended(lines: &[&str], is_late: bool) -> Ended {
        let lines: Vec<String> = lines.iter().map(|line| (*line).into()).collect();
        Ended { counts: lines.iter().rev().find_map(|line| summary(line)), lines, is_late }
    }

    #[test]
    fn the_summary_is_understood_and_nothing_else() {
        assert_eq!(summary("40 passed, 2 failed"), Some(Counts { passed: 40, failed: 2, skipped: 0 }));
        assert_eq!(summary("1 passed, 0 failed, 3 skipped"), Some(Counts { passed: 1, failed: 0, skipped: 3 }));
        assert_eq!(summary("all 40 passed, 2 failed to start"), None);
        assert_eq!(summary("40 passed"), None);
    }

    #[test]
    fn an_image_without_a_summary_has_failed() {
        let time_max = Duration::from_secs(1);
        assert_eq!(judge(&ended(&["hello"], false), time_max).counts.failed, 1);
        assert_eq!(judge(&ended(&["hello"], true), time_max).notes, ["did not end within 1 s"]);
        assert_eq!(judge(&ended(&["0 passed, 0 failed"], false), time_max).counts.failed, 1);
    }

    #[test]
    fn failed_and_skipped_tests_are_named() {
        let time_max = Duration::from_secs(1);
        let failed =
            ended(&["FAILED locks::fifo: order", "skipped x: needs 2 cores", "3 passed, 1 failed, 1 skipped"], false);
        assert_eq!(judge(&failed, time_max).notes, ["FAILED locks::fifo: order"]);
        let passed = ended(&["skipped x: needs 2 cores", "3 passed, 0 failed, 1 skipped"], false);
        assert_eq!(judge(&passed, time_max).notes, ["skipped x: needs 2 cores"]);
    }
}

//! What the proof says: a live line, a table, and JSON.

use std::path::Path;
use std::time::Duration;

use anyhow::Context;
use comfy_table::{Table, presets};
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;

use crate::account::{Calls, Lock, Messages};

/// Everything that was counted.
#[derive(Clone, Debug, Serialize)]
pub struct Outcome {
    /// Of the random choices.
    pub seed: u64,
    /// How long it took.
    pub seconds: f64,
    /// Participants killed.
    pub kills: u32,
    /// The same by participant; the first is the Master.
    pub kills_by_participant: Vec<u32>,
    /// Of these, killed while they were starting.
    pub kills_while_starting: u32,
    /// Participants stopped for a while.
    pub stops: u32,
    /// Times that all paused and the account was drawn up.
    pub accounts: u32,
    /// Messages.
    pub messages: Messages,
    /// Channels whose both ends were dead at once; the supervisor waits, so that there are none.
    pub both_dead: u32,
    /// Messages that dead receivers had taken beyond what their own marks explain.
    pub dequeued_beyond_mark: u64,
    /// Returned blocks that a sender refused.
    pub returns_refused: u64,
    /// Blocks that receivers held when they were killed; they came back.
    pub blocks_abandoned: u64,
    /// Blocks that did not come back.
    pub blocks_leaked: u64,
    /// Calls.
    pub calls: Calls,
    /// The SMEM channel.
    pub lock: Lock,
    /// Times from SIGKILL until messages flowed again.
    pub recovery: Vec<Figure>,
    /// Participants that did not leave well at the end.
    pub failed_exits: u64,
    /// Sockets and shared memory files that were left.
    pub left_behind: u64,
}

/// A distribution of times.
#[derive(Clone, Debug, Serialize)]
pub struct Figure {
    /// What was timed.
    pub name: &'static str,
    /// Always `us`.
    pub unit: &'static str,
    /// How many.
    pub n: usize,
    /// The median.
    pub p50: u32,
    /// 99 in 100 are not above.
    pub p99: u32,
    /// The longest.
    pub max: u32,
}

/// Recovery times.
#[derive(Clone, Debug, Default)]
pub struct Recovery {
    exits: Vec<u32>,
    first: Vec<u32>,
    after_exit: Vec<u32>,
    all: Vec<u32>,
    disturbed: Vec<u32>,
}

impl Recovery {
    /// A killed process was off the process table after this many microseconds.
    pub fn note_exit(&mut self, us: u32) {
        self.exits.push(us);
    }

    /// Takes one in, in microseconds after the kill; the process was off the table after `exit_us`.
    pub fn note(&mut self, first_us: u32, all_us: u32, exit_us: u32, disturbed: bool) {
        if disturbed {
            self.disturbed.push(all_us);
        } else {
            self.first.push(first_us);
            self.after_exit.push(first_us.saturating_sub(exit_us));
            self.all.push(all_us);
        }
    }

    /// The distributions.
    pub fn figures(&self) -> Vec<Figure> {
        vec![
            figure("process_off_the_table", &self.exits),
            figure("first_channel", &self.first),
            figure("first_channel_after_the_end_of_the_process", &self.after_exit),
            figure("all_channels", &self.all),
            figure("all_channels_while_another_was_stopped", &self.disturbed),
        ]
    }
}

fn figure(name: &'static str, times: &[u32]) -> Figure {
    let mut sorted = times.to_vec();
    sorted.sort_unstable();
    let at =
        |percent: usize| sorted.get((sorted.len() * percent).div_ceil(100).saturating_sub(1)).copied().unwrap_or(0);
    Figure { name, unit: "us", n: sorted.len(), p50: at(50), p99: at(99), max: at(100) }
}

impl Outcome {
    /// What must be zero, with names.
    fn zeros(&self) -> [(&'static str, u64); 14] {
        let Messages { lost, duplicated, corrupt, invented, refused, .. } = self.messages;
        [
            ("committed messages lost", lost),
            ("messages duplicated", duplicated),
            ("messages corrupt", corrupt),
            ("messages invented", invented),
            ("announcements refused", refused),
            ("returns refused", self.returns_refused),
            ("taken beyond the mark", self.dequeued_beyond_mark),
            ("blocks leaked", self.blocks_leaked),
            ("calls past their deadline", self.calls.late),
            ("calls with a wrong error", self.calls.faults),
            ("two inside the lock", self.lock.intruders),
            ("turns under the lock lost", self.lock.lost_turns),
            ("participants that ended badly", self.failed_exits),
            ("sockets and files left behind", self.left_behind),
        ]
    }

    /// Whether everything that must be zero is.
    pub fn holds(&self) -> bool {
        self.zeros().iter().all(|(_, count)| *count == 0)
    }
}

/// Prints the table.
pub fn show(outcome: &Outcome) {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    let Outcome { messages, calls, lock, .. } = outcome;
    let by: Vec<String> = outcome.kills_by_participant.iter().map(u32::to_string).collect();
    table.add_row(["participants killed", &format!("{} ({})", outcome.kills, by.join(" + "))]);
    table.add_row(["  while starting", &outcome.kills_while_starting.to_string()]);
    table.add_row(["participants stopped", &outcome.stops.to_string()]);
    table.add_row(["accounts drawn up", &outcome.accounts.to_string()]);
    table.add_row(["messages committed", &messages.committed.to_string()]);
    table.add_row(["  received", &messages.received.to_string()]);
    table.add_row(["  in hand at a kill", &messages.in_hand_at_kill.to_string()]);
    table.add_row(["  received, not committed", &messages.uncommitted_received.to_string()]);
    table.add_row(["  void by policy", &messages.dropped_by_policy.to_string()]);
    table.add_row(["blocks in hand at a kill", &outcome.blocks_abandoned.to_string()]);
    table.add_row(["channels with both ends dead", &outcome.both_dead.to_string()]);
    table.add_row(["calls with a deadline", &calls.timed.to_string()]);
    table.add_row(["  longest overrun", &format!("{} us", calls.overrun_us_max)]);
    table.add_row(["  by the clock", &format!("{} us", calls.raw_overrun_us_max)]);
    table.add_row(["  late with the machine", &calls.late_with_the_machine.to_string()]);
    table.add_row(["  late as plain sleeps are", &calls.late_within_plain_sleeps.to_string()]);
    table.add_row(["  late while stopped", &calls.late_while_stopped.to_string()]);
    let control = format!("{} us, {} of {} late", calls.control_overrun_us_max, calls.control_late, calls.control);
    table.add_row(["  of plain sleeps", &control]);
    table.add_row(["turns under the lock", &format!("{}, {} died inside", lock.turns, lock.died_inside)]);
    for Figure { name, n, p50, p99, max, .. } in &outcome.recovery {
        let times = format!("p50 {p50} us, p99 {p99} us, max {max} us, n {n}");
        table.add_row([format!("recovery: {}", name.replace('_', " ")), times]);
    }
    for (name, count) in outcome.zeros() {
        table.add_row([name.to_owned(), format!("{count}{}", if count == 0 { "" } else { "   FAILED" })]);
    }
    println!("{table}");
    println!("{} after {:.0} s", if outcome.holds() { "holds" } else { "FAILED" }, outcome.seconds);
}

/// Writes the JSON.
pub fn write(outcome: &Outcome, path: &Path) -> anyhow::Result<()> {
    let text = serde_json::to_string_pretty(outcome)? + "\n";
    std::fs::write(path, text).with_context(|| format!("writing {}", path.display()))
}

/// Named sockets of this instance, and shared memory files of Musubi's.
pub fn left_behind(instance: &str) -> u64 {
    let sockets = std::fs::read_to_string("/proc/net/unix").unwrap_or_default();
    let is_ours = |line: &&str| !instance.is_empty() && line.contains(&format!("/{instance}/"));
    let sockets = sockets.lines().filter(is_ours).count() as u64;
    let named = |directory: &str| {
        let names = std::fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.file_name());
        names.filter(|name| name.to_string_lossy().contains("musubi")).count() as u64
    };
    sockets + named("/dev/shm") + named("/run")
}

/// The live line; nothing where there is no terminal.
#[derive(Debug)]
pub struct Live(ProgressBar);

impl Live {
    /// For so many kills.
    pub fn new(kills: u32) -> Live {
        let bar = ProgressBar::new(kills.into());
        if let Ok(style) = ProgressStyle::with_template("{pos}/{len} killed, {eta} left; {msg}") {
            bar.set_style(style);
        }
        bar.enable_steady_tick(Duration::from_millis(500));
        Live(bar)
    }

    /// Shows where the run stands.
    pub fn show(&self, kills: u32, messages: &Messages, recovery: &Recovery, leaked: u64) {
        let recovery_ms = recovery.figures()[1].p50 / 1_000;
        let Messages { committed, lost, duplicated, .. } = messages;
        self.0.set_position(kills.into());
        self.0.set_message(format!(
            "{committed} committed, {lost} lost, {duplicated} twice, {leaked} blocks leaked, recovery p50 {recovery_ms} ms"
        ));
    }

    /// Takes the line away.
    pub fn finish(&self) {
        self.0.finish_and_clear();
    }
}

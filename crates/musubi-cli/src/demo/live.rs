//! The live display: two histograms that move, where the processes stand, and what has happened.
//!
//! What you may rely on: on a terminal it redraws in place ten times a second and leaves the cursor and the screen as
//! they were; elsewhere it prints one line an event. `NO_COLOR` is respected.
//!
//! How it works: a frame is a list of lines, each cut to the terminal's width; the cursor goes up by as many lines as
//! the last frame had. A terminal too low for a frame shows its first lines.

use std::io::{IsTerminal, Write, stdout};

use anstyle::AnsiColor as Color;
use crossterm::{cursor, queue, terminal};
use musubi_linux::clock::now_ns;

use super::control::Start;
use super::evidence::Evidence;
use crate::screen::cut;
use crate::table::grouped;

/// Time between frames in nanoseconds.
const FRAME_NS: u64 = 100_000_000;
/// What the histograms look back at, in nanoseconds.
const WINDOW_NS: u64 = 1_000_000_000;
/// Upper ends of the histograms' rows in microseconds, and what they are called.
const ROWS: [(u64, &str); 12] = [
    (1, "    1 us"),
    (2, "    2 us"),
    (4, "    4 us"),
    (8, "    8 us"),
    (16, "   16 us"),
    (32, "   32 us"),
    (64, "   64 us"),
    (128, "  128 us"),
    (256, "  256 us"),
    (512, "  512 us"),
    (1024, "    1 ms"),
    (u64::MAX, "  longer"),
];
/// Width of a histogram's bars in characters.
const BAR: usize = 24;
const NS_PER_S: u64 = 1_000_000_000;

/// Where the run stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// The processes look for each other.
    Starting,
    /// The loop runs.
    Running,
}

/// The display.
#[derive(Debug)]
pub struct Display {
    is_shown: bool,
    is_terminal: bool,
    has_colour: bool,
    seconds: u64,
    begin_ns: u64,
    drawn_ns: u64,
    drawn_lines: u16,
    pids: [u32; 3],
    is_second: bool,
    is_back: bool,
}

impl Display {
    /// Says that the run begins, if anything `is_shown`. `pids` are control, gateway and storage.
    pub fn open(is_shown: bool, seconds: u64, instance: &str, pids: [u32; 3]) -> Display {
        let is_terminal = is_shown && stdout().is_terminal();
        let has_colour = is_terminal && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
        if is_shown {
            greet(seconds, instance, pids);
        }
        if is_terminal {
            let _ = queue!(stdout(), cursor::Hide);
        }
        let begin_ns = now_ns();
        Display {
            is_shown,
            is_terminal,
            has_colour,
            seconds,
            begin_ns,
            drawn_ns: 0,
            drawn_lines: 0,
            pids,
            is_second: false,
            is_back: false,
        }
    }

    /// Says how the loop runs.
    pub fn started(&mut self, start: &Start) {
        self.begin_ns = start.at_ns;
        if let Err(why) = &start.priority {
            self.event(&format!("control runs without real-time priority: {why}"));
        }
    }

    /// Says that the gateway was killed and started again.
    pub fn killed(&mut self, successor: u32) {
        self.pids[1] = successor;
        self.is_second = true;
        self.event("gateway killed (SIGKILL) and started again");
    }

    /// Ends the display.
    pub fn close(&mut self) {
        if self.is_terminal {
            self.erase();
            let _ = queue!(stdout(), cursor::Show);
        }
        if self.is_shown {
            put("");
        }
        let _ = stdout().flush();
    }

    /// Shows what there is by now, if it is time.
    pub fn draw(&mut self, state: State, evidence: &Evidence) {
        if let Some(ns) = evidence.recovery_ns().filter(|_| !self.is_back) {
            self.is_back = true;
            self.event(&format!("gateway is back after {:.1} ms", ns as f64 / 1e6));
        }
        let now = now_ns();
        if !self.is_terminal || now < self.drawn_ns + FRAME_NS {
            return;
        }
        self.drawn_ns = now;
        let lines = match state {
            State::Starting => vec!["starting".to_owned()],
            State::Running => self.frame(now, evidence),
        };
        self.show(&lines);
    }

    /// A line that stays.
    fn event(&mut self, text: &str) {
        if !self.is_shown {
            return;
        }
        self.erase();
        let at = now_ns().saturating_sub(self.begin_ns) as f64 / 1e9;
        put(format_args!("{at:6.2} s  {text}"));
    }

    fn frame(&self, now: u64, evidence: &Evidence) -> Vec<String> {
        let recent = recent(evidence, now);
        let latency = counts(recent.iter().map(|(latency, _)| *latency));
        let lateness = counts(recent.iter().map(|(_, lateness)| *lateness));
        let mut lines = vec![self.clock_line(now), self.process_line(), String::new()];
        let (left, right) = ("one-way latency, last second", "lateness of the 1 ms loop");
        lines.push(format!("       up to  {left:<width$}{right}", width = BAR + 8));
        for (row, (_, name)) in ROWS.iter().enumerate() {
            let left = self.bar(latency[row], &latency, Color::Cyan);
            let right = self.bar(lateness[row], &lateness, Color::Yellow);
            lines.push(format!("    {name}  {left}  {right}"));
        }
        lines.push(String::new());
        lines.push(totals_line(evidence, recent.len()));
        lines
    }

    fn clock_line(&self, now: u64) -> String {
        let elapsed_ns = now.saturating_sub(self.begin_ns);
        let all_ns = self.seconds * NS_PER_S;
        let done = (elapsed_ns.min(all_ns) * 40 / all_ns) as usize;
        let bar = format!("{}{}", "━".repeat(done), "─".repeat(40 - done));
        format!("  {:5.1} of {} s  {}", elapsed_ns as f64 / 1e9, self.seconds, self.coloured(&bar, Color::Green))
    }

    fn process_line(&self) -> String {
        let [control, gateway, storage] = self.pids;
        let note = match (self.is_second, self.is_back) {
            (false, _) => String::new(),
            (true, false) => self.coloured(" killed, coming back", Color::Red),
            (true, true) => self.coloured(" (second)", Color::Green),
        };
        format!("  control {control}   gateway {gateway}{note}   storage {storage}")
    }

    /// A bar as wide as its share of the largest, and its count.
    fn bar(&self, count: u64, all: &[u64], colour: Color) -> String {
        const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
        let largest = all.iter().copied().max().unwrap_or(0).max(1);
        let eighths = (count * BAR as u64 * 8).div_ceil(largest) as usize;
        let text = format!("{}{}", "█".repeat(eighths / 8), EIGHTHS[eighths % 8]);
        let rest = BAR - eighths.div_ceil(8);
        let number = if count > 0 { count.to_string() } else { String::new() };
        format!("{}{} {number:<5}", self.coloured(&text, colour), " ".repeat(rest))
    }

    fn coloured(&self, text: &str, colour: Color) -> String {
        let style = colour.on_default();
        if self.has_colour { format!("{style}{text}{style:#}") } else { text.to_owned() }
    }

    fn show(&mut self, lines: &[String]) {
        let (width, height) = terminal::size().unwrap_or((80, 24));
        let shown = lines.len().min(usize::from(height.saturating_sub(1)));
        self.go_up();
        for line in &lines[..shown] {
            let _ = queue!(stdout(), terminal::Clear(terminal::ClearType::CurrentLine));
            put(cut(line, usize::from(width)));
        }
        self.drawn_lines = shown as u16;
        let _ = stdout().flush();
    }

    fn go_up(&self) {
        if self.drawn_lines > 0 {
            let _ = queue!(stdout(), cursor::MoveToPreviousLine(self.drawn_lines));
        }
    }

    fn erase(&mut self) {
        if self.drawn_lines > 0 {
            self.go_up();
            let _ = queue!(stdout(), terminal::Clear(terminal::ClearType::FromCursorDown));
            self.drawn_lines = 0;
        }
    }
}

impl Drop for Display {
    fn drop(&mut self) {
        if self.is_terminal {
            let _ = queue!(stdout(), cursor::Show);
            let _ = stdout().flush();
        }
    }
}

fn greet(seconds: u64, instance: &str, [control, gateway, storage]: [u32; 3]) {
    put(format_args!("{seconds} s, three processes: control {control}, gateway {gateway}, storage {storage}"));
    put("meanwhile, from outside:  musubi demo --describe > demo.toml");
    put(format_args!("  MUSUBI_INSTANCE={instance} musubi status --system demo.toml"));
}

/// A line on the standard output; if nobody reads it any more, the run goes on.
fn put(line: impl std::fmt::Display) {
    let _ = writeln!(stdout(), "{line}");
}

/// Latency and lateness in nanoseconds of what was received in the last second.
fn recent(evidence: &Evidence, now: u64) -> Vec<(u64, u64)> {
    let entries = evidence.entries.iter().rev().take_while(|entry| entry.received_ns + WINDOW_NS > now);
    entries.map(|entry| (entry.received_ns.saturating_sub(entry.sent_ns), u64::from(entry.lateness_ns))).collect()
}

fn counts(samples_ns: impl Iterator<Item = u64>) -> [u64; ROWS.len()] {
    let mut counts = [0; ROWS.len()];
    for ns in samples_ns {
        let row = ROWS.iter().position(|(us, _)| ns / 1000 < *us).unwrap_or(ROWS.len() - 1);
        counts[row] += 1;
    }
    counts
}

fn totals_line(evidence: &Evidence, recent: usize) -> String {
    let received = grouped(evidence.entries.len() as u64);
    let last = evidence.progress.last().map_or(0, |progress| progress.bytes);
    let rate = evidence.progress.iter().rev().nth(20).zip(evidence.progress.last()).map_or(0.0, |(before, now)| {
        (now.bytes - before.bytes) as f64 * 1e3 / (now.at_ns - before.at_ns).max(1) as f64
    });
    format!("  received {received}, {recent} in the last second   stream {:.0} MB, {rate:.0} MB/s", last as f64 / 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_time_has_its_row() {
        let counts = counts([999, 1000, 1999, 2000, 511_999, 1_023_999, 1_024_000, u64::MAX].into_iter());
        assert_eq!(counts, [1, 2, 1, 0, 0, 0, 0, 0, 0, 1, 1, 2]);
    }
}

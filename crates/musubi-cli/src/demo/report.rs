//! Where results go: the summary, the JSON, and the report page with its plots.
//!
//! What you may rely on: files are opened before the run, so a path that cannot be written is known at once; one that
//! the run did not fill is taken away again. The page needs nothing but itself.
//!
//! How it works: plots are SVG inside the page ([`crate::plot`]), the page is a template (report.html).

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use minijinja::value::{Serde, Value};
use minijinja::{AutoEscape, Environment, context};

use super::evidence::{Evidence, Quantiles};
use super::summary::Summary;
use crate::output;
use crate::plot::{Axis, Plot, Scale, Unit, number_text, time_text};
use crate::table::grouped;

/// Where the report goes if nobody says.
const REPORT: &str = "musubi-demo.html";
/// Points of a curve over time.
const COLUMNS: usize = 300;
/// Bars of a histogram for each doubling of the value.
const BARS_PER_DOUBLING: f64 = 4.0;
/// How much of the time around the kill is shown beyond it, in milliseconds.
const AROUND_MS: f64 = 25.0;
const NS_PER_US: f64 = 1e3;
const NS_PER_MS: f64 = 1e6;
const NS_PER_S: f64 = 1e9;

/// Where results go.
#[derive(Debug)]
pub struct Outputs {
    json: Option<Json>,
    report: Result<Output, String>,
}

#[derive(Debug)]
enum Json {
    Printed,
    Written(Output),
}

/// A file that is open for the results.
#[derive(Debug)]
struct Output {
    path: PathBuf,
    file: File,
    /// Made by this run, and nothing in it yet.
    is_new: bool,
}

impl Outputs {
    /// Opens the files.
    pub fn prepare(json: Option<&Path>, report: Option<&Path>) -> anyhow::Result<Outputs> {
        let json = match json {
            None => None,
            Some(path) if path == Path::new("-") => Some(Json::Printed),
            Some(path) => Some(Json::Written(Output::open(path).context("--json")?)),
        };
        let report = match report {
            Some(path) => Ok(Output::open(path).context("--report")?),
            None => Output::open(Path::new(REPORT)).map_err(|error| format!("{error:#}")),
        };
        if let (Some(Json::Written(json)), Ok(report)) = (&json, &report) {
            let same = fs::canonicalize(&json.path).ok() == fs::canonicalize(&report.path).ok();
            ensure!(!same, "--json and --report name the same file");
        }
        Ok(Outputs { json, report })
    }

    /// Whether the standard output is for the JSON alone.
    pub fn prints_json(&self) -> bool {
        matches!(self.json, Some(Json::Printed))
    }

    /// Writes all that can be written: the summary is printed even where a file cannot be filled.
    ///
    /// # Errors
    /// What could not be written.
    pub fn write(self, summary: &Summary, evidence: &Evidence) -> anyhow::Result<()> {
        let report = self.report.map(|report| report.fill(&page(summary, evidence)?));
        let where_to = match &report {
            Ok(Ok(path)) => path.display().to_string(),
            Ok(Err(error)) => format!("none ({error:#})"),
            Err(why) => format!("none ({why}; --report OUT.html names another place)"),
        };
        let json = serde_json::to_string_pretty(summary)? + "\n";
        let text = format!("{}{:<16}{where_to}\n", summary.text(), "report");
        let written = match self.json {
            Some(Json::Printed) => output::print(&json),
            Some(Json::Written(file)) => output::print(&text).and(file.fill(&json).map(drop)),
            None => output::print(&text),
        };
        // That no file could be opened where nobody named one, the summary says.
        written.and(report.unwrap_or_else(|_| Ok(PathBuf::new())).map(drop))
    }
}

impl Output {
    fn open(path: &Path) -> anyhow::Result<Output> {
        let is_new = !path.exists();
        // Not truncated yet: if the run fails, the former results stay.
        let opened = OpenOptions::new().write(true).create(true).truncate(false).open(path);
        let file = opened.with_context(|| format!("cannot write {}", path.display()))?;
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf());
        Ok(Output { path, file, is_new })
    }

    fn fill(mut self, text: &str) -> anyhow::Result<PathBuf> {
        if self.file.metadata().is_ok_and(|about| about.is_file()) {
            self.file.set_len(0).with_context(|| format!("writing {}", self.path.display()))?;
        }
        self.file.write_all(text.as_bytes()).with_context(|| format!("writing {}", self.path.display()))?;
        self.is_new = false;
        Ok(self.path.clone())
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        if self.is_new {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// The report page. The template sees the summary as it is in the JSON, and the plots.
fn page(summary: &Summary, evidence: &Evidence) -> anyhow::Result<String> {
    let mut environment = Environment::new();
    environment.set_auto_escape_callback(|_| AutoEscape::Html);
    environment.add_filter("grouped", grouped);
    environment.add_filter("short", number_text);
    environment.add_filter("time", time_text);
    environment.add_template("style", include_str!("../report.css"))?;
    environment.add_template("report", include_str!("report.html"))?;
    let rows = [
        ("one-way latency", &summary.latency_us.steady),
        ("one-way latency of those that waited", &summary.latency_us.waited),
        ("lateness before the kill", &summary.lateness_us.before),
        ("lateness during the kill", &summary.lateness_us.during),
        ("lateness after the kill", &summary.lateness_us.after),
    ];
    Ok(environment.get_template("report")?.render(context! {
        run => Value::from(Serde(summary)),
        slow => summary.latency_us.slow.text(),
        rows => rows.map(|(name, of)| context! { name, of => Value::from(Serde(of)) }).to_vec(),
        lateness_plot => safe(lateness_plot(evidence)),
        kill_plot => safe(kill_plot(evidence)),
        latency_plot => safe(latency_plot(evidence, &summary.latency_us.steady)),
        stream_plot => safe(stream_plot(evidence)),
    })?)
}

fn safe(picture: Option<String>) -> Option<Value> {
    picture.map(Value::from_safe_string)
}

/// Where the plots' time begins: with the loop.
fn begin_ns(evidence: &Evidence) -> f64 {
    evidence.start.as_ref().map_or(0.0, |start| start.at_ns as f64)
}

fn seconds_axis(to: f64) -> Axis {
    Axis { scale: Scale::Linear, from: 0.0, to, unit: Unit::Number, label: "seconds since the loop began" }
}

fn time_axis(from: f64, to: f64, label: &'static str) -> Axis {
    Axis { scale: Scale::Log, from, to: to.max(from * 10.0), unit: Unit::Time, label }
}

/// Marks the kill in a plot over seconds.
fn mark_kill(plot: &mut Plot, evidence: &Evidence) {
    let Some(kill) = evidence.kill else { return };
    let seconds = |ns: u64| (ns as f64 - begin_ns(evidence)) / NS_PER_S;
    if let Some(back_ns) = evidence.first_received_ns(2) {
        plot.shade(seconds(kill.at_ns), seconds(back_ns));
    }
    plot.mark("kill", seconds(kill.at_ns), "gateway killed", false);
}

/// Lateness of the loop: median and largest of each column of time.
fn lateness_plot(evidence: &Evidence) -> Option<String> {
    let begin = begin_ns(evidence);
    let samples: Vec<(f64, f64)> =
        evidence.latenesses().map(|(at, ns)| ((at as f64 - begin) / NS_PER_S, ns as f64 / NS_PER_US)).collect();
    let end = samples.last()?.0;
    let columns = columns(&samples, end);
    let largest = samples.iter().map(|(_, us)| *us).fold(10.0, f64::max);
    let smallest = columns.iter().map(|(_, median, _)| *median).fold(10.0, f64::min).max(0.1);
    let title = "How late the control loop woke up, over time";
    let y = time_axis(smallest / 1.5, largest * 1.5, "wake-up lateness");
    let mut plot = Plot::new(title, seconds_axis(end), y);
    plot.area("first", &columns);
    plot.line("first", &columns.iter().map(|(x, median, _)| (*x, *median)).collect::<Vec<_>>());
    mark_kill(&mut plot, evidence);
    Some(plot.finish())
}

/// Middle, median and largest of the samples of each column; columns without samples are left out.
fn columns(samples: &[(f64, f64)], end: f64) -> Vec<(f64, f64, f64)> {
    let width = (end / COLUMNS as f64).max(f64::MIN_POSITIVE);
    let same_column = |a: &(f64, f64), b: &(f64, f64)| (a.0 / width).floor() == (b.0 / width).floor();
    let column = |samples: &[(f64, f64)]| {
        let mut values: Vec<f64> = samples.iter().map(|(_, us)| *us).collect();
        values.sort_by(f64::total_cmp);
        (samples[samples.len() / 2].0, values[values.len() / 2], values[values.len() - 1])
    };
    samples.chunk_by(same_column).map(column).collect()
}

/// Each message around the kill: when it was sent, and how long it took.
fn kill_plot(evidence: &Evidence) -> Option<String> {
    let kill = evidence.kill?;
    let back_ms = evidence.recovery_ns()? as f64 / NS_PER_MS;
    let (from, to) = (-AROUND_MS, back_ms + AROUND_MS);
    let points = evidence.entries.iter().map(|entry| {
        let at_ms = (entry.sent_ns as f64 - kill.at_ns as f64) / NS_PER_MS;
        (at_ms, entry.received_ns.saturating_sub(entry.sent_ns) as f64 / NS_PER_US, entry.incarnation)
    });
    let points: Vec<_> = points.filter(|(at, ..)| (from..to).contains(at)).collect();
    let of = |which: u32| points.iter().filter(|point| point.2 == which).map(|(x, y, _)| (*x, *y)).collect::<Vec<_>>();
    let largest = points.iter().map(|(_, us, _)| *us).fold(100.0, f64::max);
    let smallest = points.iter().map(|(_, us, _)| *us).fold(10.0, f64::min);
    let label = "milliseconds since the kill, when the message was sent";
    let x = Axis { scale: Scale::Linear, from, to, unit: Unit::Number, label };
    let y = time_axis(smallest.max(0.1) / 1.5, largest * 1.5, "one-way latency of each message");
    let mut plot = Plot::new("Latency of each message sent around the kill", x, y);
    plot.shade(0.0, back_ms);
    plot.dots("first", &of(1));
    plot.dots("second", &of(2));
    plot.mark("kill", 0.0, "SIGKILL", true);
    plot.mark("back", back_ms, "first message to the successor", false);
    Some(plot.finish())
}

/// Histogram of one-way latencies, on logarithmic axes.
fn latency_plot(evidence: &Evidence, steady: &Quantiles) -> Option<String> {
    let samples: Vec<f64> = evidence.latencies_ns(false).map(|ns| (ns as f64 / NS_PER_US).max(0.01)).collect();
    let waited: Vec<f64> = evidence.latencies_ns(true).map(|ns| (ns as f64 / NS_PER_US).max(0.01)).collect();
    let all = || samples.iter().chain(&waited).copied();
    let (smallest, largest) = (all().reduce(f64::min)?, all().reduce(f64::max)?);
    let (bars, waiting) = (histogram(&samples), histogram(&waited));
    let highest = bars.iter().chain(&waiting).map(|(.., count)| *count).fold(10.0, f64::max);
    let x = time_axis(smallest / 2.0, largest * 2.0, "one-way latency");
    let y = Axis { scale: Scale::Log, from: 0.7, to: highest * 2.0, unit: Unit::Number, label: "messages" };
    let mut plot = Plot::new("Histogram of one-way latency", x, y);
    plot.bars("first", &bars);
    // In front, because they are few.
    plot.bars("second", &waiting);
    plot.mark("quantile", steady.p50, &format!("p50 {}", time_text(steady.p50)), true);
    plot.mark("quantile", steady.p99, &format!("p99 {}", time_text(steady.p99)), false);
    Some(plot.finish())
}

/// Bars of a histogram whose buckets grow by a constant factor: from, to, count.
fn histogram(samples: &[f64]) -> Vec<(f64, f64, f64)> {
    let bucket = |us: f64| (us.log2() * BARS_PER_DOUBLING).floor() as i32;
    let edge = |bucket: i32| (f64::from(bucket) / BARS_PER_DOUBLING).exp2();
    let mut counts = std::collections::BTreeMap::new();
    samples.iter().for_each(|us| *counts.entry(bucket(*us)).or_insert(0.0) += 1.0);
    counts.into_iter().map(|(at, count)| (edge(at), edge(at + 1), count)).collect()
}

/// Speed of the stream over time.
fn stream_plot(evidence: &Evidence) -> Option<String> {
    let begin = begin_ns(evidence);
    let speed = |pair: &[super::storage::Progress]| {
        let elapsed_ns = (pair[1].at_ns - pair[0].at_ns).max(1) as f64;
        let at = (pair[1].at_ns as f64 - begin) / NS_PER_S;
        (at, (pair[1].bytes - pair[0].bytes) as f64 * NS_PER_S / 1e6 / elapsed_ns)
    };
    let points: Vec<(f64, f64)> = evidence.progress.windows(2).map(speed).filter(|(at, _)| *at >= 0.0).collect();
    let end = evidence.latenesses().last().map_or(1.0, |(at, _)| (at as f64 - begin) / NS_PER_S);
    let highest = points.iter().map(|(_, speed)| *speed).reduce(f64::max)?;
    let x = seconds_axis(end.max(points.last()?.0));
    let y = Axis { scale: Scale::Linear, from: 0.0, to: highest * 1.1, unit: Unit::Number, label: "stream, MB/s" };
    let mut plot = Plot::new("Speed of the stream over time", x, y);
    plot.area("third", &points.iter().map(|(at, speed)| (*at, 0.0, *speed)).collect::<Vec<_>>());
    plot.line("third", &points);
    mark_kill(&mut plot, evidence);
    Some(plot.finish())
}

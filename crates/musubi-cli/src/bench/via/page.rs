//! The report page: the paper's figures and tables with ours, the exchange beside floods, calls, and all requirements.
//!
//! How it works: plots are SVG ([`crate::plot`]), the page is a template (page.html) that needs nothing but itself.

use minijinja::value::{Serde, Value};
use minijinja::{AutoEscape, Environment, context};

use super::outcome::Outcome;
use super::paper::{PAPER, StatedValues};
use crate::bench::figures::Figure;
use crate::plot::{Axis, Plot, Scale, Unit, number_text, time_text};

const NS_PER_US: f64 = 1e3;
/// What stands in a table where nothing was measured.
const NOTHING: &str = "–";

/// The page.
///
/// # Errors
/// The template fails: our own bug.
pub(super) fn page(outcome: &Outcome) -> anyhow::Result<String> {
    let mut environment = Environment::new();
    environment.set_auto_escape_callback(|_| AutoEscape::Html);
    environment.add_filter("short", number_text);
    environment.add_filter("time_ns", |ns: f64| time_text(ns / NS_PER_US));
    environment.add_template("style", include_str!("../../report.css"))?;
    environment.add_template("report", include_str!("page.html"))?;
    let required = outcome.required.iter().filter(|rule| rule.met.is_some());
    let required: Vec<Value> = required.map(|rule| Value::from(rule.text())).collect();
    let of = |prefix: &str| Value::from(Serde(named(outcome, prefix)));
    Ok(environment.get_template("report")?.render(context! {
        outcome => Value::from(Serde(outcome)),
        began => humantime::format_rfc3339_seconds(std::time::SystemTime::now()).to_string(),
        all_met => outcome.all_met(),
        required,
        latency => latency(outcome).map(Value::from_safe_string),
        rate => rate(outcome).map(Value::from_safe_string),
        exchanges => exchanges(outcome),
        response => response(outcome).map(Value::from_safe_string),
        shares => of("vi_share_"),
        shares_of_paper => rows(outcome, &PAPER.shares_mb_per_s, |figure| number_text(figure.p50)),
        calls => of("vi_call_"),
        load => load(outcome).map(Value::from_safe_string),
    })?)
}

/// The figures whose names begin so.
fn named<'o>(outcome: &'o Outcome, prefix: &str) -> Vec<&'o Figure> {
    outcome.figures.all().filter(|figure| figure.name.starts_with(prefix)).collect()
}

fn find<'o>(outcome: &'o Outcome, name: &str) -> Option<&'o Figure> {
    outcome.figures.named(name).filter(|figure| figure.is_measured())
}

/// A table of the paper's with ours beside it.
fn rows(outcome: &Outcome, paper: &[StatedValues], text: impl Fn(&Figure) -> String) -> Vec<Value> {
    let ours = |row: &StatedValues| -> Vec<String> {
        row.here.iter().map(|name| find(outcome, name).map_or(NOTHING.to_owned(), &text)).collect()
    };
    let is_here = |row: &StatedValues| row.here.iter().any(|name| find(outcome, name).is_some());
    if !paper.iter().any(is_here) {
        return Vec::new();
    }
    paper.iter().map(|row| context! { of => row.of, values => row.values.to_vec(), ours => ours(row) }).collect()
}

/// Each condition's exchange: least, median, 99 %, 99.9 %, most, wake-ups a second, and what the flood carried.
fn exchanges(outcome: &Outcome) -> Vec<Value> {
    let row = |figure: &Figure| {
        let words = figure.name.strip_prefix("vi_exchange_").unwrap_or_default();
        let beside = |what: &str| {
            find(outcome, &format!("vi_{what}_{words}")).map_or(NOTHING.to_owned(), |figure| number_text(figure.p50))
        };
        context! { figure => Value::from(Serde(figure)), words, wakes => beside("wakes"), rate => beside("rate") }
    };
    named(outcome, "vi_exchange_").into_iter().map(row).collect()
}

/// Size and median of the figures whose names begin so.
fn curve(outcome: &Outcome, prefix: &str, unit: f64) -> Vec<(f64, f64)> {
    let size = |figure: &Figure| figure.name.strip_prefix(prefix)?.parse().ok();
    outcome.figures.all().filter_map(|figure| Some((size(figure)?, figure.p50 / unit))).collect()
}

/// The paper's table 2, over all sizes: one-way time.
fn latency(outcome: &Outcome) -> Option<String> {
    let lines = [
        ("shm-poll", curve(outcome, "vi_oneway_shm_poll_", NS_PER_US)),
        ("shm-block", curve(outcome, "vi_oneway_shm_block_", NS_PER_US)),
        ("tcp-poll", curve(outcome, "vi_oneway_tcp_poll_", NS_PER_US)),
        ("tcp-block", curve(outcome, "vi_oneway_tcp_block_", NS_PER_US)),
        ("limit-block", curve(outcome, "tcp_oneway_block_", NS_PER_US)),
    ];
    let paper: Vec<(f64, f64)> = PAPER.message_4_us.iter().flat_map(|row| row.values).map(|us| (4.0, *us)).collect();
    plot("One-way time of messages over their size", (Unit::Time, "one-way time"), &lines, &paper)
}

/// The paper's figure 2: throughput over size.
fn rate(outcome: &Outcome) -> Option<String> {
    let lines = [
        ("shm-poll", curve(outcome, "vi_rate_shm_", 1.0)),
        ("shm-block", curve(outcome, "vi_write_shm_", 1.0)),
        ("reads", curve(outcome, "vi_read_shm_", 1.0)),
        ("tcp-block", curve(outcome, "vi_rate_tcp_", 1.0)),
        ("limit-block", curve(outcome, "tcp_stream_", 1.0)),
    ];
    let title = "Throughput of VIs over the size of a message";
    plot(title, (Unit::Number, "MB/s"), &lines, &[(32_768.0, PAPER.peak_mb_per_s)])
}

/// The paper's figure 3: what receiving takes of a processor, over size.
fn load(outcome: &Outcome) -> Option<String> {
    let lines =
        [("tcp-block", curve(outcome, "vi_load_block_", 1.0)), ("shm-poll", curve(outcome, "vi_load_poll_", 1.0))];
    plot("Processor time while receiving, over the size of a message", (Unit::Number, "%"), &lines, &[])
}

/// The paper's figure 4: least, 99 % and most of the exchange, under each load; its own values beside ours.
fn response(outcome: &Outcome) -> Option<String> {
    let place = |load: usize, shift: f64| 2_f64.powf(load as f64 + shift);
    let spread = |row: &StatedValues, controlled: bool| -> Option<[f64; 3]> {
        let name = row.here.first()?;
        let name = if controlled { name.replace("_off", "_on") } else { (*name).to_owned() };
        find(outcome, &name).map(|figure| [figure.min, figure.p99, figure.max].map(|ns| ns / NS_PER_US))
    };
    let mut lines: Vec<(&str, Vec<(f64, f64)>)> = Vec::new();
    let mut paper = Vec::new();
    for (load, row) in PAPER.exchange_us.iter().enumerate() {
        for (class, shift, controlled) in [("tcp-block", 0.0, false), ("shm-poll", 0.25, true)] {
            let points = spread(row, controlled)?.map(|us| (place(load, shift), us));
            lines.push((class, points.to_vec()));
        }
        paper.extend(row.values.iter().map(|us| (place(load, -0.25), *us)));
    }
    let title = "The exchange under each load: least, 99 % and most";
    plot(title, (Unit::Time, "response time"), &lines, &paper)
}

/// Lines over sizes, both axes logarithmic; the paper's values as dots.
fn plot(
    title: &str,
    (unit, label): (Unit, &'static str),
    lines: &[(&str, Vec<(f64, f64)>)],
    paper: &[(f64, f64)],
) -> Option<String> {
    let ours = || lines.iter().flat_map(|(_, points)| points);
    ours().next()?;
    let all = || ours().chain(paper);
    let bounds = |of: fn(&(f64, f64)) -> f64| {
        (all().map(of).fold(f64::MAX, f64::min).max(1e-3), all().map(of).fold(f64::MIN, f64::max).max(1e-2))
    };
    let ((left, right), (low, high)) = (bounds(|point| point.0), bounds(|point| point.1));
    let x = Axis { scale: Scale::Log, from: left / 1.3, to: right * 1.3, unit: Unit::Number, label: "bytes" };
    let y = Axis { scale: Scale::Log, from: low / 1.5, to: high * 1.5, unit, label };
    let mut plot = Plot::new(title, x, y);
    for (class, points) in lines {
        plot.line(class, points);
        plot.dots(class, points);
    }
    plot.dots("paper", paper);
    Some(plot.finish())
}

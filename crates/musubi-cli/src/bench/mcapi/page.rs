//! The report page: the paper's two figures with ours, the urgent messages, and all requirements.
//!
//! How it works: plots are SVG ([`crate::plot`]), the page is a template (page.html) that needs nothing but itself. The
//! paper's values are those that its text states; its curves are not drawn, since they are not given as numbers.

use minijinja::value::{Serde, Value};
use minijinja::{AutoEscape, Environment, context};

use super::outcome::{Outcome, PAPER};
use crate::bench::figures::Figure;
use crate::bench::required::Requirement;
use crate::bench::run::Figures;
use crate::plot::{Axis, Plot, Scale, Unit, number_text, time_text};

const NS_PER_US: f64 = 1e3;

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
    let required: Vec<Value> = outcome.required.iter().map(row).collect();
    let urgent: Vec<&Figure> =
        outcome.two_cores.results.iter().filter(|figure| figure.name.starts_with("urgent_oneway")).collect();
    Ok(environment.get_template("report")?.render(context! {
        outcome => Value::from(Serde(outcome)),
        began => humantime::format_rfc3339_seconds(std::time::SystemTime::now()).to_string(),
        all_met => outcome.all_met(),
        required,
        urgent => Value::from(Serde(urgent)),
        latency => latency(outcome).map(Value::from_safe_string),
        rate => rate(&outcome.two_cores).map(Value::from_safe_string),
    })?)
}

fn row(requirement: &Requirement) -> Value {
    context! {
        text => requirement.text(),
        met => requirement.met,
    }
}

/// Size and median of the figures whose names begin so.
fn curve(figures: &Figures, prefix: &str, unit: f64) -> Vec<(f64, f64)> {
    let size = |figure: &Figure| figure.name.strip_prefix(prefix)?.parse().ok();
    let all = figures.limits.iter().chain(&figures.results);
    all.filter_map(|figure| Some((size(figure)?, figure.p50 / unit))).collect()
}

/// The paper's figure 1: one-way time over the size of the message.
fn latency(outcome: &Outcome) -> Option<String> {
    let (two, one) = (&outcome.two_cores, &outcome.one_core.figures);
    let lines = [
        ("shm-poll", curve(two, "msg_oneway_shm_poll_", NS_PER_US)),
        ("shm-block", curve(two, "msg_oneway_shm_block_", NS_PER_US)),
        ("tcp-poll", curve(two, "msg_oneway_tcp_poll_", NS_PER_US)),
        ("tcp-block", curve(two, "msg_oneway_tcp_block_", NS_PER_US)),
        ("limit-block", curve(two, "tcp_oneway_block_", NS_PER_US)),
        ("tcp-one-core", curve(one, "msg_oneway_tcp_block_", NS_PER_US)),
    ];
    let paper = [
        ("paper", PAPER.message_1_two_cores_us),
        ("paper", PAPER.message_1_one_core_us),
        ("paper-socket", PAPER.socket_1_us),
    ];
    let values = || lines.iter().flat_map(|(_, points)| points).map(|(_, y)| *y);
    let (smallest, largest) = (values().reduce(f64::min)?, values().fold(PAPER.message_1_one_core_us, f64::max));
    let y =
        Axis { scale: Scale::Log, from: smallest / 1.5, to: largest * 1.5, unit: Unit::Time, label: "one-way time" };
    let mut plot = Plot::new("One-way time of messages over their size", sizes(1.0, 65_536.0), y);
    for (class, points) in &lines {
        plot.line(class, points);
        plot.dots(class, points);
    }
    for (class, us) in paper {
        plot.dots(class, &[(1.0, us)]);
    }
    Some(plot.finish())
}

/// The paper's figure 2: throughput over the size of the packet.
fn rate(figures: &Figures) -> Option<String> {
    let lines = [
        ("shm-poll", curve(figures, "pkt_rate_shm_", 1.0)),
        ("tcp-block", curve(figures, "pkt_rate_tcp_", 1.0)),
        ("limit-block", curve(figures, "tcp_stream_", 1.0)),
        ("through-line", curve(figures, "pkt_rate_line_", 1.0)),
    ];
    let values = || lines.iter().flat_map(|(_, points)| points).map(|(_, y)| *y);
    let smallest = values().reduce(f64::min)?.min(PAPER.packet_32768_mb_per_s);
    let largest = values().fold(PAPER.packet_32768_mb_per_s, f64::max);
    let (from, to) = ((smallest / 1.5).max(0.01), largest * 1.5);
    let y = Axis { scale: Scale::Log, from, to, unit: Unit::Number, label: "MB/s" };
    let mut plot = Plot::new("Throughput of packet channels over the size of a packet", sizes(64.0, 1_048_576.0), y);
    for (class, points) in &lines {
        plot.line(class, points);
        plot.dots(class, points);
    }
    plot.dots("paper", &[(32_768.0, PAPER.packet_32768_mb_per_s)]);
    Some(plot.finish())
}

fn sizes(from: f64, to: f64) -> Axis {
    Axis { scale: Scale::Log, from: from / 1.3, to: to * 1.3, unit: Unit::Number, label: "bytes" }
}

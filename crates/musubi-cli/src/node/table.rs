//! The nodes for a person.

use anstyle::Style;
use indicatif::{HumanBytes, HumanCount};
use musubi_config::table::{Column, Table, wrapped};

use super::report::{Channel, Filtered, Node, Report};
use crate::table::{NONE, or_none};

const TITLE: Style = Style::new().bold();
/// Most channels that are shown; the busiest first.
const CHANNELS_MAX: usize = 40;

const NODES: &[Column] = &[
    Column::words("node", 0),
    Column::words("name", 0),
    Column::words("state", 0),
    Column::words("way", 1),
    Column::number("answers in", 2),
    Column::number("endpoints", 3),
    Column::number("channels", 4),
    Column::number("unread", 2),
    Column::number("linked with", 3),
    Column::number("woken", 5),
    Column::number("filtered", 6),
];
const BUSY: &[Column] = &[
    Column::words("node", 0),
    Column::words("name", 1),
    Column::words("state", 2),
    Column::number("answers in", 4),
    Column::number("messages out", 1),
    Column::number("messages in", 1),
    Column::number("items", 3),
    Column::number("data out", 0),
    Column::number("data in", 0),
    Column::number("unread", 3),
    Column::number("requests", 5),
    Column::number("woken", 6),
];
const ENDS: &[Column] = &[
    Column::words("end", 0),
    Column::words("", 1),
    Column::words("other end", 0),
    Column::words("kind", 3),
    Column::words("state", 2),
    Column::number("unread", 1),
    Column::number("items", 5),
    Column::number("bytes", 4),
    Column::number("items now", 3),
    Column::number("data now", 2),
];
const LINKS: &[Column] = &[
    Column::words("node", 0),
    Column::words("with", 0),
    Column::words("way", 1),
    Column::words("state", 0),
    Column::number("round trip", 3),
    Column::number("frames out", 5),
    Column::number("frames in", 5),
    Column::number("bytes out", 2),
    Column::number("bytes in", 2),
    Column::number("connections", 6),
    Column::number("resumed", 4),
    Column::number("cut", 1),
    Column::number("repeated", 7),
    Column::number("waited", 6),
];
const REFUSED: &[Column] = &[Column::words("node", 0), Column::words("refused", 0), Column::number("times", 0)];
const HAPPENED: &[Column] =
    &[Column::words("node", 0), Column::number("last", 1), Column::number("times", 2), Column::words("what", 0)];

/// `musubi node ls`: the nodes, and their ends of channels. This and the following for a terminal of so many characters a
/// line or, without a number, whole.
pub fn list(report: &Report, with_links: bool, width: Option<usize>) -> String {
    let mut table = Table::new(NODES);
    for node in &report.nodes {
        table.add_row([
            node.node.clone(),
            node.name.clone(),
            state(node),
            node.way.unwrap_or(NONE).to_owned(),
            or_none(node.rtt_ns.map(time)),
            or_none(node.endpoints.map(|count| count.to_string())),
            or_none(node.channels.map(|count| count.to_string())),
            or_none(node.depth.map(|depth| depth.to_string())),
            or_none(node.linked.map(|count| count.to_string())),
            or_none(node.woken.map(|count| HumanCount(count).to_string())),
            or_none(node.filtered.filter(|filtered| filtered.frames > 0).map(filtered)),
        ]);
    }
    let links = if with_links { links(report, width) } else { String::new() };
    heading(report) + &rows(&table, width) + &channels(report, width) + &links
}

/// `musubi node top`: how busy they are.
pub fn top(report: &Report, width: Option<usize>) -> String {
    let mut table = Table::new(BUSY);
    for node in &report.nodes {
        let rate = |of: f64| format!("{} /s", HumanCount(of.round() as u64));
        table.add_row([
            node.node.clone(),
            node.name.clone(),
            state(node),
            or_none(node.rtt_ns.map(time)),
            or_none(node.rates.map(|rates| rate(rates.messages_sent))),
            or_none(node.rates.map(|rates| rate(rates.messages_received))),
            or_none(node.rates.map(|rates| rate(rates.channel_items))),
            or_none(node.rates.map(|rates| data(rates.bytes_sent))),
            or_none(node.rates.map(|rates| data(rates.bytes_received))),
            or_none(node.depth.map(|depth| depth.to_string())),
            or_none(node.requests.map(|count| count.to_string())),
            or_none(node.rates.and_then(|rates| rates.woken).map(rate)),
        ]);
    }
    heading(report) + &rows(&table, width) + &channels(report, width)
}

/// The table, unless nothing is in it.
fn rows(table: &Table, width: Option<usize>) -> String {
    if table.is_empty() { String::new() } else { table.fitted(width) }
}

fn heading(report: &Report) -> String {
    let running = report.nodes.iter().filter(|node| node.running).count();
    let mut text =
        format!("{TITLE}System {}{TITLE:#}: {running} of {} nodes answer\n", report.system, report.nodes.len());
    if report.nodes.is_empty() {
        text.push_str("Nobody runs on this machine.\n");
    }
    text
}

fn channels(report: &Report, width: Option<usize>) -> String {
    if report.channels.is_empty() {
        return String::new();
    }
    let mut ends: Vec<&Channel> = report.channels.iter().collect();
    let busy = |channel: &Channel| channel.bytes_per_s.unwrap_or(0.0);
    ends.sort_by(|one, other| busy(other).total_cmp(&busy(one)));
    let mut table = Table::new(ENDS);
    for channel in ends.iter().take(CHANNELS_MAX) {
        table.add_row([
            channel.endpoint.clone(),
            channel.direction.to_owned(),
            channel.other.clone(),
            channel.kind.to_owned(),
            channel.state.to_owned(),
            channel.depth.to_string(),
            HumanCount(channel.items).to_string(),
            HumanBytes(channel.bytes).to_string(),
            or_none(channel.items_per_s.map(|rate| format!("{} /s", HumanCount(rate.round() as u64)))),
            or_none(channel.bytes_per_s.map(data)),
        ]);
    }
    let more = ends.len().saturating_sub(CHANNELS_MAX);
    let note = if more > 0 { format!("and {more} more, less busy; --json has all\n") } else { String::new() };
    format!("\n{TITLE}Ends of channels{TITLE:#}\n{}{}", table.fitted(width), wrapped(&note, width))
}

/// Links, who was refused, and what happened.
fn links(report: &Report, width: Option<usize>) -> String {
    let mut table = Table::new(LINKS);
    for link in &report.links {
        table.add_row([
            link.node.clone(),
            link.with.clone(),
            link.way.to_owned(),
            link.state.to_owned(),
            or_none(link.rtt_ns.map(time)),
            HumanCount(link.frames_sent).to_string(),
            HumanCount(link.frames_received).to_string(),
            HumanBytes(link.bytes_sent).to_string(),
            HumanBytes(link.bytes_received).to_string(),
            link.connections.to_string(),
            link.resumed.to_string(),
            link.cuts.to_string(),
            link.repeated.to_string(),
            or_none(link.waited.map(|count| HumanCount(count).to_string())),
        ]);
    }
    let none = if table.is_empty() { "None.\n" } else { "" };
    format!(
        "\n{TITLE}Links{TITLE:#}\n{}{none}{}{}",
        rows(&table, width),
        refusals(report, width),
        events(report, width)
    )
}

fn refusals(report: &Report, width: Option<usize>) -> String {
    let mut table = Table::new(REFUSED);
    for door in &report.doors {
        for (what, count) in door.refusals().filter(|(_, count)| *count > 0) {
            table.add_row([door.node.clone(), what.to_owned(), HumanCount(count).to_string()]);
        }
    }
    if table.is_empty() {
        return "Nobody was refused.\n".into();
    }
    format!("\n{TITLE}Refused{TITLE:#}\n{}", table.fitted(width))
}

fn events(report: &Report, width: Option<usize>) -> String {
    if report.events.is_empty() {
        return String::new();
    }
    let mut table = Table::new(HAPPENED);
    for event in &report.events {
        let ago = format!("{:.1} s ago", event.age_s);
        table.add_row([event.node.clone(), ago, HumanCount(event.times).to_string(), event.text.clone()]);
    }
    format!("\n{TITLE}What happened to connections{TITLE:#}\n{}", table.fitted(width))
}

fn state(node: &Node) -> String {
    match (node.running, node.incarnation) {
        (true, Some(_)) => "running",
        (true, None) => "running, no picture",
        (false, _) => "not reachable",
    }
    .to_owned()
}

/// Wake-ups of how many frames.
fn filtered(filtered: Filtered) -> String {
    format!("{} of {}", HumanCount(filtered.raised + filtered.deferred), HumanCount(filtered.frames))
}

fn data(bytes_per_s: f64) -> String {
    format!("{}/s", HumanBytes(bytes_per_s.round() as u64))
}

fn time(time_ns: u64) -> String {
    match time_ns {
        0..1_000_000 => format!("{:.1} us", time_ns as f64 / 1e3),
        _ => format!("{:.2} ms", time_ns as f64 / 1e6),
    }
}

#[cfg(test)]
mod tests {
    use super::super::links::{Event, Link};
    use super::super::report::Rates;
    use super::*;

    fn rates() -> Rates {
        Rates {
            messages_sent: 1_234_567.0,
            messages_received: 1_234_567.0,
            channel_items: 1_234_567.0,
            channel_bytes: 123_456_789.0,
            bytes_sent: 123_456_789.0,
            bytes_received: 123_456_789.0,
            woken: Some(7_654.4),
        }
    }

    fn busy() -> Report {
        let node = Node {
            node: "31:1016".into(),
            name: "controller".into(),
            running: true,
            way: Some("tcp"),
            rtt_ns: Some(123_456_789),
            incarnation: Some(1),
            endpoints: Some(1000),
            channels: Some(100),
            depth: Some(100_000),
            requests: Some(100),
            linked: Some(100),
            refused: Some(0),
            messages_dropped: Some(0),
            woken: Some(7_654_321),
            filtered: Some(Filtered { frames: 123_456, raised: 4000, deferred: 321 }),
            rates: Some(rates()),
        };
        let channel = Channel {
            node: "31:1016".into(),
            endpoint: "31:1016/123.45".into(),
            other: "31:1015/123.45".into(),
            kind: "packet",
            direction: "receives",
            state: "not connected",
            depth: 100,
            items: 123_456_789,
            bytes: 1 << 40,
            items_per_s: Some(1_234_567.0),
            bytes_per_s: Some(123_456_789.0),
        };
        let link = Link {
            node: "31:1016".into(),
            with: "31:1015".into(),
            way: "tls",
            state: "stands",
            rtt_ns: Some(123_456_789),
            frames_sent: 123_456_789,
            frames_received: 123_456_789,
            bytes_sent: 1 << 40,
            bytes_received: 1 << 40,
            connections: 100,
            resumed: 100,
            cuts: 100,
            repeated: 100,
            violations: 0,
            silences: 0,
            refused: 0,
            waited: Some(123_456),
        };
        let text =
            "connection from 10.0.0.8:12345 refused: has a certificate of another authority, not of node 31:1015";
        let event = Event { node: "31:1016".into(), age_s: 12.3, times: 100, text: text.into() };
        Report {
            system: "line".into(),
            nodes: vec![node],
            channels: vec![channel],
            links: vec![link],
            doors: vec![],
            events: vec![event],
        }
    }

    #[test]
    fn the_pictures_fit_terminals_of_every_width() {
        crate::screen::assert_fits(|width| list(&busy(), false, width));
        crate::screen::assert_fits(|width| list(&busy(), true, width));
        crate::screen::assert_fits(|width| top(&busy(), width));
        let narrow = top(&busy(), Some(80));
        assert!(["data out", "data in", "messages out"].iter().all(|word| narrow.contains(word)), "{narrow}");
    }

    #[test]
    fn how_often_a_node_was_woken_is_shown() {
        let table = list(&busy(), false, None);
        assert!(
            ["woken", "7,654,321", "filtered", "4,321 of 123,456"].iter().all(|word| table.contains(word)),
            "{table}"
        );
    }
    #[test]
    fn how_often_a_node_is_woken_a_second_is_shown() {
        let table = top(&busy(), None);
        assert!(["woken", "7,654 /s"].iter().all(|word| table.contains(word)), "{table}");
    }
}

//! The nodes for a person.

use anstyle::Style;
use comfy_table::Table;
use indicatif::{HumanBytes, HumanCount};

use super::report::{Channel, Node, Report};
use crate::table::{NONE, aligned, or_none};

const TITLE: Style = Style::new().bold();
/// Most channels that are shown; the busiest first.
const CHANNELS_MAX: usize = 40;

/// `musubi node ls`: the nodes, and their ends of channels.
pub fn list(report: &Report, with_links: bool) -> String {
    let headers = ["node", "name", "state", "way", "answers in", "endpoints", "channels", "unread", "linked with"];
    let mut table = aligned(&headers, &[4, 5, 6, 7, 8]);
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
        ]);
    }
    let links = if with_links { links(report) } else { String::new() };
    heading(report) + &rows(&table) + &channels(report) + &links
}

/// `musubi node top`: how busy they are.
pub fn top(report: &Report) -> String {
    let headers = ["node", "name", "state", "answers in", "messages out", "in", "items", "data", "unread", "requests"];
    let mut table = aligned(&headers, &[3, 4, 5, 6, 7, 8, 9]);
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
            or_none(node.rates.map(|rates| data(rates.channel_bytes))),
            or_none(node.depth.map(|depth| depth.to_string())),
            or_none(node.requests.map(|count| count.to_string())),
        ]);
    }
    heading(report) + &rows(&table) + &channels(report)
}

/// The table, unless nothing is in it.
fn rows(table: &Table) -> String {
    if table.is_empty() { String::new() } else { format!("{table}\n") }
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

fn channels(report: &Report) -> String {
    if report.channels.is_empty() {
        return String::new();
    }
    let mut ends: Vec<&Channel> = report.channels.iter().collect();
    let busy = |channel: &Channel| channel.bytes_per_s.unwrap_or(0.0);
    ends.sort_by(|one, other| busy(other).total_cmp(&busy(one)));
    let headers = ["end", "", "other end", "kind", "state", "unread", "items", "bytes", "items now", "data now"];
    let mut table = aligned(&headers, &[5, 6, 7, 8, 9]);
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
    format!("\n{TITLE}Ends of channels{TITLE:#}\n{table}\n{note}")
}

/// Links, who was refused, and what happened.
fn links(report: &Report) -> String {
    let headers = ["node", "with", "way", "state", "round trip", "frames out", "in", "bytes out", "in"];
    let more = ["connections", "resumed", "cut", "repeated"];
    let mut table = aligned(&[&headers[..], &more].concat(), &[4, 5, 6, 7, 8, 9, 10, 11, 12]);
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
        ]);
    }
    let none = if table.is_empty() { "None.\n" } else { "" };
    format!("\n{TITLE}Links{TITLE:#}\n{}{none}{}{}", rows(&table), refusals(report), events(report))
}

fn refusals(report: &Report) -> String {
    let mut table = aligned(&["node", "refused", "times"], &[2]);
    for door in &report.doors {
        for (what, count) in door.refusals().filter(|(_, count)| *count > 0) {
            table.add_row([door.node.clone(), what.to_owned(), HumanCount(count).to_string()]);
        }
    }
    if table.is_empty() { "Nobody was refused.\n".into() } else { format!("\n{TITLE}Refused{TITLE:#}\n{table}\n") }
}

fn events(report: &Report) -> String {
    if report.events.is_empty() {
        return String::new();
    }
    let mut table = aligned(&["node", "last", "times", "what"], &[1, 2]);
    for event in &report.events {
        let ago = format!("{:.1} s ago", event.age_s);
        table.add_row([event.node.clone(), ago, HumanCount(event.times).to_string(), event.text.clone()]);
    }
    format!("\n{TITLE}What happened to connections{TITLE:#}\n{table}\n")
}

fn state(node: &Node) -> String {
    match (node.running, node.incarnation) {
        (true, Some(_)) => "running",
        (true, None) => "running, no picture",
        (false, _) => "not reachable",
    }
    .to_owned()
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

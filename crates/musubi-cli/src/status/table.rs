//! A report for a person.

use anstyle::{AnsiColor, Style};
use comfy_table::Table;
use indicatif::{HumanBytes, HumanCount};

use super::report::{Fifo, Latency, Participant, Place, Receiver, Report, Sender, Smem, State, Traffic};
use crate::table::{NONE, aligned, or_none};

const TITLE: Style = Style::new().bold();
const WARNING: Style = AnsiColor::Yellow.on_default().bold();

/// The report as text with tables, with colours.
pub fn render(report: &Report<'_>) -> String {
    let mut text = format!("{TITLE}System {} (instance {}){TITLE:#}\n", report.system, report.instance);
    if report.participants.is_empty() {
        text.push_str("Nobody is attached.\n");
        return text;
    }
    let troubled = report.participants.iter().filter(|participant| participant.state != State::Running);
    troubled.for_each(|participant| text.push_str(&warning(participant)));
    text.push_str(&format!("\n{}\n", participants(&report.participants)));
    if !report.fifos.is_empty() {
        text.push_str(&format!("\n{TITLE}FIFO channels now{TITLE:#}\n{}\n", fifos(&report.fifos)));
        text.push_str(&format!(
            "\n{TITLE}FIFO channels since the holders of their ends attached{TITLE:#}\n{}\n",
            counts(&report.fifos)
        ));
    }
    if !report.smems.is_empty() {
        text.push_str(&format!("\n{TITLE}SMEM channels{TITLE:#}\n{}\n", smems(&report.smems)));
    }
    text
}

fn warning(participant: &Participant<'_>) -> String {
    let name = name(&participant.place);
    let pid = participant.pid;
    match participant.heartbeat_age_ms {
        Some(ms) => format!("{WARNING}stalled{WARNING:#}: {name}, process {pid}: no sign of life for {ms} ms\n"),
        None => format!("{WARNING}silent{WARNING:#}: {name}, process {pid}: there, but does not answer\n"),
    }
}

fn participants(participants: &[Participant<'_>]) -> Table {
    let mut table = aligned(&["participant", "process", "state", "heartbeat", "up", "epoch"], &[1, 3, 4, 5]);
    for participant in participants {
        table.add_row([
            name(&participant.place),
            participant.pid.to_string(),
            match participant.state {
                State::Running => "running",
                State::Stalled => "STALLED",
                State::Silent => "SILENT",
            }
            .to_owned(),
            or_none(participant.heartbeat_age_ms.map(|ms| format!("{ms} ms ago"))),
            or_none(participant.uptime_s.map(|s| format!("{s:.1} s"))),
            or_none(participant.epoch.map(|epoch| format!("{epoch:08x}"))),
        ]);
    }
    table
}

fn fifos(fifos: &[Fifo<'_>]) -> Table {
    let headers = ["channel", "sender", "receiver", "queued", "in use", "messages", "bytes", "p50", "p99", "max"];
    let mut table = aligned(&headers, &[3, 4, 5, 6, 7, 8, 9]);
    for fifo in fifos {
        let traffic = traffic(fifo);
        let latency = |of: fn(&Latency) -> u32| {
            or_none(fifo.receiver.as_ref().and_then(|rx| rx.latency.as_ref()).map(|latency| time(of(latency))))
        };
        let of_blocks = |count: u32| format!("{count}/{}", fifo.blocks);
        table.add_row([
            fifo.name.to_owned(),
            or_none(fifo.sender.as_ref().map(|sender| name(&sender.place))),
            or_none(fifo.receiver.as_ref().map(|receiver| name(&receiver.place))),
            or_none(fifo.depth.map(of_blocks)),
            or_none(fifo.sender.as_ref().map(|sender| of_blocks(sender.in_use))),
            or_none(traffic.and_then(|t| t.messages_per_s).map(|rate| format!("{}/s", HumanCount(rate as u64)))),
            or_none(traffic.and_then(|t| t.bytes_per_s).map(|rate| format!("{}/s", HumanBytes(rate as u64)))),
            latency(|latency| latency.p50_ns),
            latency(|latency| latency.p99_ns),
            latency(|latency| latency.max_ns),
        ]);
    }
    table
}

/// What passes through a channel, as the receiver counts it, or the sender where nobody receives.
fn traffic<'r>(fifo: &'r Fifo<'_>) -> Option<&'r Traffic> {
    let sent = fifo.sender.as_ref().map(|sender| &sender.traffic);
    fifo.receiver.as_ref().map(|receiver| &receiver.traffic).or(sent)
}

fn counts(fifos: &[Fifo<'_>]) -> Table {
    let headers = ["channel", "sent", "received", "most queued", "notifications", "throttled", "no block", "lost"];
    let mut table = aligned(&[&headers[..], &["refused", "over budget"]].concat(), &[1, 2, 3, 4, 5, 6, 7, 8, 9]);
    for fifo in fifos {
        let of_sender = |of: fn(&Sender<'_>) -> String| or_none(fifo.sender.as_ref().map(of));
        let of_receiver = |of: fn(&Receiver<'_>) -> String| or_none(fifo.receiver.as_ref().map(of));
        table.add_row([
            fifo.name.to_owned(),
            of_sender(|tx| HumanCount(tx.traffic.messages).to_string()),
            of_receiver(|rx| HumanCount(rx.traffic.messages).to_string()),
            of_sender(|tx| tx.high_water.to_string()),
            of_sender(|tx| format!("{} of {}", tx.raised, u64::from(tx.raised) + u64::from(tx.suppressed))),
            of_sender(|tx| tx.throttled.to_string()),
            of_sender(|tx| tx.exhausted.to_string()),
            of_sender(|tx| format!("{}+{}", tx.abandoned, tx.dropped)),
            format!("{}/{}", of_sender(|tx| tx.refused.to_string()), of_receiver(|rx| rx.refused.to_string())),
            of_receiver(|rx| rx.over_budget.to_string()),
        ]);
    }
    table
}

fn smems(smems: &[Smem<'_>]) -> Table {
    let mut table = aligned(&["channel", "domains", "locked by", "participant", "acquired", "refused"], &[4, 5]);
    for smem in smems {
        let lines = |of: &dyn Fn(usize) -> String| {
            let lines: Vec<String> = (0..smem.members.len()).map(of).collect();
            if lines.is_empty() { NONE.to_owned() } else { lines.join("\n") }
        };
        table.add_row([
            smem.name.to_owned(),
            smem.domains.join(", "),
            or_none(smem.holder.as_ref().map(name)),
            lines(&|member| name(&smem.members[member].place)),
            lines(&|member| smem.members[member].acquired.to_string()),
            lines(&|member| smem.members[member].refused.to_string()),
        ]);
    }
    table
}

fn name(place: &Place<'_>) -> String {
    format!("{}.{}", place.domain, place.slot)
}

/// A time with three digits or so.
fn time(ns: u32) -> String {
    match ns {
        0..1_000 => format!("{ns} ns"),
        1_000..1_000_000 => format!("{:.1} us", f64::from(ns) / 1e3),
        1_000_000..1_000_000_000 => format!("{:.1} ms", f64::from(ns) / 1e6),
        _ => format!("{:.2} s", f64::from(ns) / 1e9),
    }
}

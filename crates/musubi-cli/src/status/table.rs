//! A report for a person.

use anstyle::{AnsiColor, Style};
use indicatif::{HumanBytes, HumanCount};
use musubi_config::table::{Column, Table, wrapped};

use super::nic_table;
use super::report::{Fifo, Latency, Participant, Place, Receiver, Report, Sender, Smem, State, Traffic};
use crate::table::{NONE, or_none};

const TITLE: Style = Style::new().bold();
const WARNING: Style = AnsiColor::Yellow.on_default().bold();

const PARTICIPANTS: &[Column] = &[
    Column::words("participant", 0),
    Column::number("process", 1),
    Column::words("state", 0),
    Column::number("heartbeat", 2),
    Column::number("up", 2),
    Column::number("epoch", 3),
];
const NOW: &[Column] = &[
    Column::words("channel", 0),
    Column::words("sender", 3),
    Column::words("receiver", 3),
    Column::number("queued", 0),
    Column::number("in use", 2),
    Column::number("messages", 0),
    Column::number("bytes", 1),
    Column::number("p50", 5),
    Column::number("p99", 4),
    Column::number("max", 6),
];
const SINCE: &[Column] = &[
    Column::words("channel", 0),
    Column::number("sent", 0),
    Column::number("received", 0),
    Column::number("most queued", 3),
    Column::number("notifications", 5),
    Column::number("slept", 6),
    Column::number("throttled", 4),
    Column::number("no block", 3),
    Column::number("lost", 0),
    Column::number("refused", 1),
    Column::number("over budget", 2),
];
const SMEMS: &[Column] = &[
    Column::words("channel", 0),
    Column::words("domains", 2),
    Column::words("locked by", 0),
    Column::words("participant", 0),
    Column::number("acquired", 0),
    Column::number("refused", 1),
];

/// The report as text with tables, with colours; for a terminal of so many characters a line or, without a number, whole.
pub fn render(report: &Report<'_>, width: Option<usize>) -> String {
    let mut text = format!("{TITLE}System {} (instance {}){TITLE:#}\n", report.system, report.instance);
    if report.participants.is_empty() && report.nics.is_empty() {
        text.push_str("Nobody is attached.\n");
        return text;
    }
    if !report.participants.is_empty() {
        text.push_str(&of_channels(report, width));
    }
    if !report.nics.is_empty() {
        text.push_str(&format!(
            "\n{TITLE}NICs of the VI Architecture{TITLE:#}\n{}",
            nic_table::nics(&report.nics).fitted(width)
        ));
        let classes = nic_table::classes(&report.nics);
        if !classes.is_empty() {
            text.push_str(&format!(
                "\n{TITLE}Their classes since they were opened{TITLE:#}\n{}",
                classes.fitted(width)
            ));
        }
    }
    text
}

/// Participants and their channels.
fn of_channels(report: &Report<'_>, width: Option<usize>) -> String {
    let mut text = String::new();
    let troubled = report.participants.iter().filter(|participant| participant.state != State::Running);
    troubled.for_each(|participant| text.push_str(&wrapped(&warning(participant), width)));
    text.push_str(&format!("\n{}", participants(&report.participants).fitted(width)));
    if !report.fifos.is_empty() {
        text.push_str(&format!("\n{TITLE}FIFO channels now{TITLE:#}\n{}", fifos(&report.fifos).fitted(width)));
        text.push_str(&format!(
            "\n{TITLE}FIFO channels since the holders of their ends attached{TITLE:#}\n{}",
            counts(&report.fifos).fitted(width)
        ));
    }
    if !report.smems.is_empty() {
        text.push_str(&format!("\n{TITLE}SMEM channels{TITLE:#}\n{}", smems(&report.smems).fitted(width)));
    }
    text
}

fn warning(participant: &Participant<'_>) -> String {
    let name = name(&participant.place);
    let pid = process(participant.pid);
    if let Some(refusal) = &participant.refusal {
        return format!("{WARNING}refused{WARNING:#}: {name}, {pid}: {refusal}\n");
    }
    match participant.heartbeat_age_ms {
        Some(ms) => format!("{WARNING}stalled{WARNING:#}: {name}, {pid}: no sign of life for {ms} ms\n"),
        None => format!("{WARNING}silent{WARNING:#}: {name}, {pid}: there, but does not answer\n"),
    }
}

/// A process in words; there is none with the number 0.
fn process(pid: i32) -> String {
    if pid == 0 { "process not known".to_owned() } else { format!("process {pid}") }
}

/// A process's number as a cell of the table.
fn pid_cell(pid: i32) -> String {
    if pid == 0 { "-".to_owned() } else { pid.to_string() }
}

fn participants(participants: &[Participant<'_>]) -> Table {
    let mut table = Table::new(PARTICIPANTS);
    for participant in participants {
        table.add_row([
            name(&participant.place),
            pid_cell(participant.pid),
            match participant.state {
                State::Running => "running",
                State::Stalled => "STALLED",
                State::Silent => "SILENT",
                State::Refused => "REFUSED",
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
    let mut table = Table::new(NOW);
    for fifo in fifos {
        let traffic = traffic(fifo);
        let latency = |of: fn(&Latency) -> u32| {
            or_none(
                fifo.receiver.as_ref().and_then(|rx| rx.latency.as_ref()).map(|latency| time(u64::from(of(latency)))),
            )
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
    let mut table = Table::new(SINCE);
    for fifo in fifos {
        let of_sender = |of: fn(&Sender<'_>) -> String| or_none(fifo.sender.as_ref().map(of));
        let of_receiver = |of: fn(&Receiver<'_>) -> String| or_none(fifo.receiver.as_ref().map(of));
        table.add_row([
            fifo.name.to_owned(),
            of_sender(|tx| HumanCount(tx.traffic.messages).to_string()),
            of_receiver(|rx| HumanCount(rx.traffic.messages).to_string()),
            of_sender(|tx| tx.high_water.to_string()),
            of_sender(|tx| format!("{} of {}", tx.raised, u64::from(tx.raised) + u64::from(tx.suppressed))),
            of_receiver(|rx| HumanCount(u64::from(rx.slept)).to_string()),
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
    let mut table = Table::new(SMEMS);
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
pub fn time(ns: u64) -> String {
    match ns {
        0..1_000 => format!("{ns} ns"),
        1_000..1_000_000 => format!("{:.1} us", ns as f64 / 1e3),
        1_000_000..1_000_000_000 => format!("{:.1} ms", ns as f64 / 1e6),
        _ => format!("{:.2} s", ns as f64 / 1e9),
    }
}

#[cfg(test)]
mod tests {
    use super::super::nics::{Budgets, Class, Nic, NicState, Notifications, Vis};
    use super::super::report::Member;
    use super::*;

    fn place(domain: &str) -> Place<'_> {
        Place { participant: 1, domain, slot: 0 }
    }

    fn traffic() -> Traffic {
        Traffic {
            messages: 4_000_000_000,
            bytes: 1 << 40,
            messages_per_s: Some(1_234_567.0),
            bytes_per_s: Some(f64::from(u32::MAX)),
        }
    }

    fn busy_nic() -> Nic {
        let many = Notifications {
            asked: 3_000_000_000,
            raised: 1_000_000_000,
            suppressed: 1_999_000_000,
            deferred: 1_000_000,
            longest_deferral_ns: 123_456_789,
        };
        let class = Class {
            class: 3,
            vis: 16,
            posted: u64::MAX,
            completed: u64::MAX,
            flushed: 1024,
            rule: Some(many),
            policies: Some(many),
            budgets: Some(Budgets { taken: 1_000_000, over_budget: 7, longest_ns: 9_000_000 }),
            held: 12_345,
            held_ns: u64::MAX,
            uncredited: 1_234_567,
            uncredited_bytes: u64::MAX,
            beyond: 3,
            handled: 5,
            handled_ns: 5_432,
        };
        Nic {
            name: "gateway".to_owned(),
            number: 1,
            process: 0,
            state: NicState::Running,
            vis: Some(Vis { count: 16, connected: 12, pending: 1, in_error: 3 }),
            completion_queues: Some(2),
            connections: Some(1_000_000),
            lost: Some(3),
            refused: Some(1),
            woken: Some(u64::MAX),
            classes: vec![class],
        }
    }

    fn busy() -> Report<'static> {
        let sender = Sender {
            place: place("controller"),
            in_use: 16,
            high_water: 16,
            traffic: traffic(),
            raised: 1_000_000,
            suppressed: 1_000_000,
            throttled: 100_000,
            exhausted: 100_000,
            abandoned: 3,
            dropped: 2,
            refused: 0,
        };
        let latency = Latency { samples: 100, p50_ns: 188, p99_ns: 12_345, max_ns: 123_456_789 };
        let receiver = Receiver {
            place: place("gateway"),
            held: 1,
            traffic: traffic(),
            slept: 54_321,
            refused: 0,
            over_budget: 7,
            latency: Some(latency),
        };
        Report {
            system: "press",
            instance: "default",
            plan_hash: String::new(),
            interval_s: 0.5,
            participants: vec![Participant {
                place: place("controller"),
                pid: 123_456,
                state: State::Stalled,
                epoch: Some(0xdead_beef),
                heartbeat_age_ms: Some(12_345),
                uptime_s: Some(123_456.7),
                refusal: None,
            }],
            fifos: vec![Fifo {
                name: "telemetry-of-the-press",
                number: 0,
                from: "controller",
                to: "gateway",
                blocks: 16,
                block_bytes: 64,
                depth: Some(16),
                sender: Some(sender),
                receiver: Some(receiver),
            }],
            smems: vec![Smem {
                name: "parameters",
                number: 0,
                bytes: 256,
                domains: vec!["controller", "gateway", "storage"],
                lock: "bakery".into(),
                holder: Some(place("gateway")),
                members: vec![Member { place: place("gateway"), acquired: 1_000_000, refused: 3 }],
            }],
            nics: vec![busy_nic()],
        }
    }

    #[test]
    fn the_report_fits_terminals_of_every_width() {
        crate::screen::assert_fits(|width| render(&busy(), width));
        let narrow = render(&busy(), Some(80));
        assert!(["queued", "messages", "received", "lost"].iter().all(|word| narrow.contains(word)), "{narrow}");
    }

    #[test]
    fn nics_are_shown_though_nobody_is_attached_and_lie_as_they_like() {
        let mut report = busy();
        report.participants.clear();
        let table = render(&report, None);
        let parts = [
            "NICs of the VI Architecture",
            "gateway.0",
            "2,000,000,000",
            "3,998,000,000",
            "123.5 ms",
            "7 of 1,000,000",
            "12,345, ",
            "5, 5.4 us",
        ];
        assert!(parts.iter().all(|part| table.contains(part)) && !table.contains("Nobody"), "{table}");
        report.nics[0].classes[0].rule.as_mut().unwrap().raised = u64::MAX;
        assert!(render(&report, None).contains("18,446,744,073,709,551,615"));
    }

    /// Notifications that were raised, of all that were asked for, and how often the receiver slept and was woken.
    #[test]
    fn how_often_an_end_was_woken_is_shown() {
        let table = render(&busy(), None);
        assert!(
            ["notifications", "1000000 of 2000000", "slept", "54,321"].iter().all(|word| table.contains(word)),
            "{table}"
        );
    }

    #[test]
    fn a_process_that_is_not_known_has_no_number() {
        let mut report = busy();
        report.participants[0].pid = 0;
        let table = render(&report, None);
        let row = table.lines().find(|line| line.contains("STALLED")).unwrap();
        let has = |wanted: &str| row.split_whitespace().any(|cell| cell == wanted);
        assert!(has("-") && !has("0"), "{table}");
    }
}

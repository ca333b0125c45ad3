//! Many to one over messages: nodes 2, 3 and 4 report, node 1 keeps the log. Alarms overtake what else is queued.
//!
//! `logger` runs all four as threads, `logger --node N` one of them; with `MUSUBI_SYSTEM` it runs on the machines of that
//! system. Messages need no connection; who sends to a log that is full waits, and disturbs nobody else.
#![forbid(unsafe_code)]

use std::collections::BTreeMap;

use musubi_examples::{run, soon};
use musubi_mcapi::{Error, Node};

/// Where the log is.
const LOG: u32 = 1;
/// Nodes that report.
const REPORTERS: usize = 3;
/// Lines of each.
const LINES: u32 = 200;
/// Every line of this number is an alarm.
const ALARM_EVERY: u32 = 50;
/// Priorities: 0 is the most urgent.
const ALARM: u32 = 0;
const NORMAL: u32 = 2;
/// The last line of a reporter. As it is of normal priority, no line comes after it.
const END: &str = "end";

fn main() -> Result<(), Box<dyn std::error::Error>> {
    run(&[keep_log, report, report, report])
}

#[derive(Default)]
struct Account {
    lines: u32,
    alarms: u32,
}

fn keep_log(node: &Node) -> Result<(), Error> {
    let log = node.create_endpoint(Some(LOG))?;
    let mut accounts = BTreeMap::<u32, Account>::new();
    let mut ended = 0;
    while ended < REPORTERS {
        let message = log.receive(soon())?;
        let account = accounts.entry(message.from().node().node()).or_default();
        match String::from_utf8_lossy(&message.to_vec()).as_ref() {
            END => ended += 1,
            _ => account.lines += 1,
        }
        account.alarms += u32::from(u32::from(message.priority()) == ALARM);
    }
    for (reporter, Account { lines, alarms }) in accounts {
        println!("node {reporter}: {lines} lines, {alarms} of them alarms");
    }
    Ok(())
}

fn report(node: &Node) -> Result<(), Error> {
    let from = node.create_endpoint(None)?;
    let log = node.get_endpoint((0, 1), LOG, soon())?;
    for number in 1..=LINES {
        let (priority, word) = if number % ALARM_EVERY == 0 { (ALARM, "alarm") } else { (NORMAL, "line") };
        from.send(&log, priority, format!("{word} {number} of node {}", node.id()).as_bytes(), soon())?;
    }
    // Sent means that the log's node has it: now this node may end.
    from.send(&log, NORMAL, END.as_bytes(), soon())
}

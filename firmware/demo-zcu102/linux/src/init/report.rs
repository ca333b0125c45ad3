//! What the demo prints at its end: figures, and a line for each thing that must hold.

use musubi_testsuite_nodes::CASES_WITHIN_A_LIFE;
use musubi_testsuite_vis::CASES_WITHIN_A_LIFE as CASES_OF_VIS;
use zcu102_exchange::Tally;
use zcu102_linux::{EXCHANGED_LIVES, Survived};

use crate::account::{self, Messages};
use crate::lateness;
use crate::script::Evidence;

/// Whole passes that there must be: one of the first process, and of the second one before and after the Master's crash.
const WHOLE_PASSES_MIN: usize = 3;

/// Something that must hold.
struct Check {
    what: &'static str,
    holds: bool,
    detail: String,
}

/// Prints it all; the last line is `N passed, M failed`.
pub fn print(evidence: &Evidence) {
    for (phase, late) in lateness::phases(evidence) {
        println!(
            "loop late by (us) {phase:<27} p50 {:>8.1}  p99 {:>8.1}  max {:>8.1}  in {} periods",
            late.p50, late.p99, late.max, late.n
        );
    }
    let checks = checks(evidence);
    for Check { what, holds, detail } in &checks {
        println!("{} {what}: {detail}", if *holds { "ok    " } else { "FAILED" });
    }
    let failed = checks.iter().filter(|check| !check.holds).count();
    println!("{} passed, {failed} failed", checks.len() - failed);
}

fn checks(evidence: &Evidence) -> Vec<Check> {
    let (telemetry, stream) = (account::telemetry(evidence), account::stream(evidence));
    let (whole, equal) = account::digests(&evidence.answered);
    let (killed, followed) = evidence.absence;
    let [former, successor] = evidence.masters;
    let [first, second] = evidence.remotes;
    vec![
        messages("telemetry, Cortex-R5F to Linux", &telemetry, 1),
        messages("stream, Linux to Cortex-R5F", &stream, 0),
        Check {
            what: "digests of the file",
            holds: whole >= WHOLE_PASSES_MIN && whole == equal,
            detail: format!("{whole} whole passes, {equal} digests equal"),
        },
        Check {
            what: "killed in the middle of a pass",
            holds: evidence.sent_into_pass > 0 && first.epoch != second.epoch,
            detail: format!(
                "{} blocks into it; incarnations {:#x}, {:#x}",
                evidence.sent_into_pass, first.epoch, second.epoch
            ),
        },
        Check {
            what: "the loop went on while no process was there",
            holds: followed > killed,
            detail: format!("{} periods", followed - killed),
        },
        Check {
            what: "the Cortex-R5F restarted, Linux did not",
            holds: former.epoch != successor.epoch && stream.dropped > 0,
            detail: format!(
                "incarnations {:#x}, {:#x}; {} stale messages dropped",
                former.epoch, successor.epoch, stream.dropped
            ),
        },
        parameters(evidence),
        Check {
            what: "MCAPI, a process is killed in the middle of its questions",
            holds: evidence.nodes.echoed > 0,
            detail: format!("{} echoes, all right", evidence.nodes.echoed),
        },
        Check {
            what: "MCAPI, its successor: messages, packets and scalars, both ways",
            holds: evidence.nodes.passed == [CASES_WITHIN_A_LIFE as u8; 2],
            detail: format!("{:?} of {CASES_WITHIN_A_LIFE} cases on Linux and the Cortex-R5F", evidence.nodes.passed),
        },
        exchanged(&evidence.nodes.exchanged),
        killed_in_a_stream(&evidence.survived),
        Check {
            what: "VIs, its successor: connections, messages, RDMA and trespasses, both ways",
            holds: [evidence.survived.passed_here, evidence.survived.passed_there] == [CASES_OF_VIS as u32; 2],
            detail: format!(
                "{} and {} of {CASES_OF_VIS} cases on Linux and the Cortex-R5F",
                evidence.survived.passed_here, evidence.survived.passed_there
            ),
        },
    ]
}

/// Nothing that had completed at a killed process was lost, and nothing of its peer's stayed away.
fn killed_in_a_stream(survived: &Survived) -> Check {
    let Survived { completed, received, flushed, lost, stray, .. } = *survived;
    Check {
        what: "VIs, a process is killed in the middle of its stream at both reliable levels",
        holds: completed > 0 && flushed > 0 && (lost, stray) == (0, 0),
        detail: format!(
            "{completed} sends completed, {received} received, {lost} lost; {flushed} descriptors of the Cortex-R5F flushed in order, {stray} stray"
        ),
    }
}

/// Both nodes in C received all as it was sent, in each life.
fn exchanged(tallies: &[Tally]) -> Check {
    let whole = tallies.iter().filter(|tally| **tally == Tally::WHOLE).count();
    let failed = tallies.iter().find(|tally| tally.failed_at != 0);
    Check {
        what: "MCAPI in C, both ways, two lives of each node",
        holds: whole == tallies.len() && whole == 2 * EXCHANGED_LIVES as usize,
        detail: match failed {
            Some(Tally { failed_at, status, .. }) => format!("line {failed_at} of exchange.c, status {status}"),
            None => format!(
                "{whole} times {} messages, {} packets, {} scalars as they were sent, and one by way of a second task",
                Tally::WHOLE.messages,
                Tally::WHOLE.packets,
                Tally::WHOLE.scalars
            ),
        },
    }
}

fn messages(what: &'static str, all: &Messages, in_hand_max: u64) -> Check {
    Check {
        what,
        holds: all.received > 0
            && (all.lost, all.duplicated, all.out_of_order) == (0, 0, 0)
            && all.in_hand <= in_hand_max,
        detail: format!(
            "{} sent, {} received, {} in a dead receiver's hands, {} dropped by the plan; {} lost, {} duplicated, {} out of order",
            all.sent, all.received, all.in_hand, all.dropped, all.lost, all.duplicated, all.out_of_order
        ),
    }
}

/// Each Remote changed the parameters, and telemetry shows that both incarnations of the Master worked with them.
fn parameters(evidence: &Evidence) -> Check {
    let generations = evidence.masters.map(|master| {
        let of_master = evidence.received.iter().filter(|record| record.telemetry.incarnation == master.epoch);
        of_master.map(|record| record.telemetry.generation).max().unwrap_or(0)
    });
    Check {
        what: "parameters through shared memory",
        holds: generations[0] > 0 && generations[1] > generations[0],
        detail: format!("generations {} and, after the restart, {}", generations[0], generations[1]),
    }
}

//! The NICs of a report, for a person.

use indicatif::HumanCount;
use musubi_config::table::{Column, Table};

use super::nics::{Class, Nic, NicState, Notifications};
use super::table::time;
use crate::table::or_none;

const NICS: &[Column] = &[
    Column::words("NIC", 0),
    Column::words("state", 0),
    Column::number("VIs", 0),
    Column::number("connected", 0),
    Column::number("in error", 1),
    Column::number("connections", 2),
    Column::number("lost", 2),
    Column::number("woken", 1),
    Column::number("refused", 3),
];
const CLASSES: &[Column] = &[
    Column::words("NIC", 0),
    Column::number("class", 0),
    Column::number("VIs", 5),
    Column::number("posted", 2),
    Column::number("completed", 0),
    Column::number("flushed", 3),
    Column::number("raised", 0),
    Column::number("suppressed", 1),
    Column::number("deferred", 1),
    Column::number("by at most", 2),
    Column::number("over budget", 2),
    Column::number("held by rates", 3),
    Column::number("without credit", 3),
    Column::number("in handlers", 4),
];

/// The NICs, and their state.
pub fn nics(nics: &[Nic]) -> Table {
    let mut table = Table::new(NICS);
    for nic in nics {
        let count = |value: Option<u64>| or_none(value.map(|value| HumanCount(value).to_string()));
        table.add_row([
            name(nic),
            if nic.state == NicState::Running { "running" } else { "SILENT" }.to_owned(),
            count(nic.vis.map(|vis| vis.count)),
            count(nic.vis.map(|vis| vis.connected)),
            count(nic.vis.map(|vis| vis.in_error)),
            count(nic.connections),
            count(nic.lost),
            count(nic.woken),
            count(nic.refused),
        ]);
    }
    table
}

/// Their classes that did anything.
pub fn classes(nics: &[Nic]) -> Table {
    let mut table = Table::new(CLASSES);
    for nic in nics {
        for class in nic.classes.iter().filter(|class| class.is_used()) {
            let count = |value: u64| HumanCount(value).to_string();
            let both: Vec<Notifications> = class.rule.into_iter().chain(class.policies).collect();
            let sum = |of: fn(&Notifications) -> u64| {
                or_none((!both.is_empty()).then(|| count(both.iter().map(of).fold(0, u64::saturating_add))))
            };
            let longest = both.iter().map(|one| one.longest_deferral_ns).max();
            table.add_row([
                name(nic),
                class.class.to_string(),
                count(class.vis),
                count(class.posted),
                count(class.completed),
                count(class.flushed),
                sum(|one| one.raised),
                sum(|one| one.suppressed),
                sum(|one| one.deferred),
                or_none(longest.map(time)),
                or_none(class.budgets.map(|of| format!("{} of {}", count(of.over_budget), count(of.taken)))),
                or_none((class.held > 0).then(|| format!("{}, {}", count(class.held), time(class.held_ns)))),
                or_none((class.uncredited > 0).then(|| count(class.uncredited))),
                or_none((class.handled > 0).then(|| format!("{}, {}", count(class.handled), time(class.handled_ns)))),
            ]);
        }
    }
    table
}

impl Class {
    fn is_used(&self) -> bool {
        self.vis > 0 || self.posted > 0 || self.rule.is_some()
    }
}

fn name(nic: &Nic) -> String {
    format!("{}.{}", nic.name, nic.process)
}

//! A description written back as TOML, with every default spelled out.
//!
//! What you may rely on: `parse(print(x))` is `x`, the hash included.

use std::fmt::Write;

use musubi_core::plan::{Doorbell, FilterRule, Level, LockKind, Regulation};
use musubi_transport::topology::{Network, Place, Topology};
use musubi_transport::{NodeId, Priority};

use crate::Description;
use crate::description::{DomainEntry, FifoEntry, SmemEntry};
use crate::grammar::{PORTS, RESTARTS, ROLES, TRUSTS};
use crate::network::written;
use crate::nics::NIC_TRUSTS;
use crate::nics::Nics;
use crate::quantity::{BYTE_RATE, MESSAGE_RATE, SIZE, TIME};

/// The description as TOML.
pub fn print(description: &Description) -> String {
    let mut out = String::new();
    line(&mut out, "[system]");
    text(&mut out, "name", &description.name);
    if let Some(map) = description.address_map {
        line(&mut out, &format!("base = {:#x}", map.base));
        text(&mut out, "size", &SIZE.write(map.bytes));
    }
    line(&mut out, &format!("cells = {}", description.cells));
    line(&mut out, "\n[liveness]");
    text(&mut out, "heartbeat", &TIME.write(description.liveness.heartbeat_ns));
    text(&mut out, "stalled", &TIME.write(description.liveness.stalled_ns));
    description.domains.iter().for_each(|entry| domain(&mut out, entry));
    description.fifos.iter().for_each(|entry| fifo(&mut out, entry, &description.domains));
    description.smems.iter().for_each(|entry| smem(&mut out, entry, &description.domains));
    nodes(&mut out, &description.topology, &description.nics);
    out
}

fn nodes(out: &mut String, topology: &Topology, nics: &Nics) {
    if topology.nodes.is_empty() && nics.entries.is_empty() && topology.network == Network::default() {
        return;
    }
    network(out, &topology.network);
    for (id, place) in &topology.nodes {
        line(out, "\n[[node]]");
        line(out, &format!("domain = {}", id.domain()));
        line(out, &format!("node = {}", id.node()));
        if !place.name.is_empty() {
            text(out, "name", &place.name);
        }
        where_and_rules(out, "node", place);
    }
    for (number, entry) in (0u16..).zip(&nics.entries) {
        line(out, "\n[[nic]]");
        text(out, "name", &entry.name);
        line(out, &format!("processes = {}", entry.processes));
        if entry.is_trusted {
            text(out, "trust", word(NIC_TRUSTS, true));
        }
        // The others are at the ports behind it.
        if let Some(first) = NodeId::of_slot(number, 0).and_then(|node| nics.topology.nodes.get(&node)) {
            where_and_rules(out, "nic", first);
        }
    }
}

fn where_and_rules(out: &mut String, table: &str, place: &Place) {
    let shared = place.shared_memory.iter().map(|_| "\"shm\"".to_owned());
    let tcp = place.tcp.iter().map(|address| format!("\"tcp://{address}\""));
    line(out, &format!("at = [{}]", shared.chain(tcp).collect::<Vec<_>>().join(", ")));
    if let Some(machine) = place.shared_memory.as_ref().filter(|machine| !machine.is_empty()) {
        text(out, "machine", machine);
    }
    path(out, "certificate", &place.certificate);
    path(out, "key", &place.key);
    for rule in &place.rules {
        line(out, &format!("\n[[{table}.rule]]"));
        line(out, &format!("class = {}", rule.class.class()));
        if rule.class != Priority::MOST_URGENT {
            filter(out, &rule.filter, &[]);
        }
        regulation(out, &rule.regulation);
        if let Some(intake) = place.intakes.iter().find(|intake| intake.class == rule.class) {
            bounds(out, "intake", &intake.regulation);
        }
    }
}

fn network(out: &mut String, network: &Network) {
    line(out, "\n[network]");
    line(out, &format!("insecure = {}", network.insecure));
    line(out, &format!("tls_on_loopback = {}", network.tls_on_loopback));
    path(out, "keys", &network.keys);
    text(out, "heartbeat", &written(network.heartbeat_ms));
    text(out, "silence", &written(network.silence_ms));
    text(out, "resume", &written(network.resume_ms));
    text(out, "piece", &SIZE.write(u64::from(network.piece_bytes)));
    text(out, "window", &SIZE.write(u64::from(network.window_bytes)));
    line(out, &format!("priorities = {}", network.priorities));
}

/// A path, whose quotes and backslashes need escapes; it has no control characters.
fn path(out: &mut String, key: &str, path: &Option<String>) {
    if let Some(path) = path {
        text(out, key, &path.replace('\\', "\\\\").replace('"', "\\\""));
    }
}

fn domain(out: &mut String, entry: &DomainEntry) {
    line(out, "\n[[domain]]");
    text(out, "name", &entry.name);
    text(out, "role", word(ROLES, entry.role));
    text(out, "port", word(PORTS, entry.port));
    text(out, "trust", word(TRUSTS, entry.trust));
    line(out, &format!("participants = {}", entry.participants));
    line(out, &format!("uid = {:?}", entry.uids));
    line(out, &format!("gid = {:?}", entry.gids));
    text(out, "spin", &TIME.write(u64::from(entry.spin_ns)));
    if let Some(Doorbell { interrupt, register, value, level }) = entry.doorbell {
        let level = level.map_or_else(String::new, |Level { acknowledge, unmask, value }| {
            format!(", level = {{ acknowledge = {acknowledge:#x}, unmask = {unmask:#x}, value = {value:#x} }}")
        });
        let bell = format!("interrupt = {interrupt}, register = {register:#x}, value = {value:#x}{level}");
        line(out, &format!("doorbell = {{ {bell} }}"));
    }
}

fn fifo(out: &mut String, entry: &FifoEntry, domains: &[DomainEntry]) {
    line(out, "\n[[fifo]]");
    text(out, "name", &entry.name);
    text(out, "from", &domains[usize::from(entry.from)].name);
    text(out, "to", &domains[usize::from(entry.to)].name);
    line(out, &format!("blocks = {}", entry.blocks));
    text(out, "block_size", &SIZE.write(u64::from(entry.block_bytes)));
    line(out, &format!("priority = {}", entry.priority));
    filter(out, &entry.filter, &[format!("level = {}", entry.filter.level)]);
    regulation(out, &entry.regulation);
    if entry.budget_ns > 0 {
        text(out, "budget", &TIME.write(u64::from(entry.budget_ns)));
    }
    text(out, "on_receiver_restart", word(RESTARTS, entry.on_restart));
    line(out, &format!("sample_every = {}", entry.sample_every));
}

/// `more` are keys that not all filters have.
fn filter(out: &mut String, rule: &FilterRule, more: &[String]) {
    let mut keys = vec![format!("every = {}", rule.every)];
    keys.extend_from_slice(more);
    if rule.interval_ns_min > 0 {
        keys.push(format!("interval = \"{}\"", TIME.write(rule.interval_ns_min)));
    }
    keys.push(format!("latest = \"{}\"", TIME.write(rule.latest_ns)));
    line(out, &format!("filter = {{ {} }}", keys.join(", ")));
}

fn regulation(out: &mut String, of: &Regulation) {
    bounds(out, "regulation", of);
}

fn bounds(out: &mut String, key: &str, bounds: &Regulation) {
    let mut keys = Vec::new();
    if bounds.messages_per_s > 0 {
        keys.push(format!("messages = \"{}\"", MESSAGE_RATE.write(u64::from(bounds.messages_per_s))));
        keys.push(format!("messages_burst = {}", bounds.messages_burst));
    }
    if bounds.bytes_per_s > 0 {
        keys.push(format!("bytes = \"{}\"", BYTE_RATE.write(bounds.bytes_per_s)));
        keys.push(format!("bytes_burst = \"{}\"", SIZE.write(bounds.bytes_burst)));
    }
    if !keys.is_empty() {
        line(out, &format!("{key} = {{ {} }}", keys.join(", ")));
    }
}

fn smem(out: &mut String, entry: &SmemEntry, domains: &[DomainEntry]) {
    line(out, "\n[[smem]]");
    text(out, "name", &entry.name);
    let members: Vec<&str> = entry.domains.iter().map(|domain| domains[usize::from(*domain)].name.as_str()).collect();
    line(out, &format!("domains = {members:?}"));
    text(out, "size", &SIZE.write(u64::from(entry.bytes)));
    match entry.lock {
        LockKind::Gate(gate) => line(out, &format!("lock = {{ gate = {gate} }}")),
        _ => text(out, "lock", "bakery"),
    }
}

/// The word of a choice.
fn word<T: PartialEq>(choices: &[(&'static str, T)], value: T) -> &'static str {
    choices.iter().find(|(_, choice)| *choice == value).map_or("", |(word, _)| word)
}

/// `key = "value"`; names, words and quantities need no escapes.
fn text(out: &mut String, key: &str, value: &str) {
    line(out, &format!("{key} = \"{value}\""));
}

fn line(out: &mut String, line: &str) {
    // Writing to a String cannot fail.
    let _ = writeln!(out, "{line}");
}

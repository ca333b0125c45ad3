//! What `musubi check` prints: the memory map, the worst-case memory, and for each channel the bound on steps and storage.
//!
//! What you may rely on: the figures are computed from the plan and the layout that the participants use; they hold for
//! the whole run, because nothing is allocated after start. A step is one look at, or change of, a slot, a return entry
//! or a ticket line; everything else in a call is constant.

mod response;

use std::collections::BTreeSet;

use musubi_core::fifo::REAP_MAX;
use musubi_core::layout::{self, LINE_BYTES, Shape};
use musubi_core::lock::LOOKS_MAX;
use musubi_core::plan::{Fifo, FilterRule, LockKind, Plan, Regulation, Smem};
use musubi_transport::NodeId;
use musubi_transport::limits::PAYLOAD_BYTES_MAX;
use musubi_transport::topology::{Network, Place, Topology};

use crate::network::written;
use crate::nics::Nics;
use crate::nodes::islands;
use crate::quantity::{BYTE_RATE, SIZE, TIME};
use crate::table::{Column, Table, wrapped};
use crate::{Content, Description, MemoryMap};

const SECOND_NS: u64 = 1_000_000_000;

const NODES: &[Column] =
    &[Column::words("node", 0), Column::words("name", 1), Column::words("shared memory", 2), Column::words("TCP", 0)];
const RULES: &[Column] = &[
    Column::words("node", 0),
    Column::number("class", 0),
    Column::words("puts onto each link at most", 0),
    Column::number("held at most", 0),
    Column::words("woken at most", 0),
    Column::words("not later than", 1),
];
const INTAKES: &[Column] =
    &[Column::words("process of a NIC", 0), Column::number("class", 0), Column::words("takes at most", 0)];
const ADDRESSES: &[Column] =
    &[Column::words("region", 1), Column::words("name", 0), Column::number("address", 0), Column::number("length", 0)];
const OFFSETS: &[Column] =
    &[Column::words("region", 1), Column::words("name", 0), Column::number("offset", 0), Column::number("length", 0)];
const DOMAINS: &[Column] = &[
    Column::words("domain", 0),
    Column::number("participants", 1),
    Column::number("a section", 0),
    Column::number("a participant maps", 0),
];
const STORAGE: &[Column] = &[
    Column::words("FIFO channel", 0),
    Column::words("from > to", 0),
    Column::number("class", 4),
    Column::number("blocks", 1),
    Column::number("block", 1),
    Column::number("stride", 6),
    Column::number("sender's end", 5),
    Column::number("receiver's end", 5),
    Column::words("rate at most", 2),
    Column::number("budget", 3),
];
const WAKING: &[Column] = &[
    Column::words("FIFO channel", 0),
    Column::words("rings at most", 0),
    Column::words("not later than", 0),
    Column::number("held at most", 0),
];
const STEPS: &[Column] = &[
    Column::words("FIFO channel", 0),
    Column::number("alloc", 1),
    Column::number("enqueue", 2),
    Column::number("notify", 2),
    Column::number("wait", 1),
    Column::number("dequeue", 2),
    Column::number("free", 2),
    Column::number("receiver restarts", 3),
    Column::number("bytes copied", 3),
    Column::number("cache lines", 3),
];
const NICS: &[Column] = &[
    Column::words("NIC", 0),
    Column::number("processes", 2),
    Column::words("trust", 2),
    Column::words("shared memory", 1),
    Column::words("TCP, first port", 0),
];
const SMEMS: &[Column] = &[
    Column::words("SMEM channel", 0),
    Column::words("members", 0),
    Column::number("payload", 1),
    Column::number("segment", 3),
    Column::words("lock", 2),
    Column::number("steps of trylock", 1),
];

/// The report of a check, as text with tables, for a terminal of so many characters a line or, without a number, whole.
pub fn check(description: &Description, width: Option<usize>) -> String {
    let mut sections = Vec::new();
    if description.has_domains() {
        let map = MemoryMap::of(description);
        sections.extend([wrapped(&heading(description), width), memory_map(&map, width)]);
        description.with_plan(|plan| {
            sections.push(memory(plan, &map, width));
            sections.extend(fifo_storage(plan, width));
            sections.extend(fifo_waking(plan, width));
            sections.extend(fifo_steps(plan, width));
            sections.extend(smem_bounds(plan, width));
        });
    }
    sections.extend(nodes(description.topology(), width));
    sections.extend(nics(description.nics(), width));
    sections.join("\n")
}

/// The NICs of the VI Architecture.
fn nics(nics: &Nics, width: Option<usize>) -> Option<String> {
    if nics.entries.is_empty() {
        return None;
    }
    let mut table = Table::new(NICS);
    for (number, entry) in (0u16..).zip(&nics.entries) {
        let place = NodeId::of_slot(number, 0).and_then(|node| nics.topology.nodes.get(&node));
        let Some(place) = place else { continue };
        let address = place.tcp.as_deref().unwrap_or("-");
        let trust = if entry.is_trusted { "trusted" } else { "hostile" };
        table.add_row([&entry.name, &entry.processes.to_string(), trust, machine(place), address]);
    }
    let Topology { system, hash, network, .. } = &nics.topology;
    let heading = format!("System {system}: {} NICs, hash {hash:#018x}", nics.entries.len());
    let notes = wrapped(&(links(network) + &separation(&nics.topology)), width);
    let response = response::of(nics, width);
    let rules = rules(&nics.topology, width) + &intakes(&nics.topology, width);
    Some(format!("{}\n{}{notes}{rules}{response}", wrapped(&heading, width), table.fitted(width)))
}

/// What is said of a place's shared memory.
fn machine(place: &Place) -> &str {
    match place.shared_memory.as_deref() {
        None => "-",
        Some("") => "yes",
        Some(machine) => machine,
    }
}

fn nodes(topology: &Topology, width: Option<usize>) -> Option<String> {
    if topology.nodes.is_empty() {
        return None;
    }
    let mut table = Table::new(NODES);
    for (id, place) in &topology.nodes {
        let address = place.tcp.as_deref().unwrap_or("-");
        table.add_row([&id.to_string(), &place.name, machine(place), address]);
    }
    let heading =
        format!("System {}: {} nodes, topology hash {:#018x}", topology.system, topology.nodes.len(), topology.hash);
    let notes = wrapped(&(links(&topology.network) + &separation(topology) + &strangers(topology)), width);
    Some(format!("{}\n{}{notes}{}", wrapped(&heading, width), table.fitted(width), rules(topology, width)))
}

/// What nodes may send, and how often they are woken, by class.
fn rules(topology: &Topology, width: Option<usize>) -> String {
    let mut table = Table::new(RULES);
    for (id, place) in &topology.nodes {
        for rule in &place.rules {
            let (filter, each) = (&rule.filter, rule.filter.is_each());
            table.add_row([
                id.to_string(),
                rule.class.class().to_string(),
                rate(&rule.regulation),
                held(&rule.regulation, PAYLOAD_BYTES_MAX as u64),
                wakes(filter, "frame"),
                if each { "at once".to_owned() } else { TIME.write(filter.latest_ns) },
            ]);
        }
    }
    let note = format!(
        "Held at most: the first frame in line; the longer of 1 s / messages and {} / bytes, the largest frame over what the \
         rule lets out a second. The n-th in line is held at most n times that; a frame within rate and burst is not.\n\
         Not later than: from a frame that came to the wake-up for it; the filter's `latest`.\n\
         Both without the time that threads wait for a processor. Classes without a rule have no bound; MCAPI's \
         priorities 0 to 3 are classes 1 to 4.",
        SIZE.write(PAYLOAD_BYTES_MAX as u64)
    );
    match table.is_empty() {
        true => String::new(),
        false => format!("\nRules of nodes\n{}{}\n", table.fitted(width), wrapped(&note, width)),
    }
}

/// What NICs take of each class.
fn intakes(topology: &Topology, width: Option<usize>) -> String {
    let mut table = Table::new(INTAKES);
    for place in topology.nodes.values() {
        for intake in &place.intakes {
            table.add_row([place.name.clone(), intake.class.class().to_string(), rate(&intake.regulation)]);
        }
    }
    let note = "Of all others together, by credit that each process grants. In any time T at most the rate times T and two bursts, and \
                a message of each other process; in bytes the rest of messages that have begun, too.";
    match table.is_empty() {
        true => String::new(),
        false => format!("\nIntake of NICs\n{}{}\n", table.fitted(width), wrapped(note, width)),
    }
}

/// How long a regulation holds the first in line ([`held_ns`]), of which the largest has so many bytes.
fn held(regulation: &Regulation, bytes_max: u64) -> String {
    held_ns(regulation, bytes_max).map_or_else(|| "not".to_owned(), |bound_ns| TIME.write(bound_ns))
}

/// The longest that a [`musubi_core::guarantee::Regulator`] holds a frame once those before it have gone; nanoseconds, `None`
/// if it holds none. A bucket that let a frame go lacks at most its burst, or that frame if it was larger; so what the next
/// one still needs is at most one frame, or the largest frame's bytes. Both buckets fill at once.
fn held_ns(regulation: &Regulation, bytes_max: u64) -> Option<u64> {
    let of = |needed: u64, rate: u64| (rate > 0).then(|| (needed * SECOND_NS).div_ceil(rate));
    of(1, u64::from(regulation.messages_per_s)).max(of(bytes_max, regulation.bytes_per_s))
}

/// How often what is filtered (frames that arrive, notifications) wakes who sleeps.
fn wakes(filter: &FilterRule, what: &str) -> String {
    let every = (filter.every > 1).then(|| format!("by one {what} in {}", filter.every));
    let level = (filter.every > 1 && filter.level > 0).then(|| format!("or with {} queued", filter.level));
    let interval = (filter.interval_ns_min > 0).then(|| format!("once in {}", TIME.write(filter.interval_ns_min)));
    let words: Vec<String> = every.into_iter().chain(level).chain(interval).collect();
    if words.is_empty() { "by each".to_owned() } else { words.join(",\n") }
}

/// What holds for links over TCP.
fn links(network: &Network) -> String {
    let security = match (network.insecure, network.tls_on_loopback) {
        (true, _) => "without TLS (insecure)",
        (false, true) => "with TLS, on loopback too",
        (false, false) => "with TLS, except on loopback",
    };
    format!(
        "Links over TCP: {security}; heartbeat {}, cut after {} of silence, resumed within {};\n\
         pieces of {}, window of {}, {}.\n",
        written(network.heartbeat_ms),
        written(network.silence_ms),
        written(network.resume_ms),
        SIZE.write(u64::from(network.piece_bytes)),
        SIZE.write(u64::from(network.window_bytes)),
        if network.priorities { "priorities on" } else { "priorities off" },
    )
}

/// A warning where some nodes have no way to each other.
fn separation(topology: &Topology) -> String {
    let islands = islands(topology);
    let names: Vec<String> = islands.iter().map(|(machine, id)| format!("{id} (machine {machine:?})")).collect();
    if names.is_empty() {
        return String::new();
    }
    format!(
        "Warning: no way between nodes of different machines without a TCP address, such as {}.\n",
        names.join(" and ")
    )
}

/// What it means for nodes to have no address where others have links over TCP with them.
fn strangers(topology: &Topology) -> String {
    let listening = topology.nodes.values().filter(|place| place.tcp.is_some());
    let machines: BTreeSet<Option<&str>> = listening.map(|place| place.shared_memory.as_deref()).collect();
    // The first or the second of these is another one than its own, if any is.
    let has_links = |own: Option<&str>| machines.iter().any(|machine| machine.is_none() || *machine != own);
    let without =
        topology.nodes.iter().filter(|(_, place)| place.tcp.is_none() && has_links(place.shared_memory.as_deref()));
    let names: Vec<String> = without.map(|(id, _)| id.to_string()).collect();
    let (Some(first), more) = (names.first(), names.len().saturating_sub(1)) else { return String::new() };
    let (who, count) = match more {
        0 => (format!("Node {first} has"), "it counts as a stranger until its certificate was"),
        _ => (format!("Node {first} and {more} more have"), "they count as strangers until their certificates were"),
    };
    let ever = if topology.network.insecure { "; without TLS that is never" } else { "" };
    format!("{who} no TCP address and dial: in a flood {count} seen{ever}.\n")
}

fn heading(description: &Description) -> String {
    format!(
        "System {}: {} domains, {} FIFO channels, {} SMEM channels; layout version {}, plan hash {:#018x}\n",
        description.name,
        description.domains.len(),
        description.fifos.len(),
        description.smems.len(),
        layout::VERSION,
        description.hash,
    )
}

fn memory_map(map: &MemoryMap, width: Option<usize>) -> String {
    let mut table = Table::new(if map.base().is_some() { ADDRESSES } else { OFFSETS });
    for region in map.regions() {
        let what = match region.content {
            Content::Section { participant, .. } => format!("section of participant {participant}"),
            Content::Slot { participant, .. } => format!("slot of participant {participant}"),
            Content::Segment { smem } => format!("segment of SMEM {smem}"),
        };
        let begin = format!("{:#x}", map.base().unwrap_or(0) + region.offset);
        table.add_row([what, region.name.clone(), begin, SIZE.write(region.bytes)]);
    }
    let end = format!("{:#x}", map.base().unwrap_or(0) + map.bytes());
    table.add_row(["all".to_owned(), String::new(), end, SIZE.write(map.bytes())]);
    let note = match map.base() {
        Some(_) => "",
        None => "There is no address map: each region is a memory object of its own, offsets only show the order.\n",
    };
    format!("Memory map\n{}{}", table.fitted(width), wrapped(note, width))
}

fn memory(plan: &Plan<'_>, map: &MemoryMap, width: Option<usize>) -> String {
    let mut table = Table::new(DOMAINS);
    for (number, domain) in (0u16..).zip(plan.domains) {
        let mapped = mapped_bytes(plan, map, number);
        table.add_row([
            domain.name.to_owned(),
            domain.participants.to_string(),
            SIZE.write(section_bytes(plan, number)),
            SIZE.write(mapped),
        ]);
    }
    format!("Worst-case memory, all participants attached: {}\n{}", SIZE.write(map.bytes()), table.fitted(width))
}

/// What one participant of a domain maps at most: all of it where the addresses are fixed. Else its section, the sections
/// of all that it shares a channel with (in its own domain too, where they share an SMEM channel), its segments.
fn mapped_bytes(plan: &Plan<'_>, map: &MemoryMap, domain: u16) -> u64 {
    if map.base().is_some() {
        return map.bytes();
    }
    let own = map.regions().iter().find(|region| is_section_of(region.content, domain)).map(|region| region.offset);
    let mapped = map.regions().iter().filter(|region| match region.content {
        Content::Section { domain: other, .. } => Some(region.offset) == own || plan.linked(domain, other),
        Content::Slot { .. } => false,
        Content::Segment { smem } => plan.smems[usize::from(smem)].domains.contains(&domain),
    });
    mapped.map(|region| region.bytes).sum()
}

fn is_section_of(content: Content, domain: u16) -> bool {
    matches!(content, Content::Section { domain: owner, .. } if owner == domain)
}

fn section_bytes(plan: &Plan<'_>, domain: u16) -> u64 {
    layout::section_bytes(plan, domain).map_or(0, u64::from)
}

fn fifo_storage(plan: &Plan<'_>, width: Option<usize>) -> Option<String> {
    let mut table = Table::new(STORAGE);
    for fifo in plan.fifos {
        let shape = Shape::of(fifo)?;
        table.add_row([
            fifo.name.to_owned(),
            format!("{} > {}", plan.domains[usize::from(fifo.from)].name, plan.domains[usize::from(fifo.to)].name),
            fifo.priority.to_string(),
            fifo.blocks.to_string(),
            SIZE.write(u64::from(fifo.block_bytes)),
            SIZE.write(u64::from(shape.stride_bytes)),
            SIZE.write(u64::from(shape.tx_bytes()?)),
            SIZE.write(u64::from(shape.rx_bytes()?)),
            rate(&fifo.regulation),
            if fifo.budget_ns == 0 { "-".to_owned() } else { TIME.write(u64::from(fifo.budget_ns)) },
        ]);
    }
    let note = "Each participant of the domain has such an end in its section.";
    (!plan.fifos.is_empty())
        .then(|| format!("Storage of the FIFO channels\n{}{}\n", table.fitted(width), wrapped(note, width)))
}

/// What filters and regulations put off, of the channels that have one.
fn fifo_waking(plan: &Plan<'_>, width: Option<usize>) -> Option<String> {
    let mut table = Table::new(WAKING);
    for fifo in plan.fifos.iter().filter(|fifo| !fifo.filter.is_each() || !fifo.regulation.is_none()) {
        let each = fifo.filter.is_each();
        table.add_row([
            fifo.name.to_owned(),
            wakes(&fifo.filter, "notify"),
            if each { "at once".to_owned() } else { TIME.write(fifo.filter.latest_ns) },
            held(&fifo.regulation, u64::from(fifo.block_bytes)),
        ]);
    }
    let note = "Not later than: from a notify that the filter holds back to its ring; the filter's `latest`.\n\
                Held at most: how long an enqueue is refused or waits when those before it have gone; the longer of \
                1 s / messages and a block / bytes.\n\
                Both without the time that threads wait for a processor.";
    (!table.is_empty()).then(|| {
        format!("Filters and regulations of the FIFO channels\n{}{}\n", table.fitted(width), wrapped(note, width))
    })
}

fn rate(regulation: &Regulation) -> String {
    let mut bounds = Vec::new();
    if regulation.messages_per_s > 0 {
        bounds.push(format!("{} /s, burst {}", regulation.messages_per_s, regulation.messages_burst));
    }
    if regulation.bytes_per_s > 0 {
        let burst = SIZE.write(regulation.bytes_burst);
        bounds.push(format!("{}, burst {burst}", BYTE_RATE.write(regulation.bytes_per_s)));
    }
    if bounds.is_empty() { "no bound".to_owned() } else { bounds.join("\n") }
}

fn fifo_steps(plan: &Plan<'_>, width: Option<usize>) -> Option<String> {
    let mut table = Table::new(STEPS);
    for fifo in plan.fifos {
        let mut row = vec![fifo.name.to_owned()];
        row.extend(steps(fifo).map(|bound| bound.to_string()));
        row.push(SIZE.write(u64::from(fifo.block_bytes)));
        row.push(message_lines(fifo).to_string());
        table.add_row(row);
    }
    let note = "alloc: returned blocks taken back. wait: slots looked at before it sleeps.\n\
                receiver restarts: blocks or messages passed over once, by the sender and by the first dequeue after it.\n\
                bytes copied: by an interface that copies, once in and once out; with zero copy, none.\n\
                cache lines: of the largest message with its announcement.";
    (!plan.fifos.is_empty())
        .then(|| format!("Steps of the FIFO channels, at most\n{}{}\n", table.fitted(width), wrapped(note, width)))
}

/// Bounds of alloc, enqueue, notify, wait, dequeue, free and of a receiver's restart.
fn steps(fifo: &Fifo<'_>) -> [u32; 7] {
    [REAP_MAX.min(fifo.blocks), 1, 1, fifo.blocks, 1, 1, fifo.blocks]
}

/// Cache lines that the largest message covers: announcement and payload lie together in a slot.
fn message_lines(fifo: &Fifo<'_>) -> u32 {
    Shape::of(fifo).map_or(0, |shape| shape.stride_bytes / LINE_BYTES)
}

fn smem_bounds(plan: &Plan<'_>, width: Option<usize>) -> Option<String> {
    let mut table = Table::new(SMEMS);
    for smem in plan.smems {
        let members: Vec<&str> = smem.domains.iter().map(|domain| plan.domains[usize::from(*domain)].name).collect();
        let (lock, steps) = lock(plan, smem);
        table.add_row([
            smem.name.to_owned(),
            members.join(", "),
            SIZE.write(u64::from(smem.bytes)),
            SIZE.write(u64::from(layout::segment_bytes(smem.bytes)?)),
            lock,
            steps.to_string(),
        ]);
    }
    let note = "Steps of trylock: looks at other participants' ticket lines, or one access of the gate.";
    (!plan.smems.is_empty()).then(|| format!("SMEM channels\n{}{}\n", table.fitted(width), wrapped(note, width)))
}

/// The lock's name, and how many steps a trylock takes ([`musubi_core::lock::Bakery::try_lock`]).
fn lock(plan: &Plan<'_>, smem: &Smem<'_>) -> (String, u32) {
    let others: u32 =
        smem.domains.iter().map(|domain| u32::from(plan.domains[usize::from(*domain)].participants)).sum::<u32>() - 1;
    match smem.lock {
        LockKind::Gate(gate) => (format!("gate {gate}"), 1),
        _ => ("bakery".to_owned(), 2 * others + LOOKS_MAX),
    }
}

#[cfg(test)]
mod tests {
    use musubi_core::guarantee::Regulator;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(300) })]

        /// Frames that always stand in line are each let go within the printed bound.
        #[test]
        fn no_frame_in_line_is_held_longer_than_is_printed(
            messages in prop_oneof![Just((0, 0)), (1..5_000u32, 0..20u32)],
            bytes in prop_oneof![Just((0, 0)), (1_000..1u64 << 30, 0..4u64 << 20)],
            lengths in proptest::collection::vec(0..=PAYLOAD_BYTES_MAX as u32, 1..60),
        ) {
            let rule = Regulation { messages_per_s: messages.0, messages_burst: messages.1, bytes_per_s: bytes.0, bytes_burst: bytes.1 };
            let (mut regulator, mut now_ns) = (Regulator::new(rule), 0);
            for length in lengths {
                let first_ns = now_ns;
                while let Err(retry_ns) = regulator.admit(now_ns, length) {
                    now_ns += retry_ns;
                }
                prop_assert!(now_ns - first_ns <= held_ns(&rule, PAYLOAD_BYTES_MAX as u64).unwrap_or(0), "{} ns", now_ns - first_ns);
            }
        }
    }

    #[test]
    fn the_bound_is_met_by_the_largest_frames_and_by_many() {
        let most_ns = |rule: Regulation, length: u32| {
            let (mut regulator, mut now_ns, mut most_ns) = (Regulator::new(rule), 0, 0);
            for _ in 0..30 {
                let held_ns = regulator.admit(now_ns, length).err().unwrap_or(0);
                (now_ns, most_ns) = (now_ns + held_ns, most_ns.max(held_ns));
                let _ = (held_ns > 0).then(|| regulator.admit(now_ns, length));
            }
            most_ns
        };
        let many = Regulation { messages_per_s: 1000, messages_burst: 10, ..Regulation::NONE };
        assert_eq!(held_ns(&many, PAYLOAD_BYTES_MAX as u64), Some(most_ns(many, 0)));
        let large = Regulation { bytes_per_s: 2 << 20, bytes_burst: 4096, ..Regulation::NONE };
        assert_eq!(held_ns(&large, PAYLOAD_BYTES_MAX as u64), Some(most_ns(large, PAYLOAD_BYTES_MAX as u32)));
        assert_eq!(
            (held(&large, PAYLOAD_BYTES_MAX as u64), held(&Regulation::NONE, PAYLOAD_BYTES_MAX as u64)),
            ("500 ms".to_owned(), "not".to_owned())
        );
    }
}

//! Response times of NICs: how often a class wakes who sleeps, and what it can put before a more urgent class.
//!
//! What you may rely on: a bound is printed only where one follows from the description or from a limit of the library; each
//! comes with what it follows from. What a copy, a wake-up or the network costs is the machine's, and is said to be not known.
//!
//! How it works: a class wakes as its `filter` lets it ([`wakes_a_second`]), or as its senders' `regulation`s let its frames
//! come. What goes before an urgent frame is what was begun before it came: the limits of [`musubi_transport::limits`].
//!
//! What it does not do: measure, or bound how long a thread waits for a processor.

use musubi_core::lane::SLOT_BYTES;
use musubi_core::plan::FilterRule;
use musubi_transport::limits::{
    BURST_BYTES, KERNEL_BYTES, KERNEL_BYTES_WITHIN, LOOK_BYTES, PART_BYTES_MAX, READY_BYTES, REPORTS_MAX, ROW_MAX,
};
use musubi_transport::shm::records::{DATA_SLOTS, SHAPE};
use musubi_transport::topology::{ClassRule, Place, Topology, Way};
use musubi_transport::{NodeId, Priority};

use crate::nics::Nics;
use crate::quantity::{SIZE, TIME};
use crate::table::{Column, Table, wrapped};

const SECOND_NS: u64 = 1_000_000_000;

const RESPONSE: &[Column] = &[
    Column::words("NIC", 0),
    Column::number("class", 0),
    Column::words("wake-ups a second", 0),
    Column::words("not later than", 1),
    Column::words("before a more urgent frame", 0),
];

/// What is said besides where a NIC takes only so much of a class.
const INTAKES: &str = "\nWhere a class has an `intake`, at most two of its bursts and a message of each other process are under way to a \
                       process; messages that have begun go on.";

/// The part of a check that is about the response times of these NICs.
pub(super) fn of(nics: &Nics, width: Option<usize>) -> String {
    let mut table = Table::new(RESPONSE);
    for (number, entry) in (0u16..).zip(&nics.entries) {
        let first = NodeId::of_slot(number, 0);
        let Some((node, place)) = first.and_then(|node| Some((node, nics.topology.nodes.get(&node)?))) else {
            continue;
        };
        let before = before(&nics.topology, node);
        for class in (0..Priority::COUNT as u8).filter_map(Priority::new) {
            let is_first = class == Priority::MOST_URGENT;
            table.add_row([
                entry.name.clone(),
                class.class().to_string(),
                wakes(&nics.topology, (node, place), class),
                latest(place, class),
                if is_first { "nothing".to_owned() } else { before.clone() },
            ]);
        }
    }
    format!(
        "\nResponse times of NICs, of each process\n{}{}\n",
        table.fitted(width),
        wrapped(&notes(&nics.topology), width)
    )
}

/// How often frames of a class wake threads that sleep in a process of a NIC, a second, at most.
fn wakes(topology: &Topology, (node, place): (NodeId, &Place), class: Priority) -> String {
    if let Some(bound) = rule(place, class).and_then(|rule| wakes_a_second(&rule.filter)) {
        return bound.to_string();
    }
    let every = rule(place, class).map_or(1, |rule| u64::from(rule.filter.every.max(1)));
    match frames_a_second(topology, node, class) {
        Some(frames) if every == 1 => format!("{frames}, as frames come"),
        Some(frames) => format!("{}, by one frame in {every}", frames.div_ceil(every)),
        None if every == 1 => "no bound: by each frame".to_owned(),
        None => format!("no bound: by one frame in {every}"),
    }
}

/// The most wake-ups in any second that a filter lets pass: they are an interval apart, or a latest time where that is shorter and
/// breaks it. `None` if it does not bound them by time.
fn wakes_a_second(filter: &FilterRule) -> Option<u64> {
    let apart_ns = filter.interval_ns_min.min(filter.latest_ns);
    (apart_ns > 0).then(|| SECOND_NS.div_ceil(apart_ns))
}

/// Frames of a class that reach a node in any second, where the rules of all that have a link with it bound them.
fn frames_a_second(topology: &Topology, to: NodeId, class: Priority) -> Option<u64> {
    let senders = topology.nodes.iter().filter(|(node, _)| **node != to && topology.way(**node, to).is_some());
    let of = |place: &Place| {
        let regulation = rule(place, class).map(|rule| rule.regulation).filter(|rule| rule.messages_per_s > 0)?;
        Some(u64::from(regulation.messages_per_s) + u64::from(regulation.messages_burst))
    };
    senders.map(|(_, place)| of(place)).sum()
}

fn latest(place: &Place, class: Priority) -> String {
    let filter = rule(place, class).map(|rule| rule.filter).filter(|filter| !filter.is_each());
    filter.map_or_else(|| "at once".to_owned(), |filter| TIME.write(filter.latest_ns))
}

fn rule(place: &Place, class: Priority) -> Option<&ClassRule> {
    place.rules.iter().find(|rule| rule.class == class)
}

/// What a less urgent class can have begun before a more urgent frame that a process of this NIC sends or gets.
fn before(topology: &Topology, node: NodeId) -> String {
    let others = || topology.nodes.keys().filter(|other| **other != node);
    let by = |is: fn(Option<Way<'_>>) -> bool| others().filter(|other| is(topology.way(node, **other))).count();
    let memory = by(|way| way == Some(Way::SharedMemory));
    let network = by(|way| matches!(way, Some(Way::Tcp(_))));
    let mut words = Vec::new();
    if memory > 0 {
        let rows = (memory as u64 - 1) * u64::from(ROW_MAX);
        let more = if rows > 0 { format!(", {rows} of other links") } else { String::new() };
        words.push(format!("shm: {DATA_SLOTS} frames ({}){more}", SIZE.write(lane_bytes())));
    }
    if network > 0 {
        let ready = ready_bytes(topology.network.piece_bytes as usize);
        words.push(format!("TCP: {} + the kernel's", SIZE.write(ready as u64)));
    }
    if words.is_empty() { "nothing: no other process".to_owned() } else { words.join("\n") }
}

/// Most bytes of messages that lie in a lane at a time: in its blocks, one frame each, and in what is left of its slots.
fn lane_bytes() -> u64 {
    let in_slots = u64::from(DATA_SLOTS - SHAPE.blocks) * SLOT_BYTES as u64;
    u64::from(SHAPE.blocks) * PART_BYTES_MAX as u64 + in_slots
}

/// Most bytes that are ready for a stream: whole pieces.
fn ready_bytes(piece_bytes: usize) -> usize {
    READY_BYTES.max(BURST_BYTES).next_multiple_of(piece_bytes)
}

/// From what the bounds follow.
fn notes(topology: &Topology) -> String {
    let size = |bytes: usize| SIZE.write(bytes as u64);
    let has_intake = topology.nodes.values().any(|place| !place.intakes.is_empty());
    let (send, receive) = (size(KERNEL_BYTES.0), size(KERNEL_BYTES.1));
    let (send_within, receive_within) = (size(KERNEL_BYTES_WITHIN.0), size(KERNEL_BYTES_WITHIN.1));
    format!(
        "Wake-ups a second: of threads that sleep in a process, by frames of this class: 1 s / the `interval` of its `filter`; \
         without one as frames come, of which the `regulation`s of all senders let pass their messages and bursts.\n\
         Before a more urgent frame: what has been begun, as the more urgent one is taken first of all that has not. Engine: one \
         piece of a descriptor, {part}. Lock: its holder runs with the priority of who waits for it, and finishes one call: it hands \
         over what its VI has posted as long as the link has room (VIs of a class that wait for room take turns of a piece by \
         weight), or takes in at most {REPORTS_MAX} frames of {part}. shm: all classes share a link's lane of \
         {DATA_SLOTS} frames of data, {blocks} of them in blocks with a piece each; each other link has a row of {ROW_MAX} frames. \
         TCP: what is ready, {ready} or behind a burst {burst}, rounded up to pieces of {piece}; the kernel's: {send} of the sender \
         and {receive} of the receiver, within a machine {send_within} and {receive_within}; and a look of {look}.\n\
         Not known here, as they are this machine's: what a wake-up costs, a copied byte, a byte of the network. `musubi bench via` \
         measures them (futex_oneway, shm_copy_64k, vi_rate_tcp_65536). A class costs others at most its wake-ups a second times the \
         cost of one, and a frame at most the bytes before it times that of a byte; without the time that threads wait for a \
         processor.{intakes}",
        intakes = if has_intake { INTAKES } else { "" },
        part = size(PART_BYTES_MAX),
        blocks = SHAPE.blocks,
        ready = size(READY_BYTES),
        burst = size(BURST_BYTES),
        piece = size(topology.network.piece_bytes as usize),
        look = size(LOOK_BYTES),
    )
}

#[cfg(test)]
mod tests {
    use musubi_core::guarantee::{Filter, Verdict};
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(300) })]

        /// Whatever comes, no second has more wake-ups than are printed.
        #[test]
        fn no_second_has_more_wake_ups_than_are_printed(
            interval_ns in 1_000_000..600_000_000u64,
            latest_ns in 1_000_000..900_000_000u64,
            pauses_ns in proptest::collection::vec(0..300_000_000u64, 1..200),
        ) {
            let rule = FilterRule { interval_ns_min: interval_ns, latest_ns, ..FilterRule::EACH };
            let (mut filter, mut now_ns, mut woken) = (Filter::new(rule), 0, Vec::new());
            for pause_ns in pauses_ns {
                while let Some(due_ns) = filter.due_at_ns(now_ns).filter(|due_ns| *due_ns <= now_ns + pause_ns) {
                    now_ns = due_ns;
                    prop_assert!(filter.due(now_ns));
                    woken.push(now_ns);
                }
                now_ns += pause_ns;
                woken.extend((filter.offer(now_ns, 0) == Verdict::Raise).then_some(now_ns));
            }
            let bound = wakes_a_second(&rule).unwrap_or(0);
            for (first, from_ns) in woken.iter().enumerate() {
                let within = woken[first..].iter().take_while(|at_ns| **at_ns < from_ns + SECOND_NS).count();
                prop_assert!(within as u64 <= bound, "{within} of {bound}");
            }
        }
    }

    #[test]
    fn a_filter_that_is_none_bounds_nothing_by_time() {
        assert_eq!(wakes_a_second(&FilterRule::EACH), None);
        assert_eq!(wakes_a_second(&FilterRule { every: 9, ..FilterRule::EACH }), None);
    }

    #[test]
    fn what_is_ready_is_whole_pieces() {
        assert_eq!([512, 16 * 1024, 100_000, 1 << 20].map(ready_bytes), [131_072, 131_072, 200_000, 1 << 20]);
        assert_eq!(lane_bytes(), 32 * 65_536 + 192 * 60);
    }
}

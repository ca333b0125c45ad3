//! What must hold between the parts of a description.
//!
//! What you may rely on: a description without findings here and in [`crate::grammar`] has a plan that passes
//! [`musubi_core::plan::Plan::check`], unique names (also as identifiers of the generated files), and a memory map that
//! fits its addresses.
//!
//! How it works: each rule looks at the drafts and reports at the places that are at odds. Parts that could not be read
//! are left out; sums are then lower bounds, so a limit that they pass is passed for certain.

use std::collections::HashMap;

use musubi_core::layout::{self, PAGE_BYTES, Shape};
use musubi_core::plan::{
    DOMAINS_MAX, FIFOS_MAX, LockKind, NAME_BYTES_MAX, PARTICIPANTS_MAX, PortKind, Role, SMEMS_MAX,
};

use crate::description::{AddressMap, Description};
use crate::drafts::{DomainDraft, Drafts, FifoDraft, SmemDraft};
use crate::quantity::SIZE;
use crate::reader::{Located, quoted, suggestion};
use crate::report::{Findings, Scope, Span};
use crate::{MemoryMap, digest};
use crate::{nics, nodes};

/// Cells of an address, and of a length, in the devicetree node that the fragment goes under.
const DEFAULT_CELLS: u32 = 2;
/// What one cell holds at most.
const CELL_MAX: u64 = u32::MAX as u64;

/// Checks the drafts against each other and makes the description of them.
pub(crate) fn check(mut drafts: Drafts, findings: &mut Findings) -> Option<Description> {
    check_names(&drafts, findings);
    check_counts(&drafts, findings);
    check_masters(&drafts, findings);
    let numbers = DomainNumbers::of(&drafts.domains);
    drafts.fifos.retain_mut(|fifo| resolve_fifo(fifo, &numbers, findings));
    drafts.smems.retain_mut(|smem| resolve_smem(smem, &numbers, findings));
    check_levels(&drafts.fifos, findings);
    check_gates(&drafts, findings);
    check_ports(&drafts, findings);
    check_doorbells(&drafts.domains, findings);
    let of_nics = nics::addresses(&drafts.nics, findings);
    nodes::check(&drafts.nodes, &of_nics, &drafts.network, findings);
    nics::check(&drafts.nics, &drafts.network, findings);
    let places: Vec<Span> = drafts.domains.iter().map(|domain| domain.at.clone()).collect();
    let map_at = drafts.system.address_map.as_ref().map(|map| map.span.clone());
    let cells_at = drafts.system.cells.as_ref().map(|cells| cells.span.clone());
    let description = describe(drafts);
    if places.len() <= DOMAINS_MAX {
        check_memory(&description, &places, (map_at, cells_at), findings);
    }
    Some(description)
}

fn describe(drafts: Drafts) -> Description {
    let name = drafts.system.name.map(|name| name.value).unwrap_or_default();
    let mut topology = nodes::topology(name.clone(), drafts.network, drafts.nodes);
    let mut nics = nics::nics(drafts.nics, &topology);
    for topology in [&mut topology, &mut nics.topology] {
        topology.hash = digest::topology_hash(topology);
    }
    let mut description = Description {
        name,
        domains: drafts.domains.into_iter().map(|draft| draft.entry).collect(),
        fifos: drafts.fifos.into_iter().map(|draft| draft.entry).collect(),
        smems: drafts.smems.into_iter().map(|draft| draft.entry).collect(),
        liveness: drafts.liveness,
        address_map: drafts.system.address_map.map(|map| map.value),
        cells: drafts.system.cells.map_or(DEFAULT_CELLS, |cells| cells.value as u32),
        hash: 0,
        topology,
        nics,
    };
    description.hash = digest::hash(&description);
    description
}

fn check_names(drafts: &Drafts, findings: &mut Findings) {
    let domains: Vec<&Located<String>> = drafts.domains.iter().filter_map(|draft| draft.name.as_ref()).collect();
    let fifos = drafts.fifos.iter().filter_map(|draft| draft.name.as_ref());
    let nodes: Vec<&Located<String>> = drafts.nodes.iter().filter_map(|draft| draft.name.as_ref()).collect();
    let nics: Vec<&Located<String>> = drafts.nics.iter().filter_map(|draft| draft.place.name.as_ref()).collect();
    let channels: Vec<&Located<String>> =
        fifos.chain(drafts.smems.iter().filter_map(|draft| draft.name.as_ref())).collect();
    let named = domains.iter().chain(&channels).chain(&nodes).chain(&nics).copied();
    for name in drafts.system.name.iter().chain(named) {
        check_name(name, findings);
    }
    let places = drafts.nodes.iter().chain(drafts.nics.iter().map(|draft| &draft.place));
    for machine in places.filter_map(|draft| draft.machine.as_ref()) {
        check_name(machine, findings);
    }
    check_unique("domains", &domains, findings);
    check_unique("channels", &channels, findings);
    check_unique("nodes", &nodes, findings);
    check_unique("NICs", &nics, findings);
}

fn check_name(name: &Located<String>, findings: &mut Findings) {
    let begins_well = name.value.starts_with(|c: char| c.is_ascii_alphabetic());
    let goes_on_well = name.value.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
    let length = name.value.len();
    let label = match (begins_well && goes_on_well, length) {
        (_, 0) => "a name cannot be empty".to_owned(),
        (false, _) => "a letter first, then letters, digits, `_` and `-`".to_owned(),
        (true, NAME_BYTES_MAX..) if length > NAME_BYTES_MAX => {
            format!("{length} characters, at most {NAME_BYTES_MAX} are allowed")
        }
        _ => return,
    };
    findings.add(Scope::Value, name.span.clone(), format!("not a valid name: {}", quoted(&name.value)), label);
}

fn check_unique(kind: &str, names: &[&Located<String>], findings: &mut Findings) {
    let mut seen: HashMap<String, &Located<String>> = HashMap::new();
    for name in names {
        let Some(first) = seen.get(&identifier(&name.value)) else {
            seen.insert(identifier(&name.value), name);
            continue;
        };
        let message = if first.value == name.value {
            format!("two {kind} are named {}", quoted(&name.value))
        } else {
            let (one, other) = (quoted(&first.value), quoted(&name.value));
            format!("the {kind} {one} and {other} become the same identifier in generated files")
        };
        findings.add(Scope::Relation, name.span.clone(), message, "second").also(first.span.clone(), "first");
    }
}

/// A name as the generated C header writes it.
pub(crate) fn identifier(name: &str) -> String {
    name.replace('-', "_").to_ascii_uppercase()
}

fn check_counts(drafts: &Drafts, findings: &mut Findings) {
    let fifos: Vec<&Span> = drafts.fifos.iter().map(|draft| &draft.at).collect();
    let smems: Vec<&Span> = drafts.smems.iter().map(|draft| &draft.at).collect();
    let domains: Vec<&Span> = drafts.domains.iter().map(|draft| &draft.at).collect();
    for (kind, places, limit) in
        [("domains", domains, DOMAINS_MAX), ("FIFO channels", fifos, FIFOS_MAX), ("SMEM channels", smems, SMEMS_MAX)]
    {
        if let Some(first_too_many) = places.get(limit) {
            let message = format!("{} {kind}, but at most {limit} are possible", places.len());
            findings.add(Scope::Relation, (*first_too_many).clone(), message, "one too many");
        }
    }
    let mut participants = 0;
    for domain in &drafts.domains {
        participants += usize::from(domain.entry.participants);
        if participants > PARTICIPANTS_MAX {
            let message = format!("more than {PARTICIPANTS_MAX} participants over all domains");
            let label = format!("{participants} up to here");
            findings
                .add(Scope::Relation, domain.at.clone(), message, label)
                .help("lower `participants` of some domain");
            break;
        }
    }
}

fn check_masters(drafts: &Drafts, findings: &mut Findings) {
    let domains = &drafts.domains;
    let masters: Vec<Span> = domains
        .iter()
        .filter_map(|domain| domain.role.as_ref())
        .filter(|role| role.value == Role::Master)
        .map(|role| role.span.clone())
        .collect();
    let Some((first, others)) = masters.split_first() else {
        let has_others = !drafts.nodes.is_empty() || !drafts.nics.is_empty();
        if domains.is_empty() && (!has_others || !drafts.fifos.is_empty() || !drafts.smems.is_empty()) {
            findings
                .add(Scope::Relation, 0..0, "the description has no domain", "no [[domain]] in this file")
                .help("begin each domain with [[domain]] (exactly one has role = \"master\"), each node with [[node]]");
        }
        // A role that could not be read may have been the Master.
        if let Some(domain) = domains.first().filter(|_| domains.iter().all(|domain| domain.role.is_some())) {
            findings
                .add(Scope::Relation, domain.at.clone(), "no domain is the Master", "the first of the domains")
                .help("give the real-time domain role = \"master\"");
        }
        return;
    };
    for other in others {
        findings
            .add(Scope::Relation, other.clone(), "a system has exactly one Master", "second Master")
            .also(first.clone(), "first Master");
    }
}

/// Numbers of the domains by name; of equal names, the first.
struct DomainNumbers<'d> {
    names: Vec<&'d str>,
}

impl<'d> DomainNumbers<'d> {
    fn of(domains: &'d [DomainDraft]) -> DomainNumbers<'d> {
        // A file may hold more domains than a plan; those are reported and not looked up.
        DomainNumbers { names: domains.iter().take(DOMAINS_MAX).map(|domain| domain.entry.name.as_str()).collect() }
    }

    fn number(&self, name: &Located<String>, findings: &mut Findings) -> Option<u16> {
        let found = self.names.iter().position(|known| *known == name.value);
        if found.is_none() {
            let message = format!("there is no domain {}", quoted(&name.value));
            let problem = findings.add(Scope::Relation, name.span.clone(), message, "not the name of a [[domain]]");
            if let Some(known) = suggestion(&name.value, &self.names) {
                problem.help(format!("did you mean {}?", quoted(known)));
            }
        }
        found.and_then(|number| u16::try_from(number).ok())
    }
}

/// Fills in `from` and `to`; false if the channel cannot be considered further.
fn resolve_fifo(draft: &mut FifoDraft, numbers: &DomainNumbers<'_>, findings: &mut Findings) -> bool {
    let from = draft.from.as_ref().and_then(|name| numbers.number(name, findings));
    let to = draft.to.as_ref().and_then(|name| numbers.number(name, findings));
    if let (Some(sender), Some(receiver)) = (&draft.from, &draft.to)
        && sender.value == receiver.value
    {
        findings
            .add(Scope::Relation, receiver.span.clone(), "a channel from a domain to itself", "the same domain")
            .also(sender.span.clone(), "from here")
            .help("inside one domain, use the means of its operating system");
    }
    let (Some(from), Some(to)) = (from, to) else { return false };
    (draft.entry.from, draft.entry.to) = (from, to);
    if draft.sized && Shape::of(&draft.entry.borrow()).and_then(|shape| shape.tx_bytes()).is_none() {
        let (blocks, bytes) = (draft.entry.blocks, SIZE.write(u64::from(draft.entry.block_bytes)));
        let message = format!("{blocks} blocks of {bytes} do not fit a section, which ends at 4 GiB");
        findings.add(Scope::Relation, draft.at.clone(), message, "this channel").help("use fewer or smaller blocks");
        return false;
    }
    draft.sized
}

/// Fills in the members; false if the channel cannot be considered further.
fn resolve_smem(draft: &mut SmemDraft, numbers: &DomainNumbers<'_>, findings: &mut Findings) -> bool {
    let Some(members) = &draft.members else { return false };
    let mut seen: HashMap<&str, &Span> = HashMap::new();
    for member in &members.value {
        draft.entry.domains.extend(numbers.number(member, findings));
        if let Some(first) = seen.insert(&member.value, &member.span) {
            let message = format!("the domain {} is a member twice", quoted(&member.value));
            findings.add(Scope::Relation, member.span.clone(), message, "second").also(first.clone(), "first");
        }
    }
    if seen.len() < 2 {
        let message = "an SMEM channel is shared by at least two domains";
        findings.add(Scope::Relation, members.span.clone(), message, format!("{} here", seen.len()));
    }
    draft.entry.domains.len() == members.value.len()
}

fn check_levels(fifos: &[FifoDraft], findings: &mut Findings) {
    for fifo in fifos {
        if let Some(at) = fifo.level_at.clone().filter(|_| fifo.entry.filter.level > fifo.entry.blocks) {
            let message =
                format!("`level` is {}, but only {} messages fit", fifo.entry.filter.level, fifo.entry.blocks);
            findings.add(Scope::Relation, at, message, "never reached").help("let it be at most `blocks`");
        }
    }
}

fn check_gates(drafts: &Drafts, findings: &mut Findings) {
    let only_processes = drafts.domains.iter().all(|domain| domain.entry.port == PortKind::LinuxProcess);
    let mut seen: HashMap<u16, Span> = HashMap::new();
    for smem in &drafts.smems {
        let (LockKind::Gate(gate), Some(at)) = (smem.entry.lock, smem.lock_at.clone()) else { continue };
        if only_processes {
            let message = "a hardware gate in a system of Linux processes, which cannot reach one";
            findings.add(Scope::Relation, at.clone(), message, "no such hardware").help("use lock = \"bakery\"");
        }
        if let Some(first) = seen.insert(gate, at.clone()) {
            let message = format!("gate {gate} guards two channels");
            findings.add(Scope::Relation, at, message, "second").also(first, "first");
        }
    }
}

fn check_ports(drafts: &Drafts, findings: &mut Findings) {
    if drafts.system.address_map.is_some() {
        return;
    }
    for domain in &drafts.domains {
        if domain.entry.port != PortKind::LinuxProcess {
            let message = format!("the port of domain {} needs an address map", quoted(&domain.entry.name));
            findings
                .add(Scope::Relation, domain.port_at.clone(), message, "memory at fixed addresses")
                .help("give [system] a `base` and a `size`, such as: base = 0x7000_0000 and size = \"16 MiB\"");
        }
    }
}

fn check_doorbells(domains: &[DomainDraft], findings: &mut Findings) {
    let with_bell = domains.iter().filter_map(|domain| Some((domain, domain.doorbell_at.clone()?)));
    for (domain, at) in with_bell.filter(|(domain, _)| domain.entry.port == PortKind::LinuxProcess) {
        let message = format!("domain {} has a doorbell, but is made of Linux processes", quoted(&domain.entry.name));
        findings
            .add(Scope::Relation, at, message, "processes on one kernel wake each other through it")
            .help("leave `doorbell` out, or give the domain port = \"uio\" or \"metal\"");
    }
}

/// Checks that an address map consists of whole pages inside the address space.
pub(crate) fn check_alignment(base: &Located<u64>, size: &Located<u64>, findings: &mut Findings) {
    let page = u64::from(PAGE_BYTES);
    for (key, located) in [("base", base), ("size", size)] {
        if !located.value.is_multiple_of(page) {
            let message = format!("`{key}` is not a multiple of a page");
            findings.add(Scope::Value, located.span.clone(), message, format!("a page is {}", SIZE.write(page)));
        }
    }
    if base.value.checked_add(size.value - 1).is_none() {
        let message = "the address map overflows: `base` plus `size` passes the end of the 64-bit address space";
        findings.add(Scope::Relation, size.span.clone(), message, "too large").also(base.span.clone(), "from here");
    }
}

/// Checks that the addresses of the map, and its length, can be written in the devicetree with so many cells.
pub(crate) fn check_cells(map: &Located<AddressMap>, cells: &Located<u64>, findings: &mut Findings) {
    let AddressMap { base, bytes } = map.value;
    let last = base.saturating_add(bytes.saturating_sub(1));
    if cells.value == 1 && (last > CELL_MAX || bytes > CELL_MAX) {
        let message = format!("the address map ends at {last:#x}, which one cell of a devicetree cannot say");
        findings
            .add(Scope::Relation, map.span.clone(), message, format!("one cell ends at {CELL_MAX:#x}"))
            .also(cells.span.clone(), "one cell for an address or a length");
    }
}

/// Checks that sections and the memory map fit.
fn check_memory(
    description: &Description,
    places: &[Span],
    (map_at, cells_at): (Option<Span>, Option<Span>),
    findings: &mut Findings,
) {
    let mut fits = true;
    description.with_plan(|plan| {
        for (number, at) in (0..).zip(places) {
            if layout::section_bytes(plan, number).is_none() {
                fits = false;
                let message =
                    format!("the section of domain {} passes 4 GiB", quoted(plan.domains[usize::from(number)].name));
                findings
                    .add(Scope::Relation, at.clone(), message, "its channel ends together are too large")
                    .help("use fewer or smaller blocks in its channels");
            }
        }
    });
    if let (true, None, 1, Some(at)) = (fits, description.address_map, description.cells, cells_at) {
        let needed = MemoryMap::of(description).bytes();
        if needed > CELL_MAX {
            let message = format!("the system needs {}, which one cell of a devicetree cannot say", SIZE.write(needed));
            findings.add(Scope::Relation, at, message, "a length takes two cells");
        }
    }
    if let (true, Some(AddressMap { bytes, .. }), Some(at)) = (fits, description.address_map, map_at) {
        let needed = MemoryMap::of(description).bytes();
        if needed > bytes {
            let message =
                format!("the address map overflows: it has {}, but needs {}", SIZE.write(bytes), SIZE.write(needed));
            findings.add(Scope::Relation, at, message, format!("at least \"{}\" is needed", SIZE.write(needed)));
        }
    }
}

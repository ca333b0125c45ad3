//! The plan's hash: BLAKE3 over a canonical byte form of everything that a description means.
//!
//! What you may rely on: comments, formatting, the order of keys and of tables of different kinds, and defaults written
//! out or left out do not change the hash. Every value, every name, the order of domains and of channels of one kind,
//! and the layout's version do. Nodes
//! have a hash of their own: adding them to a description changes no plan.
//!
//! How it works: docs/description.md lists the byte form. Integers are little-endian; a text or list is preceded by its
//! length as `u32`, so no two descriptions have the same bytes.

use musubi_core::layout;
use musubi_core::plan::{Doorbell, Level, LockKind, OnRestart, PortKind, Regulation, Role, Trust};

use musubi_transport::topology::Topology;

use crate::Description;
use crate::description::{DomainEntry, FifoEntry, SmemEntry};

/// Separates this use of BLAKE3 from others, and one canonical form from the next.
const TAG: &[u8] = b"musubi plan, canonical form 1\0";
const TOPOLOGY_TAG: &[u8] = b"musubi nodes, canonical form 1\0";

/// The hash of a description, without regard to its `hash` field.
pub(crate) fn hash(description: &Description) -> u64 {
    let mut form = Form(TAG.to_vec());
    form.number(layout::VERSION);
    form.text(&description.name);
    form.long(description.liveness.heartbeat_ns);
    form.long(description.liveness.stalled_ns);
    form.list(&description.domains, domain);
    form.list(&description.fifos, fifo);
    form.list(&description.smems, smem);
    form.list(description.address_map.as_slice(), |form, map| {
        form.long(map.base);
        form.long(map.bytes);
    });
    doorbells(&mut form, &description.domains);
    form.digest()
}

/// The hash of a topology, without regard to its `hash` field and to where certificates and keys lie on this machine;
/// never 0, which stands for the built-in single machine.
pub(crate) fn topology_hash(topology: &Topology) -> u64 {
    let mut form = Form(TOPOLOGY_TAG.to_vec());
    form.text(&topology.system);
    let network = &topology.network;
    for switch in [network.insecure, network.tls_on_loopback, network.priorities] {
        form.number(u32::from(switch));
    }
    for number in
        [network.heartbeat_ms, network.silence_ms, network.resume_ms, network.piece_bytes, network.window_bytes]
    {
        form.number(number);
    }
    let nodes: Vec<_> = topology.nodes.iter().collect();
    form.list(&nodes, |form, (id, place)| {
        form.number(id.domain());
        form.number(id.node());
        form.text(&place.name);
        form.list(place.shared_memory.as_slice(), |form, machine| form.text(machine));
        form.list(place.tcp.as_slice(), |form, address| form.text(address));
    });
    rules(&mut form, topology);
    intakes(&mut form, topology);
    form.digest().max(1)
}

/// Nothing where no node has one, so that the hashes of systems without rules stay what they were.
fn rules(form: &mut Form, topology: &Topology) {
    let of_nodes = topology.nodes.iter().flat_map(|(id, place)| place.rules.iter().map(move |rule| (id, rule)));
    let rules: Vec<_> = of_nodes.collect();
    if rules.is_empty() {
        return;
    }
    form.list(&rules, |form, (id, rule)| {
        form.number(id.domain());
        form.number(id.node());
        form.number(u32::from(rule.class.class()));
        form.number(rule.filter.every);
        form.long(rule.filter.interval_ns_min);
        form.long(rule.filter.latest_ns);
        regulation(form, &rule.regulation);
    });
}

/// Nothing where no node has one, likewise.
fn intakes(form: &mut Form, topology: &Topology) {
    let of_nodes = topology.nodes.iter().flat_map(|(id, place)| place.intakes.iter().map(move |intake| (id, intake)));
    let intakes: Vec<_> = of_nodes.collect();
    if intakes.is_empty() {
        return;
    }
    form.list(&intakes, |form, (id, intake)| {
        form.number(id.domain());
        form.number(id.node());
        form.number(u32::from(intake.class.class()));
        regulation(form, &intake.regulation);
    });
}

fn domain(form: &mut Form, entry: &DomainEntry) {
    form.text(&entry.name);
    form.number(match entry.role {
        Role::Master => 0,
        Role::Remote => 1,
    });
    form.number(port_code(entry.port));
    form.number(match entry.trust {
        Trust::Trusted => 0,
        Trust::MayCrash => 1,
        Trust::Hostile => 2,
    });
    form.number(u32::from(entry.participants));
    form.list(&entry.uids, |form, uid| form.number(*uid));
    form.list(&entry.gids, |form, gid| form.number(*gid));
    form.number(entry.spin_ns);
}

/// Nothing where no domain has one: most systems need none, and their hashes stay what they were before there were any.
fn doorbells(form: &mut Form, domains: &[DomainEntry]) {
    let with_number = (0u32..).zip(domains);
    let bells: Vec<(u32, Doorbell)> =
        with_number.filter_map(|(number, domain)| Some((number, domain.doorbell?))).collect();
    if bells.is_empty() {
        return;
    }
    form.list(&bells, |form, (domain, bell)| {
        form.number(*domain);
        form.number(bell.interrupt);
        form.long(bell.register);
        form.number(bell.value);
    });
    let levels: Vec<(u32, Level)> = bells.iter().filter_map(|(domain, bell)| Some((*domain, bell.level?))).collect();
    if levels.is_empty() {
        return;
    }
    form.list(&levels, |form, (domain, level)| {
        form.number(*domain);
        form.long(level.acknowledge);
        form.long(level.unmask);
        form.number(level.value);
    });
}

fn fifo(form: &mut Form, entry: &FifoEntry) {
    form.text(&entry.name);
    for number in [u32::from(entry.from), u32::from(entry.to), entry.blocks, entry.block_bytes] {
        form.number(number);
    }
    form.number(u32::from(entry.priority));
    form.number(entry.filter.every);
    form.number(entry.filter.level);
    form.long(entry.filter.interval_ns_min);
    form.long(entry.filter.latest_ns);
    regulation(form, &entry.regulation);
    form.number(entry.budget_ns);
    form.number(match entry.on_restart {
        OnRestart::Keep => 0,
        OnRestart::Drop => 1,
    });
    form.number(entry.sample_every);
}

fn regulation(form: &mut Form, bounds: &Regulation) {
    form.number(bounds.messages_per_s);
    form.number(bounds.messages_burst);
    form.long(bounds.bytes_per_s);
    form.long(bounds.bytes_burst);
}

fn smem(form: &mut Form, entry: &SmemEntry) {
    form.text(&entry.name);
    form.list(&entry.domains, |form, domain| form.number(u32::from(*domain)));
    form.number(entry.bytes);
    let (kind, gate) = match entry.lock {
        LockKind::Gate(gate) => (1, u32::from(gate)),
        // Bakery; a new kind of lock gets its own number here together with its word in the grammar.
        _ => (0, 0),
    };
    form.number(kind);
    form.number(gate);
}

fn port_code(port: PortKind) -> u32 {
    match port {
        PortKind::LinuxUio => 1,
        PortKind::Metal => 2,
        // LinuxProcess; a new port gets its own number here together with its word in the grammar.
        _ => 0,
    }
}

/// The canonical bytes so far.
struct Form(Vec<u8>);

impl Form {
    /// The first 8 bytes of the digest.
    fn digest(&self) -> u64 {
        let digest = blake3::hash(&self.0);
        let mut first = [0; 8];
        first.copy_from_slice(&digest.as_bytes()[..8]);
        u64::from_le_bytes(first)
    }

    fn number(&mut self, value: u32) {
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    fn long(&mut self, value: u64) {
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    /// A length. Counts and lengths are limited far below 2^32 by the rules.
    fn length(&mut self, length: usize) {
        self.number(u32::try_from(length).unwrap_or(u32::MAX));
    }

    fn text(&mut self, text: &str) {
        self.length(text.len());
        self.0.extend_from_slice(text.as_bytes());
    }

    fn list<T>(&mut self, entries: &[T], mut write: impl FnMut(&mut Form, &T)) {
        self.length(entries.len());
        for entry in entries {
            write(self, entry);
        }
    }
}

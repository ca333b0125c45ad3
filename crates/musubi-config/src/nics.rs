//! `[[nic]]`: the NICs of the VI Architecture, and where they are.
//!
//! How it works: as in [`crate::nodes`], whose keys for places and rules a NIC has too. Several processes may have a NIC open,
//! each is a slot of it: a node of its own, with a TCP port of its own behind the one that is written down. The NICs' nodes
//! are a topology apart from that of the `[[node]]`s, so neither can be taken for the other.

use musubi_transport::NodeId;
use musubi_transport::limits::{PLACES_MAX, SLOTS_MAX};
use musubi_transport::topology::{Place, Topology};

use crate::network::NetworkDraft;
use crate::nodes::{self, Address, NodeDraft, PlaceKind};
use crate::reader::{Key, Located, Reader, optional, required};
use crate::report::{Findings, Scope};

/// The keys of a `[[nic]]`.
pub(crate) const NIC_KEYS: &[Key] = &[
    required("name", "name = \"left\""),
    optional("at"),
    optional("machine"),
    optional("processes"),
    optional("trust"),
    optional("certificate"),
    optional("key"),
    optional("rule"),
];

/// Whether what is sent by a NIC's processes may take as long as they like.
pub(crate) const NIC_TRUSTS: &[(&str, bool)] = &[("trusted", true), ("hostile", false)];
/// Processes that may have a NIC open where the description does not say.
const PROCESSES: u16 = 4;
/// What the system of the NICs' nodes is called behind the name of the system itself, where nodes meet.
const SUFFIX: &str = "/vi";

/// A NIC as far as it could be read.
pub(crate) struct NicDraft {
    pub(crate) place: NodeDraft,
    processes: u16,
    is_trusted: bool,
}

/// A NIC of the VI Architecture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NicEntry {
    /// Its name: what programs open, and what the name service knows.
    pub name: String,
    /// How many processes may have it open at a time.
    pub processes: u16,
    /// Whether its processes are trusted by those that they send to: these fetch large payloads from where they lie.
    pub is_trusted: bool,
}

/// The NICs of a description.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Nics {
    /// In the order of the description; their numbers are their places here.
    pub entries: Vec<NicEntry>,
    /// Where their slots are.
    pub topology: Topology,
}

/// Reads one table.
pub(crate) fn read(reader: &Reader<'_>, findings: &mut Findings) -> NicDraft {
    let processes = reader.integer("processes", 1..=u64::from(SLOTS_MAX), findings);
    let processes = processes.map_or(PROCESSES, |processes| processes.value as u16);
    let is_trusted = reader.choice("trust", NIC_TRUSTS, findings).is_some_and(|trust| trust.value);
    NicDraft { place: nodes::read_place((PlaceKind::Nic, None), reader, findings), processes, is_trusted }
}

/// Where all slots of the NICs listen.
pub(crate) fn addresses(nics: &[NicDraft], findings: &mut Findings) -> Vec<Located<Address>> {
    let mut addresses = Vec::new();
    for nic in nics {
        let Some(tcp) = &nic.place.tcp else { continue };
        match tcp.value.port.checked_add(nic.processes - 1) {
            None => {
                let message = format!("{} processes need as many ports from {} on", nic.processes, tcp.value.port);
                findings.add(Scope::Relation, tcp.span.clone(), message, "the last would be above 65535");
            }
            Some(last) => addresses.extend((tcp.value.port..=last).map(|port| {
                let value = Address { host: tcp.value.host.clone(), port };
                Located { value, span: tcp.span.clone() }
            })),
        }
    }
    addresses
}

/// Checks the NICs against each other and against what `[network]` says.
pub(crate) fn check(nics: &[NicDraft], network: &NetworkDraft, findings: &mut Findings) {
    let places: Vec<&NodeDraft> = nics.iter().map(|nic| &nic.place).collect();
    nodes::check_keys(&places, network, findings);
    nodes::check_rules(&places, network, findings);
    if let Some(first_too_many) = places.get(usize::from(PLACES_MAX)) {
        let message = format!("{} NICs, but at most {PLACES_MAX} are possible", places.len());
        findings.add(Scope::Relation, first_too_many.at.clone(), message, "one too many");
    }
}

/// The NICs of a checked description, their topology still without its hash.
pub(crate) fn nics(drafts: Vec<NicDraft>, topology: &Topology) -> Nics {
    let mut of_nics = Topology {
        system: topology.system.clone() + SUFFIX,
        hash: 0,
        nodes: std::collections::BTreeMap::new(),
        network: topology.network.clone(),
    };
    let mut entries = Vec::new();
    for (number, draft) in drafts.into_iter().enumerate() {
        let NicDraft { place, processes, is_trusted } = draft;
        let address = place.tcp.as_ref().map(|tcp| tcp.value.clone());
        let place = place.place();
        entries.push(NicEntry { name: place.name.clone(), processes, is_trusted });
        for slot in 0..processes {
            let at = |first: &Address| Address { port: first.port.saturating_add(slot), ..first.clone() };
            let slot_place = Place {
                name: if processes == 1 { place.name.clone() } else { format!("{}-{slot}", place.name) },
                tcp: address.as_ref().map(|first| at(first).text()),
                ..place.clone()
            };
            if let Some(node) = NodeId::of_slot(number as u16, slot) {
                of_nics.nodes.insert(node, slot_place);
            }
        }
    }
    Nics { entries, topology: of_nics }
}

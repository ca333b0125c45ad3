//! `[[node]]`: which node is where, and what must hold among the nodes.
//!
//! How it works: as in [`crate::grammar`] and [`crate::rules`]: tables become drafts, drafts are checked against each
//! other, and the sound ones become a [`Topology`].

use std::collections::HashMap;
use std::net::IpAddr;
use std::path::Path;

use musubi_transport::limits::{DOMAIN_MAX, NODE_MAX, TOOL_DOMAIN, TOOL_NODES};
use musubi_transport::topology::{ClassIntake, ClassRule, Place, Topology};
use musubi_transport::{NodeId, Priority};
use toml::Spanned;
use toml::de::DeValue;

use crate::guarantees::{filter, intake, regulation};
use crate::network::{NetworkDraft, path};
use crate::reader::{Key, Located, Reader, optional, quoted, required, tables, wrong_type};
use crate::report::{Findings, Scope, Span};

/// The keys of a `[[node]]`.
pub(crate) const NODE_KEYS: &[Key] = &[
    required("domain", "domain = 0"),
    required("node", "node = 1"),
    optional("name"),
    optional("at"),
    optional("machine"),
    optional("certificate"),
    optional("key"),
    optional("rule"),
];

/// The keys of a `[[node.rule]]`, and of the filter in it.
const RULE_KEYS: &[Key] = &[required("class", "class = 4"), optional("regulation"), optional("filter")];
/// The keys of a `[[nic.rule]]`.
const NIC_RULE_KEYS: &[Key] =
    &[required("class", "class = 4"), optional("regulation"), optional("filter"), optional("intake")];
const RULE_FILTER_KEYS: &[Key] = &[optional("every"), optional("interval"), optional("latest")];
/// What is described: it says which rules there are.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum PlaceKind {
    Node,
    Nic,
}

/// Class 0 of nodes carries what the others need to go on; VIs have it for messages.
const RULE_CLASSES: std::ops::RangeInclusive<u64> = 1..=Priority::LEAST_URGENT.class() as u64;

const SHARED_MEMORY: &str = "shm";
const TCP: &str = "tcp://";
/// Longest `host:port`: a name of the domain name system has at most 253 characters.
const ADDRESS_BYTES_MAX: usize = 260;

/// A node as far as it could be read.
pub(crate) struct NodeDraft {
    id: Option<NodeId>,
    pub(crate) name: Option<Located<String>>,
    pub(crate) machine: Option<Located<String>>,
    shared_memory: bool,
    pub(crate) tcp: Option<Located<Address>>,
    certificate: Option<Located<String>>,
    key: Option<Located<String>>,
    rules: Vec<Located<ClassRule>>,
    intakes: Vec<ClassIntake>,
    pub(crate) at: Span,
}

/// Where a node listens.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct Address {
    pub(crate) host: String,
    pub(crate) port: u16,
}

impl Address {
    /// As programs take it: an IPv6 address stands in brackets.
    pub(crate) fn text(&self) -> String {
        let Address { host, port } = self;
        if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
    }

    fn is_loopback(&self) -> bool {
        self.host == "localhost" || self.host.parse().is_ok_and(|address: IpAddr| address.is_loopback())
    }
}

/// Reads one table.
pub(crate) fn read(reader: &Reader<'_>, findings: &mut Findings) -> NodeDraft {
    let domain = reader.integer("domain", 0..=u64::from(DOMAIN_MAX), findings);
    let node = reader.integer("node", 0..=u64::from(NODE_MAX), findings);
    let id = domain.zip(node).and_then(|(domain, node)| NodeId::new(domain.value as u32, node.value as u32));
    read_place((PlaceKind::Node, id), reader, findings)
}

/// Reads where a node is and what holds there: all keys but those that number it.
pub(crate) fn read_place(
    (kind, id): (PlaceKind, Option<NodeId>),
    reader: &Reader<'_>,
    findings: &mut Findings,
) -> NodeDraft {
    let (table, example, keys) = match kind {
        PlaceKind::Node => ("node.rule", "a [[node.rule]]", RULE_KEYS),
        PlaceKind::Nic => ("nic.rule", "a [[nic.rule]]", NIC_RULE_KEYS),
    };
    let tables = tables(reader, "rule", table, example, keys, findings);
    let rules: Vec<_> = tables.iter().filter_map(|reader| rule(kind, reader, findings)).collect();
    let (rules, intakes): (Vec<_>, Vec<_>) = rules.into_iter().unzip();
    let mut draft = NodeDraft {
        id,
        name: reader.text("name", findings),
        machine: reader.text("machine", findings).filter(|machine| !machine.value.is_empty()),
        shared_memory: false,
        tcp: None,
        certificate: path(reader, "certificate", findings),
        key: path(reader, "key", findings),
        rules,
        intakes: intakes.into_iter().filter(|intake: &ClassIntake| !intake.regulation.is_none()).collect(),
        at: reader.span.clone(),
    };
    match reader.value("at") {
        None => draft.shared_memory = true,
        Some(value) => places(value, &mut draft, findings),
    }
    draft
}

/// What holds for the frames of one class.
fn rule(kind: PlaceKind, reader: &Reader<'_>, findings: &mut Findings) -> Option<(Located<ClassRule>, ClassIntake)> {
    let classes = if kind == PlaceKind::Nic { 0..=*RULE_CLASSES.end() } else { RULE_CLASSES };
    let class = reader.integer("class", classes, findings);
    let (filter, _) = filter(reader, RULE_FILTER_KEYS, findings);
    let regulation = regulation(reader, 1, findings);
    let intake = if kind == PlaceKind::Nic { intake(reader, findings) } else { musubi_core::plan::Regulation::NONE };
    if ["filter", "regulation", "intake"].iter().all(|key| reader.value(key).is_none()) {
        let problem = findings.add(Scope::Relation, reader.span.clone(), "a rule that says nothing", "nothing bounded");
        problem.help("give it a `regulation`, a `filter`, or both");
    }
    let class = class.and_then(|class| Priority::new(class.value as u8))?;
    if let (Priority::MOST_URGENT, Some(value)) = (class, reader.value("filter")) {
        let message = "a `filter` of class 0, whose frames always wake";
        findings.add(Scope::Relation, value.span(), message, "the most urgent class").help("leave it out");
    }
    let rule = Located { value: ClassRule { class, regulation, filter }, span: reader.span.clone() };
    Some((rule, ClassIntake { class, regulation: intake }))
}

fn places(value: &Spanned<DeValue<'_>>, draft: &mut NodeDraft, findings: &mut Findings) {
    let Some(list) = value.get_ref().as_array() else {
        return place(value, draft, findings);
    };
    if list.is_empty() {
        let message = "`at` is an empty list: nobody could reach the node";
        findings.add(Scope::Value, value.span(), message, "no place").help("leave it out for \"shm\"");
    }
    for value in list.iter() {
        place(value, draft, findings);
    }
}

/// Takes note of one place: `"shm"` or `"tcp://host:port"`.
fn place(value: &Spanned<DeValue<'_>>, draft: &mut NodeDraft, findings: &mut Findings) {
    let Some(text) = value.get_ref().as_str() else {
        return wrong_type(value, "a place is \"shm\" or \"tcp://host:port\"", findings);
    };
    let twice = if text == SHARED_MEMORY {
        std::mem::replace(&mut draft.shared_memory, true)
    } else {
        let known = draft.tcp.is_some();
        if let Some(address) = address(text, value.span(), findings) {
            draft.tcp = Some(Located { value: address, span: value.span() });
        }
        known
    };
    if twice {
        let message = "a node has at most one place of a kind";
        findings.add(Scope::Relation, value.span(), message, "second of its kind");
    }
}

fn address(text: &str, at: Span, findings: &mut Findings) -> Option<Address> {
    let fault = match read_address(text) {
        Ok(address) => return Some(address),
        Err(fault) => fault,
    };
    findings
        .add(Scope::Value, at, format!("not a place: {}", quoted(text)), fault)
        .help("a place is \"shm\" or \"tcp://host:port\", such as \"tcp://10.0.0.7:7400\" or \"tcp://[fd00::7]:7400\"");
    None
}

fn read_address(text: &str) -> Result<Address, &'static str> {
    let rest = text.strip_prefix(TCP).ok_or("neither \"shm\" nor \"tcp://...\"")?;
    let (host, port) = rest.rsplit_once(':').ok_or("the port is missing")?;
    let port = port.parse().ok().filter(|port| *port != 0).ok_or("the port is a number from 1 to 65535")?;
    let host = match host.strip_prefix('[') {
        Some(host) => host.strip_suffix(']').ok_or("the bracket is not closed")?,
        None if host.contains(':') => return Err("an IPv6 address stands in brackets"),
        None => host,
    };
    let sound = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | ':' | '%');
    if host.is_empty() || host.len() > ADDRESS_BYTES_MAX || !host.chars().all(sound) {
        return Err("the host is a name or an address");
    }
    if host.chars().all(|c| c.is_ascii_digit() || c == '.') && host.parse::<IpAddr>().is_err() {
        return Err("an IPv4 address is four numbers from 0 to 255");
    }
    if host.parse().is_ok_and(|address: IpAddr| address.is_unspecified()) {
        return Err("others could not connect to this address: name the one that they use");
    }
    Ok(Address { host: host.to_owned(), port })
}

/// Checks the nodes against each other and against what `[network]` says. What `also` listens at is taken too.
pub(crate) fn check(nodes: &[NodeDraft], also: &[Located<Address>], network: &NetworkDraft, findings: &mut Findings) {
    check_numbers(nodes, findings);
    check_addresses(nodes.iter().filter_map(|node| node.tcp.as_ref()).chain(also), findings);
    let nodes: Vec<&NodeDraft> = nodes.iter().collect();
    check_keys(&nodes, network, findings);
    check_rules(&nodes, network, findings);
}

pub(crate) fn check_rules(nodes: &[&NodeDraft], draft: &NetworkDraft, findings: &mut Findings) {
    for node in nodes {
        for (place, rule) in node.rules.iter().enumerate() {
            if let Some(first) = node.rules[..place].iter().find(|first| first.value.class == rule.value.class) {
                let message = format!("two rules of a node for class {}", rule.value.class.class());
                findings
                    .add(Scope::Relation, rule.span.clone(), message, "second")
                    .also(first.span.clone(), "first")
                    .help("write both `regulation` and `filter` into one");
            }
            if !draft.network.priorities && !rule.value.regulation.is_none() {
                let message = "a `regulation` of a class, but [network] says `priorities = false`";
                let label = "what it holds would hold up all others";
                findings.add(Scope::Relation, rule.span.clone(), message, label);
            }
        }
    }
}

fn check_numbers(nodes: &[NodeDraft], findings: &mut Findings) {
    let mut seen: HashMap<NodeId, &Span> = HashMap::new();
    for (node, id) in nodes.iter().filter_map(|node| Some((node, node.id?))) {
        if let Some(first) = seen.insert(id, &node.at) {
            let message = format!("two nodes are {id}");
            findings.add(Scope::Relation, node.at.clone(), message, "second").also(first.clone(), "first");
        }
        if id.is_tool() {
            let (first, last) = (TOOL_NODES.start(), TOOL_NODES.end());
            let message = format!("node {id} is kept for tools");
            let label = format!("nodes {first} to {last} of domain {TOOL_DOMAIN} are");
            findings.add(Scope::Relation, node.at.clone(), message, label);
        }
    }
}

fn check_addresses<'d>(listening: impl Iterator<Item = &'d Located<Address>>, findings: &mut Findings) {
    let mut seen: HashMap<&Address, &Span> = HashMap::new();
    for tcp in listening {
        if let Some(first) = seen.insert(&tcp.value, &tcp.span) {
            let message = format!("two nodes listen at {}", tcp.value.text());
            findings
                .add(Scope::Relation, tcp.span.clone(), message, "second")
                .also(first.clone(), "first")
                .help("give each node a port of its own");
        }
    }
}

pub(crate) fn check_keys(nodes: &[&NodeDraft], draft: &NetworkDraft, findings: &mut Findings) {
    let network = &draft.network;
    let distant = nodes.iter().filter_map(|node| node.tcp.as_ref()).find(|tcp| !tcp.value.is_loopback());
    if let (Some(tcp), None, false) = (distant, &network.keys, network.insecure) {
        let message = format!("links to {} need TLS, but there are no keys", tcp.value.text());
        findings.add(Scope::Relation, tcp.span.clone(), message, "not an address of this machine alone").help(
            "make keys with `musubi keys init` and name their directory: [network] keys = \"keys\"; \
             or say [network] insecure = true where the network itself is safe",
        );
    }
    if let (Some(at), None) = (&draft.tls_on_loopback_at, &network.keys) {
        let message = "`tls_on_loopback` without keys";
        findings.add(Scope::Relation, at.clone(), message, "TLS needs certificates").help("name them: keys = \"keys\"");
    }
    for node in nodes {
        let (one, other, missing) = match (&node.certificate, &node.key) {
            (Some(certificate), None) => ("certificate", certificate, "key"),
            (None, Some(key)) => ("key", key, "certificate"),
            _ => continue,
        };
        let message = format!("`{one}` without `{missing}`: a node needs both or neither");
        findings.add(Scope::Relation, other.span.clone(), message, format!("`{missing}` is missing"));
    }
}

/// The topology, still without its hash. Nodes that could not be read are left out.
pub(crate) fn topology(system: String, network: NetworkDraft, nodes: Vec<NodeDraft>) -> Topology {
    let nodes = nodes.into_iter().filter_map(|draft| Some((draft.id?, draft.place()))).collect();
    Topology { system, hash: 0, nodes, network: network.network }
}

impl NodeDraft {
    /// Where it is, as links have it.
    pub(crate) fn place(self) -> Place {
        let mut rules: Vec<ClassRule> = self.rules.into_iter().map(|rule| rule.value).collect();
        rules.sort_by_key(|rule| rule.class);
        let mut intakes = self.intakes;
        intakes.sort_by_key(|intake| intake.class);
        let machine = self.machine.map(|machine| machine.value).unwrap_or_default();
        Place {
            name: self.name.map(|name| name.value).unwrap_or_default(),
            shared_memory: self.shared_memory.then_some(machine),
            tcp: self.tcp.map(|tcp| tcp.value.text()),
            certificate: self.certificate.map(|path| path.value),
            key: self.key.map(|path| path.value),
            rules,
            intakes,
        }
    }
}

/// Makes relative paths relative to `directory`.
pub(crate) fn locate(topology: &mut Topology, directory: &Path) {
    let places = topology.nodes.values_mut().flat_map(|place| [&mut place.certificate, &mut place.key]);
    for path in places.chain([&mut topology.network.keys]).flatten() {
        *path = directory.join(&*path).to_string_lossy().into_owned();
    }
}

/// Machines whose nodes without a TCP address cannot reach those of the other machines listed here; empty if all nodes
/// reach each other.
pub(crate) fn islands(topology: &Topology) -> Vec<(&str, NodeId)> {
    let mut islands: Vec<(&str, NodeId)> = Vec::new();
    for (id, place) in topology.nodes.iter().filter(|(_, place)| place.tcp.is_none()) {
        let machine = place.shared_memory.as_deref().unwrap_or_default();
        if !islands.iter().any(|(known, _)| *known == machine) {
            islands.push((machine, *id));
        }
    }
    if islands.len() > 1 { islands } else { Vec::new() }
}

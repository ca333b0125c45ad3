//! Nodes by name: what a command line calls them.

use musubi_mcapi::limits::{DOMAIN_MAX, NODE_MAX};
use musubi_transport::NodeId;
use musubi_transport::topology::Topology;

use crate::failure::Failure;

/// Names differ by at most this part of their letters to be suggested.
const SIMILARITY_MIN: f64 = 0.7;

/// The node that is meant by `DOMAIN:NODE` or by its name in the description.
///
/// # Errors
/// There is none; says which there are, or how one is written.
pub fn named(topology: &Topology, text: &str) -> Result<NodeId, Failure> {
    if let Some((_, id)) = topology.nodes.iter().map(|(id, place)| (&place.name, *id)).find(|(name, _)| *name == text) {
        return Ok(id);
    }
    let Some((domain, node)) = text.split_once(':') else { return Err(unknown(topology, text)) };
    let numbers = domain.parse().ok().zip(node.parse().ok());
    let Some(id) = numbers.and_then(|(domain, node)| NodeId::new(domain, node)) else {
        let help = format!("a node is DOMAIN:NODE, from 0:0 to {DOMAIN_MAX}:{NODE_MAX}");
        return Err(Failure::new(format!("{text:?} is no node"), help));
    };
    if topology.has(id) { Ok(id) } else { Err(unknown(topology, text)) }
}

fn unknown(topology: &Topology, text: &str) -> Failure {
    if topology.nodes.is_empty() {
        return Failure::new(
            format!("{text:?} is no node"),
            "a node is DOMAIN:NODE, such as 0:1; names need a description",
        );
    }
    let what = format!("system {:?} has no node {text:?}", topology.system);
    let names = topology.nodes.values().map(|place| place.name.as_str()).filter(|name| !name.is_empty());
    let similarity = |name: &&str| strsim::jaro_winkler(name, text);
    let nearest = names.max_by(|one, other| similarity(one).total_cmp(&similarity(other)));
    match nearest.filter(|nearest| similarity(nearest) >= SIMILARITY_MIN) {
        Some(nearest) => Failure::new(what, format!("did you mean {nearest:?}?")),
        None => Failure::new(what, "`musubi node ls` shows the nodes"),
    }
}

/// A node for people: `0:1 (control)`.
pub fn shown(topology: &Topology, id: NodeId) -> String {
    match topology.nodes.get(&id).map(|place| place.name.as_str()) {
        None | Some("") => id.to_string(),
        Some(name) => format!("{id} ({name})"),
    }
}

#[cfg(test)]
mod tests {
    use musubi_transport::topology::Place;

    use super::*;

    #[test]
    fn nodes_have_numbers_and_names() {
        let mut topology = Topology::single_machine();
        let id = |domain, node| NodeId::new(domain, node).unwrap();
        assert_eq!(named(&topology, "3:7").ok(), Some(id(3, 7)));
        assert!(["3", "32:0", "0:1024", "a:b", "1:2:3", ""].iter().all(|text| named(&topology, text).is_err()));
        topology.nodes.insert(id(0, 1), Place { name: "control".into(), ..Place::default() });
        assert_eq!(named(&topology, "control").ok(), Some(id(0, 1)));
        assert_eq!(named(&topology, "0:1").ok(), Some(id(0, 1)));
        assert!(named(&topology, "3:7").is_err());
        assert_eq!(shown(&topology, id(0, 1)), "0:1 (control)");
    }
}

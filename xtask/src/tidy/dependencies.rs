//! Rules about which crate may depend on which.

use std::collections::BTreeSet;

use super::tree::{Package, Tree};
use super::{Finding, documents};

/// Crates that offer an interface and know nothing of what carries it.
const INTERFACES: [&str; 3] = ["musubi-mdcom", "musubi-mcapi", "musubi-vipl"];
/// Crates that carry the core on some platform and know nothing of interfaces.
const PORTS: [&str; 2] = ["musubi-linux", "musubi-metal"];
/// The crate below all others.
const CORE: &str = "musubi-core";

/// Interfaces and ports meet only in programs; and in the examples of an interface's documentation, which run as tests.
pub fn interfaces_and_ports_do_not_meet(tree: &Tree) -> Vec<Finding> {
    let mut findings = forbidden(tree, &INTERFACES, &PORTS, "an interface crate must not depend on a port");
    findings.extend(forbidden(tree, &PORTS, &INTERFACES, "a port must not depend on an interface crate"));
    findings
}

fn forbidden(tree: &Tree, from: &[&str], to: &[&str], rule: &str) -> Vec<Finding> {
    let package_finds = |p: &Package| {
        let built_with = p.dependencies.iter().filter(|d| d.kind.as_deref() != Some("dev"));
        let names = built_with.filter(|d| to.contains(&d.name.as_str()));
        names.map(|d| Finding::new(&p.manifest_path, format!("{rule}: {}", d.name))).collect::<Vec<_>>()
    };
    tree.packages.iter().filter(|p| from.contains(&p.name.as_str())).flat_map(package_finds).collect()
}

/// The core stands alone.
pub fn core_depends_on_no_workspace_crate(tree: &Tree) -> Vec<Finding> {
    let core = tree.packages.iter().filter(|p| p.name == CORE);
    core.flat_map(|p| p.dependencies.iter().filter(|d| d.path.is_some()).map(move |d| (p, d)))
        .map(|(p, d)| Finding::new(&p.manifest_path, format!("the core must not depend on {}", d.name)))
        .collect()
}

/// Each crate from outside is named, with its reason, in the document on dependencies.
pub fn outside_dependencies_are_documented(tree: &Tree) -> Vec<Finding> {
    let document = tree.files.get(documents::DEPENDENCIES).map_or("", String::as_str);
    let outside = tree.packages.iter().flat_map(|p| &p.dependencies).filter(|d| d.path.is_none());
    let names: BTreeSet<&str> = outside.map(|d| d.name.as_str()).collect();
    let unnamed = names.into_iter().filter(|name| !document.contains(&format!("`{name}`")));
    unnamed.map(|name| Finding::new(documents::DEPENDENCIES, format!("does not name `{name}`"))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interface_on_a_port_is_found() {
        let tree = Tree::default().with_package("musubi-mdcom", &["musubi-core", "musubi-linux"]);
        assert_eq!(interfaces_and_ports_do_not_meet(&tree).len(), 1);
    }

    #[test]
    fn what_only_tests_are_built_with_may_be_a_port() {
        let mut tree = Tree::default().with_package("musubi-mdcom", &["musubi-core", "musubi-linux"]);
        for (kind, findings) in [(Some("dev"), 0), (Some("build"), 1)] {
            tree.packages[0].dependencies[1].kind = kind.map(str::to_owned);
            assert_eq!(interfaces_and_ports_do_not_meet(&tree).len(), findings, "{kind:?}");
        }
    }

    #[test]
    fn a_port_on_an_interface_is_found() {
        let tree = Tree::default().with_package("musubi-metal", &["musubi-vipl"]);
        assert_eq!(interfaces_and_ports_do_not_meet(&tree).len(), 1);
    }

    #[test]
    fn programs_may_have_both() {
        let tree = Tree::default().with_package("musubi-cli", &["musubi-mdcom", "musubi-linux"]);
        assert!(interfaces_and_ports_do_not_meet(&tree).is_empty());
    }

    #[test]
    fn a_core_that_leans_on_a_workspace_crate_is_found() {
        let tree = Tree::default().with_package("musubi-core", &["loom", "musubi-config"]);
        assert_eq!(core_depends_on_no_workspace_crate(&tree).len(), 1);
    }

    #[test]
    fn an_unnamed_outside_dependency_is_found() {
        let document = [(documents::DEPENDENCIES, "| `clap` | the command line |")];
        let tree = Tree::of(&document).with_package("musubi-cli", &["clap", "serde", "musubi-core"]);
        let findings = outside_dependencies_are_documented(&tree);
        assert_eq!(findings.len(), 1);
        assert!(findings[0].text.contains("`serde`"));
    }
}

//! The shape of the tree: folders that can be seen at a glance, type names that mean one thing, a map that is true.

use std::collections::{BTreeMap, BTreeSet};

use syn::visit::{self, Visit};

use super::ratchet::{RATCHET, Ratchet};
use super::{Finding, Tree};

/// Most Rust files of one folder.
const FOLDER_FILES_MAX: usize = 20;
/// Most types of one name in the crates.
const HOMONYMS_MAX: usize = 3;
/// The map.
const ARCHITECTURE: &str = "ARCHITECTURE.md";
/// Where the core's modules lie.
const CORE: &str = "crates/musubi-core/src/";
/// What of the core is not on its map: it is what everything has.
const CORE_UNMAPPED: [&str; 3] = ["lib", "error", "tests"];

/// A folder has at most 20 Rust files, except those that the ratchet names.
pub fn folders_are_seen_at_a_glance(tree: &Tree) -> Vec<Finding> {
    let ratchet = match Ratchet::of(tree) {
        Ok(ratchet) => ratchet,
        Err(finding) => return vec![finding],
    };
    let mut counts = BTreeMap::<&str, usize>::new();
    for (path, _) in tree.rust_files() {
        *counts.entry(path.rsplit_once('/').map_or("", |(folder, _)| folder)).or_default() += 1;
    }
    let accepted: BTreeMap<&str, usize> = ratchet.folder.iter().map(|f| (f.path.as_str(), f.files_max)).collect();
    judge(&counts, &accepted, FOLDER_FILES_MAX, |folder, count, max| {
        Finding::new(folder, format!("{count} Rust files in one folder, more than {max}"))
    })
}

/// A type name of the crates means at most a few things, except those that the ratchet names.
pub fn type_names_mean_one_thing(tree: &Tree) -> Vec<Finding> {
    let ratchet = match Ratchet::of(tree) {
        Ok(ratchet) => ratchet,
        Err(finding) => return vec![finding],
    };
    let names: Vec<String> =
        tree.syntax().filter(|(path, _)| is_shipped(path)).flat_map(|(_, file)| type_names(file)).collect();
    let mut counts = BTreeMap::<&str, usize>::new();
    names.iter().for_each(|name| *counts.entry(name).or_default() += 1);
    let accepted: BTreeMap<&str, usize> = ratchet.homonym.iter().map(|h| (h.name.as_str(), h.times_max)).collect();
    judge(&counts, &accepted, HOMONYMS_MAX, |name, count, max| {
        Finding::new(name, format!("{count} types have this name, more than {max}: call the new one what it is"))
    })
}

fn is_shipped(path: &str) -> bool {
    path.starts_with("crates/") && path.contains("/src/") && !path.split('/').any(|part| part == "tests")
}

/// Compares counts with their bound, or with what the ratchet accepts instead.
fn judge(
    counts: &BTreeMap<&str, usize>,
    accepted: &BTreeMap<&str, usize>,
    max: usize,
    broken: impl Fn(&str, usize, usize) -> Finding,
) -> Vec<Finding> {
    let bound = |name: &str| accepted.get(name).copied().unwrap_or(max);
    let over = counts.iter().filter(|(name, count)| **count > bound(name));
    let mut findings: Vec<Finding> = over.map(|(name, count)| broken(name, *count, bound(name))).collect();
    for (name, listed) in accepted {
        let count = counts.get(name).copied().unwrap_or(0);
        if count < *listed {
            let advice = if count <= max { "remove the entry".to_owned() } else { format!("{count} now: tighten it") };
            findings.push(Finding::warning(RATCHET, format!("{name}: {advice}")));
        }
    }
    findings
}

/// Names of the types that a file defines outside tests.
fn type_names(file: &syn::File) -> Vec<String> {
    struct Types(Vec<String>);
    impl<'ast> Visit<'ast> for Types {
        fn visit_item_struct(&mut self, item: &'ast syn::ItemStruct) {
            self.0.push(item.ident.to_string());
        }
        fn visit_item_enum(&mut self, item: &'ast syn::ItemEnum) {
            self.0.push(item.ident.to_string());
        }
        fn visit_item_trait(&mut self, item: &'ast syn::ItemTrait) {
            self.0.push(item.ident.to_string());
        }
        fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
            if item.ident != "tests" {
                visit::visit_item_mod(self, item);
            }
        }
    }
    let mut types = Types(Vec::new());
    types.visit_file(file);
    types.0
}

/// The map in ARCHITECTURE.md has every crate and every module of the core, and nothing else.
pub fn the_map_equals_the_tree(tree: &Tree) -> Vec<Finding> {
    let Some(document) = tree.files.get(ARCHITECTURE) else { return Vec::new() };
    let crates =
        tree.files.keys().filter_map(|path| path.strip_prefix("crates/")?.split_once('/').map(|(name, _)| name));
    let modules = tree.rust_files().filter_map(|(path, _)| {
        let first = path.strip_prefix(CORE)?.split('/').next()?;
        Some(first.strip_suffix(".rs").unwrap_or(first)).filter(|name| !CORE_UNMAPPED.contains(name))
    });
    let mapped_crates = mapped(document, "## Map").into_iter().filter(|name| name.starts_with("musubi-")).collect();
    let mut findings = differences("crate", &crates.collect(), &mapped_crates);
    findings.extend(differences("module", &modules.collect(), &mapped(document, "Inside `musubi-core`")));
    findings
}

/// The first cells of the table that follows a line, without their code marks.
fn mapped<'d>(document: &'d str, after: &str) -> BTreeSet<&'d str> {
    let lines = document.lines().skip_while(|line| !line.starts_with(after)).skip(1);
    let table = lines.skip_while(|line| !line.starts_with('|')).take_while(|line| line.starts_with('|'));
    table.filter_map(|line| line.strip_prefix("| `")?.split('`').next()).collect()
}

fn differences(kind: &str, tree: &BTreeSet<&str>, map: &BTreeSet<&str>) -> Vec<Finding> {
    let absent = tree.difference(map).map(|name| format!("the map lacks the {kind} `{name}`"));
    let gone = map.difference(tree).map(|name| format!("the map names a {kind} `{name}` that is not there"));
    absent.chain(gone).map(|text| Finding::new(ARCHITECTURE, text)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crowded_folder_is_found() {
        let paths: Vec<String> = (0..21).map(|number| format!("crates/a/src/f{number}.rs")).collect();
        let files: Vec<(&str, &str)> = paths.iter().map(|path| (path.as_str(), "")).collect();
        let findings = folders_are_seen_at_a_glance(&Tree::of(&files));
        assert_eq!(findings[0].place, "crates/a/src");
        assert_eq!(folders_are_seen_at_a_glance(&Tree::of(&files[1..])), []);
        let entry = (RATCHET, "[[folder]]\npath = 'crates/a/src'\nfiles_max = 21\n");
        assert_eq!(folders_are_seen_at_a_glance(&Tree::of(&[&files[..], &[entry]].concat())), []);
    }

    #[test]
    fn a_fourth_type_of_one_name_is_found() {
        let texts = ["struct Place;", "enum Place {}", "trait Place {}", "mod inner { struct Place; }"];
        let paths: Vec<String> = (0..4).map(|number| format!("crates/a/src/f{number}.rs")).collect();
        let files: Vec<(&str, &str)> = paths.iter().map(String::as_str).zip(texts).collect();
        assert_eq!(type_names_mean_one_thing(&Tree::of(&files))[0].place, "Place");
        assert_eq!(type_names_mean_one_thing(&Tree::of(&files[1..])), []);
        let entry = (RATCHET, "[[homonym]]\nname = 'Place'\ntimes_max = 4\n");
        assert_eq!(type_names_mean_one_thing(&Tree::of(&[&files[..], &[entry]].concat())), []);
        let slack = type_names_mean_one_thing(&Tree::of(&[&files[1..], &[entry]].concat()));
        assert!(slack[0].only_warns && slack[0].text.contains("remove"), "{slack:?}");
    }

    #[test]
    fn a_map_that_is_not_the_tree_is_found() {
        let map = "## Map\n\n| crate | is |\n| --- | --- |\n| `musubi-core` | x |\n| `testsuite/` | x |\n\n\
                   Inside `musubi-core`:\n\n| module | is |\n| --- | --- |\n| `plan` | x |\n| `gone` | x |\n";
        let core = ("crates/musubi-core/src/plan.rs", "");
        let findings = the_map_equals_the_tree(&Tree::of(&[(ARCHITECTURE, map), core]));
        assert_eq!(findings.len(), 1, "{findings:?}");
        assert!(findings[0].text.contains("`gone`"));
        let more =
            [(ARCHITECTURE, map), core, ("crates/musubi-new/src/lib.rs", ""), ("crates/musubi-core/src/gone/a.rs", "")];
        let findings = the_map_equals_the_tree(&Tree::of(&more));
        assert_eq!(findings[0].text, "the map lacks the crate `musubi-new`");
        assert_eq!(findings.len(), 1, "{findings:?}");
    }
}

//! No new circle of modules: what depends on each other belongs together, or one of the arrows is wrong.
//!
//! What you may rely on: a circle inside one folder is that folder's own business; one that spans several folders or
//! files of a crate's root is a finding unless the ratchet lists it, and a listed one must not take in another.
//!
//! How it works: an arrow is a path in a file's syntax tree that leads to another module of the crate, by `crate`,
//! `super` or a child's name. What only names modules for others (`pub use`, `mod`) is no arrow; neither are tests. Arrows
//! lead from file to file; circles are the strongly connected components (Tarjan, 1972); a component is judged by the
//! folders that it spans.
//!
//! What it does not do: follow a name that a module only passes on (`pub use`) to where it is made.

use std::collections::{BTreeMap, BTreeSet};

use syn::visit::{self, Visit};

use super::ratchet::{RATCHET, Ratchet};
use super::{Finding, Tree};

/// A module's path from its crate's root.
type Module = Vec<String>;

/// Circles of more than one concept are in the ratchet.
pub fn modules_have_no_new_circles(tree: &Tree) -> Vec<Finding> {
    let ratchet = match Ratchet::of(tree) {
        Ok(ratchet) => ratchet,
        Err(finding) => return vec![finding],
    };
    let mut findings = Vec::new();
    let mut used = BTreeSet::new();
    for sources in source_folders(tree) {
        for circle in circles(tree, &sources) {
            let fits = |entry: &super::ratchet::Circle| {
                entry.sources == sources && circle.iter().all(|concept| entry.concepts.contains(concept))
            };
            match ratchet.circle.iter().position(fits) {
                None => {
                    let concepts: Vec<&str> = circle.iter().map(String::as_str).collect();
                    findings.push(Finding::new(&*sources, format!("a circle of modules: {}", concepts.join(", "))));
                }
                Some(entry) if ratchet.circle[entry].concepts.len() > circle.len() => {
                    used.insert(entry);
                    findings
                        .push(Finding::warning(RATCHET, format!("a circle of {sources} is smaller now: tighten it")));
                }
                Some(entry) => drop(used.insert(entry)),
            }
        }
    }
    let gone = (0..ratchet.circle.len()).filter(|entry| !used.contains(entry));
    findings.extend(gone.map(|entry| {
        Finding::warning(RATCHET, format!("a circle of {} is gone; remove the entry", ratchet.circle[entry].sources))
    }));
    findings
}

/// `crates/NAME/src/` of every crate that has one.
fn source_folders(tree: &Tree) -> BTreeSet<String> {
    let of_crates = tree.rust_files().filter_map(|(path, _)| {
        let (name, rest) = path.strip_prefix("crates/")?.split_once('/')?;
        rest.starts_with("src/").then(|| format!("crates/{name}/src/"))
    });
    of_crates.chain(tree.files.contains_key("xtask/src/main.rs").then(|| "xtask/src/".to_owned())).collect()
}

/// The circles of more than one concept, each as the concepts in it.
fn circles(tree: &Tree, sources: &str) -> Vec<BTreeSet<String>> {
    let mut modules: BTreeMap<Module, &syn::File> = BTreeMap::new();
    for (path, file) in tree.syntax() {
        if let Some(module) = path.strip_prefix(sources).and_then(module_of) {
            modules.insert(module, file);
        }
    }
    let names: Vec<&Module> = modules.keys().collect();
    let number = |module: &Module| names.binary_search(&module).ok();
    let arrows: Vec<Vec<usize>> =
        names.iter().map(|from| leads_to(from, modules[*from], &modules).iter().filter_map(number).collect()).collect();
    let folders: BTreeSet<&[String]> = names.iter().filter_map(|module| module.split_last().map(|(_, f)| f)).collect();
    let concept = |at: usize| concept_of(names[at], &folders);
    let spans = |circle: Vec<usize>| circle.into_iter().map(concept).collect::<BTreeSet<String>>();
    components(&arrows).into_iter().map(spans).filter(|concepts| concepts.len() > 1).collect()
}

/// The module that a file below the sources is; `None` of tests.
fn module_of(path: &str) -> Option<Module> {
    let mut parts: Vec<String> = path.strip_suffix(".rs")?.split('/').map(str::to_owned).collect();
    if matches!(parts.last().map(String::as_str), Some("mod" | "lib" | "main")) {
        parts.pop();
    }
    let is_test = parts.iter().any(|part| part == "tests" || part == "bin" || part.ends_with("_tests"));
    (!is_test).then_some(parts)
}

/// The folder that a module lies in or stands for; a file of the root is a concept by itself.
fn concept_of(module: &Module, folders: &BTreeSet<&[String]>) -> String {
    match module.split_last() {
        None => "the root".to_owned(),
        Some(_) if folders.contains(&module[..]) => module.join("/"),
        Some((last, [])) => last.clone(),
        Some((_, folder)) => folder.join("/"),
    }
}

/// The modules that a module's file names, itself and its own parts left out.
fn leads_to(from: &Module, file: &syn::File, modules: &BTreeMap<Module, &syn::File>) -> BTreeSet<Module> {
    let mut paths = Paths { from, modules, found: BTreeSet::new() };
    paths.visit_file(file);
    paths.found
}

/// Collects the modules that a file's paths lead to.
struct Paths<'m> {
    from: &'m Module,
    modules: &'m BTreeMap<Module, &'m syn::File>,
    found: BTreeSet<Module>,
}

impl Paths<'_> {
    /// Takes a path; keeps the longest part of it that is a module.
    fn take(&mut self, path: &[String]) {
        let mut at = match path.first().map(String::as_str) {
            Some("crate") => Vec::new(),
            Some("super") => self.from.clone(),
            Some(first) => {
                let mut child = self.from.clone();
                child.push(first.to_owned());
                if !self.modules.contains_key(&child) {
                    return;
                }
                self.from.clone()
            }
            None => return,
        };
        for part in path {
            match part.as_str() {
                "crate" | "self" => {}
                "super" => drop(at.pop()),
                name => {
                    at.push(name.to_owned());
                    if !self.modules.contains_key(&at) {
                        at.pop();
                        break;
                    }
                }
            }
        }
        if at != *self.from {
            self.found.insert(at);
        }
    }

    fn take_use(&mut self, tree: &syn::UseTree, before: &mut Vec<String>) {
        match tree {
            syn::UseTree::Path(path) => {
                before.push(path.ident.to_string());
                self.take_use(&path.tree, before);
                before.pop();
            }
            syn::UseTree::Group(group) => group.items.iter().for_each(|item| self.take_use(item, before)),
            syn::UseTree::Name(name) => self.take(&[&before[..], &[name.ident.to_string()]].concat()),
            syn::UseTree::Rename(name) => self.take(&[&before[..], &[name.ident.to_string()]].concat()),
            syn::UseTree::Glob(_) => self.take(before),
        }
    }
}

impl<'ast> Visit<'ast> for Paths<'_> {
    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        if matches!(item.vis, syn::Visibility::Inherited) {
            self.take_use(&item.tree, &mut Vec::new());
        }
    }
    fn visit_path(&mut self, path: &'ast syn::Path) {
        if path.segments.len() > 1 {
            self.take(&path.segments.iter().map(|part| part.ident.to_string()).collect::<Vec<_>>());
        }
        visit::visit_path(self, path);
    }
    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        // Inline modules are tests here, whose `super` is this file.
        if item.ident != "tests" && item.content.is_some() {
            visit::visit_item_mod(self, item);
        }
    }
}

/// The strongly connected components with more than one member.
fn components(arrows: &[Vec<usize>]) -> Vec<Vec<usize>> {
    let reaches = |from: usize, backwards: bool| {
        let (mut seen, mut next) = (BTreeSet::from([from]), vec![from]);
        while let Some(at) = next.pop() {
            let along = arrows[at].iter().copied().filter(|_| !backwards);
            let against = (0..arrows.len()).filter(|other| backwards && arrows[*other].contains(&at));
            for to in along.chain(against) {
                if seen.insert(to) {
                    next.push(to);
                }
            }
        }
        seen
    };
    let (mut done, mut found) = (BTreeSet::<usize>::new(), Vec::new());
    for from in 0..arrows.len() {
        if done.contains(&from) {
            continue;
        }
        let together: Vec<usize> = reaches(from, false).intersection(&reaches(from, true)).copied().collect();
        done.extend(&together);
        if together.len() > 1 {
            found.push(together);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const CIRCLE: [(&str, &str); 3] = [
        ("crates/a/src/lib.rs", "mod b; mod c; pub use b::B;"),
        ("crates/a/src/b.rs", "use crate::c::C; pub struct B;"),
        ("crates/a/src/c.rs", "pub struct C; fn f(_: crate::b::B) {}"),
    ];

    fn texts(findings: &[Finding]) -> Vec<&str> {
        findings.iter().map(|finding| finding.text.as_str()).collect()
    }

    #[test]
    fn a_circle_is_found() {
        let tree = Tree::of(&CIRCLE);
        assert_eq!(texts(&modules_have_no_new_circles(&tree)), ["a circle of modules: b, c"]);
    }

    #[test]
    fn arrows_one_way_tests_and_names_for_others_are_no_circle() {
        let [root, b, _] = CIRCLE;
        let c = ("crates/a/src/c.rs", "pub struct C; #[cfg(test)] mod tests { use crate::b::B; } pub use crate::b::B;");
        assert_eq!(modules_have_no_new_circles(&Tree::of(&[root, b, c])), []);
    }

    #[test]
    fn a_circle_inside_a_folder_is_its_own_business() {
        let files = [
            ("crates/a/src/lib.rs", "mod d;"),
            ("crates/a/src/d/mod.rs", "mod b; mod c; use b::B;"),
            ("crates/a/src/d/b.rs", "use super::c::C; pub struct B;"),
            ("crates/a/src/d/c.rs", "use super::b::B; pub struct C;"),
        ];
        assert_eq!(modules_have_no_new_circles(&Tree::of(&files)), []);
    }

    #[test]
    fn the_ratchet_accepts_a_circle_and_no_larger_one() {
        let entry = "[[circle]]\nsources = 'crates/a/src/'\nconcepts = ['b', 'c']\n";
        let [root, b, c] = CIRCLE;
        assert_eq!(modules_have_no_new_circles(&Tree::of(&[root, b, c, (RATCHET, entry)])), []);
        let c = ("crates/a/src/c.rs", "pub struct C; use crate::d::D;");
        let d = ("crates/a/src/d.rs", "pub struct D; use crate::b::B;");
        let larger = modules_have_no_new_circles(&Tree::of(&[root, b, c, d, (RATCHET, entry)]));
        assert_eq!(texts(&larger)[0], "a circle of modules: b, c, d");
        let gone = modules_have_no_new_circles(&Tree::of(&[root, (RATCHET, entry)]));
        assert!(gone[0].only_warns && gone[0].text.contains("remove the entry"));
    }
}

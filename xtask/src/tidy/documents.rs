//! Rules about documents: what must exist, and what they must name.

use std::collections::BTreeSet;

use super::{Finding, Tree};

/// The document that names each outside dependency and its reason.
pub const DEPENDENCIES: &str = "docs/dependencies.md";
/// The document that explains the shared bytes.
const LAYOUT: &str = "docs/layout.md";
/// The sources that fix them.
const LAYOUT_SOURCES: [&str; 2] = ["crates/musubi-core/src/layout.rs", "crates/musubi-core/src/layout/links.rs"];
/// Modules of those sources whose constants are places in shared memory.
const LAYOUT_MODULES: [&str; 7] = ["header", "tx", "rx", "slot", "ticket", "link", "record"];
/// Documents that must exist.
const REQUIRED: [&str; 7] =
    ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md", "docs/GUARANTEES.md", LAYOUT, DEPENDENCIES];
/// The two commands that a newcomer types first.
const COMMANDS: [&str; 2] = ["cargo run --release -- demo", "cargo xtask test"];

/// The documents that other rules rely on are there.
pub fn documents_exist(tree: &Tree) -> Vec<Finding> {
    let absent = REQUIRED.iter().filter(|path| !tree.files.contains_key(**path));
    absent.map(|path| Finding::new(*path, "does not exist")).collect()
}

/// The README names every top-level directory, as `name/`, and the two first commands.
pub fn readme_names_directories_and_commands(tree: &Tree) -> Vec<Finding> {
    let Some(readme) = tree.files.get("README.md") else { return Vec::new() };
    let directories: BTreeSet<&str> = tree.files.keys().filter_map(|path| Some(path.split_once('/')?.0)).collect();
    let wanted = directories.into_iter().map(|d| format!("{d}/")).chain(COMMANDS.iter().map(|c| (*c).to_owned()));
    let unnamed = wanted.filter(|name| !readme.contains(name.as_str()));
    unnamed.map(|name| Finding::new("README.md", format!("does not name `{name}`"))).collect()
}

/// Each word of the shared layout is explained.
pub fn layout_words_are_documented(tree: &Tree) -> Vec<Finding> {
    let sources = LAYOUT_SOURCES.iter().filter_map(|path| tree.files.get(*path));
    let document = tree.files.get(LAYOUT).map_or("", String::as_str);
    let words: BTreeSet<&str> = document.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').collect();
    let unnamed = sources.flat_map(|source| layout_words(source)).filter(|(_, word)| !words.contains(word.as_str()));
    unnamed.map(|(module, word)| Finding::new(LAYOUT, format!("does not name {module}::{word}"))).collect()
}

/// Module and name of each `pub const NAME: u32` that is a place in shared memory.
fn layout_words(source: &str) -> Vec<(String, String)> {
    let items = syn::parse_file(source).map(|file| file.items).unwrap_or_default();
    let mut words = Vec::new();
    for item in items {
        let syn::Item::Mod(module) = item else { continue };
        if !LAYOUT_MODULES.contains(&module.ident.to_string().as_str()) {
            continue;
        }
        for inner in module.content.map(|(_, items)| items).unwrap_or_default() {
            if let syn::Item::Const(constant) = inner {
                words.push((module.ident.to_string(), constant.ident.to_string()));
            }
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn absent_documents_are_found() {
        let tree = Tree::of(&[("README.md", ""), (LAYOUT, "")]);
        assert_eq!(documents_exist(&tree).len(), REQUIRED.len() - 2);
    }

    #[test]
    fn a_directory_or_command_that_the_readme_forgets_is_found() {
        let readme = "`crates/` ... cargo xtask test";
        let tree = Tree::of(&[("README.md", readme), ("crates/a/src/lib.rs", ""), ("fuzz/Cargo.toml", "")]);
        let texts: Vec<String> = readme_names_directories_and_commands(&tree).into_iter().map(|f| f.text).collect();
        assert_eq!(texts, ["does not name `fuzz/`", "does not name `cargo run --release -- demo`"]);
    }

    #[test]
    fn a_word_that_the_layout_document_forgets_is_found() {
        let source = "pub mod tx { pub const BELL: u32 = 1; pub const SENT_HIGH: u32 = 2; } pub mod state { pub const A: u32 = 1; }";
        let tree = Tree::of(&[(LAYOUT_SOURCES[1], source), (LAYOUT, "| `BELL` | SENT, not SENT_HIGHER |")]);
        let findings = layout_words_are_documented(&tree);
        assert_eq!(findings, [Finding::new(LAYOUT, "does not name tx::SENT_HIGH")]);
    }
}

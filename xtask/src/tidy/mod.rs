//! The rules of the tree, as a program.
//!
//! What you may rely on: each rule has a test that breaks it on a small tree; the real tree is checked by a test too.
//!
//! How it works: the tree is read once into a [`Tree`], a plain value; each rule is a function from it to [`Finding`]s.
//! Rust sources are compared as tokens and syntax trees, never as lines of text, so comments and strings do not count.
//!
//! What it does not do: what rustfmt, rustc and clippy already do.

mod circles;
mod dependencies;
mod documents;
mod ratchet;
mod shape;
mod sources;
mod tree;
mod unsafety;

use anyhow::Result;

use crate::runner::{Context, Verdict};
pub use tree::Tree;

/// One place that breaks a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Path, with a line where there is one.
    pub place: String,
    /// What is wrong.
    pub text: String,
    /// Whether it is only worth a look.
    pub only_warns: bool,
}

impl Finding {
    /// A broken rule.
    pub fn new(place: impl Into<String>, text: impl Into<String>) -> Self {
        Self { place: place.into(), text: text.into(), only_warns: false }
    }

    /// Something close to breaking a rule.
    pub fn warning(place: impl Into<String>, text: impl Into<String>) -> Self {
        Self { only_warns: true, ..Self::new(place, text) }
    }
}

impl std::fmt::Display for Finding {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.place, self.text)
    }
}

/// A rule.
type Rule = fn(&Tree) -> Vec<Finding>;

/// Every rule.
const RULES: &[Rule] = &[
    dependencies::interfaces_and_ports_do_not_meet,
    dependencies::core_depends_on_no_workspace_crate,
    dependencies::outside_dependencies_are_documented,
    sources::sources_parse,
    sources::core_has_no_target_cfg,
    sources::core_names_atomics_in_one_file,
    sources::names_say_something,
    sources::files_are_short,
    sources::functions_are_short,
    sources::nothing_is_unfinished,
    unsafety::unsafe_stays_where_it_may_be,
    unsafety::safe_crates_forbid_unsafe,
    unsafety::each_unsafe_site_has_a_proof,
    documents::documents_exist,
    documents::readme_names_directories_and_commands,
    documents::layout_words_are_documented,
    circles::modules_have_no_new_circles,
    shape::folders_are_seen_at_a_glance,
    shape::type_names_mean_one_thing,
    shape::the_map_equals_the_tree,
];

/// Applies every rule.
pub fn check(tree: &Tree) -> Vec<Finding> {
    RULES.iter().flat_map(|rule| rule(tree)).collect()
}

/// Step: no rule is broken.
///
/// # Errors
/// If the tree cannot be read.
pub fn step(context: &Context) -> Result<Verdict> {
    let tree = Tree::read(&context.root)?;
    let (warnings, broken): (Vec<_>, Vec<_>) = check(&tree).into_iter().partition(|f| f.only_warns);
    warnings.iter().for_each(|f| println!("   warning: {f}"));
    broken.iter().for_each(|f| println!("   error: {f}"));
    println!("   {} files, {}", tree.files.len(), unsafety::summary(&tree));
    Ok(match broken.len() {
        0 => Verdict::passed(),
        n => Verdict::failed(format!("{n} broken rules, listed above")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tree_keeps_its_rules() {
        let root = Context::find(false).unwrap().root;
        let broken: Vec<_> = check(&Tree::read(&root).unwrap()).into_iter().filter(|f| !f.only_warns).collect();
        assert!(broken.is_empty(), "{}", broken.iter().map(|f| format!("{f}\n")).collect::<String>());
    }
}

//! Rules about Rust sources, and about what no text may contain.

use std::collections::BTreeMap;

use proc_macro2::{TokenStream, TokenTree};
use syn::spanned::Spanned;
use syn::visit::{self, Visit};

use super::ratchet::{self, RATCHET, Ratchet};
use super::{Finding, Tree};

/// Where the core's sources lie.
const CORE: &str = "crates/musubi-core/src/";
/// The only file of the core that may name an atomic type.
const CORE_ATOMICS: &str = "crates/musubi-core/src/sync.rs";
/// Where the core's tests over threads of the host lie, beside models.
const CORE_THREAD_TESTS: &str = "crates/musubi-core/src/smp/tests/";
/// Names that say nothing about what is inside.
const EMPTY_NAMES: [&str; 7] = ["util", "utils", "common", "helper", "helpers", "misc", "stuff"];
/// Lines of a file beyond which it should, and must, be split.
const FILE_LINES: (usize, usize) = (500, 700);
/// Longest function, in lines.
const FUNCTION_LINES_MAX: usize = 70;
/// Marks of unfinished work, written so that this list does not contain them.
const MARKS: [&str; 6] = [
    concat!("TO", "DO"),
    concat!("FIX", "ME"),
    concat!("XX", "X"),
    concat!("HA", "CK"),
    concat!("T", "BD"),
    concat!("W", "IP"),
];
/// Macros of unfinished work, likewise.
const UNFINISHED_MACROS: [&str; 2] = [concat!("to", "do!"), concat!("unimpl", "emented!")];

/// Every Rust file can be read by the rules below.
pub fn sources_parse(tree: &Tree) -> Vec<Finding> {
    let errors = tree.sources().filter_map(|(path, source)| Some((path, source.syntax.as_ref().err()?)));
    errors.map(|(path, error)| Finding::new(path, format!("does not parse: {error}"))).collect()
}

/// The core is the same on every target.
pub fn core_has_no_target_cfg(tree: &Tree) -> Vec<Finding> {
    words_in(tree, |path| path.starts_with(CORE), is_target_key, "the core must not ask for the target")
}

fn is_target_key(word: &str) -> bool {
    const KEYS: [&str; 10] =
        ["os", "arch", "family", "env", "abi", "endian", "pointer_width", "vendor", "has_atomic", "feature"];
    word.strip_prefix("target_").is_some_and(|key| KEYS.contains(&key))
}

/// Models see every access only if there is one door to atomics. Tests whose cores are threads of the host do not run
/// under the model checker, and may count with the host's own.
pub fn core_names_atomics_in_one_file(tree: &Tree) -> Vec<Finding> {
    fn over_threads(path: &str) -> bool {
        path.starts_with(CORE_THREAD_TESTS) && !path.ends_with("models.rs")
    }
    let inside = |path: &str| path.starts_with(CORE) && path != CORE_ATOMICS && !over_threads(path);
    words_in(tree, inside, |word| word == "atomic", "atomics only through crate::sync")
}

/// Places where an identifier that must not be there is, in the files that `concerns` selects.
fn words_in(tree: &Tree, concerns: fn(&str) -> bool, bad: fn(&str) -> bool, rule: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, source) in tree.sources().filter(|(path, _)| concerns(path)) {
        let mut lines = Vec::new();
        find_words(source.tokens.clone(), bad, &mut lines);
        findings.extend(lines.iter().map(|line| Finding::new(format!("{path}:{line}"), rule)));
    }
    findings
}

fn find_words(tokens: TokenStream, bad: fn(&str) -> bool, lines: &mut Vec<usize>) {
    for token in tokens {
        match token {
            TokenTree::Group(group) => find_words(group.stream(), bad, lines),
            TokenTree::Ident(word) if bad(&word.to_string()) => lines.push(word.span().start().line),
            _ => {}
        }
    }
}

/// No crate, file or module is named after nothing.
pub fn names_say_something(tree: &Tree) -> Vec<Finding> {
    let empty = |name: &str| name.split(['-', '_', '.']).any(|part| EMPTY_NAMES.contains(&part));
    let packages = tree.packages.iter().filter(|p| empty(&p.name)).map(|p| p.manifest_path.clone());
    let files = tree.rust_files().filter(|(path, _)| path.split('/').any(empty)).map(|(path, _)| path.to_owned());
    let modules = tree.syntax().filter(|(_, file)| inline_modules(file).iter().any(|name| empty(name)));
    let places = packages.chain(files).chain(modules.map(|(path, _)| path.to_owned()));
    places.map(|place| Finding::new(place, "a name that says nothing (util, common, helpers, misc)")).collect()
}

fn inline_modules(file: &syn::File) -> Vec<String> {
    struct Modules(Vec<String>);
    impl<'ast> Visit<'ast> for Modules {
        fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
            self.0.push(item.ident.to_string());
            visit::visit_item_mod(self, item);
        }
    }
    let mut modules = Modules(Vec::new());
    modules.visit_file(file);
    modules.0
}

/// One concept a file.
pub fn files_are_short(tree: &Tree) -> Vec<Finding> {
    let (should, must) = FILE_LINES;
    let sources = tree.files.iter().filter(|(path, _)| [".rs", ".c", ".h"].iter().any(|end| path.ends_with(end)));
    let judge = |(path, text): (&String, &String)| match text.lines().count() {
        n if n > must => Some(Finding::new(path, format!("{n} lines, more than {must}"))),
        n if n > should => Some(Finding::warning(path, format!("{n} lines, more than {should}"))),
        _ => None,
    };
    sources.filter_map(judge).collect()
}

/// One thought a function, except those that the ratchet names.
pub fn functions_are_short(tree: &Tree) -> Vec<Finding> {
    let ratchet = match Ratchet::of(tree) {
        Ok(ratchet) => ratchet,
        Err(finding) => return vec![finding],
    };
    let mut long = BTreeMap::new();
    for (path, file) in tree.syntax() {
        for function in functions(file).into_iter().filter(|f| f.lines > FUNCTION_LINES_MAX) {
            long.insert((path.to_owned(), function.name.clone()), function);
        }
    }
    let mut findings: Vec<Finding> = ratchet.function.iter().filter_map(|a| judge(a, &mut long)).collect();
    findings.extend(long.into_iter().map(|((path, name), f)| {
        Finding::new(
            format!("{path}:{}", f.line),
            format!("{name} has {} lines, more than {FUNCTION_LINES_MAX}", f.lines),
        )
    }));
    findings
}

/// Takes an accepted function out of the long ones; says so if the entry is wrong.
fn judge(accepted: &ratchet::Function, long: &mut BTreeMap<(String, String), Function>) -> Option<Finding> {
    let ratchet::Function { path, name, lines_max, reason } = accepted;
    match long.remove(&(path.clone(), name.clone())) {
        None => Some(Finding::new(RATCHET, format!("{path}: {name} is short or gone; remove the entry"))),
        Some(f) if f.lines > *lines_max => {
            Some(Finding::new(format!("{path}:{}", f.line), format!("{name} grew to {} lines", f.lines)))
        }
        Some(_) if reason.trim().is_empty() => Some(Finding::new(RATCHET, format!("{path}: {name} has no reason"))),
        Some(_) => None,
    }
}

/// A function and its length.
struct Function {
    name: String,
    line: usize,
    lines: usize,
}

fn functions(file: &syn::File) -> Vec<Function> {
    struct Functions(Vec<Function>);
    impl Functions {
        fn add(&mut self, signature: &syn::Signature, block: &syn::Block) {
            let line = signature.span().start().line;
            let lines = block.span().end().line + 1 - line;
            self.0.push(Function { name: signature.ident.to_string(), line, lines });
        }
    }
    impl<'ast> Visit<'ast> for Functions {
        fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
            self.add(&item.sig, &item.block);
            visit::visit_item_fn(self, item);
        }
        fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
            self.add(&item.sig, &item.block);
            visit::visit_impl_item_fn(self, item);
        }
        fn visit_trait_item_fn(&mut self, item: &'ast syn::TraitItemFn) {
            if let Some(block) = &item.default {
                self.add(&item.sig, block);
            }
            visit::visit_trait_item_fn(self, item);
        }
    }
    let mut functions = Functions(Vec::new());
    functions.visit_file(file);
    functions.0
}

/// What is in the tree is finished.
pub fn nothing_is_unfinished(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text) in tree.files.iter().filter(|(path, _)| !path.ends_with(".lock")) {
        for (number, line) in text.lines().enumerate().filter(|(_, line)| is_unfinished(line)) {
            findings.push(Finding::new(format!("{path}:{}", number + 1), format!("unfinished: {}", line.trim())));
        }
    }
    findings
}

fn is_unfinished(line: &str) -> bool {
    let mut words = line.split(|c: char| !c.is_alphanumeric() && c != '_');
    words.any(|word| MARKS.contains(&word)) || UNFINISHED_MACROS.iter().any(|name| line.contains(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(findings: &[Finding]) -> Vec<&str> {
        findings.iter().map(|f| f.place.as_str()).collect()
    }

    #[test]
    fn a_source_that_does_not_parse_is_found() {
        assert_eq!(sources_parse(&Tree::of(&[("a.rs", "fn {")])).len(), 1);
    }

    #[test]
    fn a_target_cfg_in_the_core_is_found() {
        let text =
            "#![no_std]\n#[cfg(target_os = \"linux\")]\nfn f() {}\n// target_os in words\nfn g(target_rate: u32) {}";
        let tree = Tree::of(&[("crates/musubi-core/src/lib.rs", text), ("crates/musubi-linux/src/lib.rs", text)]);
        assert_eq!(places(&core_has_no_target_cfg(&tree)), ["crates/musubi-core/src/lib.rs:2"]);
    }

    #[test]
    fn atomics_past_the_facade_are_found() {
        let text = "use core::sync::atomic::AtomicU32;";
        let [threads, models] = ["calls.rs", "call_models.rs"].map(|name| format!("{CORE_THREAD_TESTS}{name}"));
        let fifo = "crates/musubi-core/src/fifo.rs";
        let tree = Tree::of(&[(CORE_ATOMICS, text), (fifo, text), (&threads, text), (&models, text)]);
        let found = core_names_atomics_in_one_file(&tree);
        assert_eq!(places(&found), [format!("{fifo}:1"), format!("{models}:1")]);
    }

    #[test]
    fn names_that_say_nothing_are_found() {
        let files = [("crates/a/src/utils.rs", ""), ("b.rs", "mod common { }"), ("communication.rs", "mod helped {}")];
        let tree = Tree::of(&files).with_package("musubi-misc", &[]);
        let findings = names_say_something(&tree);
        assert_eq!(places(&findings), ["crates/musubi-misc/Cargo.toml", "crates/a/src/utils.rs", "b.rs"]);
    }

    #[test]
    fn long_files_are_found() {
        let (long, longer) = ("//\n".repeat(501), "//\n".repeat(701));
        let tree = Tree::of(&[("a.rs", "//\n"), ("b.rs", &long), ("c.c", &longer), ("d.md", &longer)]);
        let findings = files_are_short(&tree);
        assert_eq!(places(&findings), ["b.rs", "c.c"]);
        assert_eq!((findings[0].only_warns, findings[1].only_warns), (true, false));
    }

    fn function_of(lines: usize) -> String {
        format!("impl A {{\n    fn long() {{\n{}    }}\n}}\n", "        x();\n".repeat(lines - 2))
    }

    #[test]
    fn a_long_function_is_found() {
        let (good, bad) = (function_of(70), function_of(71));
        let tree = Tree::of(&[("a.rs", &good), ("b.rs", &bad)]);
        assert_eq!(places(&functions_are_short(&tree)), ["b.rs:2"]);
    }

    #[test]
    fn the_ratchet_accepts_and_tightens() {
        let entry = |path: &str, lines: usize| {
            format!("[[function]]\npath = '{path}'\nname = 'long'\nlines_max = {lines}\nreason = 'a table'\n")
        };
        let (short, long, grown) = (function_of(20), function_of(80), function_of(99));
        let ratchet = [entry("a.rs", 90), entry("b.rs", 90), entry("c.rs", 90)].concat();
        let tree = Tree::of(&[("a.rs", &long), ("b.rs", &grown), ("c.rs", &short), (RATCHET, &ratchet)]);
        let findings = functions_are_short(&tree);
        assert_eq!(places(&findings), ["b.rs:2", RATCHET]);
    }

    #[test]
    fn unfinished_marks_are_found() {
        let text = format!("// {}: later\n// XXXXXX is fine\nfn f() {{ {}() }}\n", MARKS[0], UNFINISHED_MACROS[1]);
        let tree = Tree::of(&[("a.rs", &text), ("b.md", "finished")]);
        assert_eq!(places(&nothing_is_unfinished(&tree)), ["a.rs:1", "a.rs:3"]);
    }
}

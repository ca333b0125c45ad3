//! Every mutant that cargo-mutants can make of the crates whose own tests can notice one.

use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use serde::Deserialize;

use super::suites::SUITES;
use crate::runner::Context;

/// The version that the samples in docs/GUARANTEES.md were drawn with; another one may list others.
const VERSION: &str = "27.1.0";
/// Longest time that the listing takes.
const LIST_TIME_MAX: Duration = Duration::from_secs(300);
/// What is built for tests only, though cargo-mutants does not see it: the conditions in front of it name loom.
const TEST_CODE: [&str; 3] = ["/tests.rs", "/tests/", "/models.rs"];
/// What other runs try: the memory orders are weakened one by one under loom; what benchmarks measure with, they check themselves.
const NOT_TESTED: [&str; 2] = ["crates/musubi-core/src/sync.rs", "crates/musubi-linux/src/bench/"];

/// One change of the code.
#[derive(Clone, Debug, Deserialize)]
pub struct Mutant {
    /// `FILE:LINE:COLUMN: CHANGE`.
    pub name: String,
    /// The package whose code it changes.
    pub package: String,
    /// The file, from the root.
    pub file: String,
    /// What is replaced.
    pub span: Span,
    /// By what.
    pub replacement: String,
    #[serde(default)]
    function: Option<Function>,
}

/// A part of a file.
#[derive(Clone, Copy, Debug, Deserialize)]
pub struct Span {
    /// Its first character.
    pub start: Place,
    /// The character behind it.
    pub end: Place,
}

/// A character of a file; both are counted from 1.
#[derive(Clone, Copy, Debug, Deserialize)]
pub struct Place {
    pub line: usize,
    pub column: usize,
}

#[derive(Clone, Debug, Deserialize)]
struct Function {
    function_name: String,
}

impl Mutant {
    /// What changes, without its place, such as `replace + with - in Sender::enqueue`.
    pub fn change(&self) -> &str {
        self.name.splitn(4, ':').nth(3).unwrap_or(&self.name).trim_start()
    }

    fn is_of_tests(&self) -> bool {
        let inside =
            |function: &Function| function.function_name.split("::").any(|part| part == "tests" || part == "models");
        TEST_CODE.iter().any(|part| self.file.contains(part)) || self.function.as_ref().is_some_and(inside)
    }
}

/// All of them, in the order of their names.
///
/// # Errors
/// If cargo-mutants is not installed or cannot read the tree.
pub fn all(context: &Context) -> Result<Vec<Mutant>> {
    let mut version = context.cargo();
    let output = context.run_unseen(version.args(["mutants", "--version"]), LIST_TIME_MAX)?;
    if !output.status.success() {
        bail!("cargo-mutants is not installed; run: cargo install --locked cargo-mutants@{VERSION}");
    }
    if !output.text.contains(VERSION) {
        println!("   this is {}; samples are the same with {VERSION} only", output.text.trim());
    }
    let mut list = context.cargo();
    list.args(["mutants", "--list", "--json"]);
    list.args(SUITES.iter().flat_map(|suite| ["-p", suite.package]));
    let output = context.run_unseen(&mut list, LIST_TIME_MAX)?;
    parse(&output.text).with_context(|| format!("what cargo-mutants lists:\n{:.1000}", output.text))
}

/// The mutants in what cargo-mutants lists, without those of tests.
fn parse(json: &str) -> Result<Vec<Mutant>> {
    let mut mutants: Vec<Mutant> = serde_json::from_str(json)?;
    mutants.retain(|mutant| !mutant.is_of_tests() && !NOT_TESTED.iter().any(|path| mutant.file.starts_with(path)));
    mutants.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(mutants)
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// A mutant of the core with this name, at the place that it names, one character long.
    pub fn mutant(name: &str) -> Mutant {
        let mut parts = name.splitn(4, ':');
        let file = parts.next().unwrap().to_owned();
        let [line, column] = [(); 2].map(|()| parts.next().unwrap().parse().unwrap());
        let span = Span { start: Place { line, column }, end: Place { line, column: column + 1 } };
        let (name, package, replacement) = (name.to_owned(), "musubi-core".to_owned(), "-".to_owned());
        Mutant { name, package, file, span, replacement, function: None }
    }

    #[test]
    fn what_changes_is_told_from_where() {
        assert_eq!(mutant("a/b.rs:1:2: replace f -> a::B with a::B").change(), "replace f -> a::B with a::B");
    }

    #[test]
    fn mutants_are_read_and_those_of_tests_left_out() {
        let one = |file: &str, function: &str| {
            format!(
                r#"{{"name":"{file}:1:1: x in {function}","package":"musubi-core","file":"{file}","replacement":"",
                "function":{{"function_name":"{function}"}},"genre":"FnValue",
                "span":{{"start":{{"line":1,"column":1}},"end":{{"line":1,"column":2}}}}}}"#
            )
        };
        let listed = [
            one("crates/musubi-core/src/lock/tests.rs", "f"),
            one("crates/musubi-core/src/z.rs", "latest"),
            one("crates/musubi-core/src/fifo.rs", "tests::f"),
            one("crates/musubi-linux/src/bench/bare.rs", "f"),
            one("crates/musubi-core/src/a.rs", "f"),
        ];
        let read = parse(&format!("[{}]", listed.join(","))).unwrap();
        let files: Vec<&str> = read.iter().map(|mutant| mutant.file.as_str()).collect();
        assert_eq!(files, ["crates/musubi-core/src/a.rs", "crates/musubi-core/src/z.rs"]);
        assert!(parse("error: no such command").is_err());
    }
}

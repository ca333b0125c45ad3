//! Mutants that no test can notice, in `xtask/equivalents.toml`: each with the reason why.
//!
//! What you may rely on: an entry stands for one line of code. One that matches no mutant, or mutants of several lines, is an
//! error, so the list follows the code; so is one without a reason.

use std::path::Path;

use anyhow::{Context as _, Result};
use serde::Deserialize;

use super::list::Mutant;

/// The list.
pub const PATH: &str = "xtask/equivalents.toml";

/// All entries, with the sources that they name.
pub struct Equivalents {
    entries: Vec<(Entry, String)>,
}

#[derive(Deserialize)]
struct File {
    #[serde(default)]
    mutant: Vec<Entry>,
}

/// One change that changes nothing that anybody may rely on.
#[derive(Clone, Deserialize)]
struct Entry {
    /// The file, from the root.
    path: String,
    /// The change in the words of cargo-mutants, which name the function.
    change: String,
    /// Text of the line that it changes, where the function has several like it.
    line: Option<String>,
    /// Why nothing can notice it.
    reason: String,
}

impl Entry {
    fn is(&self, mutant: &Mutant, source: &str) -> bool {
        let line = || source.lines().nth(mutant.span.start.line - 1).unwrap_or("").trim();
        self.path == mutant.file
            && self.change == mutant.change()
            && self.line.as_ref().is_none_or(|wanted| wanted.trim() == line())
    }
}

impl Equivalents {
    /// Reads the list and the sources that it names.
    ///
    /// # Errors
    /// If one of them is not there or the list is malformed.
    pub fn read(root: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(root.join(PATH)).context(PATH)?;
        Self::of(&text, |path| std::fs::read_to_string(root.join(path)).with_context(|| format!("{PATH}: {path}")))
    }

    fn of(text: &str, source_of: impl Fn(&str) -> Result<String>) -> Result<Self> {
        let entries = toml::from_str::<File>(text).context(PATH)?.mutant;
        let with_source = |entry: Entry| Ok((source_of(&entry.path)?, entry)).map(|(source, entry)| (entry, source));
        Ok(Self { entries: entries.into_iter().map(with_source).collect::<Result<_>>()? })
    }

    /// Whether a mutant is one of them.
    pub fn contain(&self, mutant: &Mutant) -> bool {
        self.entries.iter().any(|(entry, source)| entry.is(mutant, source))
    }

    /// What is wrong with the entries, one line each.
    pub fn wrong(&self, all: &[Mutant]) -> Vec<String> {
        self.entries.iter().filter_map(|(entry, source)| judge(entry, source, all)).collect()
    }
}

fn judge(entry: &Entry, source: &str, all: &[Mutant]) -> Option<String> {
    let mut lines: Vec<usize> = all.iter().filter(|m| entry.is(m, source)).map(|m| m.span.start.line).collect();
    lines.dedup();
    let wrong = match lines[..] {
        [] => "matches no mutant; remove it",
        [_] if entry.reason.trim().is_empty() => "has no reason",
        [_] => return None,
        _ => "matches several lines; say which, with `line`",
    };
    Some(format!("{}: {}: {wrong}", entry.path, entry.change))
}

#[cfg(test)]
mod tests {
    use super::super::list::tests::mutant;
    use super::*;

    const SOURCE: &str = "fn f() {\n    a + b\n    c + d\n}\n";

    fn list(entries: &str) -> Equivalents {
        Equivalents::of(entries, |_| Ok(SOURCE.to_owned())).unwrap()
    }

    fn entry(change: &str, line: Option<&str>, reason: &str) -> String {
        let line = line.map_or(String::new(), |line| format!("line = '{line}'\n"));
        format!("[[mutant]]\npath = 'a.rs'\nchange = '{change}'\n{line}reason = '{reason}'\n")
    }

    #[test]
    fn an_entry_names_one_line() {
        let all = ["a.rs:2:7: replace + with - in f", "a.rs:3:7: replace + with - in f"].map(mutant);
        let first = list(&entry("replace + with - in f", Some("a + b"), "b is 0"));
        assert_eq!(first.wrong(&all), Vec::<String>::new());
        assert!(first.contain(&all[0]) && !first.contain(&all[1]));
        let both = list(&entry("replace + with - in f", None, "b is 0"));
        assert!(both.wrong(&all)[0].contains("several lines"));
        assert!(both.wrong(&all[..1]).is_empty());
    }

    #[test]
    fn an_entry_that_matches_nothing_or_has_no_reason_is_wrong() {
        let all = [mutant("a.rs:2:7: replace + with - in f")];
        assert!(list(&entry("replace + with * in f", None, "b is 0")).wrong(&all)[0].contains("no mutant"));
        assert!(list(&entry("replace + with - in f", Some("e + f"), "b is 0")).wrong(&all)[0].contains("no mutant"));
        assert!(list(&entry("replace + with - in f", None, " ")).wrong(&all)[0].contains("no reason"));
    }

    /// What can be seen without cargo-mutants, which few have: a line that has changed or gone.
    #[test]
    fn the_list_names_files_functions_and_lines_that_are_there() {
        let root = crate::runner::Context::find(false).unwrap().root;
        for (Entry { path, change, line, .. }, source) in Equivalents::read(&root).unwrap().entries {
            let is_there = |wanted: &String| source.lines().any(|line| line.trim() == wanted.trim());
            assert!(line.as_ref().is_none_or(is_there), "{path}: {change}: no line {line:?}");
            let function = change.rsplit_once(" in ").map(|(_, place)| place.rsplit("::").next().unwrap_or(place));
            let is_there =
                |name: &str| source.contains(&format!("fn {}", name.split(['<', ' ']).next().unwrap_or(name)));
            assert!(function.is_none_or(is_there), "{path}: {change}: no function {function:?}");
        }
    }
}

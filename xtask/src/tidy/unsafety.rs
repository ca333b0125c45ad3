//! Rules about `unsafe`: where it may be, and that each use is proved.

use proc_macro2::{Delimiter, TokenStream, TokenTree};

use super::tree::Source;
use super::{Finding, Tree};

/// Where `unsafe` may be: directories of crates, and one file that follows the addresses which a program registers. An image exports its entry and names memory at fixed addresses; the peer is another library's only way to hand over a block unwritten; the
/// fuzz targets and the tests of mapped nodes make views over heap memory, and the fuzzer's own macro expands to it.
const MAY_BE_UNSAFE: [&str; 13] = [
    "crates/musubi-core/",
    "crates/musubi-linux/",
    "crates/musubi-metal/",
    "crates/musubi-capi/",
    "crates/musubi-vi-fi/",
    "crates/musubi-vipl-c/",
    "crates/musubi-vipl/src/memory.rs",
    "firmware/",
    "peers/iceoryx2/",
    "fuzz/",
    "crates/musubi-transport/tests/mapped/",
    "testsuite/nodes/tests/",
    "testsuite/vis/tests/",
];
/// How far above its site a proof may stand, in lines.
const PROOF_LINES_MAX: usize = 8;

fn may_be_unsafe(path: &str) -> bool {
    MAY_BE_UNSAFE.iter().any(|directory| path.starts_with(directory))
}

/// The keyword appears in few crates only.
pub fn unsafe_stays_where_it_may_be(tree: &Tree) -> Vec<Finding> {
    let elsewhere = tree.sources().filter(|(path, _)| !may_be_unsafe(path));
    elsewhere
        .flat_map(|(path, source)| {
            let lines = uses(source).into_iter().map(|site| site.line);
            lines.map(move |line| Finding::new(format!("{path}:{line}"), "`unsafe` is not allowed in this crate"))
        })
        .collect()
}

/// Libraries of which one file may: the compiler is told so there, and denies it everywhere else.
const DENY_ONLY: [&str; 1] = ["crates/musubi-vipl/src/lib.rs"];

/// The compiler enforces it in every library and program of the other crates.
pub fn safe_crates_forbid_unsafe(tree: &Tree) -> Vec<Finding> {
    let kinds = ["lib", "rlib", "cdylib", "staticlib", "bin", "example", "proc-macro"];
    let targets = tree.packages.iter().flat_map(|p| &p.targets);
    let roots = targets.filter(|t| t.kind.iter().any(|k| kinds.contains(&k.as_str()))).map(|t| t.src_path.as_str());
    let open = roots.filter(|path| {
        let level = if DENY_ONLY.contains(path) { "#![deny(unsafe_code)]" } else { "#![forbid(unsafe_code)]" };
        !may_be_unsafe(path) && !tree.files.get(*path).is_some_and(|text| text.contains(level))
    });
    open.map(|path| Finding::new(path, "lacks #![forbid(unsafe_code)]")).collect()
}

/// Each unsafe block and implementation has a `SAFETY:` comment just above it.
pub fn each_unsafe_site_has_a_proof(tree: &Tree) -> Vec<Finding> {
    let unproved = |(path, source): (&str, &Source)| {
        let lines: Vec<&str> = tree.files.get(path).map_or("", String::as_str).lines().collect();
        let open = uses(source).into_iter().filter(|site| site.needs_proof && !proved(&lines, site.line));
        let place = |site: Site| Finding::new(format!("{path}:{}", site.line), "unsafe without a SAFETY comment above");
        open.map(place).collect::<Vec<_>>()
    };
    tree.sources().flat_map(unproved).collect()
}

/// How many sites and how many proofs there are.
pub fn summary(tree: &Tree) -> String {
    let sites = tree.sources().flat_map(|(_, source)| uses(source)).filter(|site| site.needs_proof).count();
    let proof = |line: &&str| line.trim_start().starts_with("// SAFETY:");
    let proofs: usize = tree.rust_files().map(|(_, text)| text.lines().filter(proof).count()).sum();
    format!("{sites} unsafe sites, {proofs} proofs")
}

fn proved(lines: &[&str], line: usize) -> bool {
    let last = line.saturating_sub(1).min(lines.len());
    let first = last.saturating_sub(PROOF_LINES_MAX);
    // The site's own line counts too: `// SAFETY: ...` may stand before it in a chain of calls.
    lines[first..(last + 1).min(lines.len())].iter().any(|l| l.contains("SAFETY:"))
}

/// One use of the keyword.
struct Site {
    /// Counted from 1.
    line: usize,
    /// Whether it is a block or an implementation; a signature states a duty instead of proving one.
    needs_proof: bool,
}

fn uses(source: &Source) -> Vec<Site> {
    let mut sites = Vec::new();
    find_uses(source.tokens.clone(), &mut sites);
    sites
}

fn find_uses(tokens: TokenStream, sites: &mut Vec<Site>) {
    let mut tokens = tokens.into_iter().peekable();
    while let Some(token) = tokens.next() {
        match token {
            TokenTree::Group(group) => find_uses(group.stream(), sites),
            TokenTree::Ident(word) if word == "unsafe" => {
                let needs_proof = match tokens.peek() {
                    Some(TokenTree::Group(group)) => group.delimiter() == Delimiter::Brace,
                    Some(TokenTree::Ident(next)) => next == "impl",
                    _ => false,
                };
                sites.push(Site { line: word.span().start().line, needs_proof });
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unsafe_in_a_safe_crate_is_found_even_inside_a_macro() {
        let text =
            "//! unsafe in words is fine\nmacro_rules! m { () => { unsafe { f() } } }\nconst S: &str = \"unsafe\";";
        let tree = Tree::of(&[("crates/musubi-mdcom/src/lib.rs", text)]);
        let places: Vec<String> = unsafe_stays_where_it_may_be(&tree).into_iter().map(|f| f.place).collect();
        assert_eq!(places, ["crates/musubi-mdcom/src/lib.rs:2"]);
    }

    #[test]
    fn a_safe_crate_that_does_not_forbid_it_is_found() {
        let files = [("crates/musubi-mdcom/src/lib.rs", "//! x"), ("crates/musubi-core/src/lib.rs", "//! x")];
        let tree = Tree::of(&files).with_package("musubi-mdcom", &[]).with_package("musubi-core", &[]);
        assert_eq!(safe_crates_forbid_unsafe(&tree).len(), 1);
    }

    #[test]
    fn a_block_without_a_proof_is_found() {
        let text = "fn f() {\n    // SAFETY: because\n    unsafe { g() };\n\n\n\n\n\n\n\n\n    unsafe { h() };\n}\nunsafe fn i() {}";
        let tree = Tree::of(&[("crates/musubi-core/src/words.rs", text)]);
        let places: Vec<String> = each_unsafe_site_has_a_proof(&tree).into_iter().map(|f| f.place).collect();
        assert_eq!(places, ["crates/musubi-core/src/words.rs:12"]);
        assert_eq!(summary(&tree), "2 unsafe sites, 1 proofs");
    }
}

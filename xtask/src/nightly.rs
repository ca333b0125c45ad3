//! The checkers that need a nightly compiler: Miri and ThreadSanitizer.
//!
//! What you may rely on: they are skipped only where the nightly toolchain cannot be had.
//!
//! How it works: Miri interprets one test after the other on one core, so the tests are dealt out to as many of it as
//! there are cores. Documentation tests run natively only.

use std::process::Command;

use anyhow::{Result, anyhow};

use crate::runner::{Context, Verdict};

/// Target of the instrumented builds; `-Zbuild-std` needs it named.
pub const TARGET: &str = "x86_64-unknown-linux-gnu";
/// Crates whose threads ThreadSanitizer watches, where they are in the tree.
const WATCHED: [(&str, &str); 4] = [
    ("crates/musubi-core", "musubi-core"),
    ("crates/musubi-linux", "musubi-linux"),
    ("crates/musubi-mdcom", "musubi-mdcom"),
    ("testsuite", "musubi-testsuite"),
];
/// Tests of those crates that are left out. The first compares the compiler's own messages, which are others with this
/// one; the rest is long and has a single thread, in which there is nothing to watch.
const WATCHED_LEFT_OUT: [&str; 6] = [
    "misuse_does_not_compile",
    "guarantee::",
    "lock::tests::garbage_lets_no_two_in",
    "lock::tests::agrees_with_a_holder_and_a_queue",
    "restarts::nothing_is_repeated_whoever_dies",
    "restarts::nothing_is_lost_or_repeated_while_one_side_lives",
];
/// The crate whose threads drive nodes, and its tests with threads.
const NODES: (&str, [&str; 3]) = ("musubi-transport", ["runtime", "shm", "tcp"]);
/// Of those, what is left out: other processes are not watched, and the tool makes these two too slow for their own
/// deadlines (a flood of megabytes; a connection broken every few frames).
const NODES_LEFT_OUT: [&str; 5] = ["processes::", "refused_calls::", "scarce::", "floods_both_ways", "cuts_lose"];

/// Makes a component of the nightly toolchain available; the inner error is the reason why that is impossible here.
///
/// # Errors
/// If rustup cannot be started.
pub fn add_component(context: &Context, component: &str) -> Result<Result<(), String>> {
    let mut list = Command::new("rustup");
    let output = context
        .run_quietly(list.args(["+nightly", "component", "list", "--installed"]), std::time::Duration::from_secs(60))?;
    if output.status.success() && output.text.lines().any(|line| line.starts_with(component)) {
        return Ok(Ok(()));
    }
    let mut install = Command::new("rustup");
    install.args(["toolchain", "install", "nightly", "--profile", "minimal", "--component", component]);
    let output = context.run(&mut install)?;
    Ok(if output.status.success() { Ok(()) } else { Err(format!("nightly has no {component} and cannot get it")) })
}

/// The crate whose one unsafe file follows the addresses that programs register, and the tests that go through it.
const ADDRESSES: (&str, [&str; 3]) = ("musubi-vipl", ["memory::", "nic::tests::data::a_", "nic::tests::data::writes_"]);

/// Step: the core's tests under Miri, and those of registered memory.
///
/// # Errors
/// If cargo or rustup cannot be started.
pub fn miri(context: &Context) -> Result<Verdict> {
    for component in ["miri", "rust-src"] {
        if let Err(reason) = add_component(context, component)? {
            return Ok(Verdict::skipped(reason));
        }
    }
    let (package, tests) = ADDRESSES;
    let addresses = context.run(miri_command(context, package, "--lib").arg("--").args(tests))?;
    let core = || miri_command(context, "musubi-core", "--tests");
    let listing = context.must(core().args(["--", "--list"]))?;
    let groups = deal(test_names(&listing), std::thread::available_parallelism().map_or(1, usize::from));
    let mut verdict = Verdict::of_tests(&addresses);
    std::thread::scope(|scope| {
        let run = |names: Vec<String>| context.run(core().args(["--", "--exact"]).args(names));
        let runs: Vec<_> = groups.into_iter().map(|names| scope.spawn(move || run(names))).collect();
        for handle in runs {
            let output = handle.join().map_err(|_| anyhow!("a thread of this program panicked"))??;
            verdict.add(Verdict::of_tests(&output));
        }
        Ok(verdict)
    })
}

/// Property tests look into the real directory and at the real clock.
fn miri_command(context: &Context, package: &str, which: &str) -> Command {
    let mut cargo = context.cargo_nightly();
    cargo.args(["miri", "test", "-p", package, which, "--target-dir"]).arg(context.target.join("miri"));
    cargo.env("MIRIFLAGS", "-Zmiri-disable-isolation");
    cargo
}

/// The names in what a test program lists (`path::name: test`).
fn test_names(listing: &str) -> Vec<String> {
    listing.lines().filter_map(|line| line.strip_suffix(": test")).map(str::to_owned).collect()
}

/// Deals the names out to this many groups, fewer if there are fewer names.
fn deal(names: Vec<String>, groups: usize) -> Vec<Vec<String>> {
    let groups = groups.clamp(1, names.len().max(1));
    let mut dealt = vec![Vec::new(); groups];
    for (number, name) in names.into_iter().enumerate() {
        dealt[number % groups].push(name);
    }
    dealt
}

/// Step: the tests with real threads under ThreadSanitizer.
///
/// # Errors
/// If cargo or rustup cannot be started.
pub fn tsan(context: &Context) -> Result<Verdict> {
    if let Err(reason) = add_component(context, "rust-src")? {
        return Ok(Verdict::skipped(reason));
    }
    let mut all = tsan_command(context);
    all.arg("--tests");
    for (_, name) in WATCHED.iter().filter(|(path, _)| context.root.join(path).join("Cargo.toml").exists()) {
        all.args(["-p", name]);
    }
    all.arg("--").args(WATCHED_LEFT_OUT.iter().flat_map(|name| ["--skip", name]));
    let mut verdict = Verdict::of_tests(&context.run(&mut all)?);
    let mut nodes = tsan_command(context);
    let (package, tests) = NODES;
    nodes.args(["-p", package]).args(tests.iter().flat_map(|test| ["--test", test]));
    nodes.arg("--").args(NODES_LEFT_OUT.iter().flat_map(|name| ["--skip", name]));
    verdict.add(Verdict::of_tests(&context.run(&mut nodes)?));
    Ok(verdict)
}

fn tsan_command(context: &Context) -> Command {
    let mut cargo = context.cargo_nightly();
    cargo.args(["test", "-Zbuild-std", "--target", TARGET, "--no-fail-fast", "--target-dir"]);
    cargo.arg(context.target.join("tsan"));
    cargo.env("RUSTFLAGS", "-Zsanitizer=thread").env("TSAN_OPTIONS", "halt_on_error=1");
    cargo
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_listed_test_is_dealt_to_one_group() {
        let names = test_names("a::b: test\nc: test\nd: benchmark\ne: test\n\n3 tests, 1 benchmark\n");
        assert_eq!(names, ["a::b", "c", "e"]);
        assert_eq!(deal(names.clone(), 2), [vec!["a::b".to_owned(), "e".to_owned()], vec!["c".to_owned()]]);
        assert_eq!(deal(names, 9).len(), 3);
        assert_eq!(deal(Vec::new(), 2), [Vec::<String>::new()]);
    }
}

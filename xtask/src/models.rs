//! loom: the core's lock-free objects under every interleaving, and the proof that the models would notice a mistake.
//!
//! What you may rely on: a mutant counts as caught only if the models pass without it and fail with it.
//!
//! How it works: one test program is built with `--cfg loom`. It runs once as it is, then for each
//! `musubi_core::sync::Site` with `MUSUBI_MUTANT` naming that site, which the program then weakens to relaxed order: first
//! with few preemptions, which is quick and enough for most, then with as many as the models themselves had.

use std::path::PathBuf;
use std::process::Command;
use std::sync::Mutex;
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow, bail};
use syn::visit::Visit;

use crate::runner::{Context, Verdict};

/// loom's bound on preemptions per execution; two find nearly all mistakes of this kind (Musuvathi and Qadeer, 2007).
const PREEMPTIONS_MAX: &str = "2";
/// The bound under which a mutant is tried first. Whatever fails under it fails under a higher one too.
const PREEMPTIONS_FEW: &str = "1";
/// Longest run of the models with one site weakened.
const MUTANT_TIME_MAX: Duration = Duration::from_secs(300);
/// What the names of model tests begin with or contain.
const FILTER: &str = "loom_";

/// Step: the models pass.
///
/// # Errors
/// If the program cannot be built or started.
pub fn loom(context: &Context) -> Result<Verdict> {
    let program = build(context)?;
    let verdict = Verdict::of_tests(&context.run(&mut run_of(&program, None, PREEMPTIONS_MAX))?);
    // Only this step runs before `weakened`, and only once.
    let _ = context.models.set(verdict.counts);
    Ok(verdict)
}

/// Step: with each site weakened, the models fail.
///
/// # Errors
/// If the program cannot be built or started, or the models fail by themselves.
pub fn weakened(context: &Context) -> Result<Verdict> {
    if context.models.get().is_none() {
        loom(context)?;
    }
    let counts = context.models.get().copied().unwrap_or_default();
    if counts.passed == 0 || counts.failed > 0 {
        bail!("the models do not pass as they are ({counts:?}), so no mutant means anything");
    }
    let program = build(context)?;
    context.must(&mut run_of(&program, None, PREEMPTIONS_FEW)).context("the models with few preemptions")?;
    let sites = sites(&std::fs::read_to_string(context.root.join("crates/musubi-core/src/sync.rs"))?)?;
    let verdict = Mutex::new(Verdict::default());
    let queue = Mutex::new(sites.into_iter());
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                while let Some(site) = next(&queue) {
                    let found = try_mutant(context, &program, &site);
                    verdict.lock().unwrap_or_else(|e| e.into_inner()).add(found);
                }
            });
        }
    });
    Ok(verdict.into_inner().unwrap_or_else(|e| e.into_inner()))
}

fn next(queue: &Mutex<std::vec::IntoIter<String>>) -> Option<String> {
    queue.lock().unwrap_or_else(|e| e.into_inner()).next()
}

fn try_mutant(context: &Context, program: &PathBuf, site: &str) -> Verdict {
    // The first model that fails has caught it.
    let run = |bound| context.run_until(&mut run_of(program, Some(site), bound), MUTANT_TIME_MAX, says_failed);
    let ended = match run(PREEMPTIONS_FEW) {
        Ok(output) if output.status.success() => run(PREEMPTIONS_MAX),
        ended => ended,
    };
    match ended {
        Ok(output) if output.status.success() => Verdict::failed(format!("mutant survives: {site}")),
        Ok(output) if output.text.lines().any(says_failed) || output.status.code() == Some(101) => Verdict::passed(),
        Ok(output) => Verdict::failed(format!("mutant {site}: no verdict, ended with {}", output.status)),
        Err(error) => Verdict::failed(format!("mutant {site}: no verdict: {error:#}")),
    }
}

/// Whether a test program's line says that one test has failed.
pub fn says_failed(line: &str) -> bool {
    line.starts_with("test ") && line.ends_with(" ... FAILED")
}

fn run_of(program: &PathBuf, mutant: Option<&str>, preemptions_max: &str) -> Command {
    let mut command = Command::new(program);
    command.arg(FILTER).env("LOOM_MAX_PREEMPTIONS", preemptions_max).env_remove("MUSUBI_MUTANT");
    if let Some(site) = mutant {
        command.env("MUSUBI_MUTANT", site);
    }
    command
}

/// Builds the core's unit tests with loom's atomics, and gives the program.
fn build(context: &Context) -> Result<PathBuf> {
    let mut cargo = context.cargo();
    cargo
        .args(["test", "-p", "musubi-core", "--release", "--lib", "--no-run", "--message-format=json", "--target-dir"])
        .arg(context.target.join("loom"))
        .env("RUSTFLAGS", "--cfg loom")
        .env("CARGO_PROFILE_RELEASE_LTO", "off")
        .env("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "16");
    program_in(&context.must(&mut cargo)?).context("cargo named no test program")
}

/// The test program among cargo's messages, one JSON object a line.
fn program_in(messages: &str) -> Option<PathBuf> {
    let values = messages.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
    values.filter_map(|value| value["executable"].as_str().map(PathBuf::from)).next_back()
}

/// Names of the variants of `enum Site`.
fn sites(source: &str) -> Result<Vec<String>> {
    struct Variants(Vec<String>);
    impl<'ast> Visit<'ast> for Variants {
        fn visit_item_enum(&mut self, item: &'ast syn::ItemEnum) {
            if item.ident == "Site" {
                self.0.extend(item.variants.iter().map(|v| v.ident.to_string()));
            }
        }
    }
    let mut variants = Variants(Vec::new());
    variants.visit_file(&syn::parse_file(source)?);
    if variants.0.is_empty() {
        return Err(anyhow!("sync.rs has no enum Site"));
    }
    Ok(variants.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sites_are_read_from_the_enum() {
        assert_eq!(sites("pub enum Site { /// a\n First, Second }").unwrap(), ["First", "Second"]);
        assert!(sites("pub enum Other { First }").is_err());
    }

    #[test]
    fn a_failed_test_is_told_from_the_summary() {
        assert!(says_failed("test lane::tests::models::loom_records ... FAILED"));
        assert!(!says_failed("test result: FAILED. 1 passed; 1 failed") && !says_failed("test a ... ok"));
    }

    #[test]
    fn the_program_is_the_last_executable_that_cargo_names() {
        let text = "{\"reason\":\"x\",\"executable\":null}\nwarning: y\n{\"executable\":\"/a/b\"}\n{\"success\":true}";
        assert_eq!(program_in(text), Some(PathBuf::from("/a/b")));
    }
}

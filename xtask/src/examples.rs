//! The examples in C and Rust: built against an installed Musubi as a user would, and run against each other.
//!
//! How it works: `cargo xtask install` goes to a directory below the build directory. Each `examples/c/*.c` is
//! compiled with what pkg-config says and the headers that `musubi generate` writes, and each `examples/c/vipl/*.c` against
//! libvipl. `examples/runs.toml` lists the runs:
//!
//! ```toml
//! [[run]]
//! title = "a C Master and a Rust Remote"
//! system = "greeting.toml"              # a description in examples/
//! programs = ["c:master", "rust:remote 9"] # examples/c/master.c, and the bin `remote` of examples/rust with an argument;
//!                                        # vipl:NAME is examples/c/vipl/NAME.c
//! both_orders = true                     # also started the other way round
//! seconds_max = 20
//! ```
//!
//! A run passes if every program ends with success in time. An example that no run names is a failure. Runs of programs
//! in C only are repeated with programs that were linked with `-static`. What is installed is looked at too: the static
//! library's names, and the symbols apart.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use serde::Deserialize;

use crate::runner::{CHECKED, Context, Verdict};
use crate::{install, libraries, packages};

/// Time between the starts of two programs of a run, so that their order is the one that is meant.
const START_GAP: Duration = Duration::from_millis(200);
/// What the name of a program that was linked with `-static` ends with.
const STATIC: &str = "-static";
/// How often a running program is looked at.
const LOOK_PERIOD: Duration = Duration::from_millis(10);

#[derive(Deserialize)]
struct Runs {
    run: Vec<Run>,
}

#[derive(Deserialize)]
struct Run {
    title: String,
    system: String,
    programs: Vec<String>,
    #[serde(default)]
    both_orders: bool,
    seconds_max: u64,
}

/// Step: each example is built, and every run passes.
///
/// # Errors
/// If a program that must exist cannot be started, or the library does not build.
pub fn step(context: &Context) -> Result<Verdict> {
    let directory = context.root.join("examples");
    let mut sources = Vec::new();
    for library in [Library::Musubi, Library::Vipl] {
        sources.extend(sources_against(library, &directory)?);
    }
    let has_rust = directory.join("rust/Cargo.toml").exists();
    if sources.is_empty() && !has_rust {
        return Ok(Verdict::skipped("examples/ is not in the tree yet"));
    }
    if let Some(reason) = packages::lacking(&["gcc", "libc6-dev", "pkg-config"]) {
        return Ok(Verdict::skipped(reason));
    }
    let runs: Runs = toml::from_str(&std::fs::read_to_string(directory.join("runs.toml")).context("runs.toml")?)?;
    let prefix = context.target.join("installed");
    install::install(context, &prefix, CHECKED)?;
    let programs = context.target.join("examples");
    std::fs::create_dir_all(&programs)?;
    let mut verdict = forgotten(&sources, &runs);
    verdict.add(installed_as_said(context, &prefix)?);
    for source in &sources {
        verdict.add(compile(context, source, &runs, &prefix, &programs)?);
    }
    if has_rust {
        let manifest = directory.join("rust/Cargo.toml");
        let mut cargo = context.cargo();
        context.must(cargo.args(["build", "--profile", CHECKED, "--bins", "--manifest-path"]).arg(manifest))?;
    }
    for run in &runs.run {
        verdict.add(try_orders(context, run, &programs));
    }
    Ok(verdict)
}

/// What an example in C is linked with.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Library {
    Musubi,
    Vipl,
}

impl Library {
    /// Its name for pkg-config.
    fn package(self) -> &'static str {
        match self {
            Library::Musubi => "musubi",
            Library::Vipl => "vipl",
        }
    }

    /// Where examples with it lie below examples/.
    fn folder(self) -> &'static str {
        match self {
            Library::Musubi => "c",
            Library::Vipl => "c/vipl",
        }
    }

    /// What the names of such programs begin with in runs.toml.
    fn kind(self) -> &'static str {
        match self {
            Library::Musubi => "c:",
            Library::Vipl => "vipl:",
        }
    }

    /// The file name of a compiled example.
    fn program(self, stem: &str) -> String {
        match self {
            Library::Musubi => stem.to_owned(),
            Library::Vipl => format!("vipl-{stem}"),
        }
    }
}

/// An example in C.
struct Source {
    library: Library,
    path: PathBuf,
}

impl Source {
    fn stem(&self) -> String {
        self.path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default()
    }

    /// Its name in runs.toml.
    fn name(&self) -> String {
        self.library.kind().to_owned() + &self.stem()
    }
}

fn sources_against(library: Library, examples: &Path) -> Result<Vec<Source>> {
    let Ok(entries) = std::fs::read_dir(examples.join(library.folder())) else { return Ok(Vec::new()) };
    let paths = entries.map(|e| Ok(e?.path())).collect::<Result<Vec<_>>>()?;
    let sources = paths.into_iter().filter(|p| p.extension().is_some_and(|e| e == "c"));
    Ok(sources.map(|path| Source { library, path }).collect())
}

impl Run {
    /// The programs without their arguments.
    fn names(&self) -> impl Iterator<Item = &str> {
        self.programs.iter().filter_map(|program| program.split_whitespace().next())
    }
}

/// A failure for each C example that no run names.
fn forgotten(sources: &[Source], runs: &Runs) -> Verdict {
    let named: BTreeSet<&str> = runs.run.iter().flat_map(Run::names).collect();
    let mut verdict = Verdict::default();
    for name in sources.iter().map(Source::name) {
        if !named.contains(name.as_str()) {
            verdict.add(Verdict::failed(format!("runs.toml does not run {name}")));
        }
    }
    verdict
}

/// Compiles one C example as a user would.
fn compile(context: &Context, source: &Source, runs: &Runs, prefix: &Path, programs: &Path) -> Result<Verdict> {
    let wanted = source.name();
    let Some(run) = runs.run.iter().find(|r| r.names().any(|name| name == wanted)) else {
        return Ok(Verdict::default());
    };
    let generated = programs.join(format!("{}.d", run.system.replace('/', "-")));
    if source.library == Library::Musubi {
        let mut generate = Command::new(prefix.join("bin/musubi"));
        generate.arg("generate").arg(context.root.join("examples").join(&run.system)).arg("--out").arg(&generated);
        context.must(&mut generate)?;
    }
    let mut verdict = Verdict::default();
    for (way, suffix) in [(None, ""), (Some("-static"), STATIC)] {
        let mut ask = Command::new("pkg-config");
        ask.args(way.map(|_| "--static")).args(["--cflags", "--libs", source.library.package()]);
        let flags = context.must(ask.env("PKG_CONFIG_PATH", prefix.join("lib/pkgconfig")))?;
        let mut cc = Command::new("cc");
        cc.args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-O1", "-g", "-I"]).arg(&generated);
        // As its Makefile.
        cc.args((source.library == Library::Vipl).then_some("-D_GNU_SOURCE"));
        cc.arg(&source.path).args(way).arg("-o").arg(programs.join(source.library.program(&source.stem()) + suffix));
        cc.args(flags.split_whitespace()).arg("-pthread").arg(format!("-Wl,-rpath,{}", prefix.join("lib").display()));
        let output = context.run(&mut cc)?;
        verdict.add(match output.status.success() {
            true => Verdict::passed(),
            false => Verdict::failed(format!("{wanted} does not compile {}", way.unwrap_or_default())),
        });
    }
    Ok(verdict)
}

/// Whether the static library offers the headers' names only, and symbols lie apart.
fn installed_as_said(context: &Context, prefix: &Path) -> Result<Verdict> {
    let mut verdict = Verdict::default();
    for library in ["lib/libmusubi.a", "lib/libvipl.a"] {
        let strange = libraries::strange_names(context, &prefix.join(library))?;
        verdict.add(match strange.is_empty() {
            true => Verdict::passed(),
            false => Verdict::failed(format!("{library} offers what no header has: {strange:?}")),
        });
    }
    for file in [prefix.join("lib/libmusubi.so"), prefix.join("lib/libvipl.so"), prefix.join("bin/musubi")] {
        let file = file.canonicalize()?;
        let sections = context.must(Command::new("readelf").args(["-SW"]).arg(&file))?;
        let apart = sections.contains(".gnu_debuglink") && !sections.contains(".debug_info");
        verdict.add(match apart && libraries::symbols_of(&file).exists() {
            true => Verdict::passed(),
            false => Verdict::failed(format!("{}: the symbols are not apart", file.display())),
        });
    }
    Ok(verdict)
}

fn try_orders(context: &Context, run: &Run, programs: &Path) -> Verdict {
    let mut order: Vec<&str> = run.programs.iter().map(String::as_str).collect();
    let mut verdict = Verdict::default();
    for turn in 0..=u32::from(run.both_orders) {
        if turn == 1 {
            order.reverse();
        }
        println!("   {}: {}", run.title, order.join(", "));
        verdict.add(match try_run(context, run, &order, programs) {
            Ok(()) => Verdict::passed(),
            Err(error) => Verdict::failed(format!("{} ({}): {error:#}", run.title, order.join(", "))),
        });
    }
    if let Some(programs_static) = linked_statically(&run.programs) {
        println!("   {}: {}", run.title, programs_static.join(", "));
        let order: Vec<&str> = programs_static.iter().map(String::as_str).collect();
        verdict.add(match try_run(context, run, &order, programs) {
            Ok(()) => Verdict::passed(),
            Err(error) => Verdict::failed(format!("{} ({}): {error:#}", run.title, order.join(", "))),
        });
    }
    verdict
}

/// The same programs linked with `-static`, if all are in C.
fn linked_statically(programs: &[String]) -> Option<Vec<String>> {
    let other = |program: &String| {
        let (name, arguments) = program.split_once(' ').map_or((program.as_str(), ""), |(name, rest)| (name, rest));
        let is_c = [Library::Musubi, Library::Vipl].iter().any(|library| name.starts_with(library.kind()));
        is_c.then(|| format!("{name}{STATIC} {arguments}"))
    };
    programs.iter().map(other).collect()
}

/// Starts the programs in this order and waits for all.
fn try_run(context: &Context, run: &Run, order: &[&str], programs: &Path) -> Result<()> {
    let deadline = Instant::now() + Duration::from_secs(run.seconds_max);
    let mut children = Children(Vec::new());
    for name in order {
        let mut command = command_of(context, name, programs)?;
        command.env("MUSUBI_SYSTEM", context.root.join("examples").join(&run.system));
        command.env("MUSUBI_INSTANCE", format!("xtask{}", std::process::id()));
        children.0.push(((*name).to_owned(), command.spawn().with_context(|| format!("cannot start {name}"))?));
        std::thread::sleep(START_GAP);
    }
    for (name, child) in &mut children.0 {
        let status = loop {
            match child.try_wait()? {
                Some(status) => break status,
                None if Instant::now() >= deadline => bail!("{name} did not end within {} s", run.seconds_max),
                None => std::thread::sleep(LOOK_PERIOD),
            }
        };
        if !status.success() {
            bail!("{name} ended with {status}");
        }
    }
    Ok(())
}

fn command_of(context: &Context, program: &str, programs: &Path) -> Result<Command> {
    let mut words = program.split_whitespace();
    let path = match words.next().and_then(|name| name.split_once(':')) {
        Some(("c", stem)) => programs.join(Library::Musubi.program(stem)),
        Some(("vipl", stem)) => programs.join(Library::Vipl.program(stem)),
        Some(("rust", bin)) => context.target.join(CHECKED).join(bin),
        _ => bail!("runs.toml: a program is c:NAME, vipl:NAME or rust:NAME, not {program}"),
    };
    let mut command = Command::new(path);
    command.args(words);
    Ok(command)
}

/// Children that do not outlive a failed run.
struct Children(Vec<(String, Child)>);

impl Drop for Children {
    fn drop(&mut self) {
        for (_, child) in &mut self.0 {
            // Already gone is just as well.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_example_that_no_run_names_is_a_failure() {
        let runs: Runs = toml::from_str(
            "[[run]]\ntitle = 't'\nsystem = 's.toml'\nprograms = ['c:a 1', 'rust:b']\nseconds_max = 1\n",
        )
        .unwrap();
        let source = |library, path| Source { library, path: PathBuf::from(path) };
        let c = [source(Library::Musubi, "examples/c/a.c"), source(Library::Musubi, "examples/c/b.c")];
        assert_eq!(forgotten(&c, &runs).notes, ["runs.toml does not run c:b"]);
        let vipl = [source(Library::Vipl, "examples/c/vipl/a.c")];
        assert_eq!(forgotten(&vipl, &runs).notes, ["runs.toml does not run vipl:a"]);
        let all = |programs: [&str; 2]| linked_statically(&programs.map(str::to_owned));
        assert_eq!(all(["c:a 1", "c:b"]).unwrap(), ["c:a-static 1", "c:b-static "]);
        assert_eq!(all(["c:a", "vipl:b 2"]).unwrap(), ["c:a-static ", "vipl:b-static 2"]);
        assert_eq!(all(["c:a", "rust:b"]), None);
    }
}

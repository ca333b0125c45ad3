//! Runs commands and steps, and adds up what passed.
//!
//! What you may rely on: no command runs longer than its bound; a step that fails does not stop the following ones; the
//! last line of a run is `N passed, N failed`, with `, N skipped` where something was skipped.
//!
//! How it works: a step is a function from [`Context`] to [`Verdict`]. Test programs say how many tests passed in a
//! summary line of their own, which [`Counts::of_test_output`] reads; any other step counts as one test.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::sync::{OnceLock, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};

use crate::failures;

/// Profile of programs as they are shipped; its results are in a directory of the same name, as for the next.
pub const RELEASE: &str = "release";
/// Profile of programs that are only tested.
pub const CHECKED: &str = "checked";
/// Whether cargo's compilers keep what a next run could begin with.
const INCREMENTAL: &str = "CARGO_INCREMENTAL";
/// Longest time that one command may take.
pub const COMMAND_TIME_MAX: Duration = Duration::from_secs(25 * 60);
/// Most lines of a failed command's output that are shown.
const SHOWN_LINES_MAX: usize = 300;

/// Where a run takes place.
pub struct Context {
    /// The repository's root.
    pub root: PathBuf,
    /// Where build results go.
    pub target: PathBuf,
    /// Whether the output of commands that succeed is shown too.
    pub verbose: bool,
    /// What the loom models said when nothing was weakened, once they have run.
    pub models: OnceLock<Counts>,
}

impl Context {
    /// Finds the repository from where this program was built.
    ///
    /// # Errors
    /// If the root is gone.
    pub fn find(verbose: bool) -> Result<Self> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize().context("the repository moved")?;
        let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), |d| root.join(d));
        Ok(Self { root, target, verbose, models: OnceLock::new() })
    }

    /// `cargo` with the repository's own toolchain, in its root.
    pub fn cargo(&self) -> Command {
        let mut command = Command::new("cargo");
        command.current_dir(&self.root);
        // Most runs are the first ones on their machine; what a next one could begin with takes long to write.
        if std::env::var_os(INCREMENTAL).is_none() {
            command.env(INCREMENTAL, "0");
        }
        command
    }

    /// `cargo +nightly`, in the root; for the checkers that exist nowhere else.
    pub fn cargo_nightly(&self) -> Command {
        let mut command = self.cargo();
        command.env_remove("RUSTUP_TOOLCHAIN").arg("+nightly");
        command
    }

    /// Runs a command within [`COMMAND_TIME_MAX`]; shows its output if it fails.
    ///
    /// # Errors
    /// If it cannot be started or took too long. A failing exit is not an error here.
    pub fn run(&self, command: &mut Command) -> Result<Output> {
        let output = self.run_quietly(command, COMMAND_TIME_MAX)?;
        if !output.status.success() && !self.verbose {
            show_tail(&output.text);
        }
        Ok(output)
    }

    /// Like [`Context::run`], with a bound of its own, and without showing what a failing command wrote.
    ///
    /// # Errors
    /// If it cannot be started or took too long.
    pub fn run_quietly(&self, command: &mut Command, time_max: Duration) -> Result<Output> {
        println!("   $ {}", line_of(command));
        self.run_unseen(command, time_max)
    }

    /// Like [`Context::run_quietly`], but ends the command at the first line that says `enough`.
    ///
    /// # Errors
    /// If it cannot be started or took too long.
    pub fn run_until(&self, command: &mut Command, time_max: Duration, enough: fn(&str) -> bool) -> Result<Output> {
        println!("   $ {}", line_of(command));
        self.run_reading(command, time_max, enough)
    }

    /// Like [`Context::run_quietly`], without saying what runs: for a command whose own output is for a program.
    ///
    /// # Errors
    /// If it cannot be started or took too long.
    pub fn run_unseen(&self, command: &mut Command, time_max: Duration) -> Result<Output> {
        self.run_reading(command, time_max, |_| false)
    }

    /// Like [`Context::run_until`], without a word; gives nothing if the command took too long and was ended.
    ///
    /// # Errors
    /// If it cannot be started.
    pub fn run_within(
        &self,
        command: &mut Command,
        time_max: Duration,
        enough: fn(&str) -> bool,
    ) -> Result<Option<Output>> {
        Ok(match self.read(command, time_max, enough)? {
            Ended::Itself(output) => Some(output),
            Ended::Late(_) => None,
        })
    }

    fn run_reading(&self, command: &mut Command, time_max: Duration, enough: fn(&str) -> bool) -> Result<Output> {
        match self.read(command, time_max, enough)? {
            Ended::Itself(output) => Ok(output),
            Ended::Late(text) => {
                show_tail(&text);
                bail!("{}: took longer than {} s and was ended", line_of(command), time_max.as_secs());
            }
        }
    }

    fn read(&self, command: &mut Command, time_max: Duration, enough: fn(&str) -> bool) -> Result<Ended> {
        let (reader, writer) = std::io::pipe()?;
        command.stdin(std::process::Stdio::null()).stdout(writer.try_clone()?).stderr(writer);
        let child = command.spawn().with_context(|| format!("cannot start {:?}", command.get_program()))?;
        // The command keeps the pipe's writing end; give up ours, else the reader never sees the end.
        command.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null());
        collect(child, reader, self.verbose, time_max, enough).with_context(|| line_of(command))
    }

    /// Runs a command that must succeed, and gives its output.
    ///
    /// # Errors
    /// If it cannot be started, took too long or failed.
    pub fn must(&self, command: &mut Command) -> Result<String> {
        let output = self.run(command)?;
        if !output.status.success() {
            bail!("`{}` failed: {}", line_of(command), output.status);
        }
        Ok(output.text)
    }
}

/// What a command wrote and how it ended.
pub struct Output {
    /// How it ended.
    pub status: ExitStatus,
    /// What it wrote to both outputs.
    pub text: String,
}

/// How a command with a bound ended.
enum Ended {
    /// By itself, or because what it had said was enough.
    Itself(Output),
    /// It took too long; what it wrote.
    Late(String),
}

/// Reads a child's output until its end or a line that is enough, and waits for the child.
fn collect(
    mut child: Child,
    reader: std::io::PipeReader,
    verbose: bool,
    time_max: Duration,
    enough: fn(&str) -> bool,
) -> Result<Ended> {
    let deadline = Instant::now() + time_max;
    let (sender, lines) = mpsc::channel();
    thread::spawn(move || {
        let mut reader = BufReader::new(reader);
        let mut bytes = Vec::new();
        while matches!(reader.read_until(b'\n', &mut bytes), Ok(n) if n > 0) {
            let line = String::from_utf8_lossy(&bytes).into_owned();
            bytes.clear();
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    let mut text = String::new();
    loop {
        match lines.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            Ok(line) => {
                if verbose {
                    print!("{line}");
                }
                text.push_str(&line);
                if enough(line.trim_end()) {
                    crate::family::end(child.id());
                    child.kill()?;
                    break;
                }
            }
            Err(mpsc::RecvTimeoutError::Disconnected) => break,
            Err(mpsc::RecvTimeoutError::Timeout) => {
                crate::family::end(child.id());
                child.kill()?;
                child.wait()?;
                return Ok(Ended::Late(text));
            }
        }
    }
    Ok(Ended::Itself(Output { status: child.wait()?, text }))
}

/// Shows what failed tests wrote, then the end of the whole output.
fn show_tail(text: &str) {
    failures::shown(&failures::of_output(text)).iter().for_each(|line| println!("   | {line}"));
    let lines: Vec<&str> = text.lines().collect();
    let hidden = lines.len().saturating_sub(SHOWN_LINES_MAX);
    if hidden > 0 {
        println!("   ... {hidden} lines before these");
    }
    for line in &lines[hidden..] {
        println!("   | {line}");
    }
}

/// A command as one would type it.
fn line_of(command: &Command) -> String {
    let variables = command.get_envs().filter(|(name, _)| *name != INCREMENTAL).filter_map(|(k, v)| {
        let value = v?.to_string_lossy();
        Some(format!("{}='{value}'", k.to_string_lossy()))
    });
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    variables.chain(words.map(|w| w.to_string_lossy().into_owned())).collect::<Vec<_>>().join(" ")
}

/// How many tests passed, failed and were skipped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Tests that passed.
    pub passed: u64,
    /// Tests that failed.
    pub failed: u64,
    /// Tests that could not run.
    pub skipped: u64,
}

impl Counts {
    /// Adds up the summary lines of test programs (`test result: ok. 3 passed; 0 failed; 1 ignored; ...`).
    pub fn of_test_output(text: &str) -> Self {
        let summaries = text.lines().filter_map(|l| l.trim().strip_prefix("test result: "));
        summaries.fold(Self::default(), |sum, line| {
            let count = |name: &str| {
                let before = line.split(name).next().unwrap_or("");
                before.split_whitespace().last().and_then(|n| n.parse::<u64>().ok()).unwrap_or(0)
            };
            sum.plus(Self { passed: count(" passed"), failed: count(" failed"), skipped: count(" ignored") })
        })
    }

    /// The sum of both.
    pub fn plus(self, other: Self) -> Self {
        Self {
            passed: self.passed + other.passed,
            failed: self.failed + other.failed,
            skipped: self.skipped + other.skipped,
        }
    }
}

/// What a step found.
#[derive(Debug, Default)]
pub struct Verdict {
    /// The step's tests.
    pub counts: Counts,
    /// What failed or was skipped, and why; one line each.
    pub notes: Vec<String>,
}

impl Verdict {
    /// One test that passed.
    pub fn passed() -> Self {
        Self { counts: Counts { passed: 1, ..Counts::default() }, notes: Vec::new() }
    }

    /// One test that failed.
    pub fn failed(why: impl Into<String>) -> Self {
        Self { counts: Counts { failed: 1, ..Counts::default() }, notes: vec![why.into()] }
    }

    /// One test that could not run here.
    pub fn skipped(why: impl Into<String>) -> Self {
        Self { counts: Counts { skipped: 1, ..Counts::default() }, notes: vec![why.into()] }
    }

    /// What a command that ran test programs says. A failing exit is a failure even where no test says so, and so is a
    /// run without a single test.
    pub fn of_tests(output: &Output) -> Self {
        let mut counts = Counts::of_test_output(&output.text);
        let mut notes: Vec<String> = failed_names(&output.text);
        if !output.status.success() && counts.failed == 0 {
            counts.failed = 1;
            notes.push(format!("ended with {} before its tests did", output.status));
        }
        if counts.passed + counts.failed == 0 {
            counts.failed = 1;
            notes.push("ran no test at all".into());
        }
        Self { counts, notes }
    }

    /// One test: whether the command succeeded.
    pub fn of_exit(output: &Output) -> Self {
        if output.status.success() { Self::passed() } else { Self::failed(format!("ended with {}", output.status)) }
    }

    /// Adds another verdict to this one.
    pub fn add(&mut self, other: Self) {
        self.counts = self.counts.plus(other.counts);
        self.notes.extend(other.notes);
    }
}

/// Names of the tests that a test program called failed, each with its panic if that is known.
fn failed_names(text: &str) -> Vec<String> {
    let failures = failures::of_output(text);
    let panic = |name: &str| failures.iter().find(|failure| failure.name == name).and_then(failures::panic_of);
    let name = |line: &str| {
        let name = line.strip_prefix("test ")?.strip_suffix(" ... FAILED")?;
        Some(panic(name).map_or_else(|| name.to_owned(), |panic| format!("{name}: {panic}")))
    };
    text.lines().filter_map(name).collect()
}

/// One step of `cargo xtask test`.
pub struct Step {
    /// What it does, for people.
    pub title: &'static str,
    /// Does it.
    pub run: fn(&Context) -> Result<Verdict>,
}

/// Runs all steps, whatever fails, and prints the sum. Gives whether nothing failed.
pub fn run_all(context: &Context, steps: &[Step]) -> bool {
    let start = Instant::now();
    let mut sum = Counts::default();
    let mut notes = Vec::new();
    let mut times = Vec::new();
    for (number, step) in steps.iter().enumerate() {
        println!("== {}/{} {}", number + 1, steps.len(), step.title);
        let begin = Instant::now();
        let verdict = (step.run)(context).unwrap_or_else(|error| Verdict::failed(format!("{error:#}")));
        print_step(&verdict, begin.elapsed());
        times.push((step.title, begin.elapsed()));
        sum = sum.plus(verdict.counts);
        let kind = if verdict.counts.failed > 0 { "FAILED" } else { "skipped" };
        notes.extend(verdict.notes.into_iter().map(|note| format!("{kind}: {}: {note}", step.title)));
    }
    println!("== all steps took {:.0} s", start.elapsed().as_secs_f64());
    if times.len() > 1 {
        slowest_first(times).iter().for_each(|line| println!("{line}"));
    }
    for note in &notes {
        println!("   {note}");
    }
    println!("{}", last_line(sum));
    sum.failed == 0
}

/// Where the time went, a line a step.
fn slowest_first(mut times: Vec<(&str, Duration)>) -> Vec<String> {
    times.sort_by_key(|&(_, took)| std::cmp::Reverse(took));
    times.iter().map(|(title, took)| format!("   {:>6.1} s  {title}", took.as_secs_f64())).collect()
}

fn print_step(verdict: &Verdict, took: Duration) {
    let Counts { passed, failed, skipped } = verdict.counts;
    let word = match (failed, passed, skipped) {
        (1.., _, _) => "FAILED",
        (0, 0, 1..) => "skipped",
        _ => "ok",
    };
    println!("   {word} in {:.1} s: {}", took.as_secs_f64(), last_line(verdict.counts));
    for note in &verdict.notes {
        println!("   - {note}");
    }
}

/// The sum as one line.
pub fn last_line(counts: Counts) -> String {
    let Counts { passed, failed, skipped } = counts;
    if skipped > 0 {
        format!("{passed} passed, {failed} failed, {skipped} skipped")
    } else {
        format!("{passed} passed, {failed} failed")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TWO_PROGRAMS: &str = "\
running 3 tests
test a ... ok
test b::c ... FAILED
test result: FAILED. 2 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.1s
test result: ok. 40 passed; 0 failed; 3 ignored; 0 measured; 1 filtered out; finished in 0.00s
";

    fn output(code: i32, text: &str) -> Output {
        use std::os::unix::process::ExitStatusExt;
        Output { status: ExitStatus::from_raw(code << 8), text: text.into() }
    }

    #[test]
    fn summaries_are_added_up() {
        assert_eq!(Counts::of_test_output(TWO_PROGRAMS), Counts { passed: 42, failed: 1, skipped: 3 });
    }

    #[test]
    fn failed_tests_are_named() {
        assert_eq!(Verdict::of_tests(&output(101, TWO_PROGRAMS)).notes, ["b::c"]);
        let told =
            format!("{TWO_PROGRAMS}failures:\n\n---- b::c stdout ----\nthread 'b::c' panicked at a.rs:1:2:\nno\n");
        assert_eq!(Verdict::of_tests(&output(101, &told)).notes, ["b::c: a.rs:1:2: no"]);
    }

    #[test]
    fn a_failing_exit_without_a_failed_test_is_a_failure() {
        assert_eq!(Verdict::of_tests(&output(101, "error: could not compile")).counts.failed, 1);
    }

    #[test]
    fn no_test_at_all_is_a_failure() {
        let none = "test result: ok. 0 passed; 0 failed; 0 ignored; 0 measured; 7 filtered out; finished in 0.00s";
        assert_eq!(Verdict::of_tests(&output(0, none)).counts.failed, 1);
    }

    #[test]
    fn the_time_of_each_step_is_told_slowest_first() {
        let times = vec![("a", Duration::from_millis(100)), ("b", Duration::from_secs(90))];
        assert_eq!(slowest_first(times), ["     90.0 s  b", "      0.1 s  a"]);
    }

    #[test]
    fn the_last_line_names_skipped_tests_only_where_there_are_some() {
        assert_eq!(last_line(Counts { passed: 5, failed: 0, skipped: 0 }), "5 passed, 0 failed");
        assert_eq!(last_line(Counts { passed: 5, failed: 1, skipped: 2 }), "5 passed, 1 failed, 2 skipped");
    }

    #[test]
    fn a_command_past_its_bound_is_ended() {
        let context = Context::find(false).unwrap();
        let begin = Instant::now();
        let mut sleep = Command::new("sleep");
        let error = context.run_quietly(sleep.arg("20"), Duration::from_millis(50)).err().unwrap();
        assert!(format!("{error:#}").contains("took longer"), "{error:#}");
        assert!(begin.elapsed() < Duration::from_secs(10));
    }
}

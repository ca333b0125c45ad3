//! The tests of one crate, run once: do they notice?
//!
//! What you may rely on: a trial ends within [`BUILD_TIME_MAX`] and the bound that follows from the unchanged run. One that takes
//! longer than that has hung, and counts as not noticed.
//!
//! How it works: the tests inside the crate first, which need one program only; those beside it if nothing has failed. The first
//! test that fails ends the trial. What does not compile is no mutant, unless an assertion at compile time has failed.

use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use super::suites::Suite;
use super::tree::Copied;
use crate::models::says_failed;
use crate::runner::{Context, Counts, Output};

/// Longest build.
const BUILD_TIME_MAX: Duration = Duration::from_secs(900);
/// Longest run of tests: so many times what they take without a change, but not less than the second.
const TIMES_USUAL_MAX: u32 = 5;
const TEST_TIME_MIN: Duration = Duration::from_secs(90);
/// The compiler's number for a constant that could not be computed, such as an assertion that does not hold.
const CONSTANT_FAILED: &str = "error[E0080]";

/// What came of a mutant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// This failed.
    Caught(String),
    /// Every test passed.
    Missed,
    /// A test did not end.
    Hung,
    /// It does not compile.
    Unviable,
    /// It is known that nothing can notice it.
    Equivalent,
}

impl Outcome {
    /// For people.
    pub fn word(&self) -> &'static str {
        match self {
            Outcome::Caught(_) => "caught",
            Outcome::Missed => "MISSED",
            Outcome::Hung => "HUNG",
            Outcome::Unviable => "unviable",
            Outcome::Equivalent => "equivalent",
        }
    }

    /// What has noticed it, for people.
    pub fn noticed_by(&self) -> String {
        match self {
            Outcome::Caught(by) => format!(" by {by}"),
            _ => String::new(),
        }
    }
}

/// How long the tests take without a change.
///
/// # Errors
/// If they do not pass.
pub fn baseline(context: &Context, copied: &Copied, suite: &Suite) -> Result<Duration> {
    let mut longest = Duration::ZERO;
    for stage in suite.stages {
        let build = context.run_within(&mut build(context, copied, suite, stage), BUILD_TIME_MAX, |_| false)?;
        let begin = Instant::now();
        let tests = context.run_within(&mut tests(context, copied, suite, stage), BUILD_TIME_MAX, says_failed)?;
        longest = longest.max(begin.elapsed());
        if tests.as_ref().is_some_and(|output| Counts::of_test_output(&output.text).passed == 0) {
            bail!("{} has no tests of this kind: {}", suite.package, stage.join(" "));
        }
        for output in [build, tests] {
            match output {
                Some(output) if output.status.success() => {}
                Some(output) => bail!("{} fails without any change:\n{}", suite.package, output.text),
                None => bail!("{} takes longer than {} s without any change", suite.package, BUILD_TIME_MAX.as_secs()),
            }
        }
    }
    Ok(longest)
}

/// Runs the tests on a changed tree; `usual` is what the longest stage takes without a change.
///
/// # Errors
/// If cargo cannot be started.
pub fn run(context: &Context, copied: &Copied, suite: &Suite, usual: Duration) -> Result<Outcome> {
    let time_max = (usual * TIMES_USUAL_MAX).max(TEST_TIME_MIN);
    for stage in suite.stages {
        let built = context.run_within(&mut build(context, copied, suite, stage), BUILD_TIME_MAX, |_| false)?;
        if let Some(outcome) = of_build(built.as_ref()) {
            return Ok(outcome);
        }
        let ended = context.run_within(&mut tests(context, copied, suite, stage), time_max, says_failed)?;
        if let Some(outcome) = of_tests(ended.as_ref()) {
            return Ok(outcome);
        }
    }
    Ok(Outcome::Missed)
}

fn build(context: &Context, copied: &Copied, suite: &Suite, stage: &[&str]) -> std::process::Command {
    let mut cargo = copied.cargo(context);
    cargo.args(["test", "--no-run", "-p", suite.package]).args(suite.features).args(stage);
    cargo
}

fn tests(context: &Context, copied: &Copied, suite: &Suite, stage: &[&str]) -> std::process::Command {
    let mut cargo = copied.cargo(context);
    cargo.args(["test", "-p", suite.package]).args(suite.features).args(stage).arg("--");
    cargo.args(suite.left_out.iter().flat_map(|name| ["--skip", name]));
    cargo
}

/// What a build says; `None` if the tests must say it. A build that took too long is given up as one that failed.
fn of_build(output: Option<&Output>) -> Option<Outcome> {
    match output {
        Some(output) if output.status.success() => None,
        Some(output) if output.text.contains(CONSTANT_FAILED) => {
            Some(Outcome::Caught("an assertion at compile time".into()))
        }
        _ => Some(Outcome::Unviable),
    }
}

/// What a run of tests says; `None` if all passed.
fn of_tests(output: Option<&Output>) -> Option<Outcome> {
    let Some(output) = output else { return Some(Outcome::Hung) };
    let failed = output.text.lines().find(|line| says_failed(line));
    match failed.and_then(|line| line.strip_prefix("test ")?.strip_suffix(" ... FAILED")) {
        Some(name) => Some(Outcome::Caught(name.into())),
        None if output.status.success() => None,
        None => Some(Outcome::Caught(format!("a test program that ended with {}", output.status))),
    }
}

#[cfg(test)]
mod tests_of_outcomes {
    use std::os::unix::process::ExitStatusExt as _;
    use std::process::ExitStatus;

    use super::*;

    fn output(wait_status: i32, text: &str) -> Output {
        Output { status: ExitStatus::from_raw(wait_status), text: text.into() }
    }

    #[test]
    fn a_build_that_fails_is_no_mutant_but_for_assertions() {
        assert_eq!(of_build(Some(&output(0, ""))), None);
        assert_eq!(of_build(Some(&output(101 << 8, "error[E0308]: mismatched types"))), Some(Outcome::Unviable));
        let asserted = of_build(Some(&output(101 << 8, "error[E0080]: evaluation panicked: too large")));
        assert_eq!(asserted, Some(Outcome::Caught("an assertion at compile time".into())));
        assert_eq!(of_build(None), Some(Outcome::Unviable));
    }

    #[test]
    fn the_first_test_that_fails_has_caught_it() {
        let text = "running 2 tests\ntest a::b ... ok\ntest a::c ... FAILED\n";
        assert_eq!(of_tests(Some(&output(9, text))), Some(Outcome::Caught("a::c".into())));
        assert_eq!(of_tests(Some(&output(0, "test a::b ... ok\n"))), None);
    }

    #[test]
    fn a_program_that_dies_has_noticed_and_one_that_hangs_has_not() {
        assert!(matches!(of_tests(Some(&output(6, "test a::b ... "))), Some(Outcome::Caught(_))));
        assert_eq!(of_tests(None), Some(Outcome::Hung));
    }
}

//! Cases, how they end, and what is printed about it.

use core::fmt;

use musubi_metal::println;

use crate::{Suite, Target};

/// Why a case failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Where, a file of this crate.
    pub file: &'static str,
    /// The line there.
    pub line: u32,
    /// What was expected.
    pub expected: &'static str,
    /// What was found instead, where that is a number.
    pub found: Option<u64>,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: expected: {}", self.file, self.line, self.expected)?;
        self.found.map_or(Ok(()), |found| write!(f, ", found {found}"))
    }
}

/// Fails the case unless something holds.
macro_rules! ensure {
    ($condition:expr, $expected:expr) => {
        if !$condition {
            return Err($crate::Failure { file: file!(), line: line!(), expected: $expected, found: None });
        }
    };
}

/// Fails the case unless a number is another.
macro_rules! ensure_eq {
    ($found:expr, $wanted:expr, $expected:expr) => {
        let found = $found;
        if found != $wanted {
            let found = Some(found as u64);
            return Err($crate::Failure { file: file!(), line: line!(), expected: $expected, found });
        }
    };
}
pub(crate) use {ensure, ensure_eq};

/// One case.
pub struct Case<P: Target> {
    /// Its module and name.
    pub name: &'static str,
    /// Online cores that it needs.
    pub cores: u32,
    /// Whether the boot core must be interrupted while it computes.
    pub interrupted: bool,
    /// Runs it, on the boot core.
    pub run: fn(&'static Suite<P>) -> Result<(), Failure>,
}

/// Cases from functions, named after them, with the number of cores that each needs, and `if interrupted` behind those that
/// need interrupts.
macro_rules! cases {
    ($($name:ident on $cores:literal $(if $interrupted:ident)?),+ $(,)?) => {
        [$($crate::report::Case {
            name: concat!(module_path!(), "::", stringify!($name)),
            cores: $cores,
            interrupted: false $(|| !stringify!($interrupted).is_empty())?,
            run: $name,
        }),+]
    };
}
pub(crate) use cases;

/// How many cases ended how.
#[derive(Clone, Copy, Debug, Default)]
pub struct Outcome {
    pub passed: u32,
    pub failed: u32,
    pub skipped: u32,
}

impl Outcome {
    /// Counts and reports how a case ended.
    pub fn add<P: Target>(&mut self, name: &str, result: Result<(), impl fmt::Display>) {
        match result {
            Ok(()) => self.passed += 1,
            Err(failure) => {
                self.failed += 1;
                println!(P, "FAILED {name}: {failure}");
            }
        }
    }

    /// Counts and reports a case that cannot run here.
    pub fn skip<P: Target>(&mut self, name: &str, why: fmt::Arguments<'_>) {
        self.skipped += 1;
        println!(P, "skipped {name}: {why}");
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Outcome { passed, failed, skipped } = self;
        write!(f, "{passed} passed, {failed} failed, {skipped} skipped")
    }
}

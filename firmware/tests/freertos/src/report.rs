//! Results, a line each, and their sum.

use core::fmt;

/// The sum so far.
pub struct Report {
    print: fn(fmt::Arguments<'_>),
    passed: u32,
    failed: u32,
    skipped: u32,
}

impl Report {
    /// Nothing yet.
    pub fn new(print: fn(fmt::Arguments<'_>)) -> Report {
        Report { print, passed: 0, failed: 0, skipped: 0 }
    }

    /// Prints and counts a result. What passed is only counted.
    pub fn result(&mut self, name: &str, result: Result<(), impl fmt::Display>) {
        match result {
            Ok(()) => self.passed += 1,
            Err(reason) => {
                self.failed += 1;
                (self.print)(format_args!("FAILED {name}: {reason}"));
            }
        }
    }

    /// Says why a test is not run.
    pub fn skipped(&mut self, name: &str, reason: &str) {
        self.skipped += 1;
        (self.print)(format_args!("skipped {name}: {reason}"));
    }

    /// The last line.
    pub fn finish(self) {
        let Report { passed, failed, skipped, .. } = self;
        match skipped {
            0 => (self.print)(format_args!("{passed} passed, {failed} failed")),
            _ => (self.print)(format_args!("{passed} passed, {failed} failed, {skipped} skipped")),
        }
    }
}

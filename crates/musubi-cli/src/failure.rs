//! How a command says what went wrong: one line that says what, then causes, then what to do.

use std::fmt;
use std::io::Write;

use anstyle::{AnsiColor, Style};
use musubi_config::Report;

const ERROR: Style = AnsiColor::Red.on_default().bold();
const HELP: Style = AnsiColor::Cyan.on_default().bold();

/// A failure with advice.
#[derive(Debug)]
pub struct Failure {
    what: String,
    help: String,
}

impl Failure {
    /// `what` went wrong, and what to do about it.
    pub fn new(what: impl Into<String>, help: impl Into<String>) -> Failure {
        Failure { what: what.into(), help: help.into() }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)
    }
}

impl std::error::Error for Failure {}

/// A failure about which everything has been said.
#[derive(Debug)]
pub struct Quiet;

impl fmt::Display for Quiet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("failed")
    }
}

impl std::error::Error for Quiet {}

/// Prints an error on standard error. Where even that is closed, nobody listens.
pub fn print(error: &anyhow::Error) {
    let _ = anstream::stderr().lock().write_all(render(error).as_bytes());
}

fn render(error: &anyhow::Error) -> String {
    if error.is::<Quiet>() {
        return String::new();
    }
    if let Some(report) = error.downcast_ref::<Report>() {
        return report.render(true) + "\n";
    }
    let mut text = format!("{ERROR}error{ERROR:#}: {error}\n");
    let mut said = error.to_string();
    for cause in error.chain().skip(1).map(ToString::to_string) {
        // Many errors say their cause themselves.
        if !said.ends_with(&cause) {
            text.push_str(&format!("  because: {cause}\n"));
        }
        said = cause;
    }
    if let Some(failure) = error.downcast_ref::<Failure>() {
        text.push_str(&format!("{HELP}help{HELP:#}: {}\n", failure.help));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cause_that_was_said_is_not_said_again() {
        let full = || std::io::Error::from_raw_os_error(28);
        let bare = anyhow::Error::new(full()).context("writing x");
        let twice = anyhow::Error::new(full()).context(format!("x: {}", full()));
        let text = |error| anstream::adapter::strip_str(&render(&error)).to_string();
        assert_eq!(text(bare), format!("error: writing x\n  because: {}\n", full()));
        assert_eq!(text(twice), format!("error: x: {}\n", full()));
    }
}

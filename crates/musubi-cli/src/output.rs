//! Text on standard output and standard error, with colours only where they are shown; and whether a file can be written.

use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};
use std::path::Path;

use anyhow::Context;

/// Writes a text. A reader that has closed its end has seen enough, so that is no error.
///
/// # Errors
/// What else keeps the text from being written.
pub fn print(text: &str) -> anyhow::Result<()> {
    offer(text).map(drop)
}

/// The same; false if the reader has closed its end: whoever only goes on to say more may stop.
///
/// # Errors
/// As [`print()`].
pub fn offer(text: &str) -> anyhow::Result<bool> {
    let mut stdout = anstream::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Writes a line to standard error. Where even that is closed or full, nobody listens, and the command goes on.
pub fn note(text: &str) {
    say(&format!("{text}\n"));
}

/// The same without the end of the line.
pub fn say(text: &str) {
    let mut stderr = anstream::stderr().lock();
    let _ = stderr.write_all(text.as_bytes()).and_then(|()| stderr.flush());
}

/// Refuses a file that cannot be written, before work is done for it.
///
/// # Errors
/// Why it cannot be written.
pub fn check_writable(path: Option<&Path>) -> anyhow::Result<()> {
    let Some(path) = path else { return Ok(()) };
    let is_new = !path.exists();
    let opened = OpenOptions::new().append(true).create(true).open(path);
    opened.with_context(|| format!("cannot write {}", path.display()))?;
    if is_new {
        std::fs::remove_file(path).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}

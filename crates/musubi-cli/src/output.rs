//! Text on standard output, with colours only where they are shown.

use std::io::{ErrorKind, Write};

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

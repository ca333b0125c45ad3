//! Text on standard output, with colours only where they are shown.

use std::io::{ErrorKind, Write};

/// Writes a text. A reader that has closed its end has seen enough, so that is no error.
///
/// # Errors
/// What else keeps the text from being written.
pub fn print(text: &str) -> anyhow::Result<()> {
    let mut stdout = anstream::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(()),
    }
}

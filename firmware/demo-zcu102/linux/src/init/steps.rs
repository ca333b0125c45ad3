//! Steps of the script that may not last: waiting for something, and ending a process.
//!
//! What you may rely on: no wait is longer than [`PATIENCE`].

use std::process::Child;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

/// Longest time that one step may take.
pub const PATIENCE: Duration = Duration::from_secs(40);
/// Time between two looks.
const LOOK: Duration = Duration::from_millis(5);

/// Waits until something is there.
///
/// # Errors
/// If it does not come within [`PATIENCE`], or looking for it fails.
pub fn wait_for(what: &str, mut is_there: impl FnMut() -> Result<bool>) -> Result<()> {
    let begin = Instant::now();
    while !is_there()? {
        if begin.elapsed() > PATIENCE {
            bail!("{what} did not come within {} s", PATIENCE.as_secs());
        }
        thread::sleep(LOOK);
    }
    Ok(())
}

/// Kills a process, as nothing else of it may be left.
pub fn kill(child: &mut Child) -> Result<()> {
    child.kill().context("killing a process")?;
    child.wait().context("waiting for a killed process")?;
    Ok(())
}

/// Waits until a process ends; one that does not is killed.
///
/// # Errors
/// If it does not within [`PATIENCE`].
pub fn await_end(mut process: Child, what: &str) -> Result<()> {
    let ended = wait_for(what, || Ok(process.try_wait()?.is_some()));
    if ended.is_err() {
        kill(&mut process)?;
    }
    ended
}

//! The VIs' part of the demo: a process that is killed in the middle of its stream over reliable VIs, and another that follows.

use std::process::{Child, Command};

use anyhow::{Context, Result, bail};
use zcu102_linux::{Journal, STREAMED, SURVIVED, Survived};

use crate::steps::{await_end, kill, wait_for};

/// The program.
const NIC: &str = "/bin/nic";
/// Sends that the first process completes before it is killed.
const SENDS: u64 = 200;

/// Runs the processes; gives what the second one found.
///
/// # Errors
/// Where it cannot go on.
pub fn run() -> Result<Survived> {
    let mut first = start("stream")?;
    let enough = wait_for("sends to the Cortex-R5F's NIC", || {
        if let Some(status) = first.try_wait()? {
            bail!("the first process with a NIC ended by itself: {status}");
        }
        Ok(std::fs::metadata(STREAMED).map_or(0, |file| file.len()) >= SENDS)
    });
    kill(&mut first)?;
    enough?;
    println!("killed process {} in the middle of its stream over VIs; another NIC follows", first.id());
    await_end(start("cases")?, "the end of the second process with a NIC")?;
    Journal::read(SURVIVED)?.pop().context("what the second process with a NIC has found")
}

fn start(what: &str) -> Result<Child> {
    Command::new(NIC).arg(what).spawn().with_context(|| format!("starting a NIC, {what}"))
}

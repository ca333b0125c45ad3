//! The nodes' part of the demo: a process whose node is killed in the middle of its questions, and another that follows.

use std::process::{Child, Command};

use anyhow::{Context, Result, bail};
use zcu102_linux::{ECHOED, PASSED};

use crate::script::{kill, wait_for};

/// The program.
const NODE: &str = "/bin/node";
/// Echoes that the first process has before it is killed.
const ECHOES: u64 = 200;

/// What was seen of them.
#[derive(Clone, Copy, Debug, Default)]
pub struct Nodes {
    /// Right echoes before the kill.
    pub echoed: u64,
    /// Cases that passed with the second process: on Linux, and on the Cortex-R5F.
    pub passed: [u8; 2],
}

/// Runs both processes.
///
/// # Errors
/// Where it cannot go on.
pub fn run() -> Result<Nodes> {
    let mut first = start("echo")?;
    let enough = wait_for("echoes of the Cortex-R5F's node", || {
        if let Some(status) = first.try_wait()? {
            bail!("the first node ended by itself: {status}");
        }
        Ok(echoed() >= ECHOES)
    });
    kill(&mut first)?;
    enough?;
    println!("killed process {} in the middle of its questions; another node follows", first.id());
    let mut second = start("cases")?;
    let ended = wait_for("the second node's end", || Ok(second.try_wait()?.is_some()));
    if ended.is_err() {
        kill(&mut second)?;
    }
    ended?;
    let passed = std::fs::read(PASSED).context("what the second node has seen")?;
    Ok(Nodes { echoed: echoed(), passed: passed.try_into().unwrap_or_default() })
}

fn start(what: &str) -> Result<Child> {
    Command::new(NODE).arg(what).spawn().with_context(|| format!("starting a node, {what}"))
}

fn echoed() -> u64 {
    std::fs::metadata(ECHOED).map_or(0, |file| file.len())
}

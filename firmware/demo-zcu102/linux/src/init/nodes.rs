//! The nodes' part of the demo: a process whose node is killed in the middle of its questions, and another that follows; then
//! a process whose node is in C, as its peer is.

use std::process::{Child, Command};

use anyhow::{Context, Result, bail};
use zcu102_exchange::Tally;
use zcu102_linux::{ECHOED, EXCHANGED, PASSED};

use crate::steps::{await_end, kill, wait_for};

/// The program.
const NODE: &str = "/bin/node";
/// The one in C.
const EXCHANGE: &str = "/bin/exchange";
/// Echoes that the first process has before it is killed.
const ECHOES: u64 = 200;

/// What was seen of them.
#[derive(Clone, Debug, Default)]
pub struct Nodes {
    /// Right echoes before the kill.
    pub echoed: u64,
    /// Cases that passed with the second process: on Linux, and on the Cortex-R5F.
    pub passed: [u8; 2],
    /// What the nodes in C received right, life by life, on Linux and on the Cortex-R5F in turn.
    pub exchanged: Vec<Tally>,
}

/// Runs the processes.
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
    await_end(start("cases")?, "the second node's end")?;
    let passed = std::fs::read(PASSED).context("what the second node has seen")?;
    let in_c = Command::new(EXCHANGE).spawn().context("starting the node in C")?;
    await_end(in_c, "the end of the node in C")?;
    let exchanged = tallies(&std::fs::read(EXCHANGED).context("what the nodes in C have seen")?);
    Ok(Nodes { echoed: echoed(), passed: passed.try_into().unwrap_or_default(), exchanged })
}

/// The tallies of a record.
fn tallies(bytes: &[u8]) -> Vec<Tally> {
    let numbers: Vec<u32> = bytes.as_chunks().0.iter().map(|bytes| u32::from_le_bytes(*bytes)).collect();
    let (tallies, _) = numbers.as_chunks::<6>();
    tallies.iter().map(|numbers| Tally::of(*numbers)).collect()
}

fn start(what: &str) -> Result<Child> {
    Command::new(NODE).arg(what).spawn().with_context(|| format!("starting a node, {what}"))
}

fn echoed() -> u64 {
    std::fs::metadata(ECHOED).map_or(0, |file| file.len())
}

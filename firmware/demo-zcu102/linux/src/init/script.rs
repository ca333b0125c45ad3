//! The demo itself: a Remote is killed in the middle of traffic and followed by another, which has the Master crash and
//! goes on. Then the same of nodes of MCAPI, and of NICs.
//!
//! What you may rely on: no step waits longer than [`PATIENCE`](crate::steps::PATIENCE). The figures are read from the shared memory, where both
//! sides count, and from the records that survive the killed process; nothing is assumed.

use std::process::Command;
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use musubi_core::layout::{Part, rx, tx};
use musubi_core::plan::Plan;
use musubi_linux::uio::{Device, Observer};
use zcu102_demo::system::{self, domain, fifo};
use zcu102_linux::{ANSWERED, Answered, Journal, RECEIVED, Received, Survived};

use crate::nics;
use crate::nodes::{self, Nodes};
use crate::steps::{kill, wait_for};

/// How far into its second pass the first Remote is killed.
const INTO_PASS: Duration = Duration::from_millis(200);
/// How long no process is there.
const ABSENCE: Duration = Duration::from_millis(400);
/// Passes that the first Remote completes.
const PASSES: usize = 1;
/// The program.
const REMOTE: &str = "/bin/remote";
/// The plan that all were built with.
static PLAN: &Plan<'static> = &system::PLAN;

/// What was seen.
#[derive(Clone, Debug, Default)]
pub struct Evidence {
    /// What the Remotes recorded.
    pub received: Vec<Received>,
    /// What the Master answered.
    pub answered: Vec<Answered>,
    /// The Master's two incarnations.
    pub masters: [Master; 2],
    /// The two processes.
    pub remotes: [Remote; 2],
    /// Telemetry messages that the Master had sent when the first process was killed, and when the second one was started.
    pub absence: (u64, u64),
    /// Blocks of the stream that the first process had sent since its last whole pass when it was killed.
    pub sent_into_pass: u64,
    /// What came of the nodes, which ran then.
    pub nodes: Nodes,
    /// What came of the NICs, which ran last.
    pub survived: Survived,
}

/// What an incarnation of the Master has counted.
#[derive(Clone, Copy, Debug, Default)]
pub struct Master {
    /// Its epoch.
    pub epoch: u32,
    /// Telemetry messages sent.
    pub telemetry_sent: u64,
    /// Messages of the stream dequeued.
    pub stream_received: u64,
}

/// What a process has counted.
#[derive(Clone, Copy, Debug, Default)]
pub struct Remote {
    /// Its epoch.
    pub epoch: u32,
    /// Telemetry messages dequeued.
    pub telemetry_received: u64,
    /// Messages of the stream sent.
    pub stream_sent: u64,
    /// Of those, messages dropped because the Master had restarted before it took them.
    pub stream_dropped: u64,
}

/// Runs it.
///
/// # Errors
/// Where it cannot go on.
pub fn run() -> Result<Evidence> {
    let device = Device::open(PLAN, domain::LINUX)?;
    let observer = Observer::new(PLAN, &device)?;
    let mut evidence = Evidence::default();
    let (master, remote) = (PLAN.first_participant(domain::R5), PLAN.first_participant(domain::LINUX));
    wait_for("the Master's start", || Ok(observer.epoch(master) != 0))?;
    let first = first_remote(&observer, &mut evidence)?;
    second_remote()?;
    let epochs = [first.0, observer.epoch(master)];
    evidence.masters = epochs.map(|epoch| count_master(&observer, master, epoch));
    evidence.remotes = [first.1, observer.epoch(remote)].map(|epoch| count_remote(&observer, remote, epoch));
    evidence.received = Journal::read(RECEIVED)?;
    evidence.answered = Journal::read(ANSWERED)?;
    evidence.nodes = nodes::run()?;
    evidence.survived = nics::run()?;
    Ok(evidence)
}

/// Runs the first process until it is killed; gives the Master's epoch and its own.
fn first_remote(observer: &Observer, evidence: &mut Evidence) -> Result<(u32, u32)> {
    let (master, remote) = (PLAN.first_participant(domain::R5), PLAN.first_participant(domain::LINUX));
    let mut child = Command::new(REMOTE).arg("endless").spawn().context("starting the Remote")?;
    let passes = wait_for("the first pass", || {
        if let Some(status) = child.try_wait()? {
            bail!("the first Remote ended by itself: {status}");
        }
        Ok(Journal::<Answered>::read(ANSWERED)?.len() >= PASSES)
    });
    let epochs = (observer.epoch(master), observer.epoch(remote));
    let stream_sent = || count_remote(observer, remote, epochs.1).stream_sent;
    let at_pass = stream_sent();
    if passes.is_ok() {
        thread::sleep(INTO_PASS);
    }
    let telemetry_sent = || count_master(observer, master, epochs.0).telemetry_sent;
    kill(&mut child)?;
    passes?;
    let at_kill = telemetry_sent();
    evidence.sent_into_pass = stream_sent() - at_pass;
    println!("killed process {} in the middle of its traffic; the Master goes on alone", child.id());
    thread::sleep(ABSENCE);
    evidence.absence = (at_kill, telemetry_sent());
    Ok(epochs)
}

/// Runs the second process until it ends.
fn second_remote() -> Result<()> {
    let mut child = Command::new(REMOTE).arg("crash").spawn().context("starting the second Remote")?;
    let ended = wait_for("the second Remote's end", || Ok(child.try_wait()?.is_some()));
    if ended.is_err() {
        kill(&mut child)?;
    }
    ended?;
    let status = child.wait()?;
    if status.success() { Ok(()) } else { bail!("the second Remote ended: {status}") }
}

fn count_master(observer: &Observer, master: u16, epoch: u32) -> Master {
    let telemetry = observer.part(master, epoch, Part::Tx(fifo::TELEMETRY));
    let stream = observer.part(master, epoch, Part::Rx(fifo::STREAM));
    Master {
        epoch,
        telemetry_sent: telemetry.map_or(0, |end| end.counter(tx::SENT, tx::SENT_HIGH)),
        stream_received: stream.map_or(0, |end| end.counter(rx::RECEIVED, rx::RECEIVED_HIGH)),
    }
}

fn count_remote(observer: &Observer, remote: u16, epoch: u32) -> Remote {
    let telemetry = observer.part(remote, epoch, Part::Rx(fifo::TELEMETRY));
    let stream = observer.part(remote, epoch, Part::Tx(fifo::STREAM));
    Remote {
        epoch,
        telemetry_received: telemetry.map_or(0, |end| end.counter(rx::RECEIVED, rx::RECEIVED_HIGH)),
        stream_sent: stream.map_or(0, |end| end.counter(tx::SENT, tx::SENT_HIGH)),
        stream_dropped: stream.map_or(0, |end| u64::from(end.get(tx::DROPPED))),
    }
}

//! A NIC in an ordinary process, beside the Cortex-R5F's: streams to it over reliable VIs until it is killed, or compares what came of
//! the former one's stream and runs the test suite's cases of VIs.
//!
//! What you may rely on: what was seen is in files that survive the process: [`STREAMED`] has a byte for each send that has
//! completed, the number of its VI's level; [`SURVIVED`] what the successor found.
#![forbid(unsafe_code)]

use std::fs::OpenOptions;
use std::io::Write as _;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use musubi_core::channel::{Attachment as _, Deadline as Until};
use musubi_core::plan::Plan;
use musubi_linux::uio::{Options, Participant, ProcessHost};
use musubi_testsuite_vis::{CASES_WITHIN_A_LIFE, Failure, Part, Setup, die, live_on, run_some};
use musubi_transport::mapped::{self, Deadline};
use musubi_vipl::address::NicNumber;
use musubi_vipl::mapped::Nic;
use zcu102_demo::nics::{MEMORY, NAMES, Running, TABLE};
use zcu102_demo::system;
use zcu102_linux::{STREAMED, SURVIVED, Survived};

/// The plan that both sides were built with.
static PLAN: &Plan<'static> = &system::PLAN;
/// How long the memory may take to be there.
const PATIENCE_NS: u64 = 30_000_000_000;

fn main() -> ExitCode {
    let what = std::env::args().nth(1);
    let result = Participant::attach(Options::new(PLAN, "linux")).context("attaching").and_then(|participant| {
        let open = || open(&participant);
        let within = |ns| Deadline::At(participant.now_ns() + ns);
        let setup: Setup<'_, Running<ProcessHost>> = Setup { nics: 2, own: NicNumber(1), open: &open, within: &within };
        println!("nic: process {}, NIC {}", std::process::id(), NAMES[1]);
        let mut part = Part::join(&setup).map_err(|failure| failed(&failure))?;
        match what.as_deref() {
            Some("stream") => stream(&mut part),
            Some("cases") => cases(&mut part),
            _ => bail!("say \"stream\", to send until killed, or \"cases\""),
        }
    });
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            println!("nic: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn failed(failure: &Failure) -> anyhow::Error {
    anyhow::anyhow!("{failure}")
}

/// # Panics
/// If the description has not this memory, which is ours.
fn open(participant: &Participant) -> Nic<ProcessHost> {
    let soon = Until::At(participant.now_ns() + PATIENCE_NS);
    let region = participant.region(MEMORY, TABLE.shape, soon).expect("the memory of the NICs");
    let nic = musubi_vipl::mapped::open(&NAMES, TABLE, region, participant.host(), mapped::Options::default());
    nic.expect("the table is that of the description")
}

/// Sends without end.
fn stream(part: &mut Part<'_, Running<ProcessHost>>) -> Result<()> {
    let mut streamed = OpenOptions::new().create(true).append(true).open(STREAMED)?;
    let mut recorded = Ok(());
    let sent = die(part, |level, _| {
        recorded = streamed.write_all(&[level as u8]);
        recorded.is_ok()
    });
    recorded.context("recording")?;
    sent.map_err(|failure| failed(&failure))?;
    bail!("the stream has ended")
}

/// Compares the former process's stream, and runs the cases.
fn cases(part: &mut Part<'_, Running<ProcessHost>>) -> Result<()> {
    let streamed = std::fs::read(STREAMED).context("what the former process has sent")?;
    let completed = [0, 1].map(|level| streamed.iter().filter(|byte| **byte == level).count() as u32);
    let [former, latter] = live_on(part, completed).map_err(|failure| failed(&failure))?;
    let mut passed = 0;
    run_some(part, CASES_WITHIN_A_LIFE, |_, name, result| match result {
        Ok(()) => passed += 1,
        Err(failure) => println!("FAILED {name} on Linux: {failure}"),
    });
    let there = part.exchange(&[passed]).map_err(|failure| failed(&failure))?;
    let sum = |of: fn(&musubi_testsuite_vis::Totals) -> u32| former.0.iter().map(of).sum();
    let survived = Survived {
        completed: completed.iter().sum(),
        received: sum(|one| one.received),
        flushed: sum(|one| one.flushed),
        lost: former.lost(completed),
        stray: former.stray() + latter.stray(),
        passed_here: u32::from(passed),
        passed_there: there.first().copied().unwrap_or(0).into(),
        reserved: 0,
    };
    zcu102_linux::Journal::open(SURVIVED)?.add(&survived)
}

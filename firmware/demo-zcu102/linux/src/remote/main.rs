//! The Remote of the demo: an ordinary process that streams a file to the Cortex-R5F, checks its digests, records its
//! telemetry, and sets its parameters.
//!
//! How it works: two threads. One takes telemetry and records each message before it gives the block back; the other
//! streams the file, pass after pass. Told to `crash` the Master, it asks for that in the middle of its second pass, and
//! goes on with what the Master's successor says: it is never restarted itself.

mod stream;
mod telemetry;

use std::process::ExitCode;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use musubi_core::plan::Plan;
use musubi_linux::uio::{Options, Participant};
use musubi_mdcom::{Mdcom, Wait};
use zcu102_demo::{PARAMETERS, Parameters, system};

use stream::Pump;

/// The plan that both sides were built with.
static PLAN: &Plan<'static> = &system::PLAN;
/// How long the Master may take to do anything that is waited for.
const PATIENCE: Duration = Duration::from_secs(20);
/// How long telemetry of the Master's successor is received at the end.
const LAST_LOOK: Duration = Duration::from_millis(500);
/// Passes of a Remote that ends by itself: one before the crash, one that it interrupts, one after it.
const WHOLE_PASSES: u32 = 2;

/// What the threads share.
#[derive(Debug, Default)]
struct Seen {
    /// Incarnation of the Master whose telemetry came last. Writer: the telemetry thread.
    incarnation: AtomicU32,
    /// Generation of the parameters that it works with. Writer: the telemetry thread.
    generation: AtomicU32,
    /// 1: end. Writer: the main thread.
    stop: AtomicU32,
}

fn main() -> ExitCode {
    let argument = std::env::args().nth(1).unwrap_or_default();
    let result = match argument.as_str() {
        "endless" => run(false),
        "crash" => run(true),
        _ => Err(anyhow::anyhow!("say \"endless\", or \"crash\" to have the Master crash once")),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            println!("remote: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(crash: bool) -> Result<()> {
    let participant = Participant::attach(Options::new(PLAN, "linux"))?;
    println!("remote: process {}, incarnation {:#010x}", std::process::id(), participant.epoch());
    let seen = Seen::default();
    let outcome = thread::scope(|scope| {
        let listener = scope.spawn(|| telemetry::listen(&participant, &seen));
        let outcome = work(&participant, &seen, crash);
        seen.stop.store(1, Ordering::Relaxed);
        let heard = listener.join().unwrap_or_else(|_| bail!("the telemetry thread panicked"));
        outcome.and(heard)
    });
    outcome.context(if crash { "second process" } else { "first process" })
}

fn work(participant: &Participant, seen: &Seen, crash: bool) -> Result<()> {
    let mut pump = Pump::new(participant, seen)?;
    set_parameters(participant, seen, 0)?;
    if !crash {
        loop {
            pump.pass(|_, _| Ok(()))?;
        }
    }
    pump.pass(|_, _| Ok(()))?;
    let victim = seen.incarnation.load(Ordering::Relaxed);
    println!("remote: pass 1, and the Master shall crash in the middle of it");
    let mut asked = false;
    while pump.whole_passes() < WHOLE_PASSES {
        pump.pass(|sent, all| {
            if !asked && sent * 2 > all {
                asked = true;
                set_crash(participant, victim)?;
            }
            Ok(())
        })?;
    }
    if !asked || pump.interrupted() == 0 {
        bail!("the Master did not crash");
    }
    // The successor has taken the parameters over.
    set_parameters(participant, seen, victim)?;
    thread::sleep(LAST_LOOK);
    Ok(())
}

/// Changes the parameters, and waits until telemetry shows that the loop works with them; `victim` shall not matter any
/// more.
fn set_parameters(participant: &Participant, seen: &Seen, victim: u32) -> Result<()> {
    let generation = change(participant, |parameters| {
        parameters.every = 1;
        parameters.crash = 0;
    })?;
    let begin = std::time::Instant::now();
    while seen.generation.load(Ordering::Relaxed) != generation || seen.incarnation.load(Ordering::Relaxed) == victim {
        if begin.elapsed() > PATIENCE {
            bail!("the Master did not take the parameters of generation {generation}");
        }
        thread::sleep(Duration::from_millis(2));
    }
    Ok(())
}

fn set_crash(participant: &Participant, victim: u32) -> Result<()> {
    change(participant, |parameters| parameters.crash = victim).map(|_| ())
}

/// Gives the new generation.
fn change(participant: &Participant, what: impl Fn(&mut Parameters)) -> Result<u32> {
    let wait = Wait::For(PATIENCE);
    let attachment: &musubi_core::mapped::Participant<'_, _> = participant;
    let mut memory = Mdcom::init(attachment).shared::<Parameters>(PARAMETERS, wait).context("the parameters")?;
    let mut guard = memory.lock(wait).context("locking the parameters")?;
    let mut parameters = guard.read();
    parameters.generation += 1;
    what(&mut parameters);
    guard.write(&parameters);
    Ok(parameters.generation)
}
